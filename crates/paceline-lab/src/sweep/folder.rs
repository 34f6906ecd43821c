//! A sweep's folder: what is done of it, whatever was killed on the way.
//!
//! ```text
//! DIR/sweep.json                            which sweep it is: text, seeds, world, version
//! DIR/parts/FROM-TO.jsonl                   finished jobs, a line each, whole and on the disk
//! DIR/parts/FROM.jsonl.tmp-PROCESS-N        those of a batch that goes on, a line as each is finished
//! DIR/rows.parquet                          all of them, in the order of jobs: the same bytes whoever made them
//! DIR/points.parquet                        each point: its measures over the seeds, and the sums
//! DIR/result.json                           the rest of the result, which is small
//! ```
//!
//! A killed process leaves the lines of the jobs that it had finished; the next one takes them up, so that no more is lost
//! than what was in flight. Parts of a block of 4096 jobs become one when all of it is there: a million jobs leave 245
//! files. Rows are read one after the other: memory does not grow with jobs, but for what the points came to.

use super::result::{Gather, number};
use super::run::in_batches;
use super::{JobRow, Sweep, SweepError, SweepResult, VERSION};
use crate::store::StoreError;
use crate::store::files::{self, Temporary, io};
use crate::store::table::{Cell, Column, Kind, Table};
use paceline::Registry;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What tells such a folder from others.
const FORMAT: &str = "paceline-sweep";
const FORMAT_VERSION: u32 = 1;
const ABOUT: &str = "sweep.json";
const PARTS: &str = "parts";
const ENDING: &str = ".jsonl";
const ROWS: &str = "rows.parquet";
const POINTS: &str = "points.parquet";
const RESULT: &str = "result.json";

/// Jobs whose parts become one part.
const BLOCK: u64 = 4096;

/// A folder of a sweep, held by one process.
#[derive(Debug)]
pub struct SweepFolder {
    dir: PathBuf,
    about: About,
    done: Mutex<Ranges>,
    /// Held until it is dropped.
    _lock: File,
}

/// Which sweep it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    format: String,
    format_version: u32,
    id: String,
    version: String,
    world: String,
    jobs: u64,
    repeats: u64,
    /// Over the above and the addresses of the first and the last point, which hang on scenarios and what they name.
    digest: String,
    /// The sweep file's, after changes.
    text: String,
}

/// Finished jobs of a batch that goes on, in a file that nobody takes for whole.
#[derive(Debug)]
pub(super) struct Part {
    place: Temporary,
    file: File,
    from: u64,
    to: u64,
}

