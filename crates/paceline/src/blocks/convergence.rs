//! Where over-use was last found: an average of the incoming rate at past decreases, with its spread. Near it a rate
//! controller grows by addition, far from it by multiplication (draft-ietf-rmcat-gcc-02, section 5.5; libwebrtc's
//! link-capacity estimate).

use paceline_units::Rate;

/// Memory of average and spread, per decrease (gcc-02: 0.95).
const MEMORY: f64 = 0.95;
/// Least and greatest normalised variance, kbit/s (libwebrtc: 0.4 and 2.5).
const VARIANCE: (f64, f64) = (0.4, 2.5);
/// How many standard deviations away is far (gcc-02: 3).
const FAR: f64 = 3.0;

/// The average of the incoming rate at decreases.
#[derive(Clone, Debug)]
pub struct Convergence {
    /// kbit/s; `None`: not known, or the path has changed since.
    average: Option<f64>,
    /// Variance over the average, kbit/s.
    variance: f64,
}

impl Convergence {
    /// Nothing known.
    pub fn new() -> Self {
        Self { average: None, variance: VARIANCE.0 }
    }

    /// The incoming rate while the controller grows: far above the average, the path has more than it had.
    pub fn handle_growth(&mut self, incoming: Rate) {
        if self.is_above(incoming, FAR) {
            self.average = None;
        }
    }

    /// The incoming rate at a decrease: far below the average, the path has less than it had.
    pub fn handle_decrease(&mut self, incoming: Rate) {
        if self.average.is_some_and(|average| kbps(incoming) < average - FAR * self.deviation(average)) {
            self.average = None;
        }
        self.take(incoming);
    }

    /// Average and spread take a sample, however far away.
    pub fn take(&mut self, incoming: Rate) {
        let (average, variance) = learnt(self.average, self.variance, kbps(incoming));
        (self.average, self.variance) = (Some(average), variance);
    }

    /// Between these a rate is near the average.
    pub fn bounds(&self) -> Option<(Rate, Rate)> {
        let average = self.average?;
        let far = FAR * self.deviation(average);
        let rate = |kbps: f64| Rate::from_bps_f64(kbps * 1e3);
        Some((rate(average - far), rate(average + far)))
    }

    /// Whether the incoming rate is more than this many standard deviations above the average.
    pub fn is_above(&self, incoming: Rate, deviations: f64) -> bool {
        self.average.is_some_and(|average| kbps(incoming) > average + deviations * self.deviation(average))
    }

    /// Puts the average where the path is known to carry this rate.
    pub fn move_to(&mut self, rate: Rate) {
        self.average = Some(kbps(rate));
    }

    /// Where over-use was last found, unless the path has changed since.
    pub fn average(&self) -> Option<Rate> {
        self.average.map(|kbps| Rate::from_bps_f64(kbps * 1e3))
    }

    /// Whether the rate is near to where over-use was last found.
    pub fn is_near(&self) -> bool {
        self.average.is_some()
    }

    fn deviation(&self, average: f64) -> f64 {
        (self.variance * average).sqrt()
    }
}

impl Default for Convergence {
    fn default() -> Self {
        Self::new()
    }
}

/// Average and normalised variance after one more sample, kbit/s.
fn learnt(average: Option<f64>, variance: f64, sample: f64) -> (f64, f64) {
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

    /// Vector V1.4. By hand: 0.95 · 0.4 + 0.05 · 95² / 995 = 0.83352; sqrt(0.83352 · 995) = 28.798.
    #[test]
    fn a_sample() {
        let (average, variance) = learnt(Some(1000.0), 0.4, 900.0);
        assert!((average - 995.0).abs() < 1e-9 && (variance - 0.833_517_587_94).abs() < 1e-9, "{average} {variance}");
        let c = Convergence { average: Some(average), variance };
        assert!((c.deviation(average) - 28.798_437_457_6).abs() < 1e-9);
    }

    #[test]
    fn near_until_three_deviations_away() {
        let mut c = Convergence::new();
        assert!(!c.is_near());
        // The first sample is the average; its variance stays 0.95 * 0.4, clamped to 0.4: 3 sqrt(0.4 * 1000) = 60 kbit/s.
        c.handle_decrease(Rate::from_kbps(1000));
        assert!(c.is_near());
        c.handle_growth(Rate::from_kbps(1059));
        assert!(c.is_near());
        c.handle_growth(Rate::from_kbps(1061));
        assert!(!c.is_near(), "the path has more");
        c.handle_decrease(Rate::from_kbps(1000));
        // 941 is within 60: average 997.05, error 56.05: 0.95 * 0.4 + 0.05 * 56.05^2 / 997.05 = 0.5375.
        c.handle_decrease(Rate::from_kbps(941));
        assert!((c.average.unwrap() - 997.05).abs() < 1e-9 && (c.variance - 0.5375).abs() < 1e-4, "{c:?}");
        // 3 sqrt(0.5375 * 997.05) = 69.4: 900 is far below and begins anew.
        c.handle_decrease(Rate::from_kbps(900));
        assert_eq!(c.average, Some(900.0));
    }
}
