//! Reports of arrivals: for every RTP packet its stream, sequence number, arrival time and ECN field, whatever the controller's own
//! feedback is. The receiver sends them ten times per second, each twice, so that single losses do no harm.
//!
//! A report has a number (4 bytes), the totals so far (packets, bytes and marked packets, 8 bytes each), the time of the first entry
//! (8 bytes, ns on the receiver's clock), and entries of 6 bytes: stream and ECN field (2), sequence number (2), and time since the
//! first entry (2) in units of 4 µs.

use crate::message::Totals;
use paceline_flow::IP_UDP_HEADERS;
use paceline_units::{Ecn, Time, TimeDelta};

/// Interval of reports while packets arrive.
pub const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// Interval of reports while none arrive.
pub const IDLE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Unit of times in entries.
const UNIT: TimeDelta = TimeDelta::from_micros(4);

/// Longest time that the entries of a report span.
const SPAN: TimeDelta = TimeDelta::from_nanos(UNIT.as_nanos() * u16::MAX as i64);

/// Length of the part before the entries.
const HEADER: usize = 4 + 3 * 8 + 8;

/// Length of an entry.
const ENTRY: usize = 6;

/// Maximum number of entries: with headers, a report has less than 1200 bytes.
const ENTRIES_MAX: usize = 183;

/// A packet of a session ([`crate::flow_number::Ssrcs::key`]): the number of its stream and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketKey {
    /// Number of the stream, below 2^14; retransmissions are a stream of their own.
    pub stream: u16,
    /// RTP sequence number.
    pub sequence: u16,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The packet.
    pub key: PacketKey,
    /// Its arrival on the receiver's clock.
    pub at: Time,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// Collects arrivals and writes reports.
pub struct Recorder {
    number: u32,
    totals: Totals,
    entries: Vec<Arrival>,
    /// Reports that were sent since the last interval, to repeat at the next.
    repeat: Vec<Vec<u8>>,
    next: Time,
    /// The time of the last report.
    last: Time,
}

