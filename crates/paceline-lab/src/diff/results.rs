// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compared entries: groups of a folder of results, or cases of a scoreboard.

use crate::results::{
    Assumed, CaseRuns, Cell, ExperimentReport, Group, RunMetrics, SCOREBOARD_FILE, Scoreboard, Store, StoreError,
};
use paceline_netsim::records::Label;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) scenario: String,
    pub(super) world: String,
    pub(super) case: Label,
    /// Controller of each flow; empty for a case of a scoreboard, which has those of the scenario.
    pub(super) controllers: Vec<String>,
    pub(super) changes: Vec<String>,
    pub(super) version: String,
    pub(super) assumed: Vec<Assumed>,
    /// The runs of a group.
    pub(super) runs: Vec<RunMetrics>,
    /// The hash of a scoreboard over all runs.
    pub(super) together: Option<CaseRuns>,
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// Neither a folder of results nor a scoreboard.
    #[error("`{}` holds neither results nor a scoreboard", .path.display())]
    Neither { path: PathBuf },
    #[error("`{}` lists no group of runs", .path.display())]
    NoGroups { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Entry {
    pub(super) fn key(&self) -> (&str, &str, &Label, &[String]) {
        (&self.scenario, &self.world, &self.case, &self.controllers)
    }

    pub(super) fn count(&self) -> usize {
        self.together.as_ref().map_or(self.runs.len(), |runs| runs.n)
    }
}

/// Reads the results at a path: a folder of `--out`, a scoreboard, or the folder of a scoreboard.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, DiffError> {
    if path.is_file() {
        return Ok(of_scoreboard(&Scoreboard::read(path)?));
    }
    let scoreboard = path.join(SCOREBOARD_FILE);
    if scoreboard.is_file() {
        return Ok(of_scoreboard(&Scoreboard::read(&scoreboard)?));
    }
    if !Store::exists(path) {
        return Err(DiffError::Neither { path: path.to_path_buf() });
    }
    match Store::read(path)?.groups.as_slice() {
        [] => Err(DiffError::NoGroups { path: path.to_path_buf() }),
        groups => Ok(groups.iter().map(of_group).collect()),
    }
}

fn of_group(group: &Group) -> Entry {
    let Group { scenario, world, case, changes, version, assumed, per_run, cells, .. } = group.clone();
    let none = |controller: &Option<String>| controller.clone().unwrap_or_else(|| "none".to_owned());
    let controllers = group.controllers.iter().map(none).collect();
    Entry { scenario, world, case, controllers, changes, version, assumed, runs: per_run, together: None, cells }
}

fn of_scoreboard(board: &Scoreboard) -> Vec<Entry> {
    let cases = board.report.experiments.iter().flat_map(|e| e.runs.iter().map(move |runs| (e, runs)));
    let entry = |(experiment, runs): (&ExperimentReport, &CaseRuns)| Entry {
        scenario: experiment.id.clone(),
        world: experiment.cells.first().map_or_else(String::new, |cell| cell.world.clone()),
        case: runs.case.clone(),
        controllers: Vec::new(),
        changes: Vec::new(),
        version: board.version.clone(),
        assumed: experiment.assumed.clone(),
        runs: Vec::new(),
        together: Some(runs.clone()),
        cells: experiment.cells.iter().filter(|cell| cell.case == runs.case).cloned().collect(),
    };
    cases.map(entry).collect()
}
