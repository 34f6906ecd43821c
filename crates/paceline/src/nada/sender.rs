// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half of both generations: accelerated ramp-up or gradual update, and the rate-shaping buffer.

use super::observer::OBSERVED;
use super::{GradualConfig, Observer, RampUpConfig, ReceivedPacket, Shaping, ShapingConfig, gradual, ramp_up};
use crate::blocks::FlightLimit;
use crate::{
    Bounds, Decision, Event, Feedback, Message, NadaMode, NadaReport, RoundTrip, SendHalf, SentPacket, Setup,
    SignalName, Signals, StreamState,
};
use core::fmt::Debug;
use core::marker::PhantomData;
use libm::{floor, trunc};
use paceline_units::{Ecn, Rate, StreamId, Time, TimeDelta};

/// Numbers of the send half, with the differences between the generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SenderConfig {
    pub generation: Generation,
    /// The time between two reports.
    pub interval: TimeDelta,
    /// The part of the time until a ramp-up becomes visible that is not the round-trip time.
    pub response: TimeDelta,
    pub ramp_up: RampUpConfig,
    pub gradual: GradualConfig,
    pub shaping: ShapingConfig,
    /// The round-trip time before the first measurement.
    pub rtt: TimeDelta,
    /// The ECN codepoint of RTP packets.
    pub ecn: Ecn,
    /// The queue that the bytes in flight may cause before they lower the target; zero: no limit.
    pub window_queue: TimeDelta,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Generation {
    /// A step stands for one interval; a ramp-up follows the received rate also downwards.
    Y2015 {
        /// Pacing over `R_send`.
        pacing_factor: f64,
        /// Whether a new rate differs from the one before by whole kilobits per second.
        whole_kbps: bool,
    },
    /// A step stands for the time since the last report; a ramp-up never lowers the rate (eq. 4); the pacing rate is at
    /// most the maximum of the flow.
    Rfc8698,
}

/// The names of the signals of a send half.
pub(super) trait SenderSignal: SignalName + Debug + Send + 'static {
    const RATE: Self;
    /// Mode, signal and received rate of the last report; the bytes in the queue.
    const REPORT: [Self; 4];
    const RTT: Self;
    /// The names of the observer's signals, if it runs at the sender.
    const OBSERVED: Option<[Self; OBSERVED]>;
}

#[derive(Clone, Debug)]
pub(super) struct Sender<S> {
    config: SenderConfig,
    bounds: Bounds,
    /// `R_n`, `r_ref`.
    rate: Rate,
    /// The signal of the previous report, `x_prev`, ms.
    x_before: f64,
    rtt: TimeDelta,
    /// The time at which the last report arrived, `t_last`.
    updated: Option<Time>,
    shaping: Shaping,
    /// Observes packets in per-packet feedback, if no receiver reports.
    observer: Option<Observer>,
    /// Whether packets are sent: a report on a pause would be taken for a low received rate.
    available: bool,
    flight: Option<FlightLimit>,
    /// Packets that were reported lost and are not yet followed by an observed one.
    missing: u32,
    /// The highest reported packet plus one.
    next: u64,
    decision: Decision,
    signals: PhantomData<fn() -> S>,
}

impl<S: SenderSignal> Sender<S> {
    pub fn new(config: SenderConfig, setup: &Setup, observer: Option<Observer>) -> Self {
        let rate = setup.start.min(setup.max);
        let mut sender = Self {
            config,
            bounds: setup.bounds(),
            rate,
            x_before: 0.0,
            rtt: config.rtt,
            updated: None,
            shaping: Shaping::new(config.shaping),
            observer,
            available: true,
            flight: FlightLimit::new(config.window_queue),
            missing: 0,
            next: 0,
            decision: Decision { ecn: config.ecn, ..Decision::new(rate) },
            signals: PhantomData,
        };
        sender.decide();
        sender
    }

    /// The encoders follow `r_vin`, the pacer follows `r_send`.
    fn decide(&mut self) {
        let rate = self.flight.as_ref().map_or(self.rate, |flight| flight.limited(self.rate));
        let (encoder, pacer) = self.shaping.rates(rate);
        let target = encoder.max(self.bounds.min);
        let pacing = match self.config.generation {
            Generation::Y2015 { pacing_factor, .. } => pacer.max(target).scale(pacing_factor),
            Generation::Rfc8698 => pacer.min(self.bounds.max).max(target),
        };
        self.decision = Decision { target, stable_target: target, pacing, ..self.decision };
    }

    /// Handles a report (RFC 8698, section 4.3).
    fn update(&mut self, now: Time, report: &NadaReport, signals: &mut Signals) {
        let (c, x) = (&self.config, report.signal.as_millis_f64());
        let rate = match report.mode {
            NadaMode::RampUp => {
                let rate = ramp_up(report.incoming, self.rtt + c.response, &c.ramp_up);
                if c.generation == Generation::Rfc8698 { self.rate.max(rate) } else { rate }
            }
            NadaMode::Gradual => gradual(self.rate, x, self.x_before, self.step(now), self.bounds.max, &c.gradual),
        };
        // Eq. 8 and 9.
        self.rate = self.bounds.clamp(self.rounded(rate, report.mode));
        self.x_before = x;
        self.updated = Some(now);
        self.decide();
        signals.emit(S::RATE, self.rate.as_bps_f64());
        let queued = self.shaping.queued().as_bytes() as f64;
        let values = [report.mode.index(), x, report.incoming.as_bps_f64(), queued];
        S::REPORT.into_iter().zip(values).for_each(|(name, value)| signals.emit(name, value));
    }

