//! Reproduction: every published value and every bound of an experiment beside what was measured, with a verdict.
//!
//! ```text
//! experiments x cases x seeds, and the same under the null sender --runs--> values --verdict--> cells --tally--> summary
//! ```
//!
//! All runs are one list, longest first, so that no core waits while another works through the last experiment. Where an
//! interval is too wide for a verdict the next seeds are added.

mod beside;
mod cells;
mod experiment;
mod formula;
mod matrix;
mod null_sender;
mod report;
mod runs;
mod scoreboard;
mod sensitivity;
mod tolerance;
mod verdict;

pub use beside::{Beside, Done, Task, Undertaking};
pub use cells::cells_of;
pub use experiment::Experiment;
pub use formula::{FORMULAS, Formula, FormulaTable};
pub use matrix::{Counts, ExperimentCounts, PaperCounts, papers};
pub use null_sender::null_sender;
pub use report::{
    Assumed, BesideCell, CaseRuns, Cell, ExperimentReport, Moved, OverCell, Report, Tallies, Tally, tally,
};
pub use scoreboard::{SCOREBOARD_FILE, Scoreboard};
pub use sensitivity::{ConstantEnd, ConstantReport, Flip, SensitivityReport, SensitivitySummary, sensitivity};
pub use tolerance::{Tolerance, tolerance};
pub use verdict::Verdict;

use crate::run::Runner;
use crate::world::WorldError;
use runs::{Job, Measured, first_runs, jobs, run_jobs};
use verdict::too_wide;

/// No experiment gets more runs than this of each case.
pub const SEEDS_MAX: u64 = 40;

/// Which runs there shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// As many as each scenario says, and more where an interval is too wide for a verdict.
    AsNeeded,
    /// From 1 to this.
    Exactly(u64),
}

