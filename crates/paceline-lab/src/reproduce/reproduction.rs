// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reproduction of experiments: first runs, more seeds where an interval is too wide, then changes.

use super::runs::{RunContext, RunJob, SEEDS_MAX, Seeds, first_runs, jobs, run_jobs};
use crate::judge::{Experiment, ExperimentRuns, kind_of};
use crate::results::{Check, ExperimentReport, Report, Verdict};
use crate::run::Runner;
use core::ops::RangeInclusive;
use paceline_netsim::world::WorldError;

/// Reproduces experiments, and returns every verdict.
pub fn reproduce(context: RunContext<'_>, experiments: &[Experiment], seeds: Seeds) -> Result<Report, WorldError> {
    Ok(reproduce_with_runs(context, experiments, seeds)?.0)
}

/// Returns every verdict as [`reproduce`] does, and the runs of each experiment.
pub(super) fn reproduce_with_runs(
    context: RunContext<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
) -> Result<(Report, Vec<ExperimentRuns>), WorldError> {
    let (mut reports, runs) = verdicts(context, experiments, seeds)?;
    try_changes(context, experiments, &mut reports)?;
    Ok((Report::of(reports), runs))
}

/// Runs every experiment on as many seeds as its verdicts need.
pub(super) fn verdicts(
    context: RunContext<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
) -> Result<(Vec<ExperimentReport>, Vec<ExperimentRuns>), WorldError> {
    let mut runs = first_runs(context, experiments, seeds)?;
    loop {
        let reports = report_all(context.runner, experiments, &runs);
        let additional_seeds = match seeds {
            Seeds::Exactly(_) => Vec::new(),
            Seeds::AsNeeded => more_seeds(&reports),
        };
        if additional_seeds.is_empty() {
            return Ok((reports, runs));
        }
        let more =
            additional_seeds.into_iter().flat_map(|(experiment, seeds)| jobs(experiments, experiment, seeds)).collect();
        run_jobs(context, experiments, more, &mut runs)?;
    }
}

/// Runs each experiment on seeds from 1 to its number in `seeds`.
pub(super) fn reports_on_seeds(
    context: RunContext<'_>,
    experiments: &[Experiment],
    seeds: &[u64],
) -> Result<Vec<ExperimentReport>, WorldError> {
    let all: Vec<RunJob> =
        (0..experiments.len()).flat_map(|index| jobs(experiments, index, 1..=seeds[index])).collect();
    let mut runs: Vec<ExperimentRuns> = experiments.iter().map(ExperimentRuns::none).collect();
    run_jobs(context, experiments, all, &mut runs)?;
    Ok(report_all(context.runner, experiments, &runs))
}

fn report_all(runner: &Runner<'_>, experiments: &[Experiment], runs: &[ExperimentRuns]) -> Vec<ExperimentReport> {
    experiments.iter().zip(runs).map(|(experiment, runs)| experiment.report(runs, runner.world.name())).collect()
}

/// Repeats cells that are not reproduced with the changes that should reproduce them, on the same seeds.
fn try_changes(
    context: RunContext<'_>,
    experiments: &[Experiment],
    reports: &mut [ExperimentReport],
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
    let results = reports_on_seeds(context, &changed, &seeds)?;
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
