// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the experiments and formula tables of a reproduction, and makes its document.

use super::reproduction::reproduce_with_runs;
use super::runs::RunContext;
use super::{Conclusions, FormulaTable, Seeds};
use crate::done_runs::DoneRuns;
use crate::judge::Experiment;
use crate::results::database::MeasuredRun;
use crate::results::{ExperimentReport, PaperCounts, Report, papers};
use crate::run::Runner;
use paceline::Registry;
use paceline_netsim::world::WorldError;
use paceline_scenario::{Changes, Origin, Remark, ScenarioError, is_formula_table};
use serde::Serialize;

/// The experiments and formula tables of a reproduction.
#[derive(Default)]
pub struct Targets {
    /// Where each experiment was read from.
    pub origins: Vec<Origin>,
    /// Experiments with a published value or a bound, each with its null sender.
    pub experiments: Vec<Experiment>,
    /// Reports of formula tables, which need no run.
    pub tables: Vec<ExperimentReport>,
    pub conclusions: Vec<Conclusions>,
    /// The runs that were finished before, which are not repeated.
    pub done: Option<DoneRuns>,
    /// The controller of each experiment; `None` for that of the scenario.
    under: Vec<Option<String>>,
}

/// The verdicts, and their counts for each paper, as `reproduce --json` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct Verdicts {
    #[serde(flatten)]
    pub report: Report,
    pub papers: Vec<PaperCounts>,
    /// The simulated runs, without those of the null sender and of changes.
    #[serde(skip)]
    pub runs: Vec<MeasuredRun>,
}

impl Targets {
    /// Loads scenarios under their changes, and formula tables. A scenario without changes is also prepared to try the
    /// settings that its remarks name.
    pub fn load(
        origins: impl IntoIterator<Item = (Origin, Changes)>,
        registry: &Registry,
    ) -> Result<Self, ScenarioError> {
        let mut targets = Self::default();
        for (origin, changes) in origins {
            if is_formula_table(&origin.name) {
                targets.tables.push(FormulaTable::load(&origin)?.report);
                continue;
            }
            let mut experiment = Experiment::load_changed(&origin, &changes, registry)?;
            if changes.controller.is_some() {
                // Remarks are on the scenario's own controller.
                for case in &mut experiment.cases {
                    case.expects.iter_mut().for_each(|expect| expect.remark = Remark::default());
                    case.asserts.iter_mut().for_each(|assert| assert.remark = Remark::default());
                }
            }
            if experiment.has_expectations() {
                let experiment = experiment.with_null_sender();
                targets.experiments.push(match changes == Changes::default() {
                    true => experiment.with_changes(&origin, registry)?,
                    false => experiment,
                });
                targets.origins.push(origin);
                targets.under.push(changes.controller);
            }
        }
        if targets.under.iter().all(Option::is_none) {
            for origin in &targets.origins {
                let found = Conclusions::beside(origin, &targets.experiments)?;
                targets.conclusions.extend(found.filter(|one| !targets.conclusions.contains(one)));
            }
        }
        Ok(targets)
    }

    pub fn is_empty(&self) -> bool {
        self.experiments.is_empty() && self.tables.is_empty()
    }

    /// Makes the runs and returns every verdict. `announce` receives simulated seconds before they are run.
    pub fn verdicts(self, runner: &Runner<'_>, seeds: Seeds, announce: &dyn Fn(f64)) -> Result<Verdicts, WorldError> {
        let context = RunContext { runner, done: self.done.as_ref(), announce };
        let (mut report, runs) = reproduce_with_runs(context, &self.experiments, seeds)?;
        for (report, under) in report.experiments.iter_mut().zip(self.under) {
            report.under = under;
        }
        let world = runner.world.name();
        let measured =
            self.experiments.iter().zip(&runs).flat_map(|(experiment, runs)| runs.measured(experiment, world));
        let runs = measured.collect();
        let mut verdicts = Verdicts::of(report.experiments.into_iter().chain(self.tables).collect());
        let conclusions = self.conclusions.iter().flat_map(|paper| paper.judge(&verdicts.report.experiments)).collect();
        verdicts.report.conclusions = conclusions;
        Ok(Verdicts { runs, ..verdicts })
    }
}

impl Verdicts {
    pub fn of(experiments: Vec<ExperimentReport>) -> Self {
        let report = Report::of(experiments);
        Self { papers: papers(&report.experiments), report, runs: Vec::new() }
    }
}
