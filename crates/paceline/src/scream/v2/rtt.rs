// SPDX-License-Identifier: MIT OR Apache-2.0
//! The smoothed round-trip time.

use paceline_units::{Time, TimeDelta};

/// How round-trip times are smoothed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothing {
    /// An eighth of each sample (RFC 6298, section 2).
    Rfc6298,
    /// An eighth of each sample, and of that an eighth per round-trip time (authors' C++: `sRttSh`, `sRtt`).
    TwoStages,
}

/// The inverse weight of a sample.
const WEIGHT: i64 = 8;
/// The first value with two stages (C++: 50 ms).
const START: TimeDelta = TimeDelta::from_millis(50);
/// With two stages: the inverse weight of a shorter time while the application limits the window.
const WEIGHT_LIMITED: i64 = 1024;

/// `s_rtt`.
#[derive(Clone, Debug)]
pub struct SmoothedRtt {
    smoothing: Smoothing,
    short: Option<TimeDelta>,
    /// Whether the last sample lowered the estimate (the short one).
    pub falls: bool,
    long: TimeDelta,
    updated: Option<Time>,
}

impl SmoothedRtt {
    pub fn new(smoothing: Smoothing) -> Self {
        Self { smoothing, short: None, falls: false, long: START, updated: None }
    }

    /// Handles a sample. `limited`: the window is greater than what the application uses.
    pub fn handle(&mut self, now: Time, rtt: TimeDelta, limited: bool) {
        let before = match self.smoothing {
            Smoothing::Rfc6298 => self.short,
            Smoothing::TwoStages => Some(self.short.unwrap_or(START)),
        };
        let short = before.map_or(rtt, |before| before + (rtt - before) / WEIGHT);
        self.falls = before.is_some_and(|before| short < before);
        self.short = Some(short);
        if now - *self.updated.get_or_insert(now) > short {
            let weight = if limited && short < self.long { WEIGHT_LIMITED } else { WEIGHT };
            self.long += (short - self.long) / weight;
            self.updated = Some(now);
        }
    }

    /// Returns `s_rtt`; `None` before the first sample.
    pub fn get(&self) -> Option<TimeDelta> {
        match self.smoothing {
            Smoothing::Rfc6298 => self.short,
            Smoothing::TwoStages => self.short.map(|_| self.long),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    #[test]
    fn second_stage_follows_once_per_round_trip() {
        let mut one = SmoothedRtt::new(Smoothing::Rfc6298);
        let mut two = SmoothedRtt::new(Smoothing::TwoStages);
        assert_eq!((one.get(), two.get()), (None, None));
        for rtt in [&mut one, &mut two] {
            rtt.handle(Time::ZERO, MS(90), false);
        }
        assert_eq!((one.get(), two.get()), (Some(MS(90)), Some(MS(50))));
        for rtt in [&mut one, &mut two] {
            rtt.handle(Time::from_millis(100), MS(90), false);
        }
        // 50 + 40 / 8 = 55, 55 + 35 / 8 = 59.375; an eighth of 9.375 ms is added to 50 ms.
        assert_eq!(two.get(), Some(TimeDelta::from_nanos(51_171_875)));
        assert!(!two.falls);
        two.handle(Time::from_millis(110), MS(10), false);
        assert!(two.falls);
    }
}
