// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and their values.

use super::{Database, checksum};
use crate::results::StoreError;
use crate::results::names::is_plain_name;
use rusqlite::{Row, Transaction, params};

/// A measured quantity. Empty strings stand for the run or the flow as a whole, and for a single window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuantityKey {
    pub metric: String,
    pub flow: String,
    pub stream: String,
    pub window_s: (f64, f64),
    /// For a share of windows: their division and bounds.
    pub each: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredRun {
    /// Hash of everything that determines the run; see [`run_inputs`].
    pub inputs: String,
    pub scenario: String,
    /// Hash of the resolved scenario without its controllers.
    pub scenario_hash: String,
    /// Controller of each flow; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    /// The case and the changes by `--set`.
    pub changes: Vec<String>,
    pub world: String,
    pub seed: u64,
    /// Version of the program, and its commit if known.
    pub code: String,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    pub duration_s: f64,
    /// The values; `None` where the run has no value.
    pub values: Vec<(QuantityKey, Option<f64>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundRun {
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// The values; `None` where the run has no value.
    pub values: Vec<Option<f64>>,
}

/// Returns the hash of everything that determines a run, 16 hexadecimal digits. `plan` is a hash of the resolved scenario with
/// its controllers.
pub fn run_inputs(plan: &str, world: &str, seed: u64, version: &str) -> String {
    checksum([plan.as_bytes(), world.as_bytes(), &seed.to_le_bytes(), version.as_bytes()])[..16].to_owned()
}

/// Returns the program as runs are listed with it: its version, and its commit if known.
pub fn code(version: &str, commit: Option<&str>) -> String {
    commit.map_or_else(|| version.to_owned(), |commit| format!("{version} {commit}"))
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunFolder {
    pub(crate) directory: String,
    pub(crate) cut_at_s: Option<f64>,
    /// JSON.
    pub(crate) about: String,
    /// JSON; empty for a cut run.
    pub(crate) document: String,
}

impl RunFolder {
    fn is_plain(&self) -> bool {
        is_plain_name(&self.directory)
    }
}

const COLUMNS: &str = "inputs, scenario, scenario_hash, controllers, changes, world, seed, code, trace_hash, duration_s, \
                       stored, directory, cut_at_s, about, document, checksum, values_checksum";

pub(crate) struct RunRow {
    pub(crate) id: i64,
    pub(crate) run: MeasuredRun,
    pub(crate) folder: Option<RunFolder>,
    pub(crate) stored: i64,
    values_checksum: String,
}

impl Database {
    /// Adds a run, or its values to the run with the same inputs, scenario, controllers and changes. Values of another trace hash are
    /// removed: the code has changed.
    pub fn add_run(&self, run: &MeasuredRun) -> Result<(), StoreError> {
        self.write(|transaction| self.insert_run(transaction, run, None).map(drop))
    }

    /// Returns the run with these inputs and its values of these quantities, in their order, if it has all of them.
    pub fn find_run(&self, inputs: &str, quantities: &[QuantityKey]) -> Result<Option<FoundRun>, StoreError> {
        self.read(|transaction| {
            let sql = format!("SELECT id, {COLUMNS} FROM run WHERE inputs = ?1 AND cut_at_s IS NULL");
            self.find_row(transaction, &sql, [inputs], |row| {
                let row = self.row(row)?;
                let values = self.values_of(transaction, &row)?;
                let value = |quantity| values.iter().find(|(key, _)| key == quantity).map(|(_, value)| *value);
                let values = quantities.iter().map(value).collect::<Option<_>>();
                Ok(values.map(|values| FoundRun { trace_hash: row.run.trace_hash, values }))
            })
        })
    }

    /// Returns the number of runs of which only values are kept.
    pub fn run_count(&self) -> Result<u64, StoreError> {
        self.read(|transaction| {
            let sql = "SELECT count(*) FROM run WHERE directory IS NULL";
            Ok(self.find_number(transaction, sql, [])?.unwrap_or(0) as u64)
        })
    }

    /// Inserts or updates a run and returns its row number. Without `folder` only values are kept.
    pub(crate) fn insert_run(
        &self,
        transaction: &Transaction<'_>,
        run: &MeasuredRun,
        folder: Option<RunFolder>,
    ) -> Result<i64, StoreError> {
        let (controllers, changes) = (json(&run.controllers), json(&run.changes));
        let cut_at_s = folder.as_ref().and_then(|folder| folder.cut_at_s);
        let sql = format!(
            "SELECT id, {COLUMNS} FROM run WHERE inputs = ?1 AND scenario = ?2 AND controllers = ?3 AND changes = ?4 \
             AND cut_at_s IS ?5 AND (directory IS NULL) = ?6"
        );
        let key = params![run.inputs, run.scenario, controllers, changes, cut_at_s, folder.is_none()];
        let known = self.find_row(transaction, &sql, key, |row| self.row(row).map(Some))?;
        let mut values = match &known {
            Some(known) if known.run.trace_hash == run.trace_hash => self.values_of(transaction, known)?,
            _ => Vec::new(),
        };
        values.retain(|(key, _)| run.values.iter().all(|(other, _)| other != key));
        for (key, value) in &run.values {
            if values.iter().all(|(other, _)| other != key) {
                // SQLite has no NaN.
                values.push((key.clone(), value.filter(|value| !value.is_nan())));
            }
        }
        let next = "SELECT ifnull(max(stored), 0) + 1 FROM run";
        let stored = self.find_number(transaction, next, [])?.unwrap_or(1);
        let row = RunRow { id: 0, run: run.clone(), folder, stored, values_checksum: values_checksum(&mut values) };
        let id = self.put(transaction, known.map(|known| known.id), &row)?;
        for (key, value) in &values {
            self.put_value(transaction, id, key, *value)?;
        }
        Ok(id)
    }

    fn put(&self, transaction: &Transaction<'_>, id: Option<i64>, row: &RunRow) -> Result<i64, StoreError> {
        let RunRow { run, folder, values_checksum, .. } = row;
        let folder_column = |of: fn(&RunFolder) -> &String| folder.as_ref().map(of);
        let columns = params![
            run.inputs,
            run.scenario,
            run.scenario_hash,
            json(&run.controllers),
            json(&run.changes),
            run.world,
            run.seed as i64,
            run.code,
            run.trace_hash,
            run.duration_s,
            row.stored,
            folder_column(|folder| &folder.directory),
            folder.as_ref().and_then(|folder| folder.cut_at_s),
            folder_column(|folder| &folder.about),
            folder_column(|folder| &folder.document),
            row.checksum(),
            values_checksum,
            id,
        ];
        match id {
            Some(id) => {
                let sql = "UPDATE run SET inputs = ?1, scenario = ?2, scenario_hash = ?3, controllers = ?4, changes = ?5, \
                           world = ?6, seed = ?7, code = ?8, trace_hash = ?9, duration_s = ?10, stored = ?11, \
                           directory = ?12, cut_at_s = ?13, about = ?14, document = ?15, checksum = ?16, \
                           values_checksum = ?17 WHERE id = ?18";
                self.execute(transaction, sql, columns)?;
                self.execute(transaction, "DELETE FROM value WHERE run = ?1", [id])?;
                Ok(id)
            }
            None => {
                let sql = format!(
                    "INSERT INTO run ({COLUMNS}, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
                     ?15, ?16, ?17, ?18)"
                );
                self.execute(transaction, &sql, columns)?;
                Ok(transaction.last_insert_rowid())
            }
        }
    }

    fn put_value(
        &self,
        transaction: &Transaction<'_>,
        run: i64,
        key: &QuantityKey,
        value: Option<f64>,
    ) -> Result<(), StoreError> {
        let QuantityKey { metric, flow, stream, window_s: (from, to), each } = key;
        let find = "SELECT id FROM quantity WHERE metric = ?1 AND flow = ?2 AND stream = ?3 AND window_from_s = ?4 \
                    AND window_to_s = ?5 AND each = ?6";
        let columns = params![metric, flow, stream, from, to, each];
        let quantity = match self.find_number(transaction, find, columns)? {
            Some(quantity) => quantity,
            None => {
                let add = "INSERT INTO quantity (metric, flow, stream, window_from_s, window_to_s, each) \
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                self.execute(transaction, add, columns)?;
                transaction.last_insert_rowid()
            }
        };
        let sql = "INSERT INTO value (run, quantity, value) VALUES (?1, ?2, ?3)";
        self.execute(transaction, sql, params![run, quantity, value]).map(drop)
    }

    /// Returns the values of a run, after their checksum is verified.
    pub(super) fn values_of(
        &self,
        transaction: &Transaction<'_>,
        row: &RunRow,
    ) -> Result<Vec<(QuantityKey, Option<f64>)>, StoreError> {
        let sql = "SELECT metric, flow, stream, window_from_s, window_to_s, each, value FROM value \
                   JOIN quantity ON quantity.id = value.quantity WHERE run = ?1 ORDER BY quantity";
        let read = |row: &Row<'_>| -> Result<_, rusqlite::Error> {
            let key = QuantityKey {
                metric: row.get(0)?,
                flow: row.get(1)?,
                stream: row.get(2)?,
                window_s: (row.get(3)?, row.get(4)?),
                each: row.get(5)?,
            };
            Ok((key, row.get(6)?))
        };
        let read = |value: &Row<'_>| read(value).map_err(|_| self.damaged(&row.name()));
        let mut values = self.rows(transaction, sql, [row.id], read)?;
        if values_checksum(&mut values) != row.values_checksum {
            return Err(self.damaged(&row.name()));
        }
        Ok(values)
    }

    /// Reads a row of `run`, without its values, and verifies its checksum.
    pub(crate) fn row(&self, row: &Row<'_>) -> Result<RunRow, StoreError> {
        let read = || -> Result<(RunRow, String), Box<dyn std::error::Error>> {
            let text = |index: usize| row.get::<_, String>(index);
            let run = MeasuredRun {
                inputs: text(1)?,
                scenario: text(2)?,
                scenario_hash: text(3)?,
                controllers: serde_json::from_str(&text(4)?)?,
                changes: serde_json::from_str(&text(5)?)?,
                world: text(6)?,
                seed: row.get::<_, i64>(7)? as u64,
                code: text(8)?,
                trace_hash: text(9)?,
                duration_s: row.get(10)?,
                values: Vec::new(),
            };
            let folder = match row.get::<_, Option<String>>(12)? {
                None => None,
                Some(directory) => Some(RunFolder {
                    directory,
                    cut_at_s: row.get(13)?,
                    about: row.get::<_, Option<String>>(14)?.unwrap_or_default(),
                    document: row.get::<_, Option<String>>(15)?.unwrap_or_default(),
                }),
            };
            Ok((RunRow { id: row.get(0)?, run, folder, stored: row.get(11)?, values_checksum: text(17)? }, text(16)?))
        };
        match read() {
            Ok((row, expected)) if row.checksum() == expected && row.folder.iter().all(RunFolder::is_plain) => Ok(row),
            _ => Err(self.damaged("a run")),
        }
    }

    /// Returns the runs that have folders, without their values, in the order of their keys.
    pub(crate) fn run_folders(&self, transaction: &Transaction<'_>) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!("SELECT id, {COLUMNS} FROM run WHERE directory IS NOT NULL ORDER BY id");
        let mut rows = self.rows(transaction, &sql, [], |row| self.row(row))?;
        rows.sort_by(|a, b| a.key().cmp(&b.key()));
        Ok(rows)
    }

    /// Calls `each` with every complete run and the name of its folder, in the order in which they were added.
    pub fn each_run(&self, mut each: impl FnMut(MeasuredRun, Option<&str>)) -> Result<(), StoreError> {
        self.read(|transaction| {
            let sql = format!("SELECT id, {COLUMNS} FROM run WHERE cut_at_s IS NULL ORDER BY id");
            let add = |row: &Row<'_>| {
                let row = self.row(row)?;
                let values = self.values_of(transaction, &row)?;
                let directory = row.folder.as_ref().map(|folder| folder.directory.as_str());
                each(MeasuredRun { values, ..row.run }, directory);
                Ok(None::<()>)
            };
            self.find_row(transaction, &sql, [], add).map(drop)
        })
    }

    pub(crate) fn run_row(&self, transaction: &Transaction<'_>, id: i64) -> Result<RunRow, StoreError> {
        let sql = format!("SELECT id, {COLUMNS} FROM run WHERE id = ?1");
        let found = self.find_row(transaction, &sql, [id], |row| self.row(row).map(Some))?;
        found.ok_or_else(|| self.damaged("the list of runs"))
    }

    /// Removes a run with the documents that cite it.
    pub(crate) fn remove_run(&self, transaction: &Transaction<'_>, id: i64) -> Result<(), StoreError> {
        self.execute(transaction, "DELETE FROM run WHERE id = ?1", [id]).map(drop)
    }
}

