//! Requests for a key frame: picture loss indication (RFC 4585, section 6.3.1) and full intra request (RFC 5104,
//! section 4.3.1). Losses call for the first; the second is for new participants.

use crate::bytes::{be32, put, records};
use crate::rtcp::{CompoundWriter, PAYLOAD_FEEDBACK, Rtcp};
use crate::{WireError, WriteError};

pub(crate) const PLI_FORMAT: u8 = 1;
pub(crate) const FIR_FORMAT: u8 = 4;

records! {
    /// An iterator over the entries of a full intra request: the stream, and a number that is one higher (modulo 256)
    /// for a new request and the same for a repeated one.
    FirEntries, (u32, u8), 8, |b| (be32(b, 0), b[4])
}

pub(crate) fn read_pli(sender_ssrc: u32, media_ssrc: u32, fci: &[u8]) -> Result<Rtcp<'_>, WireError> {
    if fci.is_empty() { Ok(Rtcp::Pli { sender_ssrc, media_ssrc }) } else { Err(WireError::PliLength) }
}

pub(crate) fn read_fir(sender_ssrc: u32, fci: &[u8]) -> Result<Rtcp<'_>, WireError> {
    if fci.is_empty() || !fci.len().is_multiple_of(8) {
        return Err(WireError::FirLength);
    }
    Ok(Rtcp::Fir { sender_ssrc, entries: FirEntries(fci) })
}

impl CompoundWriter<'_> {
    /// Says that a picture of `media_ssrc` is lost.
    pub fn pli(&mut self, sender_ssrc: u32, media_ssrc: u32) -> Result<(), WriteError> {
        self.feedback(PAYLOAD_FEEDBACK, PLI_FORMAT, (sender_ssrc, media_ssrc), 0).map(|_| ())
    }

    /// Requires a key frame of each stream; an entry is the stream and the request's number.
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
