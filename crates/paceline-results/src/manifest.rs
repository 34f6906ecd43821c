//! The list of runs and groups of a folder, and the inputs of each run.

mod groups;
mod names;

use crate::StoreError;
use crate::files::{self, Prepared, Temporary};
pub use groups::StoredGroup;
pub(crate) use names::directory_name;
use names::{free_name, is_plain_name};
use paceline_netsim::records::{RunDescription, RunHeader, SignalDescription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Name of the manifest in its folder.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Name of the folder of runs.
pub const RUNS: &str = "runs";
pub(crate) const RESULTS: &str = "results";
/// Name of the file with the inputs of a run, in the run's folder.
pub(crate) const ABOUT_FILE: &str = "about.json";
/// Name of the file with the result of a run, in the run's folder.
pub(crate) const RESULT_FILE: &str = "run.json";

const FORMAT: &str = "paceline-results";
/// The `format_version` that this version writes, and the latest that it reads.
const FORMAT_VERSION: u32 = 1;

/// Locks the documents of a folder that several threads and processes may write, to read, change and write one.
pub(crate) fn lock(dir: &Path) -> DocumentsLock {
    static DOCUMENTS: Mutex<()> = Mutex::new(());
    let threads = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Other systems cannot open a folder, and some file systems have no locks: there, only threads are excluded.
    let processes = File::open(dir).ok().filter(|folder| folder.lock().is_ok());
    DocumentsLock { _processes: processes, _threads: threads }
}

/// Holds the lock of a folder's documents. The system releases it if the process ends.
pub(crate) struct DocumentsLock {
    _processes: Option<File>,
    _threads: MutexGuard<'static, ()>,
}

/// The inputs of a run. The store does not interpret them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInputs {
    /// Version of the program.
    pub version: String,
    /// Commit of the program's source, if the caller knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Processors of the machine, if the caller knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Operating system of the machine, if the caller knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Date, from the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Text of the scenario file, before the changes.
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
        let undated =
            |inputs: &Self| Self { created: None, commit: None, machine: None, system: None, ..inputs.clone() };
        undated(self) == undated(other)
    }
}

/// The list of runs and groups: `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    format_version: u32,
    /// The runs, by scenario, controllers and seed.
    pub runs: Vec<StoredRun>,
    /// The groups, by scenario, controllers and case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<StoredGroup>,
}

/// An entry of the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Name of its folder under `runs`.
    pub directory: String,
    /// Scenario id.
    pub scenario: String,
    /// World of the run.
    pub world: String,
    /// Controller of each flow; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    /// Changes by `--set`, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Its seed.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Commit of the program's source, if the program gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Date, if the program gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Trace hash, if the result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_hash: Option<String>,
    /// For a run whose process was killed: the time up to which there are rows, s. Such a run has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_at_s: Option<f64>,
    /// Its tables.
    pub files: Vec<StoredFile>,
}

/// Identity of a run, cut or complete: scenario, world, controllers, changes, seed.
type RunKey<'a> = (&'a str, &'a str, &'a [Option<String>], &'a [String], u64);

/// A table of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFile {
    /// File name in the run's folder.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// The first 16 bytes of its BLAKE3 hash, as hexadecimal digits. Folders of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl StoredFile {
    /// Returns the entry of a written table.
    pub(crate) fn of(path: &Path, rows: u64) -> Result<Self, StoreError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, rows, checksum: Some(files::checksum(path)?) })
    }

    /// Returns an error unless the file at this path is as it was written.
    pub(crate) fn check(&self, path: &Path) -> Result<(), StoreError> {
        let Some(checksum) = &self.checksum else { return Ok(()) };
        if files::checksum(path)? == *checksum {
            return Ok(());
        }
        let cause = "its contents are not those that were written; run the scenario again".to_owned();
        Err(StoreError::Damaged { path: path.to_path_buf(), cause })
    }
}

/// Contents of `about.json` in a run's folder. The manifest can be rebuilt from these files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The run's entry in the manifest.
    pub run: StoredRun,
    /// Its inputs.
    pub inputs: RunInputs,
    /// Name of each flow.
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
            version: inputs.version.clone(),
            commit: inputs.commit.clone(),
            created: inputs.created.clone(),
            trace_hash: None,
            cut_at_s: None,
            files: Vec::new(),
        };
        Self { run, inputs, flows: header.flows.clone(), hops: header.hops.clone() }
    }

    /// Returns the objects to which the events of the run refer. A folder of an older version does not name its signals.
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

    /// Reads the description from a run's folder.
    ///
    /// # Errors
    /// The file does not exist or is damaged.
    pub fn read(run: &Path) -> Result<Self, StoreError> {
        files::read_json(&run.join(ABOUT_FILE))
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self { format: FORMAT.to_owned(), format_version: FORMAT_VERSION, runs: Vec::new(), groups: Vec::new() }
    }
}

