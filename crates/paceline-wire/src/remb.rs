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

impl CompoundWriter<'_> {
    /// Writes an upper limit for the total rate of at most 255 streams.
    pub fn remb(&mut self, sender_ssrc: u32, rate: Rate, ssrcs: &[u32]) -> Result<(), WriteError> {
        let count = u8::try_from(ssrcs.len()).map_err(|_| WriteError::TooMany)?;
        let bps = rate.as_bps();
        let exponent = (u64::BITS - bps.leading_zeros()).saturating_sub(18);
        let mantissa = (bps >> exponent) as u32;
        let fci = self.feedback(PAYLOAD_FEEDBACK, FORMAT, (sender_ssrc, 0), 8 + 4 * ssrcs.len())?;
        put(fci, 0, IDENTIFIER);
        put(fci, 4, (u32::from(count) << 24 | exponent << 18 | mantissa).to_be_bytes());
        for (out, ssrc) in fci[8..].chunks_exact_mut(4).zip(ssrcs) {
            put(out, 0, ssrc.to_be_bytes());
        }
        Ok(())
    }
}
