//! Quantiles of the times of a session.

use hdrhistogram::Histogram;
use paceline_units::TimeDelta;

/// Resolution of times.
const UNIT_NS: i64 = 1000;

/// Largest distance of a value from the first one, in units: an hour. Larger ones count as this.
const MAX_UNITS: u64 = 3_600_000_000;

/// A sample of times relative to the first one, with a resolution of 1 µs and an error of at most 0.1 %.
///
/// It is small until it has values, because a session may have many.
#[derive(Clone, Default)]
pub struct Sample {
    /// The first value, which becomes the origin.
    origin: Option<TimeDelta>,
    /// Values above and below the origin, if there are any.
    above: Option<Histogram<u32>>,
    below: Option<Histogram<u32>>,
}

impl Sample {
    /// Adds a value.
    pub fn push(&mut self, value: TimeDelta) {
        let units = (value - *self.origin.get_or_insert(value)).as_nanos() / UNIT_NS;
        let side = if units < 0 { &mut self.below } else { &mut self.above };
        record(side, units.unsigned_abs(), 1);
    }

    /// Returns a sample of the differences to `least`, the smallest value.
    pub fn above(&self, least: TimeDelta) -> Self {
        let shift = self.origin.map_or(0, |origin| (origin - least).as_nanos() / UNIT_NS);
        let mut shifted = Self { origin: Some(TimeDelta::ZERO), ..Self::default() };
        for (side, sign) in [(&self.below, -1), (&self.above, 1)] {
            for value in side.iter().flat_map(Histogram::iter_recorded) {
                let units = (sign * value.value_iterated_to() as i64 + shift).max(0);
                record(&mut shifted.above, units as u64, value.count_at_value());
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

fn record(histogram: &mut Option<Histogram<u32>>, units: u64, count: u32) {
    let histogram = histogram.get_or_insert_with(|| Histogram::new(3).expect("three digits are possible"));
    histogram.record_n(units.min(MAX_UNITS), count).expect("it grows");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_relative_to_the_smallest_value() {
        let mut sample = Sample::default();
        assert_eq!(sample.quantile(0.5), None);
        for ms in [50, 10, 90, 30, 70] {
            sample.push(TimeDelta::from_millis(-5_000_000 + ms));
        }
        let above = sample.above(TimeDelta::from_millis(-5_000_000 + 10));
        for (quantile, ms) in [(0.0, 0.0), (0.5, 40.0), (1.0, 80.0)] {
            let measured = above.quantile(quantile).unwrap().as_millis_f64();
            assert!((measured - ms).abs() <= 0.1, "{quantile}: {measured}");
        }
    }
}
