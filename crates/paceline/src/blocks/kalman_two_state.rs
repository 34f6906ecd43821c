// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arrival-time filter before 2016: a Kalman filter on two states, inverse capacity and delay gradient.
//!
//! ```text
//! z(i)     = d(i) - h' theta(i-1),                  theta = (1/C, m), h = (dL, 1)
//! var(i)   = max(beta var(i-1) + (1 - beta) z(i)², lowest),   with z(i) capped to 3 sqrt(var(i-1))
//! beta     = (1 - chi)^(30 / (1000 f_max)),         1/f_max = the shortest departure interval of the last groups
//! k(i)     = (E(i-1) + Q) h / (var(i) + h' (E(i-1) + Q) h)
//! theta(i) = theta(i-1) + z(i) k(i)
//! E(i)     = (I - k(i) h') (E(i-1) + Q)
//! ```
//!
//! from the output equation `d_m(i) = dL(i)/C + m(i) + n(i)` (mmsys16, eq. 7; fhmn13, section 3.1), where `dL` is the
//! difference of group sizes. By proposition 1 of mmsys16 the two states are not observable if `dL` is constant (a test
//! below shows it), so the paper replaced the filter; libwebrtc's receiver-side estimator (`overuse_estimator`) kept it.
//!
//! | | libwebrtc of 2013 | of 2015 | draft of June 2015, section 4.2 |
//! |---|---|---|---|
//! | Q | per 33.3 ms | per group | per group |
//! | Q of m while m moves against the detector | 11 times | 11 times | once |
//! | var is taken around | a mean of z | a mean of z | zero |
//! | var is updated | within the threshold | in the state normal | always |
//! | chi | 0.01, after 300 groups 0.002 | 0.01, after 300 groups 0.002 | 0.001 to 0.1 |
//! | cap of z | to +3 deviations, also if it is negative | keeps its sign | positive ones only |

use crate::params;
use libm::{pow, sqrt};

/// What becomes of a residual that the noise estimate caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlierCap {
    /// It counts as positive, a known bug of 2013.
    LosesSign,
    /// It keeps its sign.
    KeepsSign,
    /// A negative one is not capped.
    PositiveOnly,
}

/// When the filter updates its noise estimate, by the detector that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// While the state of the detector is normal.
    WhileNormal,
    /// While the scaled offset is within the threshold.
    WithinThreshold,
    /// Always. The detector has no effect on the filter.
    Always,
}

params! {
    /// The parameters of the filter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TwoStateConfig {
        /// libwebrtc of 2015, and draft-ietf-rmcat-gcc.
        const Y2015;

        /// State noise of 1/C per frame or group.
        q_slope: f64 = 1e-13, unit "(ms/B)²", in 0.0..=1e-3, from "OverUseDetectorOptions";
        /// State noise of m per frame or group.
        q_offset: f64 = 1e-3, unit "ms²", in 0.0..=1e3, from "OverUseDetectorOptions";
        /// Whether the state noise is multiplied by the frame period over 33.3 ms, as in 2013.
        scale_noise: bool = false, from "UpdateKalman";
        /// Whether an outlier keeps its sign when the noise estimate caps it, as in 2015; otherwise it counts as positive.
        cap_keeps_sign: OutlierCap = OutlierCap::KeepsSign, of [OutlierCap::LosesSign, OutlierCap::KeepsSign],
            from "UpdateKalman";
        /// Filter coefficient of the noise variance.
        chi: f64 = 0.01, in 0.0..=1.0, from "UpdateNoiseEstimate";
        /// The same after 300 groups.
        chi_settled as _: Option<f64> = Some(0.002);
        /// Whether the noise variance is taken around a mean of the residuals; otherwise around zero.
        has_mean as _: bool = true;
        /// Noise variance before the first group.
        variance_0: f64 = 50.0, unit "ms²", in 1e-9..=1e6, from "OverUseDetectorOptions";
        /// Lowest noise variance.
        variance_min: f64 = 1.0, unit "ms²", in 1e-7..=1e3, from "UpdateNoiseEstimate";
        /// Standard deviations to which a residual is capped in the noise estimate.
        outlier_cap: f64 = 3.0, in 0.0..=100.0, from "UpdateKalman";
        /// Whether the noise estimate is updated while min(n, 60)·m is within the threshold, as in 2013; otherwise while
        /// the detector's state is normal.
        learns as "learns_within": Learning = Learning::WhileNormal, of [Learning::WhileNormal, Learning::WithinThreshold],
            from "UpdateKalman";
        /// Number of groups, with the current one, whose shortest departure interval counts; at most 61.
        groups as _: usize = GROUPS_MAX;
    }
}

