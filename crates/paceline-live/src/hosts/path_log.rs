// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sender learns of the path: it joins the packets that it sent with the reported arrivals.
//!
//! The clocks of the two hosts are not synchronised. The packet with the smallest difference between arrival and sending is taken as one
//! that waited nowhere; the delay of every other packet is known as its variation above that one (RFC 3393, section 4.5). A drift of
//! the clocks adds to it: 20 ppm are 1.2 ms in a minute ([`crate::hosts::drift`]).

use crate::hosts::arrivals::{Arrival, PacketKey, Report};
use crate::hosts::drift::Minima;
use crate::hosts::message::Totals;
use crate::hosts::statistics::Sample;
use crate::hosts::window::Window;
use paceline_netsim::records::{DropReason, EventRecord, PacketClass, PacketRecord};
use paceline_units::{DataSize, Ecn, FlowId, Time, TimeDelta};
use serde::Serialize;
use std::collections::BTreeMap;

/// A packet is lost if one that was sent this much later has arrived.
const REORDERING_MAX: TimeDelta = TimeDelta::from_secs(1);

/// Time by which an arrival may differ from the first one beyond the age of the session: clocks drift, and reports come late.
const ARRIVAL_SLACK: TimeDelta = TimeDelta::from_secs(10);

/// Maximum number of packets without fate. Older ones count as lost, so that a silent peer needs no more memory.
const PENDING_MAX: usize = 1 << 18;

/// Maximum number of events that wait for the fate of earlier packets: each of these packets has three, and decisions have as many
/// again. If there are more, the earliest packets without fate count as lost.
const EVENTS_MAX: usize = 4 * PENDING_MAX;

/// Number of lost packets above the size of all that arrived from which on their size is the cause: at random, 20 in a row are lost with a
/// probability of one in a million if as many as half of the packets are.
const LOST_LARGE_MIN: u64 = 20;

/// Lost packets that were larger than every packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostLarge {
    /// Size of the largest packet that arrived, bytes, IP and UDP headers included.
    pub above_bytes: u64,
    /// Number of lost packets above it.
    pub packets: u64,
}

/// A packet without fate.
#[derive(Clone, Copy)]
struct Sent {
    at: Time,
    key: PacketKey,
    record: PacketRecord,
    /// Its number in its flow, from 1.
    number_in_flow: u64,
}

/// What is known of a flow.
#[derive(Clone, Default)]
pub struct FlowLog {
    /// Packets and bytes that were sent.
    pub sent: Totals,
    /// Packets, bytes and marks that were reported.
    pub received: Totals,
    /// Packets up to the latest that arrived.
    pub up_to_latest: u64,
    /// Differences between arrival and sending.
    differences: Sample,
}

/// Joins packets and arrivals.
#[derive(Default)]
pub struct PathLog {
    /// Packets without fate, by number, and the latest packet of each key.
    pending: BTreeMap<u64, Sent>,
    numbers: BTreeMap<PacketKey, u64>,
    next_number: u64,
    /// Packets and bytes that were sent.
    pub sent: Totals,
    /// Send times of the first and the latest packet.
    span: Option<(Time, Time)>,
    /// What is known of each flow.
    pub flows: Vec<FlowLog>,
    /// What the receiver counted, as far as reports say.
    pub received: Totals,
    /// Report numbers that were seen, to recognise repetitions, the highest one, and the longest run of numbers that it passed over.
    seen: Window,
    highest_report: u32,
    longest_gap: u32,
    /// Smallest difference between arrival on the receiver's clock and sending on ours.
    smallest: Option<TimeDelta>,
    /// Half of the round-trip time of the handshake, as an estimate of the smallest delay.
    base: TimeDelta,
    /// The difference that counts as this delay: the smallest one of the first report. It stays, so that delays of all events have
    /// the same origin.
    origin: Option<TimeDelta>,
    /// Send time of the latest packet that arrived, and the number of packets up to it.
    latest: Option<Time>,
    pub up_to_latest: u64,
    /// Differences of all packets, and the smallest of each interval.
    differences: Sample,
    pub minima: Minima,
    /// Events that wait for the fate of earlier packets, in order of time.
    events: BTreeMap<(Time, u64), EventRecord>,
    event_number: u64,
    /// Time of the latest event that was returned.
    returned: Time,
    /// Size of the largest packet that arrived, and the number of lost packets of each larger size.
    largest: DataSize,
    lost_larger: BTreeMap<DataSize, u64>,
    /// Reported packets that were never sent, whose fate was known, or that cannot have arrived then.
    pub unknown: u64,
    /// Mean delay above the smallest one, in the last report.
    pub recent: Option<TimeDelta>,
}

