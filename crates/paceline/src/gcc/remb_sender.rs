// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half of the generations until 2016: a loss-based rate `A_s`, bounded by the REMBs `A_r` of the receiver.
//!
//! ```text
//! REMB A_r, receiver reports f_l -> LossController A_s -> A = min(A_s, A_r)
//! ```

use crate::blocks::{LossConfig, LossController, StartProbes};
use crate::{Bounds, Decision, Event, Message, ProbeCluster, ReceiverReport, SendHalf, Setup, Signals, signal_names};
use paceline_units::{Rate, Time, TimeDelta};

/// The time after the first report in which a REMB may raise the rate (`kStartPhaseMs` of libwebrtc's
/// `SendSideBandwidthEstimation`).
const START_PHASE: TimeDelta = TimeDelta::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RembSenderConfig {
    pub loss: LossConfig,
    /// Whether a REMB bounds `A_s` until the next one, or only at the moment when it arrives.
    pub remb_lasts: bool,
    /// The highest rate; `None`: the maximum of the flow.
    pub max: Option<Rate>,
    /// Pacing rate over target; `None`: packets leave without pacing.
    pub pacing_factor: Option<f64>,
    /// Whether padding fills the target.
    pub pads: bool,
    /// Whether two clusters of packets probe the path at the start, and whether a REMB raises the rate until 2 s after the
    /// first report, if no report had losses.
    pub start_probes: bool,
}

signal_names! {
    /// The signals of the send halves that follow REMB: `gcc-2013`, `gcc-2015`, `gcc-2016`, `gcc-draft-2015`.
    pub enum RembSenderSignal {
        LossBased = series("A_s", "bit/s"),
        Remb = series("A_r received", "bit/s"),
        FractionLost = series("f_l", ""),
    }
}

#[derive(Clone, Debug)]
pub(super) struct RembSender {
    config: RembSenderConfig,
    loss: LossController,
    remb: Option<Rate>,
    bounds: Bounds,
    /// The clusters that are still to be sent; `None` without probes.
    probes: Option<StartProbes>,
    /// Whether the flow was not asked to send them yet.
    starts: bool,
    first_report: Option<Time>,
    had_loss: bool,
}

impl RembSender {
    pub fn new(config: RembSenderConfig, setup: &Setup) -> Self {
        let bounds = Bounds { max: config.max.unwrap_or(setup.max), ..setup.bounds() };
        Self {
            config,
            loss: LossController::new(config.loss, setup),
            remb: None,
            bounds,
            probes: config.start_probes.then(|| StartProbes::new(setup)),
            starts: config.start_probes,
            first_report: None,
            had_loss: false,
        }
    }

    /// Returns whether a REMB may raise the rate.
    fn is_starting(&self, now: Time) -> bool {
        let early = self.first_report.is_none_or(|first| now - first < START_PHASE);
        self.config.start_probes && !self.had_loss && early
    }
}

impl SendHalf for RembSender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::RoundTrip(rtt) => self.loss.set_rtt(rtt.last),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(now, message, signals),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(self.config, setup),
            Event::Timeout => self.starts = false,
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    /// The clusters are due at the start of the call. The flow asks for them after a timeout.
    fn poll_timeout(&self) -> Option<Time> {
        self.starts.then_some(Time::ZERO)
    }

    fn poll_probe(&mut self, _: Time) -> Option<ProbeCluster> {
        self.probes.as_mut()?.poll()
    }

    fn decision(&self) -> Decision {
        let target = self.loss.rate();
        // The scaling of rates beyond 2^53 bit/s rounds: the pacing rate must not fall below the target.
        let pacing = self.config.pacing_factor.map_or(Rate::MAX, |factor| target.scale(factor).max(target));
        let padding = if self.config.pads { target } else { Rate::ZERO };
        Decision { pacing, padding, ..Decision::new(target) }
    }
}

impl RembSender {
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.first_report.get_or_insert(now);
        self.had_loss |= report.fraction_lost.get() > 0.0;
        self.loss.handle_report(report.fraction_lost);
        let remb = self.remb.filter(|_| self.config.remb_lasts).unwrap_or(Rate::MAX);
        self.loss.bound(self.bounds.min, self.bounds.max.min(remb));
        signals.emit(RembSenderSignal::LossBased, self.loss.rate().as_bps_f64());
        signals.emit(RembSenderSignal::FractionLost, report.fraction_lost.get());
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = Some(rate);
        if self.is_starting(now) {
            self.loss.raise(rate.min(self.bounds.max));
        }
        self.loss.bound(self.bounds.min, rate);
        signals.emit(RembSenderSignal::LossBased, self.loss.rate().as_bps_f64());
        signals.emit(RembSenderSignal::Remb, rate.as_bps_f64());
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.bounds = Bounds { max: self.config.max.unwrap_or(Rate::MAX).min(bounds.max), min: bounds.min };
        self.loss.bound(self.bounds.min, self.bounds.max);
        signals.emit(RembSenderSignal::LossBased, self.loss.rate().as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Drive, SETUP, report, rtt};

