//! The hybrid of run-length and bit-packed encoding of the [Parquet
//! format](https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE).
//!
//! A run is a header, which is a variable-length integer, and its values. A header 2n precedes one value that occurs n times.
//! A header 2g + 1 precedes g groups of eight values; each value has `width` bits, the lowest bit first.

use std::ops::Range;

/// Values in a group of a bit-packed run.
const GROUP: usize = 8;
/// Equal values from which a run-length run is written. Shorter ones rarely save space, as they end a bit-packed run.
const SHORTEST_RUN: usize = 16;
/// The largest width at which a group fits into 64 bits.
const WORD_WIDTH: u32 = 8;

/// Appends `count` values below 2^`width`; `width` is 1 to 32.
pub(super) fn encode(count: usize, width: u32, value: impl Fn(usize) -> u32, to: &mut Vec<u8>) {
    let (mut written, mut at) = (0, 0);
    while at < count {
        let first = value(at);
        let length = (at..count).take_while(|index| value(*index) == first).count();
        if length < SHORTEST_RUN {
            at += GROUP;
            continue;
        }
        pack(written..at, width, &value, to);
        put_varint(2 * length, to);
        to.extend_from_slice(&first.to_le_bytes()[..bytes_of(width)]);
        at += length;
        written = at;
    }
    pack(written..count, width, &value, to);
}

/// Appends values as one bit-packed run; the last group is filled with zeros.
fn pack(values: Range<usize>, width: u32, value: &impl Fn(usize) -> u32, to: &mut Vec<u8>) {
    let groups = values.len().div_ceil(GROUP);
    if groups == 0 {
        return;
    }
    put_varint(2 * groups + 1, to);
    if width <= WORD_WIDTH {
        for from in values.clone().step_by(GROUP) {
            let group = from..values.end.min(from + GROUP);
            let word = group.rev().fold(0, |word, index| word << width | u64::from(value(index)));
            to.extend_from_slice(&word.to_le_bytes()[..width as usize]);
        }
        return;
    }
    let end = to.len() + groups * width as usize;
    let (mut bits, mut filled) = (0_u64, 0);
    for index in values {
        bits |= u64::from(value(index)) << filled;
        filled += width;
        if filled >= 32 {
            to.extend_from_slice(&(bits as u32).to_le_bytes());
            (bits, filled) = (bits >> 32, filled - 32);
        }
    }
    to.extend_from_slice(&bits.to_le_bytes()[..bytes_of(filled)]);
    to.resize(end, 0);
}

fn bytes_of(bits: u32) -> usize {
    bits.div_ceil(8) as usize
}

/// Appends an integer with seven bits in each byte, the lowest first; the highest bit of a byte means that another follows.
fn put_varint(mut value: usize, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::super::{Column, ColumnType, ColumnValue, TableWriter};
    use super::*;
    use parquet::file::reader::SerializedFileReader;
    use parquet::record::RowAccessor;

    fn encoded(values: &[u32], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(values.len(), width, |index| values[index], &mut bytes);
        bytes
    }

    #[test]
    fn encodes_as_the_format_specifies() {
        // The example of the specification: 0 to 7 in three bits each.
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert_eq!(encoded(&[300; 1000], 9), [0xd0, 0x0f, 44, 1]);
        assert_eq!(encoded(&[1], 1), [3, 1], "a group is filled with zeros");
        assert!(encoded(&[], 1).is_empty());
    }

    #[test]
    fn the_library_reads_what_is_encoded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.parquet");
        for width in [1, 2, 5, 8, 9, 13, 17] {
            let largest = (1 << width) - 1;
            // Runs of 1 to 40 equal values.
            let values: Vec<u32> = (0..40_u32)
                .flat_map(|run| vec![run.wrapping_mul(2_654_435_761) & largest; run as usize + 1])
                .chain([largest, 0, largest])
                .collect();
            assert!(encoded(&values, width).len() < 4 * values.len(), "{width} bits");
            let names = ColumnType::Name((0..=largest).map(|name| name.to_string()).collect());
            let column = Column { name: "name".into(), kind: names, optional: false };
            let mut table = TableWriter::create(path.clone(), vec![column], Vec::new()).unwrap();
            values.iter().for_each(|value| table.push(&[ColumnValue::Name(*value)]).unwrap());
            table.finish().unwrap();
            let rows = SerializedFileReader::try_from(path.as_path()).unwrap().into_iter();
            let read: Vec<u32> = rows.map(|row| row.unwrap().get_string(0).unwrap().parse().unwrap()).collect();
            assert_eq!(read, values, "{width} bits");
        }
    }
}
