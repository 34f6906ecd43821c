// SPDX-License-Identifier: MIT OR Apache-2.0
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

/// Appends the first `count` values to `to`. Returns `None` if the bytes are damaged. A `width` of 0 means that all values
/// are zero.
pub(super) fn decode(mut bytes: &[u8], width: u32, count: usize, to: &mut Vec<u32>) -> Option<()> {
    let end = to.len() + count;
    while to.len() < end {
        let (header, rest) = varint(bytes).filter(|(header, _)| *header > 1)?;
        let missing = end - to.len();
        let length = if header % 2 == 0 {
            let value = rest.get(..bytes_of(width))?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            to.resize(to.len() + missing.min(header / 2), value);
            bytes_of(width)
        } else {
            let length = (header / 2).checked_mul(width as usize)?;
            unpack(rest.get(..length)?, width, missing.min(header / 2 * GROUP), to);
            length
        };
        bytes = &rest[length..];
    }
    Some(())
}

/// Appends the first `count` values of a bit-packed run.
fn unpack(bytes: &[u8], width: u32, count: usize, to: &mut Vec<u32>) {
    let mask = (1_u64 << width) - 1;
    if (1..=WORD_WIDTH).contains(&width) {
        let end = to.len() + count;
        for at in (0..bytes.len()).step_by(width as usize).take(count.div_ceil(GROUP)) {
            let word = match bytes[at..].first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => bytes[at..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            };
            to.extend((0..GROUP as u32).map(|index| (word >> (index * width) & mask) as u32));
        }
        to.truncate(end);
        return;
    }
    let (mut bits, mut filled) = (0_u64, 0);
    let mut words = bytes.chunks(4);
    to.extend((0..count).map(|_| {
        if filled < width {
            let mut word = [0; 4];
            let next = words.next().unwrap_or_default();
            word[..next.len()].copy_from_slice(next);
            bits |= u64::from(u32::from_le_bytes(word)) << filled;
            filled += 32;
        }
        let value = bits & mask;
        (bits, filled) = (bits >> width, filled - width);
        value as u32
    }));
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

/// Returns an integer of at most 35 bits, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[u32], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(values.len(), width, |index| values[index], &mut bytes);
        bytes
    }

    fn decoded(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
        let mut values = Vec::new();
        decode(bytes, width, count, &mut values)?;
        Some(values)
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
    fn decodes_what_it_encodes() {
        for width in 1..=32 {
            let largest = u32::MAX >> (32 - width);
            // Runs of 1 to 40 equal values.
            let values: Vec<u32> = (0..40_u32)
                .flat_map(|run| vec![run.wrapping_mul(2_654_435_761) & largest; run as usize + 1])
                .chain([largest, 0, largest])
                .collect();
            let bytes = encoded(&values, width);
            assert_eq!(decoded(&bytes, width, values.len()).as_ref(), Some(&values), "{width} bits");
            assert!(bytes.len() < 4 * values.len(), "{width} bits: {} bytes", bytes.len());
            for end in 0..bytes.len() {
                assert_eq!(decoded(&bytes[..end], width, values.len()), None, "{width} bits, {end} bytes");
            }
        }
    }

    #[test]
    fn decodes_no_more_than_requested() {
        for width in 1..=9 {
            let values: Vec<u32> = (0..24).map(|index| index % (1 << width)).collect();
            let bytes = encoded(&values, width);
            for count in [0, 1, 7, 8, 9, 24] {
                let mut to = vec![77];
                decode(&bytes, width, count, &mut to).unwrap();
                assert_eq!((to[0], &to[1..]), (77, &values[..count]), "{width} bits");
            }
        }
        // A run of 2^17 groups, of which one value is read.
        let mut bytes = Vec::new();
        put_varint((1 << 18) + 1, &mut bytes);
        bytes.resize(bytes.len() + (1 << 17), 0xff);
        let mut to = Vec::new();
        decode(&bytes, 1, 1, &mut to).unwrap();
        assert!(to == [1] && to.capacity() < 100, "{}", to.capacity());
    }

    #[test]
    fn decodes_runs_without_bits_and_rejects_empty_ones() {
        assert_eq!(decoded(&[20], 0, 7), Some(vec![0; 7]));
        assert_eq!(decoded(&[3], 0, 7), Some(vec![0; 7]));
        assert_eq!(decoded(&[0, 0, 0, 0], 1, 7), None);
        assert_eq!(decoded(&[1, 1, 1, 1], 1, 7), None);
        assert_eq!(decoded(&[0xff; 9], 1, 7), None, "an endless header");
    }
}
