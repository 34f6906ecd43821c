//! The machine's monotonic clock as the time of a world.

use nix::time::{ClockId, clock_gettime};
use paceline_units::{Time, TimeDelta};
use std::time::Duration;

/// Time since a run began, on the monotonic clock. Copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    /// The clock's reading at the world's time zero, ns.
    zero: i64,
}

impl Monotonic {
    /// A clock whose time zero is in `lead` from now: time for all to get ready.
    pub fn starting_in(lead: TimeDelta) -> Self {
        Self { zero: reading(ClockId::CLOCK_MONOTONIC) + lead.as_nanos() }
    }

    /// What time it is.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(reading(ClockId::CLOCK_MONOTONIC) - self.zero)
    }

    /// What a calendar shows at the world's time zero, as time since 1970.
    pub fn calendar_at_zero(&self) -> Duration {
        let since = reading(ClockId::CLOCK_REALTIME) - (self.now() - Time::ZERO).as_nanos();
        Duration::from_nanos(since.max(0) as u64)
    }

    /// The time of a stamp that the kernel took lately on the wall clock, as time since 1970. A step of the wall clock
    /// between stamp and call shifts it, so the answer is never later than now.
    pub fn of_stamp(&self, stamp: Duration) -> Time {
        const TOGETHER: TimeDelta = TimeDelta::from_micros(20);
        let mut best = (TimeDelta::from_secs(1 << 20), Time::ZERO);
        for _ in 0..3 {
            let before = self.now();
            let age = reading(ClockId::CLOCK_REALTIME) - stamp.as_nanos() as i64;
            // Whoever is held up between the readings reads again.
            let apart = self.now() - before;
            if apart < best.0 {
                best = (apart, before - TimeDelta::from_nanos(age.max(0)));
            }
            if apart < TOGETHER {
                break;
            }
        }
        best.1
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
    fn a_stamp_of_now_is_now() {
        let clock = Monotonic::starting_in(TimeDelta::from_secs(5));
        let before = clock.now();
        assert!(before < Time::ZERO && before >= Time::from_secs(-5));
        let stamp = Duration::from_nanos(reading(ClockId::CLOCK_REALTIME) as u64);
        let of_stamp = clock.of_stamp(stamp);
        let after = clock.now();
        // The two clocks are read one after the other, and either may be adjusted by a few hundred ppm.
        assert!(of_stamp >= before - TimeDelta::from_millis(1) && of_stamp <= after, "{before} {of_stamp} {after}");
        assert!(clock.of_stamp(stamp + Duration::from_secs(3600)) <= clock.now(), "not from the future");
        let zero = clock.of_stamp(clock.calendar_at_zero());
        assert!(zero <= clock.now(), "time zero is yet to come, so its stamp is cut at now");
        let past = clock.of_stamp(clock.calendar_at_zero() - Duration::from_secs(60));
        assert!((past - Time::from_secs(-60)).abs() < TimeDelta::from_millis(1), "{past}");
    }
}
