// SPDX-License-Identifier: MIT OR Apache-2.0
// Controllers of Paceline in JavaScript: in browsers, Node and other runtimes. Times are in ms, rates in bit/s, sizes in bytes.

const KINDS = { media: 0, retransmission: 1, fec: 2, padding: 3 };
const ECN = { "not-ect": 0, ect1: 1, ect0: 2, ce: 3 };
const LIST_MAX = 65_536;

/** Compiles the module `paceline.wasm`: its bytes, a response that has them, or a compiled module. */
export async function load(source) {
  const bytes = await source;
  const module = bytes instanceof WebAssembly.Module ? bytes
    : await WebAssembly.compile(typeof bytes.arrayBuffer === "function" ? await bytes.arrayBuffer() : bytes);
  return new Paceline((await WebAssembly.instantiate(module, {})).exports);
}

/** Whether a value is an object, and no list, map or function. */
function isObject(value) {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** Throws if an object lacks one of the `required` keys, or has another key than these and the `optional` ones. */
function check(object, what, required, optional = []) {
  if (!isObject(object)) throw new TypeError(`${what} must be an object`);
  const known = [...required, ...optional];
  for (const key of Object.keys(object)) {
    if (!known.includes(key)) throw new TypeError(`${what} has no \`${key}\`; known: ${known.join(", ")}`);
  }
  for (const key of required) {
    if (object[key] === undefined) throw new TypeError(`${what} needs \`${key}\``);
  }
}

/** Returns a number, or throws. */
function number(value, name) {
  if (typeof value !== "number" || Number.isNaN(value)) throw new TypeError(`\`${name}\` must be a number, not ${value}`);
  return value;
}

function boolean(value, name) {
  if (typeof value !== "boolean") throw new TypeError(`\`${name}\` must be true or false, not ${value}`);
  return value;
}

function string(value, name) {
  if (typeof value !== "string") throw new TypeError(`${name} must be a string`);
  return value;
}

/** Returns what `read` makes of each element of a list, or throws. */
function list(values, what, read) {
  if (typeof values?.[Symbol.iterator] !== "function") throw new TypeError(`${what} must be a list`);
  const elements = [];
  for (const value of values) {
    if (elements.length === LIST_MAX) throw new RangeError(`${what} has at most ${LIST_MAX} elements`);
    elements.push(read(value, elements.length));
  }
  return elements;
}

/** Passes a list of numbers to the next call. */
function passNumbers(wasm, numbers) {
  const address = wasm.numbers(numbers.length);
  new Float64Array(wasm.memory.buffer, address, numbers.length).set(numbers);
}

function choice(value, choices, name) {
  if (!Object.hasOwn(choices, string(value, `\`${name}\``))) throw new TypeError(`\`${name}\` must be one of ${Object.keys(choices).join(", ")}, not ${value}`);
  return choices[value];
}

class Paceline {
  #wasm;

  constructor(wasm) {
    this.#wasm = wasm;
  }

  /** The names of all controllers. */
  get controllers() {
    this.#wasm.controllers();
    return this.#readText().split(" ");
  }

  /** What a controller needs: reports on packets, the ECN field in them, REMB, or messages that only a receiver of Paceline sends, which
   * this package cannot give it. */
  needs(controller) {
    this.#passText(string(controller, "the name of a controller"));
    const needs = this.#checked(this.#wasm.needs());
    return { feedback: (needs & 1) !== 0, ecn: (needs & 2) !== 0, remb: (needs & 4) !== 0, receiver: (needs & 8) !== 0 };
  }

  /** Creates a sender. Throws an Error if the name, a rate, a parameter or an option is not valid, and for a controller that needs a
   * receiver of Paceline. */
  sender(controller, options) {
    check(options, "the options", ["startBps", "minBps", "maxBps"], ["parameters"]);
    const rates = ["startBps", "minBps", "maxBps"].map((key) => number(options[key], key));
    const parameters = options.parameters ?? {};
    if (!isObject(parameters)) throw new TypeError("`parameters` must be an object");
    const values = Object.entries(parameters).map(([name, value]) => number(value, name));
    this.#passText([string(controller, "the name of a controller"), ...Object.keys(parameters)].join("\0"));
    passNumbers(this.#wasm, values);
    const handle = this.#checked(this.#wasm.create(...rates));
    return new Sender(this.#wasm, handle, () => this.#readText());
  }

  #checked(result) {
    if (result < 0) throw new Error(this.#readText());
    return result;
  }

  #passText(text) {
    const bytes = new TextEncoder().encode(text);
    const address = this.#wasm.text(bytes.length);
    new Uint8Array(this.#wasm.memory.buffer).set(bytes, address);
  }

  #readText() {
    const begin = this.#wasm.text_address();
    return new TextDecoder().decode(this.#wasm.memory.buffer.slice(begin, begin + this.#wasm.text_length()));
  }
}

/** The sender of one flow: a controller, its record of sent packets, and a pacer. A call with a value that is not valid throws an Error
 * and has no effect, and so does each call after `free`, except `free`. A time before an earlier one is read as that one. */
class Sender {
  #wasm;
  #handle;
  #text;
  /** The packets that wait in the pacer, by number. */
  #queued = new Map();
  #next = 0;

  constructor(wasm, handle, text) {
    this.#wasm = wasm;
    this.#handle = handle;
    this.#text = text;
  }

  /** Records a packet that leaves, IP and UDP headers included. Returns its number, from 0. `probe` is the id of its probe cluster. */
  handleSent(nowMs, bytes, packet = {}) {
    check(packet, "the packet", [], ["kind", "probe"]);
    const kind = choice(packet.kind ?? "media", KINDS, "kind");
    const probe = packet.probe === undefined || packet.probe === null ? NaN : number(packet.probe, "probe");
    const sent = this.#wasm.handle_sent(this.#handle, number(nowMs, "nowMs"), number(bytes, "bytes"), kind, probe);
    if (Number.isNaN(sent)) throw new Error(this.#text());
    return sent;
  }

  /** Handles per-packet feedback: a list of { number, arrivalMs }, with the receiver's clock, or null for a lost packet, and `ecn`, if it is
   * known: "not-ect", "ect0", "ect1" or "ce". Pass a whole report: packets below its lowest number that no report has named are no longer in
   * flight. */
  handleFeedback(nowMs, packets) {
    const reports = list(packets, "the packets of feedback", (packet) => {
      check(packet, "a packet of feedback", ["number", "arrivalMs"], ["ecn"]);
      const arrival = packet.arrivalMs === null ? NaN : number(packet.arrivalMs, "arrivalMs");
      const ecn = packet.ecn === undefined || packet.ecn === null ? NaN : choice(packet.ecn, ECN, "ecn");
      return [number(packet.number, "number"), arrival, ecn];
    });
    passNumbers(this.#wasm, reports.flat());
    this.#checked(this.#wasm.handle_feedback(this.#handle, number(nowMs, "nowMs")));
  }

  /** Handles a round-trip time, as in `roundTripTime` of `getStats`, but in ms. */
  handleRtt(nowMs, rttMs) {
    this.#checked(this.#wasm.handle_rtt(this.#handle, number(nowMs, "nowMs"), number(rttMs, "rttMs")));
  }

  /** Handles the fraction of packets lost since the last report, 0 to 1, over at least 20 packets. */
  handleLoss(nowMs, fraction) {
    this.#checked(this.#wasm.handle_loss(this.#handle, number(nowMs, "nowMs"), number(fraction, "fraction")));
  }

  /** Handles a receiver estimated maximum bitrate (REMB). Controllers that need none take it as a limit, or ignore it. */
  handleRemb(nowMs, bps) {
    this.#checked(this.#wasm.handle_remb(this.#handle, number(nowMs, "nowMs"), number(bps, "bps")));
  }

  /** Sets the lowest and the highest target. They hold at once. */
  setBounds(nowMs, bounds) {
    check(bounds, "the bounds", ["minBps", "maxBps"]);
    const rates = [number(bounds.minBps, "minBps"), number(bounds.maxBps, "maxBps")];
    this.#checked(this.#wasm.set_bounds(this.#handle, number(nowMs, "nowMs"), ...rates));
  }

  /** Handles a change of the network route: the controller starts again with these rates. */
  handleRouteChange(nowMs, rates) {
    check(rates, "the rates", ["startBps", "minBps", "maxBps"]);
    const numbers = ["startBps", "minBps", "maxBps"].map((key) => number(rates[key], key));
    this.#checked(this.#wasm.handle_route_change(this.#handle, number(nowMs, "nowMs"), ...numbers));
  }

  /** Sets whether there is a network. */
  setAvailable(nowMs, available) {
    this.#checked(this.#wasm.set_available(this.#handle, number(nowMs, "nowMs"), boolean(available, "available") ? 1 : 0));
  }

  /** Handles the passing of time. Call it at `timeoutMs`, or at a regular interval of 25 ms or less. */
  handleTimeout(nowMs) {
    this.#checked(this.#wasm.handle_timeout(this.#handle, number(nowMs, "nowMs")));
  }

  /** Queues a frame in the pacer: a list of { packet, bytes }, with anything that stands for the packet. Returns false if the frame is
   * dropped; the encoder should then make a key frame. */
  pushFrame(nowMs, packets, options = {}) {
    check(options, "the options of a frame", [], ["key"]);
    const { key = false } = options;
    boolean(key, "key");
    const frame = list(packets, "the packets of a frame", (one) => {
      check(one, "a packet of a frame", ["packet", "bytes"]);
      return [one.packet, number(one.bytes, "bytes")];
    });
    passNumbers(this.#wasm, frame.flatMap(([, bytes], index) => [this.#next + index, bytes]));
    const isQueued = this.#checked(this.#wasm.push_frame(this.#handle, number(nowMs, "nowMs"), key ? 1 : 0)) === 1;
    if (isQueued) for (const [packet] of frame) this.#queued.set(this.#next++, packet);
    for (let token; !Number.isNaN((token = this.#wasm.poll_discarded(this.#handle)));) this.#queued.delete(token);
    return isQueued;
  }

  /** Returns the next packet that may leave now, which counts as sent: { number, packet, bytes, probe, ecn }. `packet` is undefined for
   * padding, which the program makes. Returns null if none may leave. */
  pollTransmit(nowMs) {
    if (this.#checked(this.#wasm.poll_transmit(this.#handle, number(nowMs, "nowMs"))) === 0) return null;
    const [sent, token, bytes, probe, ecn] = [0, 1, 2, 3, 4].map((index) => this.#wasm.packet_value(index));
    const packet = this.#queued.get(token);
    this.#queued.delete(token);
    return { number: sent, packet, bytes, probe: probe < 0 ? null : probe, ecn: Object.keys(ECN).find((name) => ECN[name] === ecn) };
  }

  /** Returns the next probe cluster for a program that paces, or null: send packets at its rate for its duration, at least so many, and pass
   * its id to `handleSent`. */
  pollProbe() {
    if (this.#checked(this.#wasm.poll_probe(this.#handle)) === 0) return null;
    return JSON.parse(this.#text());
  }

  /** Returns the next event, or null: { type }, with `probe`, the id of the cluster, and `rateBps` of "probe-result", and with `rateBps`, the
   * rate of the encoder, of "stream-rates". */
  pollEvent() {
    return this.#checked(this.#wasm.poll_event(this.#handle)) === 0 ? null : JSON.parse(this.#text());
  }

  /** When handleTimeout and pollTransmit are due; Infinity for never. */
  get timeoutMs() {
    return this.#value(3);
  }

  /** The rate to send at, IP and UDP headers included. */
  get targetBps() {
    return this.#value(0);
  }

  /** A rate up to the target that changes more slowly, for choices such as a resolution. */
  get stableTargetBps() {
    return this.#value(10);
  }

  /** The highest rate at which queued packets leave. */
  get pacingBps() {
    return this.#value(1);
  }

  /** The rate up to which padding fills what media leaves free. */
  get paddingBps() {
    return this.#value(2);
  }

  /** The bound on bytes in flight, and these: { bytes, inFlight, isOpen }. `bytes` is Infinity without a bound. A program that paces sends
   * nothing while the window is not open. */
  get window() {
    return { bytes: this.#value(4), inFlight: this.#value(5), isOpen: this.#value(8) === 1 };
  }

  /** The longest time that a frame should wait in the queue of a pacer; Infinity for no limit of the controller. */
  get queueMaxMs() {
    return this.#value(6);
  }

  /** The bytes in the queue of the pacer. */
  get queuedBytes() {
    return this.#value(9);
  }

  /** The ECN codepoint of packets: "not-ect", "ect0" or "ect1". */
  get ecn() {
    const ecn = this.#value(7);
    return Object.keys(ECN).find((name) => ECN[name] === ecn);
  }

  /** Frees the memory of the sender. Each later call throws. */
  free() {
    this.#wasm.free(this.#handle);
    this.#queued.clear();
  }

  #checked(result) {
    if (result < 0) throw new Error(this.#text());
    return result;
  }

  #value(index) {
    const value = this.#wasm.value(this.#handle, index);
    if (Number.isNaN(value)) throw new Error(this.#text());
    return value;
  }
}
