// Draws the plots from the columns in this document; it loads nothing else.
//
// uPlot provides axes, cursor and zoom. This script draws the lines, because each series has its own times and may have very
// many points. For each column of pixels it draws the first, smallest, largest and last value in view.
(() => {
  const COLOURS = 7;                                   // --c0 to --c6 of page.css
  const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3]];  // one per cycle of colours, and per line of a subject
  const LANE = 26, AXES = 50, HEIGHT = 230, PRINT_WIDTH = 670; // px
  const QUANTILE = 0.995;    // the initial range covers this share of the values of each series ...
  const OUTLIER_FACTOR = 1.5; // ... if the largest value exceeds it by this factor
  const SAMPLES = 5000;      // values from which the quantile is estimated
  const MAX_TIP_ROWS = 14;
  const LEGEND = 7;          // entries of a legend that are shown and checked before a click on "more"

  // State for tests and for the browser's console.
  const page = (window.paceline = { ready: false, error: null, points: 0, openedMs: null, figures: [] });

  let printing = false;

  main().catch((error) => {
    page.error = String(error);
    showMessage(`The plots cannot be drawn: ${error}`);
    throw error;
  });

  async function main() {
    if (typeof DecompressionStream === "undefined") {
      page.error = "no DecompressionStream";
      showMessage("The plots need a browser of 2023 or later with DecompressionStream. The tables are complete.");
      return;
    }
    const data = JSON.parse($("figures").textContent);
    const bytes = await inflate($("columns").textContent);
    page.points = data.points;
    for (const figure of data.figures) {
      for (const panel of figure.panels)
        for (const series of panel.series) decode(series, bytes);
      page.figures.push(figure);
    }
    for (const root of document.querySelectorAll(".set")) {
      const ids = [...root.querySelectorAll("[data-figure]")].map((section) => section.dataset.figure);
      new FigureSet(root, page.figures.filter(({ id }) => ids.includes(id)));
    }
    document.querySelectorAll(".commands").forEach(copyable);
    $("message").remove();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    page.openedMs = performance.now();
    page.ready = true;
  }

  function showMessage(text) {
    const message = $("message");
    if (message) message.textContent = text;
  }

  // Decodes base64 of a zlib stream; see columns.rs.
  async function inflate(text) {
    const packed = atob(text.trim());
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function decode(series, bytes) {
    const column = ({ at, code, ticks_per_second }) => {
      if (code === "floats") {
        const planes = new Uint8Array(4 * series.n);
        for (let byte = 0; byte < 4; byte++)
          for (let i = 0, from = at + byte * series.n; i < series.n; i++) planes[4 * i + byte] = bytes[from + i];
        return new Float32Array(planes.buffer);
      }
      const times = new Float64Array(series.n);
      for (let i = 0, now = 0; i < series.n; i++) {
        let zigzag = 0, scale = 1, byte;
        do {
          byte = bytes[at++];
          zigzag += (byte & 0x7f) * scale;
          scale *= 128;
        } while (byte >= 0x80);
        now += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
        times[i] = now / ticks_per_second;
      }
      return times;
    };
    series.x = column(series.x);
    series.y = column(series.y);
    if (series.ci95) series.ci95 = column(series.ci95);
    series.hidden = false;
  }

  // Figures with a common legend. They share subjects, time span and cursor.
  class FigureSet {
    constructor(root, figures) {
      this.root = root;
      this.cursor = figures[0].id;
      this.hidden = new Set();
      this.plots = [];
      this.legend(figures[0]?.subjects ?? []);
      for (const figure of figures) {
        const section = [...this.root.querySelectorAll("[data-figure]")].find((s) => s.dataset.figure === figure.id);
        for (const panel of figure.panels) {
          const element = section.querySelector(`[data-panel="${panel.id}"]`);
          this.plots.push((panel.plot = new Plot(this, panel, element, figure.subjects)));
        }
      }
      const resize = new ResizeObserver(() => this.plots.forEach((plot) => plot.resize()));
      resize.observe(this.root);
      onThemeChange(() => this.redraw());
      addEventListener("beforeprint", () => this.print(true));
      addEventListener("afterprint", () => this.print(false));
    }

    // Adds one checkbox per subject. If several kinds (controllers, flows, cases) have the same seeds, it adds one checkbox
    // per kind, with its colour, and one per seed; only the first seed is checked. Beyond LEGEND entries, the rest is shown on request.
    legend(subjects) {
      const group = this.root.querySelector(".subjects");
      // Media first, so that a controller has the colour that it has in the means of a comparison.
      const mediaFirst = [...subjects.filter(({ traffic }) => !traffic), ...subjects.filter(({ traffic }) => traffic)];
      const kinds = [...new Set(mediaFirst.map(({ kind }) => kind))];
      const seeds = [...new Set(subjects.map(({ seed }) => seed))].sort((a, b) => a - b);
      const grid = kinds.every((kind) => seeds.every((seed) => subjects.some((s) => s.kind === kind && s.seed === seed)));
      const grouped = kinds.length > 1 && seeds.length > 1 && grid;
      this.colours = subjects.map(({ kind }, index) => (grouped ? kinds.indexOf(kind) : index));
      const rows = grouped ? [kinds, seeds] : [subjects.map(({ label }) => label)];
      const keys = (subject) => (grouped ? [kinds.indexOf(subject.kind), seeds.indexOf(subject.seed)] : [subjects.indexOf(subject)]);
      const rest = rows.map(() => []);
      const boxes = rows.map((row, of) => row.map((name, index) => {
        const box = make("input", { type: "checkbox" });
        box.checked = of === 0 ? index < LEGEND : index === 0;
        box.addEventListener("change", () => show());
        const label = make("label", {}, box);
        if (of === 0) {
          const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
          swatch.innerHTML = lineSample(DASHES[round(index)], 2);
          swatch.style.color = `var(--c${index % COLOURS})`;
          label.append(swatch);
        }
        label.append(of === 0 ? name : `seed ${name}`);
        group.append(label);
        if (index >= LEGEND) rest[of].push(label);
        if (index === row.length - 1) group.append(more(rest[of]));
        if (grouped && of === 0 && index === row.length - 1) group.append(make("i", { class: "break" }));
        return box;
      }));
      const show = () => {
        this.hidden = new Set();
        subjects.forEach((subject, index) => {
          if (!keys(subject).every((key, of) => boxes[of][key].checked)) this.hidden.add(index);
        });
        this.redraw();
      };
      if (subjects.length > 2) {
        const all = make("button", { type: "button" }, "all / none");
        all.addEventListener("click", () => {
          const checked = this.hidden.size > 0;
          boxes.flat().forEach((box) => (box.checked = checked));
          show();
        });
        group.append(all);
      }
      show();
    }

    redraw() {
      colours.clear();
      this.plots.forEach((plot) => plot.refresh());
    }

    // Print uses another width and other colours.
    print(begins) {
      printing = begins;
      document.documentElement.classList.toggle("printing", begins);
      this.redraw();
    }

    // Applies the time span of `from` to all plots over time.
    zoomed(from) {
      if (!from.overTime) return;
      const { min, max } = from.u.scales.x;
      for (const plot of this.plots) {
        const x = plot.u.scales.x;
        if (plot.overTime && (x.min !== min || x.max !== max)) plot.u.setScale("x", { min, max });
      }
    }
  }

  const round = (nth) => Math.floor(nth / COLOURS) % DASHES.length;
  const lineSample = (dash, width) =>
    `<svg width="26" height="10"><path d="M1 5H25" stroke="currentColor" stroke-width="${width}" stroke-dasharray="${dash}"/></svg>`;

  class Plot {
    constructor(set, panel, figure, subjects) {
      Object.assign(this, { set, panel, figure, subjects });
      this.element = figure.querySelector(".plot");
      this.overTime = panel.series.every((s) => s.kind !== "cdf");
      this.lanes = panel.series.every((s) => s.kind === "band");
      this.showAll = false;
      this.styles();
      this.key();
      this.begin();
    }

    // Assigns dashes: each further line of a subject gets another dash.
    styles() {
      const lines = new Map();
      for (const series of this.panel.series) {
        if (series.role === "limit" || series.kind === "points" || series.kind === "band") continue;
        const key = `${series.subject} ${series.role}`;
        const nth = lines.get(key) ?? 0;
        lines.set(key, nth + 1);
        series.dash = series.role === "second" ? [4, 3] : DASHES[(nth + round(this.set.colours[series.subject] ?? 0)) % DASHES.length];
        series.nth = nth;
      }
    }

    // Adds one button per series label, which hides or shows the series.
    key() {
      const key = this.figure.querySelector(".key");
      const labels = new Map();
      for (const series of this.panel.series) {
        if (!labels.has(series.label)) labels.set(series.label, []);
        labels.get(series.label).push(series);
      }
      const rest = [];
      for (const [label, all] of labels) {
        if (all[0].kind === "cdf") break;
        const shown = key.childElementCount < LEGEND;
        const first = all[0];
        const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
        swatch.innerHTML =
          first.kind === "points" ? '<svg width="12" height="10"><rect x="4" y="3" width="4" height="4" fill="currentColor"/></svg>'
          : first.kind === "band" ? ""
          : first.role === "limit" ? '<svg width="26" height="10"><rect class="limit" width="26" height="10"/></svg>'
          : lineSample(first.dash, 1.5);
        const button = make("button", { type: "button", "aria-pressed": String(shown) }, swatch, label);
        if (first.kind === "band") {
          first.states.forEach((state, index) => {
            const box = make("i", { class: "state" });
            box.style.opacity = opacity(first, index);
            button.append(make("span", { class: "named" }, box, first.states.length > 1 ? state : ""));
          });
        }
        button.addEventListener("click", () => {
          const hide = button.getAttribute("aria-pressed") === "true";
          button.setAttribute("aria-pressed", String(!hide));
          all.forEach((series) => (series.hidden = hide));
          this.refresh();
        });
        key.append(button);
        if (!shown) rest.push(button);
        all.forEach((series) => (series.hidden = !shown));
      }
      key.append(more(rest));
      this.button = make("button", { type: "button", class: "whole", "aria-pressed": "false", hidden: "" }, "all values");
      this.button.title = "Include outliers in the range";
      this.button.addEventListener("click", () => {
        this.showAll = !this.showAll;
        this.button.setAttribute("aria-pressed", String(this.showAll));
        this.refresh();
      });
      key.append(this.button);
    }

    visible(series) {
      return !series.hidden && !(series.subject !== null && this.set.hidden.has(series.subject));
    }

    height() {
      if (!this.lanes) return innerWidth < 600 ? 190 : HEIGHT;
      const lanes = this.panel.series.filter((series) => this.visible(series)).length;
      return Math.max(1, lanes) * LANE + AXES;
    }

    width() {
      return printing ? PRINT_WIDTH : Math.max(240, this.element.clientWidth);
    }

    begin() {
      const { x, y } = this.panel;
      const self = this;
      const narrow = this.width() < 480;
      const named = ({ label, unit }) => (unit ? `${label} (${unit})` : label);
      const style = axisStyle(12);
      const axis = { ...style, labelFont: style.font, labelSize: 18, ticks: { ...style.grid, size: 5 } };
      this.u = new uPlot({
        width: this.width(),
        height: this.height(),
        legend: { show: false },
        pxAlign: 0,
        padding: [8, 12, 0, 0],
        scales: {
          x: { time: false },
          y: { range: () => this.yRange() },
        },
        axes: [
          { ...axis, label: named(x), size: 30, space: narrow ? 50 : 70 },
          this.lanes
            ? { ...axis, size: 58, grid: { show: false }, ticks: { show: false }, splits: [], values: [], label: named(y) }
            : { ...axis, label: named(y), size: 58, space: 32 },
        ],
        cursor: {
          points: { show: false },
          y: false,
          drag: { x: true, y: false, dist: 4 },
          sync: this.overTime ? { key: this.set.cursor, setSeries: false } : undefined,
        },
        series: [{}, ...this.panel.series.map((series, index) => ({
          scale: "y",
          show: true,
          auto: false,
          stroke: () => this.colourOf(series),
          fill: series.kind === "points" ? () => this.colourOf(series) : series.role === "limit" ? () => colour("--limit-area") : undefined,
          width: series.role === "limit" ? 1 : series.role === "second" ? 1.25 : 1.5,
          alpha: series.role === "second" ? 0.85 : 1,
          dash: series.dash?.length ? series.dash : undefined,
          points: { show: false },
          paths: (u) => self.path(u, index),
        }))],
        hooks: {
          setScale: [(u, key) => { if (key === "x" && this.u) { this.set.zoomed(this); this.hint(); } }],
          drawAxes: [() => this.intervals(), () => this.bands()],
          setCursor: [(u) => this.tip(u)],
        },
      }, this.frame(), this.element);
      this.tipBox = make("div", { class: "tip", hidden: "" });
      this.u.over.append(this.tipBox);
      this.u.over.addEventListener("mouseenter", () => (this.hovered = true));
      this.u.over.addEventListener("mouseleave", () => { this.hovered = false; this.tipBox.hidden = true; });
      this.element.addEventListener("keydown", (event) => this.pressed(event));
      this.hint();
    }

    // The data given to uPlot: only the full span, to which a double click returns.
    frame() {
      const [min, max] = this.span();
      return [[min, max], ...this.panel.series.map(() => [null, null])];
    }

    span() {
      if (this.panel.x.range) return this.panel.x.range;
      let most = 0, share = 0;
      for (const series of this.panel.series) {
        if (!series.n || !this.visible(series)) continue;
        most = Math.max(most, series.x[series.n - 1]);
        share = Math.max(share, series.x[Math.floor((series.n - 1) * QUANTILE)]);
      }
      const max = this.showAll || most <= OUTLIER_FACTOR * share ? most : share;
      this.clipped = max < most;
      return [0, max * 1.02 || 1];
    }

    refresh() {
      this.u.setSize({ width: this.width(), height: this.height() });
      if (this.overTime) {
        const { min, max } = this.u.scales.x;
        this.u.setData(this.frame(), false);
        this.u.setScale("x", { min, max });
      } else {
        this.u.setData(this.frame(), true);
      }
      this.hint();
    }

    resize() {
      if (!printing && Math.abs(this.u.width - this.width()) > 1) this.refresh();
    }

    hint() {
      this.button.hidden = !(this.clipped || this.showAll);
    }

    colourOf(series) {
      return series.role === "limit" ? colour("--limit") : colour(`--c${this.set.colours[series.subject] % COLOURS}`);
    }

    // Returns the first and last index of `series` needed for the visible span.
    inView(series) {
      const { min, max } = this.u.scales.x;
      const first = Math.max(0, bisect(series.x, min) - 1);
      const last = Math.min(series.n - 1, bisect(series.x, max));
      return [first, last];
    }

    yRange() {
      const { y, series: all } = this.panel;
      if (this.lanes) return [0, 1];
      if (y.range) return y.range.map((end, index) => (index ? end * 1.02 : end));
      let least = Infinity, most = -Infinity, top = -Infinity, bottom = Infinity, limit = -Infinity;
      const zoomed = this.u && this.isZoomed();
      for (const series of all) {
        if (!this.visible(series) || series.kind === "band" || !series.n) continue;
        const extremes = zoomed ? this.extremes(series, ...this.inView(series)) : (series.all ??= this.extremes(series, 0, series.n - 1));
        if (series.role === "limit") { limit = Math.max(limit, extremes.most); continue; }
        least = Math.min(least, extremes.least);
        most = Math.max(most, extremes.most);
        if (zoomed) continue;
        const [low, high] = (series.shares ??= shares(series));
        bottom = Math.min(bottom, low);
        top = Math.max(top, high);
      }
      this.clipped = false;
      if (!zoomed && !this.showAll && most > -Infinity) {
        if (most > OUTLIER_FACTOR * top && top > 0) { most = OUTLIER_FACTOR * top; this.clipped = true; }
        if (least < OUTLIER_FACTOR * bottom && bottom < 0) { least = OUTLIER_FACTOR * bottom; this.clipped = true; }
      }
      // A capacity far above the other values would compress them.
      if (limit <= 4 * most || most === -Infinity) most = Math.max(most, limit);
      if (!(most > -Infinity)) return [0, 1];
      if (least > 0) least = 0;
      if (most < 0) most = 0;
      if (least === most) most = least + 1;
      const room = (most - least) * 0.06;
      return [least < 0 ? least - room : 0, most + room];
    }

    isZoomed() {
      const { min, max } = this.u.scales.x;
      if (min === null) return false; // before the first layout
      const [from, to] = this.span();
      return min > from + 1e-9 || max < to - 1e-9;
    }

    extremes(series, first, last) {
      let least = Infinity, most = -Infinity;
      for (let i = first; i <= last; i++) {
        const y = series.y[i], half = series.ci95 ? series.ci95[i] : 0;
        if (this.cut(y - half) < least) least = this.cut(y - half);
        if (y + half > most) most = y + half;
      }
      return { least, most };
    }

    // Cuts an interval at the smallest possible value, such as 0 of a rate.
    cut(value) {
      return Math.max(value, this.panel.y.least ?? -Infinity);
    }

    // Returns the path that uPlot draws for a series, in canvas pixels.
    path(u, index) {
      const series = this.panel.series[index];
      if (!series.n || series.kind === "band" || !this.visible(series)) return null;
      const { left, top, width, height } = u.bbox;
      const sx = u.scales.x, sy = u.scales.y;
      const toX = (x) => left + ((x - sx.min) / (sx.max - sx.min)) * width;
      const toY = (y) => top + height - ((y - sy.min) / (sy.max - sy.min)) * height;
      const [first, last] = this.inView(series);
      const path = new Path2D();
      series.drawn = 0;
      if (series.kind === "points") {
        const size = 4 * devicePixelRatio;
        let seen = new Set(), column = -1;
        for (let i = first; i <= last; i++) {
          if (Number.isNaN(series.y[i])) continue;
          const x = toX(series.x[i]), y = toY(series.y[i]);
          if (Math.round(x) !== column) { seen.clear(); column = Math.round(x); }
          if (seen.has(Math.round(y))) continue;
          seen.add(Math.round(y));
          path.rect(x - size / 2, y - size / 2, size, size);
          series.drawn++;
        }
        return { stroke: null, fill: path, clip: null, band: null, gaps: null, flags: 3 };
      }
      const steps = series.kind === "steps";
      let pen = false, before = 0;
      const to = (x, y) => {
        if (Number.isNaN(y)) { if (steps && pen) path.lineTo(x, before); pen = false; return; }
        if (!pen) path.moveTo(x, y);
        else { if (steps) path.lineTo(x, before); path.lineTo(x, y); }
        pen = true;
        before = y;
        series.drawn++;
      };
      const isLimit = series.role === "limit"; // smoothed, and filled down to zero
      if (last - first <= width || isLimit) {
        for (let i = first; i <= last; i++) to(toX(series.x[i]), toY(series.y[i]));
      } else {
        // Level of detail: a bar in each column of pixels, from the smallest to the largest value in it and the last one before
        // it. A line with several vertices in each column covers the same pixels, but takes much longer to draw.
        for (let i = first, left = -2; i <= last;) {
          const column = Math.floor(toX(series.x[i]));
          let begin = NaN, low = Infinity, high = -Infinity, end = NaN;
          for (; i <= last && Math.floor(toX(series.x[i])) === column; i++) {
            end = series.y[i];
            if (Number.isNaN(begin)) begin = end;
            if (end < low) low = end;
            if (end > high) high = end;
          }
          if (!(low <= high)) { to(column, NaN); continue; }
          [low, high] = [toY(high), toY(low)];
          if (pen && column === left + 1) { low = Math.min(low, before); high = Math.max(high, before); }
          const bar = high - low >= 1;
          if (!bar || column > left + 1) to(column, toY(begin));
          if (bar) { path.moveTo(column, low); path.lineTo(column, high); path.moveTo(column, toY(end)); }
          series.drawn++;
          pen = !Number.isNaN(end);
          before = toY(end);
          left = column;
        }
      }
      let area = null;
      if (isLimit) {
        area = new Path2D(path);
        area.lineTo(toX(series.x[last]), toY(0));
        area.lineTo(toX(series.x[first]), toY(0));
        area.closePath();
      }
      return { stroke: path, fill: area, clip: null, band: null, gaps: null, flags: 3 };
    }

    // Shades the intervals of means.
    intervals() {
      const u = this.u;
      if (!u) return;
      const { ctx } = u;
      const { left, top, width, height } = u.bbox;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, top, width, height);
      ctx.clip();
      ctx.globalAlpha = 0.2;
      for (const series of this.panel.series) {
        if (!series.ci95 || !series.n || !this.visible(series)) continue;
        const [first, last] = this.inView(series);
        const edge = (i, sign) => [u.valToPos(series.x[i], "x", true), u.valToPos(this.cut(series.y[i] + sign * series.ci95[i]), "y", true)];
        ctx.fillStyle = this.colourOf(series);
        ctx.beginPath();
        for (let i = first; i <= last; i++) ctx.lineTo(...edge(i, 1));
        for (let i = last; i >= first; i--) ctx.lineTo(...edge(i, -1));
        ctx.fill();
      }
      ctx.restore();
    }

    // Draws states and freezes: each in its own lane, or over the whole height if the panel also has lines.
    bands() {
      const u = this.u;
      if (!u) return requestAnimationFrame(() => this.u.redraw(false));
      const { ctx } = u;
      const { left, top, width, height } = u.bbox;
      const shown = this.panel.series.filter((series) => series.kind === "band" && this.visible(series));
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, top, width, height);
      ctx.clip();
      const ratio = devicePixelRatio;
      shown.forEach((series, lane) => {
        const high = this.lanes ? height / shown.length : height;
        const from = this.lanes ? top + lane * high : top;
        const [first, last] = this.inView(series);
        ctx.fillStyle = this.colourOf(series);
        series.drawn = 0;
        let until = -1;
        for (let i = first; i <= last; i++) {
          if (Number.isNaN(series.y[i])) continue;
          const x = u.valToPos(series.x[i], "x", true);
          const end = i + 1 < series.n ? u.valToPos(series.x[i + 1], "x", true) : left + width;
          if (end <= until) continue; // hidden by the previous bar
          until = Math.max(end, x + 1);
          if (this.lanes) {
            ctx.globalAlpha = opacity(series, series.y[i]);
            ctx.fillRect(x, from + 10 * ratio, Math.max(end - x, 1), high - 11 * ratio);
          } else {
            ctx.globalAlpha = 0.22;
            ctx.fillRect(x, from, Math.max(end - x, 1), high);
            ctx.globalAlpha = 1;
            ctx.fillRect(x, from, Math.max(end - x, 1), 4 * ratio);
          }
          series.drawn++;
        }
        if (this.lanes) {
          ctx.globalAlpha = 1;
          ctx.fillStyle = colour("--ink-2");
          ctx.font = `${10 * ratio}px system-ui, sans-serif`;
          ctx.textBaseline = "top";
          ctx.textAlign = "left";
          ctx.fillText(`${this.subjects[series.subject].label} · ${series.label}`, left + 3 * ratio, from);
        }
      });
      ctx.restore();
    }

    // Shows the values at the cursor.
    tip(u) {
      const box = this.tipBox;
      if (!box) return;
      const { left } = u.cursor;
      if (!this.hovered || left == null || left < 0) { box.hidden = true; return; }
      const at = u.posToVal(left, "x");
      const { x, y } = this.panel;
      const rows = [];
      for (const series of this.panel.series) {
        if (!this.visible(series) || !series.n) continue;
        const i = bisect(series.x, at) - 1;
        let text = null;
        if (series.kind === "cdf") text = `${(100 * (i < 0 ? 0 : series.y[i])).toFixed(1)} %`;
        else if (i >= 0 && !Number.isNaN(series.y[i])) {
          if (series.kind === "points" && at - series.x[i] > (u.scales.x.max - u.scales.x.min) / 50) continue;
          const half = series.ci95 ? ` ± ${number(series.ci95[i])}` : "";
          text = series.states.length ? series.states[series.y[i]] ?? String(series.y[i]) : `${number(series.y[i])}${half} ${y.unit}`;
        }
        if (text === null) continue;
        const dot = make("i");
        dot.style.background = this.colourOf(series);
        const owner = series.subject === null || this.subjects.length === 1 ? "" : `${this.subjects[series.subject].label} · `;
        rows.push(make("div", {}, dot, `${owner}${series.label}`, make("b", {}, text)));
      }
      const more = rows.length - MAX_TIP_ROWS;
      if (more > 0) rows.splice(MAX_TIP_ROWS, more, make("div", {}, `and ${more} more`));
      box.replaceChildren(make("div", { class: "at" }, `${number(at)} ${x.unit}`), ...rows);
      box.hidden = false;
      const right = left > u.over.clientWidth / 2;
      box.style.left = right ? "" : `${left + 12}px`;
      box.style.right = right ? `${u.over.clientWidth - left + 12}px` : "";
    }

    pressed(event) {
      const { min, max } = this.u.scales.x;
      const [from, to] = this.span();
      const length = max - min;
      const show = {
        "+": [min + length / 4, max - length / 4],
        "=": [min + length / 4, max - length / 4],
        "-": [min - length / 2, max + length / 2],
        "ArrowLeft": [min - length / 4, max - length / 4],
        "ArrowRight": [min + length / 4, max + length / 4],
        "0": [from, to],
      }[event.key];
      if (!show || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const wanted = Math.min(show[1] - show[0], to - from);
      const begin = Math.min(Math.max(show[0], from), to - wanted);
      this.u.setScale("x", { min: begin, max: begin + wanted });
    }
  }

  // Hides entries of a legend, and returns a button that shows them; nothing if there are none.
  function more(entries) {
    if (!entries.length) return "";
    entries.forEach((entry) => (entry.hidden = true));
    const button = make("button", { type: "button", class: "more" }, `${entries.length} more`);
    button.addEventListener("click", () => {
      entries.forEach((entry) => (entry.hidden = false));
      button.remove();
    });
    return button;
  }

  // Returns the opacity of a state: the first is faint, the last is full.
  function opacity(series, state) {
    return series.states.length < 2 ? 0.7 : 0.12 + (0.88 * state) / (series.states.length - 1);
  }

  // Returns the index of the first element above `value`.
  function bisect(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  }

  // Returns the lower and upper quantile of a series.
  function shares(series) {
    const stride = Math.max(1, Math.floor(series.n / SAMPLES));
    const values = [];
    for (let i = 0; i < series.n; i += stride) if (!Number.isNaN(series.y[i])) values.push(series.y[i]);
    values.sort((a, b) => a - b);
    const at = (share) => values[Math.round((values.length - 1) * share)] ?? 0;
    return [at(1 - QUANTILE), at(QUANTILE)];
  }

  function number(value) {
    const size = Math.abs(value);
    return size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : value.toFixed(3);
  }

  function copyable(commands) {
    const button = commands.querySelector(".copy");
    const text = commands.querySelector("pre");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text); // pages from files may have no clipboard: the user presses Ctrl-C
        button.textContent = "Selected";
      }
    });
  }
})();
