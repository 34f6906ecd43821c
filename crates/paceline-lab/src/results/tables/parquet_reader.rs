// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads one Parquet file: typed columns, one row group at a time.

use super::dictionary::{MOST_NAMES, Names, PageError};
use super::parquet_writer::ROW_GROUP;
use super::schema::ColumnSchema;
use crate::results::StoreError;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::PathBuf;

/// Most rows of a row group that is read: 64 times the number that this version writes, which bounds the memory.
const MOST_ROWS: usize = 64 * ROW_GROUP;

/// Latest time of a row, ns: 30 d. Scenarios last at most a week. It bounds the number of bins in figures.
const LATEST_NS: u64 = 30 * 86_400 * 1_000_000_000;

pub(super) struct TableReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

/// A row group. Its columns are read into buffers that the next row group uses again.
pub(super) struct RowGroup<'a> {
    table: &'a TableReader,
    reader: Box<dyn RowGroupReader + 'a>,
    rows: usize,
    buffers: Buffers,
}

/// The levels and the names of the column last read.
#[derive(Default)]
struct Buffers {
    levels: Vec<i16>,
    names: Names,
}

impl TableReader {
    pub(super) fn new(file: File, path: PathBuf) -> Result<Self, StoreError> {
        match SerializedFileReader::new(file) {
            Ok(reader) => Ok(Self { path, reader }),
            Err(source) => Err(StoreError::ReadTable { path, source }),
        }
    }

    pub(super) fn row_groups(
        &self,
        mut each: impl FnMut(&mut RowGroup<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut buffers = Buffers::default();
        for index in 0..self.reader.num_row_groups() {
            let reader = self.reader.get_row_group(index).map_err(|source| self.unreadable(source))?;
            let rows = reader.metadata().num_rows();
            let Some(rows) = usize::try_from(rows).ok().filter(|rows| *rows <= MOST_ROWS) else {
                let cause = format!("row group {index} has {rows} rows; 0 to {MOST_ROWS} are allowed");
                return Err(self.unreadable(ParquetError::General(cause)));
            };
            let mut group = RowGroup { table: self, reader, rows, buffers };
            each(&mut group)?;
            buffers = group.buffers;
        }
        Ok(())
    }

    fn unreadable(&self, source: ParquetError) -> StoreError {
        StoreError::ReadTable { path: self.path.clone(), source }
    }
}

/// A Parquet type of the schema.
pub(super) trait Typed: DataType {
    /// Its name in messages.
    const NAME: &'static str;
}

macro_rules! typed {
    ($($of:ty, $name:literal;)*) => { $(
        impl Typed for $of {
            const NAME: &'static str = $name;
        }
    )* };
}

typed! {
    Int64Type, "64-bit integers";
    Int32Type, "32-bit integers";
    DoubleType, "floats";
    BoolType, "booleans";
    ByteArrayType, "names";
}

impl RowGroup<'_> {
    /// Replaces `to` by a column that may contain nulls; a null becomes the default of the type.
    pub(super) fn optional<T: Typed>(&mut self, column: ColumnSchema, to: &mut Vec<T::T>) -> Result<(), StoreError>
    where
        T::T: Clone,
    {
        self.read::<T>(column, to)?;
        let levels = &self.buffers.levels;
        // A required column has no levels. Values move from the last to the first.
        if !levels.is_empty() {
            let mut next = to.len();
            to.resize(levels.len(), T::T::default());
            for row in (0..levels.len()).rev() {
                if levels[row] > 0 {
                    next -= 1;
                    to.swap(row, next);
                }
            }
        }
        Ok(())
    }

    /// Replaces `to` by a column without nulls.
    pub(super) fn required<T: Typed>(&mut self, column: ColumnSchema, to: &mut Vec<T::T>) -> Result<(), StoreError> {
        self.read::<T>(column, to)?;
        if to.len() == self.rows { Ok(()) } else { Err(self.lacks_values(column)) }
    }

    /// Replaces `to` by a column of names, each as its index in `known`; a null becomes 0.
    pub(super) fn names(
        &mut self,
        column: ColumnSchema,
        known: &[impl AsRef<str>],
        to: &mut Vec<u16>,
    ) -> Result<(), StoreError> {
        self.read_names(column)?;
        self.indices(column, known, to)
    }

    /// Replaces `to` by a column of names, each as its index in `seen`, and adds new names to `seen`.
    pub(super) fn any_names(
        &mut self,
        column: ColumnSchema,
        seen: &mut Vec<String>,
        to: &mut Vec<u16>,
    ) -> Result<(), StoreError> {
        self.read_names(column)?;
        for name in &self.buffers.names.dictionary {
            if !seen.contains(name) {
                seen.push(name.clone());
            }
        }
        if seen.len() > MOST_NAMES {
            return Err(self.too_many_names(column));
        }
        self.indices(column, seen, to)
    }

    /// Returns an error if the column of names last read is null in one of these rows.
    pub(super) fn names_exist(&self, column: ColumnSchema, needed: impl Fn(usize) -> bool) -> Result<(), StoreError> {
        if self.buffers.names.lacks(needed) { Err(self.lacks_values(column)) } else { Ok(()) }
    }

    /// Returns an error unless all of these times are in the longest run.
    pub(super) fn check_times(&self, column: ColumnSchema, times_ns: &[i64]) -> Result<(), StoreError> {
        match times_ns.iter().find(|time| time.unsigned_abs() > LATEST_NS) {
            Some(time) => Err(self.unexpected(column, format!("contains {time}, which is later than 30 d"))),
            None => Ok(()),
        }
    }

