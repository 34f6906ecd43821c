//! A group: what several runs of one plan came to, in one document that needs no rows. Comparisons and reports read these.

use crate::label::Label;
use crate::plan::Plan;
use crate::reproduce::{Assumed, Cell, cells_of};
use crate::run::{Assertion, RunsResult};
use crate::stats::Summary;
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
    fn of(plan: &Plan, run: &crate::run::RunResult) -> Self {
        Self { seed: run.seed, trace_hash: run.trace_hash.clone(), metrics: run.metrics(plan) }
    }
}
