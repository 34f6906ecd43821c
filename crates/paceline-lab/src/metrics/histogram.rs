//! Distributions of times: bounded memory, three significant digits, mergeable.

use hdrhistogram::Histogram;
use paceline_units::TimeDelta;
use serde::Serialize;

/// Percentiles and moments of a set of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// 5th percentile, ms.
    pub p5: f64,
    /// Median, ms.
    pub p50: f64,
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
    /// How many samples.
    pub samples: u64,
}

/// Gathers times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u32>);

impl Times {
    pub fn new() -> Self {
        Self(Histogram::new(3).expect("three digits are allowed"))
    }

    /// Adds a time; negative ones count as zero.
    #[inline]
    pub fn add(&mut self, time: TimeDelta) {
        let us = (time.as_nanos().max(0) as u64 + 500) / 1000;
        // An hour and more is one bucket. The histogram resizes itself, so recording cannot fail.
        let _ = self.0.record(us.min(3_600_000_000));
    }

    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both resize themselves");
    }

    /// `None` of nothing.
    pub fn distribution(&self) -> Option<Distribution> {
        if self.0.is_empty() {
            return None;
        }
        let at = |q: f64| self.0.value_at_quantile(q) as f64 / 1e3;
        Some(Distribution {
            p5: at(0.05),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: self.0.max() as f64 / 1e3,
            mean: self.0.mean() / 1e3,
            std: self.0.stdev() / 1e3,
            samples: self.0.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_thousandth() {
        let mut times = Times::new();
        for ms in 1..=1000 {
            times.add(TimeDelta::from_millis(ms));
        }
        times.add(TimeDelta::from_millis(-5));
        let d = times.distribution().unwrap();
        for (got, want) in [(d.p5, 50.0), (d.p50, 500.0), (d.p95, 950.0), (d.p99, 990.0), (d.max, 1000.0)] {
            assert!((got - want).abs() <= want * 0.002, "{got} {want}");
        }
        assert!((d.mean - 500.0).abs() < 1.0 && (d.std - 288.9).abs() < 1.0, "{} {}", d.mean, d.std);
        assert_eq!(Times::new().distribution(), None);
    }
}
