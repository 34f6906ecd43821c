//! Same plan and seed, same bits: whoever listens, on however many threads, however it was compiled.

use paceline::Registry;
use paceline_lab::plan::Plan;
use paceline_lab::rows::{DropReason, PacketClass, Row, RowSink};
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::sim::Simulator;
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
/// A change of behaviour changes it, and then says so: put the new value here in the commit that changes behaviour on
/// purpose, name in its message what changed, and list it in the changelog under behaviour. A change that was not meant
/// to alter behaviour and alters this constant is a bug; so is a constant that differs between debug and release.
const BUSY_HASH: &str = "5418c6d7d213e1cd";

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
const TCP_HASH: &str = "a86d8e77c1768bc8";

fn plan(settings: &[&str], controller: Option<&str>) -> Plan {
    plan_of(BUSY, settings, controller)
}

fn plan_of(text: &str, settings: &[&str], controller: Option<&str>) -> Plan {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { controller: controller.map(str::to_owned), settings, ..Changes::default() };
    match load(&Origin::from_text("busy.toml", text), &changes, &Registry::standard()) {
        Ok(plan) => plan,
        Err(problem) => panic!("{problem} {:?} {:?}", problem.line(), problem.hint()),
    }
}

fn with_runner<T>(act: impl FnOnce(&Runner<'_>) -> T) -> T {
    let registry = Registry::standard();
    act(&Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () })
}

fn hash(plan: &Plan, seed: u64) -> String {
    with_runner(|runner| runner.run(plan, seed, None).unwrap().trace_hash)
}

/// Hears what it wants of a run.
struct Listener<F> {
    signals: bool,
    hear: F,
}

impl<F: FnMut(&Row)> RowSink for Listener<F> {
    fn row(&mut self, row: &Row) {
        (self.hear)(row);
    }
    fn wants_signals(&self) -> bool {
        self.signals
    }
}

fn heard(plan: &Plan, seed: u64, signals: bool, hear: impl FnMut(&Row)) -> String {
    let mut listener = Listener { signals, hear };
    with_runner(|runner| runner.run(plan, seed, Some(&mut listener)).unwrap().trace_hash)
}

#[test]
fn the_hash_of_a_run_is_pinned() {
    assert_eq!(hash(&plan(&[], None), 1), BUSY_HASH);
    assert_eq!(hash(&plan_of(TCP, &[], None), 1), TCP_HASH);
}

#[test]
fn tcp_runs_are_decided_by_their_seed_whoever_listens() {
    let plan = plan_of(TCP, &["duration=20s"], None);
    let hashes: BTreeSet<String> = (1..=5).map(|seed| hash(&plan, seed)).collect();
    assert_eq!(hashes.len(), 5, "five seeds, five runs");
    let mut rows = 0u64;
    assert_eq!(heard(&plan, 2, true, |_| rows += 1), hash(&plan, 2));
    assert_eq!(heard(&plan, 2, false, |_| ()), hash(&plan, 2));
    assert!(rows > 10_000, "{rows} rows");
    let (first, second) = with_runner(|r| (r.run(&plan, 7, None).unwrap(), r.run(&plan, 7, None).unwrap()));
    assert_eq!(first, second);
}

#[test]
fn a_seed_decides_a_run() {
    let plan = plan(&["duration=30s"], None);
    let hashes: BTreeSet<String> = (1..=10).map(|seed| hash(&plan, seed)).collect();
    assert_eq!(hashes.len(), 10, "ten seeds, ten runs");
    for (seed, before) in [(1, hash(&plan, 1)), (u64::MAX, hash(&plan, u64::MAX))] {
        assert_eq!(hash(&plan, seed), before, "seed {seed}");
    }
}

#[test]
fn the_whole_result_is_the_same_again() {
    let plan = plan(&["duration=30s"], None);
    let (first, second) = with_runner(|r| (r.run(&plan, 7, None).unwrap(), r.run(&plan, 7, None).unwrap()));
    assert_eq!(first, second);
}

#[test]
fn listening_changes_nothing() {
    let plan = plan(&[], None);
    let (mut rows, mut signals) = (0u64, 0u64);
    let count =
        |rows: &mut u64, row: &Row, wanted: bool| *rows += u64::from(wanted == matches!(row, Row::Signal { .. }));
    assert_eq!(heard(&plan, 3, false, |row| count(&mut rows, row, false)), hash(&plan, 3));
    assert_eq!(heard(&plan, 3, true, |row| count(&mut signals, row, true)), hash(&plan, 3));
    assert!(rows > 10_000 && signals > 1_000, "{rows} rows, {signals} signals");
}

#[test]
fn threads_change_nothing() {
    let plan = plan(&["duration=20s"], None);
    let seeds: Vec<u64> = (1..=8).collect();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let result = pool.install(|| with_runner(|runner| runner.run_all(&plan, &seeds).unwrap()));
        assert_eq!(result.runs.iter().map(|r| r.seed).collect::<Vec<_>>(), seeds, "runs come in order of seed");
        result
    };
    let alone = on(1);
    for threads in [2, 5] {
        assert_eq!(on(threads), alone, "{threads} threads");
    }
}

#[test]
fn the_smallest_change_of_a_link_is_another_run() {
    let standard = ["duration=30s", "path.forward.capacity=1 Mbps", "path.forward.queue.limit=8 packets"];
    let changed = |change: &str| hash(&plan(&[&standard[..], &[change]].concat(), None), 1);
    let before = hash(&plan(&standard, None), 1);
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
    // And what says the same in other words is the same run.
    for same in ["path.forward.capacity=1000 kbps", "path.forward.delay=25 ms", "path.rtt=0.05 s", "title=other"] {
        assert_eq!(changed(same), before, "{same}");
    }
}

/// Lost or kept, for the packets of a hop in the order in which they left its server.
fn fates(controller: &str, hop: u16) -> Vec<bool> {
    // Order of leaving is order of due time while nobody overtakes, so rows come in the order of draws.
    let mut fates = Vec::new();
    heard(&plan(&[], Some(controller)), 5, false, |row| match row {
        Row::Crossed { hop: h, .. } if *h == hop => fates.push(true),
        Row::Dropped { hop: h, reason: DropReason::Loss, .. } if *h == hop => fates.push(false),
        _ => {}
    });
    fates
}

#[test]
fn what_the_path_draws_does_not_depend_on_the_controller() {
    for (hop, way) in [(0, "independent losses"), (1, "bursts")] {
        let (one, two) = (fates("gcc-2016", hop), fates("fixed", hop));
        let n = one.len().min(two.len());
        assert_ne!(one.len(), two.len(), "the controllers behave differently");
        assert!(one[..n].contains(&false) && n > 100, "{way}: {n} packets");
        assert_eq!(one[..n], two[..n], "{way}: the same packets, by number on the hop, are lost");
    }
}

#[test]
fn another_flow_does_not_shift_the_draws_of_the_first() {
    // Sizes of the frames that `one` encodes before anything reaches it that depends on `two`.
    let frames = |settings: &[&str]| {
        let mut sizes = Vec::new();
        heard(&plan(settings, Some("fixed")), 9, false, |row| match row {
            Row::Sent { packet, at } if packet.flow.0 == 0 && packet.class == PacketClass::Media => {
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
