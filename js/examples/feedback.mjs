// A controller driven by per-packet feedback, as transport-wide feedback (TWCC) has it, over a link in virtual time.
// node feedback.mjs [controller]
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { load } from "../paceline.mjs";

const PACKET = 1200, DELAY_MS = 20, FEEDBACK_MS = 50;

/** Sends at the target over a link of `linkBps` with an endless queue. Returns the target at the end of each second. */
export function call(sender, linkBps, seconds) {
  const targets = [];
  let arrivals = [], reports = [], linkFree = 0, next = 0;
  for (let now = 0; now < seconds * 1000; now++) {
    while (next <= now) {
      const number = sender.handleSent(now, PACKET);
      linkFree = Math.max(linkFree, now) + (PACKET * 8000) / linkBps;
      arrivals.push({ number, arrivalMs: linkFree + DELAY_MS });
      next += (PACKET * 8000) / sender.targetBps;
    }
    if (now % FEEDBACK_MS === 0) {
      const packets = arrivals.filter(({ arrivalMs }) => arrivalMs <= now);
      arrivals = arrivals.filter(({ arrivalMs }) => arrivalMs > now);
      if (packets.length > 0) reports.push({ at: now + DELAY_MS, packets });
    }
    for (const { packets } of reports.filter(({ at }) => at <= now)) {
      sender.handleRtt(now, now - packets.at(-1).arrivalMs + DELAY_MS);
      sender.handleFeedback(now, packets);
    }
    reports = reports.filter(({ at }) => at > now);
    if (now >= sender.timeoutMs) sender.handleTimeout(now);
    if (now % 1000 === 999) targets.push(sender.targetBps);
  }
  return targets;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const paceline = await load(readFile(new URL("../paceline.wasm", import.meta.url)));
  const sender = paceline.sender(process.argv[2] ?? "gcc-tfb", { startBps: 300e3, minBps: 50e3, maxBps: 10e6 });
  console.log("target on a link of 3 Mbit/s, kbit/s:");
  call(sender, 3e6, 20).forEach((bps, second) => console.log(`${second + 1} s  ${Math.round(bps / 1000)}`));
}
