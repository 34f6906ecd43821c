//! One Parquet file, written row by row through buffers of one row group.

use super::StoreError;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows held in memory before they are written, per table: about 4 MB of packets.
pub const ROW_GROUP: usize = 65_536;

/// Compression costs more time than it saves space above this.
const ZSTD_LEVEL: i32 = 1;

/// What a column holds.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A time or a number that differs from row to row, mostly by little.
    Int64,
    /// A small number, of which many are equal.
    Int32,
    /// A measured value.
    Float64,
    /// Yes or no.
    Bool,
    /// One of these names, as UTF-8.
    Name(Vec<ByteArray>),
    /// A hash, as UTF-8: 16 hexadecimal digits.
    Hash,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its name, with the unit.
    pub(crate) name: Cow<'static, str>,
    /// What it holds.
    pub(crate) kind: Kind,
    /// Whether a row may lack it.
    pub(crate) optional: bool,
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    Int64(i64),
    Int32(i32),
    Float64(f64),
    Bool(bool),
    /// Index among the column's names.
    Name(u32),
    Hash(u64),
    Null,
}

/// What a column has of the row group to come. Nulls take a level and no value.
#[derive(Debug)]
struct Buffer {
    values: Values,
    /// 1 for a value, 0 for a null; absent for a column that is always there.
    levels: Option<Vec<i16>>,
}

#[derive(Debug)]
enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Float64(Vec<f64>),
    Bool(Vec<bool>),
    Name { values: Vec<u32>, names: Vec<ByteArray> },
    Hash(Vec<ByteArray>),
}

/// A file being written.
pub(crate) struct Table {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    buffers: Vec<Buffer>,
    buffered: usize,
    rows: u64,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Table {
    /// Creates the file.
    pub(crate) fn create(path: PathBuf, columns: Vec<Column>, metadata: Vec<KeyValue>) -> Result<Self, StoreError> {
        let file = File::create(&path).map_err(super::files::io("create", &path))?;
        let writer = open(file, &columns, metadata).map_err(of(&path))?;
        let buffers = columns.into_iter().map(Buffer::new).collect();
        Ok(Self { path, writer, buffers, buffered: 0, rows: 0 })
    }

    /// Adds a row: a cell per column, of the column's kind.
    pub(crate) fn push(&mut self, cells: &[Cell]) -> Result<(), StoreError> {
        assert_eq!(cells.len(), self.buffers.len(), "a cell per column");
        for (buffer, cell) in self.buffers.iter_mut().zip(cells) {
            buffer.push(*cell);
        }
        self.buffered += 1;
        self.rows += 1;
        if self.buffered == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the rest, waits until the file is on the disk, and answers how many rows it has.
    pub(crate) fn finish(mut self) -> Result<u64, StoreError> {
        self.flush()?;
        self.writer.finish().map_err(of(&self.path))?;
        self.writer.inner().sync_all().map_err(super::files::io("flush", &self.path))?;
        Ok(self.rows)
    }

    /// Writes a row group, unless there is nothing to write.
    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffered == 0 {
            return Ok(());
        }
        self.buffered = 0;
        write_group(&mut self.writer, &mut self.buffers).map_err(of(&self.path))
    }
}

impl Buffer {
    fn new(column: Column) -> Self {
        let values = match column.kind {
            Kind::Int64 => Values::Int64(Vec::new()),
            Kind::Int32 => Values::Int32(Vec::new()),
            Kind::Float64 => Values::Float64(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
            Kind::Name(names) => Values::Name { values: Vec::new(), names },
            Kind::Hash => Values::Hash(Vec::new()),
        };
        Self { values, levels: column.optional.then(Vec::new) }
    }

    fn push(&mut self, cell: Cell) {
        match (&mut self.values, cell) {
            (Values::Int64(values), Cell::Int64(x)) => values.push(x),
            (Values::Int32(values), Cell::Int32(x)) => values.push(x),
            (Values::Float64(values), Cell::Float64(x)) => values.push(x),
            (Values::Bool(values), Cell::Bool(x)) => values.push(x),
            (Values::Name { values, .. }, Cell::Name(x)) => values.push(x),
            (Values::Hash(values), Cell::Hash(x)) => values.push(ByteArray::from(format!("{x:016x}").into_bytes())),
            (_, Cell::Null) if self.levels.is_some() => {}
            (values, cell) => unreachable!("{cell:?} in a column of {values:?}"),
        }
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(!matches!(cell, Cell::Null)));
        }
    }
}

fn open(file: File, columns: &[Column], metadata: Vec<KeyValue>) -> ParquetResult<SerializedFileWriter<File>> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(metadata));
    let mut fields = Vec::new();
    for column in columns {
        let physical = match column.kind {
            Kind::Int64 => Physical::INT64,
            Kind::Int32 => Physical::INT32,
            Kind::Float64 => Physical::DOUBLE,
            Kind::Bool => Physical::BOOLEAN,
            Kind::Name(_) | Kind::Hash => Physical::BYTE_ARRAY,
        };
        let logical = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
        let path = ColumnPath::from(&*column.name);
        properties = match column.kind {
            // Differences of times and packet numbers are short; a dictionary of them is not.
            Kind::Int64 => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // Smallest so: a dictionary holds each value once more, and splitting the bytes hides repetition.
            Kind::Float64 | Kind::Hash => properties.set_column_dictionary_enabled(path, false),
            Kind::Int32 | Kind::Bool | Kind::Name(_) => properties,
        };
    }
    let schema = Type::group_type_builder("paceline").with_fields(fields).build()?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}

/// Writes the buffers as one row group and empties them.
fn write_group(writer: &mut SerializedFileWriter<File>, buffers: &mut [Buffer]) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for buffer in buffers {
        let mut column =
            group.next_column()?.ok_or_else(|| ParquetError::General("fewer columns than buffers".to_owned()))?;
        let levels = buffer.levels.as_deref();
        match &mut buffer.values {
            Values::Int64(values) => {
                column.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Int32(values) => {
                column.typed::<Int32Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Float64(values) => {
                column.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Bool(values) => {
                column.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Name { values, names } => {
                let texts: Vec<ByteArray> = values.iter().map(|&index| names[index as usize].clone()).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
                values.clear();
            }
            Values::Hash(values) => {
                column.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        if let Some(levels) = &mut buffer.levels {
            levels.clear();
        }
        column.close()?;
    }
    group.close()?;
    Ok(())
}

/// For `map_err`: the error of the table at `path`.
pub(super) fn of(path: &Path) -> impl FnOnce(ParquetError) -> StoreError {
    let path = path.to_path_buf();
    |source| StoreError::Table { path, source }
}