/// Identity of a run with a folder: scenario, world, controllers, changes, seed.
pub(crate) type RunKey<'a> = (&'a str, &'a str, &'a [Option<String>], &'a [String], u64);

impl RunRow {
    /// Returns the identity, and whether the run is cut.
    pub(crate) fn key(&self) -> (RunKey<'_>, bool) {
        let run = &self.run;
        let is_cut = self.folder.as_ref().is_some_and(|folder| folder.cut_at_s.is_some());
        ((&run.scenario, &run.world, &run.controllers, &run.changes, run.seed), is_cut)
    }

    fn name(&self) -> String {
        format!("the run of {} with seed {}", self.run.scenario, self.run.seed)
    }

    fn checksum(&self) -> String {
        let run = &self.run;
        let (controllers, changes) = (json(&run.controllers), json(&run.changes));
        let (seed, duration) = (run.seed.to_le_bytes(), run.duration_s.to_le_bytes());
        let stored = self.stored.to_le_bytes();
        let own = [
            run.inputs.as_bytes(),
            run.scenario.as_bytes(),
            run.scenario_hash.as_bytes(),
            controllers.as_bytes(),
            changes.as_bytes(),
            run.world.as_bytes(),
            &seed,
            &duration,
            &stored,
            run.code.as_bytes(),
            run.trace_hash.as_bytes(),
            self.values_checksum.as_bytes(),
        ];
        let cut = self.folder.as_ref().and_then(|folder| folder.cut_at_s).map(f64::to_le_bytes);
        let of_folder = self
            .folder
            .iter()
            .flat_map(|folder| [folder.directory.as_bytes(), folder.about.as_bytes(), folder.document.as_bytes()]);
        checksum(own.into_iter().chain(of_folder).chain(cut.iter().map(<[u8; 8]>::as_slice)))
    }
}

fn values_checksum(values: &mut [(QuantityKey, Option<f64>)]) -> String {
    let order = |key: &QuantityKey| {
        let QuantityKey { metric, flow, stream, window_s: (from, to), each } = key.clone();
        (metric, flow, stream, from.to_bits(), to.to_bits(), each)
    };
    values.sort_by_cached_key(|(key, _)| order(key));
    let mut text = Vec::new();
    for (key, value) in values.iter() {
        for part in [&key.metric, &key.flow, &key.stream, &key.each] {
            text.extend((part.len() as u64).to_le_bytes());
            text.extend(part.as_bytes());
        }
        for number in [key.window_s.0, key.window_s.1] {
            text.extend(number.to_le_bytes());
        }
        text.push(u8::from(value.is_some()));
        // The two zeros are one number for SQLite.
        text.extend((value.unwrap_or(0.0) + 0.0).to_le_bytes());
    }
    checksum([text.as_slice()])
}

pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("strings and lists become JSON")
}
