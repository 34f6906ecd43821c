// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss level: round-trip times with a loss raise it by a third, those without one lower it by a half (`loss_estimator.cc`).
//! Packets that arrive after all clear it, so there is no reordering window.

use super::config::{ScreamLibwebrtcConfig, since};
use paceline_units::{Time, TimeDelta};

/// The level at which losses are congestion.
const CONGESTED: f64 = 0.99;
/// The level from which the window does not grow.
const BLOCKS_GROWTH: f64 = 0.01;

/// The level and what it is counted from.
#[derive(Clone, Debug, Default)]
pub struct LossLevel {
    /// 0 to 1.
    pub level: f64,
    /// Whether a packet was lost in this round-trip time.
    lost: bool,
    /// The lost packets that did not arrive after all.
    outstanding: u64,
    /// The last loss or late arrival.
    changed: Option<Time>,
    /// The start of this round-trip time.
    began: Option<Time>,
}

impl LossLevel {
    /// Handles a report with this number of newly lost packets and of lost packets that arrived after all.
    pub fn update(
        &mut self,
        now: Time,
        lost: u32,
        recovered: u32,
        smoothed_rtt: TimeDelta,
        config: &ScreamLibwebrtcConfig,
    ) {
        let interval = config.virtual_rtt.max(smoothed_rtt);
        if since(now, self.changed) > interval {
            self.outstanding = 0;
        }
        if lost > 0 || recovered > 0 {
            self.changed = Some(now);
        }
        if recovered > 0 {
            self.outstanding = self.outstanding.saturating_sub(recovered.into());
            if self.outstanding == 0 {
                (self.level, self.lost) = (0.0, false);
            }
        }
        if lost > 0 {
            self.outstanding += u64::from(lost);
            self.lost = true;
        }
        if since(now, self.began) >= interval {
            self.began = Some(now);
            self.level = match core::mem::take(&mut self.lost) {
                true => (self.level + 1.0 / config.lossy_rtts as f64).min(1.0),
                false => (self.level - 1.0 / config.lossless_rtts as f64).max(0.0),
            };
        }
    }

    /// Returns whether losses are congestion.
    pub fn is_congested(&self) -> bool {
        self.level >= CONGESTED
    }

    /// Returns whether the window must not grow.
    pub fn blocks_growth(&self) -> bool {
        self.level >= BLOCKS_GROWTH
    }
}
