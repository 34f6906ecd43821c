// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a sweep. It is valid after a kill at any time.
//!
//! ```text
//! DIR/results.sqlite                the sweep, and each finished job with its run and values
//! DIR/sweep.lock                    locked by the process that uses the folder
//! DIR/rows.parquet                  all jobs in order; independent of the processes that ran them
//! DIR/points.parquet                each point: its measures over the seeds, and the sums
//! DIR/result.json                   the result without the points
//! ```
//!
//! A job is stored when it ends, so a kill loses the jobs in progress alone. Jobs are read one by one, so memory grows with the
//! number of points, but not with that of jobs.

use super::aggregate::Aggregator;
use super::job::in_batches;
use super::tables::{RowTable, write_points};
use super::{CONTROLLER, Job, JobRow, Sweep, SweepError, SweepResult};
use crate::results::StoreError;
use crate::results::database::{Database, Experiment, JobRun, MeasuredRun, QuantityKey};
use crate::results::files::{self, Temporary, io};
use crate::run_identity::{self, ScenarioHashes, VERSION, quantity_key};
use paceline::Registry;
use paceline_scenario::{Origin, Override};
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};

const KIND: &str = "sweep";
const LOCK: &str = "sweep.lock";
const ROWS: &str = "rows.parquet";
const POINTS: &str = "points.parquet";
/// Most rows of a transaction, besides the first.
const ROWS_MAX: usize = 255;
const RESULT: &str = "result.json";

#[derive(Debug)]
pub struct SweepFolder {
    dir: PathBuf,
    database: Database,
    experiment: Experiment,
    about: SweepAbout,
    columns: RunColumns,
    done: Mutex<BTreeSet<u64>>,
    _lock: File,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SweepAbout {
    id: String,
    version: String,
    world: String,
    jobs: u64,
    repeats: u64,
    /// Hash of the text, the repeats and the addresses of the first and the last point, which depend on the scenarios.
    digest: String,
    /// Text of the sweep file, after changes.
    text: String,
}

#[derive(Clone, Debug)]
pub(super) struct RunColumns {
    sweep: Sweep,
    world: String,
    subjects: Vec<SubjectColumns>,
}

#[derive(Clone, Debug)]
struct SubjectColumns {
    scenario: String,
    changes: Vec<String>,
    /// The controller of each flow, and whether the flow has media: the axis of controllers replaces that.
    controllers: Vec<(String, bool)>,
    /// The quantities, and whether the window is the whole run.
    quantities: Vec<(QuantityKey, bool)>,
}

impl SweepFolder {
    /// Creates the folder, or continues it if `resume` is set.
    ///
    /// # Errors
    /// The folder contains something else, another sweep, or jobs without `resume`; another process uses it; or an operation of
    /// the file system fails.
    pub fn open(dir: &Path, sweep: &Sweep, world: &str, registry: &Registry, resume: bool) -> Result<Self, SweepError> {
        let about = SweepAbout::of(sweep, world, registry)?;
        let database = Database::create(dir)?;
        let place = dir.join(LOCK);
        let lock = File::options().create(true).truncate(false).write(true).open(&place).map_err(io("open", &place))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::Busy { path: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(io("lock", &place)(error).into()),
        }
        let document = serde_json::to_string(&about).expect("strings and numbers become JSON");
        let experiment = database.begin_experiment(KIND, &about.id, &about.digest, &document)?;
        let known = SweepAbout::read(&experiment, &database)?;
        let path = dir.to_path_buf();
        if let Some(differs) = known.differs(&about) {
            return Err(SweepError::Foreign { path, differs });
        }
        let done: BTreeSet<u64> = database.jobs(&experiment)?.into_iter().collect();
        if !resume && !done.is_empty() {
            return Err(SweepError::Taken { path, id: known.id, done: done.len() as u64, jobs: about.jobs });
        }
        let columns = RunColumns::of(sweep, world, registry)?;
        Ok(Self { dir: path, database, experiment, about, columns, done: Mutex::new(done), _lock: lock })
    }

