//! The timer of an external controller, with the rule for times in the past.
//!
//! In real time a controller is called late, so the next of its regular times may have passed already. Such a time is due at
//! once. A timeout must move the timer forwards, however: in simulated time the run would not advance otherwise.

use paceline_units::Time;

/// A timer that a controller sets with each decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    /// The time that the controller set.
    set: Option<Time>,
    /// The time of the timeout: not before the decision.
    due: Option<Time>,
}

impl Timer {
    /// Sets the timer to the time of a decision that was made at `now`.
    pub fn set(&mut self, now: Time, at: Option<Time>) {
        *self = Self { set: at, due: at.map(|at| at.max(now)) };
    }

    /// Returns the time of the next timeout, if there is one.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Stops the timer.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// Checks the timer after a timeout at which it was `before`.
    ///
    /// # Errors
    /// It was not set to a later time.
    pub fn check_after(&self, before: Self) -> Result<(), String> {
        match (self.set, before.set) {
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
        let expired = timer(0, 100);
        assert_eq!(timer(150, 120).check_after(expired), Ok(()));
        assert_eq!(
            timer(150, 100).check_after(expired).unwrap_err(),
            "timeout_ns is 100000000 after the timeout of 100000000; it must be later"
        );
        assert!(timer(150, 99).check_after(expired).is_err());
        assert_eq!(Timer::default().check_after(expired), Ok(()), "no further timeout");
        assert_eq!(timer(150, 1).check_after(Timer::default()), Ok(()), "it was not set");
    }
}
