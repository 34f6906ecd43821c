// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sweeps on other engines than local threads: rows in any order, some of them twice.

use crate::fixtures::{registry, simulator};
use paceline::{Config, Controller, Decision, Entry, Event, Parameters, Registry, SendHalf, Setup, Signals};
use paceline_lab::results::Verdict;
use paceline_lab::run::Runner;
use paceline_lab::sweep::{JobRow, Sweep, SweepError, SweepFolder};
use paceline_scenario::{Catalogue, Origin};
use paceline_units::{Rate, Time};
use std::fs;
use std::path::{Path, PathBuf};

const SWEEP: &str = r#"
id = "test/gains"
title = "Two gains, two controllers"
repeats = 2
controllers = ["gcc-2016", "gcc-2016-static"]

[[axis]]
keys = ["media.start_rate", "path.rtt"]
values = [["300kbps", "20ms"], ["900kbps", "100ms"], ["900kbps", "20ms"]]

[[axis]]
key = "media.config.beta"
linear = { from = 0.8, to = 0.9, steps = 5 }

[[measure]]
name = "used"
scenario = "mmsys16/table1"
set = { duration = "3s" }
metric = "utilization"

[[measure]]
name = "delay"
scenario = "mmsys16/table1"
set = { duration = "3s" }
metric = "queue_p95_ms"
window = ["1s", "3s"]

[[measure]]
name = "of three"
scenario = "mmsys16/fig5"
set = { duration = "2s" }
metric = "throughput_bps"

[sum]
normalised = true
"#;

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep").join(name);
    let _ = fs::remove_dir_all(&dir);
    dir
}

fn open(dir: &Path, sweep: &Sweep, registry: &Registry) -> SweepFolder {
    SweepFolder::open(dir, sweep, "sim", registry, true).unwrap()
}

fn tables(dir: &Path) -> Vec<Vec<u8>> {
    ["rows.parquet", "points.parquet", "result.json"].iter().map(|name| fs::read(dir.join(name)).unwrap()).collect()
}

