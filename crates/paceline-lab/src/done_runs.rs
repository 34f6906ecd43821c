//! The finished runs of a suite in a folder, so that an interrupted suite can continue.
//!
//! ```text
//! DIR/runs.jsonl    a line for each finished run: the hash of its inputs, its trace hash, its values
//! ```
//!
//! A line is appended when a run ends, so a kill loses the runs in progress alone. A line that a kill cut off is ignored. The inputs
//! are the resolved scenario, the values that are measured, the seed, the world and the version of the program; so a changed
//! scenario or another version is run again, and a line serves every suite. A run of an external controller is always made again,
//! because its program may have changed.

use crate::judge::RunValues;
use crate::sweep::address;
use paceline_results::StoreError;
use paceline_results::files::{create_folder, io};
use paceline_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of the file.
const FILE: &str = "runs.jsonl";

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    trace_hash: String,
    values: Vec<Option<f64>>,
}

/// The finished runs of a folder.
#[derive(Debug)]
pub struct DoneRuns {
    path: PathBuf,
    known: BTreeMap<String, RunValues>,
    file: Mutex<File>,
}

impl DoneRuns {
    /// Opens the file in a folder, which may be new. Without `resume` it begins empty.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(folder: &Path, resume: bool) -> Result<Self, StoreError> {
        create_folder(folder)?;
        let path = folder.join(FILE);
        let text = match read_to_string(&path) {
            _ if !resume => String::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(io("read", &path))?,
        };
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known: BTreeMap<_, _> =
            lines.map(|Line { run, trace_hash, values }| (run, RunValues { trace_hash, values })).collect();
        let mut open = OpenOptions::new();
        open.create(true).write(true).append(resume).truncate(!resume);
        let mut file = open.open(&path).map_err(io("write", &path))?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A kill cut off the last line.
            file.write_all(b"\n").map_err(io("write", &path))?;
        }
        Ok(Self { path, known, file: Mutex::new(file) })
    }

    /// Returns the number of runs that were finished before.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Returns the values of this run, if it was finished before.
    pub(crate) fn find(&self, scenario: &Scenario, world: &str, seed: u64) -> Option<RunValues> {
        if self.known.is_empty() || is_external(scenario) {
            return None;
        }
        self.known.get(&key(scenario, world, seed)).cloned()
    }

    /// Adds a finished run.
    pub(crate) fn add(&self, scenario: &Scenario, world: &str, seed: u64, run: &RunValues) -> Result<(), StoreError> {
        let line =
            Line { run: key(scenario, world, seed), trace_hash: run.trace_hash.clone(), values: run.values.clone() };
        let mut text = serde_json::to_vec(&line).expect("numbers and text become JSON");
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text).map_err(io("write", &self.path))
    }
}

/// Returns whether a controller is a program or a library of the user.
fn is_external(scenario: &Scenario) -> bool {
    scenario.plan.flows.iter().filter_map(|flow| flow.media()).any(|media| media.controller.name.contains(':'))
}

/// Returns the hash of the inputs of a run.
fn key(scenario: &Scenario, world: &str, seed: u64) -> String {
    let quantities: Vec<_> = scenario.quantities().collect();
    let mut hash = blake3::Hasher::new_derive_key("paceline 2026 run of a suite");
    hash.update(format!("{}\n{quantities:?}", address(scenario, world, seed)).as_bytes());
    hash.finalize().to_hex()[..32].to_owned()
}
