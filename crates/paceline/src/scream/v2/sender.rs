// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half: measurement of feedback, and the order in which the parts are updated.

use super::super::missing::MissingPackets;
use super::super::stall::{LossEvents, Stall};
use super::super::target::DelayTarget;
use super::alpha::L4sAlpha;
use super::config::ScreamV2Config;
use super::delay::{DelayAverage, virtual_alpha};
use super::drift::ClockDrift;
use super::flight::FlightMax;
use super::loss_rate::LossRate;
use super::pacing::pacing_rate;
use super::reference_window::{AckSummary, ReferenceWindow, window_overhead};
use super::rtt::SmoothedRtt;
use super::shares::Shares;
use super::target_rate::FrameStatistics;
use crate::blocks::QueueDelay;
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, PacketReport, QueuedFrame, SendHalf, SentPacket,
    Setup, SignalName, SignalTables, Signals, StreamState, Window, signal_names,
};
use paceline_units::{DataSize, Ecn, Rate, StreamId, Time, TimeDelta, round_to_u64};

pub(crate) fn entries() -> [Entry; 2] {
    const DRAFT: &str = "Johansson, Westerlund, Kühlewind: SCReAMv2, draft-ietf-ccwg-rfc8298bis-screamv2-01 (2026)";
    [
        Entry::new(
            "scream-v2",
            "SCReAM version 2: a reference window on L4S marks, losses and delay; the rate follows it",
            DRAFT,
            ScreamV2Config::default(),
        ),
        Entry::new(
            "scream-v2-cpp",
            "the same with the numbers and rules of the authors' code",
            "Ericsson Research: SCReAM, C++ of July 2026 (c8f84c3)",
            ScreamV2Config::CPP,
        ),
    ]
}

signal_names! {
    /// The signals of the send half.
    pub enum ScreamV2Signal {
        QueueDelay = series("qdelay", "ms"),
        QueueDelayAverage = series("qdelay_avg", "ms"),
        QueueDelayTarget = series("qdelay target", "ms"),
        DelayScale = series("ref_wnd_delay_scale", ""),
        Alpha = series("l4s_alpha", ""),
        Window = series("ref_wnd", "B"),
        Inflection = series("ref_wnd_i", "B"),
        InFlight = series("bytes in flight", "B"),
        SmoothedRtt = series("s_rtt", "ms"),
        RtpQueueDelay = series("media_qdelay", "ms"),
        RateAdjust = series("rate_adjust_factor", ""),
        FrameDeviation = series("frame_size_dev", ""),
        Target = series("A", "bit/s"),
    }
}

impl Config for ScreamV2Config {
    const SIGNALS: SignalTables = (ScreamV2Signal::TABLE, &[]);

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(Sender::new(self, setup), self.feedback, self.feedback_longest, true)
    }
}

/// The weight of a round-trip time in `loss_event_rate` (C++).
const LOSS_WEIGHT: f64 = 0.02;
/// The time over which the acknowledged rate is measured (C++: `kRateUpdateInterval_ntp`, 100 ms).
const ACKED_RATE_TIME: TimeDelta = TimeDelta::from_millis(100);
/// `ACKED_BITRATE_MARGIN`.
const ACKED_MARGIN: f64 = 0.8;
/// Near the highest rate: from this share of it on the window is bounded (C++).
const NEAR_MAX: f64 = 0.95;
/// The bound, over what the highest rate needs (C++: the pacing headroom), and what is added to the round-trip time.
const NEAR_MAX_HEADROOM: f64 = 1.5;
const NEAR_MAX_RTT_EXTRA: f64 = 0.001;

#[derive(Clone, Debug)]
struct Sender {
    config: ScreamV2Config,
    bounds: Bounds,
    qdelays: QueueDelay,
    delay: DelayAverage,
    drift: ClockDrift,
    delay_target: DelayTarget,
    alpha: L4sAlpha,
    missing: MissingPackets,
    loss: LossRate,
    flight: FlightMax,
    rtt: SmoothedRtt,
    window: ReferenceWindow,
    frames: FrameStatistics,
    shares: Shares,

    target: Rate,
    qdelay: TimeDelta,
    /// The highest acknowledged packet.
    highest: Option<u64>,
    /// The bytes sent after it.
    in_flight: DataSize,
    stall: Stall,
    loss_events: LossEvents,
    /// `acked_bitrate`, bit/s, and the bytes and the start of the next one.
    acked_rate: f64,
    acked_since: DataSize,
    acked_began: Option<Time>,
    decision: Decision,
}

