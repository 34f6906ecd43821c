import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { call } from "../examples/feedback.mjs";
import { statsDriver } from "../examples/stats.mjs";
import { load } from "../paceline.mjs";

const paceline = await load(readFile(new URL("../paceline.wasm", import.meta.url)));
const RATES = { startBps: 300e3, minBps: 50e3, maxBps: 10e6 };

test("lists the controllers, and rejects names and rates that are not valid", () => {
  assert.ok(paceline.controllers.includes("googcc") && paceline.controllers.length >= 19);
  assert.throws(() => paceline.sender("gogcc", RATES), /there is no controller `gogcc`; known: .*googcc/);
  assert.throws(() => paceline.sender("googcc", { ...RATES, startBps: 10 }), /start/);
});

// With an endless queue the target may exceed the link until the controller finds over-use, so the bound is on the mean.
test("per-packet feedback moves the target to the capacity of a link", () => {
  for (const link of [1e6, 3e6]) {
    const sender = paceline.sender("gcc-tfb", RATES);
    const targets = call(sender, link, 90);
    const last = targets.slice(-20);
    const mean = last.reduce((sum, bps) => sum + bps, 0) / last.length;
    assert.ok(0.6 * link < mean && mean < 1.1 * link, `link ${link}, mean ${mean}: ${targets}`);
    sender.free();
  }
});

test("samples of getStats: the target falls with losses, and a report is counted once", () => {
  const sender = paceline.sender("gcc-2016", { ...RATES, startBps: 1e6 });
  const next = statsDriver(sender);
  const report = (timestamp, fractionLost) =>
    new Map([["a", { id: "a", type: "remote-inbound-rtp", timestamp, roundTripTime: 0.05, fractionLost }], ["b", { id: "b", type: "codec" }]]);
  const before = next(1000, report(1000, 0));
  const after = next(2000, report(2000, 0.2));
  assert.ok(after < before && after > 0.5 * before, `${before} to ${after}`);
  assert.equal(next(2001, report(2000, 0.2)), after, "the same report again");
  const third = next(3000, report(3000, 0.2));
  assert.ok(third < after, `${after} to ${third}`);
});

test("senders are independent of each other, and silence lowers the target", () => {
  const [one, other] = [paceline.sender("gcc-tfb", RATES), paceline.sender("gcc-tfb", RATES)];
  call(one, 2e6, 10);
  assert.equal(other.targetBps, RATES.startBps);
  assert.ok(one.targetBps > RATES.startBps);
  const before = one.targetBps;
  for (let now = 10_000; now < 20_000; now += 25) {
    one.handleSent(now, 1200);
    one.handleTimeout(now);
  }
  assert.ok(one.targetBps < before / 8 && one.targetBps >= RATES.minBps, `${before} to ${one.targetBps}`);
});
