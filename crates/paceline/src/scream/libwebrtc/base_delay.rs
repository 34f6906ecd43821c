//! The base delay: the least one-way delay of the last ten minutes, in periods of a minute (RFC 6817; `base_delay_history_`). The
//! clocks of the two ends are not aligned, so it may be of any sign.

use super::config::{ScreamLibwebrtcConfig, since};
use alloc::collections::VecDeque;
use paceline_units::{Time, TimeDelta};

/// The minima of the last periods.
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

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

    #[test]
    fn period_lasts_a_minute() {
        let mut base = BaseDelay::default();
        for (s, periods) in [(0, 2), (59, 2), (60, 3), (119, 3), (121, 4)] {
            assert_eq!(base.excess(MS(5)), TimeDelta::ZERO);
            base.update(Time::from_secs(s), &ScreamLibwebrtcConfig::LIBWEBRTC);
            assert_eq!(base.periods.len(), periods, "{s} s");
        }
    }
}
