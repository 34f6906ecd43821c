// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions): records which packets arrived, and when,
//! until they are reported.
//!
//! Reports are contiguous: each begins where the one before ended, so that every packet up to the highest received
//! number is reported once, as received or as missing. A packet that arrives after it was reported missing is reported
//! again, in a report of its own. If a number arrives more than once, the first arrival counts.

use super::LATE_MAX;
use super::report_interval::ReportInterval;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use paceline_units::{DataSize, RemoteTime, TimeDelta};
use paceline_wire::{CompoundWriter, TWCC_TICK};
use paceline_wire::{FIRST_CYCLE, unwrap_after};

/// Number of pending statuses at which a report is sent early: they fill the real bytes of a datagram.
const REPORT_EARLY: usize = 150;
/// Size of a report as libwebrtc estimates it: headers of IP, UDP and SRTP, and 30 bytes.
const REPORT_SIZE: DataSize = DataSize::from_bytes(20 + 8 + 10 + 30);

#[derive(Clone, Debug)]
pub(crate) struct TransportFeedbackBuilder {
    pub(super) interval: ReportInterval,
    /// Unwrapped number of `arrivals[0]`: all numbers below were reported. `None` before the first packet.
    base: Option<u64>,
    /// Arrival times in ticks, from `base` to the highest received number.
    arrivals: Vec<Option<i64>>,
    /// Numbers and arrivals of packets that arrived after they had been reported missing.
    late: VecDeque<(u64, [Option<i64>; 1])>,
    /// Whether each of the last [`LATE_MAX`] numbers was received, by number modulo `LATE_MAX`.
    received: Box<[bool; LATE_MAX as usize]>,
    count: u8,
}

impl TransportFeedbackBuilder {
    pub fn new(interval: TimeDelta, longest: TimeDelta) -> Self {
        Self {
            interval: ReportInterval::new(interval, longest),
            base: None,
            arrivals: Vec::with_capacity(2 * REPORT_EARLY),
            late: VecDeque::new(),
            received: Box::new([false; LATE_MAX as usize]),
            count: 0,
        }
    }

    /// Records the arrival of a packet with this transport-wide sequence number.
    pub fn handle_packet(&mut self, now: RemoteTime, number: u16, size: DataSize) {
        self.interval.handle_packet(now, size);
        let base = *self.base.get_or_insert(number as u64 + FIRST_CYCLE);
        let end = base + self.arrivals.len() as u64;
        let sequence = unwrap_after(number, end, LATE_MAX);
        for skipped in end.max(sequence.saturating_sub(LATE_MAX))..=sequence {
            self.received[(skipped % LATE_MAX) as usize] = false;
        }
        if core::mem::replace(&mut self.received[(sequence % LATE_MAX) as usize], true) {
            return;
        }
        if self.is_empty() {
            self.interval.start(now);
        }
        let ticks = Some(now.as_nanos().div_euclid(TWCC_TICK.as_nanos()));
        match sequence.checked_sub(base) {
            None => self.late.push_back((sequence, [ticks])),
            Some(index) => {
                let index = index as usize;
                self.arrivals.resize(self.arrivals.len().max(index + 1), None);
                self.arrivals[index] = ticks;
            }
        }
        if self.arrivals.len() >= REPORT_EARLY {
            self.interval.expire(now);
        }
    }

    /// Writes the next report that is due. Returns whether one was written.
    pub fn write(&mut self, now: RemoteTime, own: u32, media_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        let Some((base, count, arrivals)) = self.poll(now) else { return false };
        let covered = writer.transport_feedback(own, media_ssrc, base, count, arrivals).unwrap_or(arrivals.len());
        self.handle_report(now, covered);
        !writer.is_empty()
    }

    /// Returns the report that is due: base number, feedback packet count, and arrivals in ticks.
    fn poll(&self, now: RemoteTime) -> Option<(u16, u8, &[Option<i64>])> {
        if self.is_empty() || !self.interval.is_due(now) {
            return None;
        }
        Some(match self.late.front() {
            Some((sequence, arrival)) => (*sequence as u16, self.count, arrival),
            None => (self.base? as u16, self.count, &self.arrivals),
        })
    }

    /// Handles a report that covered this many packets. The next report begins with the remaining ones, and is due at
    /// once.
    fn handle_report(&mut self, now: RemoteTime, covered: usize) {
        self.count = self.count.wrapping_add(1);
        if self.late.pop_front().is_none() {
            self.arrivals.drain(..covered);
            self.base = self.base.map(|base| base + covered as u64);
        }
        if self.is_empty() {
            self.interval.handle_report(now, REPORT_SIZE);
        }
    }