impl Recorder {
    /// Creates a recorder.
    pub fn new(now: Time) -> Self {
        Self {
            number: 0,
            totals: Totals::default(),
            entries: Vec::with_capacity(ENTRIES_MAX),
            repeat: Vec::new(),
            next: now + INTERVAL,
            last: now,
        }
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Records the arrival of an RTP packet. Returns a report to send if it is full.
    pub fn record(&mut self, arrival: Arrival, payload_len: usize) -> Option<Vec<u8>> {
        self.totals.packets += 1;
        self.totals.bytes += payload_len as u64 + IP_UDP_HEADERS.as_bytes();
        self.totals.marked += u64::from(arrival.ecn == Ecn::Ce);
        let is_far = self.entries.first().is_some_and(|first| arrival.at - first.at > SPAN);
        let full = (is_far || self.entries.len() == ENTRIES_MAX).then(|| self.write(arrival.at));
        self.entries.push(arrival);
        self.repeat.extend(full.clone());
        full
    }

    /// Returns the time of the next report.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    /// Returns the reports that are due.
    pub fn poll_transmit(&mut self, now: Time) -> Vec<Vec<u8>> {
        if now < self.next {
            return Vec::new();
        }
        self.next = now + INTERVAL;
        let mut due = std::mem::take(&mut self.repeat);
        if !self.entries.is_empty() || now - self.last >= IDLE_INTERVAL {
            let report = self.write(now);
            if report.len() > HEADER {
                self.repeat.push(report.clone());
            }
            due.push(report);
        }
        due
    }

    /// Returns every report that was not sent twice, at the end of a session.
    pub fn finish(&mut self, now: Time) -> Vec<Vec<u8>> {
        self.next = now;
        let mut all = self.poll_transmit(now);
        all.append(&mut self.repeat);
        all
    }

    fn write(&mut self, now: Time) -> Vec<u8> {
        self.last = now;
        self.number += 1;
        let mut bytes = self.number.to_be_bytes().to_vec();
        for count in [self.totals.packets, self.totals.bytes, self.totals.marked] {
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        let first = self.entries.first().map_or(now, |entry| entry.at);
        bytes.extend_from_slice(&first.as_nanos().to_be_bytes());
        for Arrival { key, at, ecn } in self.entries.drain(..) {
            // The kernel's timestamps of two packets may be in the wrong order by some microseconds.
            let units = ((at - first).as_nanos() / UNIT.as_nanos()).clamp(0, u16::MAX.into());
            bytes.extend_from_slice(&(key.stream << 2 | ecn as u16).to_be_bytes());
            bytes.extend_from_slice(&key.sequence.to_be_bytes());
            bytes.extend_from_slice(&(units as u16).to_be_bytes());
        }
        bytes
    }
}

/// A report, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number, from 1.
    pub number: u32,
    /// Packets, bytes and marks so far.
    pub totals: Totals,
    /// Its arrivals.
    pub arrivals: Vec<Arrival>,
}

impl Report {
    /// Reads the body of a message; `None` if it is malformed.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (header, entries) = body.split_first_chunk::<HEADER>()?;
        let (number, rest) = header.split_first_chunk()?;
        let (counts, _) = rest.as_chunks::<8>();
        let count = |index: usize| u64::from_be_bytes(counts[index]);
        let totals = Totals { packets: count(0), bytes: count(1), marked: count(2), ..Totals::default() };
        let (entries, rest) = entries.as_chunks::<ENTRY>();
        // A reading of more than some centuries would overflow.
        let first = count(3) as i64;
        if !rest.is_empty() || entries.len() > ENTRIES_MAX || !(i64::MIN / 4..i64::MAX / 4).contains(&first) {
            return None;
        }
        let arrival = |[c0, c1, s0, s1, t0, t1]: &[u8; ENTRY]| Arrival {
            key: PacketKey { stream: u16::from_be_bytes([*c0, *c1]) >> 2, sequence: u16::from_be_bytes([*s0, *s1]) },
            at: Time::from_nanos(first + i64::from(u16::from_be_bytes([*t0, *t1])) * UNIT.as_nanos()),
            ecn: Ecn::from_bits(c1 & 3),
        };
        Some(Self { number: u32::from_be_bytes(*number), totals, arrivals: entries.iter().map(arrival).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_number::Ssrcs;
    use crate::message::SessionId;
    use proptest::prelude::*;

    fn arrival(n: u16, at: Time) -> Arrival {
        Arrival { key: PacketKey { stream: n * 31 % (1 << 14), sequence: n }, at, ecn: Ecn::from_bits((n % 4) as u8) }
    }

    #[test]
    fn every_arrival_is_reported_twice_within_two_intervals() {
        let mut recorder = Recorder::new(Time::ZERO);
        let (mut sent, mut reports) = (Vec::new(), Vec::new());
        for n in 0..1000u16 {
            let now = Time::ZERO + TimeDelta::from_micros(i64::from(n) * 301);
            sent.push(arrival(n, now));
            reports.extend(recorder.poll_transmit(now));
            reports.extend(recorder.record(arrival(n, now), 1000));
        }
        reports.extend(recorder.finish(Time::from_secs(1)));
        assert!(reports.iter().all(|report| report.len() < 1200));
        for copy in 0..2 {
            let mut seen: Vec<Arrival> = Vec::new();
            let mut numbers: Vec<u32> = Vec::new();
            for report in reports.iter().map(|bytes| Report::read(bytes).unwrap()) {
                let before = numbers.iter().filter(|number| **number == report.number).count();
                numbers.push(report.number);
                if before == copy {
                    seen.extend(report.arrivals);
                }
            }
            seen.sort_by_key(|arrival| arrival.key.sequence);
            assert_eq!(seen.len(), sent.len(), "copy {copy}");
            for (seen, sent) in seen.iter().zip(&sent) {
                assert_eq!((seen.key, seen.ecn), (sent.key, sent.ecn));
                assert!(seen.at <= sent.at && sent.at - seen.at < UNIT, "{} {}", seen.at, sent.at);
            }
        }
        let totals = Report::read(reports.last().unwrap()).unwrap().totals;
        assert_eq!((totals.packets, totals.bytes, totals.marked), (1000, 1_028_000, 250));
    }

    #[test]
    fn an_idle_receiver_reports_every_second() {
        let mut recorder = Recorder::new(Time::ZERO);
        let times: Vec<i64> =
            (0..=35).filter(|n| !recorder.poll_transmit(Time::from_millis(n * 100)).is_empty()).collect();
        assert_eq!(times, [10, 20, 30]);
    }

    proptest! {
        #[test]
        fn random_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..1500)) {
            if let Some(report) = Report::read(&body) {
                prop_assert!(report.arrivals.len() <= ENTRIES_MAX);
            }
            let _ = Ssrcs::new(SessionId([1; 8]), 2).key(&body);
        }
    }
}
