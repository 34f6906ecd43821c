// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two-state filter and the over-use detector with an adaptive threshold, of 2015 to 2018.

use super::Region;
use crate::blocks::{AdaptiveDetector, GroupDelta, Learning, RateState, TwoStateConfig, TwoStateKalman, Usage};
use crate::{SignalName, SignalSpec, Signals, signal_names};
use paceline_units::{Rate, RemoteTime};

signal_names! {
    /// The signals of the receive halves. Only `gcc-2013` and `gcc-2015` have the last two.
    pub enum EstimatorSignal {
        Gradient = series("d_m", "ms"),
        Scaled = series("m scaled", "ms"),
        Threshold = series("gamma", "ms"),
        Usage = state("usage", Usage::NAMES),
        State = state("sigma", RateState::NAMES),
        Incoming = series("R", "bit/s"),
        Rate = series("A_r", "bit/s"),
        Region = state("region", Region::NAMES),
        Alpha = series("alpha", ""),
    }
}

impl EstimatorSignal {
    /// The signals of a group: gradient, scaled gradient, threshold and state.
    pub const OF_GROUP: [Self; 4] = [Self::Gradient, Self::Scaled, Self::Threshold, Self::Usage];
    /// The signals of the generations with an adaptive threshold.
    pub const ADAPTIVE: &[SignalSpec] = Self::TABLE.split_at(Self::Region as usize).0;
}

/// Emits the result of an update of the rate.
pub(super) fn emit_update(state: RateState, incoming: Option<Rate>, rate: Rate, signals: &mut Signals) {
    signals.emit(EstimatorSignal::State, state.index());
    signals.emit(EstimatorSignal::Incoming, incoming.unwrap_or(Rate::ZERO).as_bps_f64());
    signals.emit(EstimatorSignal::Rate, rate.as_bps_f64());
}

/// Emits the scaled gradient, the threshold and the state of a detector under these names.
#[inline]
pub(super) fn emit_detector<S: SignalName>(detector: &AdaptiveDetector, signals: &mut Signals, names: [S; 3]) {
    let [scaled, threshold, usage] = names;
    signals.emit(scaled, detector.scaled);
    signals.emit(threshold, detector.gamma_ms());
    signals.emit(usage, detector.usage().index());
}

/// Two-state filter, detector and threshold.
#[derive(Clone, Debug)]
pub(super) struct FilteredDetector {
    filter: TwoStateKalman,
    detector: AdaptiveDetector,
}

impl FilteredDetector {
    pub fn new(config: TwoStateConfig, detector: AdaptiveDetector) -> Self {
        Self { filter: TwoStateKalman::new(config), detector }
    }

    /// Restarts the filter; the threshold stays.
    pub fn restart(&mut self) {
        self.filter.restart();
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
        let (stable, sign) = match self.filter.config().learns {
            Learning::Always => (true, 0),
            _ => (self.usage() == Usage::Normal, self.usage().sign()),
        };
        let m = self.filter.update(arrival, departure, delta.size as f64, stable, sign);
        let [gradient, scaled, threshold, usage] = names;
        signals.emit(gradient, delta.gradient_ms());
        self.detector.update(at, m, departure);
        emit_detector(&self.detector, signals, [scaled, threshold, usage]);
    }
}
