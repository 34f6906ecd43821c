// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns the times of the program into times that never decrease.

use paceline_units::{Time, TimeDelta};

/// A step back by at most this time is read as no step: two threads may read a clock in one order and call in the other.
const JITTER: TimeDelta = TimeDelta::from_millis(100);
/// A longer step forward counts as this one. A controller knows nothing of a path after a day of silence, and times stay
/// far from overflow.
const FORWARD_MAX: TimeDelta = TimeDelta::from_secs(24 * 3600);

/// The clock of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    last: Time,
    /// Own time minus the program's time.
    shift: TimeDelta,
}

impl SteadyClock {
    pub fn new(start: Time) -> Self {
        Self { last: start, shift: TimeDelta::ZERO }
    }

    /// Returns the time for a time of the program, and the size of the step if the program's clock was set back.
    #[inline]
    pub fn advance(&mut self, now: Time) -> (Time, Option<TimeDelta>) {
        let time = now + self.shift;
        // A step back is a large number without sign.
        if (time.as_nanos().wrapping_sub(self.last.as_nanos()) as u64) <= FORWARD_MAX.as_nanos() as u64 {
            self.last = time;
            return (time, None);
        }
        self.step(time)
    }

    #[cold]
    fn step(&mut self, time: Time) -> (Time, Option<TimeDelta>) {
        let ahead = time - self.last;
        if ahead > FORWARD_MAX {
            self.shift -= ahead - FORWARD_MAX;
            self.last += FORWARD_MAX;
            return (self.last, None);
        }
        let back = -ahead;
        if back <= JITTER {
            return (self.last, None);
        }
        self.shift += back;
        (self.last, Some(back))
    }

    /// Returns the last time.
    #[inline]
    pub fn last(&self) -> Time {
        self.last
    }

    /// Returns the time of this clock for an earlier time of the program.
    #[inline]
    pub fn own_time(&self, time: Time) -> Time {
        (time + self.shift).min(self.last)
    }

    /// Returns the program's time for a time of this clock.
    #[inline]
    pub fn program_time(&self, time: Time) -> Time {
        if time == Time::MAX { time } else { time - self.shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn time_never_decreases_and_goes_on_after_a_step() {
        let mut clock = SteadyClock::new(Time::ZERO);
        assert_eq!(clock.advance(at(1000)), (at(1000), None));
        assert_eq!(clock.advance(at(950)), (at(1000), None), "jitter");
        assert_eq!(clock.advance(at(1010)), (at(1010), None));
        let hour = 3_600_000;
        assert_eq!(clock.advance(at(1010 + hour)), (at(1010 + hour), None), "suspended for an hour");
        let back = TimeDelta::from_millis(hour - 10);
        assert_eq!(clock.advance(at(1020)), (at(1010 + hour), Some(back)), "or a wrong time");
        assert_eq!(clock.advance(at(1040)), (at(1030 + hour), None), "time goes on");
        assert_eq!(clock.program_time(at(1030 + hour)), at(1040));
        assert_eq!(clock.program_time(Time::MAX), Time::MAX);
    }

    #[test]
    fn negative_and_extreme_times_are_usable() {
        let mut clock = SteadyClock::new(Time::ZERO);
        assert_eq!(clock.advance(at(-5000)), (Time::ZERO, Some(TimeDelta::from_secs(5))));
        assert_eq!(clock.advance(at(-4900)), (at(100), None));
        let day = FORWARD_MAX;
        assert_eq!(clock.advance(Time::MAX).0, at(100) + day);
        assert_eq!(clock.advance(Time::from_nanos(i64::MIN)).0, at(100) + day);
        assert!(clock.advance(Time::from_nanos(i64::MIN + 1_000_000)).0 <= at(101) + day);
    }
}
