// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same scenario and seed give the same bits, with any observers, threads and compiler settings.

use crate::fixtures::{Listener, load_from, registry, simulator};
use paceline::Registry;
use paceline_netsim::records::{DropReason, EventRecord, PacketClass};
use paceline_scenario::{Origin, Scenario};
use std::collections::BTreeSet;

/// Everything that draws or rounds: two flows, jitter, both loss models, schedules, a drifting clock, audio.
const BUSY: &str = r#"
id = "test/busy"
title = "Two flows over a changing, lossy, jittery path"
duration = "40s"
[path]
rtt = "50ms"
[path.forward]
capacity = [["0s", "1500 kbps"], ["15s", "700 kbps"], ["25s", "2 Mbps"]]
queue = { limit = "200 ms" }
jitter = { std = "3 ms" }
loss = "1 %"
[path.reverse]
capacity = "500 kbps"
queue = { limit = "50 packets" }
loss = { model = "gilbert-elliott", to_bad = "1 %", to_good = "30 %" }
[[flow]]
id = "one"
controller = "gcc-2016"
encoder = { key_period = "5 s" }
audio = {}
clock = { drift_ppm = 80 }
[[flow]]
id = "two"
controller = "gcc-2016"
start = "5 s"
access_delay = "7 ms"
encoder = { source = "ideal" }
"#;

/// Hash of [`BUSY`] with seed 1, the same constant in every profile and on every machine.
///
/// A change of behaviour changes it. Put the new value here in the commit that changes behaviour on purpose, name the change
/// in its message, and list it in the changelog under behaviour. It is a bug if another change alters this constant, or if
/// it differs between debug and release.
const BUSY_HASH: &str = "4afdaa8cba6729ad";

/// Everything of TCP that draws or rounds: both windows, both profiles, all workloads, drawn starts, beside media.
const TCP: &str = r#"
id = "test/tcp"
title = "Media among TCP flows"
duration = "40s"
[path]
rtt = "80ms"
[path.forward]
capacity = "4 Mbps"
queue = { limit = "150 ms" }
loss = "0.2 %"
[path.reverse]
capacity = "300 kbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[flow]]
id = "bulk"
kind = "tcp"
count = 3
start = "2 s"
start_spread = "5 s"
[[flow]]
id = "periods"
kind = "tcp"
congestion = "new-reno"
profile = "rfc"
workload = { kind = "on-off", on = "3 s", off = "4 s" }
[[flow]]
id = "transfers"
kind = "tcp"
profile = "rfc"
workload = { kind = "short", size = ["20 KB", "1 MB"], pause = "1 s" }
"#;

/// Hash of [`TCP`] with seed 1, on the same terms as [`BUSY_HASH`].
const TCP_HASH: &str = "23fbeeafbe9c9a07";

fn scenario(settings: &[&str], controller: Option<&str>) -> Scenario {
    scenario_of(BUSY, settings, controller)
}

fn scenario_of(text: &str, settings: &[&str], controller: Option<&str>) -> Scenario {
    load_from(&Origin::from_text("busy.toml", text), controller, settings, registry())
}

fn hash(scenario: &Scenario, seed: u64) -> String {
    simulator().run(scenario, seed, None).unwrap().trace_hash
}

/// Returns the hash of a run whose events are observed.
fn observed(scenario: &Scenario, seed: u64, signals: bool, on_event: impl FnMut(&EventRecord)) -> String {
    let mut listener = Listener { signals, on_event };
    simulator().run(scenario, seed, Some(&mut listener)).unwrap().trace_hash
}

#[test]
fn trace_hashes_are_pinned() {
    assert_eq!(hash(&scenario(&[], None), 1), BUSY_HASH);
    assert_eq!(hash(&scenario_of(TCP, &[], None), 1), TCP_HASH);
}

#[test]
fn runs_depend_only_on_the_seed() {
    for text in [BUSY, TCP] {
        let scenario = scenario_of(text, &["duration=20s"], None);
        let hashes: BTreeSet<String> = (1..=10).map(|seed| hash(&scenario, seed)).collect();
        assert_eq!(hashes.len(), 10, "ten seeds, ten runs");
        for seed in [1, 7, u64::MAX] {
            let run = || simulator().run(&scenario, seed, None).unwrap();
            assert_eq!(run(), run(), "seed {seed}");
        }
    }
}

