//! The estimator of 2015 to 2018: two-state Kalman filter, over-use detector with an adaptive threshold, and AIMD rate
//! control. `T` is the clock of the endpoint where it runs.

use super::Aimd;
use super::adaptive_detector::AdaptiveDetector;
use crate::blocks::{GroupDelta, TwoStateConfig, TwoStateKalman, Usage};
use crate::{SignalName, Signals};
use core::ops::Sub;
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// Filter, detector and rate control.
#[derive(Clone, Debug)]
pub(super) struct AimdEstimator<T> {
    filter: TwoStateConfig,
    kalman: TwoStateKalman,
    detector: AdaptiveDetector,
    pub rate: Aimd<T>,
    /// The time at which the rate was last updated.
    updated: Option<T>,
}

impl<T: Copy + Sub<Output = TimeDelta>> AimdEstimator<T> {
    pub fn new(filter: TwoStateConfig, detector: AdaptiveDetector, rate: Aimd<T>) -> Self {
        Self { filter, kalman: TwoStateKalman::new(filter), detector, rate, updated: None }
    }

    /// Restarts the filter; threshold and rate stay.
    pub fn restart_filter(&mut self) {
        self.kalman = TwoStateKalman::new(self.filter);
        self.detector.restart();
    }

    /// Returns the last state of the detector.
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// Handles a complete group. `at` is the receiver's time. Emits the gradient and the
    /// values of the detector under these names.
    pub fn handle_group<S: SignalName>(
        &mut self,
        at: RemoteTime,
        delta: &GroupDelta,
        signals: &mut Signals,
        gradient: S,
        detector: [S; 3],
    ) {
        let (arrival, departure) = (delta.arrival.as_millis_f64(), delta.departure.as_millis_f64());
        let usage = self.usage();
        let m = self.kalman.update(arrival, departure, delta.size as f64, usage == Usage::Normal, usage.sign());
        signals.emit(gradient, delta.gradient_ms());
        self.detector.update(at, m, departure, signals, detector);
    }

    /// Returns whether the regular interval has passed since the last update of the rate.
    pub fn is_interval_over(&self, now: T) -> bool {
        self.updated.is_none_or(|updated| now - updated > self.rate.interval())
    }

    /// Updates the rate. Returns `A_r`, if there is an estimate.
    pub fn update(&mut self, now: T, incoming: Option<Rate>) -> Option<Rate> {
        let rate = self.rate.update(now, self.usage(), incoming)?;
        self.updated = Some(now);
        Some(rate)
    }
}
