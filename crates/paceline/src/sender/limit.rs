//! When the detection of the application limit runs: with the frames, at most each 100 ms.

use super::{ApplicationLimit, SendHalf, Sender};
use alloc::boxed::Box;
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

    fn update(&mut self, now: Time, target: Rate, queued: DataSize, half: &mut Option<Box<dyn SendHalf>>) {
        if now < self.due {
            return;
        }
        self.due = now + INTERVAL;
        let limited = self.detector.update(now, target, core::mem::take(&mut self.sent), queued);
        self.set(now, limited, half);
    }

    fn restart(&mut self, now: Time, available: bool, half: &mut Option<Box<dyn SendHalf>>) {
        (self.detector, self.sent) = (ApplicationLimit::default(), DataSize::ZERO);
        self.due = if available { now } else { Time::MAX };
        self.set(now, false, half);
    }

    fn set(&mut self, now: Time, limited: bool, half: &mut Option<Box<dyn SendHalf>>) {
        if limited != core::mem::replace(&mut self.limited, limited)
            && let Some(half) = half
        {
            half.handle_application_limit(now, limited);
        }
    }
}

impl<T> Sender<T> {
    /// Tells the half when the application begins or ceases to limit the flow.
    pub(super) fn check_application_limit(&mut self, now: Time) {
        self.limit.update(now, self.decision.target, self.outbox.pacer.queued(), &mut self.half);
    }

    /// Starts the detection again, without the limit.
    pub(super) fn restart_application_limit(&mut self, now: Time) {
        self.limit.restart(now, self.outbox.is_available(), &mut self.half);
    }
}
