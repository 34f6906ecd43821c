// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that the judge needs of the runs of an experiment.

use super::Experiment;
use crate::results::Looks;
#[cfg(feature = "storage")]
use crate::{results::database::MeasuredRun, run_identity::measured_run};
use std::collections::BTreeMap;

/// The measured quantities of a run, in the order of [`Scenario::quantities`].
pub(crate) type Values = Vec<Option<f64>>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunValues {
    pub(crate) trace_hash: String,
    pub(crate) values: Values,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ExperimentRuns {
    /// As written and with the null sender, for each case: runs by seed.
    pub(crate) runs: [Vec<BTreeMap<u64, RunValues>>; 2],
    /// The looks at them, if their number depends on the verdicts.
    pub(crate) looks: Option<Looks>,
    /// Sum of their wall times, s.
    pub(crate) wall_s: f64,
}

impl ExperimentRuns {
    pub(crate) fn none(experiment: &Experiment) -> Self {
        let runs = [false, true].map(|null| vec![BTreeMap::new(); experiment.scenarios(null).len()]);
        Self { runs, ..Self::default() }
    }

    pub(crate) fn of(&self, null: bool) -> &[BTreeMap<u64, RunValues>] {
        &self.runs[usize::from(null)]
    }

    #[cfg(feature = "storage")]
    pub(crate) fn measured<'a>(
        &'a self,
        experiment: &'a Experiment,
        world: &'a str,
    ) -> impl Iterator<Item = MeasuredRun> + 'a {
        experiment.cases.iter().zip(self.of(false)).flat_map(move |(scenario, runs)| {
            runs.iter().map(move |(seed, run)| measured_run(scenario, (world, *seed), &run.trace_hash, &run.values))
        })
    }
}
