//! How far two worlds lie apart: the simulator beside itself, and beside worlds that are the simulator but for one thing.

use paceline::Registry;
use paceline_lab::gap::{Gap, GapRun};
use paceline_lab::machine::Machine;
use paceline_lab::plan::Plan;
use paceline_lab::rows::{Row, RowSink};
use paceline_lab::run::Runner;
use paceline_lab::scenario::{Changes, Origin, load};
use paceline_lab::sight::Sight;
use paceline_lab::sim::Simulator;
use paceline_lab::store::{RunManifest, Store};
use paceline_lab::world::{Outcome, World, WorldError};
use paceline_units::TimeDelta;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

const SCENARIO: &str = r#"
id = "test/gap"
title = "A call beside a download"
duration = "10s"
[path]
rtt = "40ms"
[path.forward]
capacity = "1Mbps"
queue = { limit = "200ms" }
[[flow]]
id = "video"
controller = "gcc-2016"
[[flow]]
id = "download"
kind = "tcp"
"#;

/// The simulator by another name: each packet waits longer, and the machine says something.
#[derive(Default)]
struct Other {
    longer: TimeDelta,
    machine: Option<Machine>,
    /// Seeds as their runs begin and end.
    told: Mutex<Vec<u64>>,
}

struct Longer<'a>(&'a mut dyn RowSink, TimeDelta);

impl RowSink for Longer<'_> {
    fn row(&mut self, row: &Row) {
        let mut row = *row;
        if let Row::Crossed { hop: 0, waited, .. } = &mut row {
            *waited += self.1;
        }
        self.0.row(&row);
    }
    fn wants_signals(&self) -> bool {
        self.0.wants_signals()
    }
    fn wants_sights(&self) -> bool {
        self.0.wants_sights()
    }
    fn sight(&mut self, sight: &Sight<'_>) {
        self.0.sight(sight);
    }
}

impl World for Other {
    fn name(&self) -> &'static str {
        "other"
    }
    fn real_time(&self) -> bool {
        true
    }
    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        self.told.lock().unwrap().push(seed);
        let outcome = Simulator.run(plan, registry, seed, &mut Longer(rows, self.longer))?;
        self.told.lock().unwrap().push(seed);
        Ok(Outcome { machine: self.machine.clone(), ..outcome })
    }
}

fn plan(text: &str) -> Plan {
    load(&Origin::from_text("gap.toml", text), &Changes::default(), &Registry::standard()).unwrap()
}

fn made(world: &dyn World, plan: &Plan, seeds: &[u64], into: Option<(&Store, &RunManifest)>) -> Vec<GapRun> {
    let registry = Registry::standard();
    let runner = Runner { world, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    seeds.iter().map(|seed| GapRun::made(&runner, plan, *seed, into).unwrap()).collect()
}

fn gap(plan: &Plan, other: &Other, seeds: &[u64]) -> Gap {
    let (sim, other) = (made(&Simulator, plan, seeds, None), made(other, plan, seeds, None));
    Gap::of(plan, Vec::new(), String::new(), ["sim", "other"], [&sim, &other])
}

fn inputs(text: &str) -> RunManifest {
    RunManifest { version: "1".to_owned(), scenario_text: text.to_owned(), ..RunManifest::default() }
}

/// A folder for one test, emptied.
fn folder(name: &str) -> PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gap-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_world_beside_itself_has_no_gap() {
    let plan = plan(SCENARIO);
    let found = gap(&plan, &Other::default(), &[1, 2, 3]);
    let names: Vec<_> =
        found.measured.iter().map(|m| (m.hop.is_some(), m.flow.as_deref(), m.metric.as_str())).collect();
    assert!(names.contains(&(true, None, "utilization")) && names.contains(&(false, None, "jain")), "{names:?}");
    assert!(
        names.contains(&(false, Some("download"), "share")) && names.contains(&(false, Some("video"), "rtt_ms.p99"))
    );
    for m in &found.measured {
        let (Some(sim), Some(difference)) = (m.worlds[0], m.difference) else { panic!("{m:?}") };
        assert_eq!(m.worlds, [Some(sim); 2]);
        assert_eq!((difference.mean, difference.std, difference.n), (0.0, 0.0, 3), "{m:?}");
    }
    let value = |hop: bool, metric: &str| {
        found.measured.iter().find(|m| m.hop.is_some() == hop && m.metric == metric).unwrap().worlds[0].unwrap()
    };
    let (used, p95) = (value(true, "utilization"), value(true, "queue_ms.p95"));
    assert!((0.8..=1.0).contains(&used.mean) && (50.0..200.0).contains(&p95.mean), "{used:?} {p95:?}");

    let queue = found.queue_delay.as_ref().unwrap();
    assert_eq!((queue.ks, queue.at_ms, queue.by_seed.as_slice()), (0.0, None, &[Some(0.0); 3][..]));
    // Seeds differ among themselves, and by less than all.
    let between = queue.between_seeds.map(Option::unwrap);
    assert!(between[0] == between[1] && (0.01..0.9).contains(&between[0]), "{between:?}");
    assert!(found.is_within() && found.verdicts.len() == 2);
    assert!(found.verdicts.iter().all(|v| v.difference == Some(0.0) && v.sure == Some(true)), "{:?}", found.verdicts);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Gap>(&text).unwrap(), found);
}

