//! The arrival-time filter before 2016: a Kalman filter on two states, inverse capacity and delay gradient.
//!
//! Output equation `d_m(i) = dL(i)/C + m(i) + n(i)` (mmsys16, eq. 7; fhmn13, section 3.1), `dL` the difference of
//! frame sizes. mmsys16's proposition 1 says why it went: with constant `dL` the two states cannot be told apart
//! (a test below shows it); libwebrtc's receiver-side estimator kept it all the same. Follows libwebrtc's
//! `overuse_estimator` in the order of its steps.

use crate::{Block, Fields};
use libm::{pow, sqrt};

/// Numbers of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoStateConfig {
    /// State noise of 1/C, (ms/byte)², per frame.
    pub q_slope: f64,
    /// State noise of m, ms², per frame.
    pub q_offset: f64,
    /// Scale the state noise by the frame period over 33.3 ms (2013) or not (2015).
    pub scale_noise: bool,
    /// A capped residual keeps its sign (2015) or loses it (2013, a known slip).
    pub cap_keeps_sign: bool,
    /// Lowest noise variance, ms².
    pub variance_min: f64,
    /// Noise is learnt while the scaled offset is within the threshold (2013), or while the detector says normal (2015).
    /// For whoever runs the filter: it is told `stable`.
    pub learns_within: bool,
}

impl Block for TwoStateConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.number("q_slope", "(ms/B)²", (0.0, 1e-3), &mut self.q_slope).says("state noise of 1/C per ");
        fields.number("q_offset", "ms²", (0.0, 1e3), &mut self.q_offset).says("state noise of m per ");
        fields.flag("scale_noise", &mut self.scale_noise).says("1: state noise grows with the frame period");
        fields
            .flag("cap_keeps_sign", &mut self.cap_keeps_sign)
            .says("an outlier is capped to +3 standard deviations in the noise estimate, whatever its sign");
        fields.number("variance_min", "ms²", (1e-7, 1e3), &mut self.variance_min).says("lowest noise variance");
        fields
            .flag("learns_within", &mut self.learns_within)
            .says("noise is learnt while min(n, 60)·m is within the threshold");
    }
}

impl TwoStateConfig {
    /// libwebrtc of 2015 and the drafts: Q = diag(1e-13, 1e-3), signed cap, floor 1.
    pub const Y2015: Self = Self {
        q_slope: 1e-13,
        q_offset: 1e-3,
        scale_noise: false,
        cap_keeps_sign: true,
        variance_min: 1.0,
        learns_within: false,
    };
    /// libwebrtc of 2013: Q = diag(1e-10, 1e-2) per 33.3 ms, sign-losing cap, floor 1e-7.
    pub const Y2013: Self = Self {
        q_slope: 1e-10,
        q_offset: 1e-2,
        scale_noise: true,
        cap_keeps_sign: false,
        variance_min: 1e-7,
        learns_within: true,
    };
}

/// Frame periods remembered to find the shortest.
const PERIODS: usize = 60;
/// Frames beyond which counting stops.
const COUNT_MAX: u32 = 1000;
/// Period of 30 frames a second, ms: the time constants are given for it.
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
    /// Error covariance.
    e: [[f64; 2]; 2],
    mean_noise: f64,
    variance: f64,
    count: u32,
    periods: [f64; PERIODS],
    oldest: usize,
}

impl TwoStateKalman {
    /// A filter that has seen nothing: slope 8/512 ms per byte, offset 0.
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

    /// Takes a frame's step: arrival and departure deltas in ms, size difference in bytes. `stable`: the noise may be
    /// learnt from it. `opposes`: the detector's state (Over: +1, Under: -1, Normal: 0), which widens the offset's
    /// noise when the offset moves against it. Answers the offset `m` in ms.
    pub fn update(&mut self, arrival_ms: f64, departure_ms: f64, size_delta: f64, stable: bool, opposes: i8) -> f64 {
        let c = self.config;
        let period = self.periods.iter().copied().fold(departure_ms, f64::min).max(0.0);
        self.periods[self.oldest] = departure_ms;
        self.oldest = (self.oldest + 1) % PERIODS;
        self.count = (self.count + 1).min(COUNT_MAX);
        let scale = if c.scale_noise { period / NOMINAL_PERIOD_MS } else { 1.0 };

        self.e[0][0] += c.q_slope * scale;
        self.e[1][1] += c.q_offset * scale;
        let step = self.offset - self.previous_offset;
        if (opposes > 0 && step < 0.0) || (opposes < 0 && step > 0.0) {
            self.e[1][1] += 10.0 * c.q_offset * scale;
        }

        let h = [size_delta, 1.0];
        let eh = [self.e[0][0] * h[0] + self.e[0][1], self.e[1][0] * h[0] + self.e[1][1]];
        let residual = arrival_ms - departure_ms - self.slope * h[0] - self.offset;
        if stable {
            self.learn_noise(residual, period);
        }
        // What rounding leaves of E may be a little below zero where forged sizes are huge.
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

    /// 1/C, ms per byte.
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// The estimated noise variance, ms².
    pub fn variance(&self) -> f64 {
        self.variance
    }

    fn learn_noise(&mut self, residual: f64, period: f64) {
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

    /// Runs noise-free frames of the given size differences over a path of capacity `c` (bytes/ms) and gradient `mu`
    /// (ms per frame).
    fn fed(sizes: impl Iterator<Item = f64>, c: f64, mu: f64) -> TwoStateKalman {
        let mut filter = TwoStateKalman::new(TwoStateConfig::Y2015);
        for dl in sizes {
            filter.update(33.0 + dl / c + mu, 33.0, dl, true, 0);
        }
        filter
    }

    /// A period leaves the memory after sixty frames, also late in a call.
    #[test]
    fn the_shortest_period_is_forgotten() {
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

    /// mmsys16, proposition 1: with constant `dL` the system is not observable.
    #[test]
    fn constant_frame_steps_cannot_tell_capacity_from_gradient() {
        // 400 bytes over 100 bytes/ms and no gradient look like 400 over 400 and 3 ms: both give d = 4 ms.
        let constant = || core::iter::repeat_n(400.0, 3000);
        let (a, b) = (fed(constant(), 100.0, 0.0), fed(constant(), 400.0, 3.0));
        assert_eq!((a.slope(), a.offset), (b.slope(), b.offset), "two paths, one estimate, to the last bit");
        assert!((a.slope() - 1.0 / 100.0).abs() > 1e-4 || (b.slope() - 1.0 / 400.0).abs() > 1e-4);

        // With steps that change, the same two paths come apart, and each estimate is right.
        let varied = || (0..3000).map(|i| if i % 2 == 0 { 800.0 } else { -800.0 });
        let (a, b) = (fed(varied(), 100.0, 0.0), fed(varied(), 400.0, 3.0));
        assert!((a.slope() * 100.0 - 1.0).abs() < 0.01, "{}", a.slope());
        assert!((b.slope() * 400.0 - 1.0).abs() < 0.01, "{}", b.slope());
        assert!(a.offset.abs() < 0.05 && (b.offset - 3.0).abs() < 0.05, "{} {}", a.offset, b.offset);
    }
}
