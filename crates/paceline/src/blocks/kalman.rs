// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arrival-time filter of GCC 2016: a scalar Kalman filter whose one state is the one-way delay gradient `m`.
//!
//! State: `m(i+1) = m(i) + w`, output: `d_m(i) = m(i) + n` (mmsys16, eq. 10). The noise variance is estimated from the
//! residual, so that measurements have less weight on a path with jitter. Each equation is one function below. All
//! values are in milliseconds (variances in ms²) per frame.

use crate::params;

params! {
    /// The parameters of the filter.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct KalmanConfig {
        /// mmsys16. What the paper does not print is libwebrtc's, or absent.
        const MMSYS16;

        /// Variance of the state noise, Q.
        q: f64 = 1e-3, unit "ms²", in 1e-12..=1e3, from "eq. 15";
        /// Smoothing factor of the noise estimate.
        beta: f64 = 0.95, in 0.0..=1.0, from "eq. 16";
        /// Initial error variance, P(0).
        p_0: f64 = 0.1, unit "ms²", in 0.0..=1e3, from "section 4.1.2";
        /// Initial noise variance.
        variance_0: f64 = 50.0, unit "ms²", in 1e-9..=1e6, from "not printed, libwebrtc's 50";
        /// Lowest noise variance.
        variance_min: f64 = 0.0, unit "ms²", in 0.0..=1e3, from "none in the paper, 1 in gcc-02 section 5.3";
        /// Cap of residuals in the noise estimate, in standard deviations; 0: no cap.
        outlier_cap: f64 = 0.0, in 0.0..=100.0, from "none in the paper, 3 in gcc-02 section 5.3";
    }
}

/// The filter.
#[derive(Clone, Debug)]
pub struct ScalarKalman {
    config: KalmanConfig,
    m: f64,
    p: f64,
    variance: f64,
}

impl ScalarKalman {
    /// Creates a filter with `m(0) = 0`.
    pub fn new(config: KalmanConfig) -> Self {
        Self { config, m: 0.0, p: config.p_0, variance: config.variance_0 }
    }

    /// Handles the measured gradient `d_m` of a frame. Returns the estimate `m`. Both are in ms.
    pub fn update(&mut self, d_m: f64) -> f64 {
        let c = &self.config;
        let residual = d_m - self.m;
        self.variance =
            noise(self.variance, capped(residual, self.variance, c.outlier_cap), c.beta).max(c.variance_min);
        let gain = gain(self.p, c.q, self.variance);
        self.m = estimate(self.m, d_m, gain);
        self.p = error_variance(self.p, c.q, gain);
        self.m
    }

    /// Returns the estimated noise variance, ms².
    #[cfg(feature = "unstable-internals")]
    pub fn variance(&self) -> f64 {
        self.variance
    }
}

/// Eq. 16: the noise variance as a moving average of the squared residual.
fn noise(variance: f64, residual: f64, beta: f64) -> f64 {
    beta * variance + (1.0 - beta) * residual * residual
}

/// Eq. 12: the gain.
fn gain(p: f64, q: f64, variance: f64) -> f64 {
    (p + q) / (p + q + variance)
}

/// Eq. 11: the estimate.
fn estimate(m: f64, d_m: f64, gain: f64) -> f64 {
    (1.0 - gain) * m + gain * d_m
}

/// Eq. 14: the error variance.
fn error_variance(p: f64, q: f64, gain: f64) -> f64 {
    (1.0 - gain) * (p + q)
}

/// gcc-02, section 5.3: a residual beyond `cap` standard deviations is limited to them.
fn capped(residual: f64, variance: f64, cap: f64) -> f64 {
    let limit = if cap > 0.0 { cap * libm::sqrt(variance) } else { f64::INFINITY };
    residual.clamp(-limit, limit)
}
