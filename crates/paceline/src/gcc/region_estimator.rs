// SPDX-License-Identifier: MIT OR Apache-2.0
//! The estimator of receivers until 2015: two-state Kalman filter, over-use detector with a threshold by region, and
//! region control.
//!
//! ```text
//! GroupDelta -> TwoStateKalman -> OveruseDetector -> RegionControl -> A_r
//!                 1/C and m          T, gamma  ^      |    ^
//!                                              '------'    R
//! ```

use super::filtered_detector::{EstimatorSignal, emit_update};
use super::remb_receiver::Estimator;
use super::{Observation, RegionConfig, RegionControl};
use crate::blocks::{GroupDelta, Learning, OveruseDetector, RateState, TwoStateConfig, TwoStateKalman, Usage};
use crate::{Setup, Signals};
use paceline_units::{Rate, RemoteTime};

/// Filter, detector and rate control of one receiver.
#[derive(Clone, Debug)]
pub(super) struct RegionEstimator {
    config: RegionConfig,
    setup: Setup,
    /// As in 2013: a pause restarts the rate control as well as the filter, and the rate is updated only while `R` is
    /// known.
    as_in_2013: bool,
    kalman: TwoStateKalman,
    detector: OveruseDetector,
    /// The gradient of the last group and its scaled value `T`, ms.
    m: f64,
    t: f64,
    /// The current threshold, ms.
    gamma: f64,
    rate: RegionControl,
    /// The time at which the rate was last updated.
    updated: Option<RemoteTime>,
}

impl RegionEstimator {
    pub fn new(filter: TwoStateConfig, config: RegionConfig, setup: Setup, as_in_2013: bool) -> Self {
        Self {
            config,
            setup,
            as_in_2013,
            kalman: TwoStateKalman::new(filter),
            detector: OveruseDetector::new(config.overuse_ms),
            m: 0.0,
            t: 0.0,
            gamma: config.threshold_ms,
            rate: RegionControl::new(config, &setup),
            updated: None,
        }
    }
}

impl Estimator for RegionEstimator {
    fn restart(&mut self) {
        if self.as_in_2013 {
            *self = Self::new(*self.kalman.config(), self.config, self.setup, true);
            return;
        }
        self.kalman.restart();
        self.detector.restart();
        self.m = 0.0;
    }

    fn set_min(&mut self, min: Rate) {
        self.setup.min = min;
        self.rate.set_min(min);
    }

    fn usage(&self) -> Usage {
        self.detector.usage()
    }

    fn state(&self) -> RateState {
        self.rate.state()
    }

    fn handle_group(&mut self, _: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        let (arrival, departure) = (delta.arrival.as_millis_f64(), delta.departure.as_millis_f64());
        let usage = self.usage();
        let stable = match self.kalman.config().learns {
            Learning::WithinThreshold => self.detector.next_scaled(self.m).abs() < self.gamma,
            _ => usage == Usage::Normal,
        };
        self.m = self.kalman.update(arrival, departure, delta.size as f64, stable, usage.sign());
        self.t = self.detector.scale(self.m);
        let usage = self.detector.update(self.m, self.t, self.gamma, departure);
        signals.emit(EstimatorSignal::Gradient, delta.gradient_ms());
        signals.emit(EstimatorSignal::Scaled, self.t);
        signals.emit(EstimatorSignal::Threshold, self.gamma);
        signals.emit(EstimatorSignal::Usage, usage.index());
    }

    /// Regularly; immediately when over-use starts; and while it lasts, whenever another decrease is allowed, if
    /// decreases are repeated.
    #[inline]
    fn is_due(&self, now: RemoteTime, before: Usage, incoming: impl FnOnce() -> Option<Rate>) -> bool {
        if self.updated.is_none_or(|updated| now - updated > self.rate.interval()) {
            return true;
        }
        self.usage() == Usage::Over
            && (before != Usage::Over
                || (self.config.repeat_decrease && incoming().is_some_and(|r| self.rate.may_decrease_again(now, r))))
    }

    fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate> {
        if incoming.is_none() && self.as_in_2013 {
            return None;
        }
        let (usage, variance) = (self.usage(), self.kalman.variance());
        let rate = self.rate.update(now, &Observation { usage, incoming, variance, t: self.t, gamma: self.gamma })?;
        self.updated = Some(now);
        self.gamma = self.rate.region().threshold(self.config.threshold_ms);
        emit_update(self.rate.state(), incoming, rate, signals);
        signals.emit(EstimatorSignal::Region, self.rate.region().index());
        signals.emit(EstimatorSignal::Alpha, self.rate.alpha());
        Some(rate)
    }
}
