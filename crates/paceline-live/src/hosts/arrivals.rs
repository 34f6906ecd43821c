// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of arrivals: for every RTP packet its stream, sequence number, arrival time and ECN field, and for every rendered frame its
//! time, whatever the controller's own feedback is. The receiver sends them ten times per second, each twice, so that single losses do no
//! harm.
//!
//! A report has a number (4 bytes), the totals so far (packets, bytes and marked packets, 8 bytes each), the time of the first entry
//! (8 bytes, ns on the receiver's clock), the number of frames (1), and entries: frames of 13 bytes with stream (2), RTP timestamp (4), size (3),
//! frames given up before it (2) and time (2); then packets of 6 bytes with stream and ECN field (2), sequence number (2) and time (2).
//! Times are those since the first entry in units of 4 µs.

use crate::hosts::message::Totals;
use paceline_netsim::flow::IP_UDP_HEADERS;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};

/// Interval of reports while packets arrive.
pub const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// Interval of reports while none arrive.
pub const IDLE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Unit of times in entries.
const UNIT: TimeDelta = TimeDelta::from_micros(4);

/// Longest time that the entries of a report span.
const SPAN: TimeDelta = TimeDelta::from_nanos(UNIT.as_nanos() * u16::MAX as i64);

/// Length of the part before the entries.
const HEADER: usize = 4 + 3 * 8 + 8 + 1;

/// Length of the entry of a packet.
const ENTRY: usize = 6;

/// Length of the entry of a frame.
const FRAME: usize = 13;

/// Maximum length of all entries: with headers, a report has less than 1200 bytes.
const ENTRIES_LEN_MAX: usize = 1098;

/// A packet of a session ([`crate::hosts::flow_number::Ssrcs::key`]): the number of its stream and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketKey {
    /// Number of the stream, below 2^14; retransmissions are a stream of their own.
    pub stream: u16,
    pub sequence: u16,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub key: PacketKey,
    /// Its arrival on the receiver's clock.
    pub at: Time,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// A frame that was rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderedFrame {
    /// Number of its stream, as of its packets.
    pub stream: u16,
    pub timestamp: u32,
    /// Its encoded size, at most 16 MB.
    pub size: DataSize,
    /// Number of frames that were given up since the previous one.
    pub dropped: u16,
    /// The time at which it was rendered, on the receiver's clock.
    pub at: Time,
}

/// Collects arrivals and frames, and writes reports.
pub struct Recorder {
    number: u32,
    totals: Totals,
    entries: Vec<Arrival>,
    frames: Vec<RenderedFrame>,
    /// Reports that were sent since the last interval, to repeat at the next.
    repeat: Vec<Vec<u8>>,
    next: Time,
    /// The time of the last report.
    last: Time,
}