impl SweepFolder {
    /// Makes the folder, or goes on with it if `resume` says so; what a killed process had finished is taken up.
    ///
    /// # Errors
    /// The folder holds something else, another sweep, or jobs of this one without `resume`; another process is at it;
    /// the operating system refuses.
    pub fn open(dir: &Path, sweep: &Sweep, world: &str, registry: &Registry, resume: bool) -> Result<Self, SweepError> {
        let about = About::of(sweep, world, registry)?;
        fs::create_dir_all(dir).map_err(io("create the folder", dir))?;
        let place = dir.join(ABOUT);
        let known = place.exists().then(|| About::read(dir)).transpose()?;
        if known.is_none() {
            if !files::names(dir)?.iter().all(|name| files::is_temporary_of(name, ABOUT)) {
                return Err(StoreError::NotAResult { path: dir.to_path_buf() }.into());
            }
            Temporary::file(dir, ABOUT, &files::json(&about))?.replace(&place)?;
        }
        let lock = File::open(&place).map_err(io("open", &place))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::Busy { path: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(io("lock", &place)(error).into()),
        }
        let parts = dir.join(PARTS);
        fs::create_dir_all(&parts).map_err(io("create the folder", &parts))?;
        files::clean(dir, |_| true)?;
        let this = Self { dir: dir.to_path_buf(), about, done: Mutex::default(), _lock: lock };
        if let Some(known) = known {
            if let Some(differs) = known.differs(&this.about) {
                return Err(this.foreign(differs));
            }
            this.take_up()?;
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

    /// The id of the sweep that a folder holds, whoever is at it; none: it holds none that can be read.
    pub fn id_at(dir: &Path) -> Option<String> {
        About::read(dir).ok().map(|about| about.id)
    }

    /// How many jobs are done.
    pub fn done_jobs(&self) -> u64 {
        self.done().0.iter().map(|(from, to)| to - from).sum()
    }

    /// How many there are.
    pub fn jobs(&self) -> u64 {
        self.about.jobs
    }

    /// What is not done yet, in ranges of no more than `size` jobs, in order.
    pub fn batches(&self, size: u64) -> Vec<Range<u64>> {
        let missing = self.done().missing(self.about.jobs);
        // None lies across the end of a block.
        let in_blocks = missing.into_iter().flat_map(|range| {
            let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
            blocks.map(move |b| range.start.max(b * BLOCK)..range.end.min((b + 1) * BLOCK))
        });
        in_blocks.flat_map(|range| in_batches(range, size.clamp(1, BLOCK))).collect()
    }

    /// Puts rows of finished jobs into the folder, whole and on the disk when it returns. Rows that are there already are
    /// left out: they are the same.
    ///
    /// # Errors
    /// A row is of no job of the sweep, and none is taken; or the operating system refuses.
    pub fn write(&self, rows: &[JobRow]) -> Result<(), SweepError> {
        let jobs = self.about.jobs;
        if let Some(JobRow { job, .. }) = rows.iter().find(|row| row.job >= jobs) {
            return Err(SweepError::Beyond { path: self.dir.clone(), job: *job, jobs });
        }
        for run in rows.chunk_by(|a, b| a.job + 1 == b.job && b.job % BLOCK != 0) {
            if self.done().hold(&(run[0].job..run[0].job + run.len() as u64)) {
                continue;
            }
            let mut part = self.part(run[0].job)?;
            run.iter().try_for_each(|row| part.row(row))?;
            self.close(part)?;
        }
        Ok(())
    }

    /// The first row that is there of each kind.
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

    /// The complaint that it was not made with what there is now.
    pub(super) fn foreign(&self, differs: String) -> SweepError {
        SweepError::Foreign { path: self.dir.clone(), differs }
    }

    /// A part for a batch that begins with this job.
    pub(super) fn part(&self, from: u64) -> Result<Part, StoreError> {
        Part::begin(&self.dir.join(PARTS), from)
    }

    /// Gives a part its name; the last of a block makes one of all of the block.
    pub(super) fn close(&self, part: Part) -> Result<(), StoreError> {
        let range = part.from..part.to;
        part.finish(&self.dir.join(PARTS))?;
        if range.is_empty() {
            return Ok(());
        }
        let block = range.start / BLOCK * BLOCK..(range.start / BLOCK + 1).saturating_mul(BLOCK).min(self.about.jobs);
        let full = {
            let mut done = self.done();
            done.insert(range);
            done.hold(&block)
        };
        if full { self.settle(&block) } else { Ok(()) }
    }

    /// Makes the tables of all rows, and answers what they came to.
    ///
    /// # Errors
    /// Some are missing, or the operating system refuses.
    pub fn merge(&self, sweep: &Sweep) -> Result<SweepResult, SweepError> {
        let mut gather = Gather::new(sweep);
        let rows = self.dir.join(ROWS);
        let (temporary, _) = Temporary::create(&self.dir, ROWS)?;
        let mut table = Table::create(temporary.path().to_path_buf(), row_columns(sweep), self.metadata("rows"))?;
        let names: Vec<Names> = axis_names(sweep);
        let mut next = 0;
        let mut each = |row: JobRow| -> Result<(), SweepError> {
            // The same job may stand in two parts.
            if row.job < next {
                return Ok(());
            }
            if row.job > next {
                return Err(SweepError::Incomplete { path: self.dir.clone(), job: next });
            }
            next += 1;
            gather.row(&row);
            Ok(table.push(&row_cells(sweep, &row, &names)?)?)
        };
        for (_, part) in parts_in(&self.dir.join(PARTS))? {
            for row in rows_of(&part)? {
                each(row?)?;
            }
        }
        if next < self.about.jobs {
            return Err(SweepError::Incomplete { path: self.dir.clone(), job: next });
        }
        table.finish()?;
        temporary.replace(&rows)?;
        let result = gather.finish();
        self.write_points(sweep, &result, &names)?;
        let small = files::json(&result.without_points());
        Temporary::file(&self.dir, RESULT, &small)?.replace(&self.dir.join(RESULT))?;
        Ok(result)
    }

    fn write_points(&self, sweep: &Sweep, result: &SweepResult, names: &[Names]) -> Result<(), StoreError> {
        let (temporary, _) = Temporary::create(&self.dir, POINTS)?;
        let mut columns = vec![column("point", Kind::Int64)];
        columns.extend(key_columns(sweep, names));
        for measure in &sweep.measures {
            columns.extend(["", "_ci95"].map(|what| optional(format!("{}{what}", measure.name), Kind::Float64)));
        }
        columns.extend(["sum", "raw_sum"].map(|name| optional(name.to_owned(), Kind::Float64)));
        let mut table = Table::create(temporary.path().to_path_buf(), columns, self.metadata("points"))?;
        let float = |value: Option<f64>| value.filter(|v| v.is_finite()).map_or(Cell::Null, Cell::Float64);
        for (number, point) in result.points.iter().enumerate() {
            let mut cells = vec![Cell::Int64(number as i64)];
            cells.extend(point.at.iter().zip(names).map(|(value, names)| key_cell(value, names)));
            for value in &point.values {
                cells.extend([float(value.map(|s| s.mean)), float(value.map(|s| s.ci95))]);
            }
            cells.extend([float(point.sum), float(point.raw_sum)]);
            table.push(&cells)?;
        }
        table.finish()?;
        temporary.replace(&self.dir.join(POINTS))
    }

    fn metadata(&self, table: &str) -> Vec<KeyValue> {
        let About { id, version, world, digest, .. } = &self.about;
        [("sweep", id.as_str()), ("version", version), ("world", world), ("digest", digest), ("table", table)]
            .into_iter()
            .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
            .collect()
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Ranges> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes parts of what processes that are no more had finished.
    fn take_up(&self) -> Result<(), StoreError> {
        let parts = self.dir.join(PARTS);
        for (left, _) in files::left_in(&parts)? {
            let mut part: Option<Part> = None;
            // The last line may be cut; nothing after what cannot be read counts.
            for row in rows_of(&left)?.map_while(Result::ok) {
                let part = match &mut part {
                    Some(part) => part,
                    None => part.insert(self.part(row.job)?),
                };
                if row.job != part.to {
                    break;
                }
                part.row(&row)?;
            }
            if let Some(part) = part {
                part.finish(&parts)?;
            }
            fs::remove_file(&left).map_err(io("remove", &left))?;
        }
        Ok(())
    }

    /// Makes one part of those of a block that is complete.
    fn settle(&self, block: &Range<u64>) -> Result<(), StoreError> {
        let folder = self.dir.join(PARTS);
        let within = |range: &Range<u64>| block.start <= range.start && range.end <= block.end;
        let parts: Vec<_> = parts_in(&folder)?.into_iter().filter(|(range, _)| within(range)).collect();
        if parts.len() < 2 {
            return Ok(());
        }
        let mut whole = self.part(block.start)?;
        let mut text = Vec::new();
        for (_, part) in &parts {
            for row in rows_of(part)? {
                let row = row?;
                if row.job == whole.to {
                    line(&row, &mut text);
                    whole.to += 1;
                }
            }
        }
        if whole.to != block.end {
            return Ok(()); // somebody else took a part away
        }
        whole.file.write_all(&text).map_err(io("write", whole.place.path()))?;
        let kept = folder.join(name(block));
        whole.finish(&folder)?;
        for (_, part) in parts.iter().filter(|(_, part)| *part != kept) {
            fs::remove_file(part).map_err(io("remove", part))?;
        }
        Ok(())
    }
}

impl About {
    fn of(sweep: &Sweep, world: &str, registry: &Registry) -> Result<Self, SweepError> {
        let mut hash = blake3::Hasher::new_derive_key("paceline 2026 sweep");
        for point in [0, sweep.points() - 1] {
            for subject in 0..sweep.subjects.len() {
                let plan = sweep.plan(point, subject, registry)?;
                hash.update(super::job::address(&plan, world, 0).as_bytes());
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
        let path = dir.join(ABOUT);
        let text = fs::read(&path).map_err(io("read", &path))?;
        let damaged = |cause: String| StoreError::Damaged { path: path.clone(), cause };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(StoreError::NotAResult { path: dir.to_path_buf() });
        }
        match value["format_version"].as_u64().and_then(|found| u32::try_from(found).ok()) {
            Some(found) if found > FORMAT_VERSION => Err(StoreError::TooNew { path, found, known: FORMAT_VERSION }),
            _ => serde_json::from_value(value).map_err(|error| damaged(error.to_string())),
        }
    }

    /// What another sweep has otherwise.
    fn differs(&self, other: &Self) -> Option<String> {
        let told = |what: &str, mine: &dyn std::fmt::Display, its: &dyn std::fmt::Display| {
            Some(format!("it was made with {what} {mine}, and this is {what} {its}"))
        };
        match self {
            _ if self.digest == other.digest => None,
            _ if self.version != other.version => told("version", &self.version, &other.version),
            _ if self.id != other.id => told("the sweep", &self.id, &other.id),
            _ if self.world != other.world => told("the world", &self.world, &other.world),
            _ if self.repeats != other.repeats => told("seeds per point:", &self.repeats, &other.repeats),
            _ if self.text != other.text => Some("the text of its sweep differs from this one's".to_owned()),
            _ => Some("a scenario of the sweep, or what it names, is no longer the same".to_owned()),
        }
    }
}

impl Part {
    fn begin(folder: &Path, from: u64) -> Result<Self, StoreError> {
        let (place, file) = Temporary::create(folder, &format!("{from:012}{ENDING}"))?;
        Ok(Self { place, file, from, to: from })
    }

    /// Adds the next row. A killed process leaves it; a machine without power may not.
    pub(super) fn row(&mut self, row: &JobRow) -> Result<(), StoreError> {
        assert_eq!(row.job, self.to, "jobs of a part follow each other");
        let mut text = Vec::new();
        line(row, &mut text);
        self.file.write_all(&text).map_err(io("write", self.place.path()))?;
        self.to += 1;
        Ok(())
    }

    /// Waits until it is on the disk and gives it its name, unless it is empty.
    fn finish(self, folder: &Path) -> Result<(), StoreError> {
        if self.from == self.to {
            return Ok(());
        }
        self.file.sync_all().map_err(io("flush", self.place.path()))?;
        self.place.replace(&folder.join(name(&(self.from..self.to))))
    }
}

/// Ranges that do not touch: from and to.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn insert(&mut self, range: Range<u64>) {
        let Range { start: mut from, end: mut to } = range;
        while let Some((&other, &end)) = self.0.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            (from, to) = (from.min(other), to.max(end));
            self.0.remove(&other);
        }
        self.0.insert(from, to);
    }

    fn hold(&self, range: &Range<u64>) -> bool {
        self.0.range(..=range.start).next_back().is_some_and(|(_, end)| *end >= range.end)
    }

    /// What lies between them below `end`.
    fn missing(&self, end: u64) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (from, to) in &self.0 {
            missing.push(next..*from);
            next = *to;
        }
        missing.push(next..end);
        missing.retain(|range| !range.is_empty());
        missing
    }
}

