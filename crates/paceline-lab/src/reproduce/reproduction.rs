//! The reproduction of experiments: first runs, more seeds where an interval is too wide, then changes.

use super::runs::{RunJob, SEEDS_MAX, Seeds, first_runs, jobs, run_jobs};
use crate::done_runs::DoneRuns;
use crate::judge::{Experiment, ExperimentRuns, kind_of};
use crate::results::{Check, ExperimentReport, Report, Verdict};
use crate::run::Runner;
use core::ops::RangeInclusive;
use paceline_netsim::world::WorldError;

/// Reproduces experiments, except the runs that were done before, and returns every verdict. `announce` receives the simulated
/// seconds before they are run.
pub fn reproduce(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<Report, WorldError> {
    Ok(reproduce_with_runs(runner, experiments, seeds, done, announce)?.0)
}

/// Returns every verdict as [`reproduce`] does, and the runs of each experiment.
pub(super) fn reproduce_with_runs(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<(Report, Vec<ExperimentRuns>), WorldError> {
    let (mut reports, runs) = verdicts(runner, experiments, seeds, done, announce)?;
    try_changes(runner, experiments, &mut reports, done, announce)?;
    Ok((Report::of(reports), runs))
}

/// Runs every experiment on as many seeds as its verdicts need.
pub(super) fn verdicts(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<(Vec<ExperimentReport>, Vec<ExperimentRuns>), WorldError> {
    let mut runs = first_runs(runner, experiments, seeds, done, announce)?;
    loop {
        let reports = report_all(runner, experiments, &runs);
        let additional_seeds = match seeds {
            Seeds::Exactly(_) => Vec::new(),
            Seeds::AsNeeded => more_seeds(&reports),
        };
        if additional_seeds.is_empty() {
            return Ok((reports, runs));
        }
        let more =
            additional_seeds.into_iter().flat_map(|(experiment, seeds)| jobs(experiments, experiment, seeds)).collect();
        run_jobs(runner, experiments, more, &mut runs, done, announce)?;
    }
}

/// Runs each experiment on seeds from 1 to its number in `seeds`.
pub(super) fn reports_on_seeds(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: &[u64],
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<Vec<ExperimentReport>, WorldError> {
    let all: Vec<RunJob> =
        (0..experiments.len()).flat_map(|index| jobs(experiments, index, 1..=seeds[index])).collect();
    let mut runs: Vec<ExperimentRuns> = experiments.iter().map(ExperimentRuns::none).collect();
    run_jobs(runner, experiments, all, &mut runs, done, announce)?;
    Ok(report_all(runner, experiments, &runs))
}

fn report_all(runner: &Runner<'_>, experiments: &[Experiment], runs: &[ExperimentRuns]) -> Vec<ExperimentReport> {
    experiments.iter().zip(runs).map(|(experiment, runs)| experiment.report(runs, runner.world.name())).collect()
}

/// Repeats cells that are not reproduced with the changes that should reproduce them, on the same seeds.
fn try_changes(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    reports: &mut [ExperimentReport],
    done: Option<&DoneRuns>,
    announce: &dyn Fn(f64),
) -> Result<(), WorldError> {
    let wanted = |report: &ExperimentReport, by: &Vec<String>| {
        report.cells.iter().any(|cell| cell.moved.as_ref().is_some_and(|moved| moved.by == *by))
    };
    let (mut tried, mut changed) = (Vec::new(), Vec::new());
    for (index, experiment) in experiments.iter().enumerate() {
        for (by, cases) in experiment.changed.iter().filter(|(by, _)| wanted(&reports[index], by)) {
            tried.push((index, by));
            changed.push(Experiment::of(cases.clone()));
        }
    }
    let seeds: Vec<u64> = tried.iter().map(|(index, _)| reports[*index].runs_per_case()).collect();
    let results = reports_on_seeds(runner, &changed, &seeds, done, announce)?;
    for ((index, by), result) in tried.into_iter().zip(results) {
        reports[index].wall_s += result.wall_s;
        for cell in &mut reports[index].cells {
            let same = result.cells.iter().find(|other| other.is_same_quantity(cell));
            if let (Some(moved), Some(same)) = (cell.moved.as_mut().filter(|m| m.by == *by), same) {
                (moved.measured, moved.ci95, moved.verdict) = (same.measured, same.ci95, Some(same.verdict));
            }
        }
    }
    for report in reports {
        let repeats = report.runs_per_case();
        report.cells.iter_mut().for_each(|cell| cell.note_change(&report.id, repeats));
    }
    Ok(())
}

/// Returns the experiments with an interval that is too wide for a verdict, and their additional seeds. It is assumed that an
/// equal part of these runs is included.
pub(super) fn more_seeds(reports: &[ExperimentReport]) -> Vec<(usize, RangeInclusive<u64>)> {
    let wanted = |report: &ExperimentReport| {
        let n = report.runs_per_case();
        let counts = report.cells.iter().filter_map(|cell| {
            let measured = cell.summary()?;
            // For a published value the interval must be within the tolerance. A mean near a bound takes as many seeds as there may
            // be; one outside is not looked into.
            let wanted = match (cell.tolerance, cell.bounds) {
                (Some(tolerance), _) => Check::Published { value: measured.mean, tolerance },
                (None, bounds) => {
                    Check::bound(kind_of(&cell.metric, cell.each.is_some()), cell.over.is_some(), bounds?)
                }
            };
            let is_near = wanted.contains(measured.mean) && wanted.judge(Some(&measured)).verdict == Verdict::Undecided;
            let wanted = is_near.then(|| wanted.deciding_half_width(measured.mean))?;
            // Half-widths shrink with the square root of the number of runs.
            let shrink = measured.ci95 / wanted;
            Some((n as f64 * shrink * shrink).min(SEEDS_MAX as f64).ceil() as u64)
        });
        let target = counts.max()?.clamp(n + 1, 2 * n + 3).min(SEEDS_MAX);
        (target > n).then_some(n + 1..=target)
    };
    reports.iter().enumerate().filter_map(|(index, report)| Some((index, wanted(report)?))).collect()
}