#[test]
fn observers_do_not_change_a_run() {
    for text in [BUSY, TCP] {
        let scenario = scenario_of(text, &[], None);
        let (mut events, mut signals) = (0u64, 0u64);
        let count = |n: &mut u64, event: &EventRecord, wanted: bool| {
            *n += u64::from(wanted == matches!(event, EventRecord::Signal { .. }))
        };
        assert_eq!(observed(&scenario, 3, false, |event| count(&mut events, event, false)), hash(&scenario, 3));
        assert_eq!(observed(&scenario, 3, true, |event| count(&mut signals, event, true)), hash(&scenario, 3));
        assert!(events > 10_000 && signals > 1_000, "{events} events, {signals} signals");
    }
}

#[test]
fn threads_do_not_change_results() {
    let scenario = scenario(&["duration=20s"], None);
    let seeds: Vec<u64> = (1..=8).collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let result = pool.install(|| simulator().run_all(&scenario, &seeds).unwrap());
        assert_eq!(result.runs.iter().map(|r| r.seed).collect::<Vec<_>>(), seeds, "runs come in order of seed");
        result
    };
    let alone = on(1);
    for threads in [2, 5] {
        assert_eq!(on(threads), alone, "{threads} threads");
    }
}

#[test]
fn the_smallest_change_of_a_link_changes_the_run() {
    let standard = ["duration=30s", "path.forward.capacity=1 Mbps", "path.forward.queue.limit=8 packets"];
    let changed = |change: &str| hash(&scenario(&[&standard[..], &[change]].concat(), None), 1);
    let before = hash(&scenario(&standard, None), 1);
    for change in [
        "path.forward.delay=25001 us",
        "path.reverse.delay=25001 us",
        "path.forward.queue.limit=9 packets",
        "path.forward.capacity=1000001 bps",
        "path.forward.loss=2 %",
        "path.forward.jitter.std=3001 us",
        "path.reverse.loss.to_bad=20 %",
        "flow.two.access_delay=7001 us",
        "flow.two.host.jitter=1 us",
    ] {
        assert_ne!(changed(change), before, "{change}");
    }
    // The same value in another notation gives the same run.
    for same in ["path.forward.capacity=1000 kbps", "path.forward.delay=25 ms", "path.rtt=0.05 s", "title=other"] {
        assert_eq!(changed(same), before, "{same}");
    }
}

/// Returns whether each packet of a hop survived its wire, in the order in which the packets left its server.
fn fates(controller: &str) -> [Vec<bool>; 2] {
    // The order of leaving is that of due times while no packet overtakes, so events come in the order of random draws.
    let mut fates = [Vec::new(), Vec::new()];
    observed(&scenario(&[], Some(controller)), 5, false, |event| match event {
        EventRecord::Crossed { hop, .. } => fates[usize::from(*hop)].push(true),
        EventRecord::Dropped { hop, reason: DropReason::Loss, .. } => fates[usize::from(*hop)].push(false),
        _ => {}
    });
    fates
}

#[test]
fn random_losses_do_not_depend_on_the_controller() {
    let fixed = fates("fixed");
    for entry in Registry::standard().iter().filter(|entry| entry.name() != "fixed") {
        let others = fates(entry.name());
        assert_ne!(others[0].len(), fixed[0].len(), "{} behaves differently", entry.name());
        for (one, two) in others.iter().zip(&fixed) {
            let n = one.len().min(two.len());
            assert!(one[..n].contains(&false) && n > 100, "{}: {n} packets", entry.name());
            assert_eq!(one[..n], two[..n], "{}: the same packets, by number on the hop, are lost", entry.name());
        }
    }
}

#[test]
fn another_flow_does_not_shift_random_draws_of_the_first() {
    // Sizes of the frames that `one` encodes before anything reaches it that depends on `two`.
    let frames = |settings: &[&str]| {
        let mut sizes = Vec::new();
        observed(&scenario(settings, Some("fixed")), 9, false, |event| match event {
            EventRecord::Sent { packet, at } if packet.flow.0 == 0 && packet.class == PacketClass::Media => {
                sizes.push((at.as_nanos(), packet.size.as_bytes()));
            }
            _ => {}
        });
        sizes.truncate(500);
        sizes
    };
    let with_two = frames(&["flow.one.retransmit=false"]);
    let alone = frames(&["flow.one.retransmit=false", "flow.two.start=39 s"]);
    assert_eq!(with_two.len(), 500);
    assert_eq!(with_two, alone);
}
