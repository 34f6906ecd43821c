//! A group: what several runs of one plan came to, in one document that needs no rows. Comparisons and reports read these.

use crate::label::Label;
use crate::plan::Plan;
use crate::reproduce::{Assumed, Cell, cells_of};
use crate::run::{Assertion, RunResult, RunsResult};
use crate::stats::{Paired, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What several runs of one plan came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Scenario id.
    pub scenario: String,
    /// A line on it.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// World that they ran in.
    pub world: String,
    /// Which case of the scenario; empty: none, or the scenario as written.
    pub case: Label,
    /// Controller of each flow; none for a flow without.
    pub controllers: Vec<Option<String>>,
    /// What `--set` changed, as it was typed.
    pub changes: Vec<String>,
    /// Version of the program that ran.
    pub version: String,
    /// The command that makes the same numbers again.
    pub command: String,
    /// Seeds of the runs, in order.
    pub seeds: Vec<u64>,
    /// Folders of the runs, in the order of the seeds.
    pub runs: Vec<String>,
    /// Every metric of the run as a whole: mean, spread and interval over the runs.
    pub summary: BTreeMap<String, Summary>,
    /// The verdict on every published value and every bound that these runs alone decide.
    pub cells: Vec<Cell>,
    /// Every bound, and whether the mean keeps it.
    pub assertions: Vec<Assertion>,
    /// What was assumed because no source gives it.
    pub assumed: Vec<Assumed>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Each run's own numbers, in the order of the seeds.
    pub per_run: Vec<RunMetrics>,
}

/// One run's hash and metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMetrics {
    /// Its seed.
    pub seed: u64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// Every metric of the run as a whole that has a value.
    pub metrics: BTreeMap<String, f64>,
}

/// How a group was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Making {
    /// Version of the program.
    pub version: String,
    /// The command that makes the same numbers again.
    pub command: String,
    /// What `--set` changed, as it was typed.
    pub changes: Vec<String>,
    /// Folders of the runs, in the order of the results.
    pub runs: Vec<String>,
}

impl Group {
    /// Of the runs of a plan; none where there are none.
    pub fn of(plan: &Plan, result: &RunsResult, making: Making) -> Option<Self> {
        let first = result.runs.first()?;
        Some(Self {
            scenario: plan.id.clone(),
            title: plan.title.clone(),
            source: plan.source.clone(),
            world: first.world.clone(),
            case: plan.case.clone(),
            controllers: plan.flows.iter().map(|f| Some(f.control().to_owned())).collect(),
            changes: making.changes,
            version: making.version,
            command: making.command,
            seeds: result.runs.iter().map(|r| r.seed).collect(),
            runs: making.runs,
            summary: result.summary.clone(),
            cells: cells_of(plan, &result.runs),
            assertions: result.assertions.clone(),
            assumed: plan.constants.iter().filter(|c| c.applied).map(Assumed::of).collect(),
            notes: result.notes.clone(),
            per_run: result.runs.iter().map(|r| RunMetrics::of(plan, r)).collect(),
        })
    }
}

impl RunMetrics {
    /// Of a run of this plan.
    pub fn of(plan: &Plan, run: &RunResult) -> Self {
        Self { seed: run.seed, trace_hash: run.trace_hash.clone(), metrics: run.metrics(plan) }
    }
}

/// Runs beside a baseline's runs of the same seeds, in which paths, losses and cross traffic draw the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differences {
    /// Seeds that both have.
    pub seeds: usize,
    /// Seeds whose two runs decide alike from beginning to end: equal trace hashes.
    pub same_runs: usize,
    /// Metrics that have a value in every one of these runs, each an interval of its own: nothing is corrected for their
    /// number.
    pub metrics_compared: usize,
    /// Metrics whose interval excludes 0.
    pub told_apart: usize,
    /// What each metric is above the baseline's.
    pub metrics: BTreeMap<String, Paired>,
}

impl Differences {
    /// What `runs` are above `baseline`.
    pub fn between(baseline: &[RunMetrics], runs: &[RunMetrics]) -> Self {
        let partner = |from: &RunMetrics| runs.iter().find(|to| to.seed == from.seed);
        let pairs: Vec<(&RunMetrics, &RunMetrics)> = baseline.iter().filter_map(|f| Some((f, partner(f)?))).collect();
        let difference = |id: &String| {
            let values = pairs.iter().map(|(from, to)| Some((*from.metrics.get(id)?, *to.metrics.get(id)?)));
            Some((id.clone(), Paired::of(&values.collect::<Option<Vec<_>>>()?)?))
        };
        let ids = pairs.first().into_iter().flat_map(|(from, _)| from.metrics.keys());
        let metrics: BTreeMap<String, Paired> = ids.filter_map(difference).collect();
        Self {
            seeds: pairs.len(),
            same_runs: pairs.iter().filter(|(from, to)| from.trace_hash == to.trace_hash).count(),
            metrics_compared: metrics.len(),
            told_apart: metrics.values().filter(|d| d.apart == Some(true)).count(),
            metrics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, trace_hash: &str, metrics: &[(&str, f64)]) -> RunMetrics {
        let metrics = metrics.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
        RunMetrics { seed, trace_hash: trace_hash.to_owned(), metrics }
    }

    #[test]
    fn runs_are_paired_by_seed() {
        let baseline = [
            run(1, "a", &[("jain", 0.5), ("loss_ratio", 0.1), ("freeze_s", 1.0)]),
            run(2, "b", &[("jain", 0.9), ("loss_ratio", 0.2)]),
            run(3, "c", &[("jain", 0.0)]),
        ];
        let runs = [
            run(2, "b", &[("jain", 1.0), ("loss_ratio", 0.2), ("freeze_s", 2.0)]),
            run(1, "x", &[("jain", 0.6), ("loss_ratio", 0.1), ("freeze_s", 2.0)]),
        ];
        let found = Differences::between(&baseline, &runs);
        // Seed 3 has no partner; freezes have no value in one run.
        assert_eq!((found.seeds, found.same_runs, found.metrics_compared, found.told_apart), (2, 1, 2, 1));
        assert!((found.metrics["jain"].mean - 0.1).abs() < 1e-12 && found.metrics["jain"].apart == Some(true));
        assert_eq!((found.metrics["loss_ratio"].mean, found.metrics["loss_ratio"].apart), (0.0, Some(false)));
        assert!(!found.metrics.contains_key("freeze_s"));
        let nothing = Differences::between(&baseline, &[]);
        assert_eq!((nothing.seeds, nothing.metrics_compared), (0, 0));
    }
}
