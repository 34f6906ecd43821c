
// The controls. They hold no state: each change goes to the text, and the positions come from the text.
const LOWEST = 50e3, HIGHEST = 100e6, POSITIONS = 1000; // bit/s; rates have a logarithmic scale
const MAX_STEPS = 12;

const toPosition = (bps) => Math.round((POSITIONS * Math.log(Math.max(bps, LOWEST) / LOWEST)) / Math.log(HIGHEST / LOWEST));
const fromPosition = (position) => {
  const bps = LOWEST * (HIGHEST / LOWEST) ** (position / POSITIONS);
  const unit = 10 ** (Math.floor(Math.log10(bps)) - 1); // two digits
  return Math.round(bps / unit) * unit;
};
const rateText = (bps) => (bps >= 1e6 ? `${+(bps / 1e6).toFixed(3)} Mbit/s` : `${+(bps / 1e3).toFixed(1)} kbit/s`);

class Controls {
  // `change` receives each change of the text, and `chosen` is called after a change of what the text does not hold.
  constructor(start, change, chosen) {
    this.change = change;
    const options = (all, text = ({ name }) => name) => all.map((each) => make("option", { value: each.name, title: each.summary }, text(each)));
    this.summaries = new Map(start.controllers.map(({ name, summary }) => [name, summary]));
    this.asWritten = make("option", { value: "", hidden: "" }, "as written");
    $("controller").append(this.asWritten, ...options(start.controllers));
    $("beside").append(make("option", { value: "" }, "none"), ...options(start.controllers));
    $("discipline").append(...options(start.disciplines));
    const group = (label, all, text) => {
      const group = make("optgroup", { label });
      group.append(...options(all, text));
      return group;
    };
    $("open").append(group("a call over", start.presets, ({ summary }) => summary));
    for (const folder of new Set(start.scenarios.map(({ name }) => name.split("/")[0]))) {
      $("open").append(group(folder, start.scenarios.filter(({ name }) => name.startsWith(`${folder}/`)), ({ name, summary }) => `${name.slice(folder.length + 1)}: ${summary}`));
    }
    this.bind("controller", "change", (value) => value && { controller: value });
    this.bind("discipline", "change", (value) => ({ discipline: value }));
    this.bind("delay", "input", (value) => ({ "delay-ms": +value }));
    this.bind("loss", "input", (value) => ({ "loss-percent": +value }));
    this.bind("limit", "input", (value) => ({ limit: +value }));
    this.bind("min", "input", (value) => ({ "encoder-min": fromPosition(+value) }));
    this.bind("max", "input", (value) => ({ "encoder-max": fromPosition(+value) }));
    this.bind("duration", "change", (value) => +value > 0 && { duration: +value });
    $("beside").addEventListener("change", chosen);
    $("seed").addEventListener("input", () => $("seed").checkValidity() && $("seed").value !== "" && chosen());
    $("next-seed").addEventListener("click", () => { $("seed").value = +$("seed").value + 1; chosen(); });
    $("add-step").addEventListener("click", () => this.addStep());
    $("controls").addEventListener("submit", (event) => event.preventDefault());
  }

  bind(id, event, change) {
    $(id).addEventListener(event, () => {
      const made = change($(id).value);
      if (made) this.change(made);
    });
  }

  // Adds a step halfway between the last one and the end, at half of its rate.
  addStep() {
    const steps = this.at.capacity ?? [[0, 1e6]];
    const [last, bps] = steps[steps.length - 1];
    const time = Math.round(((last + this.at.duration_s) / 2) * 10) / 10;
    if (time > last) this.change({ capacity: [...steps, [time, Math.max(LOWEST, bps / 2)]] });
  }

