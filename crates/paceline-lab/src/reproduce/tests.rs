// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of verdicts on given values and on short simulations.

use super::reproduction::more_seeds;
use super::*;
use crate::judge::{Experiment, ExperimentRuns, RunValues, cells_of};
use crate::results::{Cell, CellVerdict, ExperimentReport, VerdictCounts, count_verdicts};
use crate::run::Runner;
use paceline::Registry;
use paceline_netsim::sim::Simulator;
use paceline_scenario::{Origin, Scenario};

const TWO_CASES: &str = r#"
id = "test/two"
title = "Two thresholds"
duration = "10s"
repeats = 3
[path]
rtt = "20ms"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[case]]
label = { threshold = "static" }
set = { "flow.video.controller" = "gcc-2016-static" }
[[case]]
label = { threshold = "adaptive" }
[[expect]]
metric = "rtt_p95_ms"
case = { threshold = "static" }
published = 100
claim = "cuts"
note = "the encoder"
reproduced_with = ["path.rtt=50ms"]
[[expect]]
metric = "utilization"
published = 0.9
claim = "busy"
[[assert]]
id = "cuts"
metric = "rtt_p95_ms"
case = { threshold = "adaptive" }
relative_to = { case = { threshold = "static" } }
bounds = [0, 0.7]
[[assert]]
id = "busy"
metric = "utilization"
bounds = [0.5, 1]
"#;

fn experiment(text: &str) -> Experiment {
    let origin = Origin::from_text("two.toml", text);
    Experiment::load(&origin, &[], &Registry::standard()).unwrap().with_null_sender()
}

/// Runs whose values are given by metric, case, seed and null sender.
fn runs(experiment: &Experiment, seeds: u64, value: impl Fn(&str, &str, u64, bool) -> Option<f64>) -> ExperimentRuns {
    let runs = [false, true].map(|null| {
        let of = |scenario: &Scenario| {
            let case = scenario.plan.case.to_string();
            let values = |seed| scenario.quantities().map(|q| value(&q.metric, &case, seed, null)).collect();
            let run = |seed| RunValues { trace_hash: format!("{seed:016x}"), values: values(seed) };
            (1..=seeds).map(|seed| (seed, run(seed))).collect()
        };
        experiment.scenarios(null).iter().map(of).collect()
    });
    ExperimentRuns { runs, ..ExperimentRuns::default() }
}

fn report(
    experiment: &Experiment,
    seeds: u64,
    value: impl Fn(&str, &str, u64, bool) -> Option<f64>,
) -> ExperimentReport {
    experiment.report(&runs(experiment, seeds, value), "sim")
}

/// A report of runs with these values, of which some have over-use.
fn report_with_overuse(
    experiment: &Experiment,
    seeds: u64,
    overuse: impl Fn(u64) -> bool,
    value: impl Fn(u64) -> f64,
) -> ExperimentReport {
    let count = |seed| f64::from(u8::from(overuse(seed)));
    report(experiment, seeds, |metric, _, seed, _| {
        Some(if metric == "overuse_count" { count(seed) } else { value(seed) })
    })
}

/// Loads the experiment of this text with its changes, and runs it on two seeds.
fn reproduce_text(text: &str) -> ExperimentReport {
    let (origin, registry) = (Origin::from_text("two.toml", text), Registry::standard());
    let experiment = Experiment::load(&origin, &[], &registry).unwrap().with_changes(&origin, &registry).unwrap();
    let report = reproduce(RunContext::all(&Runner::simulator(&registry)), &[experiment], Seeds::Exactly(2)).unwrap();
    report.experiments.into_iter().next().unwrap()
}

fn cell<'a>(report: &'a ExperimentReport, case: &str, metric: &str, published: bool) -> &'a Cell {
    let mut found = report.cells.iter().filter(|c| c.case.to_string() == format!("threshold={case}"));
    found.find(|c| c.metric == metric && c.published.is_some() == published).expect("there is such a cell")
}