impl TwoStateConfig {
    /// libwebrtc of 2013.
    pub const Y2013: Self = Self {
        q_slope: 1e-10,
        q_offset: 1e-2,
        scale_noise: true,
        cap_keeps_sign: OutlierCap::LosesSign,
        variance_min: 1e-7,
        learns: Learning::WithinThreshold,
        ..Self::Y2015
    };
    /// draft-alvestrand-rmcat-congestion-03 of June 2015, section 4.2 and table 1. It does not fix `chi`, the first noise
    /// variance, the first `1/C` and the number of groups.
    pub const JUNE_2015: Self = Self {
        cap_keeps_sign: OutlierCap::PositiveOnly,
        chi_settled: None,
        has_mean: false,
        learns: Learning::Always,
        groups: 60,
        ..Self::Y2015
    };
}

/// libwebrtc counts the current group and 60 before it.
const GROUPS_MAX: usize = 61;
/// The group count stops here.
const COUNT_MAX: u32 = 1000;
/// The period of 30 frames per second, ms, for which the time constants are given.
const NOMINAL_PERIOD_MS: f64 = 1000.0 / 30.0;

/// The filter.
#[derive(Clone, Debug)]
pub struct TwoStateKalman {
    config: TwoStateConfig,
    /// 1/C, ms per byte.
    slope: f64,
    /// m, ms.
    offset: f64,
    previous_offset: f64,
    /// The error covariance.
    e: [[f64; 2]; 2],
    mean_noise: f64,
    variance: f64,
    count: u32,
    /// The last departure intervals, ms.
    periods: [f64; GROUPS_MAX],
    oldest: usize,
}

impl TwoStateKalman {
    /// Creates a filter with slope 8/512 ms per byte and offset 0.
    pub fn new(config: TwoStateConfig) -> Self {
        Self {
            config,
            slope: 8.0 / 512.0,
            offset: 0.0,
            previous_offset: 0.0,
            e: [[100.0, 0.0], [0.0, 0.1]],
            mean_noise: 0.0,
            variance: config.variance_0,
            count: 0,
            periods: [f64::INFINITY; GROUPS_MAX],
            oldest: 0,
        }
    }

    /// Forgets all groups.
    pub fn restart(&mut self) {
        *self = Self::new(self.config);
    }

    /// Returns the parameters.
    pub fn config(&self) -> &TwoStateConfig {
        &self.config
    }

