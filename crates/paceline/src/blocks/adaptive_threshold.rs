// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive threshold `gamma`: a low-pass filter of `|m|` with different gains for increase and decrease.
//!
//! ```text
//! gamma(i) = gamma(i-1) + dT · k · (|m(i)| - gamma(i-1)),   k = k_d if |m| < gamma else k_u    (mmsys16, eq. 17, 18)
//! ```
//!
//! It increases fast (`k_u`), so that the delay gradient of a competing TCP flow does not starve this flow, and
//! decreases slowly (`k_d`), so that the flow stays sensitive to its own queue. `m` is the scaled gradient
//! `T = min(n, 60)·m` that the detector compares. Eq. 17 is homogeneous: for n >= 60 this is the paper's form with a
//! gamma sixty times as large.

use crate::params;
use paceline_units::{RemoteTime, TimeDelta};

params! {
    /// The parameters of the threshold.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ThresholdConfig {
        /// draft-ietf-rmcat-gcc-02, table 1 and section 5.4.
        const GCC_02;

        /// Initial threshold on min(n, 60)·m.
        gamma_0: f64 = 12.5, unit "ms", in 0.0..=1e4, from "gcc-02 table 1";
        /// Gain of the threshold while |T| is not below it.
        k_u: f64 = 0.01, unit "1/ms", in 0.0..=0.1, from "gcc-02 table 1";
        /// Gain of the threshold while |T| is below it.
        k_d: f64 = 0.00018, unit "1/ms", in 0.0..=0.1, from "gcc-02 table 1";
        /// Lowest threshold.
        gamma_min: f64 = 6.0, unit "ms", in 0.0..=100.0, from "gcc-02 section 5.4";
        /// Highest threshold.
        gamma_max: f64 = 600.0, unit "ms", in 100.0..=1e5, from "gcc-02 section 5.4";
        /// The threshold does not change while |T| exceeds it by more than this.
        guard as "guard_ms": f64 = 15.0, unit "ms", in 0.0..=f64::INFINITY, from "gcc-02 section 5.4";
    }
}

impl ThresholdConfig {
    /// mmsys16: without a guard. What the paper does not print is the draft's.
    pub const MMSYS16: Self = Self { guard: f64::INFINITY, ..Self::GCC_02 };
    /// libwebrtc (`overuse_detector.cc`).
    pub const LIBWEBRTC: Self = Self { k_u: 0.0087, k_d: 0.039, ..Self::GCC_02 };
}

/// The longest `dT` (libwebrtc). It keeps `dT·k_u` at 1 or below; above that, eq. 17 would overshoot.
const DT_MAX: TimeDelta = TimeDelta::from_millis(100);

/// The threshold.
#[derive(Clone, Debug)]
pub struct AdaptiveThreshold {
    config: ThresholdConfig,
    gamma: f64,
    updated: Option<RemoteTime>,
}

impl AdaptiveThreshold {
    /// Creates a threshold at its initial value.
    pub fn new(config: ThresholdConfig) -> Self {
        Self { config, gamma: config.gamma_0, updated: None }
    }

    /// Returns gamma, ms.
    pub fn gamma_ms(&self) -> f64 {
        self.gamma
    }

    /// Handles the scaled gradient `T` in ms of the frame that arrived at `now`. The first call only sets the time.
    pub fn update(&mut self, now: RemoteTime, t: f64) {
        let dt = now.since(self.updated.replace(now).unwrap_or(now)).min(DT_MAX).as_millis_f64();
        if t.abs() - self.gamma <= self.config.guard {
            self.gamma = step(self.gamma, t, dt, &self.config);
        }
    }
}

/// Eq. 17 and 18, within the range.
fn step(gamma: f64, t: f64, dt_ms: f64, c: &ThresholdConfig) -> f64 {
    let k = if t.abs() < gamma { c.k_d } else { c.k_u };
    (gamma + dt_ms * k * (t.abs() - gamma)).clamp(c.gamma_min, c.gamma_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_interval_does_not_overshoot_the_gradient() {
        let mut threshold = AdaptiveThreshold::new(ThresholdConfig::MMSYS16);
        threshold.update(RemoteTime::from_millis(0), 100.0);
        assert_eq!(threshold.gamma_ms(), 12.5, "no time has passed yet");
        threshold.update(RemoteTime::from_millis(5000), 100.0);
        assert_eq!(threshold.gamma_ms(), 100.0);
        threshold.update(RemoteTime::from_millis(5100), 5000.0);
        assert_eq!(threshold.gamma_ms(), 600.0, "clamped");
    }
}
