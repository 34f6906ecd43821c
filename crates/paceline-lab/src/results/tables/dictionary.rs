// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of names: a page with the dictionary, and pages with an index for each row.
//!
//! The writer of the library looks up the text of each row, and its reader copies it. Here, the names are known before the
//! first row is written, and they are compared once for each row group that is read.

use super::{ZSTD_LEVEL, compression, rle};
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

/// Most names of a column that is read. Their indices have 16 bits.
pub(super) const MOST_NAMES: usize = 65_536;

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

    /// Returns the index in the dictionary of the name that was declared as number `declared`.
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

/// Reason why the names of a page were not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageError {
    /// It has an encoding that only the library reads.
    OtherEncoding,
    /// The column has more than [`MOST_NAMES`].
    TooManyNames,
    Damaged,
}

/// The names in the rows of a column chunk.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The names, each once.
    pub(super) dictionary: Vec<String>,
    /// Index in the dictionary of each row that is not null.
    codes: Vec<u32>,
    /// 1 for a value and 0 for a null; empty for a column without nulls.
    levels: Vec<u32>,
}

impl Names {
    /// Adds a page, which has at most `most` rows.
    pub(super) fn add_page(&mut self, page: &Page, optional: bool, most: usize) -> Result<(), PageError> {
        let added = match page {
            Page::DictionaryPage { num_values, .. } if self.dictionary.len() + *num_values as usize > MOST_NAMES => {
                return Err(PageError::TooManyNames);
            }
            Page::DictionaryPage { buf, num_values, .. } => self.add_dictionary(buf, *num_values),
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY,
                def_level_encoding,
                ..
            } if !optional || *def_level_encoding == Encoding::RLE => {
                let count = usize::try_from(*num_values).ok().filter(|count| *count <= most);
                count.and_then(|count| self.add_indices(buf, count, optional))
            }
            Page::DataPage { .. } | Page::DataPageV2 { .. } => return Err(PageError::OtherEncoding),
        };
        added.ok_or(PageError::Damaged)
    }

    /// Adds names. Returns `None` if they are damaged.
    fn add_dictionary(&mut self, mut bytes: &[u8], count: u32) -> Option<()> {
        for _ in 0..count {
            let (length, after) = bytes.split_first_chunk()?;
            let (name, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            self.dictionary.push(str::from_utf8(name).ok()?.to_owned());
            bytes = after;
        }
        Some(())
    }

    /// Adds `count` rows. Returns `None` if they are damaged.
    fn add_indices(&mut self, mut bytes: &[u8], mut count: usize, optional: bool) -> Option<()> {
        if optional {
            let (length, after) = bytes.split_first_chunk()?;
            let (levels, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let from = self.levels.len();
            rle::decode(levels, 1, count, &mut self.levels)?;
            count = self.levels[from..].iter().map(|level| usize::from(*level > 0)).sum();
            bytes = after;
        }
        let (width, indices) = bytes.split_first()?;
        let width = Some(u32::from(*width)).filter(|width| *width <= u32::BITS)?;
        let from = self.codes.len();
        rle::decode(indices, width, count, &mut self.codes)?;
        let names = u32::try_from(self.dictionary.len()).unwrap_or(u32::MAX);
        self.codes[from..].iter().all(|code| *code < names).then_some(())
    }

    /// Adds the next row of a column that has no dictionary. Returns `None` if it has too many names.
    pub(super) fn add_row(&mut self, name: Option<&str>, optional: bool) -> Option<()> {
        if optional {
            self.levels.push(u32::from(name.is_some()));
        }
        let Some(name) = name else { return Some(()) };
        let again = self.codes.last().filter(|code| self.dictionary[**code as usize] == name).copied();
        let code = again.map(|code| code as usize).or_else(|| self.dictionary.iter().position(|known| known == name));
        self.codes.push(code.unwrap_or(self.dictionary.len()) as u32);
        if code.is_none() {
            self.dictionary.push(name.to_owned());
        }
        (self.dictionary.len() <= MOST_NAMES).then_some(())
    }

    /// Returns whether one of these rows is null.
    pub(super) fn lacks(&self, needed: impl Fn(usize) -> bool) -> bool {
        self.levels.iter().enumerate().any(|(row, level)| *level == 0 && needed(row))
    }

    pub(super) fn rows(&self) -> usize {
        if self.levels.is_empty() { self.codes.len() } else { self.levels.len() }
    }

    /// Replaces `to` by one number for each row: that of its name in `numbers`, or 0 for a null. On failure, returns the
    /// first name without number.
    pub(super) fn numbers(&self, numbers: &[Option<u16>], to: &mut Vec<u16>) -> Result<(), &str> {
        let unknown = |code: &&u32| numbers[**code as usize].is_none();
        if numbers.contains(&None)
            && let Some(code) = self.codes.iter().find(unknown)
        {
            return Err(&self.dictionary[*code as usize]);
        }
        let numbers: Vec<u16> = numbers.iter().map(|number| number.unwrap_or_default()).collect();
        let mut of_values = self.codes.iter().map(|code| numbers[*code as usize]);
        to.clear();
        if self.levels.is_empty() {
            to.extend(of_values);
        } else {
            to.extend(self.levels.iter().map(|level| if *level > 0 { of_values.next().unwrap_or(0) } else { 0 }));
        }
        Ok(())
    }

    /// Removes all rows and names.
    pub(super) fn clear(&mut self) {
        self.dictionary.clear();
        self.codes.clear();
        self.levels.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: &[u8], num_values: u32, levels: Encoding) -> Page {
        Page::DataPage {
            buf: Bytes::copy_from_slice(bytes),
            num_values,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: levels,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn dictionary(bytes: &[u8], num_values: u32) -> Page {
        let buf = Bytes::copy_from_slice(bytes);
        Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
    }

    /// Adds a page of a column with one name, at most eight rows.
    fn add(page: &Page, optional: bool) -> Result<usize, PageError> {
        let mut names = Names::default();
        names.add_page(&dictionary(&[1, 0, 0, 0, b'a'], 1), optional, 8)?;
        names.add_page(page, optional, 8)?;
        Ok(names.rows())
    }

    #[test]
    fn rejects_more_rows_than_the_row_group_has() {
        // A run of 2^28 - 1 zeros.
        let long = [1, 0xfe, 0xff, 0xff, 0xff, 1, 0];
        assert_eq!(add(&page(&long, 8, Encoding::RLE), false), Ok(8));
        for rows in [9, 100_000_000, u32::MAX] {
            assert_eq!(add(&page(&long, rows, Encoding::RLE), false), Err(PageError::Damaged));
        }
    }

    #[test]
    fn rejects_indices_of_more_than_32_bits() {
        let run = |width| page(&[width, 16, 0, 0, 0, 0, 0, 0, 0, 0], 8, Encoding::RLE);
        assert_eq!(add(&run(32), false), Ok(8));
        assert_eq!(add(&run(33), false), Err(PageError::Damaged));
        assert_eq!(add(&run(255), false), Err(PageError::Damaged));
    }

    #[test]
    fn rejects_indices_of_no_name() {
        for (run, packed, expected) in [(0, 0, Ok(8)), (1, 1, Err(PageError::Damaged))] {
            assert_eq!(add(&page(&[1, 16, run], 8, Encoding::RLE), false), expected);
            assert_eq!(add(&page(&[1, 3, packed], 8, Encoding::RLE), false), expected);
        }
    }

    #[test]
    fn leaves_other_encodings_of_levels_to_the_library() {
        let bytes = [2, 0, 0, 0, 16, 1, 1, 16, 0];
        assert_eq!(add(&page(&bytes, 8, Encoding::RLE), true), Ok(8));
        #[expect(deprecated, reason = "files may have it")]
        let packed = page(&bytes, 8, Encoding::BIT_PACKED);
        assert_eq!(add(&packed, true), Err(PageError::OtherEncoding));
    }

    #[test]
    fn rejects_more_names_than_an_index_can_have() {
        let most = u32::try_from(MOST_NAMES).unwrap();
        let empty = vec![0; 4 * (MOST_NAMES + 1)];
        let mut names = Names::default();
        assert_eq!(names.add_page(&dictionary(&empty, most + 1), false, 8), Err(PageError::TooManyNames));
        assert_eq!(names.add_page(&dictionary(&empty, most), false, 8), Ok(()));
        assert_eq!(names.add_page(&dictionary(&empty, 1), false, 8), Err(PageError::TooManyNames));
    }
}
