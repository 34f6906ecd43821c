// SPDX-License-Identifier: MIT OR Apache-2.0
//! Validation of the simulator against itself, and against worlds that differ from it in one respect.

use crate::altered_simulator::AlteredSimulator;
use crate::fixtures::{registry, scenario, simulator};
use paceline::Registry;
use paceline_lab::results::{RunInputs, Store, Validation, Verdict};
use paceline_lab::run::Runner;
use paceline_lab::run_cache;
use paceline_lab::validate::{ValidationRun, validation_of};
use paceline_netsim::records::{Environment, HostStats};
use paceline_netsim::sim::Simulator;
use paceline_netsim::world::World;
use paceline_scenario::Scenario;
use paceline_units::TimeDelta;
use std::fs;
use std::path::PathBuf;

const SCENARIO: &str = r#"
id = "test/validation"
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

fn other() -> AlteredSimulator {
    AlteredSimulator::named("other")
}

fn made(
    world: &dyn World,
    scenario: &Scenario,
    seeds: &[u64],
    into: Option<(&Store, &RunInputs)>,
) -> Vec<ValidationRun> {
    let runner = Runner::new(world, registry());
    seeds.iter().map(|seed| run_cache::make(&runner, scenario, *seed, into).unwrap()).collect()
}

fn validation(scenario: &Scenario, other: &AlteredSimulator, seeds: &[u64]) -> Validation {
    let (sim, other) = (made(&Simulator, scenario, seeds, None), made(other, scenario, seeds, None));
    validation_of(scenario, Vec::new(), String::new(), ["sim", "other"], [&sim, &other])
}

fn inputs(text: &str) -> RunInputs {
    RunInputs { scenario_text: text.to_owned(), ..RunInputs::default() }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("validation-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_world_does_not_differ_from_itself() {
    let scenario = scenario(SCENARIO, &[]);
    let found = validation(&scenario, &other(), &[1, 2, 3]);
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
    // The distance between seeds is not 0 and not 1.
    let between = queue.between_seeds.map(Option::unwrap);
    assert!(between[0] == between[1] && (0.01..0.9).contains(&between[0]), "{between:?}");
    assert!(found.verdict() == Verdict::Holds && found.verdicts.len() == 2);
    assert!(
        found.verdicts.iter().all(|v| v.difference == Some(0.0) && v.judgement.verdict == Verdict::Holds),
        "{:?}",
        found.verdicts
    );
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Validation>(&text).unwrap(), found);
}

#[test]
fn a_longer_queuing_delay_changes_only_its_own_metrics() {
    let scenario = scenario(SCENARIO, &[]);
    let of =
        |ms: i64| validation(&scenario, &AlteredSimulator { longer: TimeDelta::from_millis(ms), ..other() }, &[1, 2]);
    // The 95th percentile is 190 ms without; with 80 ms more, a quarter of it is 67 ms.
    for (ms, verdict) in [(29, Verdict::Holds), (45, Verdict::Holds), (80, Verdict::Fails)] {
        let found = of(ms);
        for m in &found.measured {
            let wanted = if m.metric.starts_with("queue_ms") { ms as f64 } else { 0.0 };
            let mean = m.difference.unwrap().mean;
            // Percentiles have three digits.
            assert!((mean - wanted).abs() <= 0.003 * (wanted + 200.0) * f64::from(u8::from(wanted > 0.0)), "{m:?}");
        }
        let [used, p95] = &found.verdicts[..] else { panic!("{:?}", found.verdicts) };
        assert_eq!((used.metric.as_str(), used.judgement.verdict), ("utilization", Verdict::Holds));
        assert_eq!(
            (p95.metric.as_str(), p95.judgement.verdict, found.verdict()),
            ("queue_ms.p95", verdict, verdict),
            "{p95:?}"
        );
        let queue = found.queue_delay.unwrap();
        assert!(queue.ks > 0.1 && queue.ks <= 1.0 && queue.packets[0] == queue.packets[1], "{queue:?}");
        assert!(queue.at_ms.is_some_and(|at| (0.1..=280.0).contains(&at)), "{queue:?}");
    }
}