#[test]
fn ratios_are_taken_seed_by_seed() {
    let experiment = experiment(TWO_CASES);
    // 8 / 10 and 20 / 40: mean 0.65; the ratio of the means would be 0.56.
    let report = report(&experiment, 2, |metric, case, seed, _| {
        Some(match (metric, case, seed) {
            ("utilization", ..) => 0.9,
            (_, "threshold=static", 1) => 10.0,
            (_, "threshold=static", _) => 40.0,
            (_, _, 1) => 8.0,
            _ => 20.0,
        })
    });
    let cuts = cell(&report, "adaptive", "rtt_p95_ms", false);
    assert!((cuts.measured.unwrap() - 0.65).abs() < 1e-12, "{cuts:?}");
    // t(1) = 12.706 times the deviation 0.2121 over root 2.
    assert!((cuts.ci95.unwrap() - 1.906).abs() < 1e-3, "{cuts:?}");
    assert_eq!(cuts.over.as_ref().unwrap().case.to_string(), "threshold=static");
    assert_eq!(
        (cuts.verdict, cuts.claim.as_deref()),
        (CellVerdict::Not, Some("cuts")),
        "0.65 ± 1.9 exceeds the bound of 0.7"
    );
    assert!(cuts.note.as_ref().unwrap().starts_with("too few runs"), "{cuts:?}");
    assert_eq!((cuts.published, cuts.bounds), (None, Some((0.0, 0.7))));
}

#[test]
fn a_claim_is_judged_by_its_bounds_in_the_case_of_the_value_if_there_are_any() {
    let experiment = experiment(TWO_CASES);
    // The static case is not busy; the adaptive one is, but less than published.
    let report = report(&experiment, 4, |metric, case, seed, null| {
        let spread = seed as f64 * 1e-3;
        Some(match (metric, case) {
            ("utilization", _) if null => 0.9,
            ("utilization", "threshold=static") => 0.3 + spread,
            ("utilization", _) => 0.7 + spread,
            _ if null => 300.0,
            (_, "threshold=static") => 300.0 + spread,
            _ => 150.0,
        })
    });
    let verdict = |case, metric, published| cell(&report, case, metric, published).verdict;
    assert_eq!(verdict("static", "utilization", false), CellVerdict::Not);
    assert_eq!(verdict("static", "utilization", true), CellVerdict::Not);
    assert_eq!(verdict("adaptive", "utilization", false), CellVerdict::Reproduced);
    assert_eq!(verdict("adaptive", "utilization", true), CellVerdict::Direction);
    // `cuts` has a bound only in the adaptive case, which decides on the static value, too.
    let tail = cell(&report, "static", "rtt_p95_ms", true);
    assert_eq!((tail.verdict, tail.tolerance, tail.n), (CellVerdict::Direction, Some(25.0), 4));
    let mut tail = tail.clone();
    assert_eq!(tail.moved.as_ref().unwrap().verdict, None, "it was not run");
    tail.moved.as_mut().unwrap().verdict = Some(CellVerdict::Direction);
    assert_eq!(
        (tail.note.as_deref(), tail.moved.as_ref().unwrap().by.as_slice()),
        (Some("the encoder"), &["path.rtt=50ms".to_owned()][..])
    );
    tail.note_change("test/two", report.runs_per_case());
    let command = "`paceline run test/two --case 'threshold=static' --repeats 4 --set 'path.rtt=50ms'`";
    assert_eq!(tail.note.unwrap(), format!("the encoder; not moved into tolerance by {command}"));
    let busy = cell(&report, "adaptive", "utilization", true);
    assert_eq!(
        (busy.note.as_deref(), busy.null_sender, busy.null_reproduces),
        (Some("cause not found"), Some(0.9), true)
    );

    let counts = count_verdicts(&[report]);
    let of = |t: VerdictCounts| (t.cells, t.reproduced, t.direction, t.not);
    assert_eq!(of(counts.all), (6, 2, 2, 2));
    assert_eq!(of(counts.published), (3, 0, 2, 1));
    // The null sender has the same run in both cases: it is_reproduced their utilisation and passes their bound.
    assert_eq!(of(counts.published_without_null), (1, 0, 1, 0));
    assert_eq!(of(counts.without_null), (2, 1, 1, 0));
    // `busy` passes in one of two cases, so it fails, and the null sender passes it; `cuts` passes.
    assert_eq!((counts.claims, counts.claims_held), (2, 1));
    assert_eq!((counts.claims_without_null, counts.claims_held_without_null), (1, 1));
}

