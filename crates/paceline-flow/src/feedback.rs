//! The receiver's record for transport-wide feedback: which packets came, and when, until they are reported.
//!
//! Reports follow each other without a hole: each begins where the one before ended, so that every packet up to the
//! highest that came is reported once, as arrived or as missing. A packet that comes after it was reported missing is
//! reported again, on its own. The first arrival of a number counts.

use crate::cadence::Cadence;
use paceline_units::{DataSize, RemoteTime, TimeDelta};
use paceline_wire::TICK;
use std::collections::VecDeque;

/// Once this many statuses wait, a report goes out before its time: they fill a datagram's head.
const REPORT_EARLY: usize = 150;
/// How far behind the highest a number may be: 16 bits wrap, so anything further back is taken for one ahead, after
/// an outage.
const LATE_MAX: u64 = 1024;
/// A report as libwebrtc reckons it: headers of IP, UDP and SRTP, and 30 bytes.
const REPORT_SIZE: DataSize = DataSize::from_bytes(20 + 8 + 10 + 30);

/// Gathers arrivals and cuts them into reports.
#[derive(Debug)]
pub(crate) struct FeedbackRecord {
    cadence: Cadence,
    /// Unwrapped number of `arrivals[0]`: all below were reported. `None` before the first packet.
    base: Option<u64>,
    /// In ticks, from `base` to the highest number that came.
    arrivals: Vec<Option<i64>>,
    /// Numbers and arrivals of packets that came after they had been reported missing.
    late: VecDeque<(u64, [Option<i64>; 1])>,
    /// Whether each of the last [`LATE_MAX`] numbers came, by number modulo that.
    came: Box<[bool; LATE_MAX as usize]>,
    count: u8,
}

impl FeedbackRecord {
    pub fn new(interval: TimeDelta, longest: TimeDelta) -> Self {
        Self {
            cadence: Cadence::new(interval, longest),
            base: None,
            arrivals: Vec::with_capacity(2 * REPORT_EARLY),
            late: VecDeque::new(),
            came: Box::new([false; LATE_MAX as usize]),
            count: 0,
        }
    }

    /// A packet with this transport-wide number came.
    pub fn handle_packet(&mut self, now: RemoteTime, number: u16, size: DataSize) {
        self.cadence.handle_packet(now, size);
        // One lap up, so that packets reordered before the first have a place.
        let base = *self.base.get_or_insert(number as u64 + (1 << 16));
        let end = base + self.arrivals.len() as u64;
        let sequence = unwrap_after(number, end, LATE_MAX);
        for skipped in end.max(sequence.saturating_sub(LATE_MAX))..=sequence {
            self.came[(skipped % LATE_MAX) as usize] = false;
        }
        if core::mem::replace(&mut self.came[(sequence % LATE_MAX) as usize], true) {
            return;
        }
        if self.is_empty() {
            self.cadence.begin(now);
        }
        let ticks = Some(now.as_nanos().div_euclid(TICK.as_nanos()));
        match sequence.checked_sub(base) {
            None => self.late.push_back((sequence, [ticks])),
            Some(index) => {
                let index = index as usize;
                self.arrivals.resize(self.arrivals.len().max(index + 1), None);
                self.arrivals[index] = ticks;
            }
        }
        if self.arrivals.len() >= REPORT_EARLY {
            self.cadence.hurry(now); // report early rather than much at once
        }
    }

    /// The report that is due: base number, count, and arrivals in ticks. Tell [`reported`](Self::reported) how far
    /// it went.
    pub fn poll(&mut self, now: RemoteTime) -> Option<(u16, u8, &[Option<i64>])> {
        if self.is_empty() || now < self.cadence.next() {
            return None;
        }
        Some(match self.late.front() {
            Some((sequence, arrival)) => (*sequence as u16, self.count, arrival),
            None => (self.base? as u16, self.count, &self.arrivals),
        })
    }

    /// A report covered this many packets. What it left begins the next, at once.
    pub fn reported(&mut self, now: RemoteTime, covered: usize) {
        self.count = self.count.wrapping_add(1);
        if self.late.pop_front().is_none() {
            self.arrivals.drain(..covered);
            self.base = self.base.map(|base| base + covered as u64);
        }
        if self.is_empty() {
            self.cadence.reported(now, REPORT_SIZE);
        }
    }

