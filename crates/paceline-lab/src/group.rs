// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs of one scenario as the document that comparisons and reports read.

use crate::judge::{assumed, cells_of};
use crate::results::{Group, RunMetrics};
use crate::run_result::{RunResult, RunsResult};
use paceline_scenario::Scenario;

/// The provenance of a group of runs: version, command, changes and folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    pub version: String,
    pub command: String,
    pub changes: Vec<String>,
    pub runs: Vec<String>,
}

/// Returns the group of the runs of a scenario; `None` where there are none.
pub fn group_of(scenario: &Scenario, result: &RunsResult, making: Provenance) -> Option<Group> {
    let plan = &scenario.plan;
    let first = result.runs.first()?;
    Some(Group {
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
        cells: cells_of(scenario, &result.runs),
        assertions: result.assertions.clone(),
        assumed: scenario.constants.iter().filter(|c| c.applied).map(assumed).collect(),
        notes: result.notes.clone(),
        per_run: result.runs.iter().map(|r| run_metrics(scenario, r)).collect(),
    })
}

pub fn run_metrics(scenario: &Scenario, run: &RunResult) -> RunMetrics {
    RunMetrics { seed: run.seed, trace_hash: run.trace_hash.clone(), metrics: run.metrics(scenario) }
}
