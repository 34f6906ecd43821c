// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of results.

use crate::results::database::{Database, DocumentKind, RunFolder, RunRow, json, read_documents};
use crate::results::files;
use crate::results::names::is_plain_name;
use crate::results::run_store::RunStore;
use crate::results::store_folder::StoreFolder;
use crate::results::stored::{About, RUNS, RunInputs};
use crate::results::{ComparisonTable, Group, RunMetrics, StoreError, Validation};
use paceline_netsim::records::RunHeader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of results, as `--out DIR` makes it.
#[derive(Debug)]
pub struct Store {
    folder: Arc<StoreFolder>,
}

#[derive(Debug, Default)]
pub struct Contents {
    pub dir: PathBuf,
    /// The runs, by scenario, world, controllers, changes and seed.
    pub runs: Vec<StoredRunData>,
    pub groups: Vec<Group>,
    pub comparisons: Vec<ComparisonTable>,
    pub validations: Vec<Validation>,
    /// What is left out, and why.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct StoredRunData {
    pub about: About,
    /// The result, as `run --json` prints it; null if the run was interrupted.
    pub result: Value,
    pub dir: PathBuf,
}

impl Store {
    /// Creates the folder, or opens one of earlier results. Its runs stay until a run of the same scenario, controllers and
    /// seed replaces one. Parts that a killed process left become a cut run; half-written files are removed.
    ///
    /// # Errors
    /// The folder contains something else or a damaged database, or an operation of the file system fails.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        let database = Database::create(dir)?;
        let runs = dir.join(RUNS);
        files::create_folder(&runs)?;
        files::clean(dir, |_| true)?;
        files::clean(&runs, |_| true)?;
        let folder = StoreFolder { dir: dir.to_path_buf(), database };
        folder.finish_replacements()?;
        folder.forget_missing()?;
        folder.recover()?;
        Ok(Self { folder: Arc::new(folder) })
    }

    /// Makes cut runs of the parts that killed processes left, as [`Store::create`] does, and changes nothing else. For
    /// programs that only read the folder.
    pub fn recover(dir: &Path) -> Result<(), StoreError> {
        let folder = StoreFolder { dir: dir.to_path_buf(), database: Database::open(dir)? };
        if folder.runs().is_dir() { folder.recover() } else { Ok(()) }
    }

    pub fn exists(dir: &Path) -> bool {
        Database::exists(dir)
    }

    /// Reads a folder of results. Runs of an earlier text of a scenario, or of other code, are left out with a note if there
    /// are newer runs of that scenario: they cannot be compared.
    pub fn read(dir: &Path) -> Result<Contents, StoreError> {
        let database = Database::open(dir)?;
        let rows = database.read(|transaction| database.run_folders(transaction))?;
        let mut contents = Contents {
            dir: dir.to_path_buf(),
            groups: read_documents(&database, DocumentKind::Group)?,
            comparisons: read_documents(&database, DocumentKind::Comparison)?,
            validations: read_documents(&database, DocumentKind::Validation)?,
            ..Contents::default()
        };
        let key = |row: &RunRow| (row.run.scenario.clone(), row.run.world.clone(), row.run.changes.clone());
        let mut newest: BTreeMap<_, &RunRow> = BTreeMap::new();
        for row in &rows {
            let known = newest.entry(key(row)).or_insert(row);
            if known.stored <= row.stored {
                *known = row;
            }
        }
        let mut left_out: Vec<(String, Vec<String>)> = Vec::new();
        let mut hidden: Vec<(String, Vec<String>)> = Vec::new();
        for row in &rows {
            let folder = row.folder.as_ref().expect("only runs with folders were read");
            let newest = &newest[&key(row)].run;
            if (&newest.scenario_hash, &newest.code) != (&row.run.scenario_hash, &row.run.code) {
                hidden.push((row.run.scenario.clone(), row.run.changes.clone()));
                match left_out.iter_mut().find(|(scenario, _)| *scenario == row.run.scenario) {
                    Some((_, runs)) => runs.push(folder.directory.clone()),
                    None => left_out.push((row.run.scenario.clone(), vec![folder.directory.clone()])),
                }
                continue;
            }
            if !is_plain_name(&folder.directory) {
                let cause = format!("`{}` is not the name of a folder", folder.directory);
                return Err(files::damaged(database.path(), &cause));
            }
            let dir = dir.join(RUNS).join(&folder.directory);
            contents.runs.push(StoredRunData::new(folder.clone(), dir, &database)?);
        }
        for (scenario, runs) in &left_out {
            contents.notes.push(format!(
                "Runs of `{scenario}` that are left out, because they are of an earlier text of the scenario or of another \
                 version of Paceline: {}",
                runs.len()
            ));
        }
        let out_of = |scenario: &String, case: &paceline_netsim::records::Label, changes: &[String]| {
            let all: Vec<String> = case_changes(case).chain(changes.iter().cloned()).collect();
            hidden.iter().any(|(out, of)| out == scenario && *of == all)
        };
        // Of each shown run its hash, if it has one. A run may have been replaced by one of another text of the scenario, and the process
        // killed before it replaced the group.
        let hashes: BTreeMap<&str, Option<&str>> = contents
            .runs
            .iter()
            .map(|run| (run.about.run.directory.as_str(), run.about.run.trace_hash.as_deref()))
            .collect();
        let is_left_out = |run: &String| left_out.iter().any(|(_, runs)| runs.contains(run));
        let is_of = |(run, metrics): (&String, &RunMetrics)| match hashes.get(run.as_str()) {
            Some(Some(hash)) => *hash == metrics.trace_hash,
            Some(None) => true,
            None => !is_left_out(run),
        };
        contents.groups.retain(|group| group.runs.iter().zip(&group.per_run).all(is_of));
        contents.groups.sort_by(|a, b| group_order(a).cmp(&group_order(b)));
        contents.comparisons.retain(|table| !out_of(&table.scenario, &table.case, &table.changes));
        contents.validations.retain(|found| !out_of(&found.scenario, &found.case, &found.changes));
        Ok(contents)
    }

    /// Reads one run by its folder under `runs`.
    pub fn read_run(folder: &Path) -> Result<StoredRunData, StoreError> {
        let not_a_result = || StoreError::NotAResult { path: folder.to_path_buf() };
        let root = folder.parent().and_then(Path::parent).ok_or_else(not_a_result)?;
        let database = Database::open(root)?;
        let rows = database.read(|transaction| database.run_folders(transaction))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let of = |row: &RunRow| row.folder.clone().filter(|folder| folder.directory == name);
        let found = rows.iter().find_map(of).ok_or_else(not_a_result)?;
        StoredRunData::new(found, folder.to_path_buf(), &database)
    }

    /// Calls `read`, which reads runs of a folder, or the run of this folder. If it fails, and another process replaced a run
    /// meanwhile, it is called again.
    ///
    /// # Errors
    /// The last error of `read`.
    pub fn read_settled<T, E>(dir: &Path, mut read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        const MOST_TRIES: usize = 20;
        let dir = if Self::exists(dir) { dir } else { dir.parent().and_then(Path::parent).unwrap_or(dir) };
        let mut before = settled_runs(dir);
        for _ in 1..MOST_TRIES {
            let result = read();
            if result.is_ok() {
                return result;
            }
            let now = settled_runs(dir);
            if now.is_none() || now == before {
                return result;
            }
            before = now;
        }
        read()
    }

    pub fn dir(&self) -> &Path {
        &self.folder.dir
    }

    /// Returns an observer that writes the events of one run. Its files get their final names in [`RunStore::finish`].
    pub fn run(&self, header: &RunHeader, inputs: RunInputs) -> Result<RunStore, StoreError> {
        RunStore::create(Arc::clone(&self.folder), header, inputs)
    }

    /// Returns the result of a complete run with this header and these inputs, if there is one. The date does not matter.
    pub fn result(&self, header: &RunHeader, inputs: &RunInputs) -> Result<Option<Value>, StoreError> {
        Ok(self.find(header, inputs)?.map(|(document, _)| document))
    }

    /// As [`Store::result`], with the folder of the run.
    pub fn find(&self, header: &RunHeader, inputs: &RunInputs) -> Result<Option<(Value, PathBuf)>, StoreError> {
        let database = &self.folder.database;
        let rows = database.read(|transaction| database.run_folders(transaction))?;
        let key = (&*header.scenario, &*header.world, &*header.controllers, &*inputs.changes, header.seed);
        let Some(folder) = rows.iter().find(|row| row.key() == (key, false)).and_then(|row| row.folder.as_ref()) else {
            return Ok(None);
        };
        let parse = |error: serde_json::Error| files::damaged(database.path(), &error);
        let about: About = serde_json::from_str(&folder.about).map_err(parse)?;
        let place = self.folder.runs().join(&folder.directory);
        let complete = about.run.files.iter().all(|file| place.join(&file.name).is_file());
        if !complete || !about.inputs.is_same(inputs) {
            return Ok(None);
        }
        let document = serde_json::from_str(&folder.document).map_err(parse)?;
        Ok(Some((document, place)))
    }

    /// Stores the summary of several runs. It replaces an earlier group of the same scenario, world, controllers, case and changes.
    pub fn group(&self, group: &Group) -> Result<(), StoreError> {
        let key = json(&group_order(group));
        self.document(DocumentKind::Group, &key, group, |row| {
            row.folder.as_ref().is_some_and(|folder| group.runs.contains(&folder.directory))
        })
    }

    /// Stores a comparison. It replaces an earlier one of the same scenario, case, changes, world and controllers.
    pub fn comparison(&self, table: &ComparisonTable) -> Result<(), StoreError> {
        let ComparisonTable { scenario, case, changes, world, controllers, .. } = table;
        let key = json(&(scenario, case, changes, world, controllers));
        let all: Vec<String> = case_changes(case).chain(changes.iter().cloned()).collect();
        self.document(DocumentKind::Comparison, &key, table, |row| {
            let run = &row.run;
            let compared = run.controllers.iter().flatten().any(|name| controllers.contains(name));
            (&run.scenario, &run.world, &run.changes) == (scenario, world, &all)
                && table.seeds.contains(&run.seed)
                && compared
        })
    }

    /// Stores a comparison of two worlds. It replaces an earlier one of the same scenario, case, changes, controllers and worlds.
    pub fn validation(&self, validation: &Validation) -> Result<(), StoreError> {
        let Validation { scenario, case, changes, worlds, controllers, .. } = validation;
        let key = json(&(scenario, case, changes, worlds, controllers));
        let all: Vec<String> = case_changes(case).chain(changes.iter().cloned()).collect();
        self.document(DocumentKind::Validation, &key, validation, |row| {
            let run = &row.run;
            (&run.scenario, &run.changes, &run.controllers) == (scenario, &all, controllers)
                && worlds.contains(&run.world)
                && validation.seeds.contains(&run.seed)
        })
    }

    /// Stores a document that summarises the runs that `cites` selects.
    fn document(
        &self,
        kind: DocumentKind,
        key: &str,
        document: &impl serde::Serialize,
        cites: impl Fn(&RunRow) -> bool,
    ) -> Result<(), StoreError> {
        let database = &self.folder.database;
        database.write(|transaction| {
            let rows = database.run_folders(transaction)?;
            let cited: Vec<i64> = rows.iter().filter(|row| cites(row)).map(|row| row.id).collect();
            database.put_document(transaction, kind, key, document, &cited)
        })
    }
}

