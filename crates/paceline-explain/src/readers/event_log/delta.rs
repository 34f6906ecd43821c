// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delta encoding of version 2: the values of one field in consecutive events.
//!
//! A string of bits, the most significant first: 2 bits of type; 6 bits of delta width less 1; in type 1 also 1 bit "signed", 1 bit
//! "some values are missing" and 6 bits of value width less 1. Then, if some are missing, one bit for each value; then the deltas.

/// The problem of a damaged string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadDelta;

/// Returns the `count` values that follow `base`. An empty string means that all are equal to it.
///
/// # Errors
/// The string ends early, or has a reserved type.
pub fn decode(bytes: &[u8], base: Option<u64>, count: usize) -> Result<Vec<Option<u64>>, BadDelta> {
    if bytes.is_empty() {
        return Ok(vec![base; count]);
    }
    let mut bits = Bits { bytes, at: 0 };
    let kind = bits.read(2)?;
    let width = bits.read(6)? as u32 + 1;
    let (signed, optional, value_width) = match kind {
        0 => (false, false, 64),
        1 => (bits.read(1)? == 1, bits.read(1)? == 1, bits.read(6)? as u32 + 1),
        _ => return Err(BadDelta),
    };
    let mut exists = vec![true; count];
    if optional {
        for exists in &mut exists {
            *exists = bits.read(1)? == 1;
        }
    }
    let mut last = base;
    let mut values = Vec::with_capacity(count);
    for exists in exists {
        if !exists {
            values.push(None);
            continue;
        }
        let value = match last {
            None => bits.varint()?,
            Some(last) => {
                let delta = bits.read(width)?;
                let is_negative = signed && width < 64 && delta >> (width - 1) == 1;
                let delta = if is_negative { delta | (u64::MAX << width) } else { delta };
                masked(last.wrapping_add(delta), value_width)
            }
        };
        last = Some(value);
        values.push(last);
    }
    Ok(values)
}

fn masked(value: u64, width: u32) -> u64 {
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// Reads the strings of several events: `count` lengths as varints, then the strings.
///
/// # Errors
/// The bytes end early.
pub fn blobs(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>, BadDelta> {
    let mut bits = Bits { bytes, at: 0 };
    // A length is a byte at least.
    if count > bytes.len() {
        return Err(BadDelta);
    }
    let lengths: Vec<u64> = (0..count).map(|_| bits.varint()).collect::<Result<_, _>>()?;
    let mut rest = bytes.get(bits.at / 8..).ok_or(BadDelta)?;
    let mut all = Vec::with_capacity(count);
    for length in lengths {
        let (blob, after) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)).ok_or(BadDelta)?;
        all.push(blob);
        rest = after;
    }
    Ok(all)
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn read(&mut self, count: u32) -> Result<u64, BadDelta> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8).ok_or(BadDelta)?;
            value = value << 1 | u64::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Ok(value)
    }

    fn varint(&mut self) -> Result<u64, BadDelta> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read(8)?;
            value |= (byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(BadDelta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_string_repeats_the_base() {
        assert_eq!(decode(&[], Some(7), 3), Ok(vec![Some(7); 3]));
        assert_eq!(decode(&[], None, 2), Ok(vec![None; 2]));
    }

    #[test]
    fn type_0_adds_unsigned_deltas() {
        // Type 0, width 4: 00 000011, deltas 1, 2, 15 and padding.
        assert_eq!(decode(&[0b0000_0011, 0x12, 0xF0], Some(10), 3), Ok(vec![Some(11), Some(13), Some(28)]));
    }

    #[test]
    fn type_1_wraps_and_has_signs_and_missing_values() {
        // Type 1, width 2, signed, no optional, value width 16: 01 000001 1 0 001111; deltas 01, 11 (−1).
        assert_eq!(decode(&[0b0100_0001, 0b1000_1111, 0b0111_0000], Some(0xFFFF), 2), Ok(vec![Some(0), Some(0xFFFF)]));
        // The same, unsigned, optional: existence 0, 1; base missing, so that the first value is the varint 5.
        let bytes = [0b0100_0001, 0b0100_1111, 0b0100_0001, 0b0100_0000];
        assert_eq!(decode(&bytes, None, 2), Ok(vec![None, Some(5)]));
    }

    #[test]
    fn strings_that_end_early_and_reserved_types_are_errors() {
        for (bytes, count) in
            [(&[0b0000_0011][..], 1), (&[0b1000_0000, 0], 1), (&[0b1100_0000, 0], 1), (&[0b0100_0001], 1)]
        {
            assert_eq!(decode(bytes, Some(1), count), Err(BadDelta), "{bytes:?}");
        }
        assert_eq!(blobs(&[2, 1, 9, 8, 7], 2), Ok(vec![&[9, 8][..], &[7]]));
        assert_eq!(blobs(&[2, 9], 1), Err(BadDelta));
        assert_eq!(blobs(&[], 1_000_000), Err(BadDelta));
    }
}
