//! The history of sent packets. It joins feedback with packets and counts the bytes in flight.

use crate::{PacketKind, PacketReport, ProbeId, SentPacket};
use paceline_units::{DataSize, Ecn, RemoteTime, StreamId, Time};
use std::collections::VecDeque;

/// Bytes in flight, in the two definitions that controllers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Bytes that are neither acknowledged nor lost nor abandoned.
    pub outstanding: DataSize,
    /// Bytes sent after the highest acknowledged packet (RFC 8298, section 4.1.1).
    pub after_highest: DataSize,
}

/// The last packets of one flow, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    packets: VecDeque<Entry>,
    /// The sequence number of `packets[0]`.
    first: u64,
    flight: Flight,
    /// The highest acknowledged sequence number plus one.
    above: u64,
    /// No packet below this number is outstanding.
    covered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sent: Time,
    size: DataSize,
    /// The bytes outstanding before this packet; at most 4 GB.
    in_flight: u32,
    probe: Option<ProbeId>,
    stream: StreamId,
    kind: PacketKind,
    state: PacketState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    Open,
    /// The report that covered it was lost.
    Abandoned,
    Lost,
    Arrived,
}

/// The number of packets that are kept: 3.2 s at 10,000 packets per second. Later feedback is ignored.
const CAPACITY: usize = 32_768;

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// Creates an empty history. The first packet has the sequence number 0.
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), first: 0, flight: Flight::default(), above: 0, covered: 0 }
    }

    /// Returns the sequence number of the next packet.
    pub fn next_sequence(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Records a packet that was sent. Its number must be [`next_sequence`](Self::next_sequence).
    pub fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        debug_assert_eq!(packet.sequence, self.next_sequence());
        if self.packets.len() == CAPACITY {
            self.remove_oldest();
        }
        let &SentPacket { size, stream, kind, probe, .. } = packet;
        let in_flight = self.flight.outstanding.as_bytes().min(u32::MAX.into()) as u32;
        self.packets.push_back(Entry { sent: now, size, in_flight, probe, stream, kind, state: PacketState::Open });
        self.flight.outstanding += packet.size;
        self.flight.after_highest += packet.size;
    }

    /// Unwraps the 16-bit sequence number in a report: the highest sent packet with these bits, if it is still known.
    pub fn unwrap(&self, sequence: u16) -> Option<u64> {
        let next = self.next_sequence();
        let back = (next as u16).wrapping_sub(sequence);
        next.checked_sub(back as u64).filter(|s| back != 0 && *s >= self.first)
    }

    /// Returns whether a packet was reported as arrived. Another report on it then changes nothing.
    #[inline]
    pub fn has_arrived(&self, sequence: u64) -> bool {
        let index = sequence.checked_sub(self.first).map(|index| index as usize);
        index.and_then(|index| self.packets.get(index)).is_some_and(|entry| entry.state == PacketState::Arrived)
    }

    /// Records the report on a packet. Returns the joined report if it changes the state of the packet: the packet is
    /// known, was not reported as arrived before, and is not reported lost again. A packet that was reported lost may
    /// arrive after all.
    pub fn settle(&mut self, sequence: u64, arrival: Option<RemoteTime>, ecn: Option<Ecn>) -> Option<PacketReport> {
        let index = sequence.checked_sub(self.first)? as usize;
        let entry = self.packets.get_mut(index)?;
        let state = if arrival.is_some() { PacketState::Arrived } else { PacketState::Lost };
        if entry.state == PacketState::Arrived || entry.state == state {
            return None;
        }
        if entry.state == PacketState::Open {
            self.flight.outstanding -= entry.size;
        }
        entry.state = state;
        let Entry { sent, size, in_flight, probe, stream, kind, .. } = *entry;
        if arrival.is_some() {
            while self.above <= sequence {
                if let Some(below) = self.above.checked_sub(self.first) {
                    self.flight.after_highest -= self.packets[below as usize].size;
                }
                self.above += 1;
            }
        }
        let in_flight = DataSize::from_bytes(in_flight.into());
        Some(PacketReport { sequence, sent, size, stream, kind, probe, in_flight, arrival, ecn })
    }

    /// Abandons the open packets below `sequence`, the start of a report. Reports follow each other without gaps, so a
    /// report that covered these packets was lost, and they are not outstanding any more. That report may still arrive
    /// late.
    pub fn abandon_below(&mut self, sequence: u64) {
        self.covered = self.covered.max(self.first);
        while self.covered < sequence.min(self.next_sequence()) {
            let entry = &mut self.packets[(self.covered - self.first) as usize];
            if entry.state == PacketState::Open {
                entry.state = PacketState::Abandoned;
                self.flight.outstanding -= entry.size;
            }
            self.covered += 1;
        }
    }

    /// Abandons a packet that arrived although its report contains no arrival time: the controller gets no report on
    /// it, and it is not outstanding any more.
    pub fn abandon(&mut self, sequence: u64) {
        let index = sequence.checked_sub(self.first).map(|index| index as usize);
        if let Some(entry) = index.and_then(|index| self.packets.get_mut(index))
            && entry.state == PacketState::Open
        {
            entry.state = PacketState::Abandoned;
            self.flight.outstanding -= entry.size;
        }
    }

    /// Forgets all packets. Reports on them change nothing from now on.
    pub fn restart(&mut self) {
        let next = self.next_sequence();
        self.packets.clear();
        (self.first, self.above, self.covered, self.flight) = (next, next, next, Flight::default());
    }

    /// Returns the bytes in flight.
    pub fn flight(&self) -> Flight {
        self.flight
    }

    fn remove_oldest(&mut self) {
        let Some(oldest) = self.packets.pop_front() else { return };
        if oldest.state == PacketState::Open {
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
    use crate::testing;

    fn send(history: &mut History, n: usize) {
        for _ in 0..n {
            let sequence = history.next_sequence();
            let packet = testing::sent(sequence, PacketKind::Media, 100);
            history.handle_sent(Time::from_millis(sequence as i64), &packet);
        }
    }
    fn flight(history: &History) -> (u64, u64) {
        (history.flight().outstanding.as_bytes(), history.flight().after_highest.as_bytes())
    }
    const AT: Option<RemoteTime> = Some(RemoteTime::ZERO);

    #[test]
    fn counts_bytes_in_flight_in_both_definitions() {
        let mut history = History::new();
        send(&mut history, 5);
        assert_eq!(flight(&history), (500, 500));
        assert_eq!(history.settle(2, AT, None).unwrap().sent, Time::from_millis(2));
        assert_eq!(flight(&history), (400, 200), "0, 1, 3, 4 are open; 3, 4 are above the highest");
        assert!(history.settle(0, None, None).is_some());
        assert_eq!(flight(&history), (300, 200));
        assert!(history.settle(0, AT, None).is_some(), "arrived after all");
        assert_eq!(flight(&history), (300, 200));
    }

    #[test]
    fn repeated_reports_and_unknown_packets_are_ignored() {
        let mut history = History::new();
        send(&mut history, 3);
        assert!(history.settle(1, AT, None).is_some());
        assert!(history.settle(1, AT, None).is_none(), "reported twice");
        assert!(history.settle(2, None, None).is_some());
        assert_eq!([0, 1, 2, 3].map(|s| history.has_arrived(s)), [false, true, false, false]);
        assert!(history.settle(1, None, None).is_none(), "an arrived packet cannot be lost");
        assert!(history.settle(3, AT, None).is_none(), "never sent");
        assert_eq!((history.unwrap(3), history.unwrap(2), history.unwrap(0)), (None, Some(2), Some(0)));
        assert_eq!(history.unwrap(60_000), None, "before the first");
    }

    #[test]
    fn lost_report_leaves_no_packet_outstanding() {
        let mut history = History::new();
        send(&mut history, 10);
        assert!(history.settle(1, None, None).is_some());
        history.abandon_below(4);
        assert_eq!(flight(&history), (600, 1000));
        assert!(history.settle(4, AT, None).is_some());
        history.abandon_below(2);
        assert_eq!(flight(&history), (500, 500));
        assert!(history.settle(3, AT, None).is_some(), "the report was only late");
        assert!(history.settle(2, None, None).is_some());
        assert_eq!(flight(&history), (500, 500));
        history.abandon_below(100);
        assert_eq!(flight(&history), (0, 500));
        send(&mut history, 1);
        assert_eq!(flight(&history), (100, 600));
    }

    #[test]
    fn restart_forgets_packets_and_keeps_the_numbers() {
        let mut history = History::new();
        send(&mut history, 5);
        assert!(history.settle(1, AT, None).is_some());
        history.restart();
        assert_eq!((flight(&history), history.next_sequence(), history.unwrap(4)), ((0, 0), 5, None));
        assert!(history.settle(4, AT, None).is_none());
        history.abandon_below(3);
        send(&mut history, 2);
        assert_eq!(flight(&history), (200, 200));
        assert!(history.settle(6, AT, None).is_some());
        assert_eq!(flight(&history), (100, 0));
    }

    #[test]
    fn arrival_without_time_is_not_outstanding() {
        let mut history = History::new();
        send(&mut history, 3);
        for _ in 0..2 {
            history.abandon(1);
            history.abandon(3);
            assert_eq!(flight(&history), (200, 300));
        }
        assert!(history.settle(1, AT, None).is_some(), "reported with a time later");
        history.abandon(1);
        assert_eq!(flight(&history), (200, 100));
    }

    #[test]
    fn sequence_numbers_wrap_and_old_packets_are_removed() {
        let mut history = History::new();
        send(&mut history, 70_000);
        assert_eq!(history.unwrap(4_463), Some(69_999));
        assert_eq!(history.unwrap(65_535), Some(65_535));
        assert_eq!(flight(&history), (3_276_800, 3_276_800), "32,768 packets of 100 bytes");
        assert!(history.settle(100, AT, None).is_none(), "too old");
        assert!(history.settle(69_999, AT, None).is_some());
        assert_eq!(flight(&history), (3_276_700, 0));
    }
}
