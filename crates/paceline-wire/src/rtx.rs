// SPDX-License-Identifier: MIT OR Apache-2.0
//! Retransmission payloads (RFC 4588, section 4): the original sequence number, then the original payload.

use crate::WireError;

/// The bytes that the original sequence number adds to a payload.
pub const LEN: usize = 2;

/// Writes the original sequence number at the start of the payload. Returns [`LEN`].
///
/// # Panics
/// If `out` is shorter than [`LEN`].
#[inline]
pub fn write(original_sequence: u16, out: &mut [u8]) -> usize {
    out[..LEN].copy_from_slice(&original_sequence.to_be_bytes());
    LEN
}

/// Returns the original sequence number at the start of an RTX payload. The original payload follows at [`LEN`].
#[inline]
pub fn read(payload: &[u8]) -> Result<u16, WireError> {
    payload.first_chunk().map(|&b| u16::from_be_bytes(b)).ok_or(WireError::RtxTruncated)
}

/// Changes the header of a retransmission to that of the original packet. The extension elements are unchanged.
///
/// # Panics
/// If `header` is shorter than the fixed header of 12 bytes.
pub fn restore_header(header: &mut [u8], payload_type: u8, original_sequence: u16, ssrc: u32) {
    header[1] = header[1] & 0x80 | payload_type & 0x7F;
    header[2..4].copy_from_slice(&original_sequence.to_be_bytes());
    header[8..12].copy_from_slice(&ssrc.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtensionIds, RtpHeader};

    #[test]
    fn original_header_is_restored() {
        let ids = ExtensionIds::default();
        let original =
            RtpHeader { marker: true, payload_type: 96, sequence: 7, ssrc: 9, timestamp: 5, ..Default::default() };
        let again = RtpHeader { payload_type: 97, sequence: 700, ssrc: 10, ..original };
        let mut out = [0; RtpHeader::MAX_LEN];
        let len = again.write(&ids, &mut out);
        assert_ne!(RtpHeader::parse(&out[..len], &ids), Ok((original, len)));
        restore_header(&mut out, 96, 7, 9);
        assert_eq!(RtpHeader::parse(&out[..len], &ids), Ok((original, len)));
    }

    #[test]
    fn original_sequence_number_is_written_and_read() {
        let mut out = [0; 4];
        assert_eq!(write(0x1234, &mut out), 2);
        assert_eq!(out, [0x12, 0x34, 0, 0]);
        assert_eq!(read(&out), Ok(0x1234));
        assert_eq!(read(&out[..1]), Err(WireError::RtxTruncated));
    }
}
