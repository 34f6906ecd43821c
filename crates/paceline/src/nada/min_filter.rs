//! The delay filter of RFC 8698: the least of the last samples.
//!
//! ```text
//! d_queue(i) = min(d(i - 14) .. d(i))                                                     (section 5.1.1)
//! ```

/// Samples under the minimum (section 5.1.1: window size 15).
const TAPS: usize = 15;

/// The filter; values in ms.
#[derive(Clone, Debug)]
pub struct MinFilter {
    samples: [f64; TAPS],
    oldest: usize,
    least: f64,
}

impl Default for MinFilter {
    /// A filter that has seen nothing.
    fn default() -> Self {
        Self { samples: [f64::INFINITY; TAPS], oldest: 0, least: f64::INFINITY }
    }
}

impl MinFilter {
    /// Takes a sample and answers the least of the window.
    pub fn update(&mut self, sample: f64) -> f64 {
        let gone = core::mem::replace(&mut self.samples[self.oldest], sample);
        self.oldest = (self.oldest + 1) % TAPS;
        if sample <= self.least {
            self.least = sample;
        } else if gone <= self.least {
            // Only where the least has left is it looked for.
            self.least = self.samples.into_iter().fold(f64::INFINITY, f64::min);
        }
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_fifteen() {
        let mut filter = MinFilter::default();
        assert_eq!([30.0, 20.0, 40.0].map(|s| filter.update(s)), [30.0, 20.0, 20.0]);
        let after: Vec<f64> = (0..15).map(|_| filter.update(50.0)).collect();
        assert_eq!((after[12], after[13], after[14]), (20.0, 40.0, 50.0));
    }

    /// Against the definition, on samples that rise, fall and repeat.
    #[test]
    fn it_is_the_least_of_the_window() {
        let samples: Vec<f64> = (0..500).map(|n| f64::from((n * 7919 % 23) * (n / 40 % 5) + n % 3)).collect();
        let mut filter = MinFilter::default();
        for (n, sample) in samples.iter().enumerate() {
            let window = &samples[(n + 1).saturating_sub(TAPS)..=n];
            assert_eq!(filter.update(*sample), window.iter().copied().fold(f64::INFINITY, f64::min), "{n}");
        }
    }
}
