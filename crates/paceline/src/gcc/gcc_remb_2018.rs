// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC as in libwebrtc's receiver until the sender took over: the estimator from abs-send-time, of 2018. Chromium
//! behaved like this when mmsys16 was measured, give or take two years; rmcat-ns3 calls it REMB-GCC.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> TwoStateKalman -> OveruseDetector -> Aimd -> REMB, each 200 ms
//!                        5 ms           1/C and m          T, 10 ms  ^        ^
//!                                              '--> AdaptiveThreshold     IncomingRate R, 1 s
//! sender:    REMB, receiver reports -> SendSideEstimate
//! ```
//!
//! `docs/algorithms/gcc-tfb.md` lists the differences to the code, with reasons.

use super::RembTimer;
use super::arrivals::Arrivals;
use super::filtered_detector::{EstimatorSignal, FilteredDetector, emit_update};
use super::remb_receiver::{Estimator, RembParts, RembReceiver};
use crate::blocks::{
    AdaptiveDetector, Aimd, AimdConfig, BurstConfig, BurstGroups, GroupDelta, IncomingRate, RateState, SendSideConfig,
    SendSideEstimate, ThresholdConfig, TwoStateConfig, Usage,
};
use crate::params::config;
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Message, ReceiverReport, SendHalf, Setup, SignalName,
    SignalTables, Signals, signal_names,
};
use paceline_units::{Rate, RemoteTime, Time, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-remb-2018",
        "GCC as libwebrtc's receiver had it in 2018: two-state Kalman filter, adaptive threshold, AIMD, REMB",
        "libwebrtc of 2018: remote_bitrate_estimator_abs_send_time, send_side_bandwidth_estimation",
        GccRemb2018Config::default(),
    )
}

config! {
    /// The parameters of GCC with REMB of 2018.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GccRemb2018Config {
        /// libwebrtc of 2018.
        default const LIBWEBRTC;

        /// Grouping of packets.
        groups: BurstConfig = BurstConfig::Y2018, block all;
        /// The arrival-time filter.
        kalman: TwoStateConfig = TwoStateConfig::Y2015, block { q_slope, q_offset, variance_min };
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::LIBWEBRTC, block {
            gamma_0: "overuse_detector.cc",
            k_u: "k_up_",
            k_d: "k_down_",
            gamma_min: "UpdateThreshold",
            gamma_max: "UpdateThreshold",
            guard: "kMaxAdaptOffsetMs",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 10.0, unit "ms", in 0.0..=1e4, from "kOverUsingTimeThreshold";
        /// The rate control.
        rate: AimdConfig = AimdConfig::Y2018, block {
            eta: "MultiplicativeRateIncrease",
            beta as "alpha": "kDefaultBackoffFactor",
            headroom: "ClampBitrate",
            rtt: "kDefaultRttMs",
        };
        /// Window of R.
        window_ms: f64 = 1000.0, unit "ms", in 10.0..=1e4, from "kBitrateWindowMs";
        /// Shortest interval of REMBs, unless the rate falls by more than 3 %.
        remb_ms: f64 = 200.0, unit "ms", in 10.0..=1e5, from "kRembSendIntervalMs";
        /// The loss-based controller.
        loss: SendSideConfig = SendSideConfig::LIBWEBRTC, block all;
        /// Pacing rate over target.
        pacing_factor: f64 = 2.5, in 1.0..=10.0, from "kDefaultPaceMultiplier";
    }
}

impl Config for GccRemb2018Config {
    const SIGNALS: SignalTables = (SenderSignal::TABLE, EstimatorSignal::ADAPTIVE);

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = Sender::new(self.loss, self.pacing_factor, setup);
        Controller::from_halves(sender, RembReceiver::new(self, setup))
    }
}

impl RembParts for GccRemb2018Config {
    type Groups = BurstGroups;
    type Estimator = AimdEstimator;

    fn arrivals(&self) -> Arrivals<BurstGroups> {
        let incoming = IncomingRate::growing_window(TimeDelta::from_millis_f64(self.window_ms));
        Arrivals::new(BurstGroups::new(self.groups), incoming)
    }

    fn estimator(&self, setup: &Setup) -> AimdEstimator {
        let detector = AdaptiveDetector::new(self.overuse_ms, self.threshold, false);
        AimdEstimator { detector: FilteredDetector::new(self.kalman, detector), rate: Aimd::new(self.rate, setup) }
    }

    fn timer(&self) -> RembTimer {
        RembTimer::new(TimeDelta::from_millis_f64(self.remb_ms))
    }
}

/// Filter, detector and rate control.
#[derive(Clone, Debug)]
pub(super) struct AimdEstimator {
    detector: FilteredDetector,
    rate: Aimd<RemoteTime>,
}

impl Estimator for AimdEstimator {
    fn restart(&mut self) {
        self.detector.restart();
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
        self.detector.handle_group(now, delta, signals, EstimatorSignal::OF_GROUP);
    }

    /// Regularly, and during over-use whenever another decrease is allowed.
    fn is_due(&self, now: RemoteTime, _: Usage, incoming: impl FnOnce() -> Option<Rate>) -> bool {
        self.rate.is_interval_over(now)
            || (self.usage() == Usage::Over && incoming().is_some_and(|r| self.rate.may_decrease_again(now, r)))
    }

    fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate> {
        let rate = self.rate.update(now, self.usage(), incoming)?;
        emit_update(self.rate.state(), incoming, rate, signals);
        Some(rate)
    }
}

signal_names! {
    /// The signals of the send half. The receive half has those of `EstimatorSignal`.
    pub enum SenderSignal {
        Rate = series("A", "bit/s"),
        Remb = series("A_r received", "bit/s"),
        FractionLost = series("f_l", ""),
    }
}

#[derive(Clone, Debug)]
struct Sender {
    loss: SendSideConfig,
    pacing_factor: f64,
    estimate: SendSideEstimate,
}

impl Sender {
    fn new(loss: SendSideConfig, pacing_factor: f64, setup: &Setup) -> Self {
        Self { loss, pacing_factor, estimate: SendSideEstimate::new(loss, setup.start, setup.min) }
    }
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::RoundTrip(rtt) => self.estimate.set_rtt(rtt.last),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(message, signals),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(self.loss, self.pacing_factor, setup),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.estimate.next_update())
    }

    /// libwebrtc does not pad a single video stream.
    fn decision(&self) -> Decision {
        let target = self.estimate.rate();
        Decision { pacing: target.scale(self.pacing_factor), ..Decision::new(target) }
    }
}

impl Sender {
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.estimate.handle_report(now, report.fraction_lost);
        signals.emit(SenderSignal::Rate, self.estimate.rate().as_bps_f64());
        signals.emit(SenderSignal::FractionLost, report.fraction_lost.get());
    }

    fn handle_message(&mut self, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.estimate.handle_remb(rate);
        signals.emit(SenderSignal::Rate, self.estimate.rate().as_bps_f64());
        signals.emit(SenderSignal::Remb, rate.as_bps_f64());
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.estimate.set_bounds(bounds);
        signals.emit(SenderSignal::Rate, self.estimate.rate().as_bps_f64());
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let before = self.estimate.rate();
        self.estimate.handle_timeout(now);
        if self.estimate.rate() != before {
            signals.emit(SenderSignal::Rate, self.estimate.rate().as_bps_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReceiveHalf;
    use crate::testing::{SETUP, arrival};
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    fn receiver() -> Box<dyn ReceiveHalf> {
        GccRemb2018Config::default().halves(&SETUP).receive.expect("a receive half")
    }

    /// Handles a packet of 1250 bytes. Returns the REMB, if one is sent.
    fn arrive(half: &mut dyn ReceiveHalf, sent_ms: i64, arrived_ms: i64, signals: &mut Signals) -> Option<Rate> {
        let now = RemoteTime::from_millis(arrived_ms);
        half.handle_arrival(now, &arrival(sent_ms, 1250), signals);
        half.poll_message(now)
            .map(|message| if let Message::Remb(rate) = message { rate } else { panic!("{message:?}") })
    }

    /// 500 kbit/s on an empty path: no REMB for five seconds, then 500 kbit/s and 8 % more each second, every 200 ms
    /// and a packet, never above 1.5 R + 10.
    #[test]
    fn rembs_start_after_five_seconds_and_grow_to_the_headroom() {
        let (mut half, mut signals) = (receiver(), Signals::disabled());
        let rembs: Vec<(i64, Rate)> = (0..1000)
            .filter_map(|i| Some((20 * i, arrive(&mut *half, 20 * i, 90_000 + 20 * i, &mut signals)?)))
            .collect();
        let (first, rate) = rembs[0];
        assert!((5000..=5100).contains(&first), "{first}");
        assert!((495..=510).contains(&(rate.as_bps() / 1000)), "{rate}");
        assert!((50..=75).contains(&rembs.len()), "15 s at 220 ms: {}", rembs.len());
        let (_, after) = rembs[rembs.iter().position(|(ms, _)| *ms >= first + 3000).unwrap()];
        // 1.08^3 = 1.26, a step more or less.
        assert!((610..=650).contains(&(after.as_bps() / 1000)), "{after}");
        let last = rembs[rembs.len() - 1].1.as_bps() / 1000;
        assert!((750..=775).contains(&last), "{last}");
    }

    #[test]
    fn filter_restarts_after_two_seconds_without_packets() {
        let gradient_after = |pause_ms: i64| {
            let (mut half, mut signals) = (receiver(), Signals::enabled());
            for i in 0..200 {
                // The queue grows by 2 ms each 20 ms.
                arrive(&mut *half, 20 * i, 90_000 + 22 * i, &mut signals);
            }
            let pause = 4000 + pause_ms;
            signals.drain().for_each(drop);
            for i in 0..4 {
                arrive(&mut *half, pause + 20 * i, 90_400 + pause + 20 * i, &mut signals);
            }
            let last = signals.drain().filter(|(signal, _)| *signal == 1).last();
            last.expect("two groups").1
        };
        assert!(gradient_after(1900) > 6.0, "{}", gradient_after(1900));
        assert!(gradient_after(2100).abs() < 0.01, "{}", gradient_after(2100));
    }
}
