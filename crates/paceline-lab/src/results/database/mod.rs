// SPDX-License-Identifier: MIT OR Apache-2.0
//! `results.sqlite`: the runs, values, jobs and documents of a folder of results.
//!
//! Every change is a transaction, so several threads, processes and containers may write to one folder, and a kill or a full
//! disk leaves the state before the last transaction. Each row has a checksum that is verified when it is read; the indices
//! are verified when the folder is opened.
//!
#![doc = concat!("```sql\n", include_str!("schema.sql"), "```")]

mod documents;
mod jobs;
mod runs;

pub use documents::DocumentKind;
pub(crate) use documents::read_documents;
pub use jobs::{Experiment, JobRun};
pub use runs::{FoundRun, MeasuredRun, QuantityKey, code, run_inputs};
pub(crate) use runs::{RunFolder, RunRow, json};

use crate::results::{RUNS, StoreError, files};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub const DATABASE_FILE: &str = "results.sqlite";

/// What `reproduce` writes besides, also without the database: `scoreboard.json`, `.md` and `.html`.
const SCOREBOARD: &str = "scoreboard.";

const SCHEMA: &str = include_str!("schema.sql");
/// The version of the schema that this program writes, and the latest that it reads. A later version of the program adds a
/// step for each earlier version to `migrate`.
const SCHEMA_VERSION: u32 = 1;
/// Marks the file as ours: "Pace" in ASCII.
const APPLICATION: u32 = 0x5061_6365;
/// How long a transaction waits for those of other processes.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl Database {
    /// Opens the database of a folder, or creates both.
    ///
    /// # Errors
    /// The folder contains something else, the database is damaged or of a later version, or an operation of the file system
    /// fails.
    pub fn create(dir: &Path) -> Result<Self, StoreError> {
        files::create_folder(dir)?;
        let is_result = |name: &String| name.starts_with(DATABASE_FILE) || name.starts_with(SCOREBOARD);
        if !Self::exists(dir) && !files::names(dir)?.iter().all(is_result) {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        }
        let path = dir.join(DATABASE_FILE);
        let is_empty = std::fs::metadata(&path).is_ok_and(|file| file.len() == 0);
        if is_empty && dir.join(RUNS).is_dir() && !files::names(&dir.join(RUNS))?.is_empty() {
            return Err(files::damaged(&path, &"it is empty, and there are runs beside it"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(error(&path))?;
        Self::prepared(connection, path, true)
    }

    /// Opens the database of a folder of results. A folder that is not writable is opened for reading.
    ///
    /// # Errors
    /// There is none, it is damaged or of a later version, or an operation of the file system fails.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(DATABASE_FILE);
        if !path.is_file() {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&path, flags).map_err(error(&path));
        match opened.and_then(|connection| Self::prepared(connection, path.clone(), false)) {
            Err(StoreError::Database { source, .. }) if is_read_only(&source) => Self::immutable(path),
            opened => opened,
        }
    }

    pub fn exists(dir: &Path) -> bool {
        dir.join(DATABASE_FILE).is_file()
    }

    /// Opens a database on a medium that cannot be written.
    fn immutable(path: PathBuf) -> Result<Self, StoreError> {
        let log = path.with_file_name(format!("{DATABASE_FILE}-wal"));
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            let cause = "the latest runs are in its log, and the folder cannot be written; copy the folder to read it";
            return Err(StoreError::Damaged { path, cause: cause.to_owned() });
        }
        let escaped: String = path.to_string_lossy().chars().fold(String::new(), |mut text, c| {
            match c {
                '%' | '?' | '#' => text.push_str(&format!("%{:02x}", c as u32)),
                c => text.push(c),
            }
            text
        });
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags);
        let connection = opened.map_err(error(&path))?;
        check_format(&connection, &path)?;
        check_pages(&connection, &path)?;
        Ok(Self { path, connection: Mutex::new(connection) })
    }

    fn prepared(mut connection: Connection, path: PathBuf, is_new: bool) -> Result<Self, StoreError> {
        connection.busy_timeout(PATIENCE).map_err(error(&path))?;
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise a statement is planned again for other values of its parameters.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(error(&path))?;
        let has_tables = |connection: &Connection| {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, u32>(0))
        };
        // A file of another program stays as it is.
        if has_tables(&connection).map_err(error(&path))? > 0 {
            check_format(&connection, &path)?;
        }
        // A kill of the process loses nothing; a loss of power may lose the last transactions, and damages nothing.
        journal_in_wal(&connection).map_err(error(&path))?;
        connection
            .execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
            .map_err(error(&path))?;
        let begin = |connection: &mut Connection| -> Result<bool, rusqlite::Error> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables == 0 && is_new {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "application_id", APPLICATION)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            transaction.commit()?;
            Ok(tables == 0 && is_new)
        };
        if !begin(&mut connection).map_err(error(&path))? {
            check_format(&connection, &path)?;
            check_pages(&connection, &path)?;
        }
        Ok(Self { path, connection: Mutex::new(connection) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in a transaction that excludes those of other threads and processes. An error undoes it.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(self.error())?;
        let result = work(&transaction)?;
        transaction.commit().map_err(self.error())?;
        Ok(result)
    }

    /// Runs `work` on one consistent state.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction().map_err(self.error())?;
        work(&transaction)
    }

    /// Runs a statement that changes rows, and returns the number of these rows.
    fn execute(&self, transaction: &Transaction<'_>, sql: &str, columns: impl Params) -> Result<usize, StoreError> {
        transaction.prepare_cached(sql).and_then(|mut statement| statement.execute(columns)).map_err(self.error())
    }

    /// Calls `each` with the selected rows until it returns a value.
    fn find_row<T>(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        columns: impl Params,
        mut each: impl FnMut(&Row<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = transaction.prepare_cached(sql).map_err(self.error())?;
        let mut rows = statement.query(columns).map_err(self.error())?;
        while let Some(row) = rows.next().map_err(self.error())? {
            if let Some(found) = each(row)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the only column of the first selected row.
    fn find_number(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        columns: impl Params,
    ) -> Result<Option<i64>, StoreError> {
        self.find_row(transaction, sql, columns, |row| row.get(0).map(Some).map_err(self.error()))
    }

    /// Returns what `read` makes of each selected row.
    fn rows<T>(
        &self,
        transaction: &Transaction<'_>,
        sql: &str,
        columns: impl Params,
        read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        let add = |row: &Row<'_>| {
            all.push(read(row)?);
            Ok(None::<()>)
        };
        self.find_row(transaction, sql, columns, add)?;
        Ok(all)
    }

    /// Returns a function for `map_err`.
    pub(crate) fn error(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        error(&self.path)
    }

    /// Returns the error of a row whose contents are not those that were written.
    pub(crate) fn damaged(&self, what: &str) -> StoreError {
        let cause = format!("{what} is not as it was written; run the command again with a new folder");
        StoreError::Damaged { path: self.path.clone(), cause }
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn error(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_path_buf();
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { path: path.clone(), cause: source.to_string() }
        }
        _ => StoreError::Database { path: path.clone(), source },
    }
}

fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied))
}

/// Selects the write-ahead log. File systems without shared memory keep the journal that they have.
fn journal_in_wal(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut tries = 0;
    loop {
        // Two processes that create the database at once exclude each other here without waiting.
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && tries < 200 => {
                tries += 1;
                pause();
            }
            result => return result.map(drop),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "no run waits for this")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Returns an error unless the database is ours and of a known version.
fn check_format(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let pragma =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map_err(error(path));
    if pragma("application_id")? != APPLICATION {
        return Err(StoreError::NotAResult { path: path.parent().unwrap_or(path).to_path_buf() });
    }
    match pragma("user_version")? {
        0 => Err(files::damaged(path, &"it has no version")),
        found if found > SCHEMA_VERSION => {
            Err(StoreError::TooNew { path: path.to_path_buf(), found, known: SCHEMA_VERSION })
        }
        _ => Ok(()),
    }
}

/// Returns an error if a page or an index is damaged. Contents of rows have checksums of their own.
fn check_pages(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(error(path))?;
    if found == "ok" { Ok(()) } else { Err(files::damaged(path, &found)) }
}

/// Returns the first 16 bytes of the BLAKE3 hash of these texts, as hexadecimal digits.
pub(crate) fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().to_hex()[..32].to_owned()
}
