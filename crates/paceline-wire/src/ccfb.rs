// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control feedback (RFC 8888). A report has a block for each SSRC, about consecutive packets. Each packet
//! is either not received, or received with its ECN field and its arrival time offset (ATO) before the report
//! timestamp.
//!
//! The timestamp is in units of 1/65536 s (the middle of an NTP timestamp, modulo 18.2 hours). Offsets are in units of
//! 1/1024 s, which is 64 times as long, so the resolution of an arrival is half a millisecond. The clock is that of
//! sender reports of the same endpoint. [`unwrap_ticks`](crate::unwrap_ticks) extends an arrival near a known time.
//!
//! `num_reports` is the exact number of packets, as in libwebrtc, pion and `rtc-rtcp`. (Section 3.1 of the RFC counts
//! up to "begin_seq+num_reports inclusive", one packet more, but none if `num_reports` is 0.)
//!
//! If the R bit is zero, the other bits of the packet are ignored (section 3.1).

use crate::bytes::{be16, be32, put};
use crate::compound_writer::{CompoundWriter, TRANSPORT_FEEDBACK};
use crate::{WireError, WriteError};
use paceline_units::Ecn;

/// The maximum number of packets in a block: a quarter of the sequence numbers.
const METRICS_MAX: usize = 16_384;
/// SSRC, first sequence number, count.
const BLOCK_HEAD: usize = 8;
/// Timestamp units in one offset unit.
const UNITS_PER_OFFSET: u32 = 64;

const RECEIVED: u16 = 0x8000;
const OFFSET_BITS: u16 = 0x1FFF;
const OVER_RANGE: u16 = 0x1FFE;
const UNAVAILABLE: u16 = 0x1FFF;

/// A report on packets of one or more streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback<'a> {
    /// The SSRC of the reporting receiver.
    pub sender_ssrc: u32,
    /// The time of the report on the receiver's clock, in 1/65536 s, modulo 2^32.
    pub timestamp: u32,
    blocks: &'a [u8],
}

/// An iterator over the blocks of a report, one for each stream.
#[derive(Clone, Copy, Debug)]
pub struct CongestionBlocks<'a>(&'a [u8]);

/// The part of a report about one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionBlock<'a> {
    /// The SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number of the first packet.
    pub begin_sequence: u16,
    metrics: &'a [u8],
}

/// An iterator over the packets of a block: the sequence number, and the reception or `None` if not received.
#[derive(Clone, Copy, Debug)]
pub struct Receptions<'a> {
    metrics: &'a [u8],
    sequence: u16,
}

/// The reception of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Its ECN field.
    pub ecn: Ecn,
    /// The time from its arrival to the report.
    pub offset: ArrivalOffset,
}

/// The time from the arrival of a packet to the timestamp of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOffset {
    /// Units of 1/1024 s, at most 8189 (8 s).
    Units(u16),
    /// Longer than that.
    OverRange,
    /// Unknown, or the packet arrived after the timestamp.
    Unavailable,
}

impl ArrivalOffset {
    /// Returns the offset of an arrival, rounded to nearest. Both times are on the receiver's clock, in 1/65536 s.
    pub const fn between(arrival: i64, timestamp: i64) -> Self {
        let late = timestamp - arrival;
        if late < 0 {
            return Self::Unavailable;
        }
        let units = (late + UNITS_PER_OFFSET as i64 / 2) / UNITS_PER_OFFSET as i64;
        if units < OVER_RANGE as i64 { Self::Units(units as u16) } else { Self::OverRange }
    }

    /// Returns the offset in timestamp units (1/65536 s); `None` if it is not a number.
    pub const fn in_timestamp_units(self) -> Option<u32> {
        match self {
            Self::Units(units) => Some(units as u32 * UNITS_PER_OFFSET),
            Self::OverRange | Self::Unavailable => None,
        }
    }

    #[inline]
    const fn read(bits: u16) -> Self {
        match bits & OFFSET_BITS {
            UNAVAILABLE => Self::Unavailable,
            OVER_RANGE => Self::OverRange,
            units => Self::Units(units),
        }
    }

    fn bits(self) -> u16 {
        match self {
            Self::Units(units) if units < OVER_RANGE => units,
            Self::Units(_) | Self::OverRange => OVER_RANGE,
            Self::Unavailable => UNAVAILABLE,
        }
    }
}

impl<'a> CongestionFeedback<'a> {
    pub(crate) const FORMAT: u8 = 11;

    /// Returns the blocks, one for each stream.
    pub fn blocks(&self) -> CongestionBlocks<'a> {
        CongestionBlocks(self.blocks)
    }

    /// Reads the body. It has the SSRC of the sender, but no media SSRC.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, WireError> {
        let (sender, rest) = body.split_first_chunk::<4>().ok_or(WireError::CcfbTruncated)?;
        let (blocks, timestamp) = rest.split_last_chunk::<4>().ok_or(WireError::CcfbTruncated)?;
        let mut left = blocks;
        while !left.is_empty() {
            (_, left) = split_block(left)?;
        }
        let (sender_ssrc, timestamp) = (u32::from_be_bytes(*sender), u32::from_be_bytes(*timestamp));
        Ok(Self { sender_ssrc, timestamp, blocks })
    }
}

