// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a receiver, as a function of the clock of the run.

use paceline_units::{RemoteTime, Time, TimeDelta};

const BILLION: i128 = 1_000_000_000;

/// A receiver's clock with offset and drift: `reading = offset + t + t * drift`.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverClock {
    /// Reading at time zero of the run.
    pub offset: TimeDelta,
    /// Drift against the clock of the run, parts per billion; positive is faster.
    pub drift_ppb: i64,
}

impl ReceiverClock {
    /// Returns the reading at `t`.
    #[inline]
    pub fn at(&self, t: Time) -> RemoteTime {
        let drift = if self.drift_ppb == 0 {
            0
        } else {
            (t.as_nanos() as i128 * self.drift_ppb as i128).div_euclid(BILLION) as i64
        };
        RemoteTime::from_nanos(self.offset.as_nanos() + t.as_nanos() + drift)
    }

    /// Returns the first time, not before `now`, at which the clock reads `reading` or later.
    pub fn when(&self, reading: RemoteTime, now: Time) -> Time {
        if reading <= self.at(now) {
            return now;
        }
        if self.drift_ppb == 0 {
            return Time::from_nanos(reading.as_nanos() - self.offset.as_nanos());
        }
        let shown = reading.as_nanos() as i128 - self.offset.as_nanos() as i128;
        let mut t = Time::from_nanos((shown * BILLION).div_euclid(BILLION + self.drift_ppb as i128) as i64);
        while self.at(t) < reading {
            t += TimeDelta::from_nanos(1);
        }
        t.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_back_returns_the_same_time() {
        for drift_ppb in [0, 40_000, -40_000, 123_456_789] {
            let clock = ReceiverClock { offset: TimeDelta::from_secs(-77), drift_ppb };
            for ns in [0, 1, 999_999_999, 123_456_789_012, 86_400_000_000_000] {
                let t = Time::from_nanos(ns);
                let back = clock.when(clock.at(t), Time::ZERO);
                assert!(clock.at(back) >= clock.at(t) && back <= t, "{drift_ppb} {ns} {back:?}");
                assert!((t - back).as_nanos() <= 2, "{drift_ppb} {ns} {back:?}");
            }
        }
        let clock = ReceiverClock { offset: TimeDelta::ZERO, drift_ppb: 1_000_000 };
        assert_eq!(clock.at(Time::from_secs(1000)), RemoteTime::from_millis(1_001_000), "1000 ppm: a second in 1000");
    }
}
