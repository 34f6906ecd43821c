// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval between RTCP reports (RFC 3550, section 6.3 and appendix A.7) in a session of two members.

use paceline_units::{DataSize, RandomStream, Rate, TimeDelta};

/// Parameters of the RTCP report interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtcpTiming {
    /// The smallest deterministic interval: 5 s in RFC 3550, 1 s for video in WebRTC endpoints.
    pub min_interval: TimeDelta,
    /// Session bandwidth. RTCP may use 5 % of it.
    pub session: Rate,
}

/// `e - 3/2`, which compensates for the bias of timer reconsideration (RFC 3550, section 6.3.1).
const COMPENSATION: f64 = core::f64::consts::E - 1.5;
const RTCP_SHARE: f64 = 0.05;
const MEMBERS: f64 = 2.0;

#[derive(Debug)]
pub(crate) struct RtcpTimer {
    timing: RtcpTiming,
    random: RandomStream,
    mean_size: f64,
    sent_any: bool,
}

impl RtcpTimer {
    pub fn new(timing: RtcpTiming, random: RandomStream) -> Self {
        Self { timing, random, mean_size: 100.0, sent_any: false }
    }

    /// Returns the time until the next report, after a report of size `sent`, or at the start of the session (`None`).
    pub fn next_interval(&mut self, sent: Option<DataSize>) -> TimeDelta {
        if let Some(size) = sent {
            self.mean_size += (size.as_bytes() as f64 - self.mean_size) / 16.0;
            self.sent_any = true;
        }
        let min = if self.sent_any { self.timing.min_interval } else { self.timing.min_interval / 2 };
        let bandwidth = self.timing.session.as_bps_f64() * RTCP_SHARE / 8.0;
        let by_bandwidth = TimeDelta::from_secs_f64(self.mean_size * MEMBERS / bandwidth);
        // Timer reconsideration (section 6.3.6): when the timer expires, the interval is drawn again, and the report is
        // sent only if the new interval is not longer.
        let interval = min.max(by_bandwidth);
        let mut draw = || interval.scale(self.random.uniform(0.5, 1.5) / COMPENSATION);
        let mut due = draw();
        loop {
            let again = draw();
            if again <= due {
                return due;
            }
            due = again;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn interval_is_at_least_the_minimum_and_bounded_by_bandwidth() {
        let mean = |session: Rate| {
            let timing = RtcpTiming { min_interval: TimeDelta::from_secs(1), session };
            let mut timer = RtcpTimer::new(timing, RandomStreams::new(1).stream("rtcp"));
            let first = timer.next_interval(None).as_secs_f64();
            assert!(first > 0.2 && first < if session > Rate::from_kbps(100) { 0.62 } else { 5.0 }, "{first}");
            let draws: Vec<f64> =
                (0..10_000).map(|_| timer.next_interval(Some(DataSize::from_bytes(100))).as_secs_f64()).collect();
            draws.iter().sum::<f64>() / 10_000.0
        };
        // The deterministic interval, which is also the mean after compensation and reconsideration: the minimum of 1
        // s; at 8 kbps 100 B · 2 / (50 B/s) = 4 s.
        assert!((mean(Rate::from_kbps(1000)) - 1.0).abs() < 0.01);
        assert!((mean(Rate::from_kbps(8)) - 4.0).abs() < 0.04);
    }
}
