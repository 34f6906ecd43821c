//! Reads one Parquet file: typed columns, one row group at a time.

use super::dictionary::Names;
use super::schema::ColumnSchema;
use crate::StoreError;
use crate::files::io;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
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
    /// Reads a column that may contain nulls; a null becomes the default of the type.
    pub(super) fn optional<T: Typed>(&self, column: ColumnSchema) -> Result<Vec<T::T>, StoreError>
    where
        T::T: Clone,
    {
        let (values, levels) = self.read::<T>(column)?;
        // A required column has no levels.
        if levels.is_empty() { Ok(values) } else { Ok(spread(values, levels.iter().map(|level| *level > 0))) }
    }

    /// Reads a column without nulls.
    pub(super) fn required<T: Typed>(&self, column: ColumnSchema) -> Result<Vec<T::T>, StoreError> {
        let (values, _) = self.read::<T>(column)?;
        if values.len() == self.rows { Ok(values) } else { Err(self.unexpected(column, "lacks values".to_owned())) }
    }

    /// Reads a column of names, each as its index in `known`; a null becomes 0.
    pub(super) fn names(&self, column: ColumnSchema, known: &[impl AsRef<str>]) -> Result<Vec<u16>, StoreError> {
        let names = self.dictionary(column)?;
        let index = |name: &String| known.iter().position(|k| k.as_ref() == name).and_then(|at| u16::try_from(at).ok());
        let indices: Vec<Option<u16>> = names.dictionary.iter().map(index).collect();
        let of_row = |code: Option<u32>| match code.map(|code| indices[code as usize].ok_or(code)) {
            None => Ok(0),
            Some(Ok(index)) => Ok(index),
            Some(Err(code)) => {
                let name = &names.dictionary[code as usize];
                let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                Err(self.unexpected(column, format!("contains `{name}`, which is none of {}", known.join(", "))))
            }
        };
        names.rows().map(of_row).collect()
    }

    /// Reads a column of names, each as its index in `seen`, and adds new names to `seen`.
    pub(super) fn any_names(&self, column: ColumnSchema, seen: &mut Vec<String>) -> Result<Vec<u16>, StoreError> {
        let names = self.dictionary(column)?;
        for name in &names.dictionary {
            if !seen.contains(name) {
                seen.push(name.clone());
            }
        }
        self.names(column, seen)
    }

    /// Reads a column of names.
    fn dictionary(&self, column: ColumnSchema) -> Result<Names, StoreError> {
        let (at, optional) = self.find::<ByteArrayType>(column)?;
        let unreadable = |source| self.table.unreadable(source);
        let mut pages = self.reader.get_column_page_reader(at).map_err(unreadable)?;
        let mut names = Names::default();
        while let Some(page) = pages.get_next_page().map_err(unreadable)? {
            if names.add_page(&page, optional).is_none() {
                names = self.plain_names(column)?;
                break;
            }
        }
        let rows = names.rows().count();
        if rows == self.rows { Ok(names) } else { Err(self.ends_early(column, rows)) }
    }

    /// Reads a column of names with any encoding.
    fn plain_names(&self, column: ColumnSchema) -> Result<Names, StoreError> {
        let (values, levels) = self.read::<ByteArrayType>(column)?;
        let mut names = Names::default();
        let mut values = values.iter().map(|value| String::from_utf8_lossy(value.data()));
        for row in 0..self.rows {
            let null = levels.get(row) == Some(&0);
            names.add_row(if null { None } else { values.next() }.as_deref(), !levels.is_empty());
        }
        Ok(names)
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
        Ok((at, found.max_def_level() > 0))
    }

    fn read<T: Typed>(&self, column: ColumnSchema) -> Result<(Vec<T::T>, Vec<i16>), StoreError> {
        let (at, optional) = self.find::<T>(column)?;
        let reader = self.reader.get_column_reader(at).map_err(|source| self.table.unreadable(source))?;
        let mut reader = get_typed_column_reader::<T>(reader);
        let (mut values, mut levels) = (Vec::with_capacity(self.rows), Vec::new());
        let mut done = 0;
        while done < self.rows {
            let wanted = self.rows - done;
            let (records, ..) = reader
                .read_records(wanted, optional.then_some(&mut levels), None, &mut values)
                .map_err(|source| self.table.unreadable(source))?;
            if records == 0 {
                return Err(self.ends_early(column, done));
            }
            done += records;
        }
        Ok((values, levels))
    }

    fn ends_early(&self, column: ColumnSchema, rows: usize) -> StoreError {
        self.unexpected(column, format!("ends after {rows} of {} rows", self.rows))
    }

    fn unexpected(&self, column: ColumnSchema, cause: String) -> StoreError {
        StoreError::Column { path: self.table.path.clone(), column: column.name, cause }
    }
}

/// Returns a value for each row: the next one, or the default for a null.
fn spread<T: Default>(values: Vec<T>, present: impl Iterator<Item = bool>) -> Vec<T> {
    let mut values = values.into_iter();
    present.map(|present| if present { values.next().unwrap_or_default() } else { T::default() }).collect()
}
