//! The arrival-time filter of the draft of June 2015 (draft-alvestrand-rmcat-congestion-03, section 4.2): a Kalman filter
//! on two states, inverse capacity and delay gradient.
//!
//! ```text
//! z(i)     = d(i) - h' theta(i-1),                  theta = (1/C, m), h = (dL, 1)
//! var(i)   = max(beta var(i-1) + (1 - beta) z(i)², 1),   z(i) at most 3 sqrt(var(i-1))
//! beta     = (1 - chi)^(30 / (1000 f_max)),         1/f_max = the shortest departure interval of the last K groups
//! k(i)     = (E(i-1) + Q) h / (var(i) + h' (E(i-1) + Q) h)
//! theta(i) = theta(i-1) + z(i) k(i)
//! E(i)     = (I - k(i) h') (E(i-1) + Q)
//! ```
//!
//! Unlike libwebrtc's filter ([`TwoStateKalman`](super::TwoStateKalman)) it has no mean of the noise, learns in every
//! state of the detector, does not raise the state noise, and caps positive residuals only.

use crate::params;
use libm::{pow, sqrt};

params! {
    /// The parameters of the filter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DraftKalmanConfig {
        /// draft-alvestrand-rmcat-congestion-03, section 4.2 and table 1. `chi` and `variance_0`, which it does not fix,
        /// are libwebrtc's first values.
        const JUNE_2015;

        /// State noise of 1/C per group.
        q_slope: f64 = 1e-13, unit "(ms/B)²", in 0.0..=1e-3, from "section 4.2";
        /// State noise of m per group.
        q_offset: f64 = 1e-3, unit "ms²", in 0.0..=1e3, from "section 4.2";
        /// Filter coefficient of the noise variance.
        chi: f64 = 0.01, in 0.0..=1.0, from "section 4.2: 0.001 to 0.1; libwebrtc's first 0.01";
        /// Noise variance before the first group.
        variance_0: f64 = 50.0, unit "ms²", in 1e-9..=1e6, from "not printed, libwebrtc's 50";
        /// Lowest noise variance. At zero the denominator of the gain could be zero.
        variance_min: f64 = 1.0, unit "ms²", in 1e-7..=1e3, from "section 4.2";
        /// Cap of positive residuals in the noise estimate, in standard deviations.
        outlier_cap: f64 = 3.0, in 0.0..=100.0, from "section 4.2";
    }
}

/// `K`: the shortest departure interval of this many groups counts. The draft does not fix it; libwebrtc has 60.
const GROUPS: usize = 60;
/// `1/C` before the first group, ms/byte. The draft does not give it; libwebrtc has 8/512.
const SLOPE_0: f64 = 8.0 / 512.0;
/// The diagonal of `E(0)` (table 1).
const E_0: [f64; 2] = [100.0, 0.1];

/// The filter.
#[derive(Clone, Debug)]
pub struct DraftKalman {
    config: DraftKalmanConfig,
    /// 1/C in ms/byte, and m in ms.
    theta: [f64; 2],
    /// The error covariance.
    e: [[f64; 2]; 2],
    variance: f64,
    /// Departure intervals of the last groups, ms.
    intervals: [f64; GROUPS],
    oldest: usize,
}

impl DraftKalman {
    /// Creates a filter with `m(0) = 0`.
    pub fn new(config: DraftKalmanConfig) -> Self {
        Self {
            config,
            theta: [SLOPE_0, 0.0],
            e: [[E_0[0], 0.0], [0.0, E_0[1]]],
            variance: config.variance_0,
            intervals: [f64::INFINITY; GROUPS],
            oldest: 0,
        }
    }

    /// Handles the step between two groups: `d` and departure interval in ms, size difference in bytes. Returns `m`, ms.
    pub fn update(&mut self, d: f64, departure_ms: f64, size_delta: f64) -> f64 {
        self.intervals[self.oldest] = departure_ms.max(0.0);
        self.oldest = (self.oldest + 1) % GROUPS;
        let shortest = self.intervals.iter().copied().fold(f64::INFINITY, f64::min);

        let (c, h) = (self.config, [size_delta, 1.0]);
        let z = residual(d, h, self.theta);
        self.variance =
            variance(self.variance, capped(z, self.variance, c.outlier_cap), beta(c.chi, shortest)).max(c.variance_min);
        let e = with_state_noise(self.e, [c.q_slope, c.q_offset]);
        let k = gain(e, h, self.variance);
        self.theta = [self.theta[0] + z * k[0], self.theta[1] + z * k[1]];
        self.e = error_covariance(e, h, k);
        self.theta[1]
    }
}

/// `z(i) = d(i) - h' theta(i-1)`.
fn residual(d: f64, h: [f64; 2], theta: [f64; 2]) -> f64 {
    d - h[0] * theta[0] - h[1] * theta[1]
}

/// The outlier filter: `z` at most `cap` standard deviations.
fn capped(z: f64, variance: f64, cap: f64) -> f64 {
    z.min(cap * sqrt(variance))
}

/// `beta = (1 - chi)^(30 / (1000 f_max))`, with the shortest departure interval `1/f_max` in ms.
fn beta(chi: f64, shortest_ms: f64) -> f64 {
    pow(1.0 - chi, 30.0 * shortest_ms / 1000.0)
}

