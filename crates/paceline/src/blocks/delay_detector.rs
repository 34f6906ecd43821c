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
    detector: AdaptiveDetector,
    trend: f64,
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

    /// Returns the trend, ms per ms.
    pub fn trend(&self) -> f64 {
        self.trend
    }

    /// Returns detector and threshold.
    pub fn detector(&self) -> &AdaptiveDetector {
        &self.detector
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::TimeDelta;

    /// Vector V4.1: groups that were sent 10 ms apart and arrive 11 ms apart.
    #[test]
    fn over_use_is_detected_in_the_24th_group() {
        let mut detector = DelayDetector::new(DelayDetectorConfig::LIBWEBRTC);
        let ms = TimeDelta::from_millis;
        for i in 1..=40 {
            detector.handle_group(
                RemoteTime::from_millis(11 * i),
                &GroupDelta { arrival: ms(11), departure: ms(10), size: 0 },
            );
            let expected = if i < 24 { Usage::Normal } else { Usage::Over };
            assert_eq!(detector.usage(), expected, "group {i}");
            let printed = [
                (3, 0.0, 7.1375),
                (20, 4.729675, 6.0),
                (23, 6.231669, 6.022171),
                (24, 6.725077, 6.089439),
                (30, 9.579030, 7.201387),
                (40, 13.927103, 10.473987),
            ];
            if let Some((_, t, gamma)) = printed.iter().find(|(at, ..)| *at == i) {
                assert!(
                    (detector.detector().scaled() - t).abs() < 2e-6
                        && (detector.detector().gamma_ms() - gamma).abs() < 2e-6,
                    "group {i}"
                );
            }
        }
    }

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
                let gamma = detector.detector().gamma_ms();
                let now = RemoteTime::ZERO + arrival * *i;
                detector.handle_group(now, &GroupDelta { arrival, departure, size: 0 });
                if detector.detector().scaled() > gamma {
                    crossed.get_or_insert(*i);
                }
                detector.usage() == Usage::Over
            });
            assert_eq!(over.zip(crossed).map(|(over, crossed)| over - crossed), Some(groups_later));
        }
    }

    /// Vector V4.1 with groups that arrive 9 ms apart: T is -5.780714 ms at i = 20 and -6.396108 ms at i = 21.
    #[test]
    fn under_use_is_detected_in_the_21st_group() {
        let mut detector = DelayDetector::new(DelayDetectorConfig::LIBWEBRTC);
        let ms = TimeDelta::from_millis;
        for i in 1..=60 {
            detector.handle_group(
                RemoteTime::from_millis(9 * i),
                &GroupDelta { arrival: ms(9), departure: ms(10), size: 0 },
            );
            if i == 20 {
                assert!((detector.detector().scaled() + 5.780714).abs() < 2e-6, "{}", detector.detector().scaled());
            }
            assert_eq!(detector.usage(), if i < 21 { Usage::Normal } else { Usage::Under }, "group {i}");
        }
    }
}
