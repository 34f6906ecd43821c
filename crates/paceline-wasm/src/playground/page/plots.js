
// The plots of one controller: rate, queue, loss, signals. All plots of the page share the time under the cursor.
const PLOT_HEIGHT = { rate: 200, queue: 130, loss: 100, signals: 150 };
const plotHeight = (id) => Math.round(PLOT_HEIGHT[id] * (innerWidth < 700 ? 0.75 : 1));
const FACTS = [
  ["utilization", "link used"], ["throughput_bps", "throughput"], ["queue_p50_ms", "queue, median"], ["queue_p95_ms", "queue, 95 %"],
  ["loss_ratio", "packets lost"], ["frame_delay_p95_ms", "frame delay, 95 %"], ["freeze_duration_s", "frozen"],
];
const PARTS = [["score", "kept"], ["score_lost_to_rate", "rate"], ["score_lost_to_delay", "delay"], ["score_lost_to_freezes", "freezes"]];
const HIGHEST_OF = 1.08; // room above the highest value

class Side {
  constructor(name) {
    this.name = name;
    this.plots = new Map();
    this.group = "";
    this.head = make("h2", {});
    this.score = make("div", { class: "score" });
    this.facts = make("dl", { class: "facts" });
    this.element = make("section", { class: `side ${name}`, "aria-label": `Controller ${name.toUpperCase()}` }, this.head, this.score, this.facts);
    for (const [id, title, unit] of [["rate", "Rate", "Mbit/s"], ["queue", "Waiting at the bottleneck", "ms"], ["loss", "Packets lost", "% of one second"], ["signals", "Inside the controller", ""]]) {
      const key = make("div", { class: "key" });
      const plot = make("div", { class: "plot", role: "img", "aria-label": `${title} over time` });
      const heading = make("h3", {}, `${title} `, make("small", {}, unit));
      const figure = make("figure", { class: id, "data-plot": id }, make("div", { class: "head" }, heading, key), plot);
      if (id === "signals") {
        this.select = make("select", { "aria-label": "Signals to plot" });
        this.select.addEventListener("change", () => { this.group = this.select.value; this.draw(); });
        figure.append(make("div", { class: "signals" }, this.select));
      }
      this.element.append(figure);
      this.plots.set(id, { key, plot, u: null, shape: "" });
    }
    this.table = make("table", {});
    this.hash = make("p", { class: "hash" });
    this.element.append(make("details", { class: "more" }, make("summary", {}, "All metrics"), this.table), this.hash);
  }

  // Shows a run. `other` is the run beside it, whose values are compared, and `tops` the highest values of both.
  show(run, columns, summary, other, tops) {
    Object.assign(this, { run, columns, tops });
    const own = run.flows.find(({ kind }) => kind === "media") ?? run.flows[0];
    this.own = run.flows.indexOf(own);
    const names = [...new Set(run.flows.filter(({ kind }) => kind === own.kind).map(({ control }) => control))].join(", ");
    this.head.replaceChildren(make("i", { class: "dot" }), names, make("small", { title: summary }, summary));
    const metric = (of, id) => of?.metrics.find((metric) => metric.id === id);
    const isBetter = (id) => {
      const [here, there] = [metric(run, id), metric(other, id)];
      if (!here || !there || here.text === there.text || here.better === "neither") return false;
      return (here.value > there.value) === (here.better === "higher");
    };
    this.showScore(metric, isBetter("score"));
    this.facts.replaceChildren(...FACTS.filter(([id]) => metric(run, id)).map(([id, name]) =>
      make("div", { title: metric(run, id).summary }, make("dt", {}, name), make("dd", isBetter(id) ? { class: "better" } : {}, metric(run, id).text))));
    this.table.replaceChildren(...run.metrics.map(({ id, text, summary: what }) =>
      make("tr", {}, make("td", {}, make("code", {}, id)), make("td", {}, text), make("td", {}, what))));
    this.hash.textContent = `trace ${run.trace_hash} · ${run.events} events`;
    this.groups();
    this.draw();
  }

