//! Columns of names: a page with the dictionary, and pages with an index for each row.
//!
//! The writer of the library looks up the text of each row. Here, the names are known before the first row is written.

use super::parquet_writer::{ZSTD_LEVEL, compression};
use super::rle;
use bytes::Bytes;
use parquet::basic::{Encoding, EncodingMask};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::collections::BTreeMap;
use zstd::bulk::Compressor;

/// The names of a column, each once.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// Index in the dictionary of each declared name.
    codes: Vec<u32>,
    count: u32,
    /// Bits of an index.
    width: u32,
    /// The names, each after its length.
    plain_length: usize,
    compressed: Bytes,
}

impl Dictionary {
    /// Creates the dictionary of these names, of which several may be equal.
    pub(super) fn new(names: &[impl AsRef<str>]) -> ParquetResult<Self> {
        let mut known = BTreeMap::new();
        let (mut codes, mut plain) = (Vec::new(), Vec::new());
        for name in names.iter().map(AsRef::as_ref) {
            let next = known.len() as u32;
            codes.push(*known.entry(name).or_insert_with(|| {
                plain.extend_from_slice(&(name.len() as u32).to_le_bytes());
                plain.extend_from_slice(name.as_bytes());
                next
            }));
        }
        let count = known.len() as u32;
        let width = (u32::BITS - count.saturating_sub(1).leading_zeros()).max(1);
        let compressed = zstd::bulk::compress(&plain, ZSTD_LEVEL)?.into();
        Ok(Self { codes, count, width, plain_length: plain.len(), compressed })
    }

    pub(super) fn code(&self, declared: u32) -> u32 {
        self.codes[declared as usize]
    }

    /// Encodes a column chunk. `levels` are 1 for a value and 0 for a null, or `None` in a column without nulls.
    pub(super) fn chunk(
        &self,
        column: ColumnDescPtr,
        values: &[u32],
        levels: Option<&[i16]>,
        compressor: &mut Compressor<'_>,
    ) -> ParquetResult<(Bytes, ColumnCloseResult)> {
        let rows = levels.map_or(values.len(), <[i16]>::len);
        let mut body = Vec::with_capacity(rows);
        if let Some(levels) = levels {
            body.extend([0; 4]);
            rle::encode(rows, 1, |row| u32::from(levels[row] > 0), &mut body);
            let length = (body.len() - 4) as u32;
            body[..4].copy_from_slice(&length.to_le_bytes());
        }
        body.push(self.width as u8);
        rle::encode(values.len(), self.width, |index| values[index], &mut body);

        let dictionary = Page::DictionaryPage {
            buf: self.compressed.clone(),
            num_values: self.count,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let data = Page::DataPage {
            buf: compressor.compress(&body)?.into(),
            num_values: rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let first = pages.write_page(CompressedPage::new(dictionary, self.plain_length))?;
        let second = pages.write_page(CompressedPage::new(data, body.len()))?;
        let chunk: Bytes = sink.into_inner()?.into();

        let encodings = [Encoding::PLAIN, Encoding::RLE_DICTIONARY, Encoding::RLE];
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(compression()?)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size((first.compressed_size + second.compressed_size) as i64)
            .set_total_uncompressed_size((first.uncompressed_size + second.uncompressed_size) as i64)
            .set_num_values(rows as i64)
            .set_dictionary_page_offset(Some(first.offset as i64))
            .set_data_page_offset(second.offset as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((chunk, close))
    }
}
