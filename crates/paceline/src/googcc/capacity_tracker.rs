// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stable target of libwebrtc before 2025-08 (`LinkCapacityTracker`): it follows a decrease of the delay-based rate at once
//! and grows with a time constant of 10 s.

use libm::exp;
use paceline_units::{Rate, Time};

/// The time constant of growth, s (`LinkCapacityTracker::OnRateUpdate`).
const TIME_CONSTANT_S: f64 = 10.0;

/// The tracker.
#[derive(Clone, Debug, Default)]
pub struct CapacityTracker {
    /// bit/s.
    estimate: f64,
    updated: Option<Time>,
    /// The last delay-based rate; `None`: unlimited.
    delay_based: Option<Rate>,
}

impl CapacityTracker {
    pub fn handle_start(&mut self, start: Rate) {
        if self.updated.is_none() {
            self.estimate = start.as_bps_f64();
        }
    }

    pub fn handle_delay_based(&mut self, now: Time, rate: Rate) {
        if self.delay_based.is_none_or(|before| rate < before) {
            self.lower(now, rate);
        }
        self.delay_based = Some(rate);
    }

    /// Handles a back-off to a rate.
    pub fn lower(&mut self, now: Time, rate: Rate) {
        self.estimate = self.estimate.min(rate.as_bps_f64());
        self.updated = Some(now);
    }

    /// Handles the acknowledged rate, if it is known, and the target.
    pub fn handle_target(&mut self, now: Time, acked: Option<Rate>, target: Rate) {
        let Some(acked) = acked else { return };
        let rate = acked.min(target).as_bps_f64();
        if rate > self.estimate {
            let memory = self.updated.map_or(0.0, |updated| exp(-(now - updated).as_secs_f64() / TIME_CONSTANT_S));
            self.estimate = memory * self.estimate + (1.0 - memory) * rate;
        }
        self.updated = Some(now);
    }

    pub fn estimate(&self) -> Rate {
        Rate::from_bps(self.estimate as u64)
    }
}