    /// Handles the step between two groups: arrival and departure deltas in ms, size difference in bytes. `stable`: the
    /// noise estimate may use it. `usage`: the sign of the detector's state (over-use +1, under-use -1, normal 0); the
    /// state noise of the offset is larger while the offset moves against it. Returns the offset `m` in ms.
    pub fn update(&mut self, arrival_ms: f64, departure_ms: f64, size_delta: f64, stable: bool, usage: i8) -> f64 {
        let c = self.config;
        self.periods[self.oldest] = departure_ms;
        self.oldest = (self.oldest + 1) % c.groups;
        let period = self.periods.iter().copied().fold(f64::INFINITY, f64::min).max(0.0);
        self.count = (self.count + 1).min(COUNT_MAX);
        let scale = if c.scale_noise { period / NOMINAL_PERIOD_MS } else { 1.0 };

        // E + Q
        self.e[0][0] += c.q_slope * scale;
        self.e[1][1] += c.q_offset * scale;
        let step = self.offset - self.previous_offset;
        if (usage > 0 && step < 0.0) || (usage < 0 && step > 0.0) {
            self.e[1][1] += 10.0 * c.q_offset * scale;
        }

        let h = [size_delta, 1.0];
        let eh = [self.e[0][0] * h[0] + self.e[0][1], self.e[1][0] * h[0] + self.e[1][1]];
        let residual = arrival_ms - departure_ms - self.slope * h[0] - self.offset;
        if stable {
            self.update_noise(residual, period);
        }
        // With huge forged sizes, rounding may leave E slightly negative.
        let denominator = (self.variance + h[0] * eh[0] + eh[1]).max(self.variance);
        let k = [eh[0] / denominator, eh[1] / denominator];
        // (I - K h^T) E; E stays symmetric, so h^T E is Eh.
        for (row, gain) in self.e.iter_mut().zip(k) {
            row[0] -= gain * eh[0];
            row[1] -= gain * eh[1];
        }
        self.slope += k[0] * residual;
        self.previous_offset = self.offset;
        self.offset += k[1] * residual;
        self.offset
    }

    /// Returns 1/C, ms per byte.
    #[cfg(feature = "unstable-internals")]
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// Returns the estimated noise variance, ms².
    pub fn variance(&self) -> f64 {
        self.variance
    }

    fn update_noise(&mut self, residual: f64, period: f64) {
        let c = self.config;
        let z = capped(residual, c.outlier_cap * sqrt(self.variance), c.cap_keeps_sign);
        let chi = c.chi_settled.filter(|_| self.count > 300).unwrap_or(c.chi);
        let beta = pow(1.0 - chi, period * 30.0 / 1000.0);
        if c.has_mean {
            self.mean_noise = beta * self.mean_noise + (1.0 - beta) * z;
        }
        let deviation = self.mean_noise - z;
        self.variance = (beta * self.variance + (1.0 - beta) * deviation * deviation).max(c.variance_min);
    }
}