impl Sender {
    fn new(config: &ScreamV2Config, setup: &Setup) -> Self {
        let target = setup.bounds().clamp(setup.start);
        let ecn = if config.l4s { Ecn::Ect1 } else { Ecn::Ect0 };
        let mut sender = Self {
            config: config.clone(),
            bounds: setup.bounds(),
            qdelays: QueueDelay::new(config.base_delay),
            delay: DelayAverage::new(config.delay),
            drift: ClockDrift::new(config.drift),
            delay_target: DelayTarget::new(config.target),
            alpha: L4sAlpha::new(config.alpha),
            missing: MissingPackets::new(config.reordering),
            loss: LossRate::new(config.loss),
            flight: FlightMax::default(),
            rtt: SmoothedRtt::new(config.smoothing),
            window: ReferenceWindow::new(config.window.for_packets(setup)),
            frames: FrameStatistics::new(config.media),
            shares: Shares::default(),
            target,
            qdelay: TimeDelta::ZERO,
            highest: None,
            in_flight: DataSize::ZERO,
            stall: Stall::default(),
            loss_events: LossEvents::default(),
            acked_rate: 0.0,
            acked_since: DataSize::ZERO,
            acked_began: None,
            decision: Decision { ecn, ..Decision::new(target) },
        };
        sender.decide();
        sender
    }
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            _ => self.handle_other(now, event, signals),
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        (self.stall.due < Time::MAX).then_some(self.stall.due)
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        self.shares.get(stream)
    }
}

impl Sender {
    /// Handles an event other than [`Event::Sent`], the most frequent one.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::Stream(stream) => self.handle_stream(stream),
            Event::StreamRemoved(stream) => self.handle_stream_removed(stream),
            Event::Frame(frame) => self.handle_frame(now, frame),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            Event::Timeout => self.handle_timeout(now),
            _ => {}
        }
    }

    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.in_flight += packet.size;
        self.flight.handle(self.in_flight);
        self.frames.handle_sent(packet);
        self.update_open_due(now);
    }

    fn handle_stream(&mut self, stream: &StreamState) {
        self.frames.handle_stream(stream);
        if self.shares.handle_stream(stream) {
            self.decide();
        }
    }

    fn handle_frame(&mut self, now: Time, frame: &QueuedFrame) {
        let rate = self.shares.get(frame.stream).unwrap_or(self.target);
        self.frames.handle_frame(now, frame, rate);
    }

    fn handle_stream_removed(&mut self, stream: StreamId) {
        self.frames.remove_stream(stream);
        self.shares.remove(stream);
        self.decide();
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.bounds = *bounds;
        self.target = bounds.clamp(self.target);
        self.decide();
        signals.emit(ScreamV2Signal::Target, self.target.as_bps_f64());
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let seen = self.handle_packets(now, feedback.packets);
        let acked = self.in_flight.saturating_sub(feedback.after_highest);
        self.flight.handle(self.in_flight);
        self.in_flight = feedback.after_highest;
        self.measure_acked_rate(now, acked);
        if let Some((sequence, sent)) = seen.newest {
            self.highest = Some(sequence);
            self.stall.given_up = DataSize::ZERO;
            let rtt = feedback.rtt.filter(|_| self.config.hold_removed).map_or(now - sent, |rtt| rtt.last);
            let limited = self.window.is_unused(self.flight.get());
            self.rtt.handle(now, rtt, limited);
        }
        if let Some(s_rtt) = self.rtt.get() {
            self.update(now, s_rtt, acked, &seen);
        }
        self.decide();
        self.update_open_due(now);
        self.emit(now, signals);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.stall.open(now, self.in_flight) {
            self.decide();
            self.update_open_due(now);
        }
    }
}

/// The content of a feedback message.
struct PacketSummary {
    /// Number and send time of the highest packet, if it is above all earlier ones.
    newest: Option<(u64, Time)>,
    /// The bytes that arrived with a mark.
    acked_ce: DataSize,
    lost: bool,
}

impl Sender {
    fn handle_packets(&mut self, now: Time, packets: &[PacketReport]) -> PacketSummary {
        let mut seen = PacketSummary { newest: None, acked_ce: DataSize::ZERO, lost: false };
        let s_rtt = self.rtt.get().unwrap_or_default();
        let in_window = self.window.window / self.window.config.mss.as_bytes() as f64;
        for packet in packets {
            self.loss.handle_packet(packet.arrival.is_none(), in_window);
            let Some(arrival) = packet.arrival else {
                self.missing.handle_missing(now, packet.sequence);
                continue;
            };
            let marked = packet.ecn == Some(Ecn::Ce);
            self.alpha.handle_packet(marked);
            if marked {
                seen.acked_ce += packet.size;
            }
            let qdelay = self.qdelays.update(now, packet.sent, arrival);
            self.delay.handle_packet(qdelay, self.delay_target.target);
            if self.highest.is_none_or(|highest| packet.sequence > highest) {
                seen.newest = Some((packet.sequence, packet.sent));
                self.qdelay = qdelay;
            } else {
                self.missing.handle_late(now, packet.sequence, s_rtt);
            }
        }
        seen.lost = self.missing.take_lost(now);
        seen
    }

