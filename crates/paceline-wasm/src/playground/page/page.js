
// The page: the text is the state, with the seed and the controller beside that of the text. Everything shown follows from these.
(() => {
  const SLOW_MS = 1500;   // a run that takes longer is ended when the next one begins
  const TYPING_MS = 250;  // a text is read after so long without a key

  // State for tests and for the browser's console.
  const page = (window.paceline = { ready: false, error: null, drawn: 0, redrawMs: null, startMs: null, runMs: [], hashes: [], problem: null });
  const state = { name: "call.toml", text: "", beside: "", seed: 1 };
  let engine, module, controls, sides, last = 0, changedAt = 0, typing = 0;
  const workers = [null, null];
  const answers = [null, null];

  main().catch((error) => {
    page.error = String(error);
    $("status").textContent = "";
    showProblem({ message: `The simulator cannot be started: ${error.message ?? error}. It needs a browser of 2023 or later.`, source: "" });
  });

  async function main() {
    const packed = Uint8Array.from(atob($("module").textContent.trim()), (char) => char.charCodeAt(0));
    $("module").remove();
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    engine = await Engine.of(module);
    const { start } = engine.ask("start").json;
    $("version").textContent = start.version;
    controls = new Controls(start, (change) => edit(change), () => { state.beside = $("beside").value; state.seed = +$("seed").value; changed(); run(); });
    sides = [new Side("a"), new Side("b")];
    $("sides").append(...sides.map(({ element }) => element));
    Object.assign(state, { text: start.text, beside: start.beside }, JSON.parse($("start").textContent));
    $("beside").value = state.beside;
    $("seed").value = state.seed;
    $("open").addEventListener("change", () => open($("open").value));
    $("text").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => { changed(); read($("text").value); }, TYPING_MS);
    });
    document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));
    new ResizeObserver(() => sides.forEach((side) => side.resize())).observe($("sides"));
    onThemeChange(() => sides.forEach((side) => side.redraw()));
    changed();
    changedAt = 0;
    read(state.text);
  }

  function changed() {
    changedAt = performance.now();
  }

  // Asks the engine of the page. An engine that stopped is replaced.
  function ask(request) {
    try {
      return engine.ask(request).json;
    } catch (error) {
      Engine.of(module).then((fresh) => (engine = fresh));
      return { error: { message: `The simulator stopped: ${error.message}`, source: "" } };
    }
  }

  const file = () => ({ name: state.name, text: state.text });

  function open(id) {
    if (!id) return;
    const answer = ask({ open: id });
    if (answer.error) return showProblem(answer.error);
    changed();
    state.name = `${id.split(/[/:]/).pop()}.toml`;
    read(answer.text);
  }

  function edit(change) {
    changed();
    const answer = ask({ edit: [file(), change] });
    if (answer.error) return showProblem(answer.error);
    show(...answer.edited);
  }

  function read(text) {
    const before = state.text;
    state.text = text;
    const answer = ask({ read: file() });
    if (!answer.error) return show(text, answer.controls);
    if ($("text").value !== text) $("text").value = text;
    state.text = page.drawn ? before : text;
    showProblem(answer.error);
  }

  function show(text, positions) {
    state.text = text;
    if ($("text").value !== text) $("text").value = text;
    controls.show(positions);
    showProblem(null);
    showCommand(positions);
    run();
  }

  function showProblem(problem) {
    page.problem = problem;
    const box = $("problem");
    box.hidden = !problem;
    $("text").setAttribute("aria-invalid", String(Boolean(problem)));
    $("sides").classList.toggle("old", Boolean(problem));
    if (!problem) return;
    const { message, hint, source, line, column, offending } = problem;
    const place = line ? `${source}, line ${line}, column ${column}` : source;
    const old = page.drawn ? "\nThe plots are those of the last text without an error." : "";
    box.replaceChildren(make("b", {}, "Error: "), message, place ? `\n${place}` : "", offending ? `: ${offending}` : "", hint ? `\nHint: ${hint}` : "", old);
  }

  // Runs the text under its own controller and under the one beside it.
  function run() {
    if (page.problem) return;
    last += 1;
    const count = state.beside ? 2 : 1;
    for (let side = 0; side < count; side++) {
      send(side, { number: last, request: { run: { text: file(), controller: side ? state.beside : null, seed: state.seed } } });
    }
    if (controls.at) showCommand(controls.at);
  }

  // Sends a request to the worker of a side. A worker has one request at a time; of those that wait, the last one is sent.
  function send(side, message) {
    let at = workers[side];
    if (at?.busy && performance.now() - at.since > SLOW_MS) {
      at.worker.terminate();
      at = workers[side] = null;
    }
    if (!at) at = workers[side] = startWorker(side);
    if (at.busy) {
      at.next = message;
      return;
    }
    Object.assign(at, { busy: true, since: performance.now(), next: null });
    at.worker.postMessage(message);
  }

  function startWorker(side) {
    const source = `${$("engine").textContent}\nserveRequests();`;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const at = { worker: new Worker(url), busy: false, since: 0, next: null };
    at.worker.onmessage = ({ data }) => {
      at.busy = false;
      URL.revokeObjectURL(url);
      if (data.failed) {
        at.worker.terminate();
        workers[side] = null;
      }
      const next = at.next;
      if (next) send(side, next);
      if (data.number === last) answered(side, data);
    };
    at.worker.onerror = (event) => { page.error = event.message || "the worker failed"; };
    at.worker.postMessage({ module });
    return at;
  }

  function answered(side, { number, json, columns, ms, failed }) {
    if (failed) return showProblem({ message: `The simulator stopped: ${failed}`, source: "" });
    if (json.error) {
      const controller = side ? `Under ${state.beside}: ` : "";
      return showProblem({ ...json.error, message: controller + json.error.message });
    }
    answers[side] = { number, run: json.run, columns, ms };
    const all = state.beside ? answers : answers.slice(0, 1);
    if (!all.every((answer) => answer?.number === last)) return;
    draw(all);
  }

  function draw(all) {
    const single = all.length === 1;
    $("sides").classList.toggle("single", single);
    sides[1].element.hidden = single;
    const tops = highest(all);
    all.forEach(({ run, columns }, side) => {
      const names = new Set(run.flows.filter(({ kind }) => kind === "media").map(({ control }) => control));
      const summary = names.size === 1 ? controls.summaries.get([...names][0]) ?? "" : "";
      sides[side].show(run, columns, summary, single ? null : all[1 - side].run, tops);
    });
    page.hashes = all.map(({ run }) => run.trace_hash);
    page.runMs = all.map(({ ms }) => ms);
    const number = last;
    requestAnimationFrame(() => setTimeout(() => {
      page.redrawMs = performance.now() - changedAt;
      if (!page.drawn) page.startMs = performance.now();
      page.drawn = number;
      page.ready = true;
      const slowest = Math.max(...page.runMs);
      $("status").textContent = `${all[0].run.duration_s} s simulated in ${slowest.toFixed(0)} ms`;
    }));
  }

  const quoted = (word) => (/^[\w./:=,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function fileName({ id }) {
    return `${id.split("/").pop().replace(/[^\w.-]/g, "-") || "call"}.toml`;
  }

  function showCommand(positions) {
    const name = quoted(fileName(positions));
    const seed = `--seed ${state.seed}`;
    const { controller } = positions;
    const lines = !state.beside ? [`paceline run ${name} ${seed}`]
      : controller && controller !== state.beside ? [`paceline compare ${name} --controllers ${controller},${state.beside} ${seed} --repeats 1`]
      : [`paceline run ${name} ${seed}`, `paceline run ${name} --controller ${state.beside} ${seed}`];
    $("command").textContent = lines.join("\n");
  }

  async function copy(button) {
    const source = $(button.dataset.copy);
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    } catch {
      if (source.select) source.select(); else getSelection().selectAllChildren(source); // no clipboard: the user presses Ctrl-C
      button.textContent = "Selected: press Ctrl-C";
    }
    setTimeout(() => (button.textContent = name), 2000);
  }
})();
