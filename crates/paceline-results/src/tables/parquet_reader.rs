//! Reads one Parquet file: typed columns, one row group at a time.

use super::schema::ColumnSchema;
use crate::StoreError;
use crate::files::io;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::PathBuf;

pub(super) struct TableReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

pub(super) struct RowGroup<'a> {
    table: &'a TableReader,
    reader: Box<dyn RowGroupReader + 'a>,
    rows: usize,
}

impl TableReader {
    pub(super) fn open(path: PathBuf) -> Result<Self, StoreError> {
        let file = File::open(&path).map_err(io("open", &path))?;
        match SerializedFileReader::new(file) {
            Ok(reader) => Ok(Self { path, reader }),
            Err(source) => Err(StoreError::ReadTable { path, source }),
        }
    }

    pub(super) fn row_groups(
        &self,
        mut each: impl FnMut(&RowGroup<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for index in 0..self.reader.num_row_groups() {
            let reader = self.reader.get_row_group(index).map_err(|source| self.unreadable(source))?;
            let rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
            each(&RowGroup { table: self, reader, rows })?;
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
    /// Returns whether a reader has this type; the library panics on another.
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

impl RowGroup<'_> {
    /// Reads a column that may contain nulls.
    pub(super) fn optional<T: Typed>(&self, column: ColumnSchema) -> Result<Vec<Option<T::T>>, StoreError>
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

    /// Reads a column without nulls.
    pub(super) fn required<T: Typed>(&self, column: ColumnSchema) -> Result<Vec<T::T>, StoreError> {
        let (values, _) = self.read::<T>(column)?;
        if values.len() == self.rows { Ok(values) } else { Err(self.unexpected(column, "lacks values".to_owned())) }
    }

    /// Reads a column of names, each as its index in `known`.
    pub(super) fn names(&self, column: ColumnSchema, known: &[impl AsRef<str>]) -> Result<Vec<u16>, StoreError> {
        let names = self.required::<ByteArrayType>(column)?;
        let mut last = None;
        names.iter().map(|name| self.index(column, known, name, &mut last)).collect()
    }

    /// Reads a column of names that may contain nulls.
    pub(super) fn optional_names(
        &self,
        column: ColumnSchema,
        known: &[impl AsRef<str>],
    ) -> Result<Vec<Option<u16>>, StoreError> {
        let names = self.optional::<ByteArrayType>(column)?;
        let mut last = None;
        let index =
            |name: &Option<ByteArray>| name.as_ref().map(|name| self.index(column, known, name, &mut last)).transpose();
        names.iter().map(index).collect()
    }

    /// Reads a column of names, each as its index in `seen`, and adds new names to `seen`.
    pub(super) fn any_names(&self, column: ColumnSchema, seen: &mut Vec<String>) -> Result<Vec<u16>, StoreError> {
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

    /// Returns the index of a name. Successive rows mostly have the same name, so `last` is compared first.
    fn index(
        &self,
        column: ColumnSchema,
        known: &[impl AsRef<str>],
        name: &ByteArray,
        last: &mut Option<u16>,
    ) -> Result<u16, StoreError> {
        let is = |index: u16| known[usize::from(index)].as_ref().as_bytes() == name.data();
        if let Some(index) = last.filter(|index| is(*index)) {
            return Ok(index);
        }
        let found = (0..u16::try_from(known.len()).unwrap_or(u16::MAX)).find(|index| is(*index));
        *last = found;
        found.ok_or_else(|| {
            let name = String::from_utf8_lossy(name.data());
            let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
            self.unexpected(column, format!("contains `{name}`, which is none of {}", known.join(", ")))
        })
    }

    fn read<T: Typed>(&self, column: ColumnSchema) -> Result<(Vec<T::T>, Vec<i16>), StoreError> {
        let columns = self.reader.metadata().columns();
        let at = columns.iter().position(|c| c.column_descr().name() == column.name);
        let at = at.ok_or_else(|| self.unexpected(column, "is missing".to_owned()))?;
        let optional = columns[at].column_descr().max_def_level() > 0;
        let reader = self.reader.get_column_reader(at).map_err(|source| self.table.unreadable(source))?;
        if !T::fits(&reader) {
            return Err(self.unexpected(column, format!("does not hold {}", T::NAME)));
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
                return Err(self.unexpected(column, format!("ends after {done} of {} rows", self.rows)));
            }
            done += records;
        }
        Ok((values, levels))
    }

    fn unexpected(&self, column: ColumnSchema, cause: String) -> StoreError {
        StoreError::Column { path: self.table.path.clone(), column: column.name, cause }
    }
}
