// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monotonic clock as the clock of a run.

use nix::time::{ClockId, clock_gettime};
use paceline_units::{Time, TimeDelta};
use std::time::Duration;

/// Time since the start of a run, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    /// Reading of the system clock at time zero of the run, ns.
    zero: i64,
}

impl Monotonic {
    /// Creates a clock whose time zero is `start_delay` from now, so that every thread can get ready.
    pub fn starting_in(start_delay: TimeDelta) -> Self {
        Self { zero: reading(ClockId::CLOCK_MONOTONIC) + start_delay.as_nanos() }
    }

    /// Returns the current time.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(reading(ClockId::CLOCK_MONOTONIC) - self.zero)
    }

    /// Returns the wall-clock time at time zero, since 1970.
    pub fn wall_clock_at_zero(&self) -> Duration {
        let since = reading(ClockId::CLOCK_REALTIME) - (self.now() - Time::ZERO).as_nanos();
        Duration::from_nanos(since.max(0) as u64)
    }

    /// Converts a recent timestamp of the wall clock, as time since 1970. A step of the wall clock between timestamp and call
    /// shifts the result, which is never later than now.
    pub fn from_wall_clock(&self, stamp: Duration) -> Time {
        const CLOSE: TimeDelta = TimeDelta::from_micros(20);
        let mut best = (TimeDelta::from_secs(1 << 20), Time::ZERO);
        for _ in 0..3 {
            let before = self.now();
            let age = reading(ClockId::CLOCK_REALTIME) - stamp.as_nanos() as i64;
            // Read again if the thread was interrupted between the readings.
            let apart = self.now() - before;
            if apart < best.0 {
                best = (apart, before - TimeDelta::from_nanos(age.max(0)));
            }
            if apart < CLOSE {
                break;
            }
        }
        best.1
    }
}

/// Readings of three clocks at one time, since their origins.
#[derive(Clone, Copy, Debug)]
pub struct ClockReadings {
    /// Time in which the host ran.
    pub monotonic: TimeDelta,
    /// Time since it started, suspension included.
    pub boot: TimeDelta,
    /// Time since 1970, which may step.
    pub wall: TimeDelta,
}

impl ClockReadings {
    /// Reads the clocks.
    pub fn now() -> Self {
        const CLOSE: i64 = 1_000_000;
        let read = || {
            let clocks = [ClockId::CLOCK_BOOTTIME, ClockId::CLOCK_MONOTONIC, ClockId::CLOCK_REALTIME].map(reading);
            (reading(ClockId::CLOCK_BOOTTIME) - clocks[0], clocks.map(TimeDelta::from_nanos))
        };
        // Read again if the thread was interrupted between the readings.
        let best = (0..3).map(|_| read()).find(|(apart, _)| *apart < CLOSE).unwrap_or_else(read);
        let (_, [boot, monotonic, wall]) = best;
        Self { monotonic, boot, wall }
    }
}

#[inline]
fn reading(clock: ClockId) -> i64 {
    let t = clock_gettime(clock).expect("Linux has both clocks");
    t.tv_sec() * 1_000_000_000 + t.tv_nsec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_converts_to_run_time() {
        let clock = Monotonic::starting_in(TimeDelta::from_secs(5));
        let before = clock.now();
        assert!(before < Time::ZERO && before >= Time::from_secs(-5));
        let stamp = Duration::from_nanos(reading(ClockId::CLOCK_REALTIME) as u64);
        let converted = clock.from_wall_clock(stamp);
        let after = clock.now();
        // The two clocks are read one after the other, and either may be adjusted by a few hundred ppm.
        assert!(converted >= before - TimeDelta::from_millis(1) && converted <= after, "{before} {converted} {after}");
        assert!(clock.from_wall_clock(stamp + Duration::from_secs(3600)) <= clock.now(), "never in the future");
        let zero = clock.from_wall_clock(clock.wall_clock_at_zero());
        assert!(zero <= clock.now(), "time zero is in the future, so the result is now");
        let past = clock.from_wall_clock(clock.wall_clock_at_zero() - Duration::from_secs(60));
        assert!((past - Time::from_secs(-60)).abs() < TimeDelta::from_millis(1), "{past}");
    }
}
