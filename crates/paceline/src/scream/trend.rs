// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trend of the queuing delay: an early sign of congestion, before the target is reached (RFC 8298, section 4.1.2,
//! `update_variables`).
//!
//! ```text
//! f            = qdelay / qdelay_target                         each 50 ms, the last 20 are kept
//! fraction_avg = (1 - QDELAY_WEIGHT) fraction_avg + QDELAY_WEIGHT f
//! a            = R(1) / R(0)      R(k) = sum of x(n) x(n + k), x the kept values without their mean
//! trend        = a fraction_avg, within 0 and 1
//! trend_mem    = max(0.99 trend_mem, trend)
//! ```

use crate::params;
use paceline_units::{Time, TimeDelta};

params! {
    /// The parameters of the trend.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TrendConfig {
        /// RFC 8298, sections 4.1.1.1 and 4.1.2.
        const RFC_8298;

        /// Weight of a new value in the average fraction.
        weight as "qdelay_weight": f64 = 0.1, in 0.0..=1.0, from "QDELAY_WEIGHT";
        /// Factor by which `qdelay_trend_mem` decays per sample.
        memory as "trend_memory": f64 = 0.99, in 0.0..=1.0, from "section 4.1.2; C++: 0.98";
    }
}

/// The time between two samples (RFC 8298, section 4.1.2).
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// The number of samples that are kept (section 4.1.1.2: `qdelay_fraction_hist`).
const SAMPLES: usize = 20;
/// After a pause of more samples the sampling times start again.
const CAUGHT_UP_MAX: usize = 1000;
/// Values that differ by less than this share of their size count as constant: the difference is rounding.
const CONSTANT: f64 = 1e-9;

/// The trend of one path.
#[derive(Clone, Debug)]
pub struct Trend {
    config: TrendConfig,
    fraction_avg: f64,
    /// Oldest first.
    history: [f64; SAMPLES],
    /// `qdelay_trend`, 0 to 1.
    pub trend: f64,
    /// `qdelay_trend_mem`, the decaying maximum of the trend, 0 to 1.
    pub memory: f64,
    next: Option<Time>,
}

impl Trend {
    pub fn new(config: TrendConfig) -> Self {
        Self { config, fraction_avg: 0.0, history: [0.0; SAMPLES], trend: 0.0, memory: 0.0, next: None }
    }

    /// Takes the samples that are due by `now`. Since the last call the queuing delay was this fraction of its target.
    pub fn advance(&mut self, now: Time, fraction: f64) {
        let mut next = self.next.unwrap_or(now);
        for _ in 0..CAUGHT_UP_MAX {
            if next > now {
                break;
            }
            self.sample(fraction);
            next += INTERVAL;
        }
        self.next = Some(if next > now { next } else { now + INTERVAL });
    }

    fn sample(&mut self, fraction: f64) {
        let weight = self.config.weight;
        self.fraction_avg = (1.0 - weight) * self.fraction_avg + weight * fraction;
        self.history.copy_within(1.., 0);
        self.history[SAMPLES - 1] = fraction;
        self.trend = qdelay_trend(prediction(&self.history), self.fraction_avg);
        self.memory = (self.config.memory * self.memory).max(self.trend);
    }
}

/// Returns `qdelay_trend` from `a` and `qdelay_fraction_avg`.
pub fn qdelay_trend(a: f64, fraction_avg: f64) -> f64 {
    (a * fraction_avg).clamp(0.0, 1.0)
}

/// Returns the prediction coefficient `a`. The RFC does not define it for constant values (0/0); here it is zero.
pub fn prediction(history: &[f64]) -> f64 {
    let mean = history.iter().sum::<f64>() / history.len() as f64;
    let (mut r_0, mut r_1, mut before) = (0.0, 0.0, 0.0);
    for value in history {
        let x = value - mean;
        r_0 += x * x;
        r_1 += x * before;
        before = x;
    }
    let rounding = CONSTANT * mean;
    if r_0 > rounding * rounding * history.len() as f64 { r_1 / r_0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn constant_delay_and_noise_have_no_trend() {
        for value in [0.0, 0.1, 1.0 / 3.0, 1e6] {
            assert_eq!(prediction(&[value; SAMPLES]), 0.0, "{value}");
        }
        // Alternating samples are noise: R(1) is negative.
        let noise: Vec<f64> = (0..SAMPLES).map(|n| (n % 2) as f64).collect();
        assert_eq!(qdelay_trend(prediction(&noise), 1.0), 0.0);
    }

    /// The queuing delay grows from zero to its target within a second. Afterwards the memory decays by 0.99 per
    /// sample, 20 samples per second.
    #[test]
    fn growing_queue_is_detected_before_it_reaches_its_target() {
        let mut trend = Trend::new(TrendConfig { weight: 0.1, memory: 0.99 });
        let mut seen = None;
        for n in 0..20 {
            trend.advance(Time::from_millis(50 * n), n as f64 / 20.0);
            seen = seen.or((trend.trend >= 0.2).then_some(n));
        }
        assert!((10..18).contains(&seen.unwrap()), "{seen:?}");
        let peak = trend.memory;
        trend.advance(Time::from_millis(50 * 119), 0.0);
        assert!((trend.memory / peak - 0.366).abs() < 0.05, "{} of {peak}", trend.memory);
        assert!(trend.trend < 1e-3, "{}", trend.trend);
    }

    #[test]
    fn clock_jump_takes_a_bounded_number_of_samples() {
        let mut trend = Trend::new(TrendConfig { weight: 0.1, memory: 0.99 });
        trend.advance(Time::ZERO, 0.5);
        trend.advance(Time::from_secs(86_400), 0.5);
        assert_eq!(trend.next, Some(Time::from_secs(86_400) + INTERVAL));
        assert!((trend.fraction_avg - 0.5).abs() < 1e-9, "{}", trend.fraction_avg);
    }
}
