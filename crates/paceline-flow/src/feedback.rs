//! The receiver's record for transport-wide feedback: which packets came, and when, until they are reported.

use paceline_units::{RemoteTime, TimeDelta};
use paceline_wire::TICK;

/// Most statuses in one report: they must fit a datagram's head.
const REPORT_MAX: usize = 200;

/// Gathers arrivals and cuts them into reports.
#[derive(Debug)]
pub(crate) struct FeedbackRecord {
    interval: TimeDelta,
    next: RemoteTime,
    /// Unwrapped number of `arrivals[0]`.
    base: u64,
    arrivals: Vec<Option<i64>>,
    /// Highest number seen.
    highest: Option<u64>,
    count: u8,
}

impl FeedbackRecord {
    pub fn new(interval: TimeDelta) -> Self {
        let arrivals = Vec::with_capacity(REPORT_MAX);
        Self { interval, next: RemoteTime::MAX, base: 0, arrivals, highest: None, count: 0 }
    }

    /// A packet with this transport-wide number came. The first arrival of a number counts; one that was reported
    /// missing is reported again on its own.
    pub fn handle_packet(&mut self, now: RemoteTime, number: u16) {
        let sequence = match self.highest {
            None => number as u64 + (1 << 16),
            Some(highest) => highest.wrapping_add_signed(number.wrapping_sub(highest as u16) as i16 as i64),
        };
        if self.arrivals.is_empty() {
            self.base = sequence;
            if self.next == RemoteTime::MAX || self.next < now {
                self.next = now + self.interval;
            }
        }
        if sequence < self.base {
            let room = REPORT_MAX.saturating_sub(self.arrivals.len()) as u64;
            let shift = self.base - sequence;
            if shift > room {
                return; // too late to be of use
            }
            self.arrivals.splice(0..0, core::iter::repeat_n(None, shift as usize));
            self.base = sequence;
        }
        let index = (sequence - self.base) as usize;
        if index >= REPORT_MAX {
            // A gap wider than a report: what was gathered before it is superseded by silence.
            self.arrivals.clear();
            self.base = sequence;
            self.arrivals.push(None);
        } else if index >= self.arrivals.len() {
            self.arrivals.resize(index + 1, None);
        }
        let index = (sequence - self.base) as usize;
        self.arrivals[index].get_or_insert(now.as_nanos().div_euclid(TICK.as_nanos()));
        self.highest = Some(self.highest.map_or(sequence, |h| h.max(sequence)));
        if self.arrivals.len() * 4 >= REPORT_MAX * 3 {
            self.next = now; // report early rather than lose some
        }
    }

    /// The report that is due: base number, count, and arrivals in ticks. Tell [`reported`](Self::reported) how far
    /// it went.
    pub fn poll(&mut self, now: RemoteTime) -> Option<(u16, u8, &[Option<i64>])> {
        if self.arrivals.is_empty() || now < self.next {
            return None;
        }
        Some((self.base as u16, self.count, &self.arrivals))
    }

    /// A report covered this many packets. What it left begins the next, at once.
    pub fn reported(&mut self, now: RemoteTime, covered: usize) {
        self.count = self.count.wrapping_add(1);
        self.arrivals.drain(..covered);
        self.base += covered as u64;
        if self.arrivals.is_empty() {
            self.next = now + self.interval;
        }
    }

    pub fn poll_timeout(&self) -> RemoteTime {
        if self.arrivals.is_empty() { RemoteTime::MAX } else { self.next }
    }
}
