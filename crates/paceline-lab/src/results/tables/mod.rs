// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Parquet tables of a run: one schema, a writer and a reader.

mod dictionary;
mod join;
mod parquet_reader;
mod parquet_writer;
mod reader;
mod rle;
mod schema;
mod writer;

pub use parquet_writer::{Column, ColumnType, ColumnValue, ROW_GROUP, TableWriter};
pub use reader::{RunTables, SignalRow};
pub use schema::{ECN_NAMES, EVENTS};
pub(crate) use writer::EventTables;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result as ParquetResult;

/// Higher levels take much more time and save little space.
const ZSTD_LEVEL: i32 = 1;

fn compression() -> ParquetResult<Compression> {
    Ok(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
}