    /// Returns a new rate in whole kilobits per second, if so configured: a ramp-up is rounded, and of a gradual update the
    /// change, towards zero after adding a half (the simulator that med16 used, `nada.cc`).
    fn rounded(&self, rate: Rate, mode: NadaMode) -> Rate {
        let Generation::Y2015 { whole_kbps: true, .. } = self.config.generation else { return rate };
        let kbps = |rate: Rate| rate.as_bps_f64() / 1e3;
        let kbps = match mode {
            NadaMode::RampUp => floor(kbps(rate) + 0.5),
            NadaMode::Gradual => floor(kbps(self.rate)) + trunc(kbps(rate) - kbps(self.rate) + 0.5),
        };
        Rate::from_bps_f64(kbps * 1e3)
    }

    /// Returns the time that a gradual update stands for. By the RFC it is one interval for the first report, and at
    /// most TAU, beyond which the loop is not stable.
    fn step(&self, now: Time) -> TimeDelta {
        match self.config.generation {
            Generation::Y2015 { .. } => self.config.interval,
            Generation::Rfc8698 => {
                let since = self.updated.map_or(self.config.interval, |at| now - at);
                since.min(TimeDelta::from_millis_f64(self.config.gradual.tau))
            }
        }
    }
}

impl<S: SenderSignal> SendHalf for Sender<S> {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            _ => self.handle_other(now, event, signals),
        }
    }

    fn decides_on_sent(&self) -> bool {
        self.flight.is_some()
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }

    /// RFC 8699, section 6.1: the reference rate is exchanged, and `r_vin` and `r_send` follow it.
    fn calculated_rate(&self) -> Option<Rate> {
        self.flight.is_none().then_some(self.rate)
    }
}

impl<S: SenderSignal> Sender<S> {
    /// Handles an event other than [`Event::Sent`], the most frequent one.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::RoundTrip(rtt) => self.handle_rtt(rtt, signals),
            Event::Message(message) => self.handle_message(now, message, signals),
            Event::Stream(stream) => self.handle_stream(stream),
            Event::StreamRemoved(stream) => self.handle_stream_removed(stream),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => self.handle_route_change(setup),
            Event::Availability(available) => self.available = available,
            Event::CoupledRate(share) => self.set_coupled_rate(share, signals),
            _ => {}
        }
    }

    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.flight.is_some() {
            self.limit_flight(now, packet);
        }
    }

    #[inline(never)]
    fn limit_flight(&mut self, now: Time, packet: &SentPacket) {
        if self.flight.as_mut().is_some_and(|flight| flight.handle_sent(now, packet)) {
            self.decide();
        }
    }

    /// Of reports only the round-trip time is used: loss is part of the congestion signal.
    fn handle_rtt(&mut self, rtt: &RoundTrip, signals: &mut Signals) {
        self.rtt = rtt.last;
        signals.emit(S::RTT, self.rtt.as_millis_f64());
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        match message {
            Message::Nada(report) if self.observer.is_none() && self.available => self.update(now, report, signals),
            _ => {}
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let (Some(observer), Some(names)) = (&mut self.observer, S::OBSERVED) else { return };
        for packet in feedback.packets {
            let above = packet.sequence >= self.next;
            self.next = self.next.max(packet.sequence + 1);
            let Some(arrival) = packet.arrival else {
                self.missing += 1;
                continue;
            };
            // A packet that was counted as lost before does not count again.
            let missing = above.then(|| core::mem::take(&mut self.missing));
            let (sent, size, ecn) = (Some(packet.sent), packet.size, packet.ecn.unwrap_or(Ecn::NotEct));
            observer.handle_packet(&ReceivedPacket { arrival, sent, size, ecn, missing });
        }
        let report = observer.report(observer.now(), signals, names);
        if let Some(flight) = &mut self.flight {
            flight.handle_feedback(now, feedback, self.rate);
        }
        self.update(now, &report, signals);
    }

    fn handle_stream_removed(&mut self, stream: StreamId) {
        self.shaping.remove_stream(stream);
        self.decide();
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        (self.bounds, self.rate) = (*bounds, bounds.clamp(self.rate));
        self.decide();
        signals.emit(S::RATE, self.rate.as_bps_f64());
    }

    fn handle_route_change(&mut self, setup: &Setup) {
        *self = Self::new(self.config, setup, self.observer.as_ref().map(Observer::restarted));
    }

    fn handle_stream(&mut self, stream: &StreamState) {
        self.shaping.handle_queued(stream.stream, stream.queued);
        self.decide();
    }

    fn set_coupled_rate(&mut self, share: Rate, signals: &mut Signals) {
        self.rate = self.bounds.clamp(share);
        self.decide();
        signals.emit(S::RATE, self.rate.as_bps_f64());
    }
}