/// Every verdict. `announce` is told of simulated seconds to come, before they are run.
pub fn reproduce(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Report, WorldError> {
    let mut reports = verdicts(runner, experiments, seeds, announce)?;
    try_changes(runner, experiments, &mut reports, announce)?;
    Ok(Report::of(reports))
}

/// Every experiment on as many seeds as its verdicts want.
fn verdicts(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Vec<ExperimentReport>, WorldError> {
    let mut measured = first_runs(runner, experiments, seeds, announce)?;
    loop {
        let reports: Vec<ExperimentReport> =
            experiments.iter().zip(&measured).map(|(e, m)| e.report(m, runner.world.name())).collect();
        let wanting: Vec<_> = match seeds {
            Seeds::Exactly(_) => Vec::new(),
            Seeds::AsNeeded => more_seeds(&reports),
        };
        if wanting.is_empty() {
            return Ok(reports);
        }
        let more = wanting.into_iter().flat_map(|(experiment, seeds)| jobs(experiments, experiment, seeds)).collect();
        run_jobs(runner, experiments, more, &mut measured, announce)?;
    }
}

/// Runs again, on the same seeds, what is said to move cells that are not reproduced.
fn try_changes(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    reports: &mut [ExperimentReport],
    announce: &dyn Fn(f64),
) -> Result<(), WorldError> {
    let wanted = |index: usize, by: &Vec<String>| {
        reports[index].cells.iter().any(|cell| cell.moved.as_ref().is_some_and(|moved| moved.by == *by))
    };
    let (mut tried, mut changed) = (Vec::new(), Vec::new());
    for (index, experiment) in experiments.iter().enumerate() {
        for (by, cases) in experiment.changed.iter().filter(|(by, _)| wanted(index, by)) {
            tried.push((index, by));
            changed.push(Experiment::of(cases.clone()));
        }
    }
    let runs = |(index, _): &(usize, &Vec<String>)| reports[*index].made();
    let again: Vec<Job> = (0..changed.len()).flat_map(|i| jobs(&changed, i, 1..=runs(&tried[i]))).collect();
    let mut measured: Vec<Measured> = changed.iter().map(Measured::none).collect();
    run_jobs(runner, &changed, again, &mut measured, announce)?;
    for (((index, by), experiment), measured) in tried.into_iter().zip(&changed).zip(&measured) {
        let then = experiment.report(measured, runner.world.name());
        reports[index].wall_s += then.wall_s;
        for cell in &mut reports[index].cells {
            let same = then.cells.iter().find(|other| other.is_of_the_same(cell));
            if let (Some(moved), Some(same)) = (cell.moved.as_mut().filter(|m| m.by == *by), same) {
                (moved.measured, moved.ci95, moved.verdict) = (same.measured, same.ci95, Some(same.verdict));
            }
        }
    }
    for report in reports {
        let made = report.made();
        for cell in &mut report.cells {
            cell.complete_note(&report.id, made);
        }
    }
    Ok(())
}

/// The experiments that have a cell whose interval is too wide for a verdict, and the seeds that they get. Of more runs about
/// as large a part will count.
fn more_seeds(reports: &[ExperimentReport]) -> Vec<(usize, core::ops::RangeInclusive<u64>)> {
    let wanted = |report: &ExperimentReport| {
        let n = report.made();
        let counts = report.cells.iter().filter_map(|cell| {
            let (tolerance, measured) = (cell.tolerance?, cell.summary()?);
            too_wide(tolerance, Some(&measured)).then(|| {
                // Half-widths shrink as the root of the number of runs.
                let shrink = measured.ci95 / tolerance;
                (n as f64 * shrink * shrink).min(SEEDS_MAX as f64).ceil() as u64
            })
        });
        let target = counts.max()?.clamp(n + 1, 2 * n + 3).min(SEEDS_MAX);
        (target > n).then_some(n + 1..=target)
    };
    reports.iter().enumerate().filter_map(|(index, report)| Some((index, wanted(report)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::runs::Run;
    use super::*;
    use crate::plan::Plan;
    use crate::scenario::Origin;
    use crate::sim::Simulator;
    use paceline::Registry;

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
moved_by = ["path.rtt=50ms"]
[[expect]]
metric = "utilization"
published = 0.9
claim = "busy"
[[assert]]
id = "cuts"
metric = "rtt_p95_ms"
case = { threshold = "adaptive" }
over = { case = { threshold = "static" } }
bounds = [0, 0.7]
[[assert]]
id = "busy"
metric = "utilization"
bounds = [0.5, 1]
"#;

    fn experiment(text: &str) -> Experiment {
        let origin = Origin::from_text("two.toml", text);
        Experiment::load(&origin, &[], &Registry::standard()).unwrap().beside_null_sender()
    }

    /// Runs that came to what `value` says of metric, case, seed and null sender.
    fn runs(experiment: &Experiment, seeds: u64, value: impl Fn(&str, &str, u64, bool) -> Option<f64>) -> Measured {
        let runs = [false, true].map(|null| {
            let of = |plan: &Plan| {
                let case = plan.case.to_string();
                let values = |seed| plan.quantities().map(|q| value(&q.metric, &case, seed, null)).collect();
                let run = |seed| Run { trace_hash: format!("{seed:016x}"), values: values(seed) };
                (1..=seeds).map(|seed| (seed, run(seed))).collect()
            };
            experiment.plans(null).iter().map(of).collect()
        });
        Measured { runs, ..Measured::default() }
    }

    fn cell<'a>(report: &'a ExperimentReport, case: &str, metric: &str, published: bool) -> &'a Cell {
        let mut found = report.cells.iter().filter(|c| c.case.to_string() == format!("threshold={case}"));
        found.find(|c| c.metric == metric && c.published.is_some() == published).expect("it is among the cells")
    }

    #[test]
    fn ratios_are_of_the_same_seed() {
        let experiment = experiment(TWO_CASES);
        // 8 over 10 and 20 over 40: 0.65 on average, where the means' ratio would be 0.56.
        let measured = runs(&experiment, 2, |metric, case, seed, _| {
            Some(match (metric, case, seed) {
                ("utilization", ..) => 0.9,
                (_, "threshold=static", 1) => 10.0,
                (_, "threshold=static", _) => 40.0,
                (_, _, 1) => 8.0,
                _ => 20.0,
            })
        });
        let report = experiment.report(&measured, "sim");
        let cuts = cell(&report, "adaptive", "rtt_p95_ms", false);
        assert!((cuts.measured.unwrap() - 0.65).abs() < 1e-12, "{cuts:?}");
        // t(1) = 12.706 times the deviation 0.2121 over root 2.
        assert!((cuts.ci95.unwrap() - 1.906).abs() < 1e-3, "{cuts:?}");
        assert_eq!(cuts.over.as_ref().unwrap().case.to_string(), "threshold=static");
        assert_eq!((cuts.verdict, cuts.claim.as_deref()), (Verdict::Reproduced, Some("cuts")));
        assert_eq!((cuts.published, cuts.bounds), (None, Some((0.0, 0.7))));
    }

    #[test]
    fn a_claim_is_judged_by_its_bounds_in_the_value_s_own_case_if_there_are_any() {
        let experiment = experiment(TWO_CASES);
        // The static case is not busy, and the adaptive one is, though less than was published.
        let measured = runs(&experiment, 4, |metric, case, seed, null| {
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
        let report = experiment.report(&measured, "sim");
        let verdict = |case, metric, published| cell(&report, case, metric, published).verdict;
        assert_eq!(verdict("static", "utilization", false), Verdict::Not);
        assert_eq!(verdict("static", "utilization", true), Verdict::Not);
        assert_eq!(verdict("adaptive", "utilization", false), Verdict::Reproduced);
        assert_eq!(verdict("adaptive", "utilization", true), Verdict::Direction);
        // `cuts` has a bound in the adaptive case alone, and the static value rests on that.
        let tail = cell(&report, "static", "rtt_p95_ms", true);
        assert_eq!((tail.verdict, tail.tolerance, tail.n), (Verdict::Direction, Some(25.0), 4));
        let mut tail = tail.clone();
        assert_eq!(tail.moved.as_ref().unwrap().verdict, None, "it has not been run");
        tail.moved.as_mut().unwrap().verdict = Some(Verdict::Direction);
        assert_eq!(
            (tail.note.as_deref(), tail.moved.as_ref().unwrap().by.as_slice()),
            (Some("the encoder"), &["path.rtt=50ms".to_owned()][..])
        );
        tail.complete_note("test/two", report.made());
        let command = "`paceline run test/two --case 'threshold=static' --repeats 4 --set 'path.rtt=50ms'`";
        assert_eq!(tail.note.unwrap(), format!("the encoder; not moved into tolerance by {command}"));
        let busy = cell(&report, "adaptive", "utilization", true);
        assert_eq!(
            (busy.note.as_deref(), busy.null_sender, busy.null_reproduces),
            (Some("cause not found"), Some(0.9), true)
        );

        let tallies = tally(&[report]);
        let of = |t: Tally| (t.cells, t.reproduced, t.direction, t.not);
        assert_eq!(of(tallies.all), (6, 2, 2, 2));
        assert_eq!(of(tallies.published), (3, 0, 2, 1));
        // The null sender is the same run in both cases: it reproduces their utilisation and keeps their bound.
        assert_eq!(of(tallies.published_without_null), (1, 0, 1, 0));
        assert_eq!(of(tallies.without_null), (2, 1, 1, 0));
        // `busy` holds in one case of two, so it does not hold, and proves nothing anyhow; `cuts` does.
        assert_eq!((tallies.claims, tallies.claims_held), (2, 1));
        assert_eq!((tallies.claims_without_null, tallies.claims_held_without_null), (1, 1));
    }

    #[test]
    fn a_run_without_a_value_leaves_none() {
        let experiment = experiment(TWO_CASES);
        let measured = runs(&experiment, 3, |_, _, seed, _| (seed != 2).then_some(1.0));
        let report = experiment.report(&measured, "sim");
        assert!(report.cells.iter().all(|c| c.measured.is_none() && c.ci95.is_none() && c.verdict == Verdict::Not));
        let text = serde_json::to_value(&report.cells[0]).unwrap();
        assert!(text["measured"].is_null() && text["ci95"].is_null() && text["null_sender"].is_null());
    }

    #[test]
    fn only_experiments_with_too_wide_an_interval_get_more_seeds() {
        let experiment = experiment(TWO_CASES);
        let wanted = |n: u64, ci95: f64| {
            let measured = runs(&experiment, n, |_, _, _, _| Some(0.9));
            let mut report = experiment.report(&measured, "sim");
            let cell = report.cells.iter_mut().find(|c| c.metric == "utilization" && c.published.is_some()).unwrap();
            cell.ci95 = Some(ci95).filter(|c| c.is_finite());
            let untouched = experiment.report(&runs(&experiment, 3, |_, _, _, _| Some(0.9)), "sim");
            more_seeds(&[untouched, report])
        };
        assert_eq!(wanted(5, 0.05), []);
        assert_eq!(wanted(5, 0.06), [(1, 6..=8)]); // 5 x 1.44 = 7.2
        assert_eq!(wanted(5, 0.2), [(1, 6..=13)]); // 80, but no more than doubled at once
        assert_eq!(wanted(30, 0.2), [(1, 31..=40)]);
        assert_eq!(wanted(40, 0.2), []);
    }

    #[test]
    fn an_experiment_says_how_long_its_runs_took() {
        // A clock that is a second on whenever it is read: that a run began, and that it is over. Another run may read it
        // in between, so runs that share it take longer, but not longer than all of them.
        let reads = std::sync::atomic::AtomicU64::new(0);
        let clock = || reads.fetch_add(1, std::sync::atomic::Ordering::SeqCst) as f64;
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &clock, ticked: &|| () };
        let origin = Origin::from_text("two.toml", TWO_CASES);
        let plain = experiment(TWO_CASES);
        let changed = plain.clone().with_changes(&origin, &registry).unwrap();
        let report = reproduce(&runner, &[plain], Seeds::Exactly(2), &|_| ()).unwrap();
        let plain = report.experiments[0].wall_s;
        // Two cases and the null sender, on two seeds.
        assert!((6.0..=6.0 * 11.0).contains(&plain), "{plain}");
        assert_eq!(reads.load(std::sync::atomic::Ordering::SeqCst), 12);
        let report = reproduce(&runner, &[changed], Seeds::Exactly(2), &|_| ()).unwrap();
        let changed = report.experiments[0].wall_s;
        assert!((10.0..=10.0 * 19.0).contains(&changed), "the changes that are tried are runs, too: {changed}");
        assert!(!serde_json::to_string(&report).unwrap().contains("wall_s"), "what is kept does not depend on it");
    }

    #[test]
    fn runs_of_everything_give_every_cell() {
        // No tolerance is met by frames of random size, so that experiment gets all seeds there are; the other its own.
        let narrow = TWO_CASES.replace("published = 0.9", "published = 0.9\ntolerance = 1e-9\nwhy = \"test\"");
        let wide = TWO_CASES.replace("published = 100", "published = 100\ntolerance = 1e9\nwhy = \"test\"");
        let wide = wide.replace("published = 0.9", "published = 0.9\ntolerance = 1e9\nwhy = \"test\"");
        let experiments = [experiment(&narrow), experiment(&wide)];
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let announced = std::sync::Mutex::new(0.0);
        let announce = |seconds: f64| *announced.lock().unwrap() += seconds;
        let report = reproduce(&runner, &experiments, Seeds::AsNeeded, &announce).unwrap();
        let [narrow, wide] = report.experiments.as_slice() else { panic!("two") };
        assert!(narrow.cells.iter().all(|c| c.n == SEEDS_MAX as usize), "{:?}", narrow.cells[0]);
        assert!(wide.cells.iter().all(|c| c.n == 3 && c.measured.is_some() && c.null_sender.is_some()));
        // Two cases of 10 s, which are one without their controller, 40 and 3 seeds.
        assert_eq!(*announced.lock().unwrap(), 3.0 * 10.0 * 43.0);
        let again = reproduce(&runner, &experiments[1..], Seeds::Exactly(3), &|_| ()).unwrap();
        assert_eq!(again.experiments[0], *wide);
    }

    #[test]
    fn a_change_of_duration_moves_the_cell_that_it_is_said_to() {
        let origin = Origin::from_text("two.toml", TWO_CASES.replace("path.rtt=50ms", "duration=6s"));
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let experiment = Experiment::load(&origin, &[], &registry).unwrap().with_changes(&origin, &registry).unwrap();
        let report = reproduce(&runner, &[experiment], Seeds::Exactly(2), &|_| ()).unwrap();
        let tail = cell(&report.experiments[0], "static", "rtt_p95_ms", true);
        let moved = tail.moved.as_ref().expect("it is not reproduced");
        assert_eq!(tail.window_s, (0.0, 10.0));
        assert!(moved.verdict.is_some() && moved.measured.is_some(), "it was run: {moved:?}");
        assert_ne!(moved.measured, tail.measured, "6 s are not 10 s");
        // A value that the shorter run does not reach stays untried, and the note says so.
        let text = origin.text.replace("published = 100", "published = 100\nwindow = [\"7s\", \"9s\"]");
        let origin = Origin::from_text("two.toml", text);
        let experiment = Experiment::load(&origin, &[], &registry).unwrap().with_changes(&origin, &registry).unwrap();
        let report = reproduce(&runner, &[experiment], Seeds::Exactly(2), &|_| ()).unwrap();
        let tail = cell(&report.experiments[0], "static", "rtt_p95_ms", true);
        assert_eq!(tail.moved.as_ref().unwrap().verdict, None);
        assert!(tail.note.as_ref().unwrap().contains("has no value any more"), "{:?}", tail.note);
    }

    /// The same, of which only runs with over-use of the flow count.
    fn keeping() -> Experiment {
        let keep =
            "[measure]\nkeep = { metric = \"overuses\", flow = \"video\", at_least = 1, note = \"alpha rested\" }\n";
        experiment(&TWO_CASES.replace("[[flow]]", &format!("{keep}[[flow]]")))
    }

    #[test]
    fn runs_that_do_not_count_are_left_out_and_of_ratios_the_pair() {
        let experiment = keeping();
        // The static case lacks over-use on seed 1, the adaptive one on seed 2, where the values are wild, and both on 3.
        let measured = runs(&experiment, 6, |metric, case, seed, null| match (metric, case, seed) {
            ("overuses", ..) if null => None,
            ("overuses", "threshold=static", 1 | 3) | ("overuses", "threshold=adaptive", 2 | 3) => Some(0.0),
            ("overuses", "threshold=static", 6) => Some(1.0),
            ("overuses", ..) => Some(7.0),
            ("utilization", _, 1..=3) => Some(100.0),
            ("utilization", ..) => Some(if null { 0.5 } else { 0.9 }),
            (_, _, 1..=3) => None,
            (_, "threshold=static", _) => Some(100.0),
            _ => Some(50.0),
        });
        let report = experiment.report(&measured, "sim");
        let close = |value: Option<f64>, wanted: f64| assert!((value.unwrap() - wanted).abs() < 1e-9, "{value:?}");
        let busy = cell(&report, "static", "utilization", false);
        assert_eq!((busy.n, busy.left_out), (4, Some(2)));
        close(busy.measured, (100.0 + 3.0 * 0.9) / 4.0); // of seeds 2, 4, 5 and 6
        let cuts = cell(&report, "adaptive", "rtt_p95_ms", false);
        assert_eq!((cuts.n, cuts.left_out, cuts.measured, cuts.verdict), (3, Some(3), Some(0.5), Verdict::Reproduced));
        // The null sender has no detector, and all its runs count.
        close(busy.null_sender, (3.0 * 100.0 + 3.0 * 0.5) / 6.0);
        assert!(report.runs.iter().all(|runs| runs.n == 6), "all were made");
        // Without the key nothing is left out, and nothing is said of it.
        let all =
            self::experiment(TWO_CASES).report(&runs(&self::experiment(TWO_CASES), 6, |_, _, _, _| Some(0.9)), "sim");
        assert!(all.cells.iter().all(|c| (c.n, c.left_out) == (6, None)));
    }

    #[test]
    fn a_case_that_keeps_fewer_than_half_of_its_runs_shows_nothing() {
        let experiment = keeping();
        let with = |kept: u64| {
            let measured = runs(&experiment, 6, |metric, _, seed, _| {
                Some(if metric == "overuses" { f64::from(u8::from(seed <= kept)) } else { 0.9 + seed as f64 * 1e-4 })
            });
            experiment.report(&measured, "sim")
        };
        let (half, fewer, none) = (with(3), with(2), with(0));
        let busy = |report: &ExperimentReport, published| cell(report, "static", "utilization", published).clone();
        assert_eq!((busy(&half, true).verdict, busy(&half, false).verdict), (Verdict::Reproduced, Verdict::Reproduced));
        for (report, kept) in [(&fewer, 2), (&none, 0)] {
            for published in [true, false] {
                let cell = busy(report, published);
                assert_eq!((cell.verdict, cell.n, cell.left_out), (Verdict::Not, kept, Some(6 - kept)));
                let told = format!("kept {kept} of 6, those with overuses of 1 or more: alpha rested");
                assert_eq!(cell.note, Some(told));
            }
        }
        assert!(busy(&fewer, true).measured.is_some() && busy(&none, true).measured.is_none());
    }

    #[test]
    fn more_seeds_follow_those_that_were_run_and_not_those_that_count() {
        let experiment = keeping();
        let measured = runs(&experiment, 8, |metric, _, seed, _| {
            Some(if metric == "overuses" { f64::from(u8::from(seed != 8)) } else { 0.9 })
        });
        let mut report = experiment.report(&measured, "sim");
        let cell = report.cells.iter_mut().find(|c| c.metric == "utilization" && c.published.is_some()).unwrap();
        assert_eq!(cell.n, 7);
        cell.ci95 = Some(0.06);
        assert_eq!(report.made(), 8);
        assert_eq!(more_seeds(&[report]), [(0, 9..=12)]); // 8 x 1.44 = 11.52
    }

    /// Two cases, of which one asks for over-use; values of the second are ratios to the first.
    fn keeping_in(case: &str) -> Experiment {
        let keep = "\"measure.keep\" = { metric = \"overuses\", flow = \"video\", at_least = 1 }";
        experiment(&match case {
            "static" => TWO_CASES.replace("\"gcc-2016-static\" }", &format!("\"gcc-2016-static\", {keep} }}")),
            _ => TWO_CASES
                .replace("\"adaptive\" }\n[[expect]]", &format!("\"adaptive\" }}\nset = {{ {keep} }}\n[[expect]]")),
        })
    }

    #[test]
    fn runs_that_one_case_leaves_out_count_for_its_own_values_and_for_ratios() {
        for (case, other) in [("static", "adaptive"), ("adaptive", "static")] {
            let experiment = keeping_in(case);
            let kept: Vec<bool> = experiment.cases.iter().map(|plan| plan.keep.is_some()).collect();
            assert_eq!(kept, [case == "static", case == "adaptive"]);
            let with = |kept: u64| {
                let measured = runs(&experiment, 6, |metric, _, seed, _| {
                    Some(if metric == "overuses" {
                        f64::from(u8::from(seed <= kept))
                    } else {
                        0.9 + seed as f64 * 1e-4
                    })
                });
                experiment.report(&measured, "sim")
            };
            let (enough, fewer) = (with(4), with(1));
            for (report, kept) in [(&enough, 4), (&fewer, 1)] {
                let counted = |cell: &Cell| (cell.n, cell.left_out);
                assert_eq!(counted(cell(report, case, "utilization", true)), (kept, Some(6 - kept)));
                assert_eq!(counted(cell(report, other, "utilization", true)), (6, None), "it keeps all of its own");
                assert_eq!(counted(cell(report, "adaptive", "rtt_p95_ms", false)), (kept, Some(6 - kept)), "{case}");
                assert_eq!(report.made(), 6);
            }
            let ratio = |report| {
                let cell = cell(report, "adaptive", "rtt_p95_ms", false);
                (cell.note.clone(), cell.bounds)
            };
            assert_eq!(ratio(&enough).0.as_deref(), Some("cause not found"), "1 is not below 0.7");
            let place = if case == "static" { " in threshold=static" } else { "" };
            assert_eq!(ratio(&fewer).0, Some(format!("kept 1 of 6, those with overuses of 1 or more{place}")));
        }
    }

    #[test]
    fn more_seeds_follow_those_that_were_run_where_the_other_case_of_a_ratio_leaves_some_out() {
        let (cases, _) = TWO_CASES.split_once("[[expect]]").unwrap();
        let experiment = experiment(&format!(
            "{cases}set = {{ \"measure.keep\" = {{ metric = \"overuses\", at_least = 1 }} }}\n[[expect]]\n\
             metric = \"rtt_p95_ms\"\ncase = {{ threshold = \"static\" }}\n\
             over = {{ case = {{ threshold = \"adaptive\" }} }}\npublished = 1\n"
        ));
        let measured = runs(&experiment, 8, |metric, _, seed, _| {
            Some(if metric == "overuses" { f64::from(u8::from(seed != 8)) } else { 50.0 })
        });
        let mut report = experiment.report(&measured, "sim");
        assert_eq!((report.cells.len(), report.cells[0].n, report.cells[0].left_out), (1, 7, Some(1)));
        let tolerance = report.cells[0].tolerance.unwrap();
        report.cells[0].ci95 = Some(tolerance * 1.2);
        assert_eq!(more_seeds(&[report]), [(0, 9..=12)]); // 8 x 1.44 = 11.52
    }

    #[test]
    fn a_wide_interval_around_a_good_mean_is_too_few_runs() {
        let experiment = experiment(TWO_CASES);
        let note = |seeds: u64, spread: f64| {
            let value = |metric: &str, seed: u64| match metric {
                "utilization" => 0.87 + if seed.is_multiple_of(2) { spread } else { -spread },
                _ => 100.0,
            };
            let measured = runs(&experiment, seeds, |metric, _, seed, _| Some(value(metric, seed)));
            let found = cell(&experiment.report(&measured, "sim"), "static", "utilization", true).clone();
            (found.verdict, found.note, found.moved)
        };
        // Deviation 0.0816 between 4 runs, t(3) = 3.182, over root 4: 0.1299.
        assert_eq!(note(4, 0.07071), (Verdict::Direction, Some("too few runs: ± 13.0 %".to_owned()), None));
        assert_eq!(note(1, 0.02).1.as_deref(), Some("too few runs: one has no interval"));
        assert_eq!(note(4, 0.001), (Verdict::Reproduced, None, None));
        assert_eq!(note(1, 0.3).1.as_deref(), Some("cause not found"), "the mean is off");
    }

    #[test]
    fn cells_of_runs_of_one_case_are_those_of_the_whole_but_for_what_other_cases_decide() {
        let origin = Origin::from_text("two.toml", TWO_CASES);
        let registry = Registry::standard();
        let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
        let experiment = Experiment::load(&origin, &[], &registry).unwrap();
        let whole = reproduce(&runner, core::slice::from_ref(&experiment), Seeds::Exactly(3), &|_| ()).unwrap();
        for plan in &experiment.cases {
            let result = runner.run_all(plan, &[1, 2, 3]).unwrap();
            let alone = cells_of(plan, &result.runs);
            let of_case = whole.experiments[0].cells.iter().filter(|c| c.case == plan.case && c.over.is_none());
            let of_case: Vec<&Cell> = of_case.collect();
            assert_eq!(alone.len(), of_case.len());
            for (alone, whole) in alone.iter().zip(of_case) {
                if alone.claim.as_deref() == Some("cuts") && alone.published.is_some() {
                    // Its claim is a ratio to the other case.
                    assert_eq!((alone.measured, alone.verdict), (whole.measured, Verdict::Not), "{whole:?}");
                    assert!(alone.note.as_ref().unwrap().contains("`paceline reproduce test/two` judges it"));
                } else {
                    assert_eq!(alone, whole);
                }
            }
        }
    }
}
