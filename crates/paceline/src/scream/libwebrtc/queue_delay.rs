//! The queuing delay and its averages (`delay_based_congestion_control.cc`): one that detects a queue, and two that show a link
//! near its capacity, the least delay of reports and the difference of their delays.

use super::base_delay::BaseDelay;
use super::config::{ScreamLibwebrtcConfig, since};
use super::rounding::{averaged, ratio, scale_span};
use paceline_units::{Time, TimeDelta};

/// The factor at the threshold, and its slope: 0.1 at the threshold, 1 at a quarter of it.
const AT_THRESHOLD: f64 = 0.1;
const SLOPE: f64 = 1.2;

/// The averages of the queuing delay.
#[derive(Clone, Debug, Default)]
pub struct QueueDelay {
    base: BaseDelay,
    /// The least queuing delay of the last report.
    last: Option<TimeDelta>,
    /// `None` before the first report and after a reset: infinite.
    average: Option<TimeDelta>,
    min_average: TimeDelta,
    difference_average: TimeDelta,
    /// The time since which the queue was not empty.
    filled: Option<Time>,
}

impl QueueDelay {
    /// Creates the averages before the first report.
    pub fn new(config: &ScreamLibwebrtcConfig) -> Self {
        Self { base: BaseDelay::new(config), ..Self::default() }
    }

    /// Handles the least and the greatest one-way delay of a report.
    pub fn update(&mut self, now: Time, least: TimeDelta, greatest: TimeDelta, config: &ScreamLibwebrtcConfig) {
        let delay = self.base.excess(least);
        match delay > config.drain_threshold {
            true => self.filled = self.filled.or(Some(now)),
            false => self.filled = None,
        }
        // Two reports in a row must be late.
        let sample = self.last.map_or(delay, |last| last.min(delay));
        self.last = Some(delay);
        self.average = Some(match self.average {
            Some(average) if sample >= average => averaged(average, sample, config.qdelay_gain),
            _ => sample,
        });
        self.min_average = averaged(self.min_average, delay.min(config.qdelay_min * 2), config.min_gain);
        let difference = (greatest - least).min(config.difference * 2);
        self.difference_average = averaged(self.difference_average, difference, config.min_gain);
        self.base.update(now, config);
    }

    /// Makes the present delay the base delay (`ResetQueueDelay`). The last delay stays.
    pub fn reset(&mut self) {
        self.base.reset();
        (self.average, self.filled) = (None, None);
        (self.min_average, self.difference_average) = (TimeDelta::ZERO, TimeDelta::ZERO);
    }

    /// Returns the average; `None` before the first report and after a reset.
    pub fn average(&self) -> Option<TimeDelta> {
        self.average
    }

    /// Returns the average of the least delays, up to 20 ms.
    pub fn min_average(&self) -> TimeDelta {
        self.min_average
    }

    /// Returns the average of the differences, up to 20 ms.
    pub fn difference_average(&self) -> TimeDelta {
        self.difference_average
    }

    /// Returns whether there is a queue: an average above half of the target.
    pub fn is_detected(&self, config: &ScreamLibwebrtcConfig) -> bool {
        self.average.is_some_and(|average| average > config.qdelay_target / 2)
    }

    /// Returns the virtual fraction of marks: 0 at half of the target, 1 at the target.
    pub fn virtual_alpha(&self, config: &ScreamLibwebrtcConfig) -> f64 {
        let half = config.qdelay_target / 2;
        self.average.map_or(1.0, |average| ratio(average - half, half).clamp(0.0, 1.0))
    }

    /// Returns the factor of the least delays, `floor` to 1.
    pub fn min_factor(&self, floor: f64, config: &ScreamLibwebrtcConfig) -> f64 {
        factor(self.min_average, config.qdelay_min, floor)
    }

    /// Returns the factor of the differences, 0.1 to 1.
    pub fn difference_factor(&self, config: &ScreamLibwebrtcConfig) -> f64 {
        factor(self.difference_average, config.difference, AT_THRESHOLD)
    }

    /// Returns whether the queue was not empty for too long.
    pub fn is_drain_due(&self, now: Time, config: &ScreamLibwebrtcConfig) -> bool {
        self.filled.is_some() && since(now, self.filled) >= config.drain_period
    }
}

