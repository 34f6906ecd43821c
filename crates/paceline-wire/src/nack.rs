// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generic NACK (RFC 4585, section 6.2.1). Each 32-bit entry has a lost packet and a mask of the 16 packets after it.

use crate::bytes::{be16, put};
use crate::compound_writer::{CompoundWriter, TRANSPORT_FEEDBACK};
use crate::{WireError, WriteError};

pub(crate) const FORMAT: u8 = 1;

/// An iterator over the sequence numbers that a NACK requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostPackets<'a> {
    entries: &'a [u8],
    packet_id: u16,
    /// Bit i: `packet_id + i` has not been returned yet.
    pending: u32,
}

pub(crate) fn read(fci: &[u8]) -> Result<LostPackets<'_>, WireError> {
    if fci.is_empty() {
        return Err(WireError::NackEmpty);
    }
    Ok(LostPackets { entries: fci, packet_id: 0, pending: 0 })
}

impl Iterator for LostPackets<'_> {
    type Item = u16;
    fn next(&mut self) -> Option<u16> {
        if self.pending == 0 {
            let (entry, rest) = self.entries.split_first_chunk::<4>()?;
            self.entries = rest;
            self.packet_id = be16(entry, 0);
            self.pending = u32::from(be16(entry, 2)) << 1 | 1;
        }
        let i = self.pending.trailing_zeros();
        self.pending &= self.pending - 1;
        Some(self.packet_id.wrapping_add(i as u16))
    }
}

/// Packs sequence numbers, in send order, into entries of packet id and mask.
fn entries(lost: &[u16]) -> impl Iterator<Item = (u16, u16)> {
    let mut rest = lost;
    core::iter::from_fn(move || {
        let (&packet_id, mut after) = rest.split_first()?;
        let mut mask = 0;
        while let Some((&next, later)) = after.split_first() {
            match next.wrapping_sub(packet_id) {
                0 => {} // a duplicate
                distance @ 1..=16 => mask |= 1 << (distance - 1),
                _ => break,
            }
            after = later;
        }
        rest = after;
        Some((packet_id, mask))
    })
}

impl CompoundWriter<'_> {
    /// Writes a request to resend packets. `lost` is not empty and in send order (ascending modulo 2^16).
    pub fn nack(&mut self, sender_ssrc: u32, media_ssrc: u32, lost: &[u16]) -> Result<(), WriteError> {
        if lost.is_empty() {
            return Err(WriteError::Empty);
        }
        let fci = self.feedback(TRANSPORT_FEEDBACK, FORMAT, (sender_ssrc, media_ssrc), 4 * entries(lost).count())?;
        for (out, (packet_id, mask)) in fci.chunks_exact_mut(4).zip(entries(lost)) {
            put(out, 0, packet_id.to_be_bytes());
            put(out, 2, mask.to_be_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn masks_reach_16_packets() {
        let packed: Vec<_> = entries(&[10, 11, 26, 27, 27, 65535, 14]).collect();
        // 26 is the last that the mask of 10 reaches; 14 is 15 after 65535, hence bit 14.
        assert_eq!(packed, [(10, 0x8001), (27, 0), (65535, 0x4000)]);
    }
}
