//! When RTCP reports go out: RFC 3550, section 6.3 and appendix A.7, for a session of two.

use paceline_units::{DataSize, RandomStream, Rate, TimeDelta};

/// Numbers of the timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtcpTiming {
    /// Smallest deterministic interval: 5 s in RFC 3550; WebRTC endpoints use 1 s for video.
    pub min_interval: TimeDelta,
    /// Session bandwidth, of which RTCP may use 5 %.
    pub session: Rate,
}

/// `e - 3/2`: undoes the bias of timer reconsideration (RFC 3550, section 6.3.1).
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

    /// A report of this size went out, or the session begins (`None`): how long until the next.
    pub fn next(&mut self, sent: Option<DataSize>) -> TimeDelta {
        if let Some(size) = sent {
            self.mean_size += (size.as_bytes() as f64 - self.mean_size) / 16.0;
            self.sent_any = true;
        }
        let min = if self.sent_any { self.timing.min_interval } else { self.timing.min_interval / 2 };
        let bandwidth = self.timing.session.as_bps_f64() * RTCP_SHARE / 8.0;
        let by_bandwidth = TimeDelta::from_secs_f64(self.mean_size * MEMBERS / bandwidth);
        // Reconsideration (section 6.3.6): when the time has come it is drawn anew, and holds only if it is not later.
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
    use paceline_units::Streams;

    #[test]
    fn a_second_at_least_then_five_per_cent() {
        let mean = |session: Rate| {
            let timing = RtcpTiming { min_interval: TimeDelta::from_secs(1), session };
            let mut timer = RtcpTimer::new(timing, Streams::new(1).stream("rtcp"));
            let first = timer.next(None).as_secs_f64();
            assert!(first > 0.2 && first < if session > Rate::from_kbps(100) { 0.62 } else { 5.0 }, "{first}");
            let draws: Vec<f64> =
                (0..10_000).map(|_| timer.next(Some(DataSize::from_bytes(100))).as_secs_f64()).collect();
            draws.iter().sum::<f64>() / 10_000.0
        };
        // The deterministic interval, which compensation and reconsideration leave as the mean: the minimum of 1 s; at
        // 8 kbps 100 B · 2 / (50 B/s) = 4 s.
        assert!((mean(Rate::from_kbps(1000)) - 1.0).abs() < 0.01);
        assert!((mean(Rate::from_kbps(8)) - 4.0).abs() < 0.04);
    }
}
