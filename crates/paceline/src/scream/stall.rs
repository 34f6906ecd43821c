// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both versions of SCReAM do besides their laws: a window that stays closed opens, and losses are counted once per
//! round-trip time.

use paceline_units::{DataSize, Time, TimeDelta};

/// A window that is closed for this time, or for two round-trip times, opens by the minimum window. The RFC mentions a
/// minimum send rate without specifying how it is reached; the C++ code resets the bytes in flight after the same time.
/// The minimum window every half second is about `RATE_PACE_MIN`.
const STALL_TIMEOUT: TimeDelta = TimeDelta::from_millis(500);

/// A window that may be closed for too long.
#[derive(Clone, Debug)]
pub struct Stall {
    /// Bytes in flight that are ignored until something is acknowledged, because the window was closed for too long.
    pub given_up: DataSize,
    /// The time at which a closed window opens ([`Time::MAX`] if it is not closed), and the last such time.
    pub due: Time,
    opened: Time,
}

impl Default for Stall {
    fn default() -> Self {
        Self { given_up: DataSize::ZERO, due: Time::MAX, opened: Time::ZERO }
    }
}

impl Stall {
    /// Sets the time at which a closed window opens.
    #[inline]
    pub fn update(&mut self, now: Time, in_flight: DataSize, allowed: DataSize, s_rtt: TimeDelta) {
        if in_flight < allowed {
            self.due = Time::MAX;
            return;
        }
        let wait = STALL_TIMEOUT.max(s_rtt * 2);
        self.due = match self.given_up {
            DataSize::ZERO => now + wait,
            _ => now.max(self.opened + wait),
        };
    }

    /// Gives up these bytes if the window is due to open. Returns whether it is.
    pub fn open(&mut self, now: Time, in_flight: DataSize) -> bool {
        let is_due = self.due <= now;
        if is_due {
            (self.given_up, self.opened) = (in_flight, now);
        }
        is_due
    }

    /// Returns the bytes that may be in flight, with this minimum window.
    pub fn allowed(&self, min: DataSize, window: impl FnOnce() -> DataSize) -> DataSize {
        if self.given_up == DataSize::ZERO { window() } else { self.given_up + min }
    }
}

/// `loss_event_rate`: the share of round-trip times with a loss.
#[derive(Clone, Debug, Default)]
pub struct LossEvents {
    pub rate: f64,
    /// The start of the current round-trip time, and whether a loss occurred in it.
    round: Option<Time>,
    is_lossy: bool,
}

impl LossEvents {
    /// Handles feedback; a round-trip time has this weight. Returns whether one has passed.
    pub fn update(&mut self, now: Time, s_rtt: TimeDelta, lost: bool, weight: f64) -> bool {
        self.is_lossy |= lost;
        let has_passed = now - *self.round.get_or_insert(now) >= s_rtt;
        if has_passed {
            let lost = core::mem::take(&mut self.is_lossy);
            self.rate += weight * (f64::from(u8::from(lost)) - self.rate);
            self.round = Some(now);
        }
        has_passed
    }
}
