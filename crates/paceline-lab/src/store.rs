//! Results on disk: what `--out DIR` writes, and what reports, comparisons and notebooks read.
//!
//! ```text
//! DIR/manifest.json                     every run: directory, scenario, world, controllers, seed, hash, files, rows
//!                                       every group: file, scenario, world, controllers, case, changes, seeds, runs
//! DIR/results/<scenario>_<case>-<controllers>.json
//!                                       a group: what several runs of one plan came to, a [`Group`]
//! DIR/runs/<scenario>-<controllers>-seed<N>/       with the world before the seed, unless it is the simulator
//!     packets.parquet                   one row per datagram sent, across a hop, dropped, arrived
//!     flows.parquet                     round-trip times, loss reports, targets, pacing rates, REMBs
//!     frames.parquet                    frames rendered and frames refused at the sender
//!     signals.parquet                   what the controllers emitted
//!     run.json                          the result, as `run --json` prints it; by `gap`, with `waiting`: packets at the
//!                                       bottleneck by how long they waited there, in steps of `step_us`
//!     about.json                        what the run was made from: scenario text, changes, version, path and signals
//! ```
//!
//! Any tool that reads Parquet reads the tables. Strings are UTF-8 with dictionary encoding; a column name ends in the
//! unit of its values; a `value` column has its unit in the `unit` column beside it (empty for a plain number).
//!
//! | table | columns |
//! |---|---|
//! | packets | `time_ns`, `event` (`sent`, `crossed`, `dropped`, `arrived`), `packet`, `flow`, `class` (`media`, `retransmission`, `fec`, `padding`, `sender_control`, `receiver_control`, `tcp_data`, `tcp_retransmission`, `tcp_ack`), `size_bytes`, `hop` (null at endpoints), `waited_ns` (`crossed` only), `left_ns` (`crossed`, and `dropped` on the wire), `delay_ns` (`arrived` only), `reason` (`dropped` only: `overflow`, `loss`, `early`), `marked` (`crossed` only: congestion experienced, by this hop), `ecn` (`arrived` only: `not_ect`, `ect1`, `ect0`, `ce`) |
//! | flows | `time_ns`, `flow`, `kind` (`rtt`, `fraction_lost`, `target`, `pacing`, `remb`, `read`), `value`, `unit` |
//! | frames | `time_ns`, `flow`, `stream`, `captured_ns`, `size_bytes`, `dropped` (these three null for a refused frame), `refused` |
//! | signals | `time_ns`, `flow`, `half` (`send`, `receive`), `signal`, `unit`, `value` (for a state: its index) |
//!
//! Each file's metadata carries `scenario`, `world`, `seed`, `controllers`, `version`, `table` and `units`.
//!
//! A run is written under a temporary name and renamed when it is complete and on the disk, so whatever stands under a
//! final name is whole. What a killed process had measured in real time stands in `<run>.parts-<process>-<n>`, a folder of
//! tables for each 10 s of it; the next start makes `<run>-cut` of them, tables and `about.json` without a result, which
//! the manifest lists with `cut_at_s` and which goes when the run is made as a whole. Memory is bounded whatever the length of the run: rows go out in groups of [`ROW_GROUP`].
//! One process at a time should write to a folder; threads of one process may.

pub(crate) mod files;
mod groups;
mod join;
mod manifest;
mod parts;
mod setting;
pub(crate) mod table;
mod tables;

use crate::group::Group;
use crate::rows::{Row, RowSink, RunHeader};
use files::Temporary;
pub use groups::StoredGroup;
pub use manifest::{About, MANIFEST_FILE, Manifest, StoredFile, StoredRun};
use paceline_units::Time;
use parts::Parts;
pub use setting::{FlowSetting, HopSetting, Setting, SignalSetting};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
pub use table::ROW_GROUP;
use tables::Tables;

/// Held while a manifest is read, changed and written.
static MANIFESTS: Mutex<()> = Mutex::new(());

