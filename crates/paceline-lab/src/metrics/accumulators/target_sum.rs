// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target of a flow over time.

use paceline_scenario::Window;
use paceline_units::{Rate, Time, TimeDelta};

/// The target of a flow, and since when it is in force.
pub(crate) type TargetInForce = Option<(Rate, Time)>;

/// The integral of a target over the time in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TargetSum {
    /// The integral, bit.
    pub bits: f64,
    /// How long there was a target.
    pub time: TimeDelta,
}

impl TargetSum {
    /// Adds the target that was in force up to `to`, as far as it lies in the window.
    pub fn add(&mut self, target: TargetInForce, to: Time, window: &Window) {
        if let Some((rate, since)) = target {
            let span = to.min(window.to) - since.max(window.from);
            if span.is_positive() {
                self.bits += rate.as_bps_f64() * span.as_secs_f64();
                self.time += span;
            }
        }
    }
}
