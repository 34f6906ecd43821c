//! The runs of a reproduction: one list, longest first.

use super::{Experiment, Seeds};
use crate::plan::{FlowPlan, Plan};
use crate::run::{Runner, windows};
use crate::world::WorldError;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A run to be made.
pub(super) struct Job {
    pub(super) experiment: usize,
    pub(super) null: bool,
    pub(super) case: usize,
    pub(super) seed: u64,
}

/// Everything that a run was asked for, in the order of [`Plan::quantities`].
pub(super) type Values = Vec<Option<f64>>;

/// What one run came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) trace_hash: String,
    pub(super) values: Values,
}

/// What runs of an experiment came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Of each case, and of each under the null sender: by seed.
    pub(super) runs: [Vec<BTreeMap<u64, Run>>; 2],
    /// Seconds that they took, one after the other.
    pub(super) wall_s: f64,
}

impl Measured {
    pub(super) fn none(experiment: &Experiment) -> Self {
        let runs = [false, true].map(|null| vec![BTreeMap::new(); experiment.plans(null).len()]);
        Self { runs, wall_s: 0.0 }
    }

    pub(super) fn of(&self, null: bool) -> &[BTreeMap<u64, Run>] {
        &self.runs[usize::from(null)]
    }
}

pub(super) fn first_runs(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    seeds: Seeds,
    announce: &dyn Fn(f64),
) -> Result<Vec<Measured>, WorldError> {
    let mut measured: Vec<Measured> = experiments.iter().map(Measured::none).collect();
    let first = experiments.iter().enumerate().flat_map(|(index, e)| {
        let count = match seeds {
            Seeds::AsNeeded => e.cases[0].repeats as u64,
            Seeds::Exactly(count) => count,
        };
        jobs(experiments, index, 1..=count)
    });
    run_jobs(runner, experiments, first.collect(), &mut measured, announce)?;
    Ok(measured)
}

pub(super) fn jobs(experiments: &[Experiment], experiment: usize, seeds: core::ops::RangeInclusive<u64>) -> Vec<Job> {
    let one = |null: bool| {
        let cases = 0..experiments[experiment].plans(null).len();
        let seeds = seeds.clone();
        cases.flat_map(move |case| seeds.clone().map(move |seed| Job { experiment, null, case, seed }))
    };
    one(false).chain(one(true)).collect()
}

/// Makes the runs, the longest first, on as many threads as there are.
pub(super) fn run_jobs(
    runner: &Runner<'_>,
    experiments: &[Experiment],
    mut jobs: Vec<Job>,
    measured: &mut [Measured],
    announce: &dyn Fn(f64),
) -> Result<(), WorldError> {
    let plan = |job: &Job| &experiments[job.experiment].plans(job.null)[job.case];
    announce(jobs.iter().map(|j| plan(j).duration.as_secs_f64()).sum());
    jobs.sort_by_cached_key(|j| core::cmp::Reverse(traffic(plan(j))));
    // `par_bridge` hands out one after the other, in order.
    let each = |job: Job| {
        let plan = plan(&job);
        let (run, ()) = runner.undisturbed(|| Ok::<_, WorldError>((runner.run(plan, job.seed, None)?, ())))?;
        let windows = windows(plan);
        let values = plan.quantities().map(|quantity| run.value(plan, &windows, quantity)).collect();
        Ok((job, Run { trace_hash: run.trace_hash, values }, run.wall_s))
    };
    let done: Vec<(Job, Run, f64)> =
        runner.on_threads(|| jobs.into_iter().par_bridge().map(each).collect::<Result<_, WorldError>>())?;
    for (job, run, wall_s) in done {
        measured[job.experiment].wall_s += wall_s;
        measured[job.experiment].runs[usize::from(job.null)][job.case].insert(job.seed, run);
    }
    Ok(())
}

/// About how much there is to simulate, in bytes: what the bottleneck could pass, or what the sources can use.
pub(super) fn traffic(plan: &Plan) -> u64 {
    let life = |f: &FlowPlan| (f.stop - f.start).as_secs_f64();
    let asked: Option<f64> = plan.flows.iter().map(|f| Some(f.most()?.as_bps_f64() * life(f) / 8.0)).sum();
    let end = paceline_units::Time::ZERO + plan.duration;
    let passed = plan.hops[plan.bottleneck].capacity.as_ref().map(|c| c.volume(paceline_units::Time::ZERO, end));
    let asked = asked.map_or(u64::MAX, |bytes| bytes as u64);
    passed.map_or(asked, |passed| passed.as_bytes().min(asked))
}
