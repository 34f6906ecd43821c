//! When per-packet reports go out: an interval apart, or further where they would take more than a twentieth of the rate
//! that they report on, as far as their longest interval allows (libwebrtc's `RemoteEstimatorProxy`).

use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// How much of the rate reports may take.
const REPORT_SHARE: f64 = 0.05;

/// The time of the next report.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// Shortest and longest interval.
    interval: (TimeDelta, TimeDelta),
    /// The interval before the next report.
    current: TimeDelta,
    next: RemoteTime,
    /// What came since the last report was complete, and when that was.
    bytes: DataSize,
    since: Option<RemoteTime>,
}

impl Cadence {
    pub fn new(shortest: TimeDelta, longest: TimeDelta) -> Self {
        Self {
            interval: (shortest, longest),
            current: shortest,
            next: RemoteTime::MAX,
            bytes: DataSize::ZERO,
            since: None,
        }
    }

    /// A packet came, whatever it is worth telling.
    pub fn handle_packet(&mut self, now: RemoteTime, size: DataSize) {
        self.bytes += size;
        self.since.get_or_insert(now);
    }

    /// There was nothing to report, and now there is: a report that was due before waits for its interval.
    pub fn begin(&mut self, now: RemoteTime) {
        if self.next == RemoteTime::MAX || self.next < now {
            self.next = now + self.interval.0;
        }
    }

    /// Report now.
    pub fn hurry(&mut self, now: RemoteTime) {
        self.next = now;
    }

    /// All that there was is reported, in so many bytes. A report that only repeats waits as long as the one before: of
    /// the rate there is nothing to learn.
    pub fn reported(&mut self, now: RemoteTime, size: DataSize) {
        if self.bytes != DataSize::ZERO {
            let rate = Rate::of(self.bytes, now - self.since.unwrap_or(now));
            self.current = interval(rate, size, self.interval);
            (self.bytes, self.since) = (DataSize::ZERO, Some(now));
        }
        self.next = now + self.current;
    }

    /// When the next report is due, if there is something to report.
    pub fn next(&self) -> RemoteTime {
        self.next
    }
}

/// The shortest interval at which reports of this size take no more than their share of `rate`.
fn interval(rate: Rate, size: DataSize, (shortest, longest): (TimeDelta, TimeDelta)) -> TimeDelta {
    let spare = rate.scale(REPORT_SHARE).max(Rate::from_bps(1));
    (size / spare).min(longest).max(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V4.5, which rounds to the millisecond.
    #[test]
    fn reports_take_a_twentieth_at_most() {
        let limits = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
        let size = DataSize::from_bytes(68);
        let ms = |kbps| (interval(Rate::from_kbps(kbps), size, limits).as_millis_f64() + 0.5).floor();
        assert_eq!([300, 150, 100, 30, 0].map(ms), [50.0, 73.0, 109.0, 250.0, 250.0]);
    }
}
