// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one Parquet file by rows, with buffers of one row group.

use super::dictionary::Dictionary;
use super::{ZSTD_LEVEL, compression};
use crate::results::StoreError;
use crate::results::files::io;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::borrow::Cow;
use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::bulk::Compressor;

/// Rows of a table that are buffered before they are written: about 3 MB of packets. The number of a row in its group has 16
/// bits.
pub const ROW_GROUP: usize = 65_536;

#[derive(Clone, Debug)]
pub enum ColumnType {
    /// Times and numbers that differ little from row to row.
    Int64,
    /// Small numbers, of which many are equal.
    Int32,
    Float64,
    Bool,
    /// One of these names, as UTF-8.
    Name(Vec<String>),
    /// Hashes, as 16 hexadecimal digits in UTF-8.
    Hash,
}

#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, which ends in the unit.
    pub name: Cow<'static, str>,
    pub kind: ColumnType,
    /// Whether it may contain nulls.
    pub optional: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum ColumnValue {
    Int64(i64),
    Float64(f64),
    /// Index among the column's names.
    Name(u32),
    /// A 64-bit hash, written as hexadecimal text.
    Hash(u64),
    Null,
}

/// The buffered values of a column. A null has no value.
#[derive(Debug)]
struct Buffer {
    values: Values,
    /// Rows with a value, counted from the start of the row group; `None` for a column without nulls.
    present: Option<Vec<u16>>,
}

#[derive(Debug)]
enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    /// Indices in the dictionary.
    Name {
        values: Vec<u32>,
        dictionary: Dictionary,
    },
    Hash(Vec<ByteArray>),
}

pub struct TableWriter {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    buffers: Vec<Buffer>,
    compressor: Compressor<'static>,
    /// For each row, 1 for a value and 0 for a null, of one column at a time.
    levels: Vec<i16>,
    buffered: usize,
    rows: u64,
}

