// Controllers of Paceline in JavaScript: in browsers, Node and other runtimes. Times are in ms, rates in bit/s, sizes in bytes.

/** Compiles the module `paceline.wasm`: its bytes, a response that has them, or a compiled module. */
export async function load(source) {
  const bytes = await source;
  const module = bytes instanceof WebAssembly.Module ? bytes
    : await WebAssembly.compile(typeof bytes.arrayBuffer === "function" ? await bytes.arrayBuffer() : bytes);
  return new Paceline((await WebAssembly.instantiate(module, {})).exports);
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

  /** Creates a sender. Throws an Error if the name or a rate is not valid. */
  sender(controller, { startBps, minBps, maxBps }) {
    const name = new TextEncoder().encode(controller);
    const address = this.#wasm.text(name.length);
    new Uint8Array(this.#wasm.memory.buffer).set(name, address);
    const handle = this.#wasm.create(startBps, minBps, maxBps);
    if (handle < 0) throw new Error(this.#readText());
    return new Sender(this.#wasm, handle);
  }

  #readText() {
    const begin = this.#wasm.text_address();
    return new TextDecoder().decode(this.#wasm.memory.buffer.slice(begin, begin + this.#wasm.text_length()));
  }
}

/** The sending half of a controller, and its record of sent packets. Times of one sender never decrease. */
class Sender {
  #wasm;
  #handle;

  constructor(wasm, handle) {
    this.#wasm = wasm;
    this.#handle = handle;
  }

  /** Records a packet that leaves, IP and UDP headers included. Returns its number, from 0. */
  handleSent(nowMs, bytes) {
    return this.#wasm.handle_sent(this.#handle, nowMs, bytes);
  }

  /** Handles per-packet feedback: a list of { number, arrivalMs }, with the receiver's clock, or null for a lost packet. */
  handleFeedback(nowMs, packets) {
    for (const { number, arrivalMs } of packets) this.#wasm.add_report(this.#handle, number, arrivalMs ?? NaN);
    this.#wasm.handle_feedback(this.#handle, nowMs);
  }

  /** Handles a round-trip time, as in `roundTripTime` of `getStats`, but in ms. */
  handleRtt(nowMs, rttMs) {
    this.#wasm.handle_rtt(this.#handle, nowMs, rttMs);
  }

  /** Handles the fraction of packets lost since the last report, 0 to 1. */
  handleLoss(nowMs, fraction) {
    this.#wasm.handle_loss(this.#handle, nowMs, fraction);
  }

  /** Handles the passing of time. Call it at `timeoutMs`, or at a regular interval of 25 ms or less. */
  handleTimeout(nowMs) {
    this.#wasm.handle_timeout(this.#handle, nowMs);
  }

  /** When handleTimeout is due; Infinity for never. */
  get timeoutMs() {
    return this.#wasm.poll_timeout(this.#handle);
  }

  /** The rate to send at, IP and UDP headers included. */
  get targetBps() {
    return this.#wasm.target(this.#handle);
  }

  /** The highest rate at which queued packets leave. */
  get pacingBps() {
    return this.#wasm.pacing(this.#handle);
  }

  /** Frees the memory of the sender, which must not be used afterwards. */
  free() {
    this.#wasm.free(this.#handle);
  }
}
