// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC as in the draft of June 2015, draft-alvestrand-rmcat-congestion-03 (repository `ldecicco/gcc-rmcat`, commit
//! a8699c2), which mmsys16 cites for its technical details.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> TwoStateKalman -> OveruseDetector -> RateController -> REMB, each second
//!                        5 ms           1/C and m      T, 10 ms  ^         ^
//!                                            '--> AdaptiveThreshold    IncomingRate R, 500 ms
//! sender:    REMB A, receiver reports -> LossController with TFRC -> min(A_s, A)
//! ```
//!
//! `docs/algorithms/gcc-2016.md` lists what the draft leaves open.

use super::arrivals::Arrivals;
use super::filtered_detector::{EstimatorSignal, FilteredDetector, emit_update};
use super::remb_receiver::{Estimator, RembParts, RembReceiver};
use super::remb_sender::{RembSender, RembSenderConfig, RembSenderSignal};
use super::{RateConfig, RateController, RembTimer};
use crate::blocks::{
    AdaptiveDetector, BurstConfig, BurstGroups, GroupDelta, IncomingRate, LossConfig, RateState, ThresholdConfig,
    TwoStateConfig, Usage,
};
use crate::params::config;
use crate::{Config, Controller, Entry, Setup, SignalName, SignalTables, Signals};
use paceline_units::{Rate, RemoteTime, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-draft-2015",
        "GCC of the draft of June 2015: two-state Kalman filter, adaptive threshold, additive growth near convergence",
        "draft-alvestrand-rmcat-congestion-03 of June 2015, which mmsys16 cites",
        GccDraft2015Config::default(),
    )
}

config! {
    /// The parameters of the draft.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GccDraft2015Config {
        /// draft-alvestrand-rmcat-congestion-03. A value that it does not fix has a source of its own.
        default const JUNE_2015;

        /// Grouping of packets.
        groups: BurstConfig = BurstConfig { resolution: TimeDelta::ZERO, ..BurstConfig::Y2018 }, block {
            group: "section 4.2",
            burst: "section 4.2",
            burst_max: "the draft has no limit",
            resolution: "the draft names no resolution",
        };
        /// The arrival-time filter.
        kalman: TwoStateConfig = TwoStateConfig::JUNE_2015, block {
            q_slope: "section 4.2",
            q_offset: "section 4.2",
            chi: "section 4.2: 0.001 to 0.1; libwebrtc's first 0.01",
            variance_0: "not printed, libwebrtc's 50",
            variance_min: "section 4.2",
            outlier_cap: "section 4.2",
        };
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::GCC_02, block {
            gamma_0: "section 4.3",
            k_u: "section 4.3",
            k_d: "section 4.3",
            gamma_min: "section 4.3",
            gamma_max: "section 4.3",
            guard: "section 4.3",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 10.0, unit "ms", in 0.0..=1e4, from "section 4.3, gamma_2";
        /// The rate control.
        rate: RateConfig = RateConfig::JUNE_2015, block {
            eta: "section 4.4",
            alpha: "section 4.4",
            headroom: "section 4.4",
            additive_rtt as "rtt_ms": "section 4.4; libwebrtc's kDefaultRttMs",
        };
        /// Window of R.
        window as "window_ms": TimeDelta = TimeDelta::from_millis(500), in 10.0..=1e4,
            from "section 4.4: 500 to 1000; mmsys16 section 3.3";
        /// Interval of regular REMBs.
        remb as "remb_ms": TimeDelta = TimeDelta::from_millis(1000), in 10.0..=1e5, from "section 3";
        /// The loss-based controller.
        loss: LossConfig = LossConfig { tfrc: true, ..LossConfig::Y2016 }, block {
            low: "section 5", high: "section 5", increase: "section 5", decrease: "section 5", tfrc: "section 5",
        };
        /// Pacing rate over target.
        pacing_factor: f64 = 1.5, in 1.0..=10.0, from "not in the draft; mmsys16 section 3.5";
    }
}

impl Config for GccDraft2015Config {
    const SIGNALS: SignalTables = (RembSenderSignal::TABLE, EstimatorSignal::ADAPTIVE);

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = RembSenderConfig {
            loss: self.loss,
            remb_lasts: true,
            max: Some(Rate::MAX),
            pacing_factor: Some(self.pacing_factor),
            pads: true,
            start_probes: false,
        };
        Controller::from_halves(RembSender::new(sender, setup), RembReceiver::new(self, setup))
    }
}

impl RembParts for GccDraft2015Config {
    type Groups = BurstGroups;
    type Estimator = DraftEstimator;

    fn arrivals(&self) -> Arrivals<BurstGroups> {
        Arrivals::new(BurstGroups::new(self.groups), IncomingRate::full_window(self.window))
    }

    fn estimator(&self, setup: &Setup) -> DraftEstimator {
        DraftEstimator {
            detector: FilteredDetector::new(self.kalman, AdaptiveDetector::new(self.overuse_ms, self.threshold, true)),
            rate: RateController::new(self.rate, setup),
            window: self.window,
            has_paused: false,
            refilled: None,
            has_gradient: false,
        }
    }

