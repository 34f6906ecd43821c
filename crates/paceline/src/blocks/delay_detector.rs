// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delay detector: trendline, over-use detector and adaptive threshold (libwebrtc's `TrendlineEstimator`).
//!
//! ```text
//! T = min(n, 60) · gain · trend          Over:   T > gamma for more than 10 ms and in two groups, and the trend does not fall
//!                                        Under:  T < -gamma
//! ```

use super::{AdaptiveDetector, GroupDelta, ThresholdConfig, Trendline, TrendlineConfig, Usage};
use crate::params;
use paceline_units::RemoteTime;

params! {
    /// The parameters of the detector.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DelayDetectorConfig {
        /// libwebrtc (`trendline_estimator.cc`).
        const LIBWEBRTC;

        /// The arrival-time filter.
        trendline: TrendlineConfig = TrendlineConfig::LIBWEBRTC, block {
            window: "kDefaultTrendlineWindowSize; libwebrtc accepts 10 to 200",
            smoothing,
        };
        /// Factor by which a trend is multiplied before the comparison with the threshold.
        gain: f64 = 4.0, in 0.0..=100.0, from "kDefaultTrendlineThresholdGain";
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::LIBWEBRTC, block {
            gamma_0: "TrendlineEstimator",
            k_u: "k_up_",
            k_d: "k_down_",
            guard: "kMaxAdaptOffsetMs",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 10.0, unit "ms", in 0.0..=1e4, from "kOverUsingTimeThreshold";
    }
}

/// The detector.
#[derive(Clone, Debug)]
pub struct DelayDetector {
    gain: f64,
    trendline: Trendline,
    /// Detector and threshold.
    pub detector: AdaptiveDetector,
    /// The trend, ms per ms.
    pub trend: f64,
}

impl DelayDetector {
    /// Creates a detector without groups.
    pub fn new(config: DelayDetectorConfig) -> Self {
        Self {
            gain: config.gain,
            trendline: Trendline::new(config.trendline),
            detector: AdaptiveDetector::new(config.overuse_ms, config.threshold, false),
            trend: 0.0,
        }
    }

    /// Restarts the trendline; the threshold stays.
    pub fn restart_trend(&mut self) {
        self.trendline.restart();
        self.detector.restart();
    }

    /// Handles the step to a group whose completion was detected at `arrival`.
    pub fn handle_group(&mut self, arrival: RemoteTime, delta: &GroupDelta) {
        self.trend = self.trendline.update(arrival, delta.arrival - delta.departure);
        self.detector.update(arrival, self.gain * self.trend, delta.departure.as_millis_f64());
    }

    /// Returns the state.
    #[inline]
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::TimeDelta;

    /// By hand: groups that were sent 6.7 ms apart. In the first one with T > gamma half of that counts, 3.35 ms; in the next one it is
    /// 10.05 ms, more than 10.
    #[test]
    fn over_use_must_last_more_than_ten_milliseconds() {
        for (overuse_ms, groups_later) in [(DelayDetectorConfig::LIBWEBRTC.overuse_ms, 1), (10.2, 2)] {
            let config = DelayDetectorConfig { overuse_ms, ..DelayDetectorConfig::LIBWEBRTC };
            let mut detector = DelayDetector::new(config);
            let (departure, arrival) = (TimeDelta::from_micros(6700), TimeDelta::from_micros(7700));
            let mut crossed = None;
            let over = (1..60).find(|i| {
                let gamma = detector.detector.gamma_ms();
                let now = RemoteTime::ZERO + arrival * *i;
                detector.handle_group(now, &GroupDelta { arrival, departure, size: 0 });
                if detector.detector.scaled > gamma {
                    crossed.get_or_insert(*i);
                }
                detector.usage() == Usage::Over
            });
            assert_eq!(over.zip(crossed).map(|(over, crossed)| over - crossed), Some(groups_later));
        }
    }
}