  // The score, and a bar of 100 points: what is kept and what each cause costs.
  showScore(metric, isBetter) {
    const { run } = this;
    this.score.hidden = run.score === null;
    if (run.score === null) return;
    const bar = make("div", { class: "bar", "aria-hidden": "true" });
    for (const [id, name] of PARTS) {
      const points = metric(run, id)?.value ?? 0;
      const part = make("i", { class: name, title: `${name}: ${points.toFixed(1)}` }, points > 13 && name !== "kept" ? name : "");
      part.style.flexGrow = Math.max(0, points);
      bar.append(part);
    }
    const [points, ...causes] = run.score.split(" of 100: ");
    const number = make("b", { title: metric(run, "score").summary, class: isBetter ? "better" : "" }, points);
    this.score.replaceChildren(make("p", {}, "score ", number, " of 100"), bar, make("p", { class: "causes" }, causes.join("")));
  }

  // The groups of signals: those of one flow with one unit. States have a group of their own.
  groups() {
    const groups = new Map();
    this.run.series.forEach((series, index) => {
      if (series.kind !== "signal" || this.column(index).every(Number.isNaN)) return;
      const flow = this.run.flows[series.flow];
      const kind = series.states.length ? "states" : series.unit || "no unit";
      const name = this.run.flows.length > 1 ? `${flow.id}: ${kind}` : kind;
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(index);
    });
    this.signalGroups = groups;
    if (!groups.has(this.group)) this.group = [...groups.keys()].sort((a, b) => this.worth(b) - this.worth(a))[0] ?? "";
    const label = (name) => `${name} (${groups.get(name).map((index) => this.run.series[index].name).join(", ")})`;
    this.select.replaceChildren(...[...groups.keys()].map((name) => make("option", { value: name }, label(name))));
    this.select.value = this.group;
    this.select.hidden = groups.size < 2;
  }

  // Delays first: they show most of how a controller sees the queue.
  worth(name) {
    const [index] = this.signalGroups.get(name);
    return (this.run.series[index].unit === "ms" ? 2 : 0) + (this.run.series[index].flow === this.own ? 1 : 0);
  }

  column(index) {
    return this.columns.subarray(index * this.run.rows, (index + 1) * this.run.rows);
  }

  draw() {
    if (!this.run) return;
    const { series, flows, rows, duration_s } = this.run;
    this.x = Float64Array.from({ length: rows }, (_, row) => ((row + 1) * duration_s) / rows);
    const several = flows.length > 1;
    const hue = (flow) => (flow === this.own ? `--${this.name}` : `--c${2 + ((flow - (flow > this.own ? 1 : 0)) % 5)}`);
    const lines = { rate: [], queue: [], loss: [], signals: [] };
    series.forEach(({ kind, flow }, index) => {
      const values = this.column(index), named = several && flow !== null ? ` ${flows[flow].id}` : "";
      if (kind === "capacity") lines.rate.unshift({ label: values.some((rate) => rate < this.tops.rate * HIGHEST_OF) ? "capacity" : "capacity (above)", values, colour: "--ink", width: 3, alpha: 0.4, steps: true });
      if (kind === "received") lines.rate.push({ label: `received${named}`, values, colour: hue(flow), width: 1.6 });
      if (kind === "target" && flow === this.own) lines.rate.push({ label: `target${named}`, values, colour: hue(flow), width: 1.2, dash: [5, 3] });
      if (kind === "queue") lines.queue.push({ label: "mean", values, colour: `--${this.name}`, width: 1.6 });
      if (kind === "queue-max") lines.queue.unshift({ label: "highest", values, colour: "--ink-2", width: 1, alpha: 0.6 });
      if (kind === "loss") lines.loss.push({ label: several ? flows[flow].id : "lost", values, colour: hue(flow), width: 1.6 });
    });
    (this.signalGroups.get(this.group) ?? []).forEach((index, nth) => {
      const { name, states } = series[index];
      lines.signals.push({ label: states.length ? `${name}: ${states.map((state, value) => `${value} ${state}`).join(", ")}` : name, values: this.column(index), colour: `--c${nth % 7}`, width: 1.4, steps: true });
    });
    for (const [id, all] of Object.entries(lines)) this.plot(id, all);
    const unit = this.group.split(": ").pop();
    this.element.querySelector(".signals h3 small").textContent = unit === "states" || unit === "no unit" ? "" : unit;
  }

