//! The packets that were reported lost and did not arrive since (`previously_reported_lost`).

use alloc::collections::VecDeque;
use paceline_units::Time;

/// The number of packets that are kept, as in the history of the flow.
const CAPACITY: usize = 32_768;

/// Numbers and send times of lost packets, in order of their numbers.
#[derive(Clone, Debug)]
pub struct LostPackets(VecDeque<(u64, Time)>);

/// The number of packets for which there is room from the start.
const FIRST_CAPACITY: usize = 64;

impl Default for LostPackets {
    fn default() -> Self {
        Self(VecDeque::with_capacity(FIRST_CAPACITY))
    }
}

impl LostPackets {
    /// Adds a packet, in place of the oldest one if there are too many. Returns whether it is new.
    pub fn insert(&mut self, sequence: u64, sent: Time) -> bool {
        let Err(mut index) = self.find(sequence) else { return false };
        if self.0.len() == CAPACITY {
            self.0.pop_front();
            index = index.saturating_sub(1);
        }
        self.0.insert(index, (sequence, sent));
        true
    }

    /// Removes a packet that arrived. Returns whether it was lost.
    pub fn remove(&mut self, sequence: u64) -> bool {
        if self.0.is_empty() {
            return false;
        }
        self.find(sequence).is_ok_and(|index| self.0.remove(index).is_some())
    }

    /// Forgets the packets that left before this time.
    pub fn forget(&mut self, oldest: Time) {
        while self.0.front().is_some_and(|(_, sent)| *sent < oldest) {
            self.0.pop_front();
        }
    }

    fn find(&self, sequence: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&sequence, |(sequence, _)| *sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_is_lost_once_until_it_arrives() {
        let mut lost = LostPackets::default();
        assert!(!lost.remove(7));
        assert_eq!([9, 7, 8, 7].map(|n| lost.insert(n, Time::ZERO)), [true, true, true, false]);
        assert_eq!([7, 7, 10, 9].map(|n| lost.remove(n)), [true, false, false, true]);
        assert!(lost.insert(7, Time::ZERO), "again");
        assert_eq!(lost.0, [(7, Time::ZERO), (8, Time::ZERO)]);
    }

    #[test]
    fn old_packets_are_forgotten() {
        let mut lost = LostPackets::default();
        lost.insert(1, Time::ZERO);
        lost.insert(2, Time::from_secs(1));
        lost.forget(Time::ZERO);
        assert_eq!(lost.0.len(), 2);
        lost.forget(Time::from_millis(1));
        assert_eq!([lost.remove(1), lost.remove(2)], [false, true]);
        for sequence in 0..CAPACITY as u64 + 5 {
            lost.insert(sequence, Time::ZERO);
        }
        assert_eq!((lost.0.len(), lost.remove(4), lost.remove(5)), (CAPACITY, false, true));
    }
}
