// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a folder of results keeps of a run besides its values: inputs, names and files.

use crate::results::{StoreError, files};
use paceline_netsim::records::{Environment, RunDescription, RunHeader, SignalDescription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

pub const RUNS: &str = "runs";

/// The inputs of a run. The store does not interpret them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInputs {
    #[serde(flatten)]
    pub environment: Environment,
    /// Date, from the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Hash of the resolved scenario with its controllers.
    #[serde(default)]
    pub plan_hash: String,
    /// Hash of the resolved scenario without its controllers.
    #[serde(default)]
    pub scenario_hash: String,
    pub scenario_text: String,
    /// Changes to it, each as `dotted.key=value`, in order.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Metadata that plots need and events do not carry: title, capacity, propagation, signals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<RunDescription>,
    /// Further values of the caller.
    #[serde(default)]
    pub more: BTreeMap<String, serde_json::Value>,
}

impl RunInputs {
    /// Returns whether both are equal but for date, commit and machine.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let undated = |inputs: &Self| {
            let environment = Environment { version: inputs.environment.version.clone(), ..Environment::default() };
            Self { created: None, environment, ..inputs.clone() }
        };
        undated(self) == undated(other)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Name of its folder under `runs`.
    pub directory: String,
    pub scenario: String,
    pub world: String,
    /// Controller of each flow; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    pub seed: u64,
    pub version: String,
    /// Commit of the program's source, if the program gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Trace hash, if the result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// For a run whose process was killed: the time up to which there are rows, s. Such a run has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at_s: Option<f64>,
    pub files: Vec<StoredFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFile {
    pub name: String,
    pub rows: u64,
    /// The first 16 bytes of its BLAKE3 hash, as hexadecimal digits.
    pub checksum: String,
}

impl StoredFile {
    /// Describes a file with this number of rows.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(path: &Path, rows: u64) -> Result<Self, StoreError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, rows, checksum: files::checksum(path)? })
    }

    /// Opens the file at this path.
    ///
    /// # Errors
    /// It cannot be read, or is not as it was written.
    pub(crate) fn open(&self, path: &Path) -> Result<File, StoreError> {
        let mut file = File::open(path).map_err(files::io("open", path))?;
        // Tests of damaged tables remove the checksum.
        let is_unchecked = cfg!(test) && self.checksum.is_empty();
        if is_unchecked || files::checksum_of(&mut file, path)? == self.checksum {
            return Ok(file);
        }
        let cause = "its contents are not those that were written; run the scenario again".to_owned();
        Err(StoreError::Damaged { path: path.to_path_buf(), cause })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub run: StoredRun,
    pub inputs: RunInputs,
    pub flows: Vec<String>,
    /// Name of each hop, forward path first.
    pub hops: Vec<String>,
}

impl About {
    /// Creates the description of a run that has begun: no tables, no trace hash.
    pub(crate) fn new(header: &RunHeader, inputs: RunInputs, directory: &str) -> Self {
        let run = StoredRun {
            directory: directory.to_owned(),
            scenario: header.scenario.clone(),
            world: header.world.clone(),
            controllers: header.controllers.clone(),
            changes: inputs.changes.clone(),
            seed: header.seed,
            version: inputs.environment.version.clone(),
            commit: inputs.environment.commit.clone(),
            created: inputs.created.clone(),
            trace_hash: None,
            cut_at_s: None,
            files: Vec::new(),
        };
        Self { run, inputs, flows: header.flows.clone(), hops: header.hops.clone() }
    }

    /// Returns the objects to which the events of the run refer.
    pub fn header(&self) -> RunHeader {
        let signals = |half: &Vec<SignalDescription>| half.iter().map(|s| (s.name.clone(), s.unit.clone())).collect();
        let described = self.inputs.setting.iter().flat_map(|setting| &setting.flows);
        RunHeader {
            scenario: self.run.scenario.clone(),
            world: self.run.world.clone(),
            seed: self.run.seed,
            hops: self.hops.clone(),
            flows: self.flows.clone(),
            controllers: self.run.controllers.clone(),
            signals: described.map(|flow| flow.signals.each_ref().map(signals)).collect(),
        }
    }
}