    /// Returns the id of the sweep in a folder, even if another process uses it; `None` if there is no readable sweep.
    pub fn id_at(dir: &Path) -> Option<String> {
        let experiment = Database::open(dir).and_then(|database| database.experiment(KIND));
        experiment.ok().flatten().map(|experiment| experiment.name)
    }

    pub fn done_jobs(&self) -> u64 {
        self.done().len() as u64
    }

    pub fn jobs(&self) -> u64 {
        self.about.jobs
    }

    /// Returns the missing jobs, in order, in ranges of at most `size`.
    pub fn batches(&self, size: u64) -> Vec<Range<u64>> {
        let done = self.done();
        let ends = done.iter().copied().chain([self.about.jobs]);
        let starts = [0].into_iter().chain(done.iter().map(|job| job + 1));
        let missing = starts.zip(ends).filter(|(start, end)| start < end);
        missing.flat_map(|(start, end)| in_batches(start..end, size.max(1))).collect()
    }

    /// Stores finished jobs. Jobs that are stored already are ignored.
    ///
    /// # Errors
    /// A row has a job number that the sweep does not have (then no row is written), or an operation of the file system fails.
    pub fn write(&self, rows: &[JobRow]) -> Result<(), SweepError> {
        let jobs = self.about.jobs;
        if let Some(JobRow { job, .. }) = rows.iter().find(|row| row.job >= jobs) {
            return Err(SweepError::Beyond { path: self.dir.clone(), job: *job, jobs });
        }
        self.database.add_jobs(&self.experiment, rows.iter().map(|row| self.columns.run(row)))?;
        self.done().extend(rows.iter().map(|row| row.job));
        Ok(())
    }

