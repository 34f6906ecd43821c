// The engine: a WebAssembly module that answers requests. The page uses it itself for texts, and in workers for runs.
"use strict";

class Engine {
  static async of(module) {
    const engine = new Engine();
    engine.instance = await WebAssembly.instantiate(module, {});
    return engine;
  }

  // Returns the answer { json, columns }. Throws an Error if the engine stops.
  ask(request) {
    const { memory, request: room, answer, answer_address, answer_length } = this.instance.exports;
    const text = new TextEncoder().encode(JSON.stringify(request));
    const address = room(text.length); // the memory may grow, which replaces its buffer
    new Uint8Array(memory.buffer).set(text, address);
    const read = () => memory.buffer.slice(answer_address(), answer_address() + answer_length());
    try {
      answer();
    } catch (trap) {
      throw new Error(new TextDecoder().decode(read()) || String(trap));
    }
    const bytes = read();
    const length = new DataView(bytes).getUint32(0, true);
    const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    return { json, columns: new Float32Array(bytes.slice(4 + length)) };
  }
}

// In a worker: the first message is the module, and each later one is a request.
const serveRequests = () => {
  let engine = null;
  onmessage = ({ data }) => {
    if (data.module) {
      engine = Engine.of(data.module);
      return;
    }
    engine.then((ready) => {
      const began = performance.now();
      const { json, columns } = ready.ask(data.request);
      postMessage({ number: data.number, json, columns, ms: performance.now() - began }, [columns.buffer]);
    }).catch((error) => postMessage({ number: data.number, failed: String(error.message ?? error) }));
  };
};