    /// Returns the time at which the next report is due.
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        self.interval.deadline().filter(|_| !self.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.late.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{INTERVAL, LONGEST, SIZE, at, mean_interval};
    use super::*;

    fn builder() -> TransportFeedbackBuilder {
        TransportFeedbackBuilder::new(INTERVAL, INTERVAL)
    }
    /// All reports that are due: base, count, arrivals in ms.
    fn reports(builder: &mut TransportFeedbackBuilder, now: RemoteTime) -> Vec<(u16, u8, Vec<Option<i64>>)> {
        let mut out = Vec::new();
        while let Some((base, count, arrivals)) = builder.poll(now) {
            let arrivals: Vec<Option<i64>> = arrivals.iter().map(|a| a.map(|ticks| ticks / 4)).collect();
            let covered = arrivals.len();
            out.push((base, count, arrivals));
            builder.handle_report(now, covered);
        }
        out
    }

    #[test]
    fn first_arrival_counts_and_late_packets_are_reported_again() {
        let mut r = builder();
        assert_eq!(r.poll_timeout(), None);
        for (ms, number) in [(0, 10), (1, 11), (2, 13), (3, 11), (4, 12)] {
            r.handle_packet(at(ms), number, SIZE);
        }
        assert_eq!(r.poll_timeout(), Some(at(50)));
        assert_eq!(reports(&mut r, at(49)), []);
        assert_eq!(reports(&mut r, at(50)), [(10, 0, vec![Some(0), Some(1), Some(4), Some(2)])]);
        r.handle_packet(at(60), 16, SIZE);
        assert_eq!(
            reports(&mut r, at(100)),
            [(14, 1, vec![None, None, Some(60)])],
            "begins where the last report ended"
        );
        for (ms, number) in [(110, 15), (111, 15), (112, 16), (113, 10), (114, 17)] {
            r.handle_packet(at(ms), number, SIZE);
        }
        assert_eq!(reports(&mut r, at(150)), [(15, 2, vec![Some(110)]), (17, 3, vec![Some(114)])]);
        assert_eq!(r.poll_timeout(), None);
    }

    #[test]
    fn reports_take_at_most_five_percent() {
        // A report waits for the first packet after it is due.
        let mut r = TransportFeedbackBuilder::new(INTERVAL, LONGEST);
        let mean = mean_interval(
            &mut r,
            |r, now, number| r.handle_packet(now, number, SIZE),
            TransportFeedbackBuilder::poll_timeout,
            |r, now| assert_eq!(reports(r, now).len(), 1),
        );
        assert!((105.0..=125.0).contains(&mean), "{mean} ms");
    }

    #[test]
    fn packets_reordered_before_the_first_are_reported_on_their_own() {
        let mut r = builder();
        r.handle_packet(at(0), 1, SIZE);
        r.handle_packet(at(1), 0, SIZE);
        assert_eq!(reports(&mut r, at(50)), [(0, 0, vec![Some(1)]), (1, 1, vec![Some(0)])]);
    }

    #[test]
    fn a_wide_gap_loses_no_received_packet() {
        for gap in [199, 200, 201, 5000, 40_000, 60_000u16] {
            let mut r = builder();
            r.handle_packet(at(0), 65_000, SIZE);
            r.handle_packet(at(1), 65_000u16.wrapping_add(gap), SIZE);
            let reports = reports(&mut r, at(50));
            let [(65_000, 0, arrivals)] = &reports[..] else { panic!("{gap}: {} reports", reports.len()) };
            assert_eq!(arrivals.len(), gap as usize + 1);
            assert_eq!((arrivals[0], arrivals[gap as usize]), (Some(0), Some(1)));
            assert!(arrivals[1..gap as usize].iter().all(Option::is_none));
            r.handle_packet(at(60), 65_001u16.wrapping_add(gap), SIZE);
            assert_eq!(r.poll(at(100)).unwrap().0, 65_001u16.wrapping_add(gap));
        }
    }

    #[test]
    fn packets_that_do_not_fit_are_due_at_once() {
        let mut r = builder();
        for n in 0..20 {
            r.handle_packet(at(n), n as u16, SIZE);
        }
        assert_eq!(r.poll(at(50)).unwrap().2.len(), 20);
        r.handle_report(at(50), 12);
        let (base, count, arrivals) = r.poll(at(50)).unwrap();
        assert_eq!((base, count, arrivals.len()), (12, 1, 8));
    }

    #[test]
    fn numbers_wrap_and_high_rates_are_reported_early() {
        let mut r = builder();
        let (mut seen, mut early) = (0u32, 0);
        for n in 0..200_000u32 {
            r.handle_packet(RemoteTime::from_nanos(n as i64 * 100_000), n as u16, SIZE); // 10,000 a second
            for (base, _, arrivals) in reports(&mut r, RemoteTime::from_nanos(n as i64 * 100_000)) {
                assert_eq!(base, seen as u16);
                assert!(arrivals.iter().all(Option::is_some));
                seen += arrivals.len() as u32;
                early += u32::from(arrivals.len() == REPORT_EARLY);
            }
        }
        assert!((199_850..=200_000).contains(&seen) && early > 1300, "{seen}, {early}");
    }
}