    pub fn poll_timeout(&self) -> RemoteTime {
        if self.is_empty() { RemoteTime::MAX } else { self.cadence.next() }
    }

    fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.late.is_empty()
    }
}

/// The number at most `late` below `end` (one past the highest so far) whose low 16 bits are these, or the next one
/// above.
pub(crate) fn unwrap_after(number: u16, end: u64, late: u64) -> u64 {
    let lowest = end.saturating_sub(late);
    lowest + number.wrapping_sub(lowest as u16) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
    const SIZE: DataSize = DataSize::from_bytes(1000);

    fn record() -> FeedbackRecord {
        FeedbackRecord::new(INTERVAL, INTERVAL)
    }
    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(ms)
    }
    /// All reports that are due: base, count, arrivals in ms.
    fn reports(record: &mut FeedbackRecord, now: RemoteTime) -> Vec<(u16, u8, Vec<Option<i64>>)> {
        let mut out = Vec::new();
        while let Some((base, count, arrivals)) = record.poll(now) {
            let arrivals: Vec<Option<i64>> = arrivals.iter().map(|a| a.map(|ticks| ticks / 4)).collect();
            let covered = arrivals.len();
            out.push((base, count, arrivals));
            record.reported(now, covered);
        }
        out
    }

    #[test]
    fn the_first_arrival_counts_and_a_late_packet_is_reported_again() {
        let mut r = record();
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
        for (ms, number) in [(0, 10), (1, 11), (2, 13), (3, 11), (4, 12)] {
            r.handle_packet(at(ms), number, SIZE);
        }
        assert_eq!(r.poll_timeout(), at(50));
        assert_eq!(reports(&mut r, at(49)), []);
        assert_eq!(reports(&mut r, at(50)), [(10, 0, vec![Some(0), Some(1), Some(4), Some(2)])]);
        r.handle_packet(at(60), 16, SIZE);
        assert_eq!(reports(&mut r, at(100)), [(14, 1, vec![None, None, Some(60)])], "from where the last ended");
        for (ms, number) in [(110, 15), (111, 15), (112, 16), (113, 10), (114, 17)] {
            r.handle_packet(at(ms), number, SIZE);
        }
        assert_eq!(reports(&mut r, at(150)), [(15, 2, vec![Some(110)]), (17, 3, vec![Some(114)])]);
        assert_eq!(r.poll_timeout(), RemoteTime::MAX);
    }

    #[test]
    fn reports_take_a_twentieth_at_most() {
        // 1000 bytes each 80 ms are 100 kbit/s. A report waits for the first packet after it is due.
        let mut r = FeedbackRecord::new(INTERVAL, TimeDelta::from_millis(250));
        let mut due = Vec::new();
        for n in 0..1000 {
            r.handle_packet(at(80 * n), n as u16, SIZE);
            while r.poll_timeout() < at(80 * (n + 1)) {
                let now = r.poll_timeout();
                due.push(now);
                let covered = r.poll(now).unwrap().2.len();
                r.reported(now, covered);
            }
        }
        let mean = (due[500] - due[100]).as_millis_f64() / 400.0;
        assert!((105.0..=125.0).contains(&mean), "{mean} ms");
    }

    #[test]
    fn a_packet_that_the_first_overtook_is_reported_on_its_own() {
        let mut r = record();
        r.handle_packet(at(0), 1, SIZE);
        r.handle_packet(at(1), 0, SIZE);
        assert_eq!(reports(&mut r, at(50)), [(0, 0, vec![Some(1)]), (1, 1, vec![Some(0)])]);
    }

    #[test]
    fn a_wide_gap_loses_nothing_that_came() {
        for gap in [199, 200, 201, 5000, 40_000, 60_000u16] {
            let mut r = record();
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
    fn what_did_not_fit_follows_at_once() {
        let mut r = record();
        for n in 0..20 {
            r.handle_packet(at(n), n as u16, SIZE);
        }
        assert_eq!(r.poll(at(50)).unwrap().2.len(), 20);
        r.reported(at(50), 12);
        let (base, count, arrivals) = r.poll(at(50)).unwrap();
        assert_eq!((base, count, arrivals.len()), (12, 1, 8));
    }

    #[test]
    fn numbers_wrap_and_much_is_reported_early() {
        let mut r = record();
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
