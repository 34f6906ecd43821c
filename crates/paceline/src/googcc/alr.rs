// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application-limited region (libwebrtc's `AlrDetector`): the flow sends less than its estimate allows because its
//! sources produce less.
//!
//! ```text
//! k = 0.8 A               b = min(max(b - sent, -k W) + k dt, k W)          W = 500 ms
//! begins: b > 0.4 k W     ends: b < -0.6 k W
//! ```
//!
//! [`ApplicationLimit`](crate::blocks::ApplicationLimit) has the same rule for the flow, with a condition on its queue. This
//! one counts whole bytes and milliseconds like libwebrtc, because its edges trigger probes.

use crate::blocks::units::whole_kbps;
use crate::params;
use paceline_units::{DataSize, Rate, Time};

params! {
    /// The parameters of the detector.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AlrConfig {
        /// libwebrtc's effective defaults (`kDefaultProbingScreenshareBweSettings`, `alr_experiment.cc`), which replace
        /// those of the class.
        const LIBWEBRTC;

        /// Share of the estimate that counts as used.
        usage as "alr_usage": f64 = 0.8, in 0.01..=1.0, from "alr_bandwidth_usage_percent";
        /// Share of the largest budget above which the application limits the flow.
        begin as "alr_begin": f64 = 0.4, in 0.0..=1.0, from "alr_start_budget_level_percent";
        /// Share of the largest budget below which this ends.
        end as "alr_end": f64 = -0.6, in -1.0..=0.0, from "alr_stop_budget_level_percent";
    }
}

/// The window of the budget, ms (`kWindowMs`, `interval_budget.cc`).
const WINDOW_MS: i64 = 500;

/// The detector.
#[derive(Clone, Debug)]
pub struct AlrDetector {
    config: AlrConfig,
    /// The used rate, kbit/s.
    rate: i64,
    /// The largest budget, bytes.
    most: i64,
    /// The budgets at which the region begins and ends, bytes.
    levels: (f64, f64),
    /// The bytes that could have been sent and were not.
    budget: i64,
    last: Option<Time>,
    /// The time at which the region began; `None` outside it.
    pub since: Option<Time>,
}

impl AlrDetector {
    /// Creates a detector without an estimate, outside the region.
    pub fn new(config: AlrConfig) -> Self {
        Self { config, rate: 0, most: 0, levels: (0.0, 0.0), budget: 0, last: None, since: None }
    }

    /// Sets the estimate. Fractions of a kbit/s are rounded, or `truncated` as before 2025-07.
    pub fn set_estimate(&mut self, estimate: Rate, truncated: bool) {
        // More than 2^40 kbit/s are no different.
        let kbps = match truncated {
            true => (estimate.as_bps_f64() * self.config.usage / 1e3) as u64,
            false => whole_kbps(estimate.scale(self.config.usage)),
        };
        self.rate = kbps.min(1 << 40) as i64;
        self.most = WINDOW_MS * self.rate / 8;
        self.levels = (self.config.begin * self.most as f64, self.config.end * self.most as f64);
        self.budget = self.budget.clamp(-self.most, self.most);
    }

    /// Handles a packet that was sent. The first one only starts the clock.
    #[inline]
    pub fn handle_sent(&mut self, now: Time, size: DataSize) {
        let Some(last) = self.last.replace(now) else { return };
        // After a minute the budget is full.
        let ms = (now.since(last).as_nanos() / 1_000_000).clamp(0, 60_000);
        let spent = (self.budget - size.as_bytes() as i64).max(-self.most);
        self.budget = (spent + self.rate * ms / 8).min(self.most);
        if self.most == 0 {
            return;
        }
        let budget = self.budget as f64;
        if budget > self.levels.0 {
            self.since.get_or_insert(now);
        } else if budget < self.levels.1 {
            self.since = None;
        }
    }
}
