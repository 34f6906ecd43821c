//! One Parquet file made of several: what they hold is copied as it is encoded, group of rows by group of rows.

use super::StoreError;
use super::files::io;
use super::table::of;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the rows of `parts`, of which there is one at least and which have the same columns, into a new file, waits until
/// it is on the disk, and answers how many rows it has. What the first says of itself holds for all.
pub(super) fn join(parts: &[PathBuf], place: &Path) -> Result<u64, StoreError> {
    let mut joined = None;
    let mut rows = 0;
    for part in parts {
        let file = File::open(part).map_err(io("open", part))?;
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let told = reader.parse_and_finish(&file).map_err(of(part))?;
        let writer = match &mut joined {
            Some(writer) => writer,
            None => {
                let file = File::create(place).map_err(io("create", place))?;
                joined.insert(begin(file, &told).map_err(of(place))?)
            }
        };
        copy(&file, &told, writer).map_err(of(place))?;
        rows += u64::try_from(told.file_metadata().num_rows()).unwrap_or(0);
    }
    let mut writer = joined.expect("there is a part");
    writer.finish().map_err(of(place))?;
    writer.inner().sync_all().map_err(io("flush", place))?;
    Ok(rows)
}

fn begin(file: File, first: &ParquetMetaData) -> ParquetResult<SerializedFileWriter<File>> {
    let first = first.file_metadata();
    let metadata = first.key_value_metadata().cloned();
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    SerializedFileWriter::new(file, first.schema_descr().root_schema_ptr(), Arc::new(properties))
}

fn copy(part: &File, told: &ParquetMetaData, into: &mut SerializedFileWriter<File>) -> ParquetResult<()> {
    let pages = told.page_index();
    for (index, group) in told.row_groups().iter().enumerate() {
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
