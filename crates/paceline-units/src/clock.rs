// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monotonic clock of the host: `std::time::Instant` to the times of this crate, and back.

use crate::{RemoteTime, Time, TimeDelta};
use core::time::Duration;
use std::time::Instant;

/// Converts between [`Instant`] and readings of a clock that starts at an origin. It never reads the clock itself.
///
/// A program that embeds controllers creates one at start-up. A sender takes [`time`](Self::time) of the present
/// instant as `now`, and sleeps until the [`instant`](Self::instant) of the next timeout. A receiver does the same with
/// [`remote_time`](Self::remote_time) and [`remote_instant`](Self::remote_instant).
///
/// ```
/// use paceline_units::{Clock, Time, TimeDelta};
/// use std::time::{Duration, Instant};
///
/// let origin = Instant::now();
/// let clock = Clock::new(origin);
/// assert_eq!(clock.time(origin + Duration::from_millis(20)), Time::from_millis(20));
///
/// let timeout = Time::from_millis(20) + TimeDelta::from_millis(5);
/// assert_eq!(clock.instant(timeout), origin + Duration::from_millis(25));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Returns the clock that reads zero at `origin`.
    pub const fn new(origin: Instant) -> Self {
        Self { origin }
    }
    /// Returns the sender's time at an instant, negative before the origin. It saturates 292 years from the origin.
    pub fn time(self, instant: Instant) -> Time {
        Time::ZERO + self.since_origin(instant)
    }
    /// Returns the instant of a sender's time, or the nearest one that the platform can represent.
    pub fn instant(self, time: Time) -> Instant {
        self.at(time.as_nanos())
    }
    /// Returns the receiver's time at an instant, where this clock is the receiver's. It saturates like
    /// [`time`](Self::time).
    pub fn remote_time(self, instant: Instant) -> RemoteTime {
        RemoteTime::ZERO + self.since_origin(instant)
    }
    /// Returns the instant of a receiver's time, where this clock is the receiver's. It saturates like
    /// [`instant`](Self::instant).
    pub fn remote_instant(self, time: RemoteTime) -> Instant {
        self.at(time.as_nanos())
    }

    fn since_origin(self, instant: Instant) -> TimeDelta {
        match instant.checked_duration_since(self.origin) {
            Some(after) => after.into(),
            None => -TimeDelta::from(self.origin.duration_since(instant)),
        }
    }

    fn at(self, nanos: i64) -> Instant {
        let shift = if nanos < 0 { Instant::checked_sub } else { Instant::checked_add };
        let span = Duration::from_nanos(nanos.unsigned_abs());
        shift(&self.origin, span).unwrap_or_else(|| furthest(self.origin, shift))
    }
}

/// Returns the last instant that `shift` reaches from `origin`, where it does not reach 2^63 ns.
fn furthest(origin: Instant, shift: fn(&Instant, Duration) -> Option<Instant>) -> Instant {
    let spans = (0..=63).rev().map(|bit| Duration::from_nanos(1 << bit));
    spans.fold(origin, |at, span| shift(&at, span).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANOSECOND: Duration = Duration::from_nanos(1);

    #[allow(clippy::disallowed_methods, reason = "an instant has no other origin")]
    fn now() -> Instant {
        Instant::now()
    }

    /// Returns the first or the last instant of the platform.
    fn end(shift: fn(&Instant, Duration) -> Option<Instant>) -> Instant {
        let spans = (0..64).rev().map(|bit| Duration::from_secs(1 << bit));
        furthest(spans.fold(now(), |at, span| shift(&at, span).unwrap_or(at)), shift)
    }

    #[test]
    fn instants_convert_both_ways_before_and_after_the_origin() {
        let origin = now();
        let clock = Clock::new(origin);
        let (before, after) = (origin - NANOSECOND * 7, origin + Duration::from_secs(3));
        for (instant, nanos) in [(before, -7), (origin, 0), (after, 3_000_000_000)] {
            assert_eq!(clock.time(instant), Time::from_nanos(nanos));
            assert_eq!(clock.remote_time(instant), RemoteTime::from_nanos(nanos));
            assert_eq!(clock.instant(Time::from_nanos(nanos)), instant);
            assert_eq!(clock.remote_instant(RemoteTime::from_nanos(nanos)), instant);
        }
    }

    #[test]
    fn times_saturate_where_instants_are_too_far() {
        let (first, last) = (Clock::new(end(Instant::checked_sub)), Clock::new(end(Instant::checked_add)));
        assert_eq!(first.time(last.origin), Time::MAX);
        assert_eq!(last.time(first.origin), Time::from_nanos(-i64::MAX));
        assert_eq!(first.remote_time(last.origin), RemoteTime::MAX);
    }

    #[test]
    fn instants_saturate_at_the_ends_of_the_platform() {
        let (first, last) = (end(Instant::checked_sub), end(Instant::checked_add));
        let within = Clock::new(last - NANOSECOND * 100);
        assert_eq!(within.instant(Time::MAX), last);
        assert_eq!(within.instant(Time::from_nanos(99)), last - NANOSECOND);
        let within = Clock::new(first + NANOSECOND * 100);
        assert_eq!(within.instant(Time::from_nanos(i64::MIN)), first);
        assert_eq!(within.remote_instant(RemoteTime::from_nanos(-99)), first + NANOSECOND);
    }
}
