//! Redundant coding (RFC 2198, section 3): one payload that carries several, each behind its payload type.
//!
//! Video uses it as an envelope: one block, which is a media packet's payload or a FEC packet's. What is written here
//! has that form; what is read may carry redundant blocks before the primary one, as audio does.

use crate::WireError;
use crate::bytes::be32;

/// Bytes that the envelope adds to a payload that is alone in it.
pub const LEN: usize = 1;

const MORE: u8 = 0x80; // F: another header follows
const REDUNDANT_LEN: usize = 4;

/// Writes the header of the only block at the start of the payload; returns [`LEN`].
///
/// # Panics
/// When `out` is empty.
#[inline]
pub fn write(payload_type: u8, out: &mut [u8]) -> usize {
    out[0] = payload_type & !MORE;
    LEN
}

/// A payload of several, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red<'a> {
    headers: &'a [u8],
    data: &'a [u8],
    primary_type: u8,
    primary_at: usize,
}

/// A block before the primary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundantBlock<'a> {
    /// What it carries.
    pub payload_type: u8,
    /// How far its media time lies before that of the packet, in units of the RTP clock.
    pub timestamp_offset: u16,
    /// Its payload.
    pub data: &'a [u8],
}

impl<'a> Red<'a> {
    /// Reads a payload. The primary block has no length of its own: it is what the others leave.
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

    /// What the primary block carries.
    pub fn payload_type(&self) -> u8 {
        self.primary_type
    }

    /// The payload of the primary block.
    pub fn primary(&self) -> &'a [u8] {
        &self.data[self.primary_at..]
    }

    /// The blocks before it, in order.
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

/// The low 10 bits of a redundant block's header.
fn block_len(header: &[u8]) -> usize {
    be32(header, 0) as usize & 0x3FF
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_envelope_with_one_payload() {
        let mut out = [0xEE, 1, 2];
        assert_eq!(write(96, &mut out), LEN);
        let red = Red::parse(&out).unwrap();
        assert_eq!((out[0], red.payload_type(), red.primary(), red.redundant().count()), (0x60, 96, &[1, 2][..], 0));
        assert!(Red::parse(&[96]).unwrap().primary().is_empty());
        assert_eq!(Red::parse(&[]), Err(WireError::RedTruncated));
    }

    /// RFC 2198, section 4: a primary block behind one that is redundant, here of 2 bytes, 160 units older.
    #[test]
    fn a_redundant_block_before_the_primary() {
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