#[test]
fn a_longer_wait_shows_in_what_it_moves_and_in_nothing_else() {
    let plan = plan(SCENARIO);
    let of = |ms: i64| gap(&plan, &Other { longer: TimeDelta::from_millis(ms), ..Other::default() }, &[1, 2]);
    // The 95th percentile is 190 ms without; a quarter of it with 80 ms more is 67 ms.
    for (ms, within) in [(29, true), (45, true), (80, false)] {
        let found = of(ms);
        for m in &found.measured {
            let wanted = if m.metric.starts_with("queue_ms") { ms as f64 } else { 0.0 };
            let mean = m.difference.unwrap().mean;
            // Percentiles have three digits.
            assert!((mean - wanted).abs() <= 0.003 * (wanted + 200.0) * f64::from(u8::from(wanted > 0.0)), "{m:?}");
        }
        let [used, p95] = &found.verdicts[..] else { panic!("{:?}", found.verdicts) };
        assert_eq!((used.metric.as_str(), used.within), ("utilization", true));
        assert_eq!((p95.metric.as_str(), p95.within, found.is_within()), ("queue_ms.p95", within, within), "{p95:?}");
        let queue = found.queue_delay.unwrap();
        assert!(queue.ks > 0.1 && queue.ks <= 1.0 && queue.packets[0] == queue.packets[1], "{queue:?}");
        assert!(queue.at_ms.is_some_and(|at| (0.1..=280.0).contains(&at)), "{queue:?}");
    }
}

/// The distance is taken of the packets that the hop's percentiles are taken of.
#[test]
fn every_packet_that_waited_is_counted() {
    let plan = plan(SCENARIO);
    let registry = Registry::standard();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let samples = runner.run(&plan, 1, None).unwrap().whole.link.queue_ms.unwrap().samples;
    let queue = gap(&plan, &Other::default(), &[1]).queue_delay.unwrap();
    assert_eq!(queue.packets, [samples; 2]);
    assert!(samples > 500 && queue.between_seeds == [None, None], "{samples}");
}

#[test]
fn a_stored_run_is_taken_if_it_fits_and_whole() {
    let (plan, registry) = (plan(SCENARIO), Registry::standard());
    let disturbed = Machine {
        idle: 0.25,
        others: 0.125,
        late_us: Default::default(),
        wake_us: Default::default(),
        disturbed: Some("another process took a processor for 40 ms".to_owned()),
        attempts: 3,
    };
    let other = Other { machine: Some(disturbed), ..Other::default() };
    let dir = folder("stored");
    let store = Store::create(&dir).unwrap();
    let (inputs, fresh) = (inputs(SCENARIO), made(&other, &plan, &[1, 2], None));
    let stored = |store: &Store, inputs: &RunManifest, world: &str, seed| {
        GapRun::stored((store, inputs), &registry, world, &plan, seed).unwrap()
    };
    assert_eq!(stored(&store, &inputs, "other", 1), None);
    assert_eq!(made(&other, &plan, &[1, 2], Some((&store, &inputs))), fresh);
    for (seed, run) in [1, 2].into_iter().zip(&fresh) {
        assert_eq!(stored(&store, &inputs, "other", seed).as_ref(), Some(run));
    }
    let line = &Gap::of(&plan, Vec::new(), String::new(), ["other", "other"], [&fresh, &fresh]).runs[0][1];
    assert_eq!((line.seed, line.machine.as_ref()), (2, other.machine.as_ref()));

    // Another world, seed, text, version or change is another run.
    assert_eq!((stored(&store, &inputs, "sim", 1), stored(&store, &inputs, "other", 3)), (None, None));
    let later = RunManifest { version: "2".to_owned(), ..inputs.clone() };
    let changed = RunManifest { changes: vec!["path.rtt=50ms".to_owned()], ..inputs.clone() };
    let dated = RunManifest { created: Some("today".to_owned()), ..inputs.clone() };
    for unlike in [&later, &changed, &self::inputs("id = 'x'")] {
        assert_eq!(stored(&store, unlike, "other", 1), None);
    }
    assert_eq!(stored(&store, &dated, "other", 1).as_ref(), Some(&fresh[0]));
    // A run that is not whole is none, and neither is one without what a gap needs.
    let of = |seed: u64| dir.join(format!("runs/test_gap-gcc-2016+cubic-other-seed{seed}"));
    fs::remove_file(of(1).join("flows.parquet")).unwrap();
    let text = fs::read_to_string(of(2).join("run.json")).unwrap();
    fs::write(of(2).join("run.json"), text.replace("\"waiting\"", "\"wading\"")).unwrap();
    assert_eq!((stored(&store, &inputs, "other", 1), stored(&store, &inputs, "other", 2)), (None, None));
}

/// Seeds of a world in real time do not share the machine.
#[test]
fn runs_in_real_time_are_made_one_after_the_other() {
    let (plan, registry) = (plan(&SCENARIO.replace("10s", "2s")), Registry::standard());
    let other = Other::default();
    let runner = Runner { world: &other, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let seeds: Vec<u64> = (1..=8).collect();
    let runs = runner.run_all(&plan, &seeds).unwrap().runs;
    assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), seeds);
    let told = other.told.lock().unwrap();
    assert_eq!(told.len(), 16);
    assert!(told.chunks(2).all(|pair| pair[0] == pair[1]), "{told:?}");
}
