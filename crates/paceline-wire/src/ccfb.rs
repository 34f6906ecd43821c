//! Congestion control feedback (RFC 8888): for each SSRC a run of consecutive packets, each not received, or received
//! with its ECN field and its arrival as an offset before the report's timestamp.
//!
//! The timestamp is in units of 1/65536 s (the middle of an NTP time, modulo 18.2 hours), offsets in units of 1/1024 s,
//! which are 64 of those. An arrival is therefore known to half a millisecond, on the clock of the sender reports that
//! the same endpoint would write; [`unwrap_ticks`](crate::unwrap_ticks) puts it beside a known time.
//!
//! Section 3.1 speaks of sequence numbers "in the range begin_seq to begin_seq+num_reports inclusive", which would be
//! one more than `num_reports`, and of no packet where `num_reports` is 0. It is read as the exact count, as libwebrtc,
//! pion and `rtc-rtcp` do.
//!
//! A packet that was not received says nothing else: bits beside a zero R are ignored, as section 3.1 wants.

use crate::bytes::{be16, be32, put};
use crate::rtcp::{CompoundWriter, TRANSPORT_FEEDBACK};
use crate::{WireError, WriteError};
use paceline_units::Ecn;

/// The most packets that a block may report on: a quarter of the sequence numbers.
const METRICS_MAX: usize = 16_384;
/// SSRC, first sequence number, count.
const BLOCK_HEAD: usize = 8;
/// Units of the timestamp in a unit of an offset.
const UNITS_PER_OFFSET: u32 = 64;

const RECEIVED: u16 = 0x8000;
const OFFSET_BITS: u16 = 0x1FFF;
const OVER_RANGE: u16 = 0x1FFE;
const UNAVAILABLE: u16 = 0x1FFF;

/// A report on packets of one or more streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback<'a> {
    /// Who reports.
    pub sender_ssrc: u32,
    /// When, on the receiver's clock: 1/65536 s, modulo 2^32.
    pub timestamp: u32,
    blocks: &'a [u8],
}

/// An iterator over the blocks of a report, one for each stream.
#[derive(Clone, Copy, Debug)]
pub struct CongestionBlocks<'a>(&'a [u8]);

/// What a report says of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionBlock<'a> {
    /// The stream.
    pub ssrc: u32,
    /// RTP sequence number of the first packet.
    pub begin_sequence: u16,
    metrics: &'a [u8],
}

/// An iterator over the packets of a block: sequence number and reception; `None` is "not received".
#[derive(Clone, Copy, Debug)]
pub struct Receptions<'a> {
    metrics: &'a [u8],
    sequence: u16,
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Its ECN field.
    pub ecn: Ecn,
    /// How long before the report it came.
    pub offset: ArrivalOffset,
}

/// How long before a report's timestamp a packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOffset {
    /// In units of 1/1024 s, at most 8189 (8 s).
    Units(u16),
    /// Longer than that.
    OverRange,
    /// Not known, or after it.
    Unavailable,
}

impl ArrivalOffset {
    /// The offset of an arrival, rounded to nearest; both are on the receiver's clock in 1/65536 s.
    pub const fn between(arrival: i64, timestamp: i64) -> Self {
        let late = timestamp - arrival;
        if late < 0 {
            return Self::Unavailable;
        }
        let units = (late + UNITS_PER_OFFSET as i64 / 2) / UNITS_PER_OFFSET as i64;
        if units < OVER_RANGE as i64 { Self::Units(units as u16) } else { Self::OverRange }
    }

    /// The same in units of the timestamp, 1/65536 s; `None` if it is not known.
    pub const fn in_timestamp_units(self) -> Option<u32> {
        match self {
            Self::Units(units) => Some(units as u32 * UNITS_PER_OFFSET),
            Self::OverRange | Self::Unavailable => None,
        }
    }

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

    /// What it says of each stream.
    pub fn blocks(&self) -> CongestionBlocks<'a> {
        CongestionBlocks(self.blocks)
    }

    /// Reads what follows the common header: there is no media SSRC beside the sender's.
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

/// Takes the first block off, its fill included.
fn split_block(bytes: &[u8]) -> Result<(CongestionBlock<'_>, &[u8]), WireError> {
    let (head, rest) = bytes.split_first_chunk::<BLOCK_HEAD>().ok_or(WireError::CcfbTruncated)?;
    let count = usize::from(be16(head, 6));
    if count > METRICS_MAX {
        return Err(WireError::CcfbTooMany);
    }
    let (metrics, rest) = rest.split_at_checked(metrics_len(count)).ok_or(WireError::CcfbTruncated)?;
    Ok((CongestionBlock { ssrc: be32(head, 0), begin_sequence: be16(head, 4), metrics: &metrics[..2 * count] }, rest))
}

/// Bytes of so many packets, up to a whole word.
const fn metrics_len(count: usize) -> usize {
    (2 * count).next_multiple_of(4)
}

impl<'a> Iterator for CongestionBlocks<'a> {
    type Item = CongestionBlock<'a>;
    fn next(&mut self) -> Option<CongestionBlock<'a>> {
        // Validated before: an error here can only mean the end.
        let (block, rest) = split_block(self.0).ok()?;
        self.0 = rest;
        Some(block)
    }
}

impl<'a> CongestionBlock<'a> {
    /// Each packet, in sequence order.
    pub fn packets(&self) -> Receptions<'a> {
        Receptions { metrics: self.metrics, sequence: self.begin_sequence }
    }
}

impl Iterator for Receptions<'_> {
    type Item = (u16, Option<Reception>);
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
    /// Reports on streams at `timestamp` (1/65536 s of the receiver's clock): for each its SSRC, the sequence number of
    /// the first packet, and what became of that one and those after it.
    ///
    /// [`WriteError::TooMany`]: a block of more than 16384 packets. What does not fit a datagram is for the caller to
    /// split: [`congestion_feedback_room`](Self::congestion_feedback_room) says how many packets fit.
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
            for (out, packet) in metrics.chunks_exact_mut(2).zip(*packets) {
                put(out, 0, packet.map_or(0, metric).to_be_bytes());
            }
            rest = after;
        }
        put(rest, 0, timestamp.to_be_bytes());
        Ok(())
    }

    /// How many packets of a further stream fit a report that is to be written here and has `blocks` of so many packets
    /// already.
    pub fn congestion_feedback_room(&self, blocks: impl IntoIterator<Item = usize>) -> usize {
        let taken: usize = blocks.into_iter().map(|count| BLOCK_HEAD + metrics_len(count)).sum();
        // Common header, sender, timestamp, the block's own head; fill goes to a whole word.
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
    fn offsets_round_to_nearest_and_end_at_eight_seconds() {
        let offset = |late: i64| ArrivalOffset::between(1 << 40, (1 << 40) + late);
        for (late, units) in [(0, 0), (31, 0), (32, 1), (95, 1), (96, 2), (32_768, 512), (8189 * 64 + 31, 8189)] {
            assert_eq!(offset(late), ArrivalOffset::Units(units), "{late}");
        }
        assert_eq!(offset(8189 * 64 + 32), ArrivalOffset::OverRange);
        assert_eq!(offset(1 << 50), ArrivalOffset::OverRange);
        assert_eq!(offset(-1), ArrivalOffset::Unavailable, "after the report");
        assert_eq!(ArrivalOffset::Units(512).in_timestamp_units(), Some(32_768));
        // No caller can make a known offset of the two values that stand for unknown ones.
        assert_eq!([8189, 8190, 9000].map(|n| ArrivalOffset::Units(n).bits()), [8189, 8190, 8190]);
    }
}
