//! Columns of one row group of a Parquet file, typed.

use crate::error::ReportError;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::PathBuf;

/// An open table.
pub(super) struct Table {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

/// One row group of it.
pub(super) struct Group<'a> {
    table: &'a Table,
    reader: Box<dyn RowGroupReader + 'a>,
    rows: usize,
}

impl Table {
    pub(super) fn open(path: PathBuf) -> Result<Self, ReportError> {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(source) => return Err(ReportError::Io { action: "open", path, source }),
        };
        match SerializedFileReader::new(file) {
            Ok(reader) => Ok(Self { path, reader }),
            Err(source) => Err(ReportError::Table { path, source }),
        }
    }

    /// Calls `each` with one row group after the other.
    pub(super) fn groups(
        &self,
        mut each: impl FnMut(&Group<'_>) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        for index in 0..self.reader.num_row_groups() {
            let reader = self.reader.get_row_group(index).map_err(|source| self.unreadable(source))?;
            let rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
            each(&Group { table: self, reader, rows })?;
        }
        Ok(())
    }

    fn unreadable(&self, source: ParquetError) -> ReportError {
        ReportError::Table { path: self.path.clone(), source }
    }
}

/// A Parquet type that columns of results have.
pub(super) trait Typed: DataType {
    /// What people call it.
    const NAME: &'static str;
    /// Whether a reader is one of it: the library panics on another.
    fn fits(reader: &ColumnReader) -> bool;
}

macro_rules! typed {
    ($($of:ty, $reader:ident, $name:literal;)*) => { $(
        impl Typed for $of {
            const NAME: &'static str = $name;
            fn fits(reader: &ColumnReader) -> bool {
                matches!(reader, ColumnReader::$reader(_))
            }
        }
    )* };
}

typed! {
    Int64Type, Int64ColumnReader, "64-bit integers";
    Int32Type, Int32ColumnReader, "32-bit integers";
    DoubleType, DoubleColumnReader, "floats";
    BoolType, BoolColumnReader, "booleans";
    ByteArrayType, ByteArrayColumnReader, "names";
}

impl Group<'_> {
    /// A column in which a row may have nothing.
    pub(super) fn optional<T: Typed>(&self, column: &'static str) -> Result<Vec<Option<T::T>>, ReportError>
    where
        T::T: Clone,
    {
        let (values, levels) = self.read::<T>(column)?;
        // A required column has no levels.
        if levels.is_empty() {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
    }

    /// A column in which every row has a value.
    pub(super) fn required<T: Typed>(&self, column: &'static str) -> Result<Vec<T::T>, ReportError> {
        let (values, _) = self.read::<T>(column)?;
        if values.len() == self.rows { Ok(values) } else { Err(self.odd(column, "lacks values".to_owned())) }
    }

    /// A column of names, each as its index in `known`.
    pub(super) fn names(&self, column: &'static str, known: &[String]) -> Result<Vec<u16>, ReportError> {
        let names = self.required::<ByteArrayType>(column)?;
        let mut last = None;
        names.iter().map(|name| self.index(column, known, name, &mut last)).collect()
    }

    /// The same where a row may have none.
    pub(super) fn optional_names(
        &self,
        column: &'static str,
        known: &[String],
    ) -> Result<Vec<Option<u16>>, ReportError> {
        let names = self.optional::<ByteArrayType>(column)?;
        let mut last = None;
        let index =
            |name: &Option<ByteArray>| name.as_ref().map(|name| self.index(column, known, name, &mut last)).transpose();
        names.iter().map(index).collect()
    }

    /// A column of names, each as its index in `seen`, which grows by those that are new.
    pub(super) fn any_names(&self, column: &'static str, seen: &mut Vec<String>) -> Result<Vec<u16>, ReportError> {
        let names = self.required::<ByteArrayType>(column)?;
        for (index, name) in names.iter().enumerate() {
            let again = index > 0 && names[index - 1] == *name;
            if !again && seen.iter().all(|known| known.as_bytes() != name.data()) {
                seen.push(String::from_utf8_lossy(name.data()).into_owned());
            }
        }
        let mut last = None;
        names.iter().map(|name| self.index(column, seen, name, &mut last)).collect()
    }

    /// Neighbours mostly have the same name: `last` is looked at first.
    fn index(
        &self,
        column: &'static str,
        known: &[String],
        name: &ByteArray,
        last: &mut Option<u16>,
    ) -> Result<u16, ReportError> {
        let is = |index: u16| known[usize::from(index)].as_bytes() == name.data();
        if let Some(index) = last.filter(|index| is(*index)) {
            return Ok(index);
        }
        let found = (0..u16::try_from(known.len()).unwrap_or(u16::MAX)).find(|index| is(*index));
        *last = found;
        found.ok_or_else(|| {
            let name = String::from_utf8_lossy(name.data());
            self.odd(column, format!("says `{name}`, which is none of {}", known.join(", ")))
        })
    }

    fn read<T: Typed>(&self, column: &'static str) -> Result<(Vec<T::T>, Vec<i16>), ReportError> {
        let columns = self.reader.metadata().columns();
        let at = columns.iter().position(|c| c.column_descr().name() == column);
        let at = at.ok_or_else(|| self.odd(column, "is missing".to_owned()))?;
        let optional = columns[at].column_descr().max_def_level() > 0;
        let reader = self.reader.get_column_reader(at).map_err(|source| self.table.unreadable(source))?;
        if !T::fits(&reader) {
            return Err(self.odd(column, format!("does not hold {}", T::NAME)));
        }
        let mut reader = get_typed_column_reader::<T>(reader);
        let (mut values, mut levels) = (Vec::with_capacity(self.rows), Vec::new());
        let mut done = 0;
        while done < self.rows {
            let wanted = self.rows - done;
            let (records, ..) = reader
                .read_records(wanted, optional.then_some(&mut levels), None, &mut values)
                .map_err(|source| self.table.unreadable(source))?;
            if records == 0 {
                return Err(self.odd(column, format!("ends after {done} of {} rows", self.rows)));
            }
            done += records;
        }
        Ok((values, levels))
    }

    fn odd(&self, column: &'static str, cause: String) -> ReportError {
        ReportError::Column { path: self.table.path.clone(), column, cause }
    }
}
