//! The estimator of receivers until 2015: two-state Kalman filter, over-use detector with a threshold by region, and
//! region control.
//!
//! ```text
//! GroupDelta -> TwoStateKalman -> OveruseDetector -> RegionControl -> A_r
//!                 1/C and m          T, gamma  ^      |    ^
//!                                              '------'    R
//! ```

use super::remb_receiver::Estimator;
use super::{Alpha, AlphaVariant, GrowthLaw, Observation, RateState, Region, RegionConfig, RegionControl, RembTimer};
use crate::blocks::{GroupDelta, OveruseDetector, TwoStateConfig, TwoStateKalman, Usage};
use crate::{Block, FieldVisitor, Setup, Signals, signal_names};
use paceline_units::{Rate, RemoteTime, TimeDelta};

/// The numbers of a receiver with region control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionReceiverConfig {
    /// The arrival-time filter.
    pub kalman: TwoStateConfig,
    /// The threshold where the maximum is unknown, ms; half of it in the other regions.
    pub threshold_ms: f64,
    /// The time for which over-use must last, ms.
    pub overuse_ms: f64,
    /// The growth law.
    pub growth: GrowthLaw,
    /// The decrease factor near the maximum, and in the other regions.
    pub alpha: (f64, f64),
    /// If set, the decrease factor follows equation 4.1 of uottawa15.
    pub dynamic: Option<AlphaVariant>,
    /// Whether growth after Hold starts at the incoming rate that was reached.
    pub recovery: bool,
    /// Whether lasting over-use causes further decreases between the regular updates (2013), or only its beginning
    /// causes one (2012).
    pub repeat_decrease: bool,
    /// The bound of the rate, as a multiple of the incoming rate.
    pub headroom: f64,
    /// The round-trip time that the receiver assumes.
    pub rtt: TimeDelta,
    /// The window of the incoming rate.
    pub window: TimeDelta,
    /// The shortest interval of REMBs, unless the rate falls by more than 3 %.
    pub remb: TimeDelta,
}

impl Block for RegionReceiverConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        fields
            .number("threshold_ms", "ms", (0.0, 1e4), &mut self.threshold_ms)
            .describe("threshold on min(n, 60)·m where the maximum is unknown");
        fields.number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms).describe("how long over-use must last");
        fields.choice("growth", &[GrowthLaw::Aimd, GrowthLaw::Response], &mut self.growth).describe("law of growth");
        fields
            .number("alpha_near", "", (0.1, 1.0), &mut self.alpha.0)
            .describe("share of R kept in a decrease near the maximum");
        fields
            .number("alpha_far", "", (0.1, 1.0), &mut self.alpha.1)
            .describe("share of R kept in a decrease elsewhere");
        let variants = [None, Some(AlphaVariant::Printed), Some(AlphaVariant::Tabulated), Some(AlphaVariant::Listing)];
        fields.choice("dynamic_alpha", &variants, &mut self.dynamic).describe("0: alpha by region");
        fields
            .flag("recovery", &mut self.recovery)
            .describe("growth after Hold begins at alpha times the highest R of that time");
        fields
            .flag("repeat_decrease", &mut self.repeat_decrease)
            .describe("lasting over-use causes further decreases between the regular updates");
        fields
            .number("headroom", "", (1.0, 100.0), &mut self.headroom)
            .describe("no step ends above this many times R");
        fields.millis("rtt_ms", (0.0, 1e4), &mut self.rtt).describe("round-trip time that a receiver assumes");
        fields.millis("window_ms", (10.0, 1e4), &mut self.window).describe("window of R");
        fields.millis("remb_ms", (10.0, 1e5), &mut self.remb).describe("least interval of REMBs but for a fall of 3 %");
    }
}

impl RegionReceiverConfig {
    pub(super) fn timer(&self) -> RembTimer {
        RembTimer::new(self.remb)
    }

    fn rate(&self) -> RegionConfig {
        let (near, far) = self.alpha;
        let alpha = match self.dynamic {
            None => Alpha::ByRegion { near, far },
            Some(variant) => Alpha::Dynamic { variant, last: far },
        };
        let Self { growth, recovery, headroom, rtt, .. } = *self;
        RegionConfig { growth, alpha, recovery, headroom, rtt }
    }
}

signal_names! {
    /// The signals of the receive halves of `gcc-2013` and `gcc-2015`.
    pub enum RegionSignal {
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

/// Filter, detector and rate control of one receiver.
#[derive(Clone, Debug)]
pub(super) struct RegionEstimator {
    config: RegionReceiverConfig,
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
    pub fn new(config: RegionReceiverConfig, setup: Setup, as_in_2013: bool) -> Self {
        Self {
            config,
            setup,
            as_in_2013,
            kalman: TwoStateKalman::new(config.kalman),
            detector: OveruseDetector::new(config.overuse_ms),
            m: 0.0,
            t: 0.0,
            gamma: config.threshold_ms,
            rate: RegionControl::new(config.rate(), &setup),
            updated: None,
        }
    }
}

impl Estimator for RegionEstimator {
    fn restart(&mut self) {
        if self.as_in_2013 {
            *self = Self::new(self.config, self.setup, true);
            return;
        }
        self.kalman = TwoStateKalman::new(self.config.kalman);
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
        let stable = match self.config.kalman.learns_within {
            true => self.detector.next_scaled(self.m).abs() < self.gamma,
            false => usage == Usage::Normal,
        };
        self.m = self.kalman.update(arrival, departure, delta.size as f64, stable, usage.sign());
        self.t = self.detector.scale(self.m);
        let usage = self.detector.update(self.m, self.t, self.gamma, departure);
        signals.emit(RegionSignal::Gradient, delta.gradient_ms());
        signals.emit(RegionSignal::Scaled, self.t);
        signals.emit(RegionSignal::Threshold, self.gamma);
        signals.emit(RegionSignal::Usage, usage.index());
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
        signals.emit(RegionSignal::State, self.rate.state().index());
        signals.emit(RegionSignal::Incoming, incoming.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(RegionSignal::Rate, rate.as_bps_f64());
        signals.emit(RegionSignal::Region, self.rate.region().index());
        signals.emit(RegionSignal::Alpha, self.rate.alpha());
        Some(rate)
    }
}
