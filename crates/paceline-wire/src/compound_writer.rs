// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer of RTCP compounds, and the packet types. The file of each packet type adds a method to the writer.

use crate::WriteError;
use crate::bytes::put;

pub(crate) const SENDER_REPORT: u8 = 200;
pub(crate) const RECEIVER_REPORT: u8 = 201;
pub(crate) const SOURCE_DESCRIPTION: u8 = 202;
/// The P bit, next to the format in the first byte.
pub(crate) const PADDED: u8 = 0x20;
pub(crate) const GOODBYE: u8 = 203;
pub(crate) const APPLICATION: u8 = 204;
pub(crate) const TRANSPORT_FEEDBACK: u8 = 205;
pub(crate) const PAYLOAD_FEEDBACK: u8 = 206;
pub(crate) const EXTENDED_REPORT: u8 = 207;

/// Writes a compound into a buffer.
///
/// If a packet does not fit, the writer is unchanged, so that the caller can send the compound and write the packet to the
/// next one.
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> CompoundWriter<'a> {
    /// Returns a writer of an empty compound at the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// Returns the length of the compound in bytes.
    pub fn finish(self) -> usize {
        self.len
    }

    /// Returns the bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no packet has been written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes left in the buffer.
    pub(crate) fn free(&self) -> usize {
        self.out.len() - self.len
    }

    /// Writes a common header. Returns the body, whose length is a multiple of 4 and whose old content the caller overwrites.
    /// `format` may include [`PADDED`].
    pub(crate) fn packet(&mut self, packet_type: u8, format: u8, body_len: usize) -> Result<&mut [u8], WriteError> {
        debug_assert!(body_len.is_multiple_of(4) && format < 64);
        let words = u16::try_from(body_len / 4).map_err(|_| WriteError::TooMany)?;
        let packet = self.out[self.len..].get_mut(..4 + body_len).ok_or(WriteError::BufferFull)?;
        self.len += packet.len();
        let (header, body) = packet.split_at_mut(4);
        header[0] = 0x80 | format;
        header[1] = packet_type;
        put(header, 2, words.to_be_bytes());
        Ok(body)
    }

    /// Writes the header of a feedback packet and its two SSRCs. Returns the feedback control information (FCI).
    pub(crate) fn feedback(
        &mut self,
        packet_type: u8,
        format: u8,
        ssrcs: (u32, u32),
        fci_len: usize,
    ) -> Result<&mut [u8], WriteError> {
        let (head, fci) = self.packet(packet_type, format, 8 + fci_len)?.split_at_mut(8);
        put(head, 0, ssrcs.0.to_be_bytes());
        put(head, 4, ssrcs.1.to_be_bytes());
        Ok(fci)
    }
}
