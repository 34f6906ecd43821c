// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps RTP sequence numbers of one SSRC to packets of the flow. RFC 8888 reports name packets by SSRC, the history
//! numbers them over the whole flow.

use alloc::collections::VecDeque;

/// Packets remembered per SSRC: half of the number space, so that a number is unambiguous.
const CAPACITY: usize = 1 << 15;

/// The packets of one SSRC.
#[derive(Clone, Debug)]
pub(super) struct SequenceMap {
    pub ssrc: u32,
    /// The sequence number after that of the last packet.
    next: u16,
    /// The flow-wide number of each packet, oldest first.
    sequences: VecDeque<u64>,
}

impl SequenceMap {
    /// Creates a map without packets.
    pub fn new(ssrc: u32) -> Self {
        Self { ssrc, next: 0, sequences: VecDeque::new() }
    }

    /// Records the next packet of the SSRC. Its number must follow that of the packet before; if it does not, the packets
    /// before are forgotten.
    pub fn handle_sent(&mut self, number: u16, sequence: u64) {
        if number != self.next {
            self.sequences.clear();
        }
        if self.sequences.len() == CAPACITY {
            self.sequences.pop_front();
        }
        self.sequences.push_back(sequence);
        self.next = number.wrapping_add(1);
    }

    /// Returns the flow-wide number of the most recent packet with this sequence number, if it is remembered.
    pub fn find(&self, number: u16) -> Option<u64> {
        let back = self.next.wrapping_sub(number) as usize;
        let index = self.sequences.len().checked_sub(back)?;
        self.sequences.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_maps_to_the_last_packet_that_had_it() {
        let mut map = SequenceMap::new(1);
        assert_eq!(map.find(0), None);
        for n in 0..100_000u64 {
            map.handle_sent((60_000 + n) as u16, 3 * n);
        }
        let find = |n: u64| map.find((60_000 + n) as u16);
        assert_eq!(
            [99_999, 99_998, 70_000, 67_232].map(find),
            [Some(299_997), Some(299_994), Some(210_000), Some(201_696)]
        );
        assert_eq!([67_231, 100_000, 100_001].map(find), [None; 3], "forgotten; not yet sent");
    }

    #[test]
    fn a_gap_begins_the_map_again() {
        let mut map = SequenceMap::new(1);
        [(7, 0), (8, 1), (10, 2), (11, 3)].into_iter().for_each(|(number, sequence)| map.handle_sent(number, sequence));
        assert_eq!([8, 9, 10, 11, 12].map(|n| map.find(n)), [None, None, Some(2), Some(3), None]);
    }

    #[test]
    fn numbers_before_the_first_packet_are_unknown() {
        let mut map = SequenceMap::new(1);
        map.handle_sent(5, 0);
        assert_eq!([4, 5, 6].map(|n| map.find(n)), [None, Some(0), None]);
    }
}
