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
