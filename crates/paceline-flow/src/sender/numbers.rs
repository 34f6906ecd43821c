//! Which packet of the flow had a sequence number of an SSRC: what joins reports by stream (RFC 8888) with the history.

use std::collections::VecDeque;

/// How many packets of an SSRC are remembered: half of the numbers, so that a number means one packet.
const REMEMBERED: usize = 1 << 15;

/// The last packets of one SSRC.
#[derive(Debug)]
pub(super) struct Numbers {
    pub ssrc: u32,
    /// The number after that of the last packet.
    next: u16,
    /// Number within the flow of each, oldest first.
    sequences: VecDeque<u64>,
}

impl Numbers {
    pub fn new(ssrc: u32) -> Self {
        Self { ssrc, next: 0, sequences: VecDeque::new() }
    }

    /// The packet with this number left, the next of its SSRC.
    pub fn handle_sent(&mut self, number: u16, sequence: u64) {
        debug_assert!(self.sequences.is_empty() || number == self.next, "an SSRC's packets leave in order");
        if self.sequences.len() == REMEMBERED {
            self.sequences.pop_front();
        }
        self.sequences.push_back(sequence);
        self.next = number.wrapping_add(1);
    }

    /// The packet of the flow that had this number, if one of the last did.
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
    fn a_number_means_the_last_packet_that_had_it() {
        let mut numbers = Numbers::new(1);
        assert_eq!(numbers.find(0), None);
        for n in 0..100_000u64 {
            numbers.handle_sent((60_000 + n) as u16, 3 * n);
        }
        let find = |n: u64| numbers.find((60_000 + n) as u16);
        assert_eq!(
            [99_999, 99_998, 70_000, 67_232].map(find),
            [Some(299_997), Some(299_994), Some(210_000), Some(201_696)]
        );
        assert_eq!([67_231, 100_000, 100_001].map(find), [None; 3], "forgotten; not yet sent");
    }

    #[test]
    fn before_the_first_there_is_none() {
        let mut numbers = Numbers::new(1);
        numbers.handle_sent(5, 0);
        assert_eq!([4, 5, 6].map(|n| numbers.find(n)), [None, Some(0), None]);
    }
}