impl Recorder {
    pub fn new(now: Time) -> Self {
        Self {
            number: 0,
            totals: Totals::default(),
            entries: Vec::with_capacity(ENTRIES_LEN_MAX / ENTRY),
            frames: Vec::new(),
            repeat: Vec::new(),
            next: now + INTERVAL,
            last: now,
        }
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Records the arrival of an RTP packet. Returns a report to send if it is full.
    pub fn record(&mut self, arrival: Arrival, payload_len: usize) -> Option<Vec<u8>> {
        self.totals.packets += 1;
        self.totals.bytes += payload_len as u64 + IP_UDP_HEADERS.as_bytes();
        self.totals.marked += u64::from(arrival.ecn == Ecn::Ce);
        // A frame that this packet completes is in the same report.
        let full = self.make_room(arrival.at, ENTRY + FRAME);
        self.entries.push(arrival);
        full
    }

    /// Records a rendered frame. Returns a report to send if it is full.
    pub fn record_frame(&mut self, frame: RenderedFrame) -> Option<Vec<u8>> {
        let full = self.make_room(frame.at, FRAME);
        self.frames.push(frame);
        full
    }

    /// Returns a report if there is no room for so many bytes at this time.
    fn make_room(&mut self, at: Time, len: usize) -> Option<Vec<u8>> {
        let (first, last) = self.span(at);
        let is_far = last - first > SPAN;
        let used = ENTRY * self.entries.len() + FRAME * self.frames.len();
        let full = (is_far || used + len > ENTRIES_LEN_MAX).then(|| self.write(at));
        self.repeat.extend(full.clone());
        full
    }

    /// Returns the times of the first and the last entry and of this one. Those of frames and of packets are each in order, but for some
    /// microseconds.
    fn span(&self, at: Time) -> (Time, Time) {
        let packets = self.entries.first().into_iter().chain(self.entries.last()).map(|entry| entry.at);
        let frames = self.frames.first().into_iter().chain(self.frames.last()).map(|frame| frame.at);
        packets.chain(frames).fold((at, at), |(first, last), at| (first.min(at), last.max(at)))
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
        if !(self.entries.is_empty() && self.frames.is_empty()) || now - self.last >= IDLE_INTERVAL {
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
        let (first, _) = self.span(now);
        bytes.extend_from_slice(&first.as_nanos().to_be_bytes());
        bytes.push(self.frames.len() as u8);
        // The kernel's timestamps of two packets may be in the wrong order by some microseconds.
        let units = |at: Time| ((at - first).as_nanos() / UNIT.as_nanos()).clamp(0, u16::MAX.into()) as u16;
        for RenderedFrame { stream, timestamp, size, dropped, at } in self.frames.drain(..) {
            bytes.extend_from_slice(&stream.to_be_bytes());
            bytes.extend_from_slice(&timestamp.to_be_bytes());
            bytes.extend_from_slice(&(size.as_bytes().min(0xFF_FFFF) as u32).to_be_bytes()[1..]);
            bytes.extend_from_slice(&dropped.to_be_bytes());
            bytes.extend_from_slice(&units(at).to_be_bytes());
        }
        for Arrival { key, at, ecn } in self.entries.drain(..) {
            bytes.extend_from_slice(&(key.stream << 2 | ecn as u16).to_be_bytes());
            bytes.extend_from_slice(&key.sequence.to_be_bytes());
            bytes.extend_from_slice(&units(at).to_be_bytes());
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
    pub arrivals: Vec<Arrival>,
    pub frames: Vec<RenderedFrame>,
}

impl Report {
    /// Reads the body of a message; `None` if it is malformed.
    pub fn read(body: &[u8]) -> Option<Self> {
        let (header, entries) = body.split_first_chunk::<HEADER>()?;
        let (number, rest) = header.split_first_chunk()?;
        let (counts, _) = rest.as_chunks::<8>();
        let count = |index: usize| u64::from_be_bytes(counts[index]);
        let totals = Totals { packets: count(0), bytes: count(1), marked: count(2), ..Totals::default() };
        let (frames, entries) = entries.split_at_checked(FRAME * usize::from(header[HEADER - 1]))?;
        let (entries, rest) = entries.as_chunks::<ENTRY>();
        // A reading of more than some centuries would overflow.
        let first = count(3) as i64;
        if !rest.is_empty()
            || frames.len() + ENTRY * entries.len() > ENTRIES_LEN_MAX
            || !(i64::MIN / 4..i64::MAX / 4).contains(&first)
        {
            return None;
        }
        let at = |units: [u8; 2]| Time::from_nanos(first + i64::from(u16::from_be_bytes(units)) * UNIT.as_nanos());
        let arrival = |[c0, c1, s0, s1, t0, t1]: &[u8; ENTRY]| Arrival {
            key: PacketKey { stream: u16::from_be_bytes([*c0, *c1]) >> 2, sequence: u16::from_be_bytes([*s0, *s1]) },
            at: at([*t0, *t1]),
            ecn: Ecn::from_bits(c1 & 3),
        };
        let frame = |[s0, s1, r0, r1, r2, r3, b0, b1, b2, d0, d1, t0, t1]: &[u8; FRAME]| RenderedFrame {
            stream: u16::from_be_bytes([*s0, *s1]),
            timestamp: u32::from_be_bytes([*r0, *r1, *r2, *r3]),
            size: DataSize::from_bytes(u32::from_be_bytes([0, *b0, *b1, *b2]).into()),
            dropped: u16::from_be_bytes([*d0, *d1]),
            at: at([*t0, *t1]),
        };
        Some(Self {
            number: u32::from_be_bytes(*number),
            totals,
            arrivals: entries.iter().map(arrival).collect(),
            frames: frames.as_chunks::<FRAME>().0.iter().map(frame).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::flow_number::Ssrcs;
    use crate::hosts::message::SessionId;
    use proptest::prelude::*;

    fn arrival(n: u16, at: Time) -> Arrival {
        Arrival { key: PacketKey { stream: n * 31 % (1 << 14), sequence: n }, at, ecn: Ecn::from_bits((n % 4) as u8) }
    }

    fn frame(n: u16, at: Time) -> RenderedFrame {
        let size = DataSize::from_bytes(u64::from(n) * 16_000);
        RenderedFrame { stream: n, timestamp: u32::from(n) << 17, size, dropped: n % 3, at }
    }

    #[test]
    fn every_arrival_and_frame_is_reported_twice_within_two_intervals() {
        let mut recorder = Recorder::new(Time::ZERO);
        let (mut sent, mut rendered, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..1000u16 {
            let now = Time::ZERO + TimeDelta::from_micros(i64::from(n) * 301);
            sent.push(arrival(n, now));
            reports.extend(recorder.poll_transmit(now));
            reports.extend(recorder.record(arrival(n, now), 1000));
            // Sometimes one packet completes several frames.
            for frame in (0..n % 5 / 2 * (n % 7)).map(|_| frame(n, now)) {
                rendered.push(frame);
                reports.extend(recorder.record_frame(frame));
            }
        }
        assert!(rendered.len() > 900);
        reports.extend(recorder.finish(Time::from_secs(1)));
        assert!(reports.iter().all(|report| report.len() < 1200));
        for copy in 0..2 {
            let (mut seen, mut frames) = (Vec::<Arrival>::new(), Vec::<RenderedFrame>::new());
            let mut numbers: Vec<u32> = Vec::new();
            for report in reports.iter().map(|bytes| Report::read(bytes).unwrap()) {
                let before = numbers.iter().filter(|number| **number == report.number).count();
                numbers.push(report.number);
                if before == copy {
                    seen.extend(report.arrivals);
                    frames.extend(report.frames);
                }
            }
            frames.sort_by_key(|frame| frame.stream);
            assert_eq!(frames.len(), rendered.len(), "copy {copy}");
            for (seen, sent) in frames.iter().zip(&rendered) {
                assert_eq!(RenderedFrame { at: sent.at, ..*seen }, *sent);
                assert!(seen.at <= sent.at && sent.at - seen.at < UNIT, "{} {}", seen.at, sent.at);
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
                prop_assert!(report.arrivals.len() * ENTRY + report.frames.len() * FRAME <= ENTRIES_LEN_MAX);
            }
            let _ = Ssrcs::new(SessionId([1; 8]), [1, 2]).key(&body);
        }
    }
}
