// SPDX-License-Identifier: MIT OR Apache-2.0
//! The back-off while feedback is missing (libwebrtc's `RttBasedBackoff`): the round-trip time, counted on while packets
//! leave without feedback, exceeds a limit.
//!
//! ```text
//! RTT' = RTT + max(0, last packet sent - last feedback)          while RTT' > 3 s: A = 0.8 A each second, down to 5 kbit/s
//! ```

use crate::params;
use paceline_units::{Rate, Time, TimeDelta};

params! {
    /// The parameters of the back-off.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BackoffConfig {
        /// libwebrtc (`RttBasedBackoff`, `send_side_bandwidth_estimation.cc`).
        const LIBWEBRTC;

        /// Round-trip time above which the rate decreases.
        limit as "backoff_ms": TimeDelta = TimeDelta::from_secs(3), in 0.0..=1e6,
            from "limit of WebRTC-Bwe-MaxRttLimit";
        /// Share of the rate that remains after a decrease.
        share as "backoff_share": f64 = 0.8, in 0.0..=1.0, from "fraction of WebRTC-Bwe-MaxRttLimit";
        /// Time between two decreases.
        interval as "backoff_interval_ms": TimeDelta = TimeDelta::from_secs(1), in 0.0..=1e5,
            from "interval of WebRTC-Bwe-MaxRttLimit";
        /// Rate at which the decreases end.
        floor as "backoff_floor_bps": Rate = Rate::from_kbps(5), in 0.0..=1e9, from "floor of WebRTC-Bwe-MaxRttLimit";
    }
}

/// The state of the back-off.
#[derive(Clone, Debug)]
pub struct RttBackoff {
    config: BackoffConfig,
    /// The last round-trip time without queueing at the receiver, and the time at which it was measured; `None` until the
    /// first packet leaves.
    measured: Option<(Time, TimeDelta)>,
    last_sent: Option<Time>,
}

impl RttBackoff {
    pub fn new(config: BackoffConfig) -> Self {
        Self { config, measured: None, last_sent: None }
    }

    /// Handles a packet that was sent. From the first one on, feedback is expected.
    #[inline]
    pub fn handle_sent(&mut self, now: Time) {
        self.measured.get_or_insert((now, TimeDelta::ZERO));
        self.last_sent = Some(now);
    }

    /// Forgets what was measured: feedback is expected from the next packet on.
    pub fn restart(&mut self) {
        (self.measured, self.last_sent) = (None, None);
    }

    pub fn handle_rtt(&mut self, now: Time, rtt: TimeDelta) {
        self.measured = Some((now, rtt));
    }

    /// Returns `RTT'`; `None` before the first packet.
    pub fn corrected_rtt(&self) -> Option<TimeDelta> {
        let (at, rtt) = self.measured?;
        let missing = self.last_sent.map_or(TimeDelta::ZERO, |sent| (sent - at).max(TimeDelta::ZERO));
        Some(rtt + missing)
    }

    /// Returns whether `RTT'` is above the limit.
    #[inline]
    pub fn is_above_limit(&self) -> bool {
        self.corrected_rtt().is_some_and(|rtt| rtt > self.config.limit)
    }

    /// Returns the decreased rate, if the rate is above the floor and the last decrease was long enough ago.
    pub fn decreased(&self, now: Time, last_decrease: Option<Time>, rate: Rate) -> Option<Rate> {
        let due = last_decrease.is_none_or(|last| now - last >= self.config.interval);
        (due && rate > self.config.floor).then(|| rate.scale(self.config.share).max(self.config.floor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn time_without_feedback_counts_as_round_trip_time() {
        let mut backoff = RttBackoff::new(BackoffConfig::LIBWEBRTC);
        assert!(!backoff.is_above_limit(), "nothing was sent");
        backoff.handle_sent(at(1000));
        backoff.handle_sent(at(4000));
        assert!(!backoff.is_above_limit(), "3 s");
        backoff.handle_sent(at(4001));
        assert!(backoff.is_above_limit());
        backoff.handle_rtt(at(4100), TimeDelta::from_millis(2500));
        assert_eq!(backoff.corrected_rtt(), Some(TimeDelta::from_millis(2500)), "sent before the feedback");
        backoff.handle_sent(at(4601));
        assert!(backoff.is_above_limit(), "2.5 s and 0.501 s");
        backoff.restart();
        backoff.handle_sent(at(9000));
        assert!(!backoff.is_above_limit());
    }

    /// Vector V4.7: 1 Mbit/s becomes 800 kbit/s.
    #[test]
    fn rate_decreases_each_second_down_to_the_floor() {
        let backoff = RttBackoff::new(BackoffConfig::LIBWEBRTC);
        let decreased = |last, bps| backoff.decreased(at(5000), last, Rate::from_bps(bps)).map(Rate::as_bps);
        assert_eq!(decreased(None, 1_000_000), Some(800_000));
        assert_eq!([4000, 4001].map(|ms| decreased(Some(at(ms)), 1_000_000)), [Some(800_000), None]);
        assert_eq!([6000, 5000].map(|bps| decreased(None, bps)), [Some(5000), None]);
    }
}
