//! Reads a folder of results written by `--out DIR`: its runs and their events.
//!
//! Tables are read by row group, and only in the columns that figures need. Memory use does not grow with the length of a
//! run.

use crate::report::error::ReportError;
pub use crate::results::tables::{Event, FlowKind, FlowRow, FrameRow, PacketRow, RunTables, SignalRow};
use crate::results::{About, ComparisonTable, Contents, Group, Store, StoredRun, StoredRunData, Validation};
use paceline_netsim::records::RunDescription;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Results {
    pub dir: PathBuf,
    /// The runs, by scenario, controllers and seed; those of a comparison in the order of its controllers.
    pub runs: Vec<Run>,
    /// Summaries of groups of runs.
    pub groups: Vec<Group>,
    /// Comparisons of controllers, if the folder has any.
    pub comparisons: Vec<ComparisonTable>,
    /// Comparisons of two worlds, if the folder has any.
    pub validations: Vec<Validation>,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub struct Run {
    /// Names, seed and files.
    pub stored: StoredRun,
    pub about: About,
    /// The result, as `run --json` prints it; null if the run was interrupted.
    pub result: Value,
    dir: PathBuf,
}

impl Results {
    /// Opens a folder.
    pub fn open(dir: &Path) -> Result<Self, ReportError> {
        let Contents { runs, groups, comparisons, validations, notes } = Store::read(dir)?;
        if runs.is_empty() {
            return Err(ReportError::Empty { path: dir.to_path_buf() });
        }
        let mut runs: Vec<Run> = runs.into_iter().map(Run::new).collect();
        for table in &comparisons {
            let place = |run: &Run| {
                table.controllers.iter().position(|name| run.stored.controllers.contains(&Some(name.clone())))
            };
            let of_scenario = |run: &&mut [Run]| run[0].stored.scenario == table.scenario;
            let parts = runs.chunk_by_mut(|a, b| a.stored.scenario == b.stored.scenario).filter(of_scenario);
            parts.for_each(|part| part.sort_by_key(place));
        }
        Ok(Self { dir: dir.to_path_buf(), runs, groups, comparisons, validations, notes })
    }

    /// Returns what is left out of a scenario, and why.
    pub(crate) fn notes_of(&self, scenario: &str) -> impl Iterator<Item = String> {
        let name = format!("`{scenario}`");
        self.notes.iter().filter(move |note| note.contains(&name)).cloned()
    }

    /// Returns the scenarios of its runs in order, without repetitions.
    pub fn scenarios(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.runs.iter().map(|run| run.stored.scenario.as_str()).collect();
        all.dedup();
        all
    }
}

impl Run {
    fn new(StoredRunData { about, result, dir }: StoredRunData) -> Self {
        Self { stored: about.run.clone(), about, result, dir }
    }

    /// Returns the description of the run for plots; `None` in a folder of an older version.
    pub fn description(&self) -> Option<&RunDescription> {
        self.about.inputs.setting.as_ref()
    }

    /// Returns the duration of the run, s; for an interrupted run, the time of its last event.
    pub fn duration_s(&self) -> f64 {
        self.stored.cut_at_s.or(self.result["duration_s"].as_f64()).unwrap_or(0.0)
    }

    pub fn cut(&self) -> Option<String> {
        self.stored.cut_at_s.map(|end_s| format!("cut at {end_s} s"))
    }

    pub fn controller(&self, flow: usize) -> &str {
        self.stored.controllers.get(flow).and_then(Option::as_deref).unwrap_or("none")
    }

    pub fn rows(&self, table: &str) -> u64 {
        self.stored.files.iter().find(|file| file.name == table).map_or(0, |file| file.rows)
    }

    pub fn tables(&self) -> RunTables<'_> {
        RunTables::new(&self.dir, &self.about)
    }
}