    /// Returns an error unless all of these are indices of streams: 0 to 255.
    pub(super) fn check_streams(&self, column: ColumnSchema, streams: &[i32]) -> Result<(), StoreError> {
        match streams.iter().find(|stream| u8::try_from(**stream).is_err()) {
            Some(stream) => {
                Err(self.unexpected(column, format!("contains {stream}, which is not the index of a stream, 0 to 255")))
            }
            None => Ok(()),
        }
    }

    /// Returns the names last read, as indices.
    fn indices(&self, column: ColumnSchema, known: &[impl AsRef<str>], to: &mut Vec<u16>) -> Result<(), StoreError> {
        let index = |name: &String| known.iter().position(|k| k.as_ref() == name).and_then(|at| u16::try_from(at).ok());
        let names = &self.buffers.names;
        let numbers: Vec<Option<u16>> = names.dictionary.iter().map(index).collect();
        names.numbers(&numbers, to).map_err(|name| {
            let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            self.unexpected(column, format!("contains `{name}`, which is none of {}", known.join(", ")))
        })
    }

    fn read_names(&mut self, column: ColumnSchema) -> Result<(), StoreError> {
        let (at, optional) = self.find::<ByteArrayType>(column)?;
        let unreadable = |source| self.table.unreadable(source);
        let mut pages = self.reader.get_column_page_reader(at).map_err(unreadable)?;
        self.buffers.names.clear();
        while let Some(page) = pages.get_next_page().map_err(unreadable)? {
            let names = &mut self.buffers.names;
            match names.add_page(&page, optional, self.rows - names.rows()) {
                Ok(()) => {}
                Err(PageError::OtherEncoding) => {
                    self.read_plain_names(column)?;
                    break;
                }
                Err(PageError::TooManyNames) => return Err(self.too_many_names(column)),
                Err(PageError::Damaged) => return Err(self.unexpected(column, "is damaged".to_owned())),
            }
        }
        let names = &self.buffers.names;
        if names.rows() != self.rows {
            return Err(self.ends_early(column, names.rows()));
        }
        self.names_exist(column, |_| !column.optional)
    }

    /// Reads a column of names with any encoding.
    fn read_plain_names(&mut self, column: ColumnSchema) -> Result<(), StoreError> {
        let mut values = Vec::new();
        self.read::<ByteArrayType>(column, &mut values)?;
        let Buffers { levels, names } = &mut self.buffers;
        let mut values = values.iter().map(|value| String::from_utf8_lossy(value.data()));
        names.clear();
        for row in 0..self.rows {
            let null = levels.get(row) == Some(&0);
            let name = if null { None } else { values.next() };
            if names.add_row(name.as_deref(), !levels.is_empty()).is_none() {
                return Err(self.too_many_names(column));
            }
        }
        Ok(())
    }

    /// Returns the index of a column, and whether it may contain nulls.
    fn find<T: Typed>(&self, column: ColumnSchema) -> Result<(usize, bool), StoreError> {
        let columns = self.reader.metadata().columns();
        let at = columns.iter().position(|c| c.column_descr().name() == column.name);
        let at = at.ok_or_else(|| self.unexpected(column, "is missing".to_owned()))?;
        let found = columns[at].column_descr();
        if found.physical_type() != T::get_physical_type() {
            return Err(self.unexpected(column, format!("does not hold {}", T::NAME)));
        }
        if found.max_rep_level() > 0 || found.max_def_level() > 1 || found.path().parts().len() > 1 {
            return Err(self.unexpected(column, "is nested or repeated".to_owned()));
        }
        // The library panics on negative ones.
        let chunk = &columns[at];
        let place = [chunk.dictionary_page_offset().unwrap_or(0), chunk.data_page_offset(), chunk.compressed_size()];
        if place.iter().any(|bytes| *bytes < 0) {
            return Err(self.unexpected(column, "is damaged".to_owned()));
        }
        Ok((at, found.max_def_level() > 0))
    }

    /// Replaces `to` by the values of a column, and the levels by its levels.
    fn read<T: Typed>(&mut self, column: ColumnSchema, to: &mut Vec<T::T>) -> Result<(), StoreError> {
        let (at, optional) = self.find::<T>(column)?;
        let reader = self.reader.get_column_reader(at).map_err(|source| self.table.unreadable(source))?;
        let mut reader = get_typed_column_reader::<T>(reader);
        let levels = &mut self.buffers.levels;
        to.clear();
        levels.clear();
        let mut done = 0;
        while done < self.rows {
            let wanted = self.rows - done;
            let (records, ..) = reader
                .read_records(wanted, optional.then_some(&mut *levels), None, to)
                .map_err(|source| self.table.unreadable(source))?;
            if records == 0 {
                return Err(self.ends_early(column, done));
            }
            done += records;
        }
        Ok(())
    }

    fn lacks_values(&self, column: ColumnSchema) -> StoreError {
        self.unexpected(column, "lacks values".to_owned())
    }

    fn too_many_names(&self, column: ColumnSchema) -> StoreError {
        self.unexpected(column, format!("has more than {MOST_NAMES} names"))
    }

    fn ends_early(&self, column: ColumnSchema, rows: usize) -> StoreError {
        self.unexpected(column, format!("ends after {rows} of {} rows", self.rows))
    }

    fn unexpected(&self, column: ColumnSchema, cause: String) -> StoreError {
        StoreError::Column { path: self.table.path.clone(), column: column.name, cause }
    }
}
