// SPDX-License-Identifier: MIT OR Apache-2.0
//! The acknowledged rate: the rate at which packets arrive, as the sender measures it from feedback. Samples of 150 ms
//! have less weight, the more they deviate from the estimate (libwebrtc's `BitrateEstimator`).
//!
//! ```text
//! u  = 10 |s - R| / (R + min(s, cap))         uncertainty of a sample s
//! R' = (u² R + (v + 5) s) / (u² + v + 5)       v' = u² (v + 5) / (u² + v + 5)
//! ```
//!
//! with rates in kbit/s. libwebrtc of 2018 has no `cap`, which is the same as a cap of zero.

use crate::params;
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

params! {
    /// The parameters of the estimate.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AckedRateConfig {
        /// libwebrtc of 2018 (`kInitialRateWindowMs`, `kRateWindowMs`).
        const Y2018;

        /// The length of the first sample.
        first_window as _: TimeDelta = TimeDelta::from_millis(500);
        /// Length of each later sample of the acknowledged rate.
        window as "acked_ms": TimeDelta = TimeDelta::from_millis(150), in 1.0..=1e4, from "kRateWindowMs";
        /// The cap in the uncertainty. Zero: increases are less certain than decreases; [`Rate::MAX`]: both alike.
        symmetry_cap as _: Rate = Rate::ZERO;
    }
}

/// The uncertainty per relative deviation.
const UNCERTAINTY: f64 = 10.0;
/// The initial variance, and its growth per sample.
const VARIANCE: (f64, f64) = (50.0, 5.0);

/// The estimate.
#[derive(Clone, Debug)]
pub struct AckedRate {
    config: AckedRateConfig,
    bytes: u64,
    /// The time at which the current sample ends.
    due: RemoteTime,
    /// The time at which the last packet arrived; [`RemoteTime::MAX`] before the first one.
    last: RemoteTime,
    estimate: Option<Estimate>,
}

/// Mean and variance, kbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    mean: f64,
    variance: f64,
}

impl AckedRate {
    /// Creates an estimator without an estimate.
    pub fn new(config: AckedRateConfig) -> Self {
        Self { config, bytes: 0, due: RemoteTime::MAX, last: RemoteTime::MAX, estimate: None }
    }

    /// Handles a packet that arrived at `at`.
    #[inline]
    pub fn handle_arrival(&mut self, at: RemoteTime, size: DataSize) {
        if at < self.last || at >= self.due {
            self.begin(at);
        }
        self.last = at;
        self.bytes += size.as_bytes();
    }

    /// Starts a sample with the packet that arrives now, and completes the previous one if there was no pause.
    #[cold]
    fn begin(&mut self, at: RemoteTime) {
        let (window, over) = (self.window(), at - self.due);
        if at < self.last {
            // The first packet, or a clock that was set back.
            self.due = at + window;
        } else if at - self.last > window {
            // After a pause the sample starts again. It ends where it would have ended without the pause.
            self.due = at + window - TimeDelta::from_nanos(over.as_nanos() % window.as_nanos());
        } else {
            self.update(Rate::from_size_and_time(DataSize::from_bytes(self.bytes), window));
            self.due += self.window();
        }
        self.bytes = 0;
    }

    /// Returns the length of the current sample.
    fn window(&self) -> TimeDelta {
        if self.estimate.is_some() { self.config.window } else { self.config.first_window }
    }

    /// Returns `R`; `None` before the first sample.
    pub fn rate(&self) -> Option<Rate> {
        self.estimate.map(|e| Rate::from_bps_f64(e.mean * 1e3))
    }

    /// Updates the estimate with a sample. A first sample of zero is ignored: the estimate could never leave it.
    pub fn update(&mut self, sample: Rate) {
        if self.estimate.is_none() && sample.is_zero() {
            return;
        }
        let sample = sample.as_bps_f64() / 1e3;
        self.estimate = Some(match self.estimate {
            None => Estimate { mean: sample, variance: VARIANCE.0 },
            Some(before) => updated(before, sample, self.config.symmetry_cap.as_bps_f64() / 1e3),
        });
    }
}

fn updated(before: Estimate, sample: f64, cap: f64) -> Estimate {
    // The divisor is at least 1 kbit/s: after many samples of zero the mean is close to zero.
    let uncertainty = UNCERTAINTY * (before.mean - sample).abs() / (before.mean + sample.min(cap)).max(1.0);
    let (square, variance) = (uncertainty * uncertainty, before.variance + VARIANCE.1);
    let whole = square + variance;
    Estimate { mean: (square * before.mean + variance * sample) / whole, variance: square * variance / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(7_000_000 + ms)
    }

    /// By hand: u = 1 at 900 of 1000, so R' = (1000 + 55 · 900) / 56 and v' = 55 / 56. At 2000 u = 10: 100 and 5.98.
    #[test]
    fn deviating_samples_have_less_weight() {
        let near = updated(Estimate { mean: 1000.0, variance: 50.0 }, 900.0, 0.0);
        assert!((near.mean - 50_500.0 / 56.0).abs() < 1e-9 && (near.variance - 55.0 / 56.0).abs() < 1e-12);
        let far = updated(Estimate { mean: 1000.0, variance: 0.98 }, 2000.0, 0.0);
        assert!((far.mean - (100.0 * 1000.0 + 5.98 * 2000.0) / 105.98).abs() < 1e-9, "{far:?}");
    }

    /// 1000 bytes each 10 ms are 800 kbit/s. The first sample ends with the packet 500 ms after the first one.
    #[test]
    fn measures_a_steady_rate_and_ignores_pauses() {
        let mut rate = AckedRate::new(AckedRateConfig::Y2018);
        for i in 0..50 {
            rate.handle_arrival(at(10 * i), DataSize::from_bytes(1000));
            assert_eq!(rate.rate(), None);
        }
        rate.handle_arrival(at(500), DataSize::from_bytes(1000));
        assert_eq!(rate.rate(), Some(Rate::from_kbps(800)));
        // A pause of 10 s is not a sample of zero.
        for i in 0..100 {
            rate.handle_arrival(at(10_500 + 10 * i), DataSize::from_bytes(1000));
        }
        let kbps = rate.rate().unwrap().as_bps_f64() / 1e3;
        assert!((770.0..=801.0).contains(&kbps), "{kbps}");
        // Half the rate is measured within a second.
        for i in 0..50 {
            rate.handle_arrival(at(11_500 + 20 * i), DataSize::from_bytes(1000));
        }
        let kbps = rate.rate().unwrap().as_bps_f64() / 1e3;
        assert!((395.0..=450.0).contains(&kbps), "{kbps}");
    }

    #[test]
    fn empty_packets_start_no_estimate() {
        let mut rate = AckedRate::new(AckedRateConfig::Y2018);
        for i in 0..100 {
            rate.handle_arrival(at(10 * i), DataSize::ZERO);
        }
        assert_eq!(rate.rate(), None);
        for i in 100..200 {
            rate.handle_arrival(at(10 * i), DataSize::from_bytes(1000));
        }
        let kbps = rate.rate().unwrap().as_bps_f64() / 1e3;
        assert!((700.0..=801.0).contains(&kbps), "{kbps}");
    }
}
