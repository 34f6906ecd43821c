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

test("options and feedback that are misspelled or missing are errors", () => {
  assert.throws(() => paceline.sender("googcc", {}), /need.*startBps/);
  assert.throws(() => paceline.sender("googcc", { ...RATES, maxbps: 1 }), /no `maxbps`; known: .*maxBps/);
  assert.throws(() => paceline.sender("googcc", { ...RATES, parameters: { loss: 1 } }), /no parameter `loss`; known: /);
  assert.throws(() => paceline.sender("googcc", { ...RATES, startBps: "300" }), /startBps.*number/);
  const sender = paceline.sender("drc", RATES);
  sender.handleSent(0, 1200);
  const state = () => [sender.targetBps, sender.pacingBps, sender.paddingBps, sender.window, sender.queuedBytes, sender.timeoutMs];
  const before = state();
  for (const [wrong, message] of [
    [() => sender.handleFeedback(50, [{ number: 0, arrival: 20 }]), /no `arrival`; known: number, arrivalMs/],
    [() => sender.handleFeedback(50, [{ number: 0, arrivalMs: 20 }, { number: 0 }]), /needs `arrivalMs`/],
    [() => sender.handleLoss(50, 20), /fraction.*0 to 1.*20/],
    [() => sender.handleSent(50, 0), /bytes.*1 to 65535/],
    [() => sender.pushFrame(50, [{ packet: 1, bytes: 1200 }, { packet: 2, bytes: 0 }]), /bytes/],
    [() => sender.setBounds(50, { minBps: 2e6, maxBps: 1e6 }), /min/i],
    [() => sender.handleRouteChange(50, { ...RATES, startBps: 1 }), /start/],
    [() => sender.handleRemb(50, -1), /bps/],
  ]) {
    assert.throws(wrong, message);
    assert.deepEqual(state(), before, `${wrong} changes nothing`);
  }
  sender.handleFeedback(50, [{ number: 0, arrivalMs: 20 }]);
  assert.equal(sender.window.inFlight, 0);
});

test("a freed sender controls no other one", () => {
  const one = paceline.sender("drc", RATES);
  one.free();
  const other = paceline.sender("drc", { ...RATES, startBps: 400e3 });
  assert.throws(() => one.targetBps, /was freed/);
  assert.throws(() => one.handleSent(0, 1200), /was freed/);
  one.free();
  assert.equal(other.targetBps, 400e3);
});

test("a controller that cannot work here is an error", () => {
  assert.deepEqual(paceline.needs("googcc"), { feedback: true, ecn: false, remb: false, receiver: false });
  assert.deepEqual(paceline.needs("gcc-2016"), { feedback: false, ecn: false, remb: true, receiver: false });
  assert.ok(paceline.needs("nada").receiver && paceline.needs("scream-v2").ecn);
  assert.throws(() => paceline.sender("nada", RATES), /receiver of Paceline/);
  const remb = paceline.sender("gcc-2016", RATES);
  assert.throws(() => remb.handleFeedback(0, []), /uses no reports on packets/);
  for (const sender of [remb, paceline.sender("drc", RATES)]) {
    sender.handleRemb(1000, 200e3);
    assert.equal(sender.targetBps, 200e3);
  }
});

test("the maximum is a hard limit, from the start and when it changes", () => {
  for (const name of paceline.controllers.filter((name) => !paceline.needs(name).receiver && name !== "fixed")) {
    const sender = paceline.sender(name, { startBps: 300e3, minBps: 50e3, maxBps: 1e6 });
    if (paceline.needs(name).feedback) call(sender, 5e6, 30);
    else sender.handleRemb(1000, 5e6);
    assert.ok(sender.targetBps <= 1e6, `${name}: ${sender.targetBps}`);
    sender.setBounds(40_000, { minBps: 50e3, maxBps: 500e3 });
    assert.ok(sender.targetBps <= 500e3 && sender.targetBps >= 50e3, `${name}: ${sender.targetBps}`);
    sender.free();
  }
});

test("the pacer sends frames and probes, and a pause does not stall it", () => {
  for (const name of ["drc", "googcc", "gcc-tfb", "nada-sender", "scream-v2"]) {
    const sender = paceline.sender(name, RATES);
    let [late, probes] = [0, 0];
    for (let now = 0; now < 12_000; now++) {
      if (now === 2000) sender.setBounds(now, { minBps: 1, maxBps: 1 });
      if (now === 7000) sender.setBounds(now, { minBps: 50e3, maxBps: 10e6 });
      if (now % 33 === 0) sender.pushFrame(now, [1, 2].map((packet) => ({ packet, bytes: 600 })));
      sender.handleTimeout(now);
      for (let sent; (sent = sender.pollTransmit(now)) !== null;) {
        probes += sent.probe === null ? 0 : 1;
        late += now >= 10_000 ? 1 : 0;
        sender.handleFeedback(now, [{ number: sent.number, arrivalMs: now + 20 }]);
      }
    }
    assert.ok(late > 20, `${name}: ${late} packets from 3 s after the pause`);
    assert.ok(name !== "googcc" || probes > 5, `${probes} packets of probes`);
  }
});

test("time that goes back is an event, and the sender goes on", () => {
  const sender = paceline.sender("drc", RATES);
  sender.handleSent(3_600_000, 1200);
  sender.handleSent(0, 1200);
  let events = [];
  for (let event; (event = sender.pollEvent()) !== null;) events.push(event.type);
  assert.ok(events.includes("clock-stepped-back"), `${events}`);
  assert.ok(sender.timeoutMs < 10_000, "timeouts are in the time of the program");
});

test("a program with its own pacer gets the probes", () => {
  const sender = paceline.sender("googcc", RATES);
  sender.handleSent(0, 1200);
  sender.handleTimeout(25);
  const probe = sender.pollProbe();
  assert.deepEqual(Object.keys(probe), ["id", "rateBps", "durationMs", "packets"]);
  assert.ok(probe.rateBps > RATES.startBps && probe.durationMs > 0 && probe.packets > 0, JSON.stringify(probe));
  assert.equal(sender.pollTransmit(30), null);
  for (let n = 0; n < 20; n++) assert.equal(sender.handleSent(30 + n, 1200, { probe: probe.id, kind: "padding" }), n + 1);
  sender.handleFeedback(100, Array.from({ length: 20 }, (_, n) => ({ number: n + 1, arrivalMs: 50 + n })));
  const events = [];
  for (let event; (event = sender.pollEvent()) !== null;) events.push(event);
  const result = events.find(({ type }) => type === "probe-result");
  assert.ok(result.probe === probe.id && result.rateBps > 5e6 && result.rateBps < 11e6, JSON.stringify(events));
  const rates = events.findLast(({ type }) => type === "stream-rates");
  assert.equal(rates.rateBps, sender.targetBps);
});
