// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval between per-packet reports: the interval that the controller requires, or longer where reports would
//! take more than 5 % of the rate that they report on, up to the longest interval (libwebrtc's `RemoteEstimatorProxy`).

use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// Share of the rate that reports may take.
const REPORT_SHARE: f64 = 0.05;

#[derive(Clone, Debug)]
pub(in crate::receiver) struct ReportInterval {
    /// Shortest and longest interval.
    limits: (TimeDelta, TimeDelta),
    current: TimeDelta,
    next: Option<RemoteTime>,
    /// Bytes received since the last complete report, and the time of that report.
    bytes: DataSize,
    since: Option<RemoteTime>,
    /// Whether a full report is due before the interval is over.
    sends_early: bool,
}

impl ReportInterval {
    pub fn new(shortest: TimeDelta, longest: TimeDelta) -> Self {
        Self {
            limits: (shortest, longest),
            current: shortest,
            next: None,
            bytes: DataSize::ZERO,
            since: None,
            sends_early: true,
        }
    }

    /// Makes no report due before the interval is over.
    #[cfg(feature = "rtp")]
    pub fn never_send_early(&mut self) {
        self.sends_early = false;
    }

    /// Counts a received packet, whether or not it will be reported.
    pub fn handle_packet(&mut self, now: RemoteTime, size: DataSize) {
        self.bytes += size;
        self.since.get_or_insert(now);
    }

    /// Schedules the next report when the first packet to report arrives. An overdue report waits for one interval.
    pub fn start(&mut self, now: RemoteTime) {
        if self.next.is_none_or(|next| next < now) {
            self.next = Some(now + self.limits.0);
        }
    }

    /// Makes the report due now, because it is full.
    pub fn expire(&mut self, now: RemoteTime) {
        if self.sends_early {
            self.next = Some(now);
        }
    }

    /// Handles a complete report of `size` bytes. After a report that only repeats, the interval stays as it is,
    /// because there is no new rate.
    pub fn handle_report(&mut self, now: RemoteTime, size: DataSize) {
        if self.bytes != DataSize::ZERO {
            let rate = Rate::from_size_and_time(self.bytes, now - self.since.unwrap_or(now));
            self.current = interval(rate, size, self.limits);
            (self.bytes, self.since) = (DataSize::ZERO, Some(now));
        }
        self.next = Some(now + self.current);
    }

    /// Returns the time at which the next report is due, provided that there is something to report.
    pub fn deadline(&self) -> Option<RemoteTime> {
        self.next
    }

    /// Returns whether a report is due at `now`, provided that there is something to report.
    pub fn is_due(&self, now: RemoteTime) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

/// Returns the shortest interval at which reports of `size` bytes take no more than their share of `rate`.
fn interval(rate: Rate, size: DataSize, (shortest, longest): (TimeDelta, TimeDelta)) -> TimeDelta {
    let share = rate.scale(REPORT_SHARE).max(Rate::from_bps(1));
    (size / share).min(longest).max(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are rounded to the millisecond.
    #[test]
    fn reports_take_at_most_five_percent() {
        let limits = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
        let size = DataSize::from_bytes(68);
        let ms = |kbps| (interval(Rate::from_kbps(kbps), size, limits).as_millis_f64() + 0.5).floor();
        assert_eq!([300, 150, 100, 30, 0].map(ms), [50.0, 73.0, 109.0, 250.0, 250.0]);
    }
}
