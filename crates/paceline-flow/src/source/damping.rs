//! The time-damped reaction of an encoder to its target (RFC 8593, section 5.1): after it has reacted at time t,
//! it does not react again before t + tau_v.
//!
//! The RFC drops what is asked in between and counts on a controller that asks again. A [`Source`] is told a level
//! ("wanted from now on"), and its driver may speak only when the level changes, so the latest request stands and
//! is taken up at t + tau_v: exactly what the RFC's encoder does when the request is repeated at that moment.
//!
//! [`Source`]: super::Source

use paceline_units::{Rate, Time, TimeDelta};

/// A target that follows requests no more often than once in `delay`, within a range.
#[derive(Clone, Debug)]
pub(super) struct DampedTarget {
    min: Rate,
    max: Rate,
    /// tau_v.
    delay: TimeDelta,
    /// What the encoder aims at: R_v.
    current: Rate,
    /// The latest request.
    wanted: Rate,
    asked: Time,
    /// No reaction before this.
    free: Time,
}

/// One reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) from: Rate,
    pub(super) to: Rate,
}

impl DampedTarget {
    pub(super) fn new(min: Rate, max: Rate, start: Rate, delay: TimeDelta) -> Self {
        let past = Time::from_nanos(i64::MIN);
        Self { min, max, delay, current: start, wanted: start, asked: past, free: past }
    }

    /// The rate in force.
    pub(super) fn current(&self) -> Rate {
        self.current
    }

    /// The lowest and the highest target.
    pub(super) fn range(&self) -> (Rate, Rate) {
        (self.min, self.max)
    }

    /// Takes note of a request, clipped to the range (section 5.4). Call [`Self::settle`] before and after: what
    /// stood until now may be due, and the new request may be free to act.
    pub(super) fn request(&mut self, now: Time, rate: Rate) {
        self.wanted = rate.clamp(self.min, self.max);
        self.asked = now;
    }

    /// Reacts to the standing request if that is allowed by `now`.
    pub(super) fn settle(&mut self, now: Time) -> Option<Change> {
        let at = self.asked.max(self.free);
        if self.wanted == self.current || now < at {
            return None;
        }
        let change = Change { from: self.current, to: self.wanted };
        self.current = self.wanted;
        self.free = at + self.delay;
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tau_v = 200 ms. Each row: at (ms), request (kbps) or none, rate in force afterwards (kbps).
    #[test]
    fn one_reaction_in_tau() {
        let kbps = Rate::from_kbps;
        let mut target = DampedTarget::new(kbps(150), kbps(1500), kbps(300), TimeDelta::from_millis(200));
        for (at, request, expected) in [
            (10, Some(400), 400),    // free: at once, next not before 210
            (50, Some(500), 400),    // held back
            (100, Some(600), 400),   // replaces the 500
            (209, None, 400),        // 1 ms early
            (210, None, 600),        // the standing request, next not before 410
            (300, Some(600), 600),   // nothing to do: the wait does not grow
            (410, Some(9000), 1500), // clipped
            (700, Some(1), 150),     // clipped; next not before 900
            (800, Some(200), 150),
            (1000, Some(250), 200), // the 200 was taken up at 900, so nothing before 1100
            (1099, None, 200),
            (1100, None, 250),
        ] {
            let now = Time::from_millis(at);
            target.settle(now);
            if let Some(rate) = request {
                target.request(now, kbps(rate));
                target.settle(now);
            }
            assert_eq!(target.current(), kbps(expected), "at {at} ms");
        }
    }
}
