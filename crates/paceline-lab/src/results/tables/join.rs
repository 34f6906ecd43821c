// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins Parquet files by copying their encoded row groups.

use super::parquet_writer::write_error;
use crate::results::StoreError;
use crate::results::files::io;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the rows of `parts` into a new file, flushes it to the disk, and returns the number of rows. There must be a part,
/// and all must have the same columns. The metadata is that of the first part.
pub(super) fn join(parts: &[PathBuf], place: &Path) -> Result<u64, StoreError> {
    let mut joined = None;
    let mut rows = 0;
    for part in parts {
        let file = File::open(part).map_err(io("open", part))?;
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let part_metadata = reader.parse_and_finish(&file).map_err(write_error(part))?;
        let writer = match &mut joined {
            Some(writer) => writer,
            None => {
                let file = File::create(place).map_err(io("create", place))?;
                joined.insert(begin(file, &part_metadata).map_err(write_error(place))?)
            }
        };
        copy(&file, &part_metadata, writer).map_err(write_error(place))?;
        rows += u64::try_from(part_metadata.file_metadata().num_rows()).unwrap_or(0);
    }
    let mut writer = joined.expect("there is a part");
    writer.finish().map_err(write_error(place))?;
    writer.inner().sync_all().map_err(io("flush", place))?;
    Ok(rows)
}

fn begin(file: File, first: &ParquetMetaData) -> ParquetResult<SerializedFileWriter<File>> {
    let first = first.file_metadata();
    let metadata = first.key_value_metadata().cloned();
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    SerializedFileWriter::new(file, first.schema_descr().root_schema_ptr(), Arc::new(properties))
}

fn copy(part: &File, part_metadata: &ParquetMetaData, into: &mut SerializedFileWriter<File>) -> ParquetResult<()> {
    let pages = part_metadata.page_index();
    for (index, group) in part_metadata.row_groups().iter().enumerate() {
        let mut copied = into.next_row_group()?;
        for (column, chunk) in group.columns().iter().enumerate() {
            let encoded = ColumnCloseResult {
                bytes_written: u64::try_from(chunk.compressed_size()).unwrap_or(0),
                rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
                metadata: chunk.clone(),
                bloom_filter: None,
                column_index: pages.and_then(|pages| pages.column_index(index, column)).cloned(),
                offset_index: pages.and_then(|pages| pages.offset_index(index, column)).cloned(),
            };
            copied.append_column(part, encoded)?;
        }
        copied.close()?;
    }
    Ok(())
}
