//! The folder of a sweep. It is valid after a kill at any time.
//!
//! ```text
//! DIR/sweep.json                            the sweep: text, seeds, world, version
//! DIR/parts/FROM-TO.jsonl                   finished jobs, one line each; complete and flushed to the disk
//! DIR/parts/FROM.jsonl.tmp-PROCESS-N        jobs of a current batch, a line for each finished job
//! DIR/rows.parquet                          all jobs in order; independent of the processes that ran them
//! DIR/points.parquet                        each point: its measures over the seeds, and the sums
//! DIR/result.json                           the result without the points
//! ```
//!
//! A killed process leaves the lines of its finished jobs; the next one recovers them, so only unfinished jobs are lost. When a
//! block of 4096 jobs is complete, its parts are merged to one: a million jobs leave 245 files. Rows are read one by one, so
//! memory grows with the number of points, but not with that of jobs.

use super::aggregate::Aggregator;
use super::job::in_batches;
use super::parts::{JobRanges, Part, merge_block, parts_in, recover, rows_of};
use super::tables::{RowTable, write_points};
use super::{JobRow, Sweep, SweepError, SweepResult, VERSION};
use paceline::Registry;
use paceline_results::StoreError;
use paceline_results::files::{self, Temporary, io};
use paceline_scenario::Origin;
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Value of `format` in `sweep.json`.
const FORMAT: &str = "paceline-sweep";
const FORMAT_VERSION: u32 = 1;
const ABOUT: &str = "sweep.json";
const PARTS: &str = "parts";
const ROWS: &str = "rows.parquet";
const POINTS: &str = "points.parquet";
const RESULT: &str = "result.json";

/// Number of jobs whose parts are merged to one.
const BLOCK: u64 = 4096;

/// The folder of a sweep, locked by one process.
#[derive(Debug)]
pub struct SweepFolder {
    dir: PathBuf,
    about: SweepAbout,
    done: Mutex<JobRanges>,
    _lock: File,
}

/// The sweep of a folder: `sweep.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SweepAbout {
    format: String,
    format_version: u32,
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

impl SweepFolder {
    /// Creates the folder, or continues it if `resume` is set. Jobs that a killed process had finished are recovered.
    ///
    /// # Errors
    /// The folder contains something else, another sweep, or jobs without `resume`; another process uses it; or an operation of
    /// the file system fails.
    pub fn open(dir: &Path, sweep: &Sweep, world: &str, registry: &Registry, resume: bool) -> Result<Self, SweepError> {
        let about = SweepAbout::of(sweep, world, registry)?;
        files::create_folder(dir)?;
        let place = dir.join(ABOUT);
        let known = place.exists().then(|| SweepAbout::read(dir)).transpose()?;
        if known.is_none() {
            if !files::names(dir)?.iter().all(|name| files::is_temporary_of(name, ABOUT)) {
                return Err(StoreError::NotAResult { path: dir.to_path_buf() }.into());
            }
            files::write_whole(dir, ABOUT, &files::json(&about))?;
        }
        let lock = File::open(&place).map_err(io("open", &place))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::Busy { path: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(io("lock", &place)(error).into()),
        }
        let parts = dir.join(PARTS);
        files::create_folder(&parts)?;
        files::clean(dir, |_| true)?;
        let this = Self { dir: dir.to_path_buf(), about, done: Mutex::default(), _lock: lock };
        if let Some(known) = known {
            if let Some(differs) = known.differs(&this.about) {
                return Err(this.foreign(differs));
            }
            recover(&parts)?;
            for (range, _) in parts_in(&parts)? {
                this.done().insert(range);
            }
            if !resume {
                let (done, jobs) = (this.done_jobs(), this.about.jobs);
                return Err(SweepError::Taken { path: this.dir, id: known.id, done, jobs });
            }
        }
        Ok(this)
    }

    /// Returns the id of the sweep in a folder, even if another process uses it; `None` if there is no readable sweep.
    pub fn id_at(dir: &Path) -> Option<String> {
        SweepAbout::read(dir).ok().map(|about| about.id)
    }

