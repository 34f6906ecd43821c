// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sender and receiver reports and their blocks (RFC 3550, sections 6.4.1 and 6.4.2).

use crate::bytes::{be32, put, records};
use crate::compound_writer::{CompoundWriter, RECEIVER_REPORT, SENDER_REPORT};
use crate::{WireError, WriteError};

/// The reception statistics of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The SSRC of the source.
    pub ssrc: u32,
    /// The fraction of the packets expected since the last report that were lost, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start. Negative if there are more duplicates than losses. The writer saturates it to 24 bits.
    pub cumulative_lost: i32,
    /// The highest sequence number received: 16 bits of cycles, 16 bits of sequence number.
    pub highest_sequence: u32,
    /// Interarrival jitter in units of the RTP clock.
    pub jitter: u32,
    /// The middle 32 bits of the NTP timestamp of the last sender report received; 0 if there was none.
    pub last_sr: u32,
    /// The time from the arrival of that sender report to this report, in 1/65536 s; 0 if there was none.
    pub delay_since_last_sr: u32,
}

records! {
    /// An iterator over report blocks.
    ReportBlocks, ReportBlock, 24, |b| ReportBlock {
        ssrc: be32(b, 0),
        fraction_lost: b[4],
        cumulative_lost: (be32(b, 4) << 8) as i32 >> 8, // sign extension of the low 24 bits
        highest_sequence: be32(b, 8),
        jitter: be32(b, 12),
        last_sr: be32(b, 16),
        delay_since_last_sr: be32(b, 20),
    }
}

const BLOCK_LEN: usize = 24;
const SENDER_INFO_LEN: usize = 20;
const MAX_BLOCKS: usize = 31;

/// Reads the blocks. Profile-specific extensions after them are ignored.
pub(crate) fn read(count: u8, rest: &[u8]) -> Result<ReportBlocks<'_>, WireError> {
    rest.get(..BLOCK_LEN * usize::from(count)).map(ReportBlocks).ok_or(WireError::ReportTruncated)
}

impl CompoundWriter<'_> {
    /// Writes a sender report with at most 31 blocks. `ntp` is in 32.32 fixed-point seconds; `packets` and `octets` are totals.
    pub fn sender_report(
        &mut self,
        ssrc: u32,
        ntp: u64,
        rtp_timestamp: u32,
        packets: u32,
        octets: u32,
        blocks: &[ReportBlock],
    ) -> Result<(), WriteError> {
        let body = self.report(SENDER_REPORT, ssrc, SENDER_INFO_LEN, blocks)?;
        put(body, 4, ntp.to_be_bytes());
        put(body, 12, rtp_timestamp.to_be_bytes());
        put(body, 16, packets.to_be_bytes());
        put(body, 20, octets.to_be_bytes());
        Ok(())
    }

    /// Writes a receiver report with at most 31 blocks.
    pub fn receiver_report(&mut self, ssrc: u32, blocks: &[ReportBlock]) -> Result<(), WriteError> {
        self.report(RECEIVER_REPORT, ssrc, 0, blocks).map(|_| ())
    }

    /// Writes the SSRC and the blocks, with `gap` bytes between them for the caller to fill.
    fn report(
        &mut self,
        packet_type: u8,
        ssrc: u32,
        gap: usize,
        blocks: &[ReportBlock],
    ) -> Result<&mut [u8], WriteError> {
        if blocks.len() > MAX_BLOCKS {
            return Err(WriteError::TooMany);
        }
        let body = self.packet(packet_type, blocks.len() as u8, 4 + gap + BLOCK_LEN * blocks.len())?;
        put(body, 0, ssrc.to_be_bytes());
        for (out, block) in body[4 + gap..].chunks_exact_mut(BLOCK_LEN).zip(blocks) {
            let lost = block.cumulative_lost.clamp(-0x80_0000, 0x7F_FFFF) as u32 & 0xFF_FFFF;
            put(out, 0, block.ssrc.to_be_bytes());
            put(out, 4, (u32::from(block.fraction_lost) << 24 | lost).to_be_bytes());
            put(out, 8, block.highest_sequence.to_be_bytes());
            put(out, 12, block.jitter.to_be_bytes());
            put(out, 16, block.last_sr.to_be_bytes());
            put(out, 20, block.delay_since_last_sr.to_be_bytes());
        }
        Ok(body)
    }
}
