// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Parquet tables of a sweep's folder.

use super::axis::{label, names, number};
use super::{JobRow, Subject, Sweep, SweepResult};
use crate::results::StoreError;
use crate::results::tables::{Column, ColumnType, ColumnValue, TableWriter};
use parquet::file::metadata::KeyValue;
use std::path::{Path, PathBuf};

pub(super) struct RowTable<'a> {
    sweep: &'a Sweep,
    keys: Vec<KeyColumn>,
    table: TableWriter,
}

/// The type of a key's column: numbers, or these names.
enum KeyColumn {
    Numbers,
    Names(Vec<String>),
}

impl<'a> RowTable<'a> {
    pub(super) fn create(sweep: &'a Sweep, path: &Path, metadata: Vec<KeyValue>) -> Result<Self, StoreError> {
        let keys = key_columns(sweep);
        let mut columns = vec![column("job", ColumnType::Int64), column("address", ColumnType::Hash)];
        columns.extend(columns_of_keys(sweep, &keys));
        let subjects: Vec<String> = sweep.subjects.iter().map(Subject::name).collect();
        columns.extend([
            column("subject", ColumnType::Name(subjects)),
            column("seed", ColumnType::Int64),
            column("trace_hash", ColumnType::Hash),
        ]);
        columns.extend(sweep.measures.iter().map(|measure| optional(measure.name.clone(), ColumnType::Float64)));
        let table = TableWriter::create(path.to_path_buf(), columns, metadata)?;
        Ok(Self { sweep, keys, table })
    }

    pub(super) fn push(&mut self, row: &JobRow) -> Result<(), StoreError> {
        let job = self.sweep.job(row.job);
        let mut values = vec![ColumnValue::Int64(row.job as i64), hash(&row.address)?];
        values.extend(key_values(&self.sweep.at(job.point), &self.keys));
        let subject = ColumnValue::Name(job.subject as u32);
        values.extend([subject, ColumnValue::Int64(job.seed as i64), hash(&row.trace_hash)?]);
        let mut measured = row.values.iter();
        for target in &self.sweep.targets {
            let own = target.subject == job.subject;
            let value = if own { measured.next().copied().flatten() } else { None };
            values.push(value.map_or(ColumnValue::Null, ColumnValue::Float64));
        }
        self.table.push(&values)
    }

    pub(super) fn finish(self) -> Result<(), StoreError> {
        self.table.finish().map(drop)
    }
}

pub(super) fn write_points(
    sweep: &Sweep,
    result: &SweepResult,
    path: &Path,
    metadata: Vec<KeyValue>,
) -> Result<(), StoreError> {
    let keys = key_columns(sweep);
    let mut columns = vec![column("point", ColumnType::Int64)];
    columns.extend(columns_of_keys(sweep, &keys));
    for measure in &sweep.measures {
        columns.extend(["", "_ci95"].map(|what| optional(format!("{}{what}", measure.name), ColumnType::Float64)));
    }
    columns.extend(["sum", "raw_sum"].map(|name| optional(name.to_owned(), ColumnType::Float64)));
    let mut table = TableWriter::create(path.to_path_buf(), columns, metadata)?;
    let float = |value: Option<f64>| value.filter(|v| v.is_finite()).map_or(ColumnValue::Null, ColumnValue::Float64);
    for (number, point) in result.points.iter().enumerate() {
        let mut values = vec![ColumnValue::Int64(number as i64)];
        values.extend(key_values(&point.at, &keys));
        for value in &point.values {
            values.extend([float(value.map(|s| s.mean)), float(value.map(|s| s.ci95))]);
        }
        values.extend([float(point.sum), float(point.raw_sum)]);
        table.push(&values)?;
    }
    table.finish().map(drop)
}

fn key_columns(sweep: &Sweep) -> Vec<KeyColumn> {
    let keys = sweep.axes.iter().flat_map(|axis| (0..axis.keys.len()).map(move |key| names(axis, key)));
    keys.map(|names| names.map_or(KeyColumn::Numbers, KeyColumn::Names)).collect()
}

fn columns_of_keys(sweep: &Sweep, keys: &[KeyColumn]) -> Vec<Column> {
    let kind = |key: &KeyColumn| match key {
        KeyColumn::Numbers => ColumnType::Float64,
        KeyColumn::Names(names) => ColumnType::Name(names.clone()),
    };
    sweep.keys().zip(keys).map(|(name, key)| column(name, kind(key))).collect()
}

fn key_values(at: &[toml::Value], keys: &[KeyColumn]) -> Vec<ColumnValue> {
    let value = |(value, key): (&toml::Value, &KeyColumn)| match key {
        KeyColumn::Numbers => ColumnValue::Float64(number(value).unwrap_or(f64::NAN)),
        KeyColumn::Names(names) => {
            let text = label(value);
            let index = names.iter().position(|name| *name == text);
            ColumnValue::Name(index.expect("the axis has this value") as u32)
        }
    };
    at.iter().zip(keys).map(value).collect()
}

fn hash(text: &str) -> Result<ColumnValue, StoreError> {
    let damaged = |_| StoreError::Damaged { path: PathBuf::from("parts"), cause: format!("`{text}` is not a hash") };
    u64::from_str_radix(text, 16).map(ColumnValue::Hash).map_err(damaged)
}

fn column(name: impl Into<String>, kind: ColumnType) -> Column {
    Column { name: name.into().into(), kind, optional: false }
}

fn optional(name: String, kind: ColumnType) -> Column {
    Column { name: name.into(), kind, optional: true }
}
