// SPDX-License-Identifier: MIT OR Apache-2.0
//! The position of a packet in the sequence of its stream: after a number of missing packets, or late.

use alloc::vec::Vec;
use paceline_units::StreamId;

/// The position of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    /// Above all earlier packets.
    Next {
        /// The number of missing packets in between.
        missing: u32,
    },
    /// Below the highest packet.
    Late,
    /// A duplicate of the highest packet.
    Duplicate,
}

/// The highest sequence number of each stream.
#[derive(Clone, Debug, Default)]
pub struct SequenceTracker {
    highest: Vec<(StreamId, u16)>,
}

impl SequenceTracker {
    /// Handles a packet with this sequence number.
    pub fn handle_arrival(&mut self, stream: StreamId, sequence: u16) -> SequencePosition {
        let Some((_, highest)) = self.highest.iter_mut().find(|(id, _)| *id == stream) else {
            self.highest.push((stream, sequence));
            return SequencePosition::Next { missing: 0 };
        };
        match sequence.wrapping_sub(*highest) as i16 {
            0 => SequencePosition::Duplicate,
            ahead if ahead > 0 => {
                *highest = sequence;
                SequencePosition::Next { missing: ahead as u32 - 1 }
            }
            _ => SequencePosition::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence number of one of the streams wraps.
    #[test]
    fn finds_gaps_per_stream() {
        use SequencePosition::{Duplicate, Late};
        let mut tracker = SequenceTracker::default();
        let mut position = |stream, sequence| tracker.handle_arrival(StreamId(stream), sequence);
        let next = |missing| SequencePosition::Next { missing };
        assert_eq!([position(0, 65_534), position(0, 65_535), position(0, 2)], [next(0), next(0), next(2)]);
        assert_eq!([position(1, 40_000), position(1, 40_001)], [next(0), next(0)]);
        assert_eq!([position(0, 0), position(0, 2), position(0, 3)], [Late, Duplicate, next(0)]);
    }
}
