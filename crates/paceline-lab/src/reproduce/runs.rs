// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of a reproduction: one list, longest first, so that all cores are busy until the end.

use crate::done_runs::DoneRuns;
use crate::judge::{Experiment, ExperimentRuns, RunValues};
use crate::results::StoreError;
use crate::run::{Runner, windows};
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::world::WorldError;
use paceline_scenario::Scenario;
use paceline_units::Time;
use rayon::prelude::*;

/// No experiment gets more runs than this of each case.
pub const SEEDS_MAX: u64 = 40;

/// The number of runs of each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// The number in the scenario, and more where an interval is too wide for a verdict.
    AsNeeded,
    /// Seeds from 1 to this.
    Exactly(u64),
}

/// How runs are made.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    pub runner: &'a Runner<'a>,
    /// The runs that were done before, which are not repeated. The new ones are added.
    pub done: Option<&'a DoneRuns>,
    /// Receives the simulated seconds before they are run.
    pub announce: &'a dyn Fn(f64),
}

impl<'a> RunContext<'a> {
    /// Makes every run, and announces none.
    pub fn all(runner: &'a Runner<'a>) -> Self {
        Self { runner, done: None, announce: &|_| () }
    }
}

pub(crate) struct RunJob {
    pub(crate) experiment: usize,
    pub(crate) null: bool,
    pub(crate) case: usize,
    pub(crate) seed: u64,
}

pub(super) fn first_runs(
    context: RunContext<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
) -> Result<Vec<ExperimentRuns>, WorldError> {
    let mut measured: Vec<ExperimentRuns> = experiments.iter().map(ExperimentRuns::none).collect();
    let first = experiments.iter().enumerate().flat_map(|(index, e)| {
        let count = match seeds {
            Seeds::AsNeeded => e.cases[0].repeats as u64,
            Seeds::Exactly(count) => count,
        };
        jobs(experiments, index, 1..=count)
    });
    run_jobs(context, experiments, first.collect(), &mut measured)?;
    Ok(measured)
}

pub(super) fn jobs(
    experiments: &[Experiment],
    experiment: usize,
    seeds: core::ops::RangeInclusive<u64>,
) -> Vec<RunJob> {
    let one = |null: bool| {
        let cases = 0..experiments[experiment].scenarios(null).len();
        let seeds = seeds.clone();
        cases.flat_map(move |case| seeds.clone().map(move |seed| RunJob { experiment, null, case, seed }))
    };
    one(false).chain(one(true)).collect()
}

/// Reads the runs that were done before, and returns the jobs that are left.
pub(crate) fn restore(
    world: &str,
    experiments: &[Experiment],
    jobs: Vec<RunJob>,
    measured: &mut [ExperimentRuns],
    done: &DoneRuns,
) -> Result<Vec<RunJob>, StoreError> {
    let mut missing = Vec::new();
    for job in jobs {
        let scenario = &experiments[job.experiment].scenarios(job.null)[job.case];
        match done.find(scenario, world, job.seed)? {
            Some(run) => {
                measured[job.experiment].runs[usize::from(job.null)][job.case].insert(job.seed, run);
            }
            None => missing.push(job),
        }
    }
    Ok(missing)
}

/// Makes the runs, longest first, on all threads, and adds them to those that are done.
pub(crate) fn run_jobs(
    RunContext { runner, done, announce }: RunContext<'_>,
    experiments: &[Experiment],
    mut jobs: Vec<RunJob>,
    measured: &mut [ExperimentRuns],
) -> Result<(), WorldError> {
    let scenario = |job: &RunJob| &experiments[job.experiment].scenarios(job.null)[job.case];
    let world = runner.world.name();
    let broken = |error: StoreError| WorldError::broken_by(&error);
    if let Some(done) = done {
        jobs = restore(world, experiments, jobs, measured, done).map_err(broken)?;
    }
    announce(jobs.iter().map(|j| scenario(j).plan.duration.as_secs_f64()).sum());
    jobs.sort_by_cached_key(|j| core::cmp::Reverse(traffic(scenario(j))));
    // `par_bridge` starts the jobs in order.
    let each = |job: RunJob| {
        let scenario = scenario(&job);
        let (run, ()) =
            runner.retry_if_disturbed(|| Ok::<_, WorldError>((runner.run_requested(scenario, job.seed)?, ())))?;
        let windows = windows(scenario);
        let values = scenario.quantities().map(|quantity| run.value(scenario, &windows, quantity)).collect();
        let values = RunValues { trace_hash: run.trace_hash, values };
        if let Some(done) = done {
            done.add(scenario, world, job.seed, &values).map_err(broken)?;
        }
        Ok((job, values, run.wall_s))
    };
    let made: Vec<(RunJob, RunValues, f64)> =
        runner.on_threads(|| jobs.into_iter().par_bridge().map(each).collect::<Result<_, WorldError>>())?;
    for (job, run, wall_s) in made {
        measured[job.experiment].wall_s += wall_s;
        measured[job.experiment].runs[usize::from(job.null)][job.case].insert(job.seed, run);
    }
    Ok(())
}

/// Estimates the simulated traffic, in bytes: the capacity of the bottleneck, or the maximum of the sources if that is less.
pub(crate) fn traffic(scenario: &Scenario) -> u64 {
    let plan = &scenario.plan;
    let life = |f: &FlowPlan| (f.stop - f.start).as_secs_f64();
    let offered: Option<f64> = plan.flows.iter().map(|f| Some(f.max_rate()?.as_bps_f64() * life(f) / 8.0)).sum();
    let offered = offered.map_or(u64::MAX, |bytes| bytes as u64);
    let capacity = plan.hops[plan.bottleneck].capacity.as_ref();
    capacity.map_or(offered, |c| c.volume(Time::ZERO, Time::ZERO + plan.duration).as_bytes().min(offered))
}
