// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the detection of the application limit runs: with the frames, at most each 100 ms.

use super::{ApplicationLimit, Sender};
use crate::Event;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The least time between two checks: a fifth of the window of [`ApplicationLimit`].
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// The detector, and what was sent since its last update.
#[derive(Clone, Debug)]
pub(super) struct LimitCheck {
    detector: ApplicationLimit,
    sent: DataSize,
    limited: bool,
    /// The time from which it is checked again; [`Time::MAX`] without a network.
    due: Time,
}

impl LimitCheck {
    pub fn new(start: Time) -> Self {
        Self { detector: ApplicationLimit::default(), sent: DataSize::ZERO, limited: false, due: start }
    }

    pub fn is_limited(&self) -> bool {
        self.limited
    }

    #[inline]
    pub fn handle_sent(&mut self, size: DataSize) {
        self.sent += size;
    }

    /// Returns whether the application limits the flow, if that changed.
    #[inline]
    fn update(&mut self, now: Time, target: Rate, queued: DataSize) -> Option<bool> {
        if now < self.due {
            return None;
        }
        self.due = now + INTERVAL;
        let limited = self.detector.update(now, target, core::mem::take(&mut self.sent), queued);
        self.set(limited)
    }

    fn restart(&mut self, now: Time, available: bool) -> Option<bool> {
        (self.detector, self.sent) = (ApplicationLimit::default(), DataSize::ZERO);
        self.due = if available { now } else { Time::MAX };
        self.set(false)
    }

    fn set(&mut self, limited: bool) -> Option<bool> {
        (limited != core::mem::replace(&mut self.limited, limited)).then_some(limited)
    }
}

impl<T> Sender<T> {
    pub(super) fn check_application_limit(&mut self, now: Time) {
        let change = self.limit.update(now, self.decision.target, self.outbox.pacer.queued());
        self.report_application_limit(now, change);
    }

    /// Starts the detection again, without the limit.
    pub(super) fn restart_application_limit(&mut self, now: Time) {
        let change = self.limit.restart(now, self.outbox.is_available());
        self.report_application_limit(now, change);
    }

    fn report_application_limit(&mut self, now: Time, change: Option<bool>) {
        if let Some(limited) = change {
            self.half.handle(now, &Event::ApplicationLimit(limited));
        }
    }
}
