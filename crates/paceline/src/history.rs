// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history of sent packets. It joins feedback with packets and counts the bytes in flight.

use crate::{PacketKind, PacketReport, ProbeId, SentPacket};
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Ecn, RemoteTime, StreamId, Time, TimeDelta};

/// Bytes in flight, in the two definitions that controllers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Bytes that are neither acknowledged nor lost nor abandoned.
    pub outstanding: DataSize,
    /// Bytes sent after the highest acknowledged packet (RFC 8298, section 4.1.1).
    pub after_highest: DataSize,
}

/// The last packets of one flow, oldest first. Packets at the front that nothing more can be learned about are removed: a flow
/// without losses keeps about a round-trip time of packets, after a loss those of up to 10 s, and never more than 32,768.
#[derive(Clone, Debug)]
pub struct History {
    packets: VecDeque<Entry>,
    /// The sequence number of `packets[0]`.
    first: u64,
    /// The first packet since the last restart.
    began: u64,
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

/// The number of packets whose reports are accepted: 3.2 s at 10,000 packets per second. Later feedback is ignored.
const CAPACITY: usize = 32_768;

/// The time for which a packet that was reported lost, or whose report was lost, may be reported as arrived: from its sending
/// to that of the newest packet.
const LATE: TimeDelta = TimeDelta::from_secs(10);

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// Creates an empty history. The first packet has the sequence number 0.
    pub fn new() -> Self {
        Self { packets: VecDeque::new(), first: 0, began: 0, flight: Flight::default(), above: 0, covered: 0 }
    }

    /// Returns the sequence number of the next packet.
    #[inline]
    pub fn next_sequence(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Records a packet that was sent. Its number must be [`next_sequence`](Self::next_sequence).
    #[inline]
    pub fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        debug_assert_eq!(packet.sequence, self.next_sequence());
        if self.packets.len() == CAPACITY {
            self.remove_oldest();
        }
        while self.packets.front().is_some_and(|oldest| self.is_settled(now, oldest)) {
            self.remove_settled();
        }
        let &SentPacket { size, stream, kind, probe, .. } = packet;
        let in_flight = self.flight.outstanding.as_bytes().min(u32::MAX.into()) as u32;
        self.packets.push_back(Entry { sent: now, size, in_flight, probe, stream, kind, state: PacketState::Open });
        self.flight.outstanding += packet.size;
        self.flight.after_highest += packet.size;
    }

    /// Returns the number below which reports on packets are ignored. The packets from here to `first` were settled.
    fn known(&self) -> u64 {
        self.began.max(self.next_sequence().saturating_sub(CAPACITY as u64))
    }

    /// Returns whether no report on the oldest packet can change anything any more.
    #[inline]
    fn is_settled(&self, now: Time, oldest: &Entry) -> bool {
        match oldest.state {
            PacketState::Arrived => true,
            PacketState::Open => false,
            PacketState::Lost | PacketState::Abandoned => self.is_late(now, oldest.sent),
        }
    }

    #[cold]
    fn is_late(&self, now: Time, sent: Time) -> bool {
        self.first < self.above && now - sent > LATE
    }

    /// Unwraps the 16-bit sequence number in a report: the highest sent packet with these bits, if it is still known.
    pub fn unwrap(&self, sequence: u16) -> Option<u64> {
        let next = self.next_sequence();
        let back = (next as u16).wrapping_sub(sequence);
        next.checked_sub(back as u64).filter(|s| back != 0 && *s >= self.known())
    }

    /// Returns whether a packet was reported as arrived, or is lost for so long that its arrival would be ignored. Another
    /// report on it then changes nothing.
    #[inline]
    pub fn has_arrived(&self, sequence: u64) -> bool {
        match sequence.checked_sub(self.first) {
            Some(index) => self.packets.get(index as usize).is_some_and(|entry| entry.state == PacketState::Arrived),
            None => sequence >= self.known(),
        }
    }

    /// Records the report on a packet. Returns the joined report if it changes the state of the packet: the packet is
    /// known, was not reported as arrived before, and is not reported lost again. A packet that was reported lost may
    /// arrive after all.
    #[inline]
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
        // Mostly the oldest packet arrives.
        if index == 0 && state == PacketState::Arrived {
            self.remove_settled();
        }
        if arrival.is_some() && self.above <= sequence {
            // Mostly the packet after the highest one arrives.
            if self.above < sequence {
                self.pass(sequence);
            }
            self.flight.after_highest -= size;
            self.above = sequence + 1;
        }
        let in_flight = DataSize::from_bytes(in_flight.into());
        Some(PacketReport { sequence, sent, size, stream, kind, probe, in_flight, arrival, ecn })
    }

    /// Counts the packets below `sequence` as sent before the highest acknowledged one.
    #[cold]
    fn pass(&mut self, sequence: u64) {
        let sizes = |number: u64| self.packets[(number - self.first) as usize].size;
        self.flight.after_highest -= (self.above.max(self.first)..sequence).map(sizes).sum();
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
        (self.first, self.began, self.above, self.covered) = (next, next, next, next);
        self.flight = Flight::default();
    }

    /// Returns the bytes in flight.
    #[inline]
    pub fn flight(&self) -> Flight {
        self.flight
    }

    /// Removes the oldest packet, which is neither outstanding nor above the highest acknowledged one.
    #[inline]
    fn remove_settled(&mut self) {
        self.packets.pop_front();
        self.first += 1;
    }

    #[cold]
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
    fn settled_packets_are_removed_and_stay_known() {
        let mut history = History::new();
        send(&mut history, 4);
        for sequence in [0, 1, 3] {
            assert!(history.settle(sequence, AT, None).is_some());
        }
        assert!(history.settle(2, None, None).is_some());
        send(&mut history, 9_999);
        assert_eq!(history.packets.len(), 10_001, "packet 2 may arrive after all");
        assert_eq!([0, 1, 2, 3].map(|s| history.has_arrived(s)), [true, true, false, true]);
        assert_eq!([0, 2].map(|s| history.unwrap(s)), [Some(0), Some(2)]);
        assert!(history.settle(1, AT, None).is_none(), "reported twice");
        assert!(history.clone().settle(2, AT, None).is_some());
        send(&mut history, 10);
        assert_eq!((history.packets.len(), history.unwrap(2)), (10_009, Some(2)), "10 s later it is removed");
        assert!(history.settle(2, AT, None).is_none() && history.has_arrived(2));
        assert_eq!(flight(&history), (1_000_900, 1_000_900), "no report on the others");
        history.abandon_below(10_013);
        assert_eq!(flight(&history), (0, 1_000_900));
        send(&mut history, 10_001);
        assert_eq!(history.packets.len(), 20_010, "they are above the highest that arrived");
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
