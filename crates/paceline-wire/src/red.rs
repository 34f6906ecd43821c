// SPDX-License-Identifier: MIT OR Apache-2.0
//! Redundant coding, RED (RFC 2198, section 3): one payload that contains several blocks, each with its payload type.
//!
//! Video uses one block, which contains a media payload or a FEC packet. This crate writes that form. It also reads
//! redundant blocks before the primary one, as audio uses them.

use crate::WireError;
use crate::bytes::be32;

/// The bytes that RED adds to a payload with one block.
pub const LEN: usize = 1;

const MORE: u8 = 0x80; // F: another header follows
const REDUNDANT_LEN: usize = 4;

/// Writes the header of the only block at the start of the payload. Returns [`LEN`].
///
/// # Panics
/// If `out` is empty.
#[inline]
pub fn write(payload_type: u8, out: &mut [u8]) -> usize {
    out[0] = payload_type & !MORE;
    LEN
}

/// A parsed RED payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red<'a> {
    headers: &'a [u8],
    data: &'a [u8],
    primary_type: u8,
    primary_at: usize,
}

/// A redundant block, before the primary block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundantBlock<'a> {
    /// The payload type.
    pub payload_type: u8,
    /// The difference of its RTP timestamp to that of the packet, which is newer, in units of the RTP clock.
    pub timestamp_offset: u16,
    /// The payload.
    pub data: &'a [u8],
}

impl<'a> Red<'a> {
    /// Parses a payload. The primary block has no length field: it is the remainder after the other blocks.
    #[inline]
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        let (mut at, mut redundant) = (0, 0);
        loop {
            let header = payload.get(at..).ok_or(WireError::RedTruncated)?;
            let first = *header.first().ok_or(WireError::RedTruncated)?;
            if first & MORE == 0 {
                let data = &payload[at + LEN..];
                if redundant > data.len() {
                    return Err(WireError::RedTruncated);
                }
                return Ok(Self { headers: &payload[..at], data, primary_type: first, primary_at: redundant });
            }
            if header.len() < REDUNDANT_LEN {
                return Err(WireError::RedTruncated);
            }
            redundant += block_len(header);
            at += REDUNDANT_LEN;
        }
    }

    /// Returns the payload type of the primary block.
    pub fn payload_type(&self) -> u8 {
        self.primary_type
    }

    /// Returns the payload of the primary block.
    pub fn primary(&self) -> &'a [u8] {
        &self.data[self.primary_at..]
    }

    /// Returns the redundant blocks in order.
    pub fn redundant(&self) -> impl Iterator<Item = RedundantBlock<'a>> {
        let mut rest = self.data;
        self.headers.chunks_exact(REDUNDANT_LEN).map(move |header| {
            let (data, after) = rest.split_at(block_len(header));
            rest = after;
            let timestamp_offset = (be32(header, 0) >> 10) as u16 & 0x3FFF;
            RedundantBlock { payload_type: header[0] & !MORE, timestamp_offset, data }
        })
    }
}

/// Returns the block length, the low 10 bits of the header of a redundant block.
fn block_len(header: &[u8]) -> usize {
    be32(header, 0) as usize & 0x3FF
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn single_block_is_written_and_read() {
        let mut out = [0xEE, 1, 2];
        assert_eq!(write(96, &mut out), LEN);
        let red = Red::parse(&out).unwrap();
        assert_eq!((out[0], red.payload_type(), red.primary(), red.redundant().count()), (0x60, 96, &[1, 2][..], 0));
        assert!(Red::parse(&[96]).unwrap().primary().is_empty());
        assert_eq!(Red::parse(&[]), Err(WireError::RedTruncated));
    }

    /// The layout of RFC 2198, section 4: a redundant block of 2 bytes, 160 units older, then the primary block.
    #[test]
    fn redundant_block_is_read_before_the_primary() {
        // F=1 PT=7 | offset 160 = 0b00000010100000 | length 2 = 0b0000000010; F=0 PT=5.
        let bytes = [0x87, 0x02, 0x80, 0x02, 0x05, 10, 11, 20];
        let red = Red::parse(&bytes).unwrap();
        let old = RedundantBlock { payload_type: 7, timestamp_offset: 160, data: &[10, 11] };
        assert_eq!(red.redundant().collect::<Vec<_>>(), [old]);
        assert_eq!((red.payload_type(), red.primary()), (5, &[20][..]));
        for cut in 0..7 {
            assert_eq!(Red::parse(&bytes[..cut]), Err(WireError::RedTruncated), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(red) = Red::parse(&bytes) {
                let older: usize = red.redundant().map(|b| b.data.len()).sum();
                let headers = REDUNDANT_LEN * red.redundant().count() + LEN;
                prop_assert_eq!(headers + older + red.primary().len(), bytes.len());
                prop_assert!(red.payload_type() < 128);
            }
        }
    }
}
