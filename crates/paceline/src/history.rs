//! What was sent and what became of it: the one place that joins feedback with packets and counts bytes in flight.

use crate::{PacketReport, SentPacket};
use paceline_units::{DataSize, Ecn, RemoteTime, Time};
use std::collections::VecDeque;

/// Bytes in flight, in the two senses that controllers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Sent, and neither acknowledged nor lost nor abandoned.
    pub outstanding: DataSize,
    /// Sent after the highest acknowledged packet (RFC 8298, section 4.1.1).
    pub after_highest: DataSize,
}

/// The packets of one flow, oldest first, until they are settled or too many.
#[derive(Debug)]
pub struct History {
    packets: VecDeque<Entry>,
    /// Sequence of `packets[0]`.
    first: u64,
    flight: Flight,
    /// One past the highest acknowledged sequence.
    above: u64,
    /// Nothing below is still outstanding.
    told: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Time,
    size: DataSize,
    settled: Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    No,
    /// The report that told of it did not come.
    Abandoned,
    Lost,
    Arrived,
}

/// How many packets are remembered: at 10,000 packets a second, 3.2 s. Feedback later than that is unknown feedback.
const REMEMBERED: usize = 32_768;

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// An empty history; the first packet has sequence 0.
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), first: 0, flight: Flight::default(), above: 0, told: 0 }
    }

    /// The sequence of the next packet.
    pub fn next_sequence(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// A packet left. Its sequence must be [`next_sequence`](Self::next_sequence).
    pub fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        debug_assert_eq!(packet.sequence, self.next_sequence());
        if self.packets.len() == REMEMBERED {
            self.forget_oldest();
        }
        self.packets.push_back(Entry { sent: now, size: packet.size, settled: Settled::No });
        self.flight.outstanding += packet.size;
        self.flight.after_highest += packet.size;
    }

    /// The unwrapped sequence that the 16 bits of a report mean: the one nearest below the next to be sent.
    pub fn unwrap(&self, sequence: u16) -> Option<u64> {
        let next = self.next_sequence();
        let back = (next as u16).wrapping_sub(sequence);
        next.checked_sub(back as u64).filter(|s| back != 0 && *s >= self.first)
    }

    /// The receiver said this of a packet. Answers the joined report if it is news: the packet is known, and was not
    /// reported arrived before. A packet once lost may still turn out to have arrived.
    pub fn settle(&mut self, sequence: u64, arrival: Option<RemoteTime>, ecn: Ecn) -> Option<PacketReport> {
        let index = sequence.checked_sub(self.first)? as usize;
        let entry = self.packets.get_mut(index)?;
        let settled = if arrival.is_some() { Settled::Arrived } else { Settled::Lost };
        if entry.settled == Settled::Arrived || entry.settled == settled {
            return None;
        }
        if entry.settled == Settled::No {
            self.flight.outstanding -= entry.size;
        }
        entry.settled = settled;
        let (sent, size) = (entry.sent, entry.size);
        if arrival.is_some() {
            while self.above <= sequence {
                if let Some(below) = self.above.checked_sub(self.first) {
                    self.flight.after_highest -= self.packets[below as usize].size;
                }
                self.above += 1;
            }
        }
        Some(PacketReport { sequence, sent, size, arrival, ecn })
    }

    /// No further report will tell of packets below this, but for late ones: reports follow each other without a hole,
    /// and this one began here. What is open below was in a report that got lost; it is not outstanding any more.
    pub fn abandon_below(&mut self, sequence: u64) {
        self.told = self.told.max(self.first);
        while self.told < sequence.min(self.next_sequence()) {
            let entry = &mut self.packets[(self.told - self.first) as usize];
            if entry.settled == Settled::No {
                entry.settled = Settled::Abandoned;
                self.flight.outstanding -= entry.size;
            }
            self.told += 1;
        }
    }

    /// The packet arrived, but its report cannot say when: no news for a controller, and it is not outstanding any more.
    pub fn abandon(&mut self, sequence: u64) {
        let index = sequence.checked_sub(self.first).map(|index| index as usize);
        if let Some(entry) = index.and_then(|index| self.packets.get_mut(index))
            && entry.settled == Settled::No
        {
            entry.settled = Settled::Abandoned;
            self.flight.outstanding -= entry.size;
        }
    }

    /// Bytes in flight.
    pub fn flight(&self) -> Flight {
        self.flight
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.packets.pop_front() else { return };
        if oldest.settled == Settled::No {
            self.flight.outstanding -= oldest.size;
        }
        if self.first >= self.above {
            self.flight.after_highest -= oldest.size;
        }
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;
    use paceline_units::StreamId;

    fn send(history: &mut History, n: usize) {
        for _ in 0..n {
            let sequence = history.next_sequence();
            let size = DataSize::from_bytes(100);
            let packet = SentPacket { sequence, size, stream: StreamId(0), kind: PacketKind::Media };
            history.handle_sent(Time::from_millis(sequence as i64), &packet);
        }
    }
    fn flight(history: &History) -> (u64, u64) {
        (history.flight().outstanding.as_bytes(), history.flight().after_highest.as_bytes())
    }
    const AT: Option<RemoteTime> = Some(RemoteTime::ZERO);

    #[test]
    fn both_counts_of_bytes_in_flight() {
        let mut history = History::new();
        send(&mut history, 5);
        assert_eq!(flight(&history), (500, 500));
        assert_eq!(history.settle(2, AT, Ecn::NotEct).unwrap().sent, Time::from_millis(2));
        assert_eq!(flight(&history), (400, 200), "0, 1, 3, 4 unsettled; 3, 4 above the highest");
        assert!(history.settle(0, None, Ecn::NotEct).is_some());
        assert_eq!(flight(&history), (300, 200));
        assert!(history.settle(0, AT, Ecn::NotEct).is_some(), "late, not lost");
        assert_eq!(flight(&history), (300, 200));
    }

    #[test]
    fn old_news_and_unknown_packets_are_nothing() {
        let mut history = History::new();
        send(&mut history, 3);
        assert!(history.settle(1, AT, Ecn::NotEct).is_some());
        assert!(history.settle(1, AT, Ecn::NotEct).is_none(), "reported twice");
        assert!(history.settle(1, None, Ecn::NotEct).is_none(), "arrived stays arrived");
        assert!(history.settle(3, AT, Ecn::NotEct).is_none(), "never sent");
        assert_eq!((history.unwrap(3), history.unwrap(2), history.unwrap(0)), (None, Some(2), Some(0)));
        assert_eq!(history.unwrap(60_000), None, "before the first");
    }

    #[test]
    fn a_lost_report_leaves_nothing_outstanding() {
        let mut history = History::new();
        send(&mut history, 10);
        assert!(history.settle(1, None, Ecn::NotEct).is_some());
        history.abandon_below(4);
        assert_eq!(flight(&history), (600, 1000));
        assert!(history.settle(4, AT, Ecn::NotEct).is_some());
        history.abandon_below(2);
        assert_eq!(flight(&history), (500, 500));
        assert!(history.settle(3, AT, Ecn::NotEct).is_some(), "the report was only late");
        assert!(history.settle(2, None, Ecn::NotEct).is_some());
        assert_eq!(flight(&history), (500, 500));
        history.abandon_below(100);
        assert_eq!(flight(&history), (0, 500));
        send(&mut history, 1);
        assert_eq!(flight(&history), (100, 600));
    }

    #[test]
    fn an_arrival_without_a_time_is_no_news() {
        let mut history = History::new();
        send(&mut history, 3);
        for _ in 0..2 {
            history.abandon(1);
            history.abandon(3);
            assert_eq!(flight(&history), (200, 300));
        }
        assert!(history.settle(1, AT, Ecn::NotEct).is_some(), "told after all");
        history.abandon(1);
        assert_eq!(flight(&history), (200, 100));
    }

    #[test]
    fn it_wraps_and_forgets() {
        let mut history = History::new();
        send(&mut history, 70_000);
        assert_eq!(history.unwrap(4_463), Some(69_999));
        assert_eq!(history.unwrap(65_535), Some(65_535));
        assert_eq!(flight(&history), (3_276_800, 3_276_800), "32,768 packets of 100 bytes");
        assert!(history.settle(100, AT, Ecn::NotEct).is_none(), "forgotten");
        assert!(history.settle(69_999, AT, Ecn::NotEct).is_some());
        assert_eq!(flight(&history), (3_276_700, 0));
    }
}