/// The distance covers the same packets as the percentiles of the hop.
#[test]
fn the_distribution_counts_every_packet() {
    let scenario = scenario(SCENARIO, &[]);
    let runner = simulator();
    let samples = runner.run(&scenario, 1, None).unwrap().whole.link.queue_ms.unwrap().samples;
    let queue = validation(&scenario, &other(), &[1]).queue_delay.unwrap();
    assert_eq!(queue.packets, [samples; 2]);
    assert!(samples > 500 && queue.between_seeds == [None, None], "{samples}");
}

#[test]
fn a_stored_run_is_reused_if_its_inputs_are_equal_and_it_is_complete() {
    let (scenario, registry) = (scenario(SCENARIO, &[]), Registry::standard());
    let disturbed = |_| {
        Some(HostStats {
            idle: 0.25,
            others: 0.125,
            late_us: Default::default(),
            wake_us: Default::default(),
            disturbed: Some("another process took a processor for 40 ms".to_owned()),
            attempts: 3,
        })
    };
    let other = AlteredSimulator { machine: disturbed, ..other() };
    let dir = folder("stored");
    let store = Store::create(&dir).unwrap();
    let (inputs, fresh) = (inputs(SCENARIO), made(&other, &scenario, &[1, 2], None));
    let stored = |store: &Store, inputs: &RunInputs, world: &str, seed| {
        run_cache::find::<ValidationRun>((store, inputs), &registry, world, &scenario, seed).unwrap()
    };
    assert_eq!(stored(&store, &inputs, "other", 1), None);
    assert_eq!(made(&other, &scenario, &[1, 2], Some((&store, &inputs))), fresh);
    for (seed, run) in [1, 2].into_iter().zip(&fresh) {
        assert_eq!(stored(&store, &inputs, "other", seed).as_ref(), Some(run));
    }
    let line = &validation_of(&scenario, Vec::new(), String::new(), ["other", "other"], [&fresh, &fresh]).runs[0][1];
    assert_eq!((line.seed, line.machine.as_ref()), (2, (other.machine)(2).as_ref()));

    // Another world, seed, text, version or change is another run.
    assert_eq!((stored(&store, &inputs, "sim", 1), stored(&store, &inputs, "other", 3)), (None, None));
    let environment = Environment { version: "2".to_owned(), ..Environment::default() };
    let later = RunInputs { environment, ..inputs.clone() };
    let changed = RunInputs { changes: vec!["path.rtt=50ms".to_owned()], ..inputs.clone() };
    let dated = RunInputs { created: Some("today".to_owned()), ..inputs.clone() };
    for unlike in [&later, &changed, &self::inputs("id = 'x'")] {
        assert_eq!(stored(&store, unlike, "other", 1), None);
    }
    assert_eq!(stored(&store, &dated, "other", 1).as_ref(), Some(&fresh[0]));
    // A run without a table.
    let of = |seed: u64| dir.join(format!("runs/test_validation-gcc-2016+cubic-other-seed{seed}"));
    fs::remove_file(of(1).join("flows.parquet")).unwrap();
    assert_eq!(stored(&store, &inputs, "other", 1), None);
    assert_eq!(stored(&store, &inputs, "other", 2).as_ref(), Some(&fresh[1]));
}

#[test]
fn runs_in_real_time_are_sequential() {
    let (scenario, registry) = (scenario(SCENARIO, &["duration=2s"]), Registry::standard());
    let other = other();
    let runner = Runner::new(&other, &registry);
    let seeds: Vec<u64> = (1..=8).collect();
    let runs = runner.run_all(&scenario, &seeds).unwrap().runs;
    assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), seeds);
    assert_eq!(other.run_count(), 8);
    let seeds_run = other.seeds.lock().unwrap();
    assert!(seeds_run.chunks(2).all(|pair| pair[0] == pair[1]), "{seeds_run:?}");
}