#[test]
fn one_missing_value_leaves_the_cell_without_a_mean() {
    let experiment = experiment(TWO_CASES);
    let report = report(&experiment, 3, |_, _, seed, _| (seed != 2).then_some(1.0));
    assert!(report.cells.iter().all(|c| c.measured.is_none() && c.ci95.is_none() && c.verdict == CellVerdict::Not));
    let text = serde_json::to_value(&report.cells[0]).unwrap();
    assert!(text["measured"].is_null() && text["ci95"].is_null() && text["null_sender"].is_null());
}

#[test]
fn only_experiments_with_a_wide_interval_get_more_seeds() {
    let experiment = experiment(TWO_CASES);
    let wanted = |n: u64, ci95: f64| {
        let same = |n| report(&experiment, n, |_, _, _, _| Some(0.9));
        let (untouched, mut report) = (same(3), same(n));
        let cell = report.cells.iter_mut().find(|c| c.metric == "utilization" && c.published.is_some()).unwrap();
        cell.ci95 = Some(ci95).filter(|c| c.is_finite());
        more_seeds(&[untouched, report])
    };
    assert_eq!(wanted(5, 0.05), []);
    assert_eq!(wanted(5, 0.06), [(1, 6..=8)]); // 5 x 1.44 = 7.2
    assert_eq!(wanted(5, 0.2), [(1, 6..=13)]); // 80, but no more than doubled at once
    assert_eq!(wanted(30, 0.2), [(1, 31..=40)]);
    assert_eq!(wanted(40, 0.2), []);
}

#[test]
fn the_wall_time_includes_all_runs_and_is_not_stored() {
    // A clock that advances by 1 s at each reading: at the start and at the end of a run. Parallel runs read it in between.
    let reads = std::sync::atomic::AtomicU64::new(0);
    let clock = || reads.fetch_add(1, std::sync::atomic::Ordering::SeqCst) as f64;
    let registry = Registry::standard();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &clock, ticked: &|| () };
    let origin = Origin::from_text("two.toml", TWO_CASES);
    let plain = experiment(TWO_CASES);
    let changed = plain.clone().with_changes(&origin, &registry).unwrap();
    let report = reproduce(RunContext::all(&runner), &[plain], Seeds::Exactly(2)).unwrap();
    let plain = report.experiments[0].wall_s;
    // Two cases and the null sender, on two seeds.
    assert!((6.0..=6.0 * 11.0).contains(&plain), "{plain}");
    assert_eq!(reads.load(std::sync::atomic::Ordering::SeqCst), 12);
    let report = reproduce(RunContext::all(&runner), &[changed], Seeds::Exactly(2)).unwrap();
    let changed = report.experiments[0].wall_s;
    assert!((10.0..=10.0 * 19.0).contains(&changed), "with the tried changes: {changed}");
    assert!(!serde_json::to_string(&report).unwrap().contains("wall_s"), "it is not stored");
}

