// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one report means (`ParseScreamFeedback`): counts, sizes, delays, the round-trip time and the hold time.

use crate::blocks::units::floor_sent;
use crate::{Feedback, PacketReport};
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Ecn, RemoteTime, Time, TimeDelta};

/// The content of a report of which at least one packet arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportSummary {
    /// The number of packets that arrived, that arrived with a mark, that are newly lost, and that arrived although they had
    /// been lost.
    pub received: u32,
    pub marked: u32,
    pub lost: u32,
    pub recovered: u32,
    /// The bytes that arrived.
    pub received_bytes: DataSize,
    /// The bytes that are not marked. Lost packets count.
    pub not_marked: DataSize,
    /// The least and the greatest one-way delay, between two clocks.
    pub least_delay: TimeDelta,
    pub greatest_delay: TimeDelta,
    /// The time from the first arrival to the report.
    pub hold: TimeDelta,
    /// The round-trip time of the last arrival, without the time until the report.
    pub rtt: TimeDelta,
    /// The last arrival.
    pub last_arrival: RemoteTime,
}

/// A packet that arrived, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrived {
    arrival: RemoteTime,
    sent: Time,
    sequence: u64,
}

impl ReportSummary {
    /// Summarises a report; `None` if no packet arrived. Send times are rounded down to `clock`. `lost` is updated in either case.
    /// Packets that left before `oldest` do not count.
    pub fn new(
        now: Time,
        feedback: &Feedback<'_>,
        oldest: Time,
        clock: TimeDelta,
        lost: &mut LostPackets,
    ) -> Option<Self> {
        let mut summary = Self::empty();
        let mut ends: Option<(Arrived, Arrived)> = None;
        for packet in feedback.packets.iter().filter(|packet| packet.sent >= oldest) {
            let Some(arrival) = packet.arrival else {
                summary.handle_missing(packet, lost);
                continue;
            };
            let sent = floor_sent(packet.sent, clock);
            summary.handle_arrival(packet, arrival - RemoteTime::ZERO - (sent - Time::ZERO), lost);
            let arrived = Arrived { arrival, sent, sequence: packet.sequence };
            ends = Some(ends.map_or((arrived, arrived), |(first, last)| (first.min(arrived), last.max(arrived))));
        }
        let (first, last) = ends?;
        let held = held_time(now, feedback, last.arrival);
        summary.hold = whole_us(last.arrival - first.arrival) + held;
        summary.rtt = whole_us((now - last.sent - held).max(TimeDelta::ZERO));
        summary.last_arrival = last.arrival;
        Some(summary)
    }

    fn empty() -> Self {
        Self {
            received: 0,
            marked: 0,
            lost: 0,
            recovered: 0,
            received_bytes: DataSize::ZERO,
            not_marked: DataSize::ZERO,
            least_delay: TimeDelta::MAX,
            greatest_delay: TimeDelta::from_nanos(i64::MIN),
            hold: TimeDelta::ZERO,
            rtt: TimeDelta::ZERO,
            last_arrival: RemoteTime::ZERO,
        }
    }

    fn handle_missing(&mut self, packet: &PacketReport, lost: &mut LostPackets) {
        self.not_marked += packet.size;
        self.lost += u32::from(lost.insert(packet.sequence, packet.sent));
    }

    fn handle_arrival(&mut self, packet: &PacketReport, delay: TimeDelta, lost: &mut LostPackets) {
        self.received += 1;
        self.received_bytes += packet.size;
        match packet.ecn {
            Some(Ecn::Ce) => self.marked += 1,
            _ => self.not_marked += packet.size,
        }
        self.recovered += u32::from(lost.remove(packet.sequence));
        let delay = whole_us(delay);
        (self.least_delay, self.greatest_delay) = (self.least_delay.min(delay), self.greatest_delay.max(delay));
    }
}

/// Returns the time for which the last packet waited for the report at the receiver. The flow measures it for the packet with
/// the highest number; zero if the format of the report does not contain it.
fn held_time(now: Time, feedback: &Feedback<'_>, last: RemoteTime) -> TimeDelta {
    let highest = feedback.packets.iter().rev().find_map(|packet| Some((packet.sent, packet.arrival?)));
    let (Some(rtt), Some((sent, arrival))) = (feedback.rtt, highest) else { return TimeDelta::ZERO };
    let held = now - sent - rtt.last;
    whole_us((held - (last - arrival)).max(TimeDelta::ZERO))
}

/// Returns the span rounded down to microseconds.
fn whole_us(span: TimeDelta) -> TimeDelta {
    let nanos = span.as_nanos();
    TimeDelta::from_nanos(nanos.saturating_sub(nanos.rem_euclid(1000)))
}

/// The number of packets that are kept, as in the history of the flow.
const CAPACITY: usize = 32_768;