impl PathLog {
    /// Creates a log of so many flows, of a session whose handshake had this round-trip time; zero if it is not known.
    pub fn new(rtt: TimeDelta, flows: usize) -> Self {
        let flow = FlowLog { differences: Sample::coarse(), ..FlowLog::default() };
        Self { flows: vec![flow; flows], base: rtt.scale(0.5), ..Self::default() }
    }

    /// Adds an event that is no packet.
    pub fn push(&mut self, event: EventRecord) {
        self.insert(event);
        if self.events.len() > EVENTS_MAX {
            self.lose_oldest();
        }
    }

    fn insert(&mut self, event: EventRecord) {
        self.events.insert((event.at(), self.event_number), event);
        self.event_number += 1;
    }

    /// Returns the time on this host's clock of something that happened at the receiver at `at`, on the receiver's clock; as for arrivals, the
    /// smallest delay counts as half of the round-trip time. It is not before the events that were returned. `None` if it is not known, or if it
    /// cannot have happened before `now`.
    pub fn time_of(&self, at: Time, now: Time) -> Option<Time> {
        let (first, _) = self.span?;
        let here = at + (self.base - self.origin?);
        (first..=now + ARRIVAL_SLACK).contains(&here).then_some(here.min(now).max(self.returned))
    }

    /// Records a sent RTP packet.
    pub fn handle_sent(&mut self, at: Time, key: PacketKey, flow: FlowId, class: PacketClass, size: DataSize) {
        let record = PacketRecord { packet: self.next_number, flow, class, size };
        self.next_number += 1;
        self.span = Some((self.span.map_or(at, |(first, _)| first), at));
        self.sent.packets += 1;
        self.sent.bytes += size.as_bytes();
        let log = &mut self.flows[usize::from(flow.0)];
        log.sent.packets += 1;
        log.sent.bytes += size.as_bytes();
        let number_in_flow = log.sent.packets;
        self.push(EventRecord::Sent { at, packet: record });
        // Sequence numbers have wrapped, or there are too many packets.
        if let Some(old) = self.numbers.insert(key, record.packet) {
            self.lose(old);
        }
        self.pending.insert(record.packet, Sent { at, key, record, number_in_flow });
        if self.pending.len() > PENDING_MAX {
            self.lose_oldest();
        }
    }

    /// Returns whether no such report was handled.
    pub fn is_new(&self, report: &Report) -> bool {
        self.seen.is_new(report.number.into())
    }

    /// Handles a report. Returns whether it says that a packet of ours arrived that was not reported before.
    pub fn handle_report(&mut self, report: &Report) -> bool {
        let number = report.number.into();
        if !self.seen.is_new(number) {
            return false;
        }
        self.seen.insert(number);
        self.longest_gap = self.longest_gap.max(report.number.saturating_sub(self.highest_report.saturating_add(1)));
        self.highest_report = self.highest_report.max(report.number);
        self.handle_totals(&report.totals);
        if self.origin.is_none() {
            self.origin = report.arrivals.iter().filter_map(|arrival| self.difference(arrival)).min();
        }
        let (mut sum, mut count) = (TimeDelta::ZERO, 0);
        for arrival in &report.arrivals {
            if let Some(variation) = self.handle_arrival(arrival) {
                (sum, count) = (sum + variation, count + 1);
            }
        }
        if count > 0 {
            self.recent = Some(TimeDelta::from_nanos(sum.as_nanos() / count));
        }
        while let Some((number, first)) = self.pending.first_key_value() {
            let Some(latest) = self.latest.filter(|latest| *latest - first.at > REORDERING_MAX) else { break };
            debug_assert!(latest > first.at);
            self.lose(*number);
        }
        count > 0
    }