#[test]
fn tables_do_not_depend_on_the_order_of_rows() {
    let runner = simulator();
    let sweep = Sweep::load(&Origin::from_text("gains.sweep.toml", SWEEP), registry()).unwrap();
    // 2 controllers, 3 pairs, 5 values; 2 runs for each point, because two measures share theirs; 2 seeds.
    assert_eq!((sweep.points(), sweep.jobs()), (30, 120));

    let (here, there) = (folder("here"), folder("there"));
    let local = {
        let folder = open(&here, &sweep, registry());
        sweep.run_into(&runner, &folder, &|| ()).unwrap();
        folder.merge(&sweep).unwrap()
    };

    // Another process writes batches of odd sizes in reverse order, each twice; one is missing at first.
    let elsewhere = open(&there, &sweep, registry());
    let mut batches = elsewhere.batches(7);
    assert_eq!((batches.len(), batches[0].clone(), batches[17].clone()), (18, 0..7, 119..120));
    batches.reverse();
    let left_out = batches.remove(5);
    let rows = |range: &std::ops::Range<u64>| -> Vec<JobRow> {
        let rows = sweep.batch(&runner, range.clone()).unwrap();
        // As transferred over a network.
        serde_json::from_str(&serde_json::to_string(&rows).unwrap()).unwrap()
    };
    for batch in &batches {
        elsewhere.write(&rows(batch)).unwrap();
        elsewhere.write(&rows(batch)[1..]).unwrap();
    }
    match elsewhere.merge(&sweep) {
        Err(SweepError::Incomplete { job, .. }) => assert_eq!(job, left_out.start),
        other => panic!("{other:?}"),
    }
    assert!(matches!(SweepFolder::open(&there, &sweep, "sim", registry(), true), Err(SweepError::Busy { .. })));
    drop(elsewhere);
    let elsewhere = open(&there, &sweep, registry());
    assert_eq!((elsewhere.done_jobs(), elsewhere.batches(64)), (113, vec![left_out.clone()]));
    elsewhere.write(&rows(&left_out)).unwrap();
    assert_eq!(elsewhere.merge(&sweep).unwrap(), local);
    assert_eq!(tables(&here), tables(&there));
    assert_eq!(sweep.run(&runner, &|| ()).unwrap(), local, "the result does not depend on the folder");
    // The first controller's points come first, and differ from the second's.
    let beta = |point: usize| local.points[point].at.iter().map(toml::Value::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(beta(0), r#""gcc-2016" "300kbps" "20ms" 0.8"#);
    assert_eq!(beta(29), r#""gcc-2016-static" "900kbps" "20ms" 0.9"#);
}

/// A controller whose rate is part of its code, and not of the scenario or the version.
#[derive(Clone, Debug)]
struct Steady(Rate);

impl Parameters for Steady {}

impl Config for Steady {
    fn halves(&self, _: &Setup) -> Controller {
        Controller::from_sender(self.clone())
    }
}

impl SendHalf for Steady {
    fn handle_event(&mut self, _: Time, _: &Event<'_>, _: &mut Signals) {}

    fn decision(&self) -> Decision {
        Decision::new(self.0).with_pacing(self.0.scale(1.5))
    }
}

#[test]
fn a_folder_is_not_continued_by_other_code() {
    let with = |kbps: u64| {
        let mut registry = Registry::standard();
        registry.add(Entry::new("steady", "a constant rate", "this test", Steady(Rate::from_kbps(kbps))));
        registry
    };
    let text = SWEEP.replace("\"gcc-2016-static\"", "\"steady\"").replace("\n[[axis]]\nkey =", "\n[ignored]\nkey =");
    let from = text.find("[ignored]").unwrap();
    let to = text.find("[[measure]]").unwrap();
    let text = text[..from].to_owned() + &text[to..];
    let (old, new) = (with(300), with(400));
    let runner = |registry| Runner::simulator(registry);
    let origin = Origin::from_text("steady.sweep.toml", text);
    let sweep = Sweep::load(&origin, &old).unwrap();
    // 2 controllers, 3 pairs, 2 subjects, 2 seeds: `steady` begins at job 12.
    assert_eq!(sweep.jobs(), 24);
    let dir = folder("code");
    let begun = open(&dir, &sweep, &old);
    let rows = sweep.batch(&runner(&old), 0..14).unwrap();
    begun.write(&rows[..12]).unwrap();
    // Without a stored job of the controller its code does not matter.
    sweep.verify(&runner(&new), &begun).unwrap();
    begun.write(&rows[12..]).unwrap();
    sweep.verify(&runner(&old), &begun).unwrap();
    let addresses = |rows: &[JobRow]| rows.iter().map(|row| row.address.clone()).collect::<Vec<_>>();
    assert_eq!(
        addresses(&sweep.batch(&runner(&new), 12..14).unwrap()),
        addresses(&rows[12..]),
        "addresses are the same"
    );
    match sweep.run_into(&runner(&new), &begun, &|| ()) {
        Err(SweepError::Foreign { differs, .. }) => {
            assert!(differs.contains("job 12") && differs.contains("code"), "{differs}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(begun.done_jobs(), 14, "nothing was added");
    let again = begun.write(&[JobRow { job: 24, ..rows[0].clone() }]);
    assert!(matches!(again, Err(SweepError::Beyond { job: 24, jobs: 24, .. })), "{again:?}");
    sweep.run_into(&runner(&old), &begun, &|| ()).unwrap();
    assert_eq!(begun.done_jobs(), 24);
}

#[test]
fn without_a_sum_no_point_is_best() {
    let runner = simulator();
    let load = |text: &str| {
        let few = text.replace("steps = 5", "steps = 2").replace("repeats = 2", "repeats = 1");
        let text = format!("{few}\n[refine]\nbest = 1\nrepeats = 2\n");
        let sweep = Sweep::load(&Origin::from_text("gains.sweep.toml", text), registry()).unwrap();
        let result = sweep.run(&runner, &|| ()).unwrap();
        let refined = sweep.refined(&result, registry()).unwrap().map(|refined| (refined.points(), refined.repeats));
        (result.best.is_some(), refined)
    };
    assert_eq!(load(SWEEP), (true, Some((1, 2))));
    // No flow rises from 300 kbit/s to its share in 2 s.
    let never = SWEEP.replace("throughput_bps", "convergence_time_s").replace("900kbps", "300kbps");
    assert_eq!(load(&never), (false, None));
}

#[test]
fn addresses_cover_exactly_the_inputs_of_a_job() {
    let runner = simulator();
    let rows = |text: &str| {
        let sweep = Sweep::load(&Origin::from_text("gains.sweep.toml", text), registry()).unwrap();
        let rows = sweep.batch(&runner, 0..4).unwrap();
        rows.into_iter().map(|row| row.address).collect::<Vec<String>>()
    };
    let all = rows(SWEEP);
    let mut distinct = all.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "two subjects on two seeds");
    assert_eq!(rows(&SWEEP.replace("Two gains", "Some gains")), all, "the title does not matter");
    let fewer = SWEEP.replace("steps = 5", "steps = 2");
    assert_eq!(rows(&fewer), all, "other points do not matter");
    let longer = rows(&SWEEP.replace("duration = \"2s\"", "duration = \"4s\""));
    assert_eq!((&longer[..2], longer[2] == all[2]), (&all[..2], false), "only the second subject lasts longer");
    let sooner = rows(&SWEEP.replace("from = 0.8,", "from = 0.81,"));
    assert!(sooner.iter().zip(&all).all(|(a, b)| a != b));
}

/// The sensitivity sweeps vary existing fields around their defaults, within their allowed range.
#[test]
fn sensitivities_start_from_the_defaults() {
    let (mut constants, mut without) = (0, registry().iter().map(Entry::name).collect::<Vec<_>>());
    for id in Catalogue.sweeps().filter(|id| id.starts_with("sensitivity/")) {
        let sweep = Sweep::load(&Catalogue.find_sweep(id).unwrap(), registry()).unwrap();
        let [controllers, axis] = &sweep.axes[..] else { panic!("{id}: controllers and constants") };
        assert_eq!(controllers.at(0)[0].as_str(), id.strip_prefix("sensitivity/"));
        without.retain(|name| controllers.at(0)[0].as_str() != Some(name));
        let fields = registry().get(controllers.at(0)[0].as_str().unwrap()).unwrap().fields();
        for (key, [low, base, high]) in axis.keys.iter().zip(axis.constants().unwrap()) {
            let field = fields.iter().find(|f| Some(f.name) == key.strip_prefix("media.config."));
            let field = field.unwrap_or_else(|| panic!("{id}: {key}"));
            assert_eq!(field.default, base, "{id}: {key}");
            assert!(field.range.0 <= low && low < base && base < high && high <= field.range.1, "{id}: {key}");
            constants += 1;
        }
    }
    assert!((157..207).contains(&constants), "{constants}");
    // Every controller has one except for variants and the constant rate.
    let is_variant =
        |name: &str| ["gcc-2016-", "googcc-", "nada-", "scream-", "fixed"].iter().any(|of| name.starts_with(of));
    let missing: Vec<_> = without.iter().filter(|name| !is_variant(name)).collect();
    assert!(missing.is_empty(), "no sweep in scenarios/sensitivity for {missing:?}");
}

/// The paper: U is larger where the threshold rises faster than it falls. On 8 x 8 of the 200 x 200 points.
#[test]
fn figure_8_is_larger_where_the_threshold_rises_faster() {
    let runner = simulator();
    let coarse: Vec<_> = ["axis.0.log.steps=8", "axis.1.log.steps=8"].iter().map(|set| set.parse().unwrap()).collect();
    let sweep = Sweep::load_with(&Catalogue.find_sweep("mmsys16/fig8").unwrap(), &coarse, registry()).unwrap();
    assert_eq!((sweep.points(), sweep.jobs()), (64, 192));
    let result = sweep.run(&runner, &|| ()).unwrap();
    let sides = result.sides.as_ref().unwrap();
    assert_eq!((sides.larger.1, sides.less.1, sides.verdict), (28, 28, Verdict::Holds));
    let (larger, less) = (sides.larger.0, sides.less.0);
    assert!((1.8..3.0).contains(&larger) && (0.3..1.6).contains(&less), "{sides:?}");
    // The paper's point, (0.01, 0.00018), is among the best; the best is no farther than two steps of the grid.
    let (best, published) = (result.best.as_ref().unwrap(), result.published.as_ref().unwrap());
    assert!((1..=16).contains(&published.rank), "{published:?}");
    assert!(best.rank == 1 && best.deficit == 0.0 && best.decades.unwrap() < 1.5, "{best:?}");
    assert!((0.0..0.4).contains(&published.deficit), "{published:?}");
}
