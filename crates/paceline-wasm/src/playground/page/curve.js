
// The capacity over time as one curve. Pointer, keys and numbers change the part from one time to another.
class Curve {
  // `change` receives points (s, bit/s), the end of the last one, and whether the text before the drag is meant.
  constructor(change) {
    Object.assign(this, { change, svg: $("curve"), drag: null, chosen: 0, steps: [], duration: 1, top: 1 });
    const shape = (name, tag = "path") => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      element.setAttribute("class", name);
      this.svg.append(element);
      return element;
    };
    [this.span, this.area, this.line] = [shape("span", "rect"), shape("area"), shape("line")];
    this.svg.addEventListener("pointerdown", (event) => this.press(event));
    this.svg.addEventListener("pointermove", (event) => this.drag && this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => this.release());
    this.svg.addEventListener("keydown", (event) => this.key(event));
    $("set-capacity").addEventListener("click", () => this.set());
    for (const id of ["from", "to", "rate"]) $(id).addEventListener("keydown", ({ key }) => key === "Enter" && this.set());
  }

  // Shows steps (s, bit/s), or none. While the user drags, the scale stays.
  show(steps, duration) {
    Object.assign(this, { steps: steps ?? [], duration });
    if (!this.drag) this.top = Math.max(1e5, 1.3 * this.steps.reduce((top, [, rate]) => Math.max(top, rate), 0) || 5e6);
    const x = (at) => ((1000 * at) / duration).toFixed(1), y = (rate) => (100 - (100 * rate) / this.top).toFixed(2);
    const path = this.steps.map(([at, rate], nth) => `${nth ? "H" : "M"}${x(at)}${nth ? "V" : " "}${y(rate)}`).join("") + (steps ? "H1000" : "");
    this.line.setAttribute("d", path);
    this.area.setAttribute("d", steps ? `${path}V100H0Z` : "");
    $("curve-top").textContent = rateText(+this.top.toPrecision(2));
    $("curve-end").textContent = `${+duration.toFixed(1)} s`;
    this.choose(this.chosen);
  }

  // The parts that keys move: steps, or fiftieths of the run if there are many steps.
  parts() {
    const count = this.steps.length;
    const starts = count > 50 ? Array.from({ length: 50 }, (_, nth) => (nth * this.duration) / 50) : count ? this.steps.map(([at]) => at) : [0];
    return starts.map((at, nth) => [at, starts[nth + 1] ?? this.duration]);
  }

  mean(from, to) {
    return this.steps.reduce((sum, [at, rate], nth) => {
      const end = this.steps[nth + 1]?.[0] ?? this.duration;
      return sum + rate * Math.max(0, Math.min(end, to) - Math.max(at, from));
    }, 0) / (to - from);
  }

  choose(nth) {
    const parts = this.parts();
    this.chosen = Math.min(Math.max(nth, 0), parts.length - 1);
    const [from, to] = parts[this.chosen], rate = this.mean(from, to);
    this.span.setAttribute("x", (1000 * from) / this.duration);
    this.span.setAttribute("width", (1000 * (to - from)) / this.duration);
    this.span.setAttribute("height", 100);
    const text = this.steps.length ? `${+from.toFixed(2)} to ${+to.toFixed(2)} s: ${rateText(+rate.toPrecision(4))}` : "unlimited";
    $("curve-value").textContent = text;
    this.svg.setAttribute("aria-valuetext", text);
    this.svg.setAttribute("aria-valuenow", Math.round(rate));
    for (const [id, value] of [["from", from], ["to", to], ["rate", rate / 1e6]]) {
      if (document.activeElement !== $(id)) $(id).value = id === "rate" ? +value.toPrecision(4) : +value.toFixed(3);
    }
  }

  part(at) {
    return this.parts().findLastIndex(([from]) => from <= at);
  }

  place({ clientX, clientY }) {
    const box = this.svg.getBoundingClientRect();
    const within = (value) => Math.min(Math.max(value, 0), 1);
    const share = 1 - within((clientY - box.top) / box.height);
    return { x: clientX, y: clientY, at: within((clientX - box.left) / box.width), rate: share < 0.01 ? 0 : +(share * this.top).toPrecision(2) };
  }

  press(event) {
    if ($("link-controls").disabled || event.button) return;
    event.preventDefault();
    this.svg.focus();
    this.svg.setPointerCapture(event.pointerId);
    const start = this.place(event), nth = this.part(start.at * this.duration);
    this.drag = { start, last: start, part: this.steps.length > 50 ? null : this.parts()[nth], drawn: new Map(), begun: false };
    this.choose(nth);
  }

  move(event) {
    const { drag, duration } = this, now = this.place(event);
    if (!drag.begun && Math.hypot(now.x - drag.start.x, now.y - drag.start.y) < 4) return;
    const COLUMNS = 200, column = ({ at }) => Math.min(Math.floor(at * COLUMNS), COLUMNS - 1);
    const [a, b] = [column(drag.last), column(now)];
    for (let n = 0; n <= Math.abs(b - a); n++) {
      const share = a === b ? 1 : n / Math.abs(b - a);
      drag.drawn.set(a + Math.sign(b - a) * n, +(drag.last.rate + (now.rate - drag.last.rate) * share).toPrecision(3));
    }
    drag.last = now;
    const columns = [...drag.drawn.keys()].sort((one, other) => one - other), last = columns[columns.length - 1];
    const isStep = drag.part && Math.abs(now.x - drag.start.x) < 8 && last - columns[0] < 6;
    const points = isStep ? [[drag.part[0], now.rate]] : columns.map((nth) => [(nth * duration) / COLUMNS, drag.drawn.get(nth)]);
    this.change(points, isStep ? drag.part[1] : ((last + 1) * duration) / COLUMNS, drag.begun);
    drag.begun = true;
    this.choose(this.part(drag.start.at * duration));
  }

  release() {
    if (!this.drag) return;
    this.drag = null;
    this.show(this.steps, this.duration);
  }

  key(event) {
    const turn = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    const raise = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
    if ($("link-controls").disabled || (!turn && !raise)) return;
    event.preventDefault();
    if (turn) return this.choose(this.chosen + turn);
    const [from, to] = this.parts()[this.chosen], rate = this.mean(from, to), unit = 10 ** Math.floor(Math.log10(this.top / 20));
    this.change([[from, Math.max(0, Math.round(rate / unit + raise) * unit)]], to, false);
    this.choose(this.part((from + to) / 2));
  }

  set() {
    const [from, to, rate] = ["from", "to", "rate"].map((id) => ($(id).value === "" ? NaN : +$(id).value));
    this.change([[from, rate * 1e6]], to, false);
  }
}
