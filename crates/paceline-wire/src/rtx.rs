//! Retransmission payloads (RFC 4588, section 4): the original sequence number, then the original payload.

use crate::WireError;

/// Bytes that the original sequence number adds to a payload.
pub const LEN: usize = 2;

/// Writes the original sequence number at the start of the payload; returns [`LEN`].
///
/// # Panics
/// When `out` is shorter than [`LEN`].
#[inline]
pub fn write(original_sequence: u16, out: &mut [u8]) -> usize {
    out[..LEN].copy_from_slice(&original_sequence.to_be_bytes());
    LEN
}

/// The original sequence number at the start of an RTX payload; the original payload follows at [`LEN`].
#[inline]
pub fn read(payload: &[u8]) -> Result<u16, WireError> {
    payload.first_chunk().map(|&b| u16::from_be_bytes(b)).ok_or(WireError::RtxTruncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let mut out = [0; 4];
        assert_eq!(write(0x1234, &mut out), 2);
        assert_eq!(out, [0x12, 0x34, 0, 0]);
        assert_eq!(read(&out), Ok(0x1234));
        assert_eq!(read(&out[..1]), Err(WireError::RtxTruncated));
    }
}
