// SPDX-License-Identifier: MIT OR Apache-2.0
//! The VP8 payload descriptor (RFC 7741, section 4.2), and the key frame bit of the payload header.
//!
//! The writer uses one form: extended, with a 15-bit picture id only. In the first packet of a frame it adds the first octet
//! of the VP8 payload header (section 4.3), whose bit 0 is zero in a key frame. The reader accepts every form of the RFC.

use crate::WireError;
use crate::bytes::be16;

/// The information about a VP8 frame in one of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vp8Descriptor {
    /// Whether the packet begins a frame (S = 1 and partition 0).
    pub start: bool,
    /// The picture id, 15 bits; wraps. It is 0 if the descriptor has none.
    pub picture_id: u16,
    /// Whether the frame is a key frame. It is false unless `start` is true.
    pub key: bool,
}

const X: u8 = 0x80; // extended
const S: u8 = 0x10; // start of partition
const PARTITION: u8 = 0x07;
const I: u8 = 0x80; // picture id present
const L: u8 = 0x40; // TL0PICIDX present
const TK: u8 = 0x30; // TID or KEYIDX present: one octet for both
const M: u8 = 0x80; // picture id has 15 bits
const SHOW_FRAME: u8 = 0x10; // H of the payload header
const INTER_FRAME: u8 = 0x01; // P of the payload header: 0 means key frame

impl Vp8Descriptor {
    /// The maximum length that [`write`](Self::write) returns, in bytes: 5 at the start of a frame, 4 otherwise.
    pub const MAX_LEN: usize = 5;

    /// Writes the descriptor and returns its length in bytes.
    ///
    /// # Panics
    /// If `out` is shorter than [`MAX_LEN`](Self::MAX_LEN).
    #[inline]
    pub fn write(&self, out: &mut [u8]) -> usize {
        let id = (self.picture_id & 0x7FFF).to_be_bytes();
        let frame = SHOW_FRAME | if self.key { 0 } else { INTER_FRAME };
        let s = if self.start { S } else { 0 };
        out[..Self::MAX_LEN].copy_from_slice(&[X | s, I, M | id[0], id[1], frame]);
        if self.start { 5 } else { 4 }
    }

    /// Parses the descriptor at the start of a payload.
    #[inline(always)]
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let octet = |at: usize| bytes.get(at).copied().ok_or(WireError::Vp8Truncated);
        let first = octet(0)?;
        let mut at = 1;
        let mut picture_id = 0;
        if first & X != 0 {
            let fields = octet(1)?;
            at = 2;
            if fields & I != 0 {
                if octet(at)? & M != 0 {
                    octet(at + 1)?;
                    picture_id = be16(bytes, at) & 0x7FFF;
                    at += 2;
                } else {
                    picture_id = u16::from(octet(at)?);
                    at += 1;
                }
            }
            at += usize::from(fields & L != 0) + usize::from(fields & TK != 0);
            octet(at - 1)?;
        }
        let start = first & S != 0 && first & PARTITION == 0;
        let key = start && octet(at)? & INTER_FRAME == 0;
        Ok(Self { start, picture_id, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_descriptor_is_read() {
        let read = Vp8Descriptor::parse;
        let d = |start, picture_id, key| Ok(Vp8Descriptor { start, picture_id, key });
        assert_eq!(read(&[0x10, 0x00]), d(true, 0, true), "no extension, key frame");
        assert_eq!(read(&[0x10, 0x01]), d(true, 0, false));
        assert_eq!(read(&[0x00]), d(false, 0, false));
        assert_eq!(read(&[0x11, 0x00]), d(false, 0, false), "start of partition 1 is not the start of the frame");
        assert_eq!(read(&[0x90, 0x80, 0x7F, 0x00]), d(true, 127, true), "7-bit picture id");
        assert_eq!(read(&[0x90, 0xF0, 0x81, 0x02, 9, 9, 0x01]), d(true, 0x102, false), "with TL0PICIDX and TID/KEYIDX");
        assert_eq!(read(&[0x90, 0x20, 9, 0x00]), d(true, 0, true), "TID only");
        assert_eq!(read(&[0x90, 0x10, 9, 0x00]), d(true, 0, true), "KEYIDX only");
        for cut in [&[][..], &[0x90], &[0x80, 0x80], &[0x80, 0x80, 0x80], &[0x80, 0x40], &[0x10]] {
            assert_eq!(read(cut), Err(WireError::Vp8Truncated), "{cut:x?}");
        }
    }

    proptest! {
        #[test]
        fn write_then_parse_is_identity(start in any::<bool>(), picture_id in 0u16..0x8000, key in any::<bool>()) {
            let d = Vp8Descriptor { start, picture_id, key: key && start };
            let mut out = [0xFF; 5];
            let len = d.write(&mut out);
            prop_assert_eq!(len, if start { 5 } else { 4 });
            prop_assert_eq!(Vp8Descriptor::parse(&out[..len]), Ok(d));
            for cut in 0..len {
                prop_assert_eq!(Vp8Descriptor::parse(&out[..cut]), Err(WireError::Vp8Truncated));
            }
        }

        #[test]
        fn any_bytes_parse_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
            if let Ok(d) = Vp8Descriptor::parse(&bytes) {
                let mut out = [0; 5];
                let len = d.write(&mut out);
                prop_assert_eq!(Vp8Descriptor::parse(&out[..len]), Ok(d));
            }
        }
    }
}
