//! The over-use detector with an adaptive threshold, by which every generation since 2015 evaluates the gradient of a
//! group, and the same after the two-state filter.

use crate::blocks::{
    AdaptiveThreshold, GroupDelta, Learning, OveruseDetector, RateState, ThresholdConfig, TwoStateConfig,
    TwoStateKalman, Usage,
};
use crate::{SignalName, Signals, signal_names};
use paceline_units::RemoteTime;

signal_names! {
    /// The signals of the receive halves with an adaptive threshold: `gcc-2016`, `gcc-draft-2015`, `gcc-remb-2018`.
    pub enum EstimatorSignal {
        Gradient = series("d_m", "ms"),
        Scaled = series("m scaled", "ms"),
        Threshold = series("gamma", "ms"),
        Usage = state("usage", Usage::NAMES),
        State = state("sigma", RateState::NAMES),
        Incoming = series("R", "bit/s"),
        Rate = series("A_r", "bit/s"),
    }
}

impl EstimatorSignal {
    /// The signals of a group: gradient, scaled gradient, threshold and state.
    pub const OF_GROUP: [Self; 4] = [Self::Gradient, Self::Scaled, Self::Threshold, Self::Usage];
}

/// Detector and threshold.
#[derive(Clone, Debug)]
pub(super) struct AdaptiveDetector {
    detector: OveruseDetector,
    threshold: AdaptiveThreshold,
    adapts_from_first: bool,
}

impl AdaptiveDetector {
    /// Creates a detector that signals over-use once it has lasted `overuse_ms`. `adapts_from_first`: the threshold
    /// takes the first gradient into account (the paper); otherwise it starts with the second, as in libwebrtc.
    pub fn new(overuse_ms: f64, threshold: ThresholdConfig, adapts_from_first: bool) -> Self {
        let (detector, threshold) = (OveruseDetector::new(overuse_ms), AdaptiveThreshold::new(threshold));
        Self { detector, threshold, adapts_from_first }
    }

    /// Returns the last state.
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// Counts the gradients from zero again, because the filter was restarted.
    pub fn restart(&mut self) {
        self.detector.restart();
    }

    /// Handles the gradient `m` (ms) of a group that was sent `departure_ms` after the previous one. Emits the
    /// scaled gradient, the threshold and the state under these names.
    #[inline]
    pub fn update<S: SignalName>(
        &mut self,
        now: RemoteTime,
        m: f64,
        departure_ms: f64,
        signals: &mut Signals,
        names: [S; 3],
    ) {
        let scaled = self.detector.scale(m);
        let usage = self.detector.update(m, scaled, self.threshold.gamma_ms(), departure_ms);
        if self.adapts_from_first || self.detector.is_ready() {
            self.threshold.update(now, scaled);
        }
        let [scaled_name, threshold, usage_name] = names;
        signals.emit(scaled_name, scaled);
        signals.emit(threshold, self.threshold.gamma_ms());
        signals.emit(usage_name, usage.index());
    }
}

/// Two-state filter, detector and threshold.
#[derive(Clone, Debug)]
pub(super) struct FilteredDetector {
    config: TwoStateConfig,
    filter: TwoStateKalman,
    detector: AdaptiveDetector,
}

impl FilteredDetector {
    pub fn new(config: TwoStateConfig, detector: AdaptiveDetector) -> Self {
        Self { config, filter: TwoStateKalman::new(config), detector }
    }

    /// Restarts the filter; the threshold stays.
    pub fn restart(&mut self) {
        self.filter = TwoStateKalman::new(self.config);
        self.detector.restart();
    }

    /// Returns the last state.
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// Handles a complete group. `at` is the receiver's time. Emits gradient, scaled gradient, threshold and state under
    /// these names.
    pub fn handle_group<S: SignalName>(
        &mut self,
        at: RemoteTime,
        delta: &GroupDelta,
        signals: &mut Signals,
        names: [S; 4],
    ) {
        let (arrival, departure) = (delta.arrival.as_millis_f64(), delta.departure.as_millis_f64());
        let (stable, sign) = match self.config.learns {
            Learning::Always => (true, 0),
            _ => (self.usage() == Usage::Normal, self.usage().sign()),
        };
        let m = self.filter.update(arrival, departure, delta.size as f64, stable, sign);
        let [gradient, scaled, threshold, usage] = names;
        signals.emit(gradient, delta.gradient_ms());
        self.detector.update(at, m, departure, signals, [scaled, threshold, usage]);
    }
}
