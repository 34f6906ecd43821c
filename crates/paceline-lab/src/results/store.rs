// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of results.

use crate::results::database::{
    Database, DocumentKind, MeasuredRun, QuantityKey, RunFolder, RunRow, code, read_documents, run_inputs,
};
use crate::results::files::{self, Left, Temporary};
use crate::results::names::{free_name, is_plain_name};
use crate::results::run_store::RunStore;
use crate::results::stored::{About, RUNS, RunInputs, StoredRun};
use crate::results::{ComparisonTable, Group, RunMetrics, StoreError, Validation, parts};
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

#[derive(Debug)]
pub(crate) struct StoreFolder {
    pub(crate) dir: PathBuf,
    pub(crate) database: Database,
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

impl StoreFolder {
    pub(crate) fn runs(&self) -> PathBuf {
        self.dir.join(RUNS)
    }

    /// Lists a run and moves its folder to its final place. It replaces an earlier run with the same key; a complete run removes
    /// a cut one. Returns the final folder.
    pub(crate) fn add(
        &self,
        mut about: About,
        (run, document): (MeasuredRun, String),
        folder: &Temporary,
    ) -> Result<PathBuf, StoreError> {
        let runs = self.runs();
        let (mut moved, mut aside) = (None, None);
        let listed = self.database.write(|transaction| {
            let rows = self.database.run_folders(transaction)?;
            let replaced: Vec<&RunRow> = rows.iter().filter(|row| row.is_replaced_by(&about)).collect();
            let is_cut = about.run.cut_at_s.is_some();
            let of_kind = |row: &&&RunRow| row.key().1 == is_cut;
            let replaces = replaced.iter().find(of_kind).and_then(|row| row.folder.as_ref());
            let name = replaces.map(|old| old.directory.clone()).unwrap_or_else(|| {
                let directories = || rows.iter().filter_map(|row| row.folder.as_ref()).map(|old| &old.directory);
                free_name(&runs, &about.run.directory, |name| directories().any(|old| old.eq_ignore_ascii_case(name)))
            });
            about.run.directory.clone_from(&name);
            let mut removed = Vec::new();
            for row in &replaced {
                // A row of the same run is updated, so that documents that cite it stay.
                let same = (&row.run.inputs, &row.run.trace_hash) == (&run.inputs, &run.trace_hash);
                if !same || is_cut || row.key().1 {
                    self.database.remove_run(transaction, row.id)?;
                }
                removed.extend(row.folder.as_ref().map(|old| old.directory.clone()).filter(|old| *old != name));
            }
            let row = RunFolder {
                directory: name.clone(),
                cut_at_s: about.run.cut_at_s,
                about: json(&about),
                document: document.clone(),
            };
            self.database.insert_run(transaction, &run, Some(row))?;
            let place = runs.join(&name);
            if place.is_dir() {
                aside = Some(Temporary::aside(&place)?);
            }
            folder.rename(&place)?;
            moved = Some(place.clone());
            Ok((place, removed))
        });
        match listed {
            Ok((place, removed)) => {
                for old in removed {
                    // If this fails, an unlisted folder is left.
                    let _ = files::discard(&runs.join(old));
                }
                Ok(place)
            }
            Err(error) => {
                // If this fails, the next start does it.
                match (aside, moved) {
                    (Some(aside), _) => {
                        if aside.restore(&runs.join(&about.run.directory)).is_err() {
                            aside.leave();
                        }
                    }
                    (None, Some(place)) => drop(files::discard(&place)),
                    (None, None) => {}
                }
                Err(error)
            }
        }
    }

    /// Lists the runs of killed processes up to their last complete part. A complete run with the same inputs makes them
    /// superfluous.
    fn recover(&self) -> Result<(), StoreError> {
        parts::recover(&self.runs(), |about, folder| {
            let rows = self.database.read(|transaction| self.database.run_folders(transaction))?;
            let is_complete = |row: &RunRow| {
                let StoredRun { scenario, world, controllers, changes, seed, .. } = &about.run;
                let same = |other: About| other.inputs.is_same(&about.inputs);
                row.key() == ((&**scenario, &**world, &**controllers, &**changes, *seed), false)
                    && row.folder.as_ref().is_some_and(|old| serde_json::from_str(&old.about).is_ok_and(same))
            };
            if rows.iter().any(is_complete) {
                return Ok(());
            }
            let run = measured(&about, "", Vec::new());
            self.add(about, (run, String::new()), &folder).map(drop)
        })
    }

    /// Ends the replacements of folders that killed processes began: the listed one of the old and the new folder stays.
    fn finish_replacements(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        for (holder, name) in files::aside_in(&runs)? {
            let Some(_left) = Left::take(&holder) else { continue };
            let (old, place) = (Left::data(&holder), runs.join(&name));
            // Within a transaction, so that no other process replaces the folder meanwhile.
            self.database.write(|transaction| {
                let rows = self.database.run_folders(transaction)?;
                let listed = rows.iter().filter_map(|row| row.folder.as_ref()).find(|folder| folder.directory == name);
                let about = listed.and_then(|folder| serde_json::from_str::<About>(&folder.about).ok());
                let is_listed = |dir: &Path| {
                    let files = about.as_ref().map(|about| &about.run.files);
                    files.is_some_and(|files| files.iter().all(|file| file.open(&dir.join(&file.name)).is_ok()))
                };
                if old.is_dir() && is_listed(&old) && !is_listed(&place) {
                    files::restore(&old, &place)?;
                }
                Ok(())
            })?;
            files::remove_holder(&holder).map_err(files::io("remove", &holder))?;
        }
        Ok(())
    }

    /// Removes runs whose folder was removed by hand.
    fn forget_missing(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        let is_missing = |row: &&RunRow| {
            row.folder.as_ref().is_some_and(|f| is_plain_name(&f.directory) && !runs.join(&f.directory).is_dir())
        };
        self.database.write(|transaction| {
            let rows = self.database.run_folders(transaction)?;
            rows.iter().filter(is_missing).try_for_each(|row| self.database.remove_run(transaction, row.id))
        })
    }
}

impl RunRow {
    /// Returns whether this is the same run, except for the inputs that have changed since: a complete run replaces it, and a cut
    /// run replaces it if it is cut, too.
    fn is_replaced_by(&self, about: &About) -> bool {
        let StoredRun { scenario, world, controllers, changes, seed, cut_at_s, .. } = &about.run;
        let (own, is_cut) = self.key();
        own == (&**scenario, &**world, &**controllers, &**changes, *seed) && (is_cut || cut_at_s.is_none())
    }
}

/// Returns the columns of a run with a folder.
pub(crate) fn measured(about: &About, trace_hash: &str, values: Vec<(QuantityKey, Option<f64>)>) -> MeasuredRun {
    let (run, inputs) = (&about.run, &about.inputs);
    MeasuredRun {
        inputs: run_inputs(&inputs.plan_hash, &run.world, run.seed, &inputs.version),
        scenario: run.scenario.clone(),
        scenario_hash: inputs.scenario_hash.clone(),
        controllers: run.controllers.clone(),
        changes: run.changes.clone(),
        world: run.world.clone(),
        seed: run.seed,
        code: code(&inputs.version, inputs.commit.as_deref()),
        trace_hash: trace_hash.to_owned(),
        duration_s: inputs.setting.as_ref().map_or(0.0, |setting| setting.duration_s),
        values,
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

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("strings and lists become JSON")
}