    /// Handles totals of the receiver; those of a peer that reports more than was sent count as far as they are possible.
    pub fn handle_totals(&mut self, totals: &Totals) {
        let limit = |old: u64, new: u64, sent: u64| old.max(new.min(sent));
        let (old, sent) = (&self.received, &self.sent);
        self.received = Totals {
            packets: limit(old.packets, totals.packets, sent.packets),
            bytes: limit(old.bytes, totals.bytes, sent.bytes),
            marked: limit(old.marked, totals.marked, sent.packets),
            // Reports do not have them. A frame has at least one packet.
            frames: limit(old.frames, totals.frames, sent.packets),
            frames_dropped: limit(old.frames_dropped, totals.frames_dropped, sent.packets),
        };
    }

    /// Returns the difference between the arrival and the sending of a packet whose fate is open.
    fn difference(&self, arrival: &Arrival) -> Option<TimeDelta> {
        let number = self.numbers.get(&arrival.key)?;
        Some(arrival.at - self.pending.get(number)?.at)
    }

    /// Returns whether an arrival is possible: delays are between zero and the age of the session, so two of them differ by no more.
    fn is_possible(&self, arrival: &Arrival) -> bool {
        let (Some(difference), Some((first, latest))) = (self.difference(arrival), self.span) else { return false };
        let off = difference - self.origin.unwrap_or(difference);
        off.max(TimeDelta::ZERO - off) <= latest - first + ARRIVAL_SLACK
    }

    /// Handles an arrival. Returns its delay above the smallest one so far; `None` if no such packet has an open fate, or if it cannot
    /// have arrived then.
    fn handle_arrival(&mut self, arrival: &Arrival) -> Option<TimeDelta> {
        if !self.is_possible(arrival) {
            self.unknown += 1;
            return None;
        }
        let Some(sent) = self.numbers.remove(&arrival.key).and_then(|number| self.pending.remove(&number)) else {
            self.unknown += 1;
            return None;
        };
        let difference = arrival.at - sent.at;
        let smallest = self.smallest.map_or(difference, |smallest| smallest.min(difference));
        self.smallest = Some(smallest);
        self.latest = Some(self.latest.map_or(sent.at, |latest| latest.max(sent.at)));
        self.up_to_latest = self.up_to_latest.max(sent.record.packet + 1);
        self.differences.push(difference);
        self.minima.push(sent.at, difference);
        let flow = &mut self.flows[usize::from(sent.record.flow.0)];
        flow.received.packets += 1;
        flow.received.bytes += sent.record.size.as_bytes();
        flow.received.marked += u64::from(arrival.ecn == Ecn::Ce);
        flow.up_to_latest = flow.up_to_latest.max(sent.number_in_flow);
        flow.differences.push(difference);
        if sent.record.size > self.largest {
            self.largest = sent.record.size;
            self.lost_larger.retain(|size, _| *size > sent.record.size);
        }
        let waited = difference - smallest;
        let origin = *self.origin.get_or_insert(difference);
        // Zero if the path had a queue during the handshake that is longer than the rest of its round trip.
        let delay = (self.base + difference - origin).max(TimeDelta::ZERO);
        let (at, packet, marked) = (sent.at + delay, sent.record, arrival.ecn == Ecn::Ce);
        self.push(EventRecord::Crossed { at, hop: 0, packet, waited, left: at, marked });
        self.push(EventRecord::Arrived { at, packet, delay, ecn: arrival.ecn });
        Some(waited)
    }

    fn lose_oldest(&mut self) {
        if let Some((number, _)) = self.pending.first_key_value() {
            self.lose(*number);
        }
    }

    fn lose(&mut self, number: u64) {
        let Some(Sent { at, key, record, .. }) = self.pending.remove(&number) else { return };
        if self.numbers.get(&key) == Some(&number) {
            self.numbers.remove(&key);
        }
        if record.size > self.largest {
            *self.lost_larger.entry(record.size).or_default() += 1;
        }
        // Where the path lost it is not known.
        self.insert(EventRecord::Dropped { at, hop: 0, packet: record, reason: DropReason::Loss, left: Some(at) });
    }

