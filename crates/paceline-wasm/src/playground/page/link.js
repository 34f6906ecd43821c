
// The state as the fragment of an address: what differs from the entry that the page started from.
const LINK_MOST = 32000; // characters of a link
const UNPACKED_MOST = 4e6; // bytes
const CHANGES_MOST = 1000;

const Link = {
  async pack(value) {
    const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  },

  async unpack(text) {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts = [];
    for (let size = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) return JSON.parse(await new Blob(parts).text());
      parts.push(value);
      size += value.length;
      if (size > UNPACKED_MOST) {
        await reader.cancel();
        throw Object.assign(new Error("it is too large"), { isOwn: true });
      }
    }
  },

  // FNV-1a: a link to another version of an entry is not applied to this one.
  sum(text) {
    let sum = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
    return sum.toString(36);
  },

  // Returns the changes from one text to another: first line, lines removed, lines in their place; from the end on.
  changes(before, after) {
    const [a, b] = [before.split("\n"), after.split("\n")];
    let [start, end] = [0, 0];
    while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
    while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
    const [n, m] = [a.length - start - end, b.length - start - end];
    if (n * m > 1e6) return [[start, n, b.slice(start, start + m)]];
    const same = (i, j) => a[start + i] === b[start + j];
    const common = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1)); // lines in common from i and j on
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) common[i][j] = same(i, j) ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
    const changes = [];
    for (let i = 0, j = 0; i < n || j < m; ) {
      if (i < n && j < m && same(i, j)) { i++; j++; continue; }
      const [from, first] = [i, j];
      while ((i < n || j < m) && !(i < n && j < m && same(i, j))) {
        if (j === m || (i < n && common[i + 1][j] >= common[i][j + 1])) i++; else j++;
      }
      changes.unshift([start + from, i - from, b.slice(start + first, start + j)]);
    }
    return changes;
  },

  apply(before, changes) {
    const lines = before.split("\n");
    // Lines without spreading: a call has a limited number of arguments.
    return changes.reduce((all, [line, count, added]) => [...all.slice(0, line), ...added, ...all.slice(line + count)], lines).join("\n");
  },

  // Returns the fragment of a state, and the files that it leaves out. `first` is the state of the page without a fragment.
  async write(state, first) {
    const parts = new URLSearchParams();
    const edit = {};
    if (state.open) parts.set("open", state.open);
    if (state.open === null) Object.assign(edit, { name: state.name, text: state.text });
    else if (state.text !== state.origin) Object.assign(edit, { sum: Link.sum(state.origin), changes: Link.changes(state.origin, state.text) });
    if (state.beside !== first.beside || state.open === null) parts.set("beside", state.beside);
    if (state.seed !== first.seed) parts.set("seed", state.seed);
    const names = Object.keys(state.files);
    if (names.length) Object.assign(edit, { files: state.files });
    const written = async () => {
      if (Object.keys(edit).length) parts.set("edit", await Link.pack(edit));
      return parts.toString();
    };
    const whole = await written();
    if (whole.length <= LINK_MOST || !names.length) return { fragment: whole, without: [] };
    delete edit.files;
    parts.delete("edit");
    return { fragment: await written(), without: names };
  },

  // Returns the state of a fragment. `open` returns the text of an entry, and `controllers` has the names of all.
  async read(fragment, first, open, controllers) {
    const must = (is, message) => { if (!is) throw new Error(message); };
    const isText = (value) => typeof value === "string";
    const parts = new URLSearchParams(fragment);
    const id = parts.get("open") ?? "", beside = parts.get("beside") ?? first.beside, seed = parts.get("seed") ?? String(first.seed);
    must(beside === "" || controllers.has(beside), "it names no controller");
    must(/^\d{1,10}$/.test(seed) && +seed <= 4294967295, "its seed is no number");
    const state = { open: id, name: first.name, beside, seed: +seed, files: {} };
    state.origin = id ? open(id) : first.text;
    must(isText(state.origin), "this page does not have its start");
    if (id) state.name = entryFile(id);
    state.text = state.origin;
    if (!parts.has("edit")) return state;
    const edit = await Link.unpack(parts.get("edit")).catch((error) => { throw new Error(error.isOwn ? error.message : "its changes are damaged"); });
    must(edit && typeof edit === "object", "its changes are damaged");
    if (edit.files !== undefined) {
      must(edit.files && typeof edit.files === "object" && Object.values(edit.files).every(isText), "its files are damaged");
      state.files = { ...edit.files };
    }
    if (edit.text !== undefined) {
      must(isText(edit.text) && isText(edit.name), "its text is damaged");
      return Object.assign(state, { open: null, name: edit.name, text: edit.text, origin: edit.text });
    }
    if (edit.changes === undefined) return state;
    must(edit.sum === Link.sum(state.origin), "its start is another one in this version of the page");
    const isLine = (line) => Number.isInteger(line) && line >= 0;
    const isChange = (change) => Array.isArray(change) && isLine(change[0]) && isLine(change[1]) && Array.isArray(change[2]) && change[2].every(isText);
    must(Array.isArray(edit.changes) && edit.changes.length <= CHANGES_MOST && edit.changes.every(isChange), "its changes are damaged");
    return Object.assign(state, { text: Link.apply(state.origin, edit.changes) });
  },
};

// The name of the file of an entry of the start list.
const entryFile = (id) => `${id.split(/[/:]/).pop()}.toml`;
