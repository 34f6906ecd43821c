//! The arrival-time filter before 2016: a Kalman filter on two states, inverse capacity and delay gradient.
//!
//! Output equation `d_m(i) = dL(i)/C + m(i) + n(i)` (mmsys16, eq. 7; fhmn13, section 3.1), where `dL` is the difference
//! of frame sizes. By proposition 1 of mmsys16 the two states are not observable if `dL` is constant (a test below
//! shows it), so the paper replaced the filter; libwebrtc's receiver-side estimator kept it. The order of the steps is
//! that of libwebrtc's `overuse_estimator`.

use crate::params;
use libm::{pow, sqrt};

params! {
    /// The parameters of the filter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TwoStateConfig {
        /// libwebrtc of 2015 and the drafts.
        const Y2015;

        /// State noise of 1/C per frame or group.
        q_slope: f64 = 1e-13, unit "(ms/B)²", in 0.0..=1e-3, from "OverUseDetectorOptions";
        /// State noise of m per frame or group.
        q_offset: f64 = 1e-3, unit "ms²", in 0.0..=1e3, from "OverUseDetectorOptions";
        /// Whether the state noise is multiplied by the frame period over 33.3 ms, as in 2013.
        scale_noise: bool = false, from "UpdateKalman";
        /// Whether an outlier keeps its sign when the noise estimate caps it, as in 2015; otherwise it counts as positive.
        cap_keeps_sign: bool = true, from "UpdateKalman";
        /// Lowest noise variance.
        variance_min: f64 = 1.0, unit "ms²", in 1e-7..=1e3, from "UpdateNoiseEstimate";
        /// Whether the noise estimate is updated while min(n, 60)·m is within the threshold, as in 2013; otherwise while
        /// the detector's state is normal.
        learns_within: bool = false, from "UpdateKalman";
    }
}

impl TwoStateConfig {
    /// libwebrtc of 2013: Q = diag(1e-10, 1e-2) per 33.3 ms, cap without sign, lowest variance 1e-7.
    pub const Y2013: Self = Self {
        q_slope: 1e-10,
        q_offset: 1e-2,
        scale_noise: true,
        cap_keeps_sign: false,
        variance_min: 1e-7,
        learns_within: true,
    };
}

/// The shortest of this many frame periods is used.
const PERIODS: usize = 60;
/// The frame count stops here.
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
    periods: [f64; PERIODS],
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
            variance: 50.0,
            count: 0,
            periods: [f64::INFINITY; PERIODS],
            oldest: 0,
        }
    }

    /// Handles the step between two frames: arrival and departure deltas in ms, size difference in bytes. `stable`: the
    /// noise estimate may use it. `usage`: the sign of the detector's state (over-use +1, under-use -1, normal 0); the
    /// state noise of the offset is larger while the offset moves against it. Returns the offset `m` in ms.
    pub fn update(&mut self, arrival_ms: f64, departure_ms: f64, size_delta: f64, stable: bool, usage: i8) -> f64 {
        let c = self.config;
        let period = self.periods.iter().copied().fold(departure_ms, f64::min).max(0.0);
        self.periods[self.oldest] = departure_ms;
        self.oldest = (self.oldest + 1) % PERIODS;
        self.count = (self.count + 1).min(COUNT_MAX);
        let scale = if c.scale_noise { period / NOMINAL_PERIOD_MS } else { 1.0 };

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
        let limit = 3.0 * sqrt(self.variance);
        let z = if residual.abs() < limit {
            residual
        } else if c.cap_keeps_sign && residual < 0.0 {
            -limit
        } else {
            limit
        };
        let alpha = if self.count > 300 { 0.002 } else { 0.01 };
        let beta = pow(1.0 - alpha, period * 30.0 / 1000.0);
        self.mean_noise = beta * self.mean_noise + (1.0 - beta) * z;
        let deviation = self.mean_noise - z;
        self.variance = (beta * self.variance + (1.0 - beta) * deviation * deviation).max(c.variance_min);
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
        assert_eq!(after(59, 33.0), 5.0);
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
}