  // Sets every control to its position in the text. A control without a value in the text is disabled.
  show(at) {
    this.at = at;
    this.asWritten.hidden = at.controller !== null;
    this.asWritten.textContent = `as written: ${at.controllers.join(", ")}`;
    $("controller").value = at.controller ?? "";
    $("duration").value = at.duration_s;
    $("discipline").value = at.queue.discipline;
    $("link").disabled = at.link === null;
    this.slide("delay", at.delay_ms, (ms) => `${+ms.toFixed(1)} ms`, "changes over time");
    this.slide("loss", at.loss_percent, (percent) => `${+percent.toFixed(2)} %`, "see the text");
    const most = { ms: 2000, KB: 500, packets: 2000 }[at.queue.unit];
    $("limit").max = Math.max(most, at.queue.limit);
    $("limit").min = at.queue.unit === "ms" ? 5 : at.queue.unit === "KB" ? 2 : 1;
    this.slide("limit", at.queue.limit, (limit) => `${+limit.toFixed(1)} ${at.queue.unit}`, "");
    $("encoder").disabled = at.encoder === null;
    const [min, max] = at.encoder ?? [null, null];
    this.slide("min", min, rateText, "see the text", toPosition);
    this.slide("max", max, rateText, "see the text", toPosition);
    this.steps(at);
  }

  slide(id, value, text, absent, position = (value) => value) {
    const slider = $(id);
    slider.disabled = value === null;
    slider.parentElement.querySelector("output").textContent = value === null ? absent : text(value);
    if (value === null) return;
    if (document.activeElement !== slider || Math.abs(position(value) - slider.value) > 2) slider.value = position(value);
    slider.setAttribute("aria-valuetext", text(value));
  }

  // Rows of the capacity: a time and a rate. Rows are kept while their number is the same, so that a drag is not interrupted.
  steps(at) {
    const list = $("capacity");
    const steps = at.capacity;
    $("add-step").disabled = steps !== null && steps.length >= MAX_STEPS;
    $("add-step").textContent = steps === null ? "Set a capacity" : "Add a step";
    if (steps === null) {
      list.replaceChildren(make("p", { class: "note" }, "Capacity: recorded or unlimited, see the text"));
      return;
    }
    if (list.querySelectorAll(".step").length !== steps.length) {
      list.replaceChildren(...steps.map((_, nth) => this.step(nth, steps.length)));
    }
    list.querySelectorAll(".step").forEach((row, nth) => {
      const [time, bps] = steps[nth];
      const [clock, slider, output] = [row.querySelector("[type=number]"), row.querySelector("[type=range]"), row.querySelector("output")];
      if (clock && document.activeElement !== clock) clock.value = time;
      if (Math.abs(toPosition(bps) - slider.value) > 2 || document.activeElement !== slider) slider.value = toPosition(bps);
      slider.setAttribute("aria-valuetext", rateText(bps));
      output.textContent = rateText(bps);
    });
  }

  step(nth, count) {
    const changed = (of) => this.change({ capacity: this.at.capacity.map((step, index) => (index === nth ? of(step) : step)) });
    const slider = make("input", { type: "range", min: "0", max: String(POSITIONS), step: "1", "aria-label": `Capacity of step ${nth + 1}` });
    slider.addEventListener("input", () => changed(([time]) => [time, fromPosition(+slider.value)]));
    const row = make("div", { class: "step" });
    if (nth === 0) {
      row.append(make("span", {}, count > 1 ? "Capacity from 0 s" : "Capacity"), make("span", {}));
    } else {
      const clock = make("input", { type: "number", min: "0", step: "any", "aria-label": `Start of step ${nth + 1}, s` });
      clock.addEventListener("change", () => changed(([, bps]) => [+clock.value, bps]));
      row.append(make("span", {}, "from"), make("span", {}, clock, " s"));
    }
    row.append(make("output", {}));
    if (nth > 0) {
      const remove = make("button", { type: "button", "aria-label": `Remove step ${nth + 1}`, title: "Remove" }, "×");
      remove.addEventListener("click", () => this.change({ capacity: this.at.capacity.filter((_, index) => index !== nth) }));
      row.append(remove);
    }
    row.append(slider);
    return row;
  }
}