    /// Updates averages, window and target, in this order.
    fn update(&mut self, now: Time, s_rtt: TimeDelta, acked: DataSize, seen: &PacketSummary) {
        let interval = self.config.window.reaction.min(s_rtt);
        let delay_target = self.delay_target.target.as_secs_f64();
        self.alpha.update(now, s_rtt);
        if self.drift.update(now, self.qdelay, s_rtt, self.delay_target.target) {
            self.qdelays.restart();
            self.delay.reset();
            self.qdelay = TimeDelta::ZERO;
        }
        self.delay.update(now, self.qdelay.as_secs_f64() - self.drift.offset(), interval);
        if self.loss_events.update(now, s_rtt, seen.lost, LOSS_WEIGHT) {
            self.loss.handle_round();
        }
        let average = self.delay.average;
        let is_congestion = seen.lost && self.loss.handle_loss(average / delay_target, self.window.window);
        let (target, max) = (self.target.as_bps_f64(), self.bounds.max.as_bps_f64());
        self.window.update(
            now,
            &AckSummary {
                acked,
                acked_ce: seen.acked_ce,
                lost: is_congestion,
                marked: seen.acked_ce > DataSize::ZERO,
                l4s: self.config.l4s,
                alpha: self.alpha.alpha,
                fraction: self.alpha.fraction,
                rtt_falls: self.rtt.falls,
                alpha_v: virtual_alpha(average, delay_target),
                s_rtt,
                delay: self.qdelay.as_secs_f64() / delay_target,
                delay_scale: self.delay.scale,
                undershoots: target < ACKED_MARGIN * self.acked_rate,
                flight_max: self.flight.get(),
                flight_previous: self.flight.previous,
                may_grow: target < max,
                bound: self.loss.policed.min(self.near_max_bound(s_rtt)),
            },
        );
        let period = if self.config.flight == TimeDelta::ZERO { s_rtt } else { self.config.flight };
        self.flight.update(now, period);
        self.delay_target.adjust(self.qdelay, self.loss_events.rate);
        let rate = self.frames.target(self.window.window, self.window.config.mss, s_rtt);
        self.target = self.bounds.clamp(Rate::from_bps_f64(rate * self.drift.factor()));
    }

    /// Near the highest rate the window follows the bytes in flight (draft: "See SCReAM-CPP-implementation for details").
    fn near_max_bound(&self, s_rtt: TimeDelta) -> f64 {
        let max = self.bounds.max.as_bps_f64();
        if self.target.as_bps_f64() <= NEAR_MAX * max {
            return f64::INFINITY;
        }
        let needed = NEAR_MAX_HEADROOM * max / 8.0 * (s_rtt.as_secs_f64() + NEAR_MAX_RTT_EXTRA);
        needed.max(self.flight.long().as_bytes() as f64)
    }

    fn measure_acked_rate(&mut self, now: Time, acked: DataSize) {
        let began = *self.acked_began.get_or_insert(now);
        self.acked_since += acked;
        if now - began >= ACKED_RATE_TIME {
            self.acked_rate =
                Rate::from_size_and_time(core::mem::take(&mut self.acked_since), now - began).as_bps_f64();
            self.acked_began = Some(now);
        }
    }

    fn decide(&mut self) {
        self.shares.divide(self.target);
        let allowed = self.stall.allowed(self.window.config.min, || {
            let overhead = window_overhead(self.delay.scale, &self.window.config);
            DataSize::from_bytes(round_to_u64(self.window.window * overhead))
        });
        self.decision = Decision {
            pacing: pacing_rate(self.target, self.bounds.max, &self.config.pacing),
            window: Some(Window::AfterHighest(allowed)),
            ecn: self.decision.ecn,
            queue_max: self.config.queue_max,
            ..Decision::new(self.target)
        };
    }

    fn update_open_due(&mut self, now: Time) {
        if let Some(Window::AfterHighest(allowed)) = self.decision.window {
            let s_rtt = self.rtt.get().unwrap_or_default();
            self.stall.update(now, self.in_flight, allowed, s_rtt);
        }
    }

    fn emit(&self, now: Time, signals: &mut Signals) {
        signals.emit(ScreamV2Signal::QueueDelay, self.qdelay.as_millis_f64());
        signals.emit(ScreamV2Signal::QueueDelayAverage, 1e3 * self.delay.average);
        signals.emit(ScreamV2Signal::QueueDelayTarget, self.delay_target.target.as_millis_f64());
        signals.emit(ScreamV2Signal::DelayScale, self.delay.scale);
        signals.emit(ScreamV2Signal::Alpha, self.alpha.alpha);
        signals.emit(ScreamV2Signal::Window, self.window.window);
        signals.emit(ScreamV2Signal::Inflection, self.window.inflection);
        signals.emit(ScreamV2Signal::InFlight, self.in_flight.as_bytes() as f64);
        signals.emit(ScreamV2Signal::SmoothedRtt, self.rtt.get().unwrap_or_default().as_millis_f64());
        signals.emit(ScreamV2Signal::RtpQueueDelay, self.frames.delay(now).as_millis_f64());
        signals.emit(ScreamV2Signal::RateAdjust, self.frames.adjust());
        signals.emit(ScreamV2Signal::FrameDeviation, self.frames.deviation());
        signals.emit(ScreamV2Signal::Target, self.target.as_bps_f64());
    }
}
