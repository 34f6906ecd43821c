// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests for a key frame: picture loss indication (RFC 4585, section 6.3.1) and full intra request (RFC 5104,
//! section 4.3.1). The first is sent after loss, the second for new participants.

use crate::bytes::{be32, put, records};
use crate::compound_writer::{CompoundWriter, PAYLOAD_FEEDBACK};
use crate::{WireError, WriteError};

pub(crate) const PLI_FORMAT: u8 = 1;
pub(crate) const FIR_FORMAT: u8 = 4;

records! {
    /// An iterator over the entries of a full intra request: the SSRC of a stream, and a sequence number that increases by
    /// one (modulo 256) with each new request and stays the same when a request is repeated.
    FirEntries, (u32, u8), 8, |b| (be32(b, 0), b[4])
}

pub(crate) fn read_fir(fci: &[u8]) -> Result<FirEntries<'_>, WireError> {
    if fci.is_empty() || !fci.len().is_multiple_of(8) {
        return Err(WireError::FirLength);
    }
    Ok(FirEntries(fci))
}

impl CompoundWriter<'_> {
    /// Writes a picture loss indication for `media_ssrc`.
    pub fn pli(&mut self, sender_ssrc: u32, media_ssrc: u32) -> Result<(), WriteError> {
        self.feedback(PAYLOAD_FEEDBACK, PLI_FORMAT, (sender_ssrc, media_ssrc), 0).map(|_| ())
    }

    /// Writes a full intra request. An entry is the SSRC of a stream and the sequence number of the request.
    pub fn fir(&mut self, sender_ssrc: u32, entries: &[(u32, u8)]) -> Result<(), WriteError> {
        if entries.is_empty() {
            return Err(WriteError::Empty);
        }
        let fci = self.feedback(PAYLOAD_FEEDBACK, FIR_FORMAT, (sender_ssrc, 0), 8 * entries.len())?;
        for (out, &(ssrc, number)) in fci.chunks_exact_mut(8).zip(entries) {
            put(out, 0, ssrc.to_be_bytes());
            put(out, 4, [number, 0, 0, 0]);
        }
        Ok(())
    }
}