    /// Returns the next event in order of time; `None` while an earlier packet has no fate.
    pub fn poll_event(&mut self, now: Time) -> Option<EventRecord> {
        let open = self.pending.first_key_value().map_or(now, |(_, sent)| sent.at.min(now));
        let first = self.events.first_entry().filter(|first| first.key().0 < open)?;
        self.returned = self.returned.max(first.key().0);
        Some(first.remove())
    }

    /// Ends the log: packets without fate are lost if a later one arrived. Returns the remaining events.
    pub fn finish(&mut self) -> Vec<EventRecord> {
        let late = self.latest.unwrap_or(Time::ZERO);
        let open: Vec<u64> = self.pending.iter().filter(|(_, sent)| sent.at <= late).map(|(n, _)| *n).collect();
        open.into_iter().for_each(|number| self.lose(number));
        std::mem::take(&mut self.events).into_values().collect()
    }

    /// Returns the packets that were lost because of their size, as it seems; `None` if there are none.
    pub fn lost_large(&self) -> Option<LostLarge> {
        let packets = self.lost_larger.values().sum();
        let above_bytes = self.largest.as_bytes();
        (above_bytes > 0 && packets >= LOST_LARGE_MIN).then_some(LostLarge { above_bytes, packets })
    }

    /// Returns the delays above the smallest one.
    pub fn variation(&self) -> Sample {
        self.above_smallest(&self.differences)
    }

    /// Returns the delays of a flow above the smallest one of the session.
    pub fn variation_of(&self, flow: usize) -> Sample {
        self.above_smallest(&self.flows[flow].differences)
    }

    fn above_smallest(&self, differences: &Sample) -> Sample {
        differences.above(self.smallest.unwrap_or(TimeDelta::ZERO))
    }

