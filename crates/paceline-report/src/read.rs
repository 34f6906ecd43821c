//! A folder of results, as `--out DIR` made it: which runs there are, and their rows.
//!
//! Tables are read a row group at a time and only in the columns that figures need, so memory does not grow with the
//! length of a run.

mod column;
mod rows;

pub use rows::{Event, FlowKind, FlowRow, FrameRow, PacketRow, SignalRow};

use crate::error::ReportError;
use paceline_lab::gap::{GAP_FILE, Gap, Gaps};
use paceline_lab::group::Group;
use paceline_lab::store::{About, Manifest, RUNS, Setting, Store, StoreError, StoredRun};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of results.
#[derive(Debug)]
pub struct Results {
    /// The folder.
    pub dir: PathBuf,
    /// Its runs, in the manifest's order.
    pub runs: Vec<Run>,
    /// What several runs came to together; none in a folder of an older version.
    pub groups: Vec<Group>,
    /// How far runs of two worlds lie apart; none but in a folder of `gap`.
    pub gaps: Vec<Gap>,
}

/// A stored run.
#[derive(Debug)]
pub struct Run {
    /// As the manifest lists it.
    pub stored: StoredRun,
    /// What it was made from.
    pub about: About,
    /// The result, as `run --json` prints it; null if it was cut.
    pub result: Value,
    /// Its folder.
    place: PathBuf,
}

impl Results {
    /// Opens a folder.
    ///
    /// # Errors
    /// It is none, or holds no run, or one of its files is damaged.
    pub fn open(dir: &Path) -> Result<Self, ReportError> {
        let manifest = Manifest::read(dir)?;
        if manifest.runs.is_empty() {
            return Err(ReportError::Empty { path: dir.to_path_buf() });
        }
        let runs = manifest.runs.into_iter().map(|stored| Run::open(dir, stored)).collect::<Result<_, _>>()?;
        let gaps = dir.join(GAP_FILE);
        let gaps = if gaps.is_file() { json::<Gaps>(&gaps)?.gaps } else { Vec::new() };
        Ok(Self { dir: dir.to_path_buf(), runs, groups: Store::groups(dir)?, gaps })
    }

    /// The scenarios of its runs, each once, in order.
    pub fn scenarios(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.runs.iter().map(|run| run.stored.scenario.as_str()).collect();
        all.dedup();
        all
    }
}

impl Run {
    fn open(dir: &Path, stored: StoredRun) -> Result<Self, ReportError> {
        let place = dir.join(RUNS).join(&stored.directory);
        let about = About::read(&place)?;
        let result = match stored.cut_at_s {
            None => json(&place.join("run.json"))?,
            Some(_) => Value::Null,
        };
        Ok(Self { stored, about, result, place })
    }

    /// What the run's plots need of its plan; none in a folder of an older version.
    pub fn setting(&self) -> Option<&Setting> {
        self.about.inputs.setting.as_ref()
    }

    /// How long it lasted, s; up to where its rows go, if it was cut.
    pub fn duration_s(&self) -> f64 {
        self.stored.cut_at_s.or(self.result["duration_s"].as_f64()).unwrap_or(0.0)
    }

    /// Where it was cut, in words.
    pub fn cut(&self) -> Option<String> {
        self.stored.cut_at_s.map(|end_s| format!("cut at {end_s} s"))
    }

    /// The name of what controls a flow.
    pub fn controller(&self, flow: usize) -> &str {
        self.stored.controllers.get(flow).and_then(Option::as_deref).unwrap_or("none")
    }

    /// How many rows a table has, as the manifest says.
    pub fn rows(&self, table: &str) -> u64 {
        self.stored.files.iter().find(|file| file.name == table).map_or(0, |file| file.rows)
    }

    fn table(&self, name: &str) -> Result<column::Table, ReportError> {
        column::Table::open(self.place.join(name))
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    let text = fs::read(path).map_err(|source| ReportError::Io { action: "read", path: path.to_path_buf(), source })?;
    serde_json::from_slice(&text)
        .map_err(|error| StoreError::Damaged { path: path.to_path_buf(), cause: error.to_string() }.into())
}
