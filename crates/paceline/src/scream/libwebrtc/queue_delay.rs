// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queuing delay and its averages (`delay_based_congestion_control.cc`): one that detects a queue, and two that show a link
//! near its capacity, the least delay of reports and the difference of their delays.

use super::config::{ScreamLibwebrtcConfig, since};
use super::rounding::{averaged, ratio, scale_span};
use alloc::collections::VecDeque;
use paceline_units::{Time, TimeDelta};

/// The base delay: the least one-way delay of the last ten minutes, in periods of a minute (RFC 6817; `base_delay_history_`). The
/// clocks of the two ends are not aligned, so it may be of any sign.
#[derive(Clone, Debug)]
pub struct BaseDelay {
    periods: VecDeque<TimeDelta>,
    /// The minimum since the last period ended.
    current: TimeDelta,
    /// The end of the last period.
    ended: Option<Time>,
}

impl Default for BaseDelay {
    /// The start value of libwebrtc's window, which counts as one of its periods.
    fn default() -> Self {
        Self { periods: VecDeque::from([TimeDelta::MAX]), current: TimeDelta::MAX, ended: None }
    }
}

impl BaseDelay {
    /// Creates a base delay without allocations later.
    pub fn new(config: &ScreamLibwebrtcConfig) -> Self {
        let mut base = Self::default();
        base.periods.reserve_exact(config.base_history);
        base
    }

    /// Forgets all delays.
    pub fn reset(&mut self) {
        (self.current, self.ended) = (TimeDelta::MAX, None);
        self.periods.clear();
        self.periods.push_back(TimeDelta::MAX);
    }

    /// Returns how far a one-way delay exceeds the base delay, which it may lower; zero or more.
    pub fn excess(&mut self, delay: TimeDelta) -> TimeDelta {
        self.current = self.current.min(delay);
        let base = self.periods.iter().fold(self.current, |least, period| least.min(*period));
        delay - base
    }

    /// Ends the period if it is over. The first report ends one at once.
    pub fn update(&mut self, now: Time, config: &ScreamLibwebrtcConfig) {
        if since(now, self.ended) < config.base_span {
            return;
        }
        self.ended = Some(now);
        while self.periods.len() >= config.base_history {
            self.periods.pop_front();
        }
        self.periods.push_back(core::mem::replace(&mut self.current, TimeDelta::MAX));
    }
}

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
    pub average: Option<TimeDelta>,
    /// Up to 20 ms, as the next one.
    pub min_average: TimeDelta,
    pub difference_average: TimeDelta,
    /// The time since which the queue was not empty.
    filled: Option<Time>,
}

impl QueueDelay {
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
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    /// After a reset the next report has no queue; the average starts with the smaller of the last delay and its own.
    #[test]
    fn reset_makes_the_present_delay_the_base() {
        let mut delay = QueueDelay::default();
        for ms in [0, 80, 80, 80] {
            delay.update(Time::ZERO, MS(ms), MS(ms + 9), &CONFIG);
        }
        assert!(delay.is_detected(&CONFIG));
        delay.reset();
        assert_eq!((delay.average, delay.last), (None, Some(MS(80))));
        assert_eq!((delay.min_average, delay.difference_average), (MS(0), MS(0)));
        assert!(!delay.is_detected(&CONFIG));
        delay.update(Time::from_secs(60), MS(80), MS(80), &CONFIG);
        assert_eq!((delay.average, delay.is_drain_due(Time::from_secs(90), &CONFIG)), (Some(MS(0)), false));
    }

    /// The first period ends with the first report, further ones each minute. The first minimum is forgotten with the tenth
    /// further one, at ten minutes.
    #[test]
    fn least_delay_of_ten_periods_is_the_base() {
        let mut base = BaseDelay::default();
        let mut excess = Vec::new();
        for minute in 0..12 {
            let delay = if minute == 0 { -30 } else { -10 };
            excess.push(base.excess(MS(delay)));
            base.update(Time::from_secs(60 * minute), &ScreamLibwebrtcConfig::LIBWEBRTC);
        }
        let expected: Vec<_> = [0, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 0].map(MS).into();
        assert_eq!(excess, expected);
    }
}
