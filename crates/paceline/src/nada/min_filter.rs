// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delay filter of RFC 8698: the minimum of the last samples.
//!
//! ```text
//! d_queue(i) = min(d(i - 14) .. d(i))                                                     (section 5.1.1)
//! ```

/// The window of the minimum (section 5.1.1: 15 samples).
const TAPS: usize = 15;

/// The filter, in ms.
#[derive(Clone, Debug)]
pub struct MinFilter {
    samples: [f64; TAPS],
    oldest: usize,
    minimum: f64,
}

impl Default for MinFilter {
    /// Creates a filter without samples.
    fn default() -> Self {
        Self { samples: [f64::INFINITY; TAPS], oldest: 0, minimum: f64::INFINITY }
    }
}

impl MinFilter {
    /// Handles a sample. Returns the minimum of the window.
    #[inline]
    pub fn update(&mut self, sample: f64) -> f64 {
        let removed = core::mem::replace(&mut self.samples[self.oldest], sample);
        self.oldest = if self.oldest + 1 == TAPS { 0 } else { self.oldest + 1 };
        if sample <= self.minimum {
            self.minimum = sample;
        } else if removed <= self.minimum {
            // The window is searched only if the minimum has left it.
            self.minimum = self.samples.into_iter().fold(f64::INFINITY, f64::min);
        }
        self.minimum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn minimum_leaves_after_fifteen_samples() {
        let mut filter = MinFilter::default();
        assert_eq!([30.0, 20.0, 40.0].map(|s| filter.update(s)), [30.0, 20.0, 20.0]);
        let after: Vec<f64> = (0..15).map(|_| filter.update(50.0)).collect();
        assert_eq!((after[12], after[13], after[14]), (20.0, 40.0, 50.0));
    }

    /// Compares with the definition, on samples that rise, fall and repeat.
    #[test]
    fn result_is_the_minimum_of_the_window() {
        let samples: Vec<f64> = (0..500).map(|n| f64::from((n * 7919 % 23) * (n / 40 % 5) + n % 3)).collect();
        let mut filter = MinFilter::default();
        for (n, sample) in samples.iter().enumerate() {
            let window = &samples[(n + 1).saturating_sub(TAPS)..=n];
            assert_eq!(filter.update(*sample), window.iter().copied().fold(f64::INFINITY, f64::min), "{n}");
        }
    }
}
