// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a folder of results written by `--out DIR`: its runs and their events.
//!
//! Tables are read by row group. Memory use does not grow with the length of a run.

use crate::report::error::ReportError;
use crate::results::Store;
pub use crate::results::tables::{RunTables, SignalRow};
pub use crate::results::{Contents as Results, StoredRunData as Run};
use paceline_netsim::records::RunDescription;
use std::path::Path;

impl Results {
    /// Opens a folder.
    pub fn open(dir: &Path) -> Result<Self, ReportError> {
        let mut results = Store::read(dir)?;
        if results.runs.is_empty() {
            return Err(ReportError::Empty { path: dir.to_path_buf() });
        }
        for table in &results.comparisons {
            let place = |run: &Run| {
                table.controllers.iter().position(|name| run.about.run.controllers.contains(&Some(name.clone())))
            };
            let of_scenario = |run: &&mut [Run]| run[0].about.run.scenario == table.scenario;
            let runs = results.runs.chunk_by_mut(|a, b| a.about.run.scenario == b.about.run.scenario);
            runs.filter(of_scenario).for_each(|part| part.sort_by_key(place));
        }
        Ok(results)
    }

    /// Returns what is left out of a scenario, and why.
    pub(crate) fn notes_of(&self, scenario: &str) -> impl Iterator<Item = String> {
        let name = format!("`{scenario}`");
        self.notes.iter().filter(move |note| note.contains(&name)).cloned()
    }

    /// Returns the scenarios of its runs in order, without repetitions.
    pub fn scenarios(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.runs.iter().map(|run| run.about.run.scenario.as_str()).collect();
        all.dedup();
        all
    }
}

impl Run {
    /// Returns the description of the run for plots; `None` in a folder of an older version.
    pub fn description(&self) -> Option<&RunDescription> {
        self.about.inputs.setting.as_ref()
    }

    /// Returns the duration of the run, s; for an interrupted run, the time of its last event.
    pub fn duration_s(&self) -> f64 {
        self.about.run.cut_at_s.or(self.result["duration_s"].as_f64()).unwrap_or(0.0)
    }

    pub fn cut(&self) -> Option<String> {
        self.about.run.cut_at_s.map(|end_s| format!("cut at {end_s} s"))
    }

    pub fn controller(&self, flow: usize) -> &str {
        self.about.run.controllers.get(flow).and_then(Option::as_deref).unwrap_or("none")
    }

    pub fn rows(&self, table: &str) -> u64 {
        self.about.run.files.iter().find(|file| file.name == table).map_or(0, |file| file.rows)
    }

    pub fn tables(&self) -> RunTables<'_> {
        RunTables::new(&self.dir, &self.about)
    }
}