    /// Returns whether no two reports in a row are missing, so that all frames are known but those of single reports, of 0.1 s each.
    pub fn knows_frames(&self) -> bool {
        self.longest_gap <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_of_all_large_packets_is_seen_and_other_loss_is_not() {
        // The size of each packet, and which sizes arrive.
        let lost_large = |arrives: &dyn Fn(u16, u64) -> bool| {
            let mut log = PathLog::new(TimeDelta::from_millis(40), 1);
            for n in 0..200 {
                let (at, size) = (Time::from_millis(i64::from(n) * 10), 600 + 300 * u64::from(n % 3));
                send_at(&mut log, at, key(n), size);
                if arrives(n, size) {
                    log.handle_report(&report(u32::from(n), vec![arrival(n, at, 20)]));
                }
            }
            log.finish();
            log.lost_large()
        };
        assert_eq!(lost_large(&|_, size| size <= 1000), Some(LostLarge { above_bytes: 900, packets: 66 }));
        assert_eq!(lost_large(&|n, size| size <= 1000 || n == 149), None, "one of them arrived");
        assert_eq!(lost_large(&|n, _| n % 2 == 0), None, "random loss");
        assert_eq!(lost_large(&|n, _| n < 50), None, "the path broke");
        assert_eq!(lost_large(&|_, _| false), None, "nothing arrived");
    }

    const OFFSET: TimeDelta = TimeDelta::from_secs(-1000);

    fn key(n: u16) -> PacketKey {
        PacketKey { stream: 0, sequence: n }
    }

    fn send_at(log: &mut PathLog, at: Time, key: PacketKey, size: u64) {
        log.handle_sent(at, key, FlowId(0), PacketClass::Media, DataSize::from_bytes(size));
    }

    fn send(log: &mut PathLog, n: u16) -> Time {
        let at = Time::from_millis(i64::from(n) * 10);
        send_at(log, at, key(n), 1000);
        at
    }

    fn report(number: u32, arrivals: Vec<Arrival>) -> Report {
        let packets = arrivals.len() as u64;
        Report {
            number,
            totals: Totals { packets, bytes: packets * 1000, ..Totals::default() },
            arrivals,
            frames: Vec::new(),
        }
    }

    fn arrival(n: u16, sent: Time, delay_ms: i64) -> Arrival {
        Arrival { key: key(n), at: sent + OFFSET + TimeDelta::from_millis(delay_ms), ecn: Ecn::NotEct }
    }

    #[test]
    fn delays_are_known_above_the_smallest_whatever_the_clocks_are() {
        let mut log = PathLog::new(TimeDelta::from_millis(40), 1);
        let delays = [25, 20, 30];
        let arrivals = (0..3).map(|n| arrival(n, send(&mut log, n), delays[n as usize])).collect();
        assert!(log.handle_report(&report(1, arrivals)));
        for (quantile, ms) in [(0.0, 0.0), (0.5, 5.0), (1.0, 10.0)] {
            let measured = log.variation().quantile(quantile).unwrap().as_millis_f64();
            assert!((measured - ms).abs() <= 0.001 * ms, "{quantile}: {measured} ms"); // the resolution of a sample
        }
        let mut events = Vec::new();
        events.extend(std::iter::from_fn(|| log.poll_event(Time::from_secs(1))));
        let arrived = events.iter().filter_map(|event| match event {
            EventRecord::Arrived { delay, .. } => Some(*delay),
            _ => None,
        });
        let mut arrived: Vec<TimeDelta> = arrived.collect();
        arrived.sort();
        assert_eq!(arrived, [20, 25, 30].map(TimeDelta::from_millis), "the smallest is half of the round trip");
        assert!(events.is_sorted_by_key(EventRecord::at));
        // A later packet was faster: the origin stays.
        let faster = arrival(3, send(&mut log, 3), 12);
        log.handle_report(&report(2, vec![faster]));
        let arrived = log.finish().into_iter().find_map(|event| match event {
            EventRecord::Arrived { delay, .. } => Some(delay),
            _ => None,
        });
        assert_eq!(arrived, Some(TimeDelta::from_millis(12)));
        assert_eq!(log.variation().quantile(0.0), Some(TimeDelta::ZERO));
    }

    #[test]
    fn a_packet_is_lost_when_later_ones_arrived_and_only_then() {
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        let times: Vec<Time> = (0..102).map(|n| send(&mut log, n)).collect();
        let arrivals = |range: std::ops::Range<u16>| range.map(|n| arrival(n, times[n as usize], 5)).collect();
        log.handle_report(&report(1, arrivals(1..101)));
        assert!(log.poll_event(Time::from_secs(9)).is_none(), "the first packet may be on its way");
        log.handle_report(&report(2, arrivals(101..102)));
        let events: Vec<EventRecord> = std::iter::from_fn(|| log.poll_event(Time::from_secs(9))).collect();
        let lost = |events: &[EventRecord]| events.iter().filter(|e| matches!(e, EventRecord::Dropped { .. })).count();
        assert_eq!((lost(&events), lost(&log.finish())), (1, 0));
        send(&mut log, 102);
        assert_eq!((log.up_to_latest, log.sent.packets), (102, 103));
    }

    #[test]
    fn reports_of_packets_that_were_never_sent_are_counted_and_change_nothing() {
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        let sent = send(&mut log, 0);
        assert!(!log.handle_report(&report(1, vec![arrival(7, sent, 5)])));
        let lie = Totals { packets: 1000, bytes: u64::MAX, marked: 50, ..Totals::default() };
        log.handle_totals(&lie);
        assert_eq!(log.unknown, 1);
        assert_eq!((log.received.packets, log.received.bytes, log.received.marked), (1, 1000, 1));
        assert!(log.handle_report(&report(2, vec![arrival(0, sent, 5)])));
        assert!(!log.handle_report(&report(3, vec![arrival(0, sent, 5)])), "the same packet again");
        assert_eq!(log.unknown, 2);
        assert!(!log.handle_report(&report(3, vec![arrival(0, sent, 5)])), "the same report again");
        assert_eq!(log.unknown, 2);
    }

    #[test]
    fn repeated_reports_are_recognised_at_ten_gigabits_per_second() {
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        let reports: Vec<Report> =
            (0..1000).map(|n| report(u32::from(n) + 1, vec![arrival(n, send(&mut log, n), 5)])).collect();
        for repetition in [false, true] {
            for report in &reports {
                assert_eq!(log.handle_report(report), !repetition, "{}", report.number);
            }
        }
        assert_eq!((log.unknown, log.flows[0].received.packets), (0, 1000));
    }

    #[test]
    fn arrivals_at_impossible_times_are_counted_and_change_nothing() {
        let far = Time::from_nanos(1 << 60);
        let absurd = |n, at| Arrival { key: key(n), at, ecn: Ecn::NotEct };
        for first in [Time::ZERO - (far - Time::ZERO), far] {
            let mut log = PathLog::new(TimeDelta::ZERO, 1);
            let times: Vec<Time> = (0..5).map(|n| send(&mut log, n)).collect();
            // The session is 40 ms old, so delays differ by at most that and the slack.
            let limit = 40 + ARRIVAL_SLACK.as_nanos() / 1_000_000;
            log.handle_report(&report(1, vec![arrival(0, times[0], 5)]));
            let wrong =
                vec![absurd(1, first), arrival(2, times[2], 5 + limit + 1), arrival(3, times[3], 5 - limit - 1)];
            assert!(!log.handle_report(&report(2, wrong)));
            assert_eq!(log.unknown, 3);
            assert!(log.handle_report(&report(3, vec![arrival(4, times[4], 5 + limit)])));
            assert_eq!((log.unknown, log.up_to_latest), (3, 5));
            let events = log.finish();
            assert!(events.iter().all(|event| event.at() < Time::from_secs(11)), "{:?}", events.last());
        }
        // The first report has both an absurd and a usual time.
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        let times: Vec<Time> = (0..2).map(|n| send(&mut log, n)).collect();
        log.handle_report(&report(1, vec![absurd(0, far), arrival(1, times[1], 5)]));
        assert_eq!((log.unknown, log.variation().quantile(1.0)), (1, Some(TimeDelta::ZERO)));
    }

    #[test]
    fn frames_are_those_of_the_goodbye_whenever_a_report_comes() {
        let goodbye = Totals { frames: 2, frames_dropped: 1, ..Totals::default() };
        for late in [false, true] {
            let mut log = PathLog::new(TimeDelta::ZERO, 1);
            let arrivals = (0..3).map(|n| arrival(n, send(&mut log, n), 5)).collect();
            if late {
                log.handle_totals(&goodbye);
            }
            log.handle_report(&report(1, arrivals));
            if !late {
                log.handle_totals(&goodbye);
            }
            assert_eq!((log.received.frames, log.received.frames_dropped), (2, 1), "late: {late}");
            log.handle_totals(&Totals { frames: u64::MAX, frames_dropped: u64::MAX, ..goodbye });
            assert_eq!((log.received.frames, log.received.frames_dropped), (3, 3), "as many as packets");
        }
    }

    #[test]
    fn a_silent_peer_needs_bounded_memory() {
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        for n in 0..PENDING_MAX + 1000 {
            let key = PacketKey { stream: (n >> 16) as u16, sequence: n as u16 };
            send_at(&mut log, Time::from_nanos(n as i64 * 1000), key, 100);
        }
        while log.poll_event(Time::from_secs(9)).is_some() {}
        assert!(log.pending.len() <= PENDING_MAX && log.numbers.len() <= PENDING_MAX);
    }

    #[test]
    fn events_behind_a_packet_whose_fate_is_never_reported_need_bounded_memory() {
        let mut log = PathLog::new(TimeDelta::ZERO, 1);
        let sent = send(&mut log, 1);
        let mut polled = Vec::new();
        for n in 1..=2 * EVENTS_MAX {
            let at = sent + TimeDelta::from_nanos(n as i64);
            log.push(EventRecord::RoundTrip { at, flow: FlowId(0), rtt: TimeDelta::ZERO });
            polled.extend(std::iter::from_fn(|| log.poll_event(Time::from_secs(9))));
            assert!(log.events.len() <= EVENTS_MAX);
            assert_eq!(polled.is_empty(), n < EVENTS_MAX, "the packet is open until then");
        }
        let dropped = polled.iter().filter(|event| matches!(event, EventRecord::Dropped { .. })).count();
        assert_eq!((polled.len(), dropped), (2 * EVENTS_MAX + 2, 1));
        assert!(polled.is_sorted_by_key(EventRecord::at));
    }
}
