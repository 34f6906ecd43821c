//! A folder of results, as `--out DIR` made it: which runs there are, and their rows.
//!
//! Tables are read a row group at a time and only in the columns that figures need, so memory does not grow with the
//! length of a run.

mod column;
mod rows;

pub use rows::{Event, FlowKind, FlowRow, FrameRow, PacketRow, SignalRow};

use crate::error::ReportError;
use paceline_lab::store::{About, Manifest, RUNS, Setting, StoredRun};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
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
}

/// A stored run.
#[derive(Debug)]
pub struct Run {
    /// As the manifest lists it.
    pub stored: StoredRun,
    /// What it was made from.
    pub about: About,
    /// The result, as `run --json` prints it.
    pub result: Value,
    /// Its folder.
    place: PathBuf,
}

/// Runs of one scenario under the same controllers and changes, on several seeds, and what they came to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Scenario id.
    pub scenario: String,
    /// A line on it.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The case, as its label.
    pub case: Value,
    /// Controller of each flow, or the one asked for.
    pub controllers: Value,
    /// What `--set` changed.
    pub changes: Vec<String>,
    /// Version of the program that ran.
    pub version: String,
    /// The command that makes the group again.
    pub command: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Folders of its runs.
    pub runs: Vec<String>,
    /// Every metric over the runs.
    pub summary: BTreeMap<String, Interval>,
    /// Published values and claims, as `reproduce --json` prints them.
    pub cells: Vec<Cell>,
    /// Bounds, as `run --json` prints them.
    pub assertions: Vec<Value>,
    /// What was assumed because no source gives it.
    pub assumed: Vec<Assumed>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A mean and how well it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Over the runs.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
    /// Half the 95 % interval of the mean.
    pub ci95: f64,
    /// Runs.
    pub n: u64,
}

/// A published value or a claim, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// Metric id.
    pub metric: String,
    /// Flow, if it is taken of one.
    pub flow: Option<String>,
    /// The span it is taken over, s.
    pub window_s: Option<(f64, f64)>,
    /// What was published; none for a claim.
    pub published: Option<f64>,
    /// How far the mean may lie from it.
    pub tolerance: Option<f64>,
    /// The mean.
    pub measured: Option<f64>,
    /// Half its 95 % interval.
    pub ci95: Option<f64>,
    /// The claim's id.
    pub claim: Option<Value>,
    /// Lowest and highest that a claim allows.
    pub bounds: Option<(Option<f64>, Option<f64>)>,
    /// `reproduced`, `direction` or `not`.
    pub verdict: String,
    /// The cause, or what else to know.
    pub note: Option<String>,
}

/// An assumed constant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Assumed {
    /// Dotted key.
    pub key: String,
    /// What it was set to.
    pub value: Value,
    /// Why that.
    pub why: String,
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
        Ok(Self { dir: dir.to_path_buf(), runs, groups: groups(dir)? })
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
        let result = json(&place.join("run.json"))?;
        Ok(Self { stored, about, result, place })
    }

    /// What the run's plots need of its plan; none in a folder of an older version.
    pub fn setting(&self) -> Option<&Setting> {
        self.about.inputs.setting.as_ref()
    }

    /// How long it lasted, s.
    pub fn duration_s(&self) -> f64 {
        self.result["duration_s"].as_f64().unwrap_or(0.0)
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

fn json(path: &Path) -> Result<Value, ReportError> {
    let text = fs::read(path).map_err(|source| ReportError::Io { action: "read", path: path.to_path_buf(), source })?;
    serde_json::from_slice(&text).map_err(|error| damaged(path, &error))
}

fn damaged(path: &Path, error: &serde_json::Error) -> ReportError {
    paceline_lab::store::StoreError::Damaged { path: path.to_path_buf(), cause: error.to_string() }.into()
}

/// Reads the groups that the manifest lists. Their list may be newer than [`Manifest`]'s version of this crate knows,
/// so it is looked up by name.
fn groups(dir: &Path) -> Result<Vec<Group>, ReportError> {
    let manifest = json(&dir.join("manifest.json"))?;
    let listed = manifest["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let read = |entry: &Value| -> Result<Option<Group>, ReportError> {
        let Some(file) = entry["file"].as_str().filter(|file| !file.contains("..")) else { return Ok(None) };
        let path = dir.join(file);
        let mut group: Group = serde_json::from_value(json(&path)?).map_err(|error| damaged(&path, &error))?;
        if group.runs.is_empty() {
            group.runs = serde_json::from_value(entry["runs"].clone()).unwrap_or_default();
        }
        Ok(Some(group))
    };
    listed.iter().filter_map(|entry| read(entry).transpose()).collect()
}
