// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receiver estimated maximum bitrate, REMB (draft-alvestrand-rmcat-remb-03): a rate `mantissa * 2^exponent` in bit/s with 18
//! bits of mantissa, and the SSRCs whose total it limits.
//!
//! Writing truncates the rate to 18 significant bits, an error of less than 2^-17.

use crate::bytes::{be32, put};
use crate::compound_writer::{CompoundWriter, PAYLOAD_FEEDBACK};
use crate::{WireError, WriteError};
use paceline_units::Rate;

pub(crate) const FORMAT: u8 = 15;
const IDENTIFIER: [u8; 4] = *b"REMB";
const MANTISSA_MAX: u64 = 0x3_FFFF;

/// Returns whether an application-layer feedback message is a REMB.
pub(crate) fn is_remb(fci: &[u8]) -> bool {
    fci.starts_with(&IDENTIFIER)
}

/// Reads the rate and the bytes of the SSRCs.
pub(crate) fn read(fci: &[u8]) -> Result<(Rate, &[u8]), WireError> {
    let (fixed, ssrcs) = fci.split_first_chunk::<8>().ok_or(WireError::RembLength)?;
    if ssrcs.len() != 4 * usize::from(fixed[4]) {
        return Err(WireError::RembLength);
    }
    let (exponent, mantissa) = (fixed[5] >> 2, u64::from(be32(fixed, 4)) & MANTISSA_MAX);
    let bps = mantissa << exponent;
    if bps >> exponent != mantissa {
        return Err(WireError::RembOverflow);
    }
    Ok((Rate::from_bps(bps), ssrcs))
}

/// Returns exponent and mantissa, 24 bits.
fn encoded(rate: Rate) -> u32 {
    let bps = rate.as_bps();
    let exponent = (u64::BITS - bps.leading_zeros()).saturating_sub(18);
    exponent << 18 | (bps >> exponent) as u32
}

/// Lowers the rate of each REMB of a compound that is above `cap` to it. Other bytes stay as they are, also those of a damaged
/// compound and of packets with padding.
pub fn lower_rembs(mut compound: &mut [u8], cap: Rate) {
    while let [first, kind, high, low, ..] = *compound {
        let size = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
        let Some((packet, rest)) = compound.split_at_mut_checked(size) else { return };
        // After the header and two SSRCs.
        if let Some(fci) = packet.get_mut(12..).filter(|_| kind == PAYLOAD_FEEDBACK && first & 0x1F == FORMAT)
            && is_remb(fci)
            && read(fci).is_ok_and(|(rate, _)| rate > cap)
        {
            put(fci, 4, (u32::from(fci[4]) << 24 | encoded(cap)).to_be_bytes());
        }
        compound = rest;
    }
}

impl CompoundWriter<'_> {
    /// Writes an upper limit for the total rate of at most 255 streams.
    pub fn remb(&mut self, sender_ssrc: u32, rate: Rate, ssrcs: &[u32]) -> Result<(), WriteError> {
        let count = u8::try_from(ssrcs.len()).map_err(|_| WriteError::TooMany)?;
        let fci = self.feedback(PAYLOAD_FEEDBACK, FORMAT, (sender_ssrc, 0), 8 + 4 * ssrcs.len())?;
        put(fci, 0, IDENTIFIER);
        put(fci, 4, (u32::from(count) << 24 | encoded(rate)).to_be_bytes());
        for (out, ssrc) in fci[8..].chunks_exact_mut(4).zip(ssrcs) {
            put(out, 0, ssrc.to_be_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rtcp, parse_compound};
    use alloc::vec::Vec;

    /// The REMB that is left of one of this rate, in bit/s, between a receiver report and a second REMB of 100 kbit/s.
    fn lowered(bps: u64, cap: u64) -> Vec<u64> {
        let mut bytes = [0; 128];
        let mut writer = CompoundWriter::new(&mut bytes);
        writer.receiver_report(1, &[]).unwrap();
        writer.remb(1, Rate::from_bps(bps), &[2, 3]).unwrap();
        writer.remb(1, Rate::from_kbps(100), &[2]).unwrap();
        let len = writer.finish();
        lower_rembs(&mut bytes[..len], Rate::from_bps(cap));
        let rembs = parse_compound(&bytes[..len]).unwrap().into_iter().filter_map(|packet| match packet {
            Rtcp::Remb { rate, .. } => Some(rate.as_bps()),
            _ => None,
        });
        rembs.collect()
    }

    #[test]
    fn a_cap_lowers_a_higher_remb_alone() {
        assert_eq!(lowered(2_000_000, 500_000), [500_000, 100_000]);
        assert_eq!(lowered(400_000, 500_000), [400_000, 100_000]);
        // 18 bits of mantissa: 1,000,001 = 125,000 · 8 + 1.
        assert_eq!(lowered(3_000_000, 1_000_001), [1_000_000, 100_000]);
    }

    #[test]
    fn other_bytes_stay_as_they_are() {
        let cut = vec![0x8F, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, b'R', b'E', b'M', b'B'];
        for mut bytes in
            [vec![], vec![0x8F, 206], vec![0x8F, 206, 0xFF, 0xFF, 1, 2, 3, 4], vec![0x8F, 206, 0, 0, 9], cut]
        {
            let before = bytes.clone();
            lower_rembs(&mut bytes, Rate::from_kbps(1));
            assert_eq!(bytes, before);
        }
    }
}