fn name(range: &Range<u64>) -> String {
    format!("{:012}-{:012}{ENDING}", range.start, range.end)
}

/// The parts of a folder, in order; of two that begin alike the longer first.
fn parts_in(folder: &Path) -> Result<Vec<(Range<u64>, PathBuf)>, StoreError> {
    let range = |name: &str| {
        let (from, to) = name.strip_suffix(ENDING)?.split_once('-')?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    let mut parts: Vec<(Range<u64>, PathBuf)> =
        files::names(folder)?.iter().filter_map(|name| Some((range(name)?, folder.join(name)))).collect();
    parts.sort_by_key(|(range, _)| (range.start, u64::MAX - range.end));
    Ok(parts)
}

fn line(row: &JobRow, text: &mut Vec<u8>) {
    serde_json::to_writer(&mut *text, row).expect("numbers and strings become JSON");
    text.push(b'\n');
}

fn rows_of(part: &Path) -> Result<impl Iterator<Item = Result<JobRow, StoreError>> + use<>, StoreError> {
    let file = File::open(part).map_err(io("open", part))?;
    let path = part.to_path_buf();
    let damaged = move |cause: String| StoreError::Damaged { path: path.clone(), cause };
    Ok(BufReader::new(file).lines().map(move |line| {
        let line = line.map_err(|error| damaged(error.to_string()))?;
        serde_json::from_str(&line).map_err(|error| damaged(error.to_string()))
    }))
}

/// What a key's column holds: numbers, or these.
enum Names {
    Numbers,
    Each(Vec<String>),
}

fn axis_names(sweep: &Sweep) -> Vec<Names> {
    let of_key = |axis: &super::Axis, key: usize| match axis.names(key) {
        None => Names::Numbers,
        Some(names) => Names::Each(names),
    };
    sweep.axes.iter().flat_map(|axis| (0..axis.keys.len()).map(move |key| of_key(axis, key))).collect()
}

fn column(name: impl Into<String>, kind: Kind) -> Column {
    Column { name: name.into().into(), kind, optional: false }
}

fn optional(name: String, kind: Kind) -> Column {
    Column { name: name.into(), kind, optional: true }
}

fn texts(names: &[String]) -> Kind {
    Kind::Name(names.iter().map(|name| ByteArray::from(name.as_str())).collect())
}

fn key_columns(sweep: &Sweep, names: &[Names]) -> Vec<Column> {
    let kind = |names: &Names| match names {
        Names::Numbers => Kind::Float64,
        Names::Each(names) => texts(names),
    };
    sweep.keys().zip(names).map(|(key, names)| column(key, kind(names))).collect()
}

fn key_cell(value: &toml::Value, names: &Names) -> Cell {
    match names {
        Names::Numbers => Cell::Float64(number(value).unwrap_or(f64::NAN)),
        Names::Each(names) => {
            let text = super::axis::label(value);
            let known = names.iter().position(|name| *name == text);
            Cell::Name(known.expect("all values of the axis are named") as u32)
        }
    }
}

fn row_columns(sweep: &Sweep) -> Vec<Column> {
    let mut columns = vec![column("job", Kind::Int64), column("address", Kind::Hash)];
    columns.extend(key_columns(sweep, &axis_names(sweep)));
    let subjects: Vec<String> = sweep.subjects.iter().map(super::Subject::name).collect();
    columns.extend([
        column("subject", texts(&subjects)),
        column("seed", Kind::Int64),
        column("trace_hash", Kind::Hash),
    ]);
    columns.extend(sweep.measures.iter().map(|measure| optional(measure.name.clone(), Kind::Float64)));
    columns
}

fn row_cells(sweep: &Sweep, row: &JobRow, names: &[Names]) -> Result<Vec<Cell>, StoreError> {
    let job = sweep.job(row.job);
    let hash = |text: &str| {
        let number = u64::from_str_radix(text, 16);
        let damaged = |_| StoreError::Damaged { path: PathBuf::from(PARTS), cause: format!("`{text}` is no hash") };
        number.map(Cell::Hash).map_err(damaged)
    };
    let mut cells = vec![Cell::Int64(row.job as i64), hash(&row.address)?];
    cells.extend(sweep.at(job.point).iter().zip(names).map(|(value, names)| key_cell(value, names)));
    cells.extend([Cell::Name(job.subject as u32), Cell::Int64(job.seed as i64), hash(&row.trace_hash)?]);
    let mut values = row.values.iter();
    for measure in &sweep.measures {
        let value = if measure.subject == job.subject { values.next().copied().flatten() } else { None };
        cells.push(value.map_or(Cell::Null, Cell::Float64));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_by_hand() {
        let mut ranges = Ranges::default();
        for range in [10..20, 30..40, 20..25, 5..8, 38..50] {
            ranges.insert(range);
        }
        assert_eq!(ranges.0, BTreeMap::from([(5, 8), (10, 25), (30, 50)]));
        assert_eq!(ranges.missing(60), [0..5, 8..10, 25..30, 50..60]);
        assert!(ranges.hold(&(12..25)) && !ranges.hold(&(12..26)) && !ranges.hold(&(26..28)));
        ranges.insert(0..60);
        assert_eq!((ranges.0.len(), ranges.missing(60).len()), (1, 0));
    }
}