    fn sender(remb_lasts: bool, loss: LossConfig, pacing_factor: Option<f64>) -> RembSender {
        let max = remb_lasts.then_some(Rate::MAX);
        RembSender::new(
            RembSenderConfig { loss, remb_lasts, max, pacing_factor, pads: false, start_probes: false },
            &SETUP,
        )
    }

    /// Eq. 2 of fhmn13 lowers `A_s` when the REMB arrives, and the next report may increase it again; in libwebrtc it
    /// may not.
    #[test]
    fn remb_bounds_the_rate_on_arrival_or_until_the_next() {
        for (remb_lasts, after) in [(false, 211_050), (true, 200_000)] {
            let mut half = sender(remb_lasts, LossConfig::Y2013, None);
            let mut signals = Signals::disabled();
            half.handle_message(Time::from_secs(1), &Message::Remb(Rate::from_kbps(400)), &mut signals);
            assert_eq!(half.decision().target, SETUP.start, "a REMB does not increase the rate");
            half.handle_message(Time::from_secs(2), &Message::Remb(Rate::from_kbps(200)), &mut signals);
            assert_eq!(half.decision().target, Rate::from_kbps(200));
            half.handle_report(Time::from_secs(3), &report(0.0), &mut signals);
            assert_eq!(half.decision().target.as_bps(), after, "1.05 · (200 + 1)");
            half.handle_message(Time::from_secs(4), &Message::Remb(Rate::ZERO), &mut signals);
            assert_eq!(half.decision().target, SETUP.min);
        }
    }

    /// fhmn13, eq. 1, between the flow's bounds: up to the maximum, and with heavy loss not below the TCP throughput.
    #[test]
    fn loss_moves_the_rate_between_its_bounds() {
        let mut half = sender(false, LossConfig::Y2013, None);
        let mut signals = Signals::disabled();
        half.on(0, Event::RoundTrip(&rtt(50)));
        for second in 0..60 {
            half.handle_report(Time::from_secs(second), &report(0.01), &mut signals);
        }
        assert_eq!(half.decision().target, SETUP.max);
        assert_eq!(half.decision().pacing, Rate::MAX);
        half.handle_report(Time::from_secs(60), &report(0.05), &mut signals);
        assert_eq!(half.decision().target, SETUP.max, "no change between 2 and 10 %");
        half.handle_report(Time::from_secs(61), &report(0.2), &mut signals);
        assert_eq!(half.decision().target, Rate::from_kbps(1800));
        for second in 62..120 {
            half.handle_report(Time::from_secs(second), &report(0.2), &mut signals);
        }
        // Vector V7.1: 1000 B, 50 ms, 0.2.
        assert_eq!(half.decision().target.as_bps(), 85_850);
    }

    /// With probes the clusters leave once, and a REMB raises the rate until a report has losses or for 2 s.
    #[test]
    fn start_probes_let_a_remb_raise_the_rate() {
        let config = RembSenderConfig {
            loss: LossConfig::Y2016,
            remb_lasts: true,
            max: Some(Rate::MAX),
            pacing_factor: None,
            pads: false,
            start_probes: true,
        };
        let mut signals = Signals::disabled();
        for (lost, second, expected) in [(0.0, 2, 900), (0.0, 4, 315), (0.05, 2, 300)] {
            let mut half = RembSender::new(config, &SETUP);
            assert_eq!(half.poll_timeout(), Some(Time::ZERO));
            half.on(0, Event::Timeout);
            assert_eq!(half.poll_timeout(), None);
            assert_eq!(core::iter::from_fn(|| half.poll_probe(Time::ZERO)).count(), 2);
            half.handle_report(Time::from_secs(1), &report(lost), &mut signals);
            half.handle_message(Time::from_secs(second), &Message::Remb(Rate::from_kbps(900)), &mut signals);
            assert_eq!(half.decision().target.as_bps() / 1000, expected, "{lost} lost, REMB after {second} s");
        }
        let mut half = RembSender::new(config, &SETUP);
        half.handle_message(Time::ZERO, &Message::Remb(Rate::from_kbps(900)), &mut signals);
        assert_eq!(half.decision().target, Rate::from_kbps(900), "before the first report");
    }

    #[test]
    fn pacing_is_never_slower_than_the_target() {
        let mut half = sender(true, LossConfig { increase: 10.0, ..LossConfig::Y2016 }, Some(1.0));
        let mut signals = Signals::disabled();
        for second in 0..20 {
            half.handle_report(Time::from_secs(second), &report(0.0), &mut signals);
        }
        let odd = Rate::from_bps((1 << 60) + 1);
        half.handle_message(Time::from_secs(20), &Message::Remb(odd), &mut signals);
        let decision = half.decision();
        assert!(decision.target == odd && decision.pacing >= odd, "{decision:?}");
    }
}
