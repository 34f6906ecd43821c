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

use crate::{Block, FieldVisitor};
use paceline_units::{RemoteTime, TimeDelta};

/// The numbers of the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdConfig {
    /// The initial value, ms (draft-ietf-rmcat-gcc-02, table 1: 12.5; the paper gives none).
    pub gamma_0: f64,
    /// The gain per ms while `|T| >= gamma`.
    pub k_u: f64,
    /// The gain per ms while `|T| < gamma`.
    pub k_d: f64,
    /// The lowest and the highest value, ms (gcc-02: 6 and 600).
    pub range: (f64, f64),
    /// The threshold does not change while `|T| - gamma` exceeds this, ms (gcc-02: 15; the paper has no guard:
    /// infinite).
    pub guard: f64,
}

impl ThresholdConfig {
    /// draft-ietf-rmcat-gcc-02, table 1 and section 5.4.
    pub const GCC_02: Self = Self { gamma_0: 12.5, k_u: 0.01, k_d: 0.00018, range: (6.0, 600.0), guard: 15.0 };
    /// mmsys16: without a guard. What the paper does not print is the draft's.
    #[cfg(feature = "unstable-internals")]
    pub const MMSYS16: Self = Self { guard: f64::INFINITY, ..Self::GCC_02 };
    /// libwebrtc (`overuse_detector.cc`).
    pub const LIBWEBRTC: Self = Self { k_u: 0.0087, k_d: 0.039, ..Self::GCC_02 };
}

impl Block for ThresholdConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        fields.number("gamma_0", "ms", (0.0, 1e4), &mut self.gamma_0).describe("first threshold, on min(n, 60)·m");
        fields.number("k_u", "1/ms", (0.0, 0.1), &mut self.k_u).describe("threshold gain up");
        fields.number("k_d", "1/ms", (0.0, 0.1), &mut self.k_d).describe("threshold gain down");
        fields.number("gamma_min", "ms", (0.0, 100.0), &mut self.range.0).describe("lowest threshold");
        fields.number("gamma_max", "ms", (100.0, 1e5), &mut self.range.1).describe("highest threshold");
        fields
            .number("guard_ms", "ms", (0.0, f64::INFINITY), &mut self.guard)
            .describe("no threshold update while |T| exceeds gamma by more");
    }
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
    (gamma + dt_ms * k * (t.abs() - gamma)).clamp(c.range.0, c.range.1)
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