    /// Returns the number of finished jobs.
    pub fn done_jobs(&self) -> u64 {
        self.done().count()
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> u64 {
        self.about.jobs
    }

    /// Returns the missing jobs, in order, in ranges of at most `size`.
    pub fn batches(&self, size: u64) -> Vec<Range<u64>> {
        let missing = self.done().missing(self.about.jobs);
        // No range crosses the end of a block.
        let in_blocks = missing.into_iter().flat_map(|range| {
            let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
            blocks.map(move |b| range.start.max(b * BLOCK)..range.end.min((b + 1) * BLOCK))
        });
        in_blocks.flat_map(|range| in_batches(range, size.clamp(1, BLOCK))).collect()
    }

    /// Writes rows of finished jobs and flushes them to the disk. Rows of jobs that are already stored are ignored.
    ///
    /// # Errors
    /// A row has a job number that the sweep does not have (then no row is written), or an operation of the file system fails.
    pub fn write(&self, rows: &[JobRow]) -> Result<(), SweepError> {
        let jobs = self.about.jobs;
        if let Some(JobRow { job, .. }) = rows.iter().find(|row| row.job >= jobs) {
            return Err(SweepError::Beyond { path: self.dir.clone(), job: *job, jobs });
        }
        for run in rows.chunk_by(|a, b| a.job + 1 == b.job && b.job % BLOCK != 0) {
            if self.done().contain(&(run[0].job..run[0].job + run.len() as u64)) {
                continue;
            }
            let mut part = self.part(run[0].job)?;
            run.iter().try_for_each(|row| part.row(row))?;
            self.close(part)?;
        }
        Ok(())
    }

    /// Returns the first stored row of each kind.
    pub(super) fn first_of_each<K: Ord>(&self, kind: impl Fn(&JobRow) -> K) -> Result<Vec<JobRow>, StoreError> {
        let mut found = BTreeMap::new();
        for (_, part) in parts_in(&self.dir.join(PARTS))? {
            for row in rows_of(&part)? {
                let row = row?;
                found.entry(kind(&row)).or_insert(row);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns the error of a folder that another sweep or program made.
    pub(super) fn foreign(&self, differs: String) -> SweepError {
        SweepError::Foreign { path: self.dir.clone(), differs }
    }

    /// Creates a part for a batch that begins with this job.
    pub(super) fn part(&self, from: u64) -> Result<Part, StoreError> {
        Part::begin(&self.dir.join(PARTS), from)
    }

    /// Completes a part. The last part of a block merges all parts of the block.
    pub(super) fn close(&self, part: Part) -> Result<(), StoreError> {
        let range = part.range();
        part.finish(&self.dir.join(PARTS))?;
        if range.is_empty() {
            return Ok(());
        }
        let block = range.start / BLOCK * BLOCK..(range.start / BLOCK + 1).saturating_mul(BLOCK).min(self.about.jobs);
        let full = {
            let mut done = self.done();
            done.insert(range);
            done.contain(&block)
        };
        if full { merge_block(&self.dir.join(PARTS), &block) } else { Ok(()) }
    }

    /// Writes the tables of all rows and returns the result of the sweep.
    ///
    /// # Errors
    /// Jobs are missing, or an operation of the file system fails.
    pub fn merge(&self, sweep: &Sweep) -> Result<SweepResult, SweepError> {
        let mut aggregator = Aggregator::new(sweep);
        let (temporary, _) = Temporary::create(&self.dir, ROWS)?;
        let mut table = RowTable::create(sweep, temporary.path(), self.metadata("rows"))?;
        rows_in_order(&self.dir, self.about.jobs, |row| {
            aggregator.row(row);
            table.push(row)
        })?;
        table.finish()?;
        temporary.replace(&self.dir.join(ROWS))?;
        let result = aggregator.finish();
        let (temporary, _) = Temporary::create(&self.dir, POINTS)?;
        write_points(sweep, &result, temporary.path(), self.metadata("points"))?;
        temporary.replace(&self.dir.join(POINTS))?;
        files::write_whole(&self.dir, RESULT, &files::json(&result.without_points()))?;
        Ok(result)
    }

    /// Reads the sweep and the result of a complete folder, and changes nothing. Files that the sweep names by path are looked up
    /// from the working directory.
    ///
    /// # Errors
    /// The folder contains no complete sweep, its sweep is not valid in this program, or a file cannot be read.
    pub fn read(dir: &Path, registry: &Registry) -> Result<(Sweep, SweepResult), SweepError> {
        let about = SweepAbout::read(dir)?;
        let name = dir.join(ABOUT).display().to_string();
        let mut sweep = Sweep::load(&Origin::from_text(name, about.text), registry)?;
        sweep.repeats = about.repeats;
        let mut aggregator = Aggregator::new(&sweep);
        rows_in_order(dir, about.jobs, |row| {
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

    fn done(&self) -> MutexGuard<'_, JobRanges> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `each` with the row of each job of a folder, in order.
fn rows_in_order(
    dir: &Path,
    jobs: u64,
    mut each: impl FnMut(&JobRow) -> Result<(), StoreError>,
) -> Result<(), SweepError> {
    let mut next = 0;
    for (_, part) in parts_in(&dir.join(PARTS))? {
        for row in rows_of(&part)? {
            let row = row?;
            if row.job > next {
                return Err(SweepError::Incomplete { path: dir.to_path_buf(), job: next });
            }
            // Two parts may contain the same job.
            if row.job == next {
                next += 1;
                each(&row)?;
            }
        }
    }
    if next < jobs { Err(SweepError::Incomplete { path: dir.to_path_buf(), job: next }) } else { Ok(()) }
}

impl SweepAbout {
    fn of(sweep: &Sweep, world: &str, registry: &Registry) -> Result<Self, SweepError> {
        let mut hash = blake3::Hasher::new_derive_key("paceline 2026 sweep");
        for point in [0, sweep.points() - 1] {
            for subject in 0..sweep.subjects.len() {
                let scenario = sweep.scenario(point, subject, registry)?;
                hash.update(super::job::address(&scenario, world, 0).as_bytes());
            }
        }
        let text = sweep.origin().text.clone();
        hash.update(text.as_bytes());
        hash.update(&sweep.repeats.to_le_bytes());
        Ok(Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            id: sweep.id.clone(),
            version: VERSION.to_owned(),
            world: world.to_owned(),
            jobs: sweep.jobs(),
            repeats: sweep.repeats,
            digest: hash.finalize().to_hex()[..32].to_owned(),
            text,
        })
    }

    fn read(dir: &Path) -> Result<Self, StoreError> {
        files::read_versioned(&dir.join(ABOUT), FORMAT, FORMAT_VERSION)
    }

    /// Returns the first difference to another sweep.
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
