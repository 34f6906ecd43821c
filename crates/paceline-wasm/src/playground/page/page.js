
// The page: the text is the state, with the seed and the controller beside that of the text. Everything shown follows from these.
(() => {
  const SLOW_MS = 1500;   // a run that takes longer is ended when the next one begins
  const TYPING_MS = 250;  // a text is read after so long without a key
  const LINK_MS = 400;    // the address follows after so long without a change

  // State for tests and for the browser's console.
  const page = (window.paceline = { ready: false, error: null, drawn: 0, redrawMs: null, startMs: null, runMs: [], hashes: [], scores: [], problem: null, link: "" });
  // `open` is the entry that the text started from, empty for that of the page and null for a file of the user; `origin` is its text.
  const state = { open: "", origin: "", name: "call.toml", text: "", files: {}, beside: "", seed: 1 };
  const FILE_MOST = 20e6; // bytes
  let engine, module, controls, sides, first, dragged = null, last = 0, changedAt = 0, typing = 0, linking = 0;
  const workers = [null, null];
  const answers = [null, null];
  const box = make("p", { class: "problem", id: "problem", role: "alert" });

  main().catch((error) => {
    page.error = String(error);
    $("status").textContent = "";
    showProblem({ message: `The simulator cannot be started: ${error.message ?? error}. It needs a browser of 2023 or later.`, source: "" }, $("notice"));
  });

  async function main() {
    const packed = Uint8Array.from(atob($("module").textContent.trim()), (char) => char.charCodeAt(0));
    $("module").remove();
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    engine = await Engine.of(module);
    const { start } = engine.ask("start").json;
    $("version").textContent = start.version;
    controls = new Controls(start, edit, chosen);
    sides = [new Side("a"), new Side("b")];
    $("sides").append(...sides.map(({ element }) => element));
    first = { ...state, text: start.text, beside: start.beside, ...JSON.parse($("start").textContent) };
    // A page that was written with a scenario has a start of its own, which a link carries.
    Object.assign(first, { origin: first.text, open: first.text === start.text ? "" : null });
    $("open").addEventListener("change", () => open($("open").value));
    $("files").addEventListener("change", () => openFiles([...$("files").files]));
    $("text").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => { changed(); read($("text").value); }, TYPING_MS);
    });
    $("reset-capacity").addEventListener("click", () => edit({ "capacity-of": state.origin }, $("capacity")));
    $("to-controls").addEventListener("click", () => $("controls").scrollIntoView());
    for (const event of ["dragover", "dragleave", "drop"]) document.addEventListener(event, dropped);
    addEventListener("hashchange", () => restore().then(() => { changed(); read(state.text); }));
    document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));
    new ResizeObserver(() => sides.forEach((side) => side.resize())).observe($("sides"));
    onThemeChange(() => sides.forEach((side) => side.redraw()));
    await restore();
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

  // Takes the state of the address, or the first one.
  async function restore() {
    let wanted = first;
    notice("");
    try {
      const fragment = location.hash.slice(1);
      if (fragment && fragment !== page.link) wanted = await Link.read(fragment, first, (id) => ask({ open: id }).text, controls.summaries);
      else if (fragment) return;
    } catch (error) {
      notice(`The link cannot be used: ${error.message}. The page shows its first call.`);
    }
    Object.assign(state, wanted, { files: { ...wanted.files } });
    $("beside").value = state.beside;
    $("seed").value = state.seed;
    $("open").value = state.open ?? "";
    showFiles();
  }

  function notice(text) {
    $("notice").textContent = text;
    $("notice").hidden = !text;
  }

  const file = () => ({ name: state.name, text: state.text, files: state.files });

  function open(id) {
    if (!id) return;
    const answer = ask({ open: id });
    if (answer.error) return showProblem(answer.error, $("open"));
    start({ open: id, name: entryFile(id), text: answer.text, files: {} });
  }

  // Starts from a text that is not a change of the one before.
  function start(opened, assumed) {
    changed();
    notice("");
    Object.assign(state, opened, { origin: opened.text });
    if (opened.open === null) $("open").value = "";
    showFiles(assumed);
    read(state.text);
  }

  async function openFiles(files) {
    const field = $("files");
    const large = files.find(({ size }) => size > FILE_MOST);
    if (large) return showProblem({ message: `${large.name} has ${(large.size / 1e6).toFixed(0)} MB`, hint: `the page reads files of at most ${FILE_MOST / 1e6} MB`, source: "" }, field);
    const contents = [];
    for (const each of files) {
      try {
        contents.push({ name: each.name, text: new TextDecoder("utf-8", { fatal: true }).decode(await each.arrayBuffer()) });
      } catch {
        return showProblem({ message: `${each.name} is not a text file`, hint: "the page reads traces of capacity and scenarios", source: "" }, field);
      }
    }
    field.value = "";
    if (!contents.length) return;
    const answer = ask({ files: [{ ...file(), text: $("text").value }, contents, controls.at?.controller ?? null] });
    if (answer.error) return showProblem(answer.error, field);
    const { text, is_new, assumed } = answer.opened;
    if (is_new) return start({ open: null, ...text }, assumed);
    const { error } = ask({ read: text });
    if (error && !page.problem) return showProblem(error, field);
    state.files = text.files;
    changed();
    showFiles();
    read(text.text);
  }

  function dropped(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") openFiles([...event.dataTransfer.files]);
  }

  function showFiles(assumed) {
    const names = Object.keys(state.files).join(", ");
    const idle = "A recorded capacity or a scenario. You can also drop it anywhere on the page.";
    $("files-note").textContent = assumed ?? (names ? `With the text: ${names}.` : idle);
    $("command-files").textContent = names ? ` and ${names} beside it` : "";
  }

  // Of what the text does not hold: the other controller and the seed.
  function chosen(field) {
    if (isWrong(field)) return;
    changed();
    Object.assign(state, { beside: $("beside").value, seed: +$("seed").value });
    if (page.problem && page.problem.field !== "text") showProblem(null);
    run();
  }

  function isWrong(field) {
    if (field.checkValidity?.() ?? true) return false;
    showProblem({ message: field.validationMessage, source: "" }, field);
    return true;
  }

  // Edits the text; during a drag, that from before the drag.
  function edit(change, field, isDrag) {
    if (isWrong(field)) return;
    changed();
    if (!isDrag) dragged = state.text;
    const answer = ask({ edit: [{ ...file(), text: dragged }, change] });
    if (answer.error) return showProblem(answer.error, field);
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

  // Shows an error beside its field; without a field, beside the text.
  function showProblem(problem, field = $("text")) {
    page.problem = problem && { ...problem, field: field.id };
    document.querySelectorAll("[aria-invalid]").forEach((each) => { each.removeAttribute("aria-invalid"); each.removeAttribute("aria-errormessage"); });
    $("sides").classList.toggle("old", Boolean(problem));
    if (!problem) return box.remove();
    const { message, hint, source, line, column, offending } = problem;
    const place = line ? `${source}, line ${line}, column ${column}` : source;
    const old = page.drawn ? "\nThe plots are those before the error." : "";
    box.replaceChildren(make("b", {}, "Error: "), message, place ? `\n${place}` : "", offending ? `: ${offending}` : "", hint ? `\nHint: ${hint}` : "", old);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-errormessage", "problem");
    if (field.id === "text") field.before(box); else (field.closest("label") ?? field).after(box);
    $("status").textContent = "";
  }

  // Runs the text under its own controller and under the one beside it.
  function run() {
    if (page.problem) return;
    last += 1;
    const of = file();
    const count = state.beside ? 2 : 1;
    for (let side = 0; side < count; side++) {
      send(side, { number: last, request: { run: { text: of, controller: side ? state.beside : null, seed: state.seed } } });
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
    const field = side ? $("beside") : $("text");
    if (failed) return showProblem({ message: `The simulator stopped: ${failed}`, source: "" }, field);
    if (json.error) return showProblem({ ...json.error, message: (side ? `Under ${state.beside}: ` : "") + json.error.message }, field);
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
    page.scores = all.map(({ run }) => run.score);
    clearTimeout(linking);
    linking = setTimeout(writeLink, LINK_MS);
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

  // Puts the state into the address.
  async function writeLink() {
    const { fragment, without } = await Link.write(state, first);
    const tooLong = fragment.length > LINK_MOST;
    page.link = tooLong ? "" : fragment;
    const most = `${LINK_MOST / 1000} kB`;
    $("link-note").textContent = tooLong ? `The text is too long for a link of at most ${most}.`
      : without.length ? `The address of the page restores this state, but without ${without.join(", ")}: a link has at most ${most}. Give the file along with the link.`
      : `The address of the page restores this state${Object.keys(state.files).length ? ", with the files" : ""}.`;
    try {
      history.replaceState(null, "", page.link ? `#${page.link}` : location.href.split("#")[0]);
    } catch (error) {
      $("link-note").textContent = `The browser does not let the page change its address: ${error.message}`;
    }
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
    if (button.dataset.copy === "link") {
      clearTimeout(linking);
      await writeLink();
    }
    const source = $(button.dataset.copy);
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(source?.value ?? source?.textContent ?? location.href);
      button.textContent = "Copied";
    } catch {
      // Without a clipboard the user copies it: the selected text, or the address.
      if (source?.select) source.select(); else if (source) getSelection().selectAllChildren(source);
      button.textContent = source ? "Selected: press Ctrl-C" : "Copy the address";
    }
    setTimeout(() => (button.textContent = name), 2000);
  }
})();