#[test]
fn every_cell_gets_its_runs() {
    // Frames have random sizes, so the narrow tolerance needs all seeds; the other experiment uses those of its scenario.
    let narrow = TWO_CASES.replace("published = 0.9", "published = 0.9\ntolerance = 1e-9\nwhy = \"test\"");
    let wide = TWO_CASES.replace("published = 100", "published = 100\ntolerance = 1e9\nwhy = \"test\"");
    let wide = wide.replace("published = 0.9", "published = 0.9\ntolerance = 1e9\nwhy = \"test\"");
    let experiments = [experiment(&narrow), experiment(&wide)];
    let registry = Registry::standard();
    let runner = Runner::simulator(&registry);
    let announced = std::sync::Mutex::new(0.0);
    let announce = |seconds: f64| *announced.lock().unwrap() += seconds;
    let report =
        reproduce(RunContext { announce: &announce, ..RunContext::all(&runner) }, &experiments, Seeds::AsNeeded)
            .unwrap();
    let [narrow, wide] = report.experiments.as_slice() else { panic!("two") };
    assert!(narrow.cells.iter().all(|c| c.n == SEEDS_MAX as usize), "{:?}", narrow.cells[0]);
    assert!(wide.cells.iter().all(|c| c.n == 3 && c.measured.is_some() && c.null_sender.is_some()));
    // Two cases of 10 s with one shared null sender, on 40 and 3 seeds.
    assert_eq!(*announced.lock().unwrap(), 3.0 * 10.0 * 43.0);
    let again = reproduce(RunContext::all(&runner), &experiments[1..], Seeds::Exactly(3)).unwrap();
    assert_eq!(again.experiments[0], *wide);
}

#[test]
fn a_change_of_duration_is_applied_to_its_cell() {
    let text = TWO_CASES.replace("path.rtt=50ms", "duration=6s");
    let report = reproduce_text(&text);
    let tail = cell(&report, "static", "rtt_p95_ms", true);
    let moved = tail.moved.as_ref().expect("it is not reproduced");
    assert_eq!(tail.window_s, (0.0, 10.0));
    assert!(moved.verdict.is_some() && moved.measured.is_some(), "it was run: {moved:?}");
    assert_ne!(moved.measured, tail.measured, "6 s are not 10 s");
    // A window beyond the shorter run has no value, and the note says so.
    let report = reproduce_text(&text.replace("published = 100", "published = 100\nwindow = [\"7s\", \"9s\"]"));
    let tail = cell(&report, "static", "rtt_p95_ms", true);
    assert_eq!(tail.moved.as_ref().unwrap().verdict, None);
    assert!(tail.note.as_ref().unwrap().contains("has no value any more"), "{:?}", tail.note);
}

/// The same experiment, which only includes runs with over-use.
fn experiment_with_condition() -> Experiment {
    let keep = "[measure]\ninclude_if = { metric = \"overuse_count\", flow = \"video\", at_least = 1, note = \"alpha rested\" }\n";
    experiment(&TWO_CASES.replace("[[flow]]", &format!("{keep}[[flow]]")))
}

#[test]
fn excluded_runs_exclude_their_pair_of_a_ratio() {
    let experiment = experiment_with_condition();
    // No over-use: the static case on seeds 1 and 3, the adaptive one on 2 and 3. Their values are outliers.
    let report = report(&experiment, 6, |metric, case, seed, null| match (metric, case, seed) {
        ("overuse_count", ..) if null => None,
        ("overuse_count", "threshold=static", 1 | 3) | ("overuse_count", "threshold=adaptive", 2 | 3) => Some(0.0),
        ("overuse_count", "threshold=static", 6) => Some(1.0),
        ("overuse_count", ..) => Some(7.0),
        ("utilization", _, 1..=3) => Some(100.0),
        ("utilization", ..) => Some(if null { 0.5 } else { 0.9 }),
        (_, _, 1..=3) => None,
        (_, "threshold=static", _) => Some(100.0),
        _ => Some(50.0),
    });
    let close = |value: Option<f64>, wanted: f64| assert!((value.unwrap() - wanted).abs() < 1e-9, "{value:?}");
    let busy = cell(&report, "static", "utilization", false);
    assert_eq!((busy.n, busy.left_out), (4, Some(2)));
    close(busy.measured, (100.0 + 3.0 * 0.9) / 4.0); // of seeds 2, 4, 5 and 6
    let cuts = cell(&report, "adaptive", "rtt_p95_ms", false);
    assert_eq!((cuts.n, cuts.left_out, cuts.measured, cuts.verdict), (3, Some(3), Some(0.5), CellVerdict::Reproduced));
    // The null sender has no detector; all its runs are included.
    close(busy.null_sender, (3.0 * 100.0 + 3.0 * 0.5) / 6.0);
    assert!(report.runs.iter().all(|runs| runs.n == 6), "all were made");
    // Without a rule nothing is excluded.
    let all = self::report(&self::experiment(TWO_CASES), 6, |_, _, _, _| Some(0.9));
    assert!(all.cells.iter().all(|c| (c.n, c.left_out) == (6, None)));
}

