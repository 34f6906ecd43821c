// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target: the reference window over the time from a packet to its report (`UpdateTargetRate`). A queue that never drains
//! halves it for a while; if the queue stays, its delay is that of the path.

use super::averages::VirtualRtt;
use super::config::{ScreamLibwebrtcConfig, since};
use super::queue_delay::QueueDelay;
use super::window::mss_share;
use crate::Bounds;
use crate::blocks::units::rate_of;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The share of a segment in the window from which the target is lowered, and the most by which it is.
const SMALL: f64 = 0.1;
const SMALL_MAX: f64 = 0.2;
/// The factor of the target while the queue drains.
const DRAIN_FACTOR: f64 = 0.5;
/// The least time for which it drains.
const DRAIN_MIN: TimeDelta = TimeDelta::from_millis(100);

/// Returns the target for a window.
pub fn target_of_window(window: DataSize, rtt: &VirtualRtt, config: &ScreamLibwebrtcConfig) -> Rate {
    let small = (mss_share(window, config) - SMALL).clamp(0.0, SMALL_MAX);
    rate_of(window, rtt.non_zero() + rtt.hold).scale(1.0 - small)
}

/// The target rate.
#[derive(Clone, Debug)]
pub struct TargetRate {
    /// Within the bounds of the last report.
    pub rate: Rate,
    /// The start of the drain.
    draining: Option<Time>,
}

impl TargetRate {
    pub fn new(start: Rate) -> Self {
        Self { rate: start, draining: None }
    }

    /// Handles a report. Resets the queuing delay if the queue did not drain.
    pub fn update(
        &mut self,
        now: Time,
        window: DataSize,
        rtt: &VirtualRtt,
        delay: &mut QueueDelay,
        bounds: &Bounds,
        config: &ScreamLibwebrtcConfig,
    ) {
        let mut rate = target_of_window(window, rtt, config);
        if delay.is_drain_due(now, config) {
            self.draining = self.draining.or(Some(now));
            if since(now, self.draining) < (rtt.non_zero() * config.drain_rtts as i64).max(DRAIN_MIN) {
                rate = rate.scale(DRAIN_FACTOR);
            } else {
                delay.reset();
            }
        } else {
            self.draining = None;
        }
        self.rate = bounds.clamp(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const BOUNDS: Bounds = Bounds::new(Rate::from_kbps(100), Rate::from_kbps(9000));

    fn times(smoothed: i64, hold: i64) -> VirtualRtt {
        VirtualRtt { smoothed: TimeDelta::from_millis(smoothed), hold: TimeDelta::from_millis(hold) }
    }

    /// A queue that drains within the time ends the drain; the next one begins anew. The least time is 100 ms.
    #[test]
    fn drained_queue_ends_the_drain() {
        let mut delay = QueueDelay::default();
        let mut target = TargetRate::new(Rate::ZERO);
        let (window, rtt) = (DataSize::from_bytes(10_000), times(10, 0));
        let mut after = |ms: i64, queued: i64| {
            let (now, late) = (Time::from_millis(ms), TimeDelta::from_millis(queued));
            delay.update(now, late, late, &CONFIG);
            target.update(now, window, &rtt, &mut delay, &BOUNDS, &CONFIG);
            target.rate.as_bps() / 1000
        };
        // 8 Mbit/s, less 0.028 as a segment is 0.128 of the window.
        assert_eq!([after(0, 0), after(10, 20), after(20_010, 20), after(20_109, 20)], [7776, 7776, 3888, 3888]);
        assert_eq!([after(20_110, 5), after(20_120, 20), after(40_120, 20)], [7776, 7776, 3888]);
        assert_eq!([after(40_219, 20), after(40_220, 20)], [3888, 7776]);
    }
}