/// Name of the folder of runs.
pub const RUNS: &str = "runs";
/// Name of the folder of groups.
const RESULTS: &str = "results";

/// A folder of results, as `--out DIR` makes it.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
}

/// What a run was made from. The store keeps it and does not look at it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RunManifest {
    /// Version of the program that ran.
    pub version: String,
    /// When, as the caller's clock says it; the store reads no clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The scenario file's text, before the changes.
    pub scenario_text: String,
    /// Changes to it, each as `dotted.key=value`, in order.
    #[serde(default)]
    pub changes: Vec<String>,
    /// What rows do not say and plots need: title, capacity, propagation, what signals there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
    /// Whatever else the caller wants to keep.
    #[serde(default)]
    pub more: BTreeMap<String, serde_json::Value>,
}

impl RunManifest {
    /// Whether both were made from the same, whenever that was.
    fn is_same(&self, other: &Self) -> bool {
        let undated = |inputs: &Self| Self { created: None, ..inputs.clone() };
        undated(self) == undated(other)
    }
}

/// Why results were not written or not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder has something in it, and it is not a result.
    #[error("`{}` is not empty and holds no Paceline result; name a new folder or one of earlier results", .path.display())]
    NotAResult {
        /// The folder.
        path: PathBuf,
    },
    /// A file of the store does not say what it should.
    #[error("`{}` is damaged: {cause}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The folder was written by a later version.
    #[error("`{}` has format {found}, and this version knows up to {known}", .path.display())]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest format known.
        known: u32,
    },
    /// The operating system refused.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// A table could not be written.
    #[error("cannot write the table `{}`", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// A row named a flow, hop or signal that the run's header does not have: a defect of the world that made it.
    #[error("a row names {what} {index}, and the run's header has no such {what}")]
    Unnamed {
        /// `flow`, `hop` or `signal`.
        what: &'static str,
        /// The row's index.
        index: usize,
    },
}

