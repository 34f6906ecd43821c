// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distributions of delays: bounded memory, three significant digits, mergeable.

use super::histogram::Histogram;
use paceline_units::TimeDelta;
use serde::{Deserialize, Serialize};

/// Percentiles and moments of a set of delays, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// 5th percentile, ms.
    pub p5: f64,
    /// Median, ms.
    pub p50: f64,
    /// 90th percentile, ms.
    pub p90: f64,
    /// 95th percentile, ms.
    pub p95: f64,
    /// 99th percentile, ms.
    pub p99: f64,
    /// Largest, ms.
    pub max: f64,
    /// Mean, ms.
    pub mean: f64,
    /// Standard deviation, ms.
    pub std: f64,
    pub samples: u64,
}

/// A histogram of delays in microseconds: percentiles to three digits, mean and deviation exact. The default is disabled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// None: disabled, `add` has no effect.
    histogram: Option<Histogram>,
    sum: u64,
    squares: u128,
}

impl Delays {
    pub fn new() -> Self {
        Self { histogram: Some(Histogram::default()), ..Self::default() }
    }

    /// Creates one that gathers nothing, for delays that no metric of the scenario reads.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Adds a delay. A negative one counts as zero, without notice: a delay over propagation is slightly negative where
    /// propagation falls while the packet is on its way.
    #[inline]
    pub fn add(&mut self, time: TimeDelta) {
        let Some(histogram) = &mut self.histogram else { return };
        let nanos = time.as_nanos();
        if nanos < 500 {
            return histogram.add_zero();
        }
        // An hour and more count as an hour.
        let us = ((nanos as u64 + 500) / 1000).min(3_600_000_000);
        histogram.add(us);
        self.sum += us;
        self.squares += u128::from(us * us);
    }

    pub fn merge(&mut self, other: &Self) {
        let (Some(histogram), Some(more)) = (&mut self.histogram, &other.histogram) else { return };
        histogram.merge(more);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Returns percentiles and moments; `None` if nothing was added.
    pub fn distribution(&self) -> Option<Distribution> {
        let histogram = self.histogram.as_ref()?;
        let samples = histogram.len();
        if samples == 0 {
            return None;
        }
        let ms = |us: u64| us as f64 / 1e3;
        let [p5, p50, p90, p95, p99] = histogram.quantiles([0.05, 0.5, 0.9, 0.95, 0.99]).map(ms);
        let (n, sum) = (u128::from(samples), u128::from(self.sum));
        Some(Distribution {
            p5,
            p50,
            p90,
            p95,
            p99,
            max: ms(histogram.largest()),
            mean: self.sum as f64 / samples as f64 / 1e3,
            std: ((n * self.squares).saturating_sub(sum * sum) as f64).sqrt() / samples as f64 / 1e3,
            samples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_three_digits_and_negative_delays_count_as_zero() {
        let mut times = Delays::new();
        for ms in 1..=1000 {
            times.add(TimeDelta::from_millis(ms));
        }
        times.add(TimeDelta::from_millis(-5));
        assert_eq!(times.distribution().unwrap().samples, 1001);
        let d = times.distribution().unwrap();
        for (got, want) in
            [(d.p5, 50.0), (d.p50, 500.0), (d.p90, 900.0), (d.p95, 950.0), (d.p99, 990.0), (d.max, 1000.0)]
        {
            assert!((got - want).abs() <= want * 0.002, "{got} {want}");
        }
        assert!((d.mean - 500.0).abs() < 1e-9 && (d.std - 288.9637).abs() < 1e-3, "{} {}", d.mean, d.std);
        assert_eq!(Delays::new().distribution(), None);
        for (ns, max) in [(499, 0.0), (500, 0.001)] {
            let mut times = Delays::new();
            times.add(TimeDelta::from_nanos(ns));
            let d = times.distribution().unwrap();
            assert_eq!((d.max, d.p50, d.samples), (max, max, 1), "{ns} ns");
        }
    }
}