fn factor(average: TimeDelta, threshold: TimeDelta, floor: f64) -> f64 {
    (AT_THRESHOLD + ratio(scale_span(threshold - average, SLOPE), threshold)).clamp(floor, 1.0)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    /// Averages in ms.
    pub fn averages(average: i64, min: i64, difference: i64) -> QueueDelay {
        let (min_average, difference_average) = (MS(min), MS(difference));
        QueueDelay { average: Some(MS(average)), min_average, difference_average, ..QueueDelay::default() }
    }

    /// The small check of section 13: after delays of 0, 80, 80, 80 ms the average is 0, 0, 20, 35 ms.
    #[test]
    fn two_late_reports_in_a_row_raise_the_average() {
        let mut delay = QueueDelay::default();
        assert_eq!((delay.average(), delay.is_detected(&CONFIG)), (None, false));
        let after = [0, 80, 80, 80, 10].map(|ms| {
            delay.update(Time::ZERO, MS(ms - 500), MS(ms - 500), &CONFIG);
            delay.average()
        });
        assert_eq!(after, [0, 0, 20, 35, 10].map(|ms| Some(MS(ms))));
    }

    #[test]
    fn averages_of_the_least_delay_and_the_difference_are_slow_and_bounded() {
        let mut delay = QueueDelay::default();
        delay.update(Time::ZERO, MS(0), MS(5), &CONFIG);
        assert_eq!((delay.min_average(), delay.difference_average()), (MS(0), TimeDelta::from_micros(156)));
        delay.update(Time::ZERO, MS(16), MS(116), &CONFIG);
        // 156 us * 31 / 32 = 151.1 us, and 20 ms / 32 = 625 us.
        assert_eq!(
            (delay.min_average(), delay.difference_average()),
            (TimeDelta::from_micros(500), TimeDelta::from_micros(776))
        );
        for _ in 0..1000 {
            delay.update(Time::ZERO, MS(500), MS(900), &CONFIG);
        }
        let near = |average: TimeDelta| (MS(20) - average) < TimeDelta::from_micros(50);
        assert!(near(delay.min_average()) && near(delay.difference_average()), "{delay:?}");
    }

    #[test]
    fn factors_are_one_up_to_a_quarter_of_the_threshold() {
        let factors = |us: i64| {
            let delay = QueueDelay {
                min_average: TimeDelta::from_micros(us),
                difference_average: TimeDelta::from_micros(us),
                ..QueueDelay::default()
            };
            (delay.min_factor(0.1, &CONFIG), delay.difference_factor(&CONFIG), delay.min_factor(0.0, &CONFIG))
        };
        assert_eq!(factors(2500), (1.0, 1.0, 1.0));
        assert_eq!(factors(5000), (0.7, 0.7, 0.7));
        assert_eq!(factors(10_000), (0.1, 0.1, 0.1));
        assert_eq!(factors(11_000), (0.1, 0.1, 0.0));
    }

    #[test]
    fn queue_is_detected_above_half_of_the_target() {
        assert!(!averages(30, 0, 0).is_detected(&CONFIG) && averages(31, 0, 0).is_detected(&CONFIG));
        let alpha = |ms| averages(ms, 0, 0).virtual_alpha(&CONFIG);
        assert_eq!([alpha(20), alpha(30), alpha(45), alpha(60), alpha(100)], [0.0, 0.0, 0.5, 1.0, 1.0]);
    }

    #[test]
    fn drain_is_due_after_twenty_seconds_above_the_threshold() {
        let mut delay = QueueDelay::default();
        let mut due = |s: i64, ms: i64| {
            delay.update(Time::from_secs(s), MS(ms), MS(ms), &CONFIG);
            delay.is_drain_due(Time::from_secs(s), &CONFIG)
        };
        assert_eq!([due(0, 0), due(1, 6), due(20, 6), due(21, 6)], [false, false, false, true]);
        assert_eq!([due(22, 5), due(23, 6), due(42, 6), due(43, 6)], [false, false, false, true]);
    }

    /// After a reset the next report has no queue; the average starts with the smaller of the last delay and its own.
    #[test]
    fn reset_makes_the_present_delay_the_base() {
        let mut delay = QueueDelay::default();
        for ms in [0, 80, 80, 80] {
            delay.update(Time::ZERO, MS(ms), MS(ms + 9), &CONFIG);
        }
        assert!(delay.is_detected(&CONFIG));
        delay.reset();
        assert_eq!((delay.average(), delay.last), (None, Some(MS(80))));
        assert_eq!((delay.min_average(), delay.difference_average()), (MS(0), MS(0)));
        assert!(!delay.is_detected(&CONFIG));
        delay.update(Time::from_secs(60), MS(80), MS(80), &CONFIG);
        assert_eq!((delay.average(), delay.is_drain_due(Time::from_secs(90), &CONFIG)), (Some(MS(0)), false));
    }
}
