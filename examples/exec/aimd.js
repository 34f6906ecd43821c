#!/usr/bin/env node
// A controller in JavaScript: it decreases at 10 % loss and else increases by 5 % per second.
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

say({ protocol: 1, summary: "AIMD in JavaScript", signals: [{ name: "loss" }] });
let rate = 0;
let setup = {};
let lastNs = null;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  let signals = {};
  if (message.type === "start") {
    setup = message.setup;
    rate = setup.start_bps;
  } else {
    for (const event of message.events) {
      if (event.type === "feedback" && event.packets.length > 0) {
        const lost = event.packets.filter((packet) => packet.arrival_ns === null).length;
        const loss = lost / event.packets.length;
        const seconds = (event.at_ns - (lastNs ?? event.at_ns)) / 1e9;
        rate *= loss > 0.1 ? 1 - loss / 2 : 1 + 0.05 * seconds;
        lastNs = event.at_ns;
        signals = { loss };
      } else if (event.type === "bounds" || event.type === "route") {
        setup = { ...setup, ...(event.setup ?? event) };
      }
    }
    rate = Math.min(Math.max(rate, setup.min_bps), setup.max_bps);
  }
  say({ target_bps: Math.round(rate), signals });
});
