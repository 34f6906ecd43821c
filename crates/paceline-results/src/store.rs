//! A folder of results.

use crate::files::{self, Temporary};
use crate::manifest::{self, About, MANIFEST_FILE, Manifest, RESULTS, RUNS, RunInputs, StoredGroup};
use crate::run_store::RunStore;
use crate::{Group, StoreError};
use paceline_netsim::records::RunHeader;
use std::path::{Path, PathBuf};

/// A folder of results, as `--out DIR` makes it.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// Creates the folder, or opens one of earlier results. Its runs stay until a run of the same scenario, controllers and
    /// seed replaces one. Parts that a killed process left become a cut run; half-written files are removed.
    ///
    /// # Errors
    /// The folder contains something else or a damaged manifest, or an operation of the file system fails.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        files::create_folder(dir)?;
        let _lock = manifest::lock(dir);
        let known = if dir.join(MANIFEST_FILE).exists() {
            Some(Manifest::read(dir)?)
        } else if files::names(dir)?.iter().all(|name| files::is_temporary_of(name, MANIFEST_FILE)) {
            None
        } else {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        };
        let (runs, results) = (dir.join(RUNS), dir.join(RESULTS));
        files::create_folder(&runs)?;
        files::clean(dir, |base| base == MANIFEST_FILE)?;
        files::clean(&runs, |_| true)?;
        if results.is_dir() {
            files::clean(&results, |_| true)?;
        }
        let mut manifest = known.clone().unwrap_or_default();
        manifest.reconcile(&runs)?;
        manifest.recover(&runs)?;
        manifest.reconcile_groups(&results)?;
        if known.as_ref() != Some(&manifest) {
            manifest.prepare(dir)?.commit()?;
        }
        Ok(Self { dir: dir.to_path_buf() })
    }

    /// Makes cut runs of the parts that killed processes left, as [`Store::create`] does, and changes nothing else. For
    /// programs that only read the folder.
    ///
    /// # Errors
    /// The folder has no readable manifest, or an operation of the file system fails.
    pub fn recover(dir: &Path) -> Result<(), StoreError> {
        let _lock = manifest::lock(dir);
        let known = Manifest::read(dir)?;
        let mut manifest = known.clone();
        manifest.recover(&dir.join(RUNS))?;
        if known == manifest { Ok(()) } else { manifest.prepare(dir)?.commit() }
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns an observer that writes the events of one run. Its files get their final names in [`RunStore::finish`].
    ///
    /// # Errors
    /// An operation of the file system fails.
    pub fn run(&self, header: &RunHeader, inputs: RunInputs) -> Result<RunStore, StoreError> {
        RunStore::create(&self.dir, header, inputs)
    }

    /// Returns the result of a complete run with this header and these inputs, if there is one. The date does not matter.
    ///
    /// # Errors
    /// The manifest cannot be read.
    pub fn result(&self, header: &RunHeader, inputs: &RunInputs) -> Result<Option<serde_json::Value>, StoreError> {
        let manifest = Manifest::read(&self.dir)?;
        let found = manifest.runs.iter().find(|run| run.is_of(header, &inputs.changes));
        Ok(found.and_then(|run| {
            let place = self.dir.join(RUNS).join(&run.directory);
            let complete = run.files.iter().all(|file| place.join(&file.name).is_file());
            let fits = complete && About::read(&place).ok()?.inputs.is_same(inputs);
            files::read_json(&place.join(manifest::RESULT_FILE)).ok().filter(|_| fits)
        }))
    }

    /// Writes the summary of several runs and returns its file. It replaces an earlier group of the same scenario, world,
    /// controllers, case and changes.
    ///
    /// # Errors
    /// An operation of the file system fails. The earlier group is then still in place.
    pub fn group(&self, group: &Group) -> Result<PathBuf, StoreError> {
        let results = self.dir.join(RESULTS);
        files::create_folder(&results)?;
        let _lock = manifest::lock(&self.dir);
        let mut stored = Manifest::read(&self.dir)?;
        let listed = stored.place_group(StoredGroup::of(group), &results);
        let place = results.join(&listed.file);
        let file = Temporary::file(&results, &listed.file, &files::json(group))?;
        stored.insert_group(listed);
        // Everything that needs disk space is written before the first rename.
        let stored = stored.prepare(&self.dir)?;
        file.replace(&place)?;
        stored.commit()?;
        Ok(place)
    }

    /// Reads every group of a folder of results, in the order of the manifest.
    ///
    /// # Errors
    /// The folder has no manifest, or a file is damaged or cannot be read.
    pub fn groups(dir: &Path) -> Result<Vec<Group>, StoreError> {
        let read = |listed: &StoredGroup| files::read_json(&dir.join(RESULTS).join(&listed.file));
        Manifest::read(dir)?.groups.iter().map(read).collect()
    }
}
