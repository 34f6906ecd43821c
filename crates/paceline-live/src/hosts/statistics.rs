// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles of the times of a session.

use hdrhistogram::Histogram;
use paceline_units::TimeDelta;

/// Resolution of times.
const UNIT_NS: i64 = 1000;

/// Largest distance of a value from the first one, in units: an hour. Larger ones count as this.
const MAX_UNITS: u64 = 3_600_000_000;

/// A sample of times relative to the first one, with a resolution of 1 µs and an error of at most 0.1 % of the distance from that, or 1 % if
/// it is coarse. What [`above`](Self::above) returns has the same error again, of the result.
///
/// It is small until it has values, because a session may have many. With values up to 100 ms it needs 33 KB, and 6 KB if it is coarse.
#[derive(Clone)]
pub struct Sample {
    /// Significant decimal digits.
    digits: u8,
    /// The first value, which becomes the origin.
    origin: Option<TimeDelta>,
    /// Values above and below the origin, if there are any.
    above: Option<Histogram<u32>>,
    below: Option<Histogram<u32>>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { digits: 3, origin: None, above: None, below: None }
    }
}

impl Sample {
    /// Creates a coarse sample, for one flow of many.
    pub fn coarse() -> Self {
        Self { digits: 2, ..Self::default() }
    }

    pub fn push(&mut self, value: TimeDelta) {
        let units = (value - *self.origin.get_or_insert(value)).as_nanos() / UNIT_NS;
        let side = if units < 0 { &mut self.below } else { &mut self.above };
        record(side, self.digits, units.unsigned_abs(), 1);
    }

    /// Returns a sample of the differences to `least`, the smallest value.
    pub fn above(&self, least: TimeDelta) -> Self {
        let shift = self.origin.map_or(0, |origin| (origin - least).as_nanos() / UNIT_NS);
        let mut shifted = Self { digits: self.digits, origin: Some(TimeDelta::ZERO), ..Self::default() };
        for (side, sign) in [(&self.below, -1), (&self.above, 1)] {
            for value in side.iter().flat_map(Histogram::iter_recorded) {
                let units = (sign * value.value_iterated_to() as i64 + shift).max(0);
                record(&mut shifted.above, self.digits, units as u64, value.count_at_value());
            }
        }
        shifted
    }

    /// Returns a quantile; `None` of an empty sample. Only for samples whose values are at least their origin.
    pub fn quantile(&self, quantile: f64) -> Option<TimeDelta> {
        Some(self.origin? + TimeDelta::from_nanos(self.above.as_ref()?.value_at_quantile(quantile) as i64 * UNIT_NS))
    }

    /// Returns the median, the 95th and the 99th percentile in ms.
    pub fn percentiles_ms(&self) -> [Option<f64>; 3] {
        [0.5, 0.95, 0.99].map(|quantile| self.quantile(quantile).map(TimeDelta::as_millis_f64))
    }
}

fn record(histogram: &mut Option<Histogram<u32>>, digits: u8, units: u64, count: u32) {
    let histogram = histogram.get_or_insert_with(|| Histogram::new(digits).expect("two or three digits are possible"));
    histogram.record_n(units.min(MAX_UNITS), count).expect("it grows");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_relative_to_the_smallest_value() {
        for (mut sample, least_ms, error_ms) in [(Sample::default(), 0.0, 0.1), (Sample::coarse(), 0.1, 0.9)] {
            assert_eq!(sample.quantile(0.5), None);
            for ms in [50, 10, 90, 30, 70] {
                sample.push(TimeDelta::from_millis(-5_000_000 + ms));
            }
            let above = sample.above(TimeDelta::from_millis(-5_000_000 + 10));
            let errors = [(0.0, 0.0), (0.5, 40.0), (1.0, 80.0)]
                .map(|(quantile, ms)| (above.quantile(quantile).unwrap().as_millis_f64() - ms).abs());
            let largest = errors.into_iter().fold(0.0, f64::max);
            assert!((least_ms..=error_ms).contains(&largest), "{errors:?}");
        }
    }
}
