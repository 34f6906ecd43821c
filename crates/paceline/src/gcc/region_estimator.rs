//! What receivers until 2015 make of a group: gradient, over-use, and the rate by region.
//!
//! ```text
//! GroupDelta -> TwoStateKalman -> OveruseDetector -> RegionControl -> A_r
//!                 1/C and m          T, gamma  ^      |    ^
//!                                              '------'    R
//! ```
//!
//! The generations differ in how they group packets, how they measure `R` and when they tell `A_r`: that is theirs.

use super::{Observation, RateState, Region, RegionConfig, RegionControl};
use crate::blocks::{GroupDelta, OveruseDetector, TwoStateConfig, TwoStateKalman, Usage};
use crate::{SignalSpec, Signals};
use paceline_units::{Rate, RemoteTime};

/// Filter, detector and rate control of one receiver.
#[derive(Clone, Debug)]
pub struct RegionEstimator {
    filter: TwoStateConfig,
    kalman: TwoStateKalman,
    detector: OveruseDetector,
    threshold_ms: f64,
    /// The gradient of the last group and its scaled value `T`, ms.
    m: f64,
    t: f64,
    /// The threshold in force, ms.
    gamma: f64,
    rate: RegionControl,
    /// When the estimate was last updated.
    updated: Option<RemoteTime>,
}

impl RegionEstimator {
    /// What it signals, from index 0 on.
    pub const SIGNALS: &'static [SignalSpec] = &[
        SignalSpec::series("d_m", "ms"),
        SignalSpec::series("m scaled", "ms"),
        SignalSpec::series("gamma", "ms"),
        SignalSpec::state("usage", Usage::NAMES),
        SignalSpec::state("sigma", RateState::NAMES),
        SignalSpec::series("R", "bit/s"),
        SignalSpec::series("A_r", "bit/s"),
        SignalSpec::state("region", Region::NAMES),
        SignalSpec::series("alpha", ""),
    ];

    /// One that has seen nothing. `overuse_ms`: how long over-use must last; `threshold_ms`: the threshold where the
    /// maximum is unknown; `min`: the rate that it never falls below.
    pub fn new(filter: TwoStateConfig, overuse_ms: f64, threshold_ms: f64, rate: RegionConfig, min: Rate) -> Self {
        Self {
            filter,
            kalman: TwoStateKalman::new(filter),
            detector: OveruseDetector::new(overuse_ms),
            threshold_ms,
            m: 0.0,
            t: 0.0,
            gamma: threshold_ms,
            rate: RegionControl::new(rate, min),
            updated: None,
        }
    }

    /// What the detector said last.
    pub fn usage(&self) -> Usage {
        self.detector.usage()
    }

    /// What the rate controller did last.
    pub fn state(&self) -> RateState {
        self.rate.state()
    }

    /// The filter begins anew; the rate stays.
    pub fn restart_filter(&mut self) {
        self.kalman = TwoStateKalman::new(self.filter);
        self.detector.recount();
        self.m = 0.0;
    }

    /// A group is complete.
    pub fn handle_group(&mut self, delta: &GroupDelta, signals: &mut Signals) {
        let (arrival, departure) = (delta.arrival.as_millis_f64(), delta.departure.as_millis_f64());
        let usage = self.detector.usage();
        let stable = match self.filter.learns_within {
            true => self.detector.next_scaled(self.m).abs() < self.gamma,
            false => usage == Usage::Normal,
        };
        self.m = self.kalman.update(arrival, departure, delta.size as f64, stable, usage.sign());
        self.t = self.detector.scale(self.m);
        let usage = self.detector.update(self.m, self.t, self.gamma, departure);
        signals.emit(0, delta.gradient_ms());
        signals.emit(1, self.t);
        signals.emit(2, self.gamma);
        signals.emit(3, usage.index());
    }

    /// Whether the estimate is to be updated: at once when over-use begins, while it goes on as often as another decrease
    /// is allowed, and regularly. `before`: what the detector said before this packet.
    #[inline]
    pub fn is_due(&self, now: RemoteTime, before: Usage, incoming: impl FnOnce() -> Option<Rate>) -> bool {
        if self.updated.is_none_or(|updated| now - updated > self.rate.interval()) {
            return true;
        }
        self.usage() == Usage::Over
            && (before != Usage::Over || incoming().is_some_and(|r| self.rate.may_decrease_again(now, r)))
    }

    /// Updates the estimate. Answers `A_r`, once there is one.
    pub fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate> {
        let (usage, variance) = (self.usage(), self.kalman.variance());
        let seen = Observation { usage, incoming, variance, t: self.t, gamma: self.gamma };
        let rate = self.rate.update(now, &seen)?;
        self.updated = Some(now);
        self.gamma = self.rate.region().threshold(self.threshold_ms);
        signals.emit(4, self.rate.state().index());
        signals.emit(5, incoming.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(6, rate.as_bps_f64());
        signals.emit(7, self.rate.region().index());
        signals.emit(8, self.rate.alpha());
        Some(rate)
    }
}
