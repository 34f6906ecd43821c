//! The parts of a sweep's folder: JSON lines of finished jobs.

use super::JobRow;
use paceline_results::StoreError;
use paceline_results::files::{self, Temporary, io};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

const ENDING: &str = ".jsonl";

/// Finished jobs of a current batch, in a temporary file.
#[derive(Debug)]
pub(super) struct Part {
    place: Temporary,
    file: File,
    from: u64,
    to: u64,
}

impl Part {
    pub(super) fn begin(folder: &Path, from: u64) -> Result<Self, StoreError> {
        let (place, file) = Temporary::create(folder, &format!("{from:012}{ENDING}"))?;
        Ok(Self { place, file, from, to: from })
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.from..self.to
    }

    /// Appends the next row. It survives a kill of the process, but not a loss of power.
    pub(super) fn row(&mut self, row: &JobRow) -> Result<(), StoreError> {
        assert_eq!(row.job, self.to, "jobs of a part follow each other");
        let mut text = Vec::new();
        line(row, &mut text);
        self.file.write_all(&text).map_err(io("write", self.place.path()))?;
        self.to += 1;
        Ok(())
    }

    /// Flushes the part to the disk and renames it, unless it is empty.
    pub(super) fn finish(self, folder: &Path) -> Result<(), StoreError> {
        if self.from == self.to {
            return Ok(());
        }
        self.file.sync_all().map_err(io("flush", self.place.path()))?;
        self.place.replace(&folder.join(name(&(self.from..self.to))))
    }
}

/// Makes parts of the jobs that killed processes had finished.
pub(super) fn recover(folder: &Path) -> Result<(), StoreError> {
    for (left, _) in files::abandoned_in(folder)? {
        let mut part: Option<Part> = None;
        // The last line may be incomplete; lines after an unreadable one are ignored.
        for row in rows_of(&left)?.map_while(Result::ok) {
            let part = match &mut part {
                Some(part) => part,
                None => part.insert(Part::begin(folder, row.job)?),
            };
            if row.job != part.to {
                break;
            }
            part.row(&row)?;
        }
        if let Some(part) = part {
            part.finish(folder)?;
        }
        fs::remove_file(&left).map_err(io("remove", &left))?;
    }
    Ok(())
}

pub(super) fn merge_block(folder: &Path, block: &Range<u64>) -> Result<(), StoreError> {
    let within = |range: &Range<u64>| block.start <= range.start && range.end <= block.end;
    let parts: Vec<_> = parts_in(folder)?.into_iter().filter(|(range, _)| within(range)).collect();
    if parts.len() < 2 {
        return Ok(());
    }
    let mut whole = Part::begin(folder, block.start)?;
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
        return Ok(()); // a part was removed meanwhile
    }
    whole.file.write_all(&text).map_err(io("write", whole.place.path()))?;
    let kept = folder.join(name(block));
    whole.finish(folder)?;
    for (_, part) in parts.iter().filter(|(_, part)| *part != kept) {
        fs::remove_file(part).map_err(io("remove", part))?;
    }
    Ok(())
}

/// Disjoint ranges of jobs that do not touch: from and to.
#[derive(Debug, Default)]
pub(super) struct JobRanges(BTreeMap<u64, u64>);

impl JobRanges {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        let Range { start: mut from, end: mut to } = range;
        while let Some((&other, &end)) = self.0.range(..=to).next_back().filter(|(_, end)| **end >= from) {
            (from, to) = (from.min(other), to.max(end));
            self.0.remove(&other);
        }
        self.0.insert(from, to);
    }

    pub(super) fn contain(&self, range: &Range<u64>) -> bool {
        self.0.range(..=range.start).next_back().is_some_and(|(_, end)| *end >= range.end)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    /// Returns the ranges between them below `end`.
    pub(super) fn missing(&self, end: u64) -> Vec<Range<u64>> {
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

/// Returns the parts in a folder, in order; of two with the same start the longer first.
pub(super) fn parts_in(folder: &Path) -> Result<Vec<(Range<u64>, PathBuf)>, StoreError> {
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

pub(super) fn rows_of(part: &Path) -> Result<impl Iterator<Item = Result<JobRow, StoreError>> + use<>, StoreError> {
    let file = File::open(part).map_err(io("open", part))?;
    let path = part.to_path_buf();
    Ok(BufReader::new(file).lines().map(move |line| {
        let line = line.map_err(|error| files::damaged(&path, &error))?;
        serde_json::from_str(&line).map_err(|error| files::damaged(&path, &error))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_are_joined() {
        let mut ranges = JobRanges::default();
        for range in [10..20, 30..40, 20..25, 5..8, 38..50] {
            ranges.insert(range);
        }
        assert_eq!(ranges.0, BTreeMap::from([(5, 8), (10, 25), (30, 50)]));
        assert_eq!(ranges.missing(60), [0..5, 8..10, 25..30, 50..60]);
        assert!(ranges.contain(&(12..25)) && !ranges.contain(&(12..26)) && !ranges.contain(&(26..28)));
        ranges.insert(0..60);
        assert_eq!((ranges.0.len(), ranges.missing(60).len()), (1, 0));
    }
}