/// Numbers and send times of the packets that were reported lost and did not arrive since, in order of their numbers
/// (`previously_reported_lost`).
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
    use crate::RoundTrip;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const CLOCK: TimeDelta = TimeDelta::from_millis(1);

    /// A packet of 100 B times its number: sent at, arrived at, ms.
    fn packet(sequence: u64, sent: i64, arrival: Option<i64>, ecn: Ecn) -> PacketReport {
        let arrival = arrival.map(RemoteTime::from_millis);
        let size = DataSize::from_bytes(100 * sequence);
        PacketReport::new(sequence, Time::from_millis(sent), size, arrival).with_ecn(arrival.map(|_| ecn))
    }

    /// Packets 2 and 3 arrive in reverse order, packet 4 with a mark, packet 5 is lost, packet 1 late. The report is written at
    /// 1060 on the receiver's clock, of which 1000 is the offset, and arrives at 100: the path takes 40 ms back.
    #[test]
    fn report_is_summarised_in_order_of_arrival() {
        let mut lost = LostPackets::default();
        lost.insert(1, Time::ZERO);
        let packets = [
            packet(1, 0, Some(1041), Ecn::Ect1),
            packet(2, 10, Some(1052), Ecn::Ect1),
            packet(3, 12, Some(1048), Ecn::Ect1),
            packet(4, 13, Some(1051), Ecn::Ce),
            packet(5, 14, None, Ecn::Ect1),
        ];
        // The newest number that arrived is 4, which was held for 9 ms.
        let rtt = RoundTrip::new(MS(100 - 13 - 9), MS(80));
        let bytes = DataSize::from_bytes;
        let feedback = Feedback::new(&packets, bytes(0), bytes(0)).with_rtt(Some(rtt));
        let summary = ReportSummary::new(Time::from_millis(100), &feedback, Time::ZERO, CLOCK, &mut lost).unwrap();
        let expected = ReportSummary {
            received: 4,
            marked: 1,
            lost: 1,
            recovered: 1,
            received_bytes: bytes(1000),
            not_marked: bytes(100 + 200 + 300 + 500),
            least_delay: MS(1036),
            greatest_delay: MS(1042),
            hold: MS(1060 - 1041),
            rtt: MS(100 - 10 - 8),
            last_arrival: RemoteTime::from_millis(1052),
        };
        assert_eq!(summary, expected);
    }

    /// Without the time of the report, the round-trip time contains the wait, and the hold time does not.
    #[test]
    fn transport_wide_feedback_has_no_hold_time() {
        let packets = [packet(1, 0, Some(30), Ecn::NotEct), packet(2, 10, Some(45), Ecn::NotEct)];
        let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO);
        let summary =
            ReportSummary::new(Time::from_millis(100), &feedback, Time::ZERO, CLOCK, &mut LostPackets::default());
        assert_eq!(summary.map(|summary| (summary.hold, summary.rtt)), Some((MS(15), MS(90))));
    }

    #[test]
    fn report_without_arrivals_only_records_losses() {
        let mut lost = LostPackets::default();
        let packets = [packet(1, 0, None, Ecn::NotEct)];
        let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO);
        assert_eq!(ReportSummary::new(Time::from_millis(9), &feedback, Time::ZERO, CLOCK, &mut lost), None);
        assert!(lost.remove(1));
    }

    /// Send times count in milliseconds, spans in microseconds, both rounded down; negative times are zero.
    #[test]
    fn times_are_rounded_down_and_not_negative() {
        let sent = Time::from_nanos(1_999_999);
        let arrival = RemoteTime::from_nanos(-500);
        let packets = [PacketReport::new(1, sent, DataSize::from_bytes(100), Some(arrival))];
        let rtt = RoundTrip::new(MS(900), MS(0));
        let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO).with_rtt(Some(rtt));
        let summary =
            ReportSummary::new(Time::ZERO, &feedback, Time::ZERO, CLOCK, &mut LostPackets::default()).unwrap();
        assert_eq!((summary.hold, summary.rtt), (MS(0), MS(0)));
        assert_eq!(
            (summary.least_delay, summary.greatest_delay),
            (TimeDelta::from_micros(-1001), TimeDelta::from_micros(-1001))
        );
        let fine = ReportSummary::new(Time::ZERO, &feedback, Time::ZERO, TimeDelta::ZERO, &mut LostPackets::default())
            .unwrap();
        assert_eq!(fine.least_delay, TimeDelta::from_micros(-2001));
    }

    #[test]
    fn packets_that_were_forgotten_do_not_count() {
        let mut lost = LostPackets::default();
        let packets = [packet(1, 0, Some(30), Ecn::Ce), packet(2, 4, None, Ecn::Ce), packet(3, 5, Some(45), Ecn::Ect1)];
        let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO);
        let mut summary = |oldest| {
            let summary =
                ReportSummary::new(Time::from_millis(50), &feedback, Time::from_millis(oldest), CLOCK, &mut lost)?;
            Some((summary.received, summary.marked, summary.lost))
        };
        assert_eq!([summary(5), summary(6)], [Some((1, 0, 0)), None]);
        assert_eq!(summary(0), Some((2, 1, 1)));
    }

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