/// Adds a value of the current row to the buffer of a column, which has this type.
macro_rules! setter {
    ($table:expr, $column:expr, $kind:ident $fields:tt => $push:expr) => {{
        let Buffer { values, present } = &mut $table.buffers[$column];
        let Values::$kind $fields = values else { unreachable!("column {} has another type", $column) };
        $push;
        if let Some(present) = present {
            present.push($table.buffered as u16);
        }
    }};
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl TableWriter {
    pub fn create(path: PathBuf, columns: Vec<Column>, metadata: Vec<KeyValue>) -> Result<Self, StoreError> {
        let file = File::create(&path).map_err(io("create", &path))?;
        let writer = open(file, &columns, metadata).map_err(write_error(&path))?;
        let buffers: ParquetResult<_> = columns.into_iter().map(Buffer::new).collect();
        let buffers = buffers.map_err(write_error(&path))?;
        let compressor = Compressor::new(ZSTD_LEVEL).map_err(io("compress", &path))?;
        Ok(Self { path, writer, buffers, compressor, levels: Vec::new(), buffered: 0, rows: 0 })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a row: a value of the right type for each column.
    pub fn push(&mut self, row: &[ColumnValue]) -> Result<(), StoreError> {
        assert_eq!(row.len(), self.buffers.len(), "one value for each column");
        for (column, value) in row.iter().enumerate() {
            match *value {
                ColumnValue::Int64(value) => self.int64(column, value),
                ColumnValue::Float64(value) => self.float64(column, value),
                ColumnValue::Name(value) => self.name(column, value),
                ColumnValue::Hash(value) => {
                    let text = ByteArray::from(format!("{value:016x}").into_bytes());
                    setter!(self, column, Hash(values) => values.push(text));
                }
                ColumnValue::Null => {
                    assert!(self.buffers[column].present.is_some(), "a null in a column without nulls")
                }
            }
        }
        self.end_row()
    }

    /// Sets an integer of the current row.
    #[inline(always)]
    pub(super) fn int64(&mut self, column: usize, value: i64) {
        setter!(self, column, Int64(values) => values.push(value));
    }

    /// Sets a small integer of the current row.
    #[inline(always)]
    pub(super) fn int32(&mut self, column: usize, value: i32) {
        setter!(self, column, Int32(values) => values.push(value));
    }

    #[inline(always)]
    pub(super) fn float64(&mut self, column: usize, value: f64) {
        setter!(self, column, Float64(values) => values.push(value));
    }

    /// Sets a truth value of the current row.
    #[inline(always)]
    pub(super) fn bool(&mut self, column: usize, value: bool) {
        setter!(self, column, Bool(values) => values.push(value));
    }

    /// Sets a name of the current row, by its index among the column's names.
    #[inline(always)]
    pub(super) fn name(&mut self, column: usize, index: u32) {
        setter!(self, column, Name { values, dictionary } => values.push(dictionary.code(index)));
    }

    /// Ends the current row. Columns that are not set are null.
    #[inline]
    pub(super) fn end_row(&mut self) -> Result<(), StoreError> {
        self.buffered += 1;
        self.rows += 1;
        if self.buffered == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the remaining rows, flushes the file to the disk, and returns the number of rows.
    pub fn finish(mut self) -> Result<u64, StoreError> {
        self.flush()?;
        self.writer.finish().map_err(write_error(&self.path))?;
        self.writer.inner().sync_all().map_err(io("flush", &self.path))?;
        Ok(self.rows)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffered == 0 {
            return Ok(());
        }
        let rows = mem::take(&mut self.buffered);
        self.write_group(rows).map_err(write_error(&self.path))
    }

    /// Writes the buffers as one row group and empties them.
    fn write_group(&mut self, rows: usize) -> ParquetResult<()> {
        let columns = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (Buffer { values, present }, column) in self.buffers.iter_mut().zip(columns) {
            let levels = present.as_mut().map(|present| {
                self.levels.clear();
                self.levels.resize(rows, 0);
                present.drain(..).for_each(|row| self.levels[usize::from(row)] = 1);
                &self.levels[..]
            });
            match values {
                Values::Int64(values) => write_column::<Int64Type>(&mut group, values, levels)?,
                Values::Int32(values) => write_column::<Int32Type>(&mut group, values, levels)?,
                Values::Float64(values) => write_column::<DoubleType>(&mut group, values, levels)?,
                Values::Bool(values) => write_column::<BoolType>(&mut group, values, levels)?,
                Values::Hash(values) => write_column::<ByteArrayType>(&mut group, values, levels)?,
                Values::Name { values, dictionary } => {
                    let (chunk, close) = dictionary.chunk(column, values, levels, &mut self.compressor)?;
                    group.append_column(&chunk, close)?;
                    values.clear();
                }
            }
        }
        group.close()?;
        Ok(())
    }
}

impl Buffer {
    fn new(column: Column) -> ParquetResult<Self> {
        let values = match column.kind {
            ColumnType::Int64 => Values::Int64(Vec::new()),
            ColumnType::Int32 => Values::Int32(Vec::new()),
            ColumnType::Float64 => Values::Float64(Vec::new()),
            ColumnType::Bool => Values::Bool(Vec::new()),
            ColumnType::Name(names) => Values::Name { values: Vec::new(), dictionary: Dictionary::new(&names)? },
            ColumnType::Hash => Values::Hash(Vec::new()),
        };
        Ok(Self { values, present: column.optional.then(Vec::new) })
    }
}

fn open(file: File, columns: &[Column], metadata: Vec<KeyValue>) -> ParquetResult<SerializedFileWriter<File>> {
    let mut properties = WriterProperties::builder()
        .set_compression(compression()?)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata));
    let mut fields = Vec::new();
    for column in columns {
        let physical = match column.kind {
            ColumnType::Int64 => Physical::INT64,
            ColumnType::Int32 => Physical::INT32,
            ColumnType::Float64 => Physical::DOUBLE,
            ColumnType::Bool => Physical::BOOLEAN,
            ColumnType::Name(_) | ColumnType::Hash => Physical::BYTE_ARRAY,
        };
        let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
        let path = ColumnPath::from(&*column.name);
        // Differences of times, numbers and sizes are short. A dictionary of floats would store each value twice, and byte
        // splitting hides repetition.
        if matches!(column.kind, ColumnType::Int64 | ColumnType::Int32) {
            properties = properties.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        properties = match column.kind {
            // By the times of a row group, readers skip it.
            ColumnType::Int64 if !column.optional => {
                properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk)
            }
            // Packed differences of delays and sizes look random: compression saves 1 %.
            ColumnType::Int64 | ColumnType::Int32 => properties.set_column_compression(path, Compression::UNCOMPRESSED),
            _ => properties,
        };
    }
    let schema = Type::group_type_builder("paceline").with_fields(fields).build()?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("fewer columns than buffers".to_owned()))?;
    column.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    column.close()
}

pub(super) fn write_error(path: &Path) -> impl FnOnce(ParquetError) -> StoreError {
    let path = path.to_path_buf();
    |source| StoreError::WriteTable { path, source }
}