impl Store {
    /// Makes the folder, or takes up one of earlier results: its runs are kept, until a run of the same scenario,
    /// controllers and seed replaces one. Of what a killed process left, parts of a run become a run that was cut, and what
    /// is half-written is removed.
    ///
    /// # Errors
    /// The folder holds something else, or a manifest that cannot be read, or the operating system refuses.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(files::io("create the folder", dir))?;
        let _lock = MANIFESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = if dir.join(MANIFEST_FILE).exists() {
            Some(Manifest::read(dir)?)
        } else if files::names(dir)?.iter().all(|name| files::is_temporary_of(name, MANIFEST_FILE)) {
            None
        } else {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        };
        let runs = dir.join(RUNS);
        fs::create_dir_all(&runs).map_err(files::io("create the folder", &runs))?;
        files::clean(dir, |base| base == MANIFEST_FILE)?;
        files::clean(&runs, |_| true)?;
        let results = dir.join(RESULTS);
        if results.is_dir() {
            files::clean(&results, |_| true)?;
        }
        let mut manifest = known.clone().unwrap_or_default();
        manifest.reconcile(&runs)?;
        manifest.take_up(&runs)?;
        manifest.reconcile_groups(&results)?;
        if known.as_ref() != Some(&manifest) {
            manifest.prepare(dir)?.commit()?;
        }
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// Makes runs of what killed processes left in a folder of results, as [`Store::create`] does, and leaves all else as
    /// it is: for those who only read.
    ///
    /// # Errors
    /// It holds no manifest that can be read, or the operating system refuses.
    pub fn take_up(dir: &Path) -> Result<(), StoreError> {
        let _lock = MANIFESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = Manifest::read(dir)?;
        let mut manifest = known.clone();
        manifest.take_up(&dir.join(RUNS))?;
        if known == manifest { Ok(()) } else { manifest.prepare(dir)?.commit() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A sink for the rows of one run; its files appear under their final names only when [`RunStore::finish`] succeeds.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn run(&self, header: &RunHeader, manifest: RunManifest) -> Result<RunStore, StoreError> {
        let base = manifest::directory_name(header);
        let temporary = Temporary::directory(&self.dir.join(RUNS), &base)?;
        let tables = Tables::create(temporary.path(), header, &manifest.version)?;
        Ok(RunStore {
            tables,
            failed: None,
            temporary,
            parts: Parts::none(),
            dir: self.dir.clone(),
            header: header.clone(),
            manifest,
            base,
        })
    }

    /// The result of the run of this header, if there is one that was made from the same as `inputs` says, whenever that
    /// was, and all of its files are there.
    ///
    /// # Errors
    /// The manifest cannot be read.
    pub fn result(&self, header: &RunHeader, inputs: &RunManifest) -> Result<Option<serde_json::Value>, StoreError> {
        let manifest = Manifest::read(&self.dir)?;
        let found = manifest.runs.iter().find(|run| run.is_of(header, &inputs.changes));
        Ok(found.and_then(|run| {
            let place = self.dir.join(RUNS).join(&run.directory);
            let about = About::read(&place).ok()?;
            let whole = run.files.iter().all(|file| place.join(&file.name).is_file());
            let fits = whole && about.inputs.is_same(inputs);
            serde_json::from_slice(&fs::read(place.join(manifest::RESULT_FILE)).ok().filter(|_| fits)?).ok()
        }))
    }

    /// Writes what several runs of one plan came to, replacing an earlier group of the same scenario, world, controllers,
    /// case and changes, and answers the file.
    ///
    /// # Errors
    /// The operating system refuses. The earlier group is then still in place.
    pub fn group(&self, group: &Group) -> Result<PathBuf, StoreError> {
        let results = self.dir.join(RESULTS);
        fs::create_dir_all(&results).map_err(files::io("create the folder", &results))?;
        let _lock = MANIFESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stored = Manifest::read(&self.dir)?;
        let listed = stored.place_group(StoredGroup::of(group), &results);
        let place = results.join(&listed.file);
        let file = Temporary::file(&results, &listed.file, &files::json(group))?;
        stored.insert_group(listed);
        // All that needs space on the disk is there before the first rename.
        let stored = stored.prepare(&self.dir)?;
        file.replace(&place)?;
        stored.commit()?;
        Ok(place)
    }

    /// Every group of a folder of results, in the order of the manifest. Reads only.
    ///
    /// # Errors
    /// The folder holds no manifest, or what stands in it is damaged or cannot be read.
    pub fn groups(dir: &Path) -> Result<Vec<Group>, StoreError> {
        let read = |listed: &StoredGroup| groups::read(&dir.join(RESULTS).join(&listed.file));
        Manifest::read(dir)?.groups.iter().map(read).collect()
    }
}

/// The rows of one run on their way to disk. Dropped before [`finish`](Self::finish), it leaves nothing behind.
#[derive(Debug)]
pub struct RunStore {
    // Before `temporary`, so that the files are closed when their folder is removed.
    tables: Tables,
    failed: Option<StoreError>,
    temporary: Temporary,
    parts: Parts,
    dir: PathBuf,
    header: RunHeader,
    manifest: RunManifest,
    base: String,
}

impl RowSink for RunStore {
    /// The first failure is kept for [`RunStore::finish`]; rows after it are not written.
    fn row(&mut self, row: &Row) {
        if self.failed.is_none() {
            self.failed = self.write(row).err();
        }
    }
    fn wants_signals(&self) -> bool {
        true
    }
}

impl RunStore {
    /// Whether to close what is written every 10 s of the run, so that it can be read if the process is killed. That is
    /// for runs in real time: others are made again sooner than anybody would look.
    pub fn in_parts(self, wanted: bool) -> Self {
        let parts = if wanted { Parts::several() } else { Parts::none() };
        Self { parts, ..self }
    }

    /// What has gone wrong so far: a long run need not be carried to its end to learn that the disk is full.
    pub fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }

    fn write(&mut self, row: &Row) -> Result<(), StoreError> {
        if self.parts.is_due(row.at()) {
            self.close_part(row.at())?;
        }
        self.tables.row(row)
    }

    /// Closes the tables and begins others, with a row of the time `at`.
    fn close_part(&mut self, at: Time) -> Result<(), StoreError> {
        let next = Temporary::directory(&self.dir.join(RUNS), &self.base)?;
        let tables = Tables::create(next.path(), &self.header, &self.manifest.version)?;
        mem::replace(&mut self.tables, tables).finish()?;
        let part = mem::replace(&mut self.temporary, next);
        let run = StoredRun::begun(&self.header, &self.manifest, &self.base);
        let (header, inputs) = (&self.header, &self.manifest);
        self.parts.add(part, at, || About::of(run, inputs.clone(), header))
    }

    /// Writes the last rows and the result, gives the run its place among the others, replacing an earlier run of the
    /// same scenario, controllers and seed, and answers the run's folder. The manifest takes the trace hash from
    /// `result`'s `trace_hash`, if it has one.
    ///
    /// # Errors
    /// What went wrong first, then or while rows came. The earlier run is then still in place, and parts that are whole
    /// are left to the next start.
    pub fn finish(self, result: &serde_json::Value) -> Result<PathBuf, StoreError> {
        // In this order, so that on an error the files are closed before their folder is removed.
        let Self { temporary, tables, failed, parts, dir, header, manifest, base } = self;
        let run = StoredRun::begun(&header, &manifest, &base);
        let about = About::of(run, manifest, &header);
        let finished = match failed {
            Some(failed) => Err(failed),
            None => assembled(&dir, temporary, tables, &parts, &base)
                .and_then(|(folder, files)| place(&dir, folder, files, about, result)),
        };
        if finished.is_err() {
            parts.leave();
        }
        finished
    }
}

/// Closes the tables, and puts them to the parts before them, if there are any: the folder that has all of them.
fn assembled(
    dir: &Path,
    last: Temporary,
    tables: Tables,
    parts: &Parts,
    base: &str,
) -> Result<(Temporary, Vec<StoredFile>), StoreError> {
    let files = tables.finish()?;
    let mut folders = parts.folders()?;
    if folders.is_empty() {
        return Ok((last, files));
    }
    folders.push(last.path().to_path_buf());
    let whole = Temporary::directory(&dir.join(RUNS), base)?;
    let files = Tables::join(&folders, whole.path())?;
    Ok((whole, files))
}

/// Gives a run that is complete but for its documents its place.
fn place(
    dir: &Path,
    folder: Temporary,
    files: Vec<StoredFile>,
    mut about: About,
    result: &serde_json::Value,
) -> Result<PathBuf, StoreError> {
    files::write_synced(&folder.path().join(manifest::RESULT_FILE), &files::json(result))?;
    about.run.files = files;
    about.run.trace_hash = result.get("trace_hash").and_then(|hash| hash.as_str()).map(str::to_owned);

    let _lock = MANIFESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let runs = dir.join(RUNS);
    let mut stored = Manifest::read(dir)?;
    about.run.directory = stored.place(&about.run, &runs);
    let place = runs.join(&about.run.directory);
    files::write_synced(&folder.path().join(manifest::ABOUT_FILE), &files::json(&about))?;
    files::sync_directory(folder.path())?;
    let cut = stored.without_cut(&about.run);
    stored.insert(about.run);
    // All that needs space on the disk is there before the first rename.
    let stored = stored.prepare(dir)?;
    folder.replace(&place)?;
    stored.commit()?;
    if let Some(cut) = cut {
        // If this fails, the next `Store::create` does it.
        let _ = files::discard(&runs.join(cut));
    }
    Ok(place)
}

/// Writes a file that is whole or not there, and the folder if there is none.
///
/// # Errors
/// The operating system refuses.
pub fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(files::io("create the folder", folder))?;
    Temporary::file(folder, name, bytes)?.replace(&folder.join(name))
}

#[cfg(test)]
mod tests;
