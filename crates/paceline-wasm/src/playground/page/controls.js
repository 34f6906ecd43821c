
// The controls. They hold no state: each change goes to the text, and the positions come from the text.
const LOWEST = 50e3, HIGHEST = 100e6, POSITIONS = 1000; // bit/s; rates have a logarithmic scale

const toPosition = (bps) => Math.round((POSITIONS * Math.log(Math.max(bps, LOWEST) / LOWEST)) / Math.log(HIGHEST / LOWEST));
const fromPosition = (position) => {
  const bps = LOWEST * (HIGHEST / LOWEST) ** (position / POSITIONS);
  const unit = 10 ** (Math.floor(Math.log10(bps)) - 1); // two digits
  return Math.round(bps / unit) * unit;
};
const rateText = (bps) => (bps >= 1e6 ? `${+(bps / 1e6).toFixed(3)} Mbit/s` : `${+(bps / 1e3).toFixed(1)} kbit/s`);

class Controls {
  // `change` receives each change of the text with its field, and `chosen` the field after a change of what the text does not hold.
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
    $("open").append(...start.groups.map(([title, entries]) =>
      group(title, entries, ({ name, summary }) => (name.startsWith("path:") ? summary : `${summary} (${name})`))));
    this.curve = new Curve((points, end, isDrag) => this.change({ draw: [points, end] }, $("capacity"), isDrag));
    this.bind("controller", "change", (value) => value && { controller: value });
    this.bind("discipline", "change", (value) => ({ discipline: value }));
    this.bind("delay", "input", (value) => ({ "delay-ms": +value }));
    this.bind("loss", "input", (value) => ({ "loss-percent": +value }));
    this.bind("limit", "input", (value) => ({ limit: +value }));
    this.bind("min", "input", (value) => ({ "encoder-min": fromPosition(+value) }));
    this.bind("max", "input", (value) => ({ "encoder-max": fromPosition(+value) }));
    this.bind("duration", "change", (value) => ({ duration: +value }));
    $("beside").addEventListener("change", () => chosen($("beside")));
    $("seed").addEventListener("input", () => chosen($("seed")));
    $("next-seed").addEventListener("click", () => { $("seed").value = +$("seed").value + 1; chosen($("seed")); });
    $("controls").addEventListener("submit", (event) => event.preventDefault());
  }

  bind(id, event, change) {
    $(id).addEventListener(event, () => {
      const made = change($(id).value);
      if (made) this.change(made, $(id), false);
    });
  }

  // Sets every control to its position in the text. A control without a value in the text is disabled.
  show(at) {
    this.at = at;
    this.asWritten.hidden = at.controller !== null;
    this.asWritten.textContent = `as written: ${at.controllers.join(", ")}`;
    $("controller").value = at.controller ?? "";
    $("duration").value = at.duration_s;
    $("discipline").value = at.queue.discipline;
    $("link-controls").disabled = at.link === null;
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
    this.curve.show(at.capacity, at.duration_s);
  }

  slide(id, value, text, absent, position = (value) => value) {
    const slider = $(id);
    slider.disabled = value === null;
    slider.parentElement.querySelector("output").textContent = value === null ? absent : text(value);
    if (value === null) return;
    if (document.activeElement !== slider || Math.abs(position(value) - slider.value) > 2) slider.value = position(value);
    slider.setAttribute("aria-valuetext", text(value));
  }
}