/// `beta var(i-1) + (1 - beta) z(i)²`.
fn variance(before: f64, z: f64, beta: f64) -> f64 {
    beta * before + (1.0 - beta) * z * z
}

/// `E(i-1) + Q`.
fn with_state_noise(e: [[f64; 2]; 2], q: [f64; 2]) -> [[f64; 2]; 2] {
    [[e[0][0] + q[0], e[0][1]], [e[1][0], e[1][1] + q[1]]]
}

/// `k(i) = (E + Q) h / (var + h' (E + Q) h)`. With huge forged sizes, rounding may make the second term of the
/// denominator negative; it then counts as zero.
fn gain(e: [[f64; 2]; 2], h: [f64; 2], variance: f64) -> [f64; 2] {
    let eh = [e[0][0] * h[0] + e[0][1] * h[1], e[1][0] * h[0] + e[1][1] * h[1]];
    let denominator = variance + (h[0] * eh[0] + h[1] * eh[1]).max(0.0);
    [eh[0] / denominator, eh[1] / denominator]
}

/// `E(i) = (I - k(i) h') (E(i-1) + Q)`.
fn error_covariance(e: [[f64; 2]; 2], h: [f64; 2], k: [f64; 2]) -> [[f64; 2]; 2] {
    let he = [h[0] * e[0][0] + h[1] * e[1][0], h[0] * e[0][1] + h[1] * e[1][1]];
    [[e[0][0] - k[0] * he[0], e[0][1] - k[0] * he[1]], [e[1][0] - k[1] * he[0], e[1][1] - k[1] * he[1]]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{value} instead of {expected}");
    }

    /// Two groups that a separate program computed from the printed equations with exact fractions: d = 2 ms after
    /// 33 ms and 0 bytes, then d = 5 ms after 20 ms and 100 bytes.
    #[test]
    fn estimates_follow_the_printed_equations() {
        let mut filter = DraftKalman::new(DraftKalmanConfig::JUNE_2015);
        let m = filter.update(2.0, 33.0, 0.0);
        near(filter.variance, VARIANCE_1);
        near(m, M_1);
        near(filter.theta[0], 8.0 / 512.0);
        let m = filter.update(5.0, 20.0, 100.0);
        near(filter.variance, VARIANCE_2);
        near(m, M_2);
        near(filter.theta[0], SLOPE_2);
    }

    const VARIANCE_1: f64 = 49.544577152953;
    const M_1: f64 = 0.004068841810;
    const VARIANCE_2: f64 = 49.317585186496;
    const M_2: f64 = 0.004069191297;
    const SLOPE_2: f64 = 0.049957614885;

    /// At var = 4, three standard deviations are 6 ms: 60 counts as 6, and -60 as it is. chi = 0.1 and 1/f_max =
    /// 1000/30 ms give beta = 0.9: 0.9 · 4 + 0.1 · 36 and 0.9 · 4 + 0.1 · 3600.
    #[test]
    fn outlier_filter_caps_positive_residuals_only() {
        let config = DraftKalmanConfig { chi: 0.1, variance_0: 4.0, ..DraftKalmanConfig::JUNE_2015 };
        for (d, expected) in [(60.0, 7.2), (6.0, 7.2), (-60.0, 363.6)] {
            let mut filter = DraftKalman::new(config);
            filter.update(d, 1000.0 / 30.0, 0.0);
            near(filter.variance, expected);
        }
    }

    #[test]
    fn variance_has_a_floor_and_f_max_forgets_after_sixty_groups() {
        let mut filter = DraftKalman::new(DraftKalmanConfig { chi: 0.1, ..DraftKalmanConfig::JUNE_2015 });
        for _ in 0..3000 {
            filter.update(0.0, 33.0, 0.0);
        }
        near(filter.variance, 1.0);
        filter.update(0.0, 5.0, 0.0);
        let shortest = |filter: &DraftKalman| filter.intervals.iter().copied().fold(f64::INFINITY, f64::min);
        for _ in 0..59 {
            filter.update(0.0, 33.0, 0.0);
        }
        assert_eq!(shortest(&filter), 5.0);
        filter.update(0.0, 33.0, 0.0);
        assert_eq!(shortest(&filter), 33.0);
    }

    /// Three steps of +577 bytes lower the noise variance of a filter without memory to almost zero. If it may be zero, it is zero
    /// at the fourth step. The error covariance is then singular, and the denominator of the fifth gain is not positive, by
    /// rounding.
    #[test]
    fn estimates_are_finite_with_the_lowest_variance() {
        let estimate = |variance_min| {
            let config = DraftKalmanConfig {
                q_slope: 0.0,
                q_offset: 0.0,
                chi: 1.0,
                variance_0: 1e-9,
                variance_min,
                outlier_cap: 0.0,
            };
            let mut filter = DraftKalman::new(config);
            for size in [577.0, 577.0, 577.0, -477.0] {
                filter.update(2.0, 33.0, size);
            }
            filter.update(5.0, 33.0, 0.0)
        };
        assert!(estimate(1e-7).is_finite());
        assert!(!estimate(0.0).is_finite());
    }
}