/// The outlier filter.
fn capped(z: f64, limit: f64, cap: OutlierCap) -> f64 {
    match cap {
        _ if z.abs() < limit => z,
        OutlierCap::KeepsSign if z < 0.0 => -limit,
        OutlierCap::PositiveOnly if z < 0.0 => z,
        _ => limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters noise-free frames with the given size differences on a path of capacity `c` (bytes/ms) and gradient `mu`
    /// (ms per frame).
    fn filtered(sizes: impl Iterator<Item = f64>, c: f64, mu: f64) -> TwoStateKalman {
        let mut filter = TwoStateKalman::new(TwoStateConfig::Y2015);
        for dl in sizes {
            filter.update(33.0 + dl / c + mu, 33.0, dl, true, 0);
        }
        filter
    }

    #[test]
    fn shortest_period_is_forgotten_after_sixty_frames() {
        let mut filter = TwoStateKalman::new(TwoStateConfig::Y2015);
        let mut after = |frames, departure| {
            for _ in 0..frames {
                filter.update(departure, departure, 0.0, true, 0);
            }
            filter.periods.iter().copied().fold(f64::INFINITY, f64::min)
        };
        assert_eq!(after(70_000, 33.0), 33.0);
        assert_eq!(after(1, 5.0), 5.0);
        assert_eq!(after(60, 33.0), 5.0);
        assert_eq!(after(1, 33.0), 33.0);
    }

    /// mmsys16, proposition 1.
    #[test]
    fn constant_size_differences_make_the_system_unobservable() {
        // 400 bytes over 100 bytes/ms and no gradient look like 400 over 400 and 3 ms: both give d = 4 ms.
        let constant = || core::iter::repeat_n(400.0, 3000);
        let (a, b) = (filtered(constant(), 100.0, 0.0), filtered(constant(), 400.0, 3.0));
        assert_eq!((a.slope, a.offset), (b.slope, b.offset), "two paths with the same estimate, to the last bit");
        assert!((a.slope - 1.0 / 100.0).abs() > 1e-4 || (b.slope - 1.0 / 400.0).abs() > 1e-4);

        // With changing size differences both paths are estimated correctly.
        let varied = || (0..3000).map(|i| if i % 2 == 0 { 800.0 } else { -800.0 });
        let (a, b) = (filtered(varied(), 100.0, 0.0), filtered(varied(), 400.0, 3.0));
        assert!((a.slope * 100.0 - 1.0).abs() < 0.01, "{}", a.slope);
        assert!((b.slope * 400.0 - 1.0).abs() < 0.01, "{}", b.slope);
        assert!(a.offset.abs() < 0.05 && (b.offset - 3.0).abs() < 0.05, "{} {}", a.offset, b.offset);
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{value} instead of {expected}");
    }

    /// Passes a gradient `d` in ms to a filter of the draft.
    fn draft(filter: &mut TwoStateKalman, d: f64, departure_ms: f64, size_delta: f64) -> f64 {
        filter.update(departure_ms + d, departure_ms, size_delta, true, 0)
    }

    /// Two groups that a separate program computed from the printed equations with exact fractions: d = 2 ms after
    /// 33 ms and 0 bytes, then d = 5 ms after 20 ms and 100 bytes.
    #[test]
    fn estimates_follow_the_equations_of_the_draft() {
        let mut filter = TwoStateKalman::new(TwoStateConfig::JUNE_2015);
        let m = draft(&mut filter, 2.0, 33.0, 0.0);
        near(filter.variance, VARIANCE_1);
        near(m, M_1);
        near(filter.slope, 8.0 / 512.0);
        let m = draft(&mut filter, 5.0, 20.0, 100.0);
        near(filter.variance, VARIANCE_2);
        near(m, M_2);
        near(filter.slope, SLOPE_2);
    }

    const VARIANCE_1: f64 = 49.544577152953;
    const M_1: f64 = 0.004068841810;
    const VARIANCE_2: f64 = 49.317585186496;
    const M_2: f64 = 0.004069191297;
    const SLOPE_2: f64 = 0.049957614885;

    /// At var = 4, three standard deviations are 6 ms: 60 counts as 6, and -60 as it is. chi = 0.1 and 1/f_max =
    /// 1000/30 ms give beta = 0.9: 0.9 · 4 + 0.1 · 36 and 0.9 · 4 + 0.1 · 3600.
    #[test]
    fn outlier_filter_of_the_draft_caps_positive_residuals_only() {
        let config = TwoStateConfig { chi: 0.1, variance_0: 4.0, ..TwoStateConfig::JUNE_2015 };
        for (d, expected) in [(60.0, 7.2), (6.0, 7.2), (-60.0, 363.6)] {
            let mut filter = TwoStateKalman::new(config);
            draft(&mut filter, d, 1000.0 / 30.0, 0.0);
            near(filter.variance, expected);
        }
    }

    /// Three steps of +577 bytes lower the noise variance of a filter without memory to almost zero. If it may be zero, it is zero
    /// at the fourth step. The error covariance is then singular, and the denominator of the fifth gain is not positive, by
    /// rounding.
    #[test]
    fn estimates_are_finite_with_the_lowest_variance() {
        let estimate = |variance_min| {
            let config = TwoStateConfig {
                q_slope: 0.0,
                q_offset: 0.0,
                chi: 1.0,
                variance_0: 1e-9,
                variance_min,
                outlier_cap: 0.0,
                ..TwoStateConfig::JUNE_2015
            };
            let mut filter = TwoStateKalman::new(config);
            for size in [577.0, 577.0, 577.0, -477.0] {
                draft(&mut filter, 2.0, 33.0, size);
            }
            draft(&mut filter, 5.0, 33.0, 0.0)
        };
        assert!(estimate(1e-7).is_finite());
        assert!(!estimate(0.0).is_finite());
    }
}