  // Draws the lines of a plot. A plot with the same lines gets new values; else it is made anew.
  plot(id, lines) {
    const at = this.plots.get(id);
    const data = [this.x, ...lines.map(({ values }) => Array.from(values, (value) => (Number.isNaN(value) ? null : value)))];
    const shape = JSON.stringify([lines.map(({ label, colour, dash }) => [label, colour, dash]), this.name]);
    if (at.u && at.shape === shape) {
      at.u.setData(data);
      return;
    }
    at.u?.destroy();
    at.shape = shape;
    at.key.replaceChildren(...lines.map(({ label, colour: hue, dash, alpha }) => {
      const line = make("i", dash ? { class: "dashed" } : {});
      const item = make("span", {}, line, label);
      line.style.color = `var(${hue})`;
      line.style.opacity = alpha ?? 1;
      return item;
    }));
    const style = axisStyle(11);
    at.u = new uPlot({
      width: this.width(at), height: plotHeight(id), legend: { show: false }, padding: [6, 20, 0, 0],
      scales: { x: { time: false, range: () => [0, this.run.duration_s] }, y: { range: (_, low, high) => this.range(id, low, high) } },
      axes: [{ ...style, size: 24, space: 60, values: (_, ticks) => ticks.map((tick) => `${tick} s`) }, { ...style, size: 46, space: 26 }],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: "playground", setSeries: false } },
      series: [{}, ...lines.map(({ label, colour: hue, width, alpha, dash, steps }) => ({
        label, width, alpha: alpha ?? 1, dash, stroke: () => colour(hue), points: { show: false }, spanGaps: false,
        paths: steps ? uPlot.paths.stepped({ align: -1 }) : undefined,
      }))],
    }, data, at.plot);
  }

  // The plots of both controllers have the same range, except for signals.
  range(id, low, high) {
    if (id === "signals") return low === null ? [0, 1] : low === high ? [low - 1, high + 1] : [Math.min(low, low - (high - low) * 0.05), high + (high - low) * 0.05];
    const least = { rate: 0.1, queue: 10, loss: 1 }[id];
    return [0, Math.max(least, this.tops[id] * HIGHEST_OF)];
  }

  width(at) {
    return Math.max(220, at.plot.clientWidth || this.element.clientWidth - 26);
  }

  resize() {
    for (const [id, at] of this.plots) {
      if (at.u && at.u.width !== this.width(at)) at.u.setSize({ width: this.width(at), height: plotHeight(id) });
    }
  }

  redraw() {
    for (const at of this.plots.values()) at.u?.redraw(false);
  }
}

// The highest values of several runs, by plot.
const highest = (answers) => {
  const tops = { rate: 0, queue: 0, loss: 0 };
  const plots = { received: "rate", target: "rate", capacity: "rate", queue: "queue", "queue-max": "queue", loss: "loss" };
  for (const { run, columns } of answers) {
    // A capacity or a target far above what is sent would compress the rest.
    const most = (kind) => run.series.reduce((top, series, index) => {
      if (series.kind !== kind) return top;
      return columns.subarray(index * run.rows, (index + 1) * run.rows).reduce((a, b) => (b > a ? b : a), top);
    }, 0);
    for (const [kind, plot] of Object.entries(plots)) {
      const limit = plot === "rate" && kind !== "received" ? Math.max(2.5 * most("received"), 0.1) : Infinity;
      tops[plot] = Math.max(tops[plot], Math.min(most(kind), limit));
    }
  }
  return tops;
};