impl StoredRun {
    fn run_key(&self) -> RunKey<'_> {
        (&self.scenario, &self.world, &self.controllers, &self.changes, self.seed)
    }

    /// Returns the identity of the entry. A run with the same key replaces this one.
    fn key(&self) -> (RunKey<'_>, bool) {
        (self.run_key(), self.cut_at_s.is_some())
    }

    /// Returns whether this is a complete run with this header and these changes.
    pub(crate) fn is_of(&self, header: &RunHeader, changes: &[String]) -> bool {
        let key = (&*header.scenario, &*header.world, &*header.controllers, changes, header.seed);
        self.cut_at_s.is_none() && self.run_key() == key
    }

    /// Returns whether this is the complete run of a cut one.
    fn completes(&self, cut: &Self) -> bool {
        self.cut_at_s.is_none() && cut.cut_at_s.is_some() && self.run_key() == cut.run_key()
    }
}

impl Manifest {
    /// Name of its file in its folder.
    pub const FILE: &'static str = MANIFEST_FILE;

    /// Reads the manifest of a folder of results.
    ///
    /// # Errors
    /// The file does not exist, has another format, was written by a later version, or is damaged.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(MANIFEST_FILE);
        let manifest: Self = files::read_versioned(&path, FORMAT, FORMAT_VERSION)?;
        // Folders and files are renamed and removed by these names.
        let folder = manifest.runs.iter().map(|run| (&run.directory, "folder"));
        let mut names = folder.chain(manifest.groups.iter().map(|group| (&group.file, "file")));
        match names.find(|(name, _)| !is_plain_name(name)) {
            Some((name, what)) => {
                Err(StoreError::Damaged { cause: format!("`{name}` is not the name of a {what}"), path })
            }
            None => Ok(manifest),
        }
    }

    /// Makes the list agree with the folders. Removes runs without a folder, and adds complete runs that are not listed
    /// because their process was killed before it wrote the list.
    pub(crate) fn reconcile(&mut self, runs: &Path) -> Result<(), StoreError> {
        self.runs.retain(|run| runs.join(&run.directory).is_dir());
        for name in files::names(runs)? {
            if files::is_transient(&name) || self.runs.iter().any(|run| run.directory == name) {
                continue;
            }
            // A folder without a readable `about.json` belongs to the user and is ignored.
            if let Ok(About { run, .. }) = About::read(&runs.join(&name))
                && self.runs.iter().all(|other| other.key() != run.key())
            {
                self.insert(StoredRun { directory: name, ..run });
            }
        }
        Ok(())
    }

    /// Returns the name of the folder for `run`: that of the run it replaces, or a free one.
    pub(crate) fn place(&self, run: &StoredRun, runs: &Path) -> String {
        if let Some(same) = self.runs.iter().find(|other| other.key() == run.key()) {
            return same.directory.clone();
        }
        let taken = |name: &str| self.runs.iter().any(|other| other.directory.eq_ignore_ascii_case(name));
        free_name(runs, &run.directory, "", taken)
    }

    /// Adds `run` or replaces the run with the same key. The order of the list does not depend on the order of calls.
    pub(crate) fn insert(&mut self, run: StoredRun) {
        self.runs.retain(|other| other.key() != run.key());
        let at = self.runs.partition_point(|other| other.key() < run.key());
        self.runs.insert(at, run);
    }

    /// Removes the cut run that `run` completes from the list and returns its folder.
    pub(crate) fn without_cut(&mut self, run: &StoredRun) -> Option<String> {
        let at = self.runs.iter().position(|cut| run.completes(cut))?;
        Some(self.runs.remove(at).directory)
    }

    /// Removes cut runs of which there is a complete run with the same inputs.
    pub(crate) fn remove_superseded(&mut self, runs: &Path) -> Result<(), StoreError> {
        let inputs = |run: &StoredRun| About::read(&runs.join(&run.directory)).map(|about| about.inputs);
        let is_complete = |cut: &StoredRun| {
            let complete = self.runs.iter().filter(|run| run.completes(cut));
            complete.filter_map(|run| inputs(run).ok().zip(inputs(cut).ok())).any(|(a, b)| a.is_same(&b))
        };
        let cut: Vec<StoredRun> = self.runs.iter().filter(|run| is_complete(run)).cloned().collect();
        for run in cut {
            let place = runs.join(&run.directory);
            files::discard(&place).map_err(files::io("remove", &place))?;
            self.runs.retain(|other| *other != run);
        }
        Ok(())
    }

    /// Writes the manifest under a temporary name.
    pub(crate) fn prepare(&self, dir: &Path) -> Result<Prepared, StoreError> {
        let file = Temporary::file(dir, MANIFEST_FILE, &files::json(self))?;
        Ok(Prepared { file, place: dir.join(MANIFEST_FILE) })
    }
}