#[test]
fn a_case_that_includes_fewer_than_half_of_its_runs_has_no_verdict() {
    let experiment = experiment_with_condition();
    let with = |kept| report_with_overuse(&experiment, 6, |seed| seed <= kept, |seed| 0.9 + seed as f64 * 1e-4);
    let (half, fewer, none) = (with(3), with(2), with(0));
    let busy = |report: &ExperimentReport, published| cell(report, "static", "utilization", published).clone();
    assert_eq!(
        (busy(&half, true).verdict, busy(&half, false).verdict),
        (CellVerdict::Reproduced, CellVerdict::Reproduced)
    );
    for (report, kept) in [(&fewer, 2), (&none, 0)] {
        for published in [true, false] {
            let cell = busy(report, published);
            assert_eq!((cell.verdict, cell.n, cell.left_out), (CellVerdict::Not, kept, Some(6 - kept)));
            let note = format!("{kept} of 6 runs included, those with overuse_count of 1 or more: alpha rested");
            assert_eq!(cell.note, Some(note));
        }
    }
    assert!(busy(&fewer, true).measured.is_some() && busy(&none, true).measured.is_none());
}

#[test]
fn more_seeds_continue_after_excluded_runs() {
    let experiment = experiment_with_condition();
    let mut report = report_with_overuse(&experiment, 8, |seed| seed != 8, |_| 0.9);
    let cell = report.cells.iter_mut().find(|c| c.metric == "utilization" && c.published.is_some()).unwrap();
    assert_eq!(cell.n, 7);
    cell.ci95 = Some(0.06);
    assert_eq!(report.runs_per_case(), 8);
    assert_eq!(more_seeds(&[report]), [(0, 9..=12)]); // 8 x 1.44 = 11.52
}

/// The same experiment, of which one case only includes runs with over-use. The ratio is between the cases.
fn experiment_with_condition_in(case: &str) -> Experiment {
    let keep = "\"measure.include_if\" = { metric = \"overuse_count\", flow = \"video\", at_least = 1 }";
    experiment(&match case {
        "static" => TWO_CASES.replace("\"gcc-2016-static\" }", &format!("\"gcc-2016-static\", {keep} }}")),
        _ => {
            TWO_CASES.replace("\"adaptive\" }\n[[expect]]", &format!("\"adaptive\" }}\nset = {{ {keep} }}\n[[expect]]"))
        }
    })
}

#[test]
fn a_rule_of_one_case_applies_to_its_values_and_to_ratios() {
    for (case, other) in [("static", "adaptive"), ("adaptive", "static")] {
        let experiment = experiment_with_condition_in(case);
        let kept: Vec<bool> = experiment.cases.iter().map(|scenario| scenario.include_if.is_some()).collect();
        assert_eq!(kept, [case == "static", case == "adaptive"]);
        let with = |kept| report_with_overuse(&experiment, 6, |seed| seed <= kept, |seed| 0.9 + seed as f64 * 1e-4);
        let (enough, fewer) = (with(4), with(1));
        for (report, kept) in [(&enough, 4), (&fewer, 1)] {
            let counted = |cell: &Cell| (cell.n, cell.left_out);
            assert_eq!(counted(cell(report, case, "utilization", true)), (kept, Some(6 - kept)));
            assert_eq!(counted(cell(report, other, "utilization", true)), (6, None), "it includes all of its own");
            assert_eq!(counted(cell(report, "adaptive", "rtt_p95_ms", false)), (kept, Some(6 - kept)), "{case}");
            assert_eq!(report.runs_per_case(), 6);
        }
        let ratio = |report| {
            let cell = cell(report, "adaptive", "rtt_p95_ms", false);
            (cell.note.clone(), cell.bounds)
        };
        assert_eq!(ratio(&enough).0.as_deref(), Some("cause not found"), "1 is not below 0.7");
        let place = if case == "static" { " in threshold=static" } else { "" };
        assert_eq!(
            ratio(&fewer).0,
            Some(format!("1 of 6 runs included, those with overuse_count of 1 or more{place}"))
        );
    }
}

