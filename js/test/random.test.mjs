// Calls in any order with values that are valid or not. Two senders get the valid ones, and one of them all others as well, which throw: the
// two must not differ. PACELINE_RANDOM_CALLS sets the number of calls per seed, from 4000 on.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { load } from "../paceline.mjs";

const paceline = await load(readFile(new URL("../paceline.wasm", import.meta.url)));
const CALLS = Math.max(4000, Number(process.env.PACELINE_RANDOM_CALLS ?? 0)), SEEDS = [1, 2, 3, 4, 5, 6];
const RATES = { startBps: 300e3, minBps: 50e3, maxBps: 10e6 };
const GETTERS = ["timeoutMs", "targetBps", "stableTargetBps", "pacingBps", "paddingBps", "window", "queueMaxMs", "queuedBytes", "ecn"];

/** Returns a function for random whole numbers below a bound (mulberry32). */
function random(seed) {
  return (bound) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    z = (z + Math.imul(z ^ (z >>> 7), 61 | z)) ^ z;
    return Math.floor((((z ^ (z >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}

const NO_NUMBER = [undefined, null, "1", NaN, Infinity, -Infinity, {}, [], true, 10n, 1e300];
const NO_TIME = [...NO_NUMBER, 5e12, -5e12];
const NO_RATE = [...NO_NUMBER, -1, 1e14];
const NO_WHOLE = [...NO_NUMBER, -1, 0.5, 2 ** 60];
const NO_BOOLEAN = [null, 0, 1, "true", {}];
const NO_OBJECT = [null, 5, "text", [], new Map(), () => 0];
const NO_LIST = [undefined, null, 5, {}, { length: 1 }, true];

/** Returns valid arguments of a call, and values of one argument, or of a place in it, that are not valid. */
function calls(any, state, needs) {
  const now = () => state.now, pick = (values) => values[any(values.length)];
  const rates = () => ({ startBps: 300e3 + any(1e6), minBps: any(300e3), maxBps: 2e6 + any(2e7) });
  const ratesWithout = () => [...NO_OBJECT, ...["startBps", "minBps", "maxBps"].flatMap((key) => NO_RATE.map((value) => ({ ...rates(), [key]: value }))),
    { ...rates(), minBps: 1e7, maxBps: 1e6 }, { ...rates(), startBps: 0 }, { ...rates(), maxBps: 0 }, { ...rates(), maxbps: 1 }];
  const report = () => ({ number: Math.max(0, state.sent - any(60)), arrivalMs: any(10) === 0 ? null : state.now - any(100),
    ecn: pick([undefined, null, "not-ect", "ect0", "ect1", "ce"]) });
  const packet = () => ({ packet: any(9), bytes: 1 + any(1400) });
  const many = (make, least) => Array.from({ length: least + any(20) }, make);
  /** Lists with a last element that is not valid. */
  const lists = (make, broken) => [...NO_LIST, ...broken.map((changes) => [...many(make, 1), { ...make(), ...changes }]), [make(), null], [5], Array(70_000).fill(make())];
  const each = (key, values) => values.map((value) => ({ [key]: value }));
  const all = {
    handleSent: () => [[now(), 1 + any(1400), pick([undefined, {}, { kind: pick(["media", "retransmission", "fec", "padding"]), probe: pick([undefined, null, any(9)]) }])],
      [NO_TIME, [...NO_WHOLE, 0, 65_536], [...NO_OBJECT, { king: "media" }, ...each("kind", ["video", 5, ["media"], {}]), ...each("probe", ["1", NaN, -1, 65_536, 0.5])]]],
    handleFeedback: () => [[now(), many(report, 0)], [NO_TIME, lists(report, [{ arrival: 5 }, ...each("number", NO_WHOLE), ...each("arrivalMs", NO_TIME.filter((value) => value !== null)), ...each("ecn", ["ect", 1, []])])]],
    handleRtt: () => [[now(), 1 + any(300)], [NO_TIME, [...NO_NUMBER, 0, -1, 3.7e6]]],
    handleLoss: () => [[now(), any(100) / 1000], [NO_TIME, [...NO_NUMBER, -0.1, 1.1]]],
    handleRemb: () => [[now(), any(5e6)], [NO_TIME, NO_RATE]],
    setBounds: () => [[now(), { minBps: any(300e3), maxBps: 300e3 + any(1e7) }], [NO_TIME, [...ratesWithout(), { minBps: 2, maxBps: 1 }]]],
    handleRouteChange: () => [[now(), rates()], [NO_TIME, ratesWithout()]],
    setAvailable: () => [[now(), any(10) > 0], [NO_TIME, [undefined, ...NO_BOOLEAN]]],
    handleTimeout: () => [[now()], [NO_TIME]],
    pushFrame: () => [[now(), many(packet, 1), pick([undefined, {}, { key: true }, { key: undefined }])],
      [NO_TIME, [...lists(packet, [{ size: 5 }, { packet: undefined }, ...each("bytes", [...NO_WHOLE, 0, 65_536])]), []], [...NO_OBJECT, { keyFrame: true }, ...each("key", NO_BOOLEAN)]]],
    pollTransmit: () => [[now()], [NO_TIME]],
    pollProbe: () => [[], []],
    pollEvent: () => [[], []],
  };
  if (!needs.feedback) delete all.handleFeedback;
  return all;
}

const seen = (sender) => JSON.stringify(GETTERS.map((name) => sender[name]));

for (const seed of SEEDS) {
  test(`calls that are not valid change nothing, seed ${seed}`, () => {
    const any = random(seed), names = paceline.controllers.filter((name) => !paceline.needs(name).receiver);
    let [thrown, transmitted, events, fresh] = [0, 0, new Set(), 0];
    for (let done = 0; done < CALLS; fresh++) {
      const name = names[(seed + fresh * SEEDS.length) % names.length], needs = paceline.needs(name);
      const [one, other] = [paceline.sender(name, RATES), paceline.sender(name, RATES)];
      const state = { now: any(1000), sent: 0 }, all = calls(any, state, needs), kinds = Object.keys(all);
      for (let call = 0; call < 500; call++, done++) {
        state.now += any(100) === 0 ? [-50, -5000, 3000, 3.6e6][any(4)] : any(20);
        const kind = kinds[any(kinds.length)], [valid, invalid] = all[kind]();
        const place = any(valid.length + 1);
        if (invalid[place] !== undefined && any(3) === 0) {
          const values = invalid[place], broken = valid.with(place, values[any(values.length)]);
          assert.throws(() => one[kind](...broken), (error) => error instanceof Error && !(error instanceof WebAssembly.RuntimeError), `${name}, ${kind}, ${place}`);
          thrown++;
        } else {
          const result = one[kind](...valid);
          assert.deepEqual(result, other[kind](...valid), `${name}, call ${call}: ${kind}`);
          if (kind === "handleSent" || (kind === "pollTransmit" && result !== null)) state.sent++;
          if (kind === "pollTransmit" && result !== null) transmitted++;
          if (kind === "pollEvent" && result !== null) events.add(result.type);
        }
        assert.equal(seen(one), seen(other), `${name}, call ${call}: ${kind}`);
        assert.ok(one.targetBps > 0 && one.targetBps < 3e7, `${name}: ${one.targetBps}`);
      }
      for (const sender of [one, other]) {
        sender.free();
        for (const kind of kinds) assert.throws(() => sender[kind](...all[kind]()[0]), /was freed/, kind);
      }
    }
    assert.ok(thrown > CALLS / 10 && transmitted > CALLS / 100, `${thrown} thrown, ${transmitted} packets`);
    assert.ok(["decision", "stream-rates", "frame-dropped", "clock-stepped-back"].every((type) => events.has(type)), [...events].join());
  });
}

test("a sender that is not made changes nothing for the next one", () => {
  const target = (options) => {
    const sender = paceline.sender("fixed", { ...RATES, ...options });
    const bps = sender.targetBps;
    sender.free();
    return bps;
  };
  const broken = [...[...NO_OBJECT.slice(1), { rate_bps: 7e5, other: 1 }, { "rate_bps\0": 7e5 }], ...NO_NUMBER.map((value) => ({ rate_bps: 7e5, b: value }))].map((parameters) => ({ parameters }));
  for (const options of [...broken, { parameters: { rate_bps: 7e5 }, startBps: 0 }, { parameters: { rate_bps: 7e5 }, minBps: "1" }]) {
    assert.throws(() => target(options), Error, Object.keys(options.parameters).join());
    assert.equal(target({}), RATES.maxBps);
  }
  assert.equal(target({ parameters: { rate_bps: 7e5 } }), 7e5);
  for (const name of [undefined, null, 5, ["googcc"]]) {
    assert.throws(() => paceline.sender(name, RATES), /name of a controller/);
    assert.throws(() => paceline.needs(name), /name of a controller/);
  }
});