/// Splits off the first block with its padding.
fn split_block(bytes: &[u8]) -> Result<(CongestionBlock<'_>, &[u8]), WireError> {
    let (head, rest) = bytes.split_first_chunk::<BLOCK_HEAD>().ok_or(WireError::CcfbTruncated)?;
    let count = usize::from(be16(head, 6));
    if count > METRICS_MAX {
        return Err(WireError::CcfbTooMany);
    }
    let (metrics, rest) = rest.split_at_checked(metrics_len(count)).ok_or(WireError::CcfbTruncated)?;
    Ok((CongestionBlock { ssrc: be32(head, 0), begin_sequence: be16(head, 4), metrics: &metrics[..2 * count] }, rest))
}

/// Returns the bytes for `count` packets, padded to 32 bits.
const fn metrics_len(count: usize) -> usize {
    (2 * count).next_multiple_of(4)
}

impl<'a> Iterator for CongestionBlocks<'a> {
    type Item = CongestionBlock<'a>;
    fn next(&mut self) -> Option<CongestionBlock<'a>> {
        // Validated before: an error is the end.
        let (block, rest) = split_block(self.0).ok()?;
        self.0 = rest;
        Some(block)
    }
}

impl<'a> CongestionBlock<'a> {
    /// Returns the packets in sequence order.
    pub fn packets(&self) -> Receptions<'a> {
        Receptions { metrics: self.metrics, sequence: self.begin_sequence }
    }
}

impl Iterator for Receptions<'_> {
    type Item = (u16, Option<Reception>);
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (metric, rest) = self.metrics.split_first_chunk()?;
        self.metrics = rest;
        let (metric, sequence) = (u16::from_be_bytes(*metric), self.sequence);
        self.sequence = sequence.wrapping_add(1);
        let reception =
            Reception { ecn: Ecn::from_bits((metric >> 13) as u8), offset: ArrivalOffset::read(metric & OFFSET_BITS) };
        Some((sequence, (metric & RECEIVED != 0).then_some(reception)))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.metrics.len() / 2, Some(self.metrics.len() / 2))
    }
}
impl ExactSizeIterator for Receptions<'_> {}

impl CompoundWriter<'_> {
    /// Writes a report at `timestamp` (1/65536 s of the receiver's clock). A block has the SSRC of a stream, the
    /// sequence number of the first packet, and the receptions of consecutive packets.
    ///
    /// Returns [`WriteError::TooMany`] if a block has more than 16384 packets. The caller splits a report that does not
    /// fit its datagram; [`congestion_feedback_room`](Self::congestion_feedback_room) returns how many packets fit.
    pub fn congestion_feedback(
        &mut self,
        sender_ssrc: u32,
        timestamp: u32,
        blocks: &[(u32, u16, &[Option<Reception>])],
    ) -> Result<(), WriteError> {
        if blocks.iter().any(|(_, _, packets)| packets.len() > METRICS_MAX) {
            return Err(WriteError::TooMany);
        }
        let len: usize = blocks.iter().map(|(_, _, packets)| BLOCK_HEAD + metrics_len(packets.len())).sum();
        let mut rest = self.packet(TRANSPORT_FEEDBACK, CongestionFeedback::FORMAT, 4 + len + 4)?;
        put(rest, 0, sender_ssrc.to_be_bytes());
        rest = &mut rest[4..];
        for (ssrc, begin_sequence, packets) in blocks {
            put(rest, 0, ssrc.to_be_bytes());
            put(rest, 4, begin_sequence.to_be_bytes());
            put(rest, 6, (packets.len() as u16).to_be_bytes());
            let (metrics, after) = rest[BLOCK_HEAD..].split_at_mut(metrics_len(packets.len()));
            metrics.fill(0);
            for (out, packet) in metrics.as_chunks_mut().0.iter_mut().zip(*packets) {
                *out = packet.map_or(0, metric).to_be_bytes();
            }
            rest = after;
        }
        put(rest, 0, timestamp.to_be_bytes());
        Ok(())
    }

    /// Returns the number of packets of one more stream that fit a report with `blocks` of these numbers of packets.
    pub fn congestion_feedback_room(&self, blocks: impl IntoIterator<Item = usize>) -> usize {
        let taken: usize = blocks.into_iter().map(|count| BLOCK_HEAD + metrics_len(count)).sum();
        // Common header, sender, timestamp and the head of the new block.
        ((self.free() & !3).saturating_sub(taken + 4 + 4 + 4 + BLOCK_HEAD) / 2).min(METRICS_MAX)
    }
}

fn metric(reception: Reception) -> u16 {
    RECEIVED | (reception.ecn as u16) << 13 | reception.offset.bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_rounded_and_end_at_eight_seconds() {
        let offset = |late: i64| ArrivalOffset::between(1 << 40, (1 << 40) + late);
        for (late, units) in [(0, 0), (31, 0), (32, 1), (95, 1), (96, 2), (32_768, 512), (8189 * 64 + 31, 8189)] {
            assert_eq!(offset(late), ArrivalOffset::Units(units), "{late}");
        }
        assert_eq!(offset(8189 * 64 + 32), ArrivalOffset::OverRange);
        assert_eq!(offset(1 << 50), ArrivalOffset::OverRange);
        assert_eq!(offset(-1), ArrivalOffset::Unavailable, "after the report");
        assert_eq!(ArrivalOffset::Units(512).in_timestamp_units(), Some(32_768));
        // Too many units are written as over range, not as unavailable.
        assert_eq!([8189, 8190, 9000].map(|n| ArrivalOffset::Units(n).bits()), [8189, 8190, 8190]);
    }
}