#[test]
fn more_seeds_continue_where_the_other_case_of_a_ratio_excludes_runs() {
    let (cases, _) = TWO_CASES.split_once("[[expect]]").unwrap();
    let experiment = experiment(&format!(
        "{cases}set = {{ \"measure.include_if\" = {{ metric = \"overuse_count\", at_least = 1 }} }}\n[[expect]]\n\
         metric = \"rtt_p95_ms\"\ncase = {{ threshold = \"static\" }}\n\
         relative_to = {{ case = {{ threshold = \"adaptive\" }} }}\npublished = 1\n"
    ));
    let mut report = report_with_overuse(&experiment, 8, |seed| seed != 8, |_| 50.0);
    assert_eq!((report.cells.len(), report.cells[0].n, report.cells[0].left_out), (1, 7, Some(1)));
    let tolerance = report.cells[0].tolerance.unwrap();
    report.cells[0].ci95 = Some(tolerance * 1.2);
    assert_eq!(more_seeds(&[report]), [(0, 9..=12)]); // 8 x 1.44 = 11.52
}

#[test]
fn a_wide_interval_around_a_good_mean_needs_more_runs() {
    let experiment = experiment(TWO_CASES);
    let note = |seeds: u64, spread: f64| {
        let value = |metric: &str, seed: u64| match metric {
            "utilization" => 0.87 + if seed.is_multiple_of(2) { spread } else { -spread },
            _ => 100.0,
        };
        let report = report(&experiment, seeds, |metric, _, seed, _| Some(value(metric, seed)));
        let found = cell(&report, "static", "utilization", true).clone();
        (found.verdict, found.note, found.moved)
    };
    // Deviation 0.0816 between 4 runs, t(3) = 3.182, over root 4: 0.1299.
    assert_eq!(note(4, 0.07071), (CellVerdict::Direction, Some("too few runs: ± 13.0 %".to_owned()), None));
    assert_eq!(note(1, 0.02).1.as_deref(), Some("too few runs: one has no interval"));
    assert_eq!(note(4, 0.001), (CellVerdict::Reproduced, None, None));
    assert_eq!(note(1, 0.3).1.as_deref(), Some("cause not found"), "the mean is outside");
}

#[test]
fn cells_of_one_case_equal_those_of_the_experiment_unless_other_cases_decide() {
    let origin = Origin::from_text("two.toml", TWO_CASES);
    let registry = Registry::standard();
    let runner = Runner::simulator(&registry);
    let experiment = Experiment::load(&origin, &[], &registry).unwrap();
    let whole = reproduce(RunContext::all(&runner), core::slice::from_ref(&experiment), Seeds::Exactly(3)).unwrap();
    for scenario in &experiment.cases {
        let result = runner.run_all(scenario, &[1, 2, 3]).unwrap();
        let alone = cells_of(scenario, &result.runs);
        let of_case = whole.experiments[0].cells.iter().filter(|c| c.case == scenario.plan.case && c.over.is_none());
        let of_case: Vec<&Cell> = of_case.collect();
        assert_eq!(alone.len(), of_case.len());
        for (alone, whole) in alone.iter().zip(of_case) {
            if alone.claim.as_deref() == Some("cuts") && alone.published.is_some() {
                // Its claim is a ratio to the other case.
                assert_eq!((alone.measured, alone.verdict), (whole.measured, CellVerdict::Not), "{whole:?}");
                assert!(alone.note.as_ref().unwrap().contains("run `paceline reproduce test/two`"));
            } else {
                // Only an experiment asks for the cause of a claim that fails.
                let known =
                    |cell: &Cell| Cell { note: cell.note.clone().filter(|n| n != "cause not found"), ..cell.clone() };
                assert_eq!(known(alone), known(whole));
            }
        }
    }
}
