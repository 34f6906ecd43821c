//! The acknowledged rate: what got through, as the sender learns of it, from samples of 150 ms that count the less the
//! further they are off (libwebrtc's `BitrateEstimator`).
//!
//! ```text
//! u  = 10 |s - R| / (R + min(s, cap))         a sample s is that uncertain
//! R' = (u² R + (v + 5) s) / (u² + v + 5)       v' = u² (v + 5) / (u² + v + 5)
//! ```
//!
//! with rates in kbit/s. In libwebrtc of 2018 there is no `cap`, which is a cap of zero.

use crate::{Block, Fields};
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// Numbers of the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckedRateConfig {
    /// How long the first sample takes.
    pub first_window: TimeDelta,
    /// How long each later sample takes.
    pub window: TimeDelta,
    /// With none, rises are thought less certain than falls; without bound, both alike.
    pub symmetry_cap: Rate,
}

impl Block for AckedRateConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields
            .millis("acked_ms", (1.0, 1e4), &mut self.window)
            .says("how long a sample of the acknowledged rate takes");
    }
}

impl AckedRateConfig {
    /// libwebrtc of 2018 (`kInitialRateWindowMs`, `kRateWindowMs`).
    pub const Y2018: Self = Self {
        first_window: TimeDelta::from_millis(500),
        window: TimeDelta::from_millis(150),
        symmetry_cap: Rate::ZERO,
    };
}

/// Uncertainty per relative deviation.
const UNCERTAINTY: f64 = 10.0;
/// First variance, and what it grows by with each sample.
const VARIANCE: (f64, f64) = (50.0, 5.0);

/// The estimate.
#[derive(Clone, Debug)]
pub struct AckedRate {
    config: AckedRateConfig,
    bytes: u64,
    /// When the sample that is being taken is over.
    due: RemoteTime,
    /// When the last packet arrived; [`RemoteTime::MAX`]: none did.
    last: RemoteTime,
    estimate: Option<Belief>,
}

/// Mean and variance, kbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Belief {
    mean: f64,
    variance: f64,
}

impl AckedRate {
    /// Nothing known.
    pub fn new(config: AckedRateConfig) -> Self {
        Self { config, bytes: 0, due: RemoteTime::MAX, last: RemoteTime::MAX, estimate: None }
    }

    /// A packet is known to have arrived then.
    #[inline]
    pub fn handle_arrival(&mut self, at: RemoteTime, size: DataSize) {
        if at < self.last || at >= self.due {
            self.begin(at);
        }
        self.last = at;
        self.bytes += size.as_bytes();
    }

    /// The packet that arrives now begins a sample, and may complete one.
    #[cold]
    fn begin(&mut self, at: RemoteTime) {
        let (window, over) = (self.window(), at - self.due);
        if at < self.last {
            // The first packet, or the clock was set back.
            self.due = at + window;
        } else if at - self.last > window {
            // After a pause the sample begins anew; its end stays where it would have been.
            self.due = at + window - TimeDelta::from_nanos(over.as_nanos() % window.as_nanos());
        } else {
            self.take(Rate::of(DataSize::from_bytes(self.bytes), window));
            self.due += self.window();
        }
        self.bytes = 0;
    }

    /// How long the present sample takes.
    fn window(&self) -> TimeDelta {
        if self.estimate.is_some() { self.config.window } else { self.config.first_window }
    }

    /// `R`; `None` before the first sample.
    pub fn rate(&self) -> Option<Rate> {
        self.estimate.map(|e| Rate::from_bps_f64(e.mean * 1e3))
    }

    /// Takes a sample. One of nothing begins no estimate: it could not be left again.
    pub fn take(&mut self, sample: Rate) {
        if self.estimate.is_none() && sample.is_zero() {
            return;
        }
        let sample = sample.as_bps_f64() / 1e3;
        self.estimate = Some(match self.estimate {
            None => Belief { mean: sample, variance: VARIANCE.0 },
            Some(belief) => updated(belief, sample, self.config.symmetry_cap.as_bps_f64() / 1e3),
        });
    }
}

fn updated(belief: Belief, sample: f64, cap: f64) -> Belief {
    // At least a kilobit: after many samples of nothing the mean is next to nothing.
    let uncertainty = UNCERTAINTY * (belief.mean - sample).abs() / (belief.mean + sample.min(cap)).max(1.0);
    let (square, variance) = (uncertainty * uncertainty, belief.variance + VARIANCE.1);
    let whole = square + variance;
    Belief { mean: (square * belief.mean + variance * sample) / whole, variance: square * variance / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(7_000_000 + ms)
    }

    /// By hand: u = 1 at 900 of 1000, so R' = (1000 + 55 · 900) / 56 and v' = 55 / 56. At 2000 u = 10: 100 and 5.98.
    #[test]
    fn samples_count_by_how_far_off_they_are() {
        let near = updated(Belief { mean: 1000.0, variance: 50.0 }, 900.0, 0.0);
        assert!((near.mean - 50_500.0 / 56.0).abs() < 1e-9 && (near.variance - 55.0 / 56.0).abs() < 1e-12);
        let far = updated(Belief { mean: 1000.0, variance: 0.98 }, 2000.0, 0.0);
        assert!((far.mean - (100.0 * 1000.0 + 5.98 * 2000.0) / 105.98).abs() < 1e-9, "{far:?}");
    }

    /// 1000 bytes each 10 ms are 800 kbit/s. The first sample is known with the packet 500 ms after the first.
    #[test]
    fn it_measures_and_forgets_pauses() {
        let mut rate = AckedRate::new(AckedRateConfig::Y2018);
        for i in 0..50 {
            rate.handle_arrival(at(10 * i), DataSize::from_bytes(1000));
            assert_eq!(rate.rate(), None);
        }
        rate.handle_arrival(at(500), DataSize::from_bytes(1000));
        assert_eq!(rate.rate(), Some(Rate::from_kbps(800)));
        // A pause of 10 s is no sample of nothing.
        for i in 0..100 {
            rate.handle_arrival(at(10_500 + 10 * i), DataSize::from_bytes(1000));
        }
        let kbps = rate.rate().unwrap().as_bps_f64() / 1e3;
        assert!((770.0..=801.0).contains(&kbps), "{kbps}");
        // Half the rate shows within a second.
        for i in 0..50 {
            rate.handle_arrival(at(11_500 + 20 * i), DataSize::from_bytes(1000));
        }
        let kbps = rate.rate().unwrap().as_bps_f64() / 1e3;
        assert!((395.0..=450.0).contains(&kbps), "{kbps}");
    }

    #[test]
    fn packets_of_no_size_are_survived() {
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
