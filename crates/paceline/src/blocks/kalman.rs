//! The arrival-time filter of GCC 2016: a scalar Kalman filter whose one state is the one-way delay gradient `m`.
//!
//! State: `m(i+1) = m(i) + w`, output: `d_m(i) = m(i) + n` (mmsys16, eq. 10). The noise variance is estimated from the
//! residual, so that measurements have less weight on a path with jitter. Each equation is one function below. All
//! values are in milliseconds (variances in ms²) per frame.

use crate::{Block, FieldVisitor};

/// The numbers of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KalmanConfig {
    /// `Q`, the state noise variance, ms² (eq. 15: 10⁻³).
    pub q: f64,
    /// `beta`, the smoothing factor of the noise estimate (eq. 16: 0.95).
    pub beta: f64,
    /// `P(0)`, the initial error variance, ms² (section 4.1.2: 10⁻¹).
    pub p_0: f64,
    /// The initial noise variance, ms². The paper gives none; libwebrtc's `var_noise` starts at 50.
    pub variance_0: f64,
    /// The lowest noise variance, ms². Zero: no bound, as printed. draft-ietf-rmcat-gcc-02, section 5.3: 1.
    pub variance_min: f64,
    /// The cap of the residual in the noise estimate, in standard deviations. Zero: no cap, as printed. gcc-02: 3.
    pub outlier_cap: f64,
}

impl Block for KalmanConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        fields.number("q", "ms²", (1e-12, 1e3), &mut self.q).describe("Kalman state noise variance");
        fields.number("beta", "", (0.0, 1.0), &mut self.beta).describe("memory of the noise estimate");
        fields.number("p_0", "ms²", (0.0, 1e3), &mut self.p_0).describe("first error variance");
        fields.number("variance_0", "ms²", (1e-9, 1e6), &mut self.variance_0).describe("first noise variance");
        fields.number("variance_min", "ms²", (0.0, 1e3), &mut self.variance_min).describe("lowest noise variance");
        fields
            .number("outlier_cap", "", (0.0, 100.0), &mut self.outlier_cap)
            .describe("residuals beyond this many standard deviations are capped in the noise estimate");
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
