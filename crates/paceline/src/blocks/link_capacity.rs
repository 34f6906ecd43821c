// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link capacity estimate: average and deviation of the incoming rate at past decreases. Near it a rate controller
//! grows additively, far from it multiplicatively (draft-ietf-rmcat-gcc-02, section 5.5; libwebrtc's
//! `LinkCapacityEstimator`).

use paceline_units::Rate;

/// The smoothing factor of average and variance, per decrease (gcc-02: 0.95).
const MEMORY: f64 = 0.95;
/// The lowest and the highest normalised variance, kbit/s (libwebrtc: 0.4 and 2.5).
const VARIANCE: (f64, f64) = (0.4, 2.5);
/// A rate is far from the average if it differs by more than this many standard deviations (gcc-02: 3).
const FAR: f64 = 3.0;

/// The estimate.
#[derive(Clone, Debug)]
pub struct LinkCapacity {
    /// kbit/s; `None`: unknown, or the path has changed since.
    average: Option<f64>,
    /// The variance divided by the average, kbit/s.
    variance: f64,
}

impl Default for LinkCapacity {
    /// Creates an unknown estimate.
    fn default() -> Self {
        Self { average: None, variance: VARIANCE.0 }
    }
}

impl LinkCapacity {
    /// Handles the incoming rate while the controller increases its rate. Far above the average the path has more
    /// capacity than before, and the estimate is dropped.
    pub fn handle_growth(&mut self, incoming: Rate) {
        if self.is_above(incoming, FAR) {
            self.average = None;
        }
    }

    /// Handles the incoming rate at a decrease. Far below the average the path has less capacity than before, and the
    /// estimate starts again.
    pub fn handle_decrease(&mut self, incoming: Rate) {
        if self.average.is_some_and(|average| kbps(incoming) < average - FAR * self.deviation(average)) {
            self.average = None;
        }
        self.update(incoming);
    }

    /// Updates average and variance with a sample at any distance.
    pub fn update(&mut self, incoming: Rate) {
        let (average, variance) = updated(self.average, self.variance, kbps(incoming));
        (self.average, self.variance) = (Some(average), variance);
    }

    /// Returns the range of rates that are near the average.
    #[cfg(feature = "unstable-internals")]
    pub fn bounds(&self) -> Option<(Rate, Rate)> {
        let average = self.average?;
        let far = FAR * self.deviation(average);
        let rate = |kbps: f64| Rate::from_bps_f64(kbps * 1e3);
        Some((rate(average - far), rate(average + far)))
    }

    /// Returns whether the incoming rate exceeds the average by more than this many standard deviations.
    pub fn is_above(&self, incoming: Rate, deviations: f64) -> bool {
        self.average.is_some_and(|average| kbps(incoming) > average + deviations * self.deviation(average))
    }

    /// Sets the average to a rate that the path is known to carry.
    pub fn move_to(&mut self, rate: Rate) {
        self.average = Some(kbps(rate));
    }

    /// Returns the average rate at past decreases, if it is known.
    pub fn average(&self) -> Option<Rate> {
        self.average.map(|kbps| Rate::from_bps_f64(kbps * 1e3))
    }

    /// Returns whether the estimate is known.
    pub fn is_known(&self) -> bool {
        self.average.is_some()
    }

    fn deviation(&self, average: f64) -> f64 {
        libm::sqrt(self.variance * average)
    }
}

/// Returns average and normalised variance after one more sample, kbit/s.
fn updated(average: Option<f64>, variance: f64, sample: f64) -> (f64, f64) {
    let average = average.map_or(sample, |average| MEMORY * average + (1.0 - MEMORY) * sample);
    let error = average - sample;
    let variance = MEMORY * variance + (1.0 - MEMORY) * error * error / average.max(1.0);
    (average, variance.clamp(VARIANCE.0, VARIANCE.1))
}

fn kbps(rate: Rate) -> f64 {
    rate.as_bps_f64() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_is_dropped_beyond_three_deviations() {
        let mut c = LinkCapacity::default();
        assert!(!c.is_known());
        // The first sample is the average; its variance stays 0.95 * 0.4, clamped to 0.4: 3 sqrt(0.4 * 1000) = 60
        // kbit/s.
        c.handle_decrease(Rate::from_kbps(1000));
        assert!(c.is_known());
        c.handle_growth(Rate::from_kbps(1059));
        assert!(c.is_known());
        c.handle_growth(Rate::from_kbps(1061));
        assert!(!c.is_known(), "the path has more capacity");
        c.handle_decrease(Rate::from_kbps(1000));
        // 941 is within 60: average 997.05, error 56.05: 0.95 * 0.4 + 0.05 * 56.05^2 / 997.05 = 0.5375.
        c.handle_decrease(Rate::from_kbps(941));
        assert!((c.average.unwrap() - 997.05).abs() < 1e-9 && (c.variance - 0.5375).abs() < 1e-4, "{c:?}");
        // 3 sqrt(0.5375 * 997.05) = 69.4: 900 is far below, so the estimate starts again.
        c.handle_decrease(Rate::from_kbps(900));
        assert_eq!(c.average, Some(900.0));
    }
}
