// Shows a call in real time: draws the points from the web socket and sends the commands of the sliders. Points are kept for
// the longest span of the plots. The page is drawn at most once per animation frame, and only when new data has arrived.
(() => {
  const MAX_POINTS = 3600;      // six minutes
  const SMOOTH_RATE = 5;        // points averaged for a rate: 0.5 s, which smooths single frames
  const SMOOTH_LOSS = 10;       // points averaged for a loss ratio
  const FREEZE = 0.5;           // s without a frame that count as a freeze
  const COMMAND_INTERVAL = 100; // ms between two commands of a slider
  const LANE = 24;

  // State for tests and for the browser's console.
  const page = (window.paceline = { ready: false, over: null, error: null, hello: null, points: [], refused: [], pictures: 0, send });

  onThemeChange(() => draw());
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

  // ---- Formatting

  const rate = (bps) => bps === null || bps === undefined ? "–"
    : bps >= 1e6 ? `${(bps / 1e6).toFixed(2)} Mbit/s` : `${Math.round(bps / 1e3)} kbit/s`;
  const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const short = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size >= 0.1 || size === 0 ? value.toFixed(2) : value.toPrecision(2);
  };
  // Returns the divisor and the unit of an axis with the largest value `most`, so that its numbers are short.
  const axisUnit = (unit, most) => unit === "bit/s" ? (most >= 1e6 ? [1e6, "Mbit/s"] : [1e3, "kbit/s"]) : unit === "B" ? [1e3, "KB"] : [1, unit];
  const withUnit = (value, unit) => unit === "bit/s" ? rate(value) : unit === "B" && value !== null ? `${short(value / 1e3)} KB` : `${short(value)}${unit ? ` ${unit}` : ""}`;

  // ---- The socket

  const socket = new WebSocket(`ws://${location.host}${location.pathname}socket`);
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return showImage(new Uint8Array(data));
    const message = JSON.parse(data);
    if (message.hello) begin(message.hello);
    if (message.points) message.points.forEach(add);
    if (message.refused) page.refused.push(message.refused);
    if (message.over !== undefined) end(message.over);
    requestDraw();
  };
  socket.onclose = () => { if (page.over === null) end("the command has ended"); };

  function send(command) {
    if (socket.readyState === 1) socket.send(JSON.stringify(command));
  }

  // ---- The run

  let hello = null, flow = 0, media = null, states = [], points = page.points, marks = [];
  let lastFrame = null;

  function begin(run) {
    page.hello = hello = run;
    flow = Math.max(0, run.flows.findIndex((f) => f.kind === "media"));
    media = run.flows[flow];
    states = media.signals.map((signal, index) => ({ ...signal, index })).filter((signal) => signal.states.length);
    $("title").textContent = run.title || run.scenario;
    const others = run.flows.length > 1 ? ` · ${run.flows.length} flows, showing ${media.id}` : "";
    $("facts").textContent = `Paceline · ${run.scenario} · ${media.controller} · world ${run.world}, seed ${run.seed}${others}`;
    document.title = `${media.controller} on ${run.scenario} – Paceline`;
    const noVideo = ["testbed", "hosts"].includes(run.world);
    const blank = (end, text) => (document.querySelector(`#${end} .blank p`).textContent = text);
    const waiting = "The video appears when the call is connected, if this endpoint shows one.";
    blank("sender", noVideo ? "No video: the payload of frames is zeros; their sizes come from the encoder model." : waiting);
    blank("receiver", run.world === "hosts" ? "No video: the other host receives the frames." : noVideo ? "No video on the testbed. The line below shows the frame rate; freezes are marked here." : waiting);
    if (run.controls) sliders(run);
    else {
      // The path is real: only its delay variation is known.
      document.querySelectorAll(".sliders, .acts").forEach((part) => part.remove());
      $("queue-plot").closest("figure").querySelector("small").textContent = "ms, one-way delay above the smallest";
    }
    panels();
    $("live").textContent = "live";
    $("live").classList.add("on");
    page.ready = true;
  }

  function end(text) {
    page.over = text;
    $("live").textContent = "ended";
    $("live").classList.remove("on");
    $("mood").style.background = "";
    $("sentence").textContent = `The call has ended: ${text}.`;
    document.querySelectorAll("input, .acts button").forEach((control) => (control.disabled = true));
    document.querySelector(".still").hidden = true;
    draw();
  }

  // The data of the plots by column; the first is x.
  const columns = { t: [], capacity: [], target: [], sent: [], received: [], queued: [], waited: [], limit: [], lost: [], full: [], chance: [], others: [] };

  function add(point) {
    const before = points[points.length - 1];
    points.push(point);
    if (before && ["capacity", "delay", "loss", "queue"].some((key) => before[key] !== point[key])) marks.push(point.t - hello.point_s);
    const mean = (count, of) => {
      const some = points.slice(-count);
      return some.reduce((sum, p) => sum + of(p.flows[flow]), 0) / some.length;
    };
    const bits = (count, of) => mean(count, of) * 8 / hello.point_s / 1e6;
    const here = point.flows[flow];
    const put = (name, value) => columns[name].push(value);
    put("t", point.t);
    put("capacity", point.capacity === null ? null : point.capacity / 1e6);
    put("target", here.target === null ? null : here.target / 1e6);
    put("sent", bits(SMOOTH_RATE, (f) => f.sent));
    put("received", bits(SMOOTH_RATE, (f) => f.received));
    put("queued", here.queued);
    put("waited", point.waited);
    put("limit", hello.controls ? point.queue : null);
    const packets = mean(SMOOTH_LOSS, (f) => f.packets);
    const share = (of) => packets ? Math.min(100, 100 * mean(SMOOTH_LOSS, of) / packets) : 0;
    put("lost", share((f) => f.dropped));
    put("full", share((f) => f.by_queue));
    put("chance", point.loss === null || !hello.controls ? null : 100 * point.loss);
    const rest = point.flows.filter((_, index) => index !== flow);
    put("others", rest.length ? points.slice(-SMOOTH_RATE).reduce((sum, p) => sum + p.flows.reduce((all, f, i) => (i === flow ? all : all + f.received), 0), 0) * 8 / hello.point_s / 1e6 / Math.min(SMOOTH_RATE, points.length) : null);
    if (here.frames) lastFrame = point.t;
    if (points.length > MAX_POINTS) {
      points.shift();
      for (const column of Object.values(columns)) column.shift();
      marks = marks.filter((t) => t >= points[0].t);
    }
    pipe.update(point);
    page.now = { capacity: point.capacity, received: columns.received.at(-1) * 1e6, sent: columns.sent.at(-1) * 1e6, target: here.target, queued: here.queued, lost: columns.lost.at(-1) };
  }

  // ---- Images

  const busy = [false, false];
  function showImage(bytes) {
    const [image, side] = bytes;
    if (image !== flow || side > 1 || busy[side]) return;
    busy[side] = true;
    createImageBitmap(new Blob([bytes.subarray(2)], { type: "image/jpeg" })).then((bitmap) => {
      const figure = $(side ? "receiver" : "sender"), canvas = figure.querySelector("canvas");
      if (canvas.width !== bitmap.width) [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
      bitmap.close();
      canvas.hidden = false;
      figure.querySelector(".blank").hidden = true;
      page.pictures++;
    }, () => {}).finally(() => (busy[side] = false));
  }

  // ---- Sliders and buttons

  const logarithmic = ([least, most]) => ({
    valueAt: (position) => least * (most / least) ** (position / 1000),
    position: (value) => Math.round(1000 * Math.log(value / least) / Math.log(most / least)),
  });
  // A quadratic scale gives small loss ratios more room.
  const squared = ([, most]) => ({ valueAt: (position) => most * (position / 100) ** 2, position: (value) => Math.round(100 * Math.sqrt(value / most)) });
  const linear = { valueAt: (position) => position, position: (value) => Math.round(value) };
  const round = (value, digits) => Number(value.toPrecision(digits));
  const controls = {};

  function sliders({ ranges, standing }) {
    const control = (id, key, scale, format, of, digits) => {
      const input = $(id), output = $(`${id}-is`);
      let sentAt = 0, timer = null, changedAt = -Infinity;
      const show = (value) => {
        output.textContent = value === null ? "–" : format(value);
        input.setAttribute("aria-valuetext", output.textContent);
      };
      const sendValue = () => {
        timer = null;
        sentAt = performance.now();
        send({ [key]: controls[id].value });
      };
      controls[id] = {
        value: null,
        // The last value above zero, which remains known during an outage.
        last: null,
        // For one second, the user's input takes precedence over the values of the run.
        set: (value) => {
          const [least, most] = ranges[key];
          value = Math.min(most, Math.max(least, round(value, digits)));
          changedAt = performance.now();
          controls[id].value = controls[id].last = value;
          input.value = scale.position(value);
          show(value);
          if (timer === null) timer = setTimeout(sendValue, Math.max(0, sentAt + COMMAND_INTERVAL - performance.now()));
        },
        update: (value) => {
          if (performance.now() - changedAt < 1000 || value === controls[id].value) return;
          controls[id].value = value;
          controls[id].last = value || controls[id].last;
          // Zero has no position on a logarithmic scale.
          if (value !== null && Number.isFinite(scale.position(value))) input.value = scale.position(value);
          show(value);
        },
        of,
      };
      input.addEventListener("input", () => controls[id].set(scale.valueAt(Number(input.value))));
      controls[id].update(of(standing));
    };
    control("capacity", "capacity_bps", logarithmic(ranges.capacity_bps), rate, (p) => p.capacity, 2);
    control("delay", "delay_ms", linear, (v) => `${Math.round(v)} ms`, (p) => p.delay, 3);
    control("loss", "loss", squared(ranges.loss), (v) => `${(100 * v).toFixed(1)} %`, (p) => p.loss, 3);
    control("queue", "queue_ms", logarithmic(ranges.queue_ms), (v) => `${Math.round(v)} ms`, (p) => p.queue, 2);
    const actions = {
      halve: () => controls.capacity.set(capacityTimes(0.5)),
      double: () => controls.capacity.set(capacityTimes(2)),
      outage: () => send({ outage_ms: 3000 }),
      scenario: () => send("scenario"),
    };
    for (const [id, action] of Object.entries(actions)) $(id).addEventListener("click", () => { action(); updateButtons(); });
    const keys = { h: "halve", d: "double", o: "outage", b: "scenario" };
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      const id = keys[event.key.toLowerCase()];
      if (id && !$(id).disabled) $(id).click();
    });
    updateButtons();
  }

  // Returns null if the capacity is unlimited.
  const capacityTimes = (factor) => controls.capacity.last === null ? null : controls.capacity.last * factor;

  // Disables the buttons that would leave the slider's range.
  function updateButtons() {
    if (!hello.controls) return;
    const [least, most] = hello.ranges.capacity_bps;
    for (const [id, factor] of [["halve", 0.5], ["double", 2]]) {
      const value = capacityTimes(factor);
      $(id).disabled = page.over !== null || value === null || value < least || value > most;
    }
  }

  // ---- Plots

  let span = 60;
  let plots = [];
  let hovered = null;

  document.querySelectorAll(".window button").forEach((button) => button.addEventListener("click", () => {
    span = Number(button.dataset.span);
    document.querySelectorAll(".window button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    draw();
  }));

  const bounds = () => {
    const newest = Math.max(columns.t.at(-1) ?? 0, Math.min(span, 20));
    return [Math.max(0, newest - span), newest];
  };
  // Returns the end of the y axis: a round number above the largest visible value, so that the scale changes rarely.
  const top = (names, least, spare = 1.12) => {
    const from = columns.t.findIndex((t) => t >= bounds()[0]);
    let most = 0;
    for (const name of names)
      for (let i = Math.max(0, from); i < columns.t.length; i++) most = Math.max(most, columns[name][i] ?? 0);
    const wanted = Math.max(least, most * spare);
    const step = 10 ** Math.floor(Math.log10(wanted)) / 4;
    return Math.ceil(wanted / step) * step;
  };

  function plot(id, height, series, range, values) {
    const element = $(`${id}-plot`), key = $(`${id}-key`);
    const axis = { ...axisStyle(11), ticks: { show: false } };
    const u = new uPlot({
      width: Math.max(200, element.clientWidth),
      height,
      legend: { show: false },
      padding: [6, 14, 0, 0],
      scales: { x: { time: false, range: bounds }, y: { range: () => [0, 1] , ...(range ? { range } : {}) } },
      axes: [
        { ...axis, size: 24, space: 60, incrs: [1, 2, 5, 10, 15, 30, 60, 120], values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 38, space: 26, ...(values ? { values } : {}) },
      ],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: "call" } },
      series: [{}, ...series.map((s) => ({
        stroke: () => colour(s.colour),
        fill: s.fill ? (u) => shade(u, s.colour) : undefined,
        width: s.width ?? 1.5,
        dash: s.dash,
        points: { show: false },
        paths: s.stepped ? uPlot.paths.stepped({ align: -1 }) : undefined,
      }))],
      hooks: {
        drawAxes: [drawUpdates],
        setCursor: [(u) => { const at = u.cursor.left >= 0 ? u.cursor.idx : null; if (at !== hovered) { hovered = at; keys(); } }],
      },
    }, [columns.t, ...series.map((s) => s.of())], element);
    const texts = series.map((s) => {
      const value = make("b");
      const mark = make("i", s.dash ? { class: "dashed" } : {});
      mark.style.color = `var(${s.colour})`;
      key.append(make("span", {}, mark, s.label, value));
      return value;
    });
    return { u, element, height, series, texts };
  }

  function shade(u, name) {
    const { top, height } = u.bbox;
    const gradient = u.ctx.createLinearGradient(0, top, 0, top + height);
    gradient.addColorStop(0, `color-mix(in srgb, ${colour(name)} 30%, transparent)`);
    gradient.addColorStop(1, `color-mix(in srgb, ${colour(name)} 3%, transparent)`);
    return gradient;
  }

  // Marks the times at which the link was changed.
  function drawUpdates(u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour("--rule");
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    let last = -Infinity;
    for (const t of marks) {
      const x = Math.round(u.valToPos(t, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width || x - last < 4) continue;
      last = x;
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  function panels() {
    const rates = [
      { label: "capacity", colour: "--limit", of: () => columns.capacity, stepped: true, width: 2.5 },
      { label: "target", colour: "--target", of: () => columns.target, stepped: true, dash: [5, 3] },
      { label: "sent", colour: "--sent", of: () => columns.sent },
      { label: "received", colour: "--received", of: () => columns.received, width: 2, fill: true },
    ];
    if (hello.flows.length > 1) rates.push({ label: "others received", colour: "--other", of: () => columns.others });
    const used = () => top(["target", "sent", "received", "others"], 0.1);
    plots = [
      // A capacity far above the other values would compress them.
      plot("rate", 212, rates, () => [0, Math.min(top(["capacity", "target", "sent", "received", "others"], 0.1), 2.2 * used())]),
      plot("queue", 212, [
        { label: "queue limit", colour: "--limit", of: () => columns.limit, stepped: true, dash: [3, 3], width: 1.5 },
        { label: "longest of any flow", colour: "--other", of: () => columns.waited, width: 1 },
        { label: `mean of ${media.id}`, colour: "--received", of: () => columns.queued, width: 2, fill: true },
      ], () => [0, top(["queued", "waited"], 40)]),
      plot("loss", Math.max(92, laneHeight()), [
        { label: "random", colour: "--limit", of: () => columns.chance, stepped: true, dash: [3, 3] },
        { label: "lost", colour: "--lost", of: () => columns.lost, width: 2, fill: true },
      ], () => [0, top(["lost", "chance"], 2)]),
    ];
    const numbers = media.signals.map((signal, index) => ({ ...signal, index })).filter((signal) => !signal.states.length);
    document.querySelector(".inside").hidden = numbers.length === 0;
    signalPanel(numbers);
    resize();
    new ResizeObserver(resize).observe(document.querySelector(".plots"));
  }

  // Adds one button per signal with its current value. Pressed signals are plotted; all must have the same unit.
  let buttons = [], insidePlot = null;
  function signalPanel(numbers) {
    const first = ["m scaled", "d_tilde", "qdelay", "available outgoing bitrate"].map((name) => numbers.find((s) => s.name === name)).find(Boolean)
      ?? numbers.find((s) => s.unit === "ms") ?? numbers.find((s) => s.unit === "bit/s") ?? numbers[0];
    const chosen = new Set(numbers.filter((s) => s === first || (first.name === "m scaled" && s.name === "gamma") || (first.name === "qdelay" && s.name === "qdelay target")));
    const build = () => {
      insidePlot?.u.destroy();
      $("inside-key").replaceChildren();
      $("inside-unit").textContent = "";
      const some = [...chosen];
      if (!some.length) return (insidePlot = null);
      const palette = ["--received", "--target", "--sent", "--other", "--lost", "--limit"];
      const series = some.map((s, n) => ({ label: s.name, unit: s.unit, colour: palette[n % palette.length], of: () => points.map((p) => p.flows[flow].signals[s.index]) }));
      insidePlot = plot("inside", 140, series, () => {
        const [from] = bounds();
        let least = 0, most = 0;
        for (const p of points) {
          if (p.t < from) continue;
          for (const s of some) {
            const value = p.flows[flow].signals[s.index] ?? 0;
            least = Math.min(least, value);
            most = Math.max(most, value);
          }
        }
        const spare = 0.08 * (most - least) || 1;
        return [least < 0 ? least - spare : 0, most + spare];
      }, (_, ticks) => {
        const [by, unit] = axisUnit(some[0].unit, Math.max(...ticks.map(Math.abs)));
        $("inside-unit").textContent = unit;
        return ticks.map((tick) => String(round(tick / by, 4)));
      });
      resize();
    };
    buttons = numbers.map((signal) => {
      const value = make("b");
      const button = make("button", { type: "button", "aria-pressed": String(chosen.has(signal)) }, signal.name, value);
      button.addEventListener("click", () => {
        if (chosen.has(signal)) chosen.delete(signal);
        else {
          for (const other of chosen) if (other.unit !== signal.unit) chosen.delete(other);
          chosen.add(signal);
        }
        buttons.forEach((b) => b.button.setAttribute("aria-pressed", String(chosen.has(b.signal))));
        build();
        requestDraw();
      });
      $("signals").append(button);
      return { signal, button, value };
    });
    if (numbers.length) build();
  }

  function resize() {
    for (const p of [...plots, insidePlot]) {
      if (!p) continue;
      const width = Math.max(200, p.element.clientWidth);
      if (Math.abs(p.u.width - width) > 1) p.u.setSize({ width, height: p.height });
    }
    requestDraw();
  }

  function keys() {
    for (const p of [...plots, insidePlot]) {
      if (!p) continue;
      p.series.forEach((s, n) => {
        const column = s.of(), value = column[hovered ?? column.length - 1] ?? null;
        p.texts[n].textContent = s.unit === "bit/s" ? rate(value) : short(value);
      });
    }
  }

  // Colours of the states, drawn as lanes of bars with their names.
  const STATE_COLOURS = {
    increase: "--good", decrease: "--bad", hold: "--fair", normal: "--good", overuse: "--bad", underuse: "--calm",
    "ramp-up": "--good", gradual: "--calm", "fast increase": "--good", "by delay": "--calm",
    rising: "--good", steady: "--calm", falling: "--bad", "max unknown": "--good", "above max": "--fair", "near max": "--calm",
    none: "--good", bandwidth: "--bad", cpu: "--fair", other: "--fair", open: "--good", disorder: "--fair", recovery: "--bad", loss: "--bad",
    cwr: "--fair",
  };
  const PALETTE = ["--calm", "--good", "--fair", "--bad"];

  // Returns the trend of the target in the second before point `index`.
  function trend(index) {
    const now = columns.target[index], before = columns.target[Math.max(0, index - 10)];
    if (!now || !before) return "steady";
    return now > 1.02 * before ? "rising" : now < 0.98 * before ? "falling" : "steady";
  }

  const laneHeight = () => (1 + states.length) * LANE + 22;

  function lanes() {
    const canvas = $("lanes"), width = canvas.parentElement.clientWidth, names = ["target", ...states.map((s) => s.name)];
    const height = laneHeight(), ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      canvas.style.height = `${height}px`;
    }
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const left = 78, [from, to] = bounds();
    const x = (t) => left + (width - left - 14) * (t - from) / (to - from);
    names.forEach((name, lane) => {
      const y = lane * LANE + 4, state = states[lane - 1];
      ctx.fillStyle = colour("--ink-2");
      ctx.textAlign = "right";
      ctx.fillText(name, left - 10, y + LANE / 2 - 2, left - 12);
      const value = (index) => {
        if (!state) return trend(index);
        const number = points[index].flows[flow].signals[state.index];
        return number === null ? null : state.states[number] ?? null;
      };
      const band = (value, start, end) => {
        const at = Math.max(left, x(start)), wide = x(end) - at;
        if (value === null || wide <= 0) return;
        const paint = colour(STATE_COLOURS[value] ?? PALETTE[(state ? state.states.indexOf(value) : 0) % PALETTE.length]);
        ctx.fillStyle = paint;
        ctx.globalAlpha = 0.85;
        ctx.fillRect(at, y, wide + 0.3, LANE - 6);
        ctx.globalAlpha = 1;
        if (wide > ctx.measureText(value).width + 10) {
          ctx.fillStyle = colour("--card");
          ctx.textAlign = "left";
          ctx.fillText(value, at + 5, y + LANE / 2 - 2.5);
        }
      };
      let start = null, of = null;
      points.forEach((point, index) => {
        const now = value(index), begins = point.t - hello.point_s;
        if (start === null || now !== of) {
          if (start !== null) band(of, start, begins);
          [start, of] = [begins, now];
        }
      });
      if (start !== null) band(of, start, points.at(-1).t);
    });
    ctx.fillStyle = colour("--ink-2");
    ctx.textAlign = "center";
    const step = [1, 2, 5, 10, 15, 30, 60].find((s) => (to - from) / s <= 7) ?? 60;
    for (let t = Math.ceil(from / step) * step; t <= to; t += step)
      if (x(t) > left + 8 && x(t) < width - 14) ctx.fillText(clock(t), x(t), height - 8);
  }

  // ---- Status text

  const USAGE = {
    overuse: ["--bad", "The delay rises: a queue is growing"],
    underuse: ["--calm", "The delay falls: the queue is draining"],
    normal: ["--good", "The delay is constant: no queue is growing"],
  };
  const ACTION = {
    decrease: "so the controller reduces its rate below the received rate",
    hold: "so the controller keeps its rate until the queue is empty",
    increase: "so the controller increases its rate slightly",
  };
  const OTHER = {
    "ramp-up": ["--good", "The path has no queue and no loss, so the rate increases quickly"],
    gradual: ["--calm", "The rate changes gradually towards the target delay"],
    "fast increase": ["--good", "The queuing delay is far below its target, so the window grows quickly"],
    "by delay": ["--calm", "The window follows the difference between the queuing delay and its target"],
  };

  function updateStatus() {
    const point = points.at(-1);
    if (!point || page.over !== null) return;
    const here = point.flows[flow], index = points.length - 1;
    const state = (name) => {
      const of = states.find((s) => s.name === name);
      const number = of ? here.signals[of.index] : null;
      return number === null ? null : of.states[number];
    };
    let colourName = "--calm", text = "";
    const usage = state("usage"), action = state("sigma"), other = OTHER[state("rmode") ?? state("mode") ?? state("window grows")];
    if (usage && USAGE[usage]) {
      [colourName, text] = USAGE[usage];
      text += action && ACTION[action] ? `, ${ACTION[action]}.` : ".";
      if (action === "hold" && usage === "normal") text = "No queue is growing; the controller waits before it increases its rate.";
      if (action === "decrease") colourName = "--bad";
    } else if (other) {
      [colourName, text] = [other[0], `${other[1]}.`];
    } else {
      [colourName, text] = { rising: ["--good", "The rate increases."], falling: ["--bad", "The rate decreases."], steady: ["--calm", "The rate is steady."] }[trend(index)];
    }
    if (state("quality limited by") === "bandwidth") text += " The network limits the video quality.";
    const lost = columns.lost.at(-1);
    if (point.capacity === 0) [colourName, text] = ["--bad", "The link is down: packets wait or are lost."];
    else if (columns.full.at(-1) > 2) {
      colourName = "--bad";
      text = `The queue is full, and ${lost.toFixed(0)} % of packets are lost${usage === "overuse" || trend(index) === "falling" ? "; the rate decreases." : "; the controller has not reacted yet."}`;
    }
    else if (lost > 1) text += ` ${lost.toFixed(0)} % of packets are lost.`;
    else if (here.target && point.capacity && here.target > 1.25 * point.capacity) { text += " The target exceeds the capacity."; colourName = "--bad"; }
    $("sentence").textContent = `${media.controller}: ${text}`;
    $("mood").style.background = `var(${colourName})`;
  }

  function captions() {
    const point = points.at(-1);
    if (!point) return;
    const here = point.flows[flow];
    const frames = points.slice(-10).reduce((sum, p) => sum + p.flows[flow].frames, 0) / Math.min(10, points.length) / hello.point_s;
    const show = (end, value, more) => {
      document.querySelector(`#${end} [data-of="rate"]`).textContent = rate(value);
      document.querySelector(`#${end} [data-of="more"]`).textContent = more;
    };
    show("sender", page.now.sent, `sent · target ${rate(here.target)}`);
    show("receiver", page.now.received, `received${lastFrame === null ? "" : ` · ${Math.round(frames)} frames/s`}${here.rtt ? ` · round trip ${Math.round(here.rtt)} ms` : ""}`);
    const frozen = lastFrame === null ? 0 : point.t - lastFrame;
    const note = document.querySelector(".still");
    note.hidden = frozen < FREEZE || page.over !== null;
    if (!note.hidden) note.textContent = `frozen for ${frozen.toFixed(1)} s`;
    $("clock").replaceChildren(clock(point.t), make("small", {}, ` of ${clock(hello.duration_s)}`));
    for (const control of Object.values(controls)) control.update(control.of(point));
    updateButtons();
    buttons.forEach(({ signal, value }, n) => {
      const index = signal.index;
      value.textContent = withUnit(here.signals[index], signal.unit);
    });
  }

  // ---- Animation of the link: the queue as a tank, then the propagation delay

  const pipe = (() => {
    const canvas = $("pipe");
    let dots = [], fill = 0, targetFill = 0, thickness = 8, credit = 0, drops = 0, last = 0, dotRate = 0, down = false, crossing = 1, wait = null;
    const frame = (now) => {
      requestAnimationFrame(frame);
      const passed = Math.min(0.1, (now - last) / 1000);
      if (passed < 0.03 || document.hidden) return; // at most 30 frames per second
      last = now;
      const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio;
      if (canvas.width !== Math.round(width * ratio)) [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      const ctx = canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, width, height);
      fill += (targetFill - fill) * Math.min(1, 8 * passed);
      const middle = 30, bucket = { x: 0.2 * width, w: 54, h: 48 }, exit = bucket.x + bucket.w;
      // The link; its thickness shows the capacity.
      ctx.fillStyle = colour("--grid");
      ctx.fillRect(0, middle - 3, bucket.x, 6);
      ctx.fillStyle = down ? colour("--lost") : colour("--grid");
      ctx.globalAlpha = down ? 0.35 : 1;
      ctx.beginPath();
      ctx.roundRect(exit, middle - thickness / 2, width - exit, thickness, 2);
      ctx.fill();
      ctx.globalAlpha = 1;
      // The queue.
      ctx.fillStyle = colour("--paper");
      ctx.strokeStyle = colour("--limit");
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.roundRect(bucket.x, middle - bucket.h / 2, bucket.w, bucket.h, 5);
      ctx.fill();
      ctx.save();
      ctx.clip();
      ctx.fillStyle = colour(fill > 0.75 ? "--bad" : fill > 0.35 ? "--fair" : "--received");
      ctx.globalAlpha = 0.75;
      ctx.fillRect(bucket.x, middle + bucket.h / 2 - fill * bucket.h, bucket.w, bucket.h);
      ctx.restore();
      ctx.stroke();
      if (!reducedMotion.matches) {
        credit = Math.min(4, credit + dotRate * passed);
        for (; credit >= 1 && dots.length < 160; credit--) dots.push({ x: exit, y: middle + (Math.random() - 0.5) * Math.max(0, thickness - 6), sent: 0 });
        for (; drops > 0 && dots.length < 200; drops--) dots.push({ x: bucket.x + bucket.w * Math.random(), y: middle - bucket.h / 2, fell: 0 });
        for (const dot of dots) {
          if (dot.fell !== undefined) {
            dot.fell += passed;
            dot.y += 90 * passed * dot.fell * 4;
            ctx.globalAlpha = Math.max(0, 1 - 1.6 * dot.fell);
            ctx.fillStyle = colour("--lost");
          } else {
            dot.x += passed * (width - exit) / crossing;
            ctx.globalAlpha = 0.95;
            ctx.fillStyle = colour("--received");
          }
          ctx.beginPath();
          ctx.arc(dot.x, dot.y, 2.6, 0, 7);
          ctx.fill();
        }
        ctx.globalAlpha = 1;
        dots = dots.filter((dot) => (dot.fell === undefined ? dot.x < width : dot.fell < 0.7));
      }
      ctx.fillStyle = colour("--ink-2");
      ctx.font = "11px system-ui, sans-serif";
      ctx.textAlign = "center";
      ctx.fillText(wait === null ? "queue" : `queue ${Math.round(wait)} ms`, bucket.x + bucket.w / 2, height - 4);
      ctx.textAlign = "right";
      ctx.fillText(down ? "down" : !hello?.controls ? "path" : `${rate(controls.capacity?.value ?? null)} · ${Math.round(controls.delay?.value ?? 0)} ms`, width, height - 4);
    };
    requestAnimationFrame(frame);
    return {
      update(point) {
        const here = point.flows[flow];
        wait = point.waited ?? (point.capacity === 0 ? wait : 0);
        targetFill = point.queue ? Math.min(1, (wait ?? 0) / point.queue) : Math.min(1, (wait ?? 0) / 300);
        thickness = point.capacity === null ? 26 : 6 + 20 * Math.max(0, Math.min(1, Math.log10(Math.max(point.capacity, 1e5) / 1e5) / 2));
        down = point.capacity === 0;
        // About one dot per five received packets, and one per dropped packet.
        dotRate = Math.min(60, columns.received.at(-1) * 1e6 / 8 / 1200 / 4);
        drops = Math.min(8, drops + here.dropped);
        crossing = 0.6 + point.delay / 250;
      },
    };
  })();

  // ---- Drawing

  let drawRequested = false, statusAt = -Infinity;
  function requestDraw() {
    if (drawRequested) return;
    drawRequested = true;
    requestAnimationFrame(() => { drawRequested = false; draw(); });
  }

  function draw() {
    if (!hello) return;
    for (const p of [...plots, insidePlot]) if (p) p.u.setData([columns.t, ...p.series.map((s) => s.of())]);
    lanes();
    keys();
    captions();
    if (performance.now() - statusAt > 700) {
      statusAt = performance.now();
      updateStatus();
    }
    page.drawn = (page.drawn ?? 0) + 1;
  }

  addEventListener("error", (event) => (page.error = String(event.message)));
})();
