// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timer of an external controller, with the rule for times in the past.
//!
//! In real time a controller is called late, so the next of its regular times may have passed already. Such a time is due at
//! once. A timeout must move the timer forwards, however: in simulated time the run would not advance otherwise.

use paceline_units::{Time, TimeDelta};

/// Largest number of timeouts within [`SPAN`]: one in 10 µs on average. A run of a controller with more of them would hardly advance.
const TIMEOUTS_MAX: u32 = 1000;
const SPAN: TimeDelta = TimeDelta::from_millis(10);

/// A timer that a controller sets with each decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// The time that the controller set.
    set: Option<Time>,
    /// The time of the timeout: not before the decision.
    due: Option<Time>,
    /// Begin of the current span, and its number of timeouts.
    since: Option<Time>,
    count: u32,
}

impl Timer {
    /// Sets the timer to the time of a decision that was made at `now`.
    pub fn set(&mut self, now: Time, at: Option<Time>) {
        (self.set, self.due) = (at, at.map(|at| at.max(now)));
    }

    /// Returns the time of the next timeout, if there is one.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Stops the timer.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// Begins a timeout: stops the timer, and returns the time to which it was set.
    pub fn expire(&mut self) -> Option<Time> {
        self.due = None;
        self.set.take()
    }

    /// Checks the timer after a timeout at `now` of a timer that was set to `expired`.
    ///
    /// # Errors
    /// It was not set to a later time, or there are too many timeouts.
    pub fn check_after(&mut self, now: Time, expired: Option<Time>) -> Result<(), String> {
        let since = *self.since.get_or_insert(now);
        (self.since, self.count) = if now - since < SPAN { (Some(since), self.count + 1) } else { (Some(now), 1) };
        if self.count > TIMEOUTS_MAX {
            return Err(format!(
                "there were more than {TIMEOUTS_MAX} timeouts within {SPAN}; set timeout_ns at least 10 µs later"
            ));
        }
        match (self.set, expired) {
            (Some(at), Some(expired)) if at <= expired => Err(format!(
                "timeout_ns is {} after the timeout of {}; it must be later",
                at.as_nanos(),
                expired.as_nanos()
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(now_ms: i64, at_ms: i64) -> Timer {
        let mut timer = Timer::default();
        timer.set(Time::from_millis(now_ms), Some(Time::from_millis(at_ms)));
        timer
    }

    #[test]
    fn past_time_is_due_at_once() {
        assert_eq!(timer(100, 130).due(), Some(Time::from_millis(130)));
        assert_eq!(timer(100, 70).due(), Some(Time::from_millis(100)));
        let mut stopped = timer(100, 70);
        stopped.stop();
        assert_eq!(stopped.due(), None);
    }

    /// A timer each 20 ms: the loop was late by 50 ms, and the timer catches up.
    #[test]
    fn timeout_moves_the_timer_forwards() {
        let (expired, now) = (Some(Time::from_millis(100)), Time::from_millis(150));
        assert_eq!(timer(150, 120).check_after(now, expired), Ok(()));
        assert_eq!(
            timer(150, 100).check_after(now, expired).unwrap_err(),
            "timeout_ns is 100000000 after the timeout of 100000000; it must be later"
        );
        assert!(timer(150, 99).check_after(now, expired).is_err());
        assert_eq!(Timer::default().check_after(now, expired), Ok(()), "no further timeout");
        assert_eq!(timer(150, 1).check_after(now, None), Ok(()), "it was not set");
    }

    /// Makes so many timeouts at this interval. Returns how many are accepted.
    fn accepted(count: u32, interval: TimeDelta) -> u32 {
        let (mut timer, mut now) = (Timer::default(), Time::from_secs(1));
        timer.set(now, Some(now));
        for n in 0..count {
            let expired = timer.expire();
            timer.set(now, Some(now + interval));
            if timer.check_after(now, expired).is_err() {
                return n;
            }
            now = timer.due().unwrap();
        }
        count
    }

    #[test]
    fn timeouts_that_hardly_advance_end() {
        assert_eq!(accepted(100_000, TimeDelta::from_nanos(1)), TIMEOUTS_MAX);
        assert_eq!(accepted(100_000, TimeDelta::from_nanos(9900)), TIMEOUTS_MAX);
        assert_eq!(accepted(100_000, TimeDelta::from_micros(10)), 100_000);
    }
}
