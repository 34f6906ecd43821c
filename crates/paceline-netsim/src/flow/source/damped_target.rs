// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time-damped reaction of an encoder to its target (RFC 8593, section 5.1): after a reaction at time t, the
//! encoder does not react again before t + tau_v.
//!
//! The RFC drops requests made in between and relies on the controller to repeat them. The target of a [`Source`] is
//! set only when it changes, so the latest request is kept and applied at t + tau_v. The RFC's encoder does the same if
//! the request is repeated at that moment.
//!
//! [`Source`]: super::Source

use super::VideoConfig;
use paceline_units::{Rate, Time, TimeDelta};

/// A target that changes at most once per `delay`, within a range.
#[derive(Clone, Debug)]
pub(super) struct DampedTarget {
    min: Rate,
    max: Rate,
    /// tau_v.
    delay: TimeDelta,
    /// The target in force: R_v.
    current: Rate,
    /// The latest request, and when it was made.
    requested: Rate,
    requested_at: Time,
    /// The earliest time of the next reaction.
    not_before: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TargetChange {
    pub(super) from: Rate,
    pub(super) to: Rate,
}

impl DampedTarget {
    pub(super) fn new(video: &VideoConfig, delay: TimeDelta) -> Self {
        let (past, &VideoConfig { min, max, start, .. }) = (Time::from_nanos(i64::MIN), video);
        Self { min, max, delay, current: start, requested: start, requested_at: past, not_before: past }
    }

    /// Returns the target in force.
    pub(super) fn current(&self) -> Rate {
        self.current
    }

    pub(super) fn range(&self) -> (Rate, Rate) {
        (self.min, self.max)
    }

    /// Requests a target, clamped to the range (section 5.4). Call [`Self::update`] before and after: the previous
    /// request may be due by now, and the new one may be allowed at once.
    pub(super) fn request(&mut self, now: Time, rate: Rate) {
        self.requested = rate.clamp(self.min, self.max);
        self.requested_at = now;
    }

    /// Applies the latest request if it is allowed by `now`. Returns the change.
    pub(super) fn update(&mut self, now: Time) -> Option<TargetChange> {
        let at = self.requested_at.max(self.not_before);
        if self.requested == self.current || now < at {
            return None;
        }
        let change = TargetChange { from: self.current, to: self.requested };
        self.current = self.requested;
        self.not_before = at + self.delay;
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tau_v = 200 ms. Each row: time (ms), request (kbps) or none, target in force afterwards (kbps).
    #[test]
    fn target_changes_at_most_once_per_tau_v() {
        let kbps = Rate::from_kbps;
        let video = VideoConfig { fps: 30.0, min: kbps(150), max: kbps(1500), start: kbps(300) };
        let mut target = DampedTarget::new(&video, TimeDelta::from_millis(200));
        for (at, request, expected) in [
            (10, Some(400), 400),    // at once; next not before 210
            (50, Some(500), 400),    // delayed
            (100, Some(600), 400),   // replaces the 500
            (209, None, 400),        // 1 ms early
            (210, None, 600),        // the latest request; next not before 410
            (300, Some(600), 600),   // no change: the delay is not extended
            (410, Some(9000), 1500), // clamped
            (700, Some(1), 150),     // clamped; next not before 900
            (800, Some(200), 150),
            (1000, Some(250), 200), // the 200 was applied at 900, so nothing before 1100
            (1099, None, 200),
            (1100, None, 250),
        ] {
            let now = Time::from_millis(at);
            target.update(now);
            if let Some(rate) = request {
                target.request(now, kbps(rate));
                target.update(now);
            }
            assert_eq!(target.current(), kbps(expected), "at {at} ms");
        }
    }
}