    /// Stores the rows of a channel until it is closed, each as soon as the one before is stored.
    pub(super) fn write_each(&self, rows: Receiver<JobRow>) -> Result<(), SweepError> {
        while let Ok(row) = rows.recv() {
            let more: Vec<JobRow> = iter::once(row).chain(rows.try_iter().take(ROWS_MAX)).collect();
            self.write(&more)?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    pub(super) fn first_of_each<K: Ord>(&self, kind: impl Fn(&JobRow) -> K) -> Result<Vec<JobRow>, SweepError> {
        let mut found = BTreeMap::new();
        self.database.each_job(&self.experiment, |job| -> Result<bool, SweepError> {
            let row = self.columns.row(job, &self.database)?;
            found.entry(kind(&row)).or_insert(row);
            Ok(true)
        })?;
        Ok(found.into_values().collect())
    }

    /// Returns the error of a folder that another sweep or program made.
    pub(super) fn foreign(&self, differs: String) -> SweepError {
        SweepError::Foreign { path: self.dir.clone(), differs }
    }

    /// Returns the result of all rows.
    pub fn result(&self, sweep: &Sweep) -> Result<SweepResult, SweepError> {
        let mut aggregator = Aggregator::new(sweep);
        self.columns.rows_in_order(&self.database, &self.experiment, |row| {
            aggregator.row(row);
            Ok(())
        })?;
        Ok(aggregator.finish())
    }

    pub fn merge(&self, sweep: &Sweep) -> Result<SweepResult, SweepError> {
        let result = self.result(sweep)?;
        self.write_tables(sweep, &result)?;
        Ok(result)
    }

    /// Writes the tables of all rows and of the result.
    pub fn write_tables(&self, sweep: &Sweep, result: &SweepResult) -> Result<(), SweepError> {
        let (temporary, _) = Temporary::create(&self.dir, ROWS)?;
        let mut table = RowTable::create(sweep, temporary.path(), self.metadata("rows"))?;
        self.columns.rows_in_order(&self.database, &self.experiment, |row| table.push(row))?;
        table.finish()?;
        temporary.replace(&self.dir.join(ROWS))?;
        let (temporary, _) = Temporary::create(&self.dir, POINTS)?;
        write_points(sweep, result, temporary.path(), self.metadata("points"))?;
        temporary.replace(&self.dir.join(POINTS))?;
        files::write_whole(&self.dir, RESULT, &files::json(&result.without_points()))?;
        Ok(())
    }

    /// Reads the sweep and the result of a complete folder, and changes nothing. Files that the sweep names by path are looked up
    /// from the working directory.
    ///
    /// # Errors
    /// The folder contains no complete sweep, its sweep is not valid in this program, or a file cannot be read.
    pub fn read(dir: &Path, registry: &Registry) -> Result<(Sweep, SweepResult), SweepError> {
        let database = Database::open(dir)?;
        let none = || StoreError::NotAResult { path: dir.to_path_buf() };
        let experiment = database.experiment(KIND)?.ok_or_else(none)?;
        let about = SweepAbout::read(&experiment, &database)?;
        let name = database.path().display().to_string();
        let mut sweep = Sweep::load(&Origin::from_text(name, about.text.clone()), registry)?;
        sweep.repeats = about.repeats;
        if sweep.jobs() != about.jobs {
            return Err(files::damaged(database.path(), &"the sweep has another number of jobs").into());
        }
        let columns = RunColumns::of(&sweep, &about.world, registry)?;
        let mut aggregator = Aggregator::new(&sweep);
        columns.rows_in_order(&database, &experiment, |row| {
            aggregator.row(row);
            Ok(())
        })?;
        let result = aggregator.finish();
        Ok((sweep, result))
    }

    fn metadata(&self, table: &str) -> Vec<KeyValue> {
        let SweepAbout { id, version, world, digest, .. } = &self.about;
        [("sweep", id.as_str()), ("version", version), ("world", world), ("digest", digest), ("table", table)]
            .into_iter()
            .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
            .collect()
    }

    fn done(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunColumns {
    pub(super) fn of(sweep: &Sweep, world: &str, registry: &Registry) -> Result<Self, SweepError> {
        let subject = |(n, subject): (usize, &super::Subject)| -> Result<SubjectColumns, SweepError> {
            let scenario = sweep.scenario(0, n, registry)?;
            let is_media = |flow: &paceline_netsim::plan::FlowPlan| flow.media().is_some();
            let targets = sweep.targets.iter().filter(|target| target.subject == n);
            Ok(SubjectColumns {
                changes: run_identity::changes(&subject.case, subject.set.iter().map(ToString::to_string)),
                controllers: scenario.plan.flows.iter().map(|f| (f.control().to_owned(), is_media(f))).collect(),
                quantities: targets.map(|t| (quantity_key(&scenario, &t.quantity), t.whole)).collect(),
                scenario: scenario.plan.id,
            })
        };
        let subjects = sweep.subjects.iter().enumerate().map(subject).collect::<Result<_, _>>()?;
        Ok(Self { sweep: sweep.clone(), world: world.to_owned(), subjects })
    }

    /// Returns the quantities of a run of this duration, s, in the order of the measures.
    fn quantities(&self, subject: usize, duration_s: f64) -> impl Iterator<Item = QuantityKey> {
        self.subjects[subject].quantities.iter().map(move |(key, whole)| {
            let end = if *whole { duration_s } else { key.window_s.1 };
            QuantityKey { window_s: (key.window_s.0, end), ..key.clone() }
        })
    }

    pub(super) fn run(&self, row: &JobRow) -> JobRun {
        let Job { point, subject, seed, .. } = self.sweep.job(row.job);
        let SubjectColumns { scenario, changes, controllers, .. } = &self.subjects[subject];
        let (mut changes, mut replaced) = (changes.clone(), None);
        for (key, value) in self.sweep.keys().zip(self.sweep.at(point)) {
            match (key, &value) {
                (CONTROLLER, toml::Value::String(name)) => replaced = Some(name.clone()),
                _ => changes.push(Override::new(key, &value).to_string()),
            }
        }
        let controller = |(name, is_media): &(String, bool)| match &replaced {
            Some(replaced) if *is_media => Some(replaced.clone()),
            _ => Some(name.clone()),
        };
        let run = MeasuredRun {
            inputs: row.address.clone(),
            scenario: scenario.clone(),
            scenario_hash: row.scenario_hash.clone(),
            controllers: controllers.iter().map(controller).collect(),
            changes,
            world: self.world.clone(),
            seed,
            code: VERSION.to_owned(),
            trace_hash: row.trace_hash.clone(),
            duration_s: row.duration_s,
            values: self.quantities(subject, row.duration_s).zip(row.values.iter().copied()).collect(),
        };
        JobRun { job: row.job, run }
    }

    fn row(&self, JobRun { job, run }: JobRun, database: &Database) -> Result<JobRow, StoreError> {
        let lacks = || files::damaged(database.path(), &format!("job {job} is not of this sweep"));
        if job >= self.sweep.jobs() {
            return Err(lacks());
        }
        let value = |key: QuantityKey| run.values.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
        let values = self.quantities(self.sweep.job(job).subject, run.duration_s).map(value).collect::<Option<_>>();
        Ok(JobRow {
            job,
            values: values.ok_or_else(lacks)?,
            address: run.inputs,
            scenario_hash: run.scenario_hash,
            duration_s: run.duration_s,
            trace_hash: run.trace_hash,
        })
    }

    fn rows_in_order(
        &self,
        database: &Database,
        experiment: &Experiment,
        mut each: impl FnMut(&JobRow) -> Result<(), StoreError>,
    ) -> Result<(), SweepError> {
        let (mut next, jobs) = (0, self.sweep.jobs());
        database.each_job(experiment, |job| -> Result<bool, SweepError> {
            let row = self.row(job, database)?;
            if row.job != next {
                return Ok(false);
            }
            next += 1;
            each(&row)?;
            Ok(true)
        })?;
        let path = || database.path().parent().unwrap_or(Path::new("")).to_path_buf();
        if next < jobs { Err(SweepError::Incomplete { path: path(), job: next }) } else { Ok(()) }
    }
}

impl SweepAbout {
    fn of(sweep: &Sweep, world: &str, registry: &Registry) -> Result<Self, SweepError> {
        let mut hash = blake3::Hasher::new_derive_key("paceline 2026 sweep");
        for point in [0, sweep.points() - 1] {
            for subject in 0..sweep.subjects.len() {
                let scenario = sweep.scenario(point, subject, registry)?;
                hash.update(ScenarioHashes::of(&scenario).inputs(world, 0).as_bytes());
            }
        }
        let text = sweep.origin().text.clone();
        hash.update(text.as_bytes());
        hash.update(&sweep.repeats.to_le_bytes());
        Ok(Self {
            id: sweep.id.clone(),
            version: VERSION.to_owned(),
            world: world.to_owned(),
            jobs: sweep.jobs(),
            repeats: sweep.repeats,
            digest: hash.finalize().to_hex()[..32].to_owned(),
            text,
        })
    }

    fn read(experiment: &Experiment, database: &Database) -> Result<Self, StoreError> {
        serde_json::from_str(&experiment.document).map_err(|error| files::damaged(database.path(), &error))
    }

    fn differs(&self, other: &Self) -> Option<String> {
        let differ = |what: &str, mine: &dyn std::fmt::Display, its: &dyn std::fmt::Display| {
            Some(format!("it was made with {what} {mine}, and this is {what} {its}"))
        };
        match self {
            _ if self.digest == other.digest => None,
            _ if self.version != other.version => differ("version", &self.version, &other.version),
            _ if self.id != other.id => differ("the sweep", &self.id, &other.id),
            _ if self.world != other.world => differ("the world", &self.world, &other.world),
            _ if self.repeats != other.repeats => differ("seeds per point:", &self.repeats, &other.repeats),
            _ if self.text != other.text => Some("the text of its sweep differs from this one's".to_owned()),
            _ => Some("a scenario of the sweep, or a file that it uses, has changed".to_owned()),
        }
    }
}
