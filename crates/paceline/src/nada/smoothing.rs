// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delay filter of 2015: the median of the last five samples, then exponential smoothing.
//!
//! ```text
//! d'(i) = (1 - alpha) median(d(i-4) .. d(i)) + alpha d'(i-1)                              (med16, section II-A)
//! ```
//!
//! In the simulator that med16 used, `d'` is a whole number of milliseconds, rounded in each step. With `alpha` = 0.9 it
//! then follows a median only if this is at least 5 ms above it or more than 5 ms below it.

/// The window of the median (med16: 5 samples).
const TAPS: usize = 5;

/// The filter, in ms.
#[derive(Clone, Debug)]
pub struct MedianEwma {
    /// The weight of the past.
    alpha: f64,
    /// Whether `d'` is rounded in each step.
    whole: bool,
    samples: [f64; TAPS],
    count: usize,
    oldest: usize,
    smoothed: Option<f64>,
}

impl MedianEwma {
    /// Creates a filter, with or without rounding to whole milliseconds. Its first value is its first median.
    pub fn new(alpha: f64, whole: bool) -> Self {
        Self { alpha, whole, samples: [0.0; TAPS], count: 0, oldest: 0, smoothed: None }
    }

    /// Handles a sample. Returns the smoothed value.
    pub fn update(&mut self, sample: f64) -> f64 {
        self.samples[self.oldest] = sample;
        self.oldest = (self.oldest + 1) % TAPS;
        self.count = (self.count + 1).min(TAPS);
        let median = median(self.samples, self.count);
        let smoothed = self.smoothed.map_or(median, |s| (1.0 - self.alpha) * median + self.alpha * s);
        let smoothed = if self.whole { libm::floor(smoothed + 0.5) } else { smoothed };
        *self.smoothed.insert(smoothed)
    }
}

/// Returns the median of the first `count` samples; for an even number, the lower of the two in the middle.
fn median(mut samples: [f64; TAPS], count: usize) -> f64 {
    let samples = &mut samples[..count];
    samples.sort_unstable_by(f64::total_cmp);
    samples[(count - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: medians 10, 10, 20, 10, 20, 20, 20 while 90 is an outlier; then a weight of 0.9 for the past.
    #[test]
    fn outliers_are_removed_and_the_rest_is_smoothed() {
        let mut filter = MedianEwma::new(0.0, false);
        let samples = [10.0, 20.0, 90.0, 10.0, 20.0, 30.0, 0.0];
        assert_eq!(samples.map(|s| filter.update(s)), [10.0, 10.0, 20.0, 10.0, 20.0, 20.0, 20.0]);
        let mut filter = MedianEwma::new(0.9, false);
        let smoothed = [10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 20.0].map(|s| filter.update(s));
        assert!((smoothed[5] - 11.0).abs() < 1e-12 && (smoothed[6] - 11.9).abs() < 1e-12, "{smoothed:?}");
        assert_eq!(smoothed[4], 10.0, "two of five samples do not change the median");
    }

    /// By hand: 0.1 · 24 + 0.9 · 20 + 0.5 = 20.9 is 20, with 25 it is 21, with 15 it is 20 and with 14 it is 19.
    #[test]
    fn rounding_ignores_small_changes() {
        let last = |after: f64| {
            let mut filter = MedianEwma::new(0.9, true);
            (0..5).for_each(|_| {
                filter.update(20.0);
            });
            [after; 3].map(|sample| filter.update(sample))[2]
        };
        assert_eq!([last(24.0), last(25.0), last(15.0), last(14.0)], [20.0, 21.0, 20.0, 19.0]);
    }
}