    fn timer(&self) -> RembTimer {
        RembTimer::new(self.remb)
    }
}

/// Filter, detector and rate control.
#[derive(Clone, Debug)]
pub(super) struct DraftEstimator {
    detector: FilteredDetector,
    rate: RateController,
    /// The window of the incoming rate.
    window: TimeDelta,
    /// Whether this is the first update after a pause.
    has_paused: bool,
    /// The end of the first window after the last pause. Until then `R` contains the pause, and counts as unknown.
    refilled: Option<RemoteTime>,
    /// Before the first gradient the start rate of the sender stays in force.
    has_gradient: bool,
}

impl Estimator for DraftEstimator {
    fn restart(&mut self) {
        self.detector.restart();
        self.has_paused = true;
    }

    fn set_min(&mut self, min: Rate) {
        self.rate.set_min(min);
    }

    fn usage(&self) -> Usage {
        self.detector.usage()
    }

    fn state(&self) -> RateState {
        self.rate.state()
    }

    fn handle_group(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        self.has_gradient = true;
        self.detector.handle_group(now, delta, signals, EstimatorSignal::OF_GROUP);
    }

    /// Each response time, and immediately when over-use starts.
    fn is_due(&self, now: RemoteTime, before: Usage, _: impl FnOnce() -> Option<Rate>) -> bool {
        self.rate.is_interval_over(now) || (self.usage() == Usage::Over && before != Usage::Over)
    }

    fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate> {
        if core::mem::take(&mut self.has_paused) {
            self.refilled = Some(now + self.window);
        }
        let incoming = incoming.filter(|_| self.refilled.is_none_or(|refilled| now >= refilled));
        let rate = self.rate.update(now, TimeDelta::ZERO, self.usage(), incoming);
        emit_update(self.rate.state(), incoming, rate, signals);
        self.has_gradient.then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::testing::{SETUP, arrival};
    use alloc::vec::Vec;

    /// Frames of 2500 bytes each 20 ms, 1 Mbit/s. From frame 500 on each waits 4 ms more than the previous one. Returns
    /// the REMBs of a receiver that starts at `start` kbit/s as (ms of sending, kbit/s).
    fn rembs(start: u64) -> Vec<(i64, u64)> {
        let setup = Setup { start: Rate::from_kbps(start), ..SETUP };
        let mut half = GccDraft2015Config::default().halves(&setup).receive.expect("a receive half");
        let mut signals = Signals::disabled();
        let mut rembs = Vec::new();
        for i in 0..600 {
            let now = RemoteTime::from_millis(90_000 + 20 * i + 4 * (i - 500).max(0));
            for part in 0..2 {
                half.handle_arrival(now, &arrival(20 * i + part, 1250), &mut signals);
            }
            if let Some(Message::Remb(rate)) = half.poll_message(now) {
                rembs.push((20 * i, rate.as_bps() / 1000));
            }
        }
        rembs
    }

    /// Updates are 300 ms apart, so a REMB follows each fourth one: 1.08^1.2 = 1.0968.
    #[test]
    fn rembs_grow_by_eight_percent_per_second() {
        let growing: Vec<u64> = rembs(300).into_iter().filter(|(at, _)| *at < 10_000).map(|(_, rate)| rate).collect();
        assert_eq!(growing.len(), 9, "{growing:?}");
        // The first window of R is full after 500 ms.
        let factors: Vec<f64> = growing[1..].windows(2).map(|pair| pair[1] as f64 / pair[0] as f64).collect();
        assert!(factors.iter().all(|factor| (1.09..1.1).contains(factor)), "{factors:?}");
    }

    /// After 3 s without packets, the window of R contains the pause: 1.5 R would be a tenth of the rate.
    #[test]
    fn pause_does_not_lower_the_rate() {
        let mut half = GccDraft2015Config::default().halves(&SETUP).receive.expect("a receive half");
        let mut signals = Signals::disabled();
        let mut rembs = Vec::new();
        for i in 0..400 {
            let at = 20 * i + if i < 200 { 0 } else { 3000 };
            let now = RemoteTime::from_millis(90_000 + at);
            half.handle_arrival(now, &arrival(at, 1250), &mut signals);
            if let Some(Message::Remb(rate)) = half.poll_message(now) {
                rembs.push(rate.as_bps() / 1000);
            }
        }
        assert!(rembs.len() > 5 && rembs.windows(2).all(|pair| pair[1] >= pair[0]), "{rembs:?}");
    }

    /// 4 ms of gradient exceed the threshold within groups; 0.85 of an incoming rate of 833 to 1000 kbit/s.
    #[test]
    fn overuse_sends_a_remb_at_once() {
        let rembs = rembs(1400);
        let (at, rate) = rembs.iter().find(|(at, _)| *at > 10_000).expect("over-use");
        assert!((10_020..=10_300).contains(at) && (700..=850).contains(rate), "{rembs:?}");
    }
}