impl StoredRunData {
    fn new(folder: RunFolder, dir: PathBuf, database: &Database) -> Result<Self, StoreError> {
        let parse = |error: serde_json::Error| files::damaged(database.path(), &error);
        let about: About = serde_json::from_str(&folder.about).map_err(parse)?;
        let result = match folder.cut_at_s {
            None => serde_json::from_str(&folder.document).map_err(parse)?,
            Some(_) => Value::Null,
        };
        Ok(Self { about, result, dir })
    }
}

/// Returns when each run was stored, after replacements in progress have ended. `None` if the folder cannot be read or written.
fn settled_runs(dir: &Path) -> Option<Vec<(i64, i64)>> {
    let database = Database::open(dir).ok()?;
    // Only a transaction that writes waits for those of other processes.
    let rows = database.write(|transaction| database.run_folders(transaction)).ok()?;
    Some(rows.iter().map(|row| (row.id, row.stored)).collect())
}

fn group_order(group: &Group) -> (&str, &str, &[Option<String>], String, &[String]) {
    (&group.scenario, &group.world, &group.controllers, group.case.to_string(), &group.changes)
}

/// Returns the pairs of a case as changes.
fn case_changes(case: &paceline_netsim::records::Label) -> impl Iterator<Item = String> {
    case.pairs().map(|(key, value)| format!("case.{key}={value}"))
}
