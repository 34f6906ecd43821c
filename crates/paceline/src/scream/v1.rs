// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCReAM of RFC 8298: a congestion window that follows the queuing delay, and a media rate that follows the throughput
//! of the window.
//!
//! ```text
//! feedback ─┬─ QueueDelay ──┬─ Trend ───────────┬──▶ CongestionWindow ──▶ window, pacing
//!           │               └─ DelayTarget ─────┤         │ growth
//!           ├─ MissingPackets ─ congestion ─────┤         ▼
//! sent ─────┼─ MaxInFlight ─────────────────────┘     MediaRate ──▶ target
//!           └─ Rates ──────────────────────────────────▲  ▲
//! streams ──── RtpQueue ──────────────────────────────────┘
//! ```
//!
//! `docs/algorithms/scream.md` lists the points that the RFC does not specify, with the choices.

use super::ScreamConfig;
use super::flight::MaxInFlight;
use super::media_rate::{MediaRate, MediaRateInput, RATE_ADJUST_INTERVAL};
use super::missing::MissingPackets;
use super::rates::Rates;
use super::stall::{LossEvents, Stall};
use super::target::DelayTarget;
use super::trend::Trend;
use super::window::{AckSummary, Congestion, CongestionWindow, WindowGrowth};
use crate::blocks::{QueueDelay, RtpQueue};
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, PacketReport, SendHalf, SentPacket, Setup,
    SignalName, SignalTables, Signals, StreamState, Window, signal_names,
};
use paceline_units::{DataSize, Ecn, RemoteTime, Time, TimeDelta};

pub(crate) fn entries() -> [Entry; 2] {
    [
        Entry::new(
            "scream",
            "SCReAM: a window on the queuing delay, and a media rate that follows it",
            "Johansson, Sarker: Self-Clocked Rate Adaptation for Multimedia, RFC 8298 (2017)",
            ScreamConfig::default(),
        ),
        Entry::new(
            "scream-cpp",
            "the same with the numbers of the authors' code",
            "Ericsson Research: SCReAM, C++ of 2018, as published with rmcat-ns3",
            ScreamConfig::CPP,
        ),
    ]
}

signal_names! {
    /// The signals of the send half.
    pub enum ScreamSignal {
        QueueDelay = series("qdelay", "ms"),
        QueueDelayTarget = series("qdelay target", "ms"),
        QueueDelayTrend = series("qdelay trend", ""),
        Window = series("cwnd", "B"),
        InFlight = series("bytes in flight", "B"),
        WindowGrowth = state("window grows", WindowGrowth::NAMES),
        SmoothedRtt = series("s_rtt", "ms"),
        RateTransmit = series("rate transmit", "bit/s"),
        RateAck = series("rate ack", "bit/s"),
        RateMedia = series("rate media", "bit/s"),
        RtpQueue = series("RTP queue", "B"),
        LastMax = series("target last max", "bit/s"),
        Target = series("A", "bit/s"),
    }
}

impl Config for ScreamConfig {
    const SIGNALS: SignalTables = (ScreamSignal::TABLE, &[]);

    /// Packets are ECN-capable, because RFC 8888 feedback contains ECN marks (RFC 8298, section 4.2.1: `n_ECN`), as long as
    /// the path keeps the field.
    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(Sender::new(self, setup), self.feedback, self.feedback_longest, true)
    }
}

/// The inverse weight of a sample in `s_rtt` (RFC 6298, section 2).
const S_RTT_WEIGHT: i64 = 8;
/// The weight of a round-trip time in `loss_event_rate`. The RFC does not specify it; this is the value of the C++
/// code.
const LOSS_WEIGHT: f64 = 0.01;
/// Feedback after a gap of this length, or of two round-trip times, ends an interruption (C++: feedback is expected within
/// this time).
const INTERRUPTION: TimeDelta = TimeDelta::from_millis(500);
/// The lowest bound on the acknowledged bytes that count for growth, in packets per report (C++).
const COUNTED_MIN: u64 = 2;

#[derive(Clone, Debug)]
struct Sender {
    qdelays: QueueDelay,
    trend: Trend,
    target: DelayTarget,
    missing: MissingPackets,
    flight: MaxInFlight,
    window: CongestionWindow,
    rates: Rates,
    queue: RtpQueue,
    media: MediaRate,
    config: ScreamConfig,

    qdelay: TimeDelta,
    /// Smoothed; `None` before the first sample.
    s_rtt: Option<TimeDelta>,
    /// The highest acknowledged packet.
    highest: Option<u64>,
    /// The bytes sent after it.
    in_flight: DataSize,
    stall: Stall,
    /// The bytes acknowledged since the last update of the window, and the time of that update.
    newly_acked: DataSize,
    updated: Option<Time>,
    /// The time at which the last congestion event occurred.
    congested: Option<Time>,
    loss_events: LossEvents,
    /// The time at which feedback last advanced the highest packet.
    last_feedback: Option<Time>,
    /// The end of the last interruption of feedback.
    resumed: Time,
    /// The time at which the target is adjusted next; [`Time::MAX`] before the first packet.
    adjust_due: Time,
    decision: Decision,
}

impl Sender {
    fn new(config: &ScreamConfig, setup: &Setup) -> Self {
        let window = CongestionWindow::new(config.window.for_packets(setup));
        let media = MediaRate::starting_at(config.media, setup.start, setup.min, setup.max);
        let target = media.get();
        let decision = Decision { ecn: Ecn::Ect0, ..Decision::new(target) };
        let mut sender = Self {
            qdelays: QueueDelay::new(config.base_delay),
            trend: Trend::new(config.trend),
            target: DelayTarget::new(config.target),
            missing: MissingPackets::new(config.reordering),
            flight: MaxInFlight::default(),
            window,
            rates: Rates::default(),
            queue: RtpQueue::default(),
            media,
            config: config.clone(),
            qdelay: TimeDelta::ZERO,
            s_rtt: None,
            highest: None,
            in_flight: DataSize::ZERO,
            stall: Stall::default(),
            newly_acked: DataSize::ZERO,
            updated: None,
            congested: None,
            loss_events: LossEvents::default(),
            last_feedback: None,
            resumed: Time::ZERO,
            adjust_due: Time::MAX,
            decision,
        };
        sender.decide();
        sender
    }
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::Stream(stream) => self.handle_stream(stream),
            Event::StreamRemoved(stream) => self.queue.remove_stream(stream),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        let due = self.adjust_due.min(self.stall.due);
        (due < Time::MAX).then_some(due)
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }
}

impl Sender {
    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.adjust_due == Time::MAX {
            self.rates.start(now);
            self.adjust_due = now + RATE_ADJUST_INTERVAL;
        }
        self.in_flight += packet.size;
        self.flight.update(now, self.in_flight);
        self.rates.handle_sent(packet.size);
        self.queue.handle_sent(packet);
        self.update_open_due(now);
    }

    fn handle_stream(&mut self, stream: &StreamState) {
        let encoded = self.queue.handle_stream(stream);
        self.rates.handle_encoded(encoded);
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.media.set_bounds(bounds);
        self.decide();
        signals.emit(ScreamSignal::Target, self.media.get().as_bps_f64());
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        self.advance_trend(now);
        let FeedbackSummary { newest, marked } = self.handle_packets(now, feedback.packets);
        let acked = self.in_flight.saturating_sub(feedback.after_highest);
        self.in_flight = feedback.after_highest;
        self.newly_acked += acked;
        self.rates.handle_acked(acked);
        if let Some(newest) = newest {
            self.measure(now, newest);
        }
        match self.congestion(now, marked) {
            Some(congestion) => self.handle_congestion(now, congestion),
            None if newest.is_some() => self.handle_acknowledged(now),
            None => {}
        }
        self.decide();
        self.update_open_due(now);
        signals.emit(ScreamSignal::QueueDelay, self.qdelay.as_millis_f64());
        signals.emit(ScreamSignal::QueueDelayTarget, self.target.target.as_millis_f64());
        signals.emit(ScreamSignal::QueueDelayTrend, self.trend.trend);
        signals.emit(ScreamSignal::Window, self.window.get().as_bytes() as f64);
        signals.emit(ScreamSignal::InFlight, self.in_flight.as_bytes() as f64);
        signals.emit(ScreamSignal::WindowGrowth, self.window.growth.index());
        signals.emit(ScreamSignal::SmoothedRtt, self.s_rtt.unwrap_or_default().as_millis_f64());
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if self.adjust_due <= now {
            self.adjust_due = now + RATE_ADJUST_INTERVAL;
            self.adjust_target(now, signals);
        }
        if self.stall.open(now, self.in_flight) {
            self.decide();
            self.update_open_due(now);
        }
    }
}

/// The content of a feedback message, except for the acknowledged bytes.
struct FeedbackSummary {
    /// The highest packet, if it is above all earlier ones.
    newest: Option<NewestPacket>,
    /// Whether packets arrived with a mark (`n_ECN` increased).
    marked: bool,
}

/// The highest packet of a message, and its times.
#[derive(Clone, Copy)]
struct NewestPacket {
    sequence: u64,
    sent: Time,
    arrival: RemoteTime,
}

impl Sender {
    fn handle_packets(&mut self, now: Time, packets: &[PacketReport]) -> FeedbackSummary {
        let mut summary = FeedbackSummary { newest: None, marked: false };
        let s_rtt = self.s_rtt();
        for packet in packets {
            let above = self.highest.is_none_or(|highest| packet.sequence > highest);
            match packet.arrival {
                None => self.missing.handle_missing(now, packet.sequence),
                Some(arrival) => {
                    summary.marked |= packet.ecn == Some(Ecn::Ce);
                    if above {
                        summary.newest = Some(NewestPacket { sequence: packet.sequence, sent: packet.sent, arrival });
                    } else {
                        self.missing.handle_late(now, packet.sequence, s_rtt);
                    }
                }
            }
        }
        summary
    }

    /// Measures queuing delay and round-trip time from the highest packet alone, the only one whose times a report must
    /// contain.
    fn measure(&mut self, now: Time, packet: NewestPacket) {
        self.highest = Some(packet.sequence);
        let last = self.last_feedback.replace(now);
        if last.is_some_and(|last| now - last > INTERRUPTION.max(self.s_rtt() * 2)) {
            self.resumed = now;
        }
        self.stall.given_up = DataSize::ZERO;
        self.qdelay = self.qdelays.update(now, packet.sent, packet.arrival);
        let rtt = now - packet.sent;
        self.s_rtt = Some(self.s_rtt.map_or(rtt, |s_rtt| s_rtt + (rtt - s_rtt) / S_RTT_WEIGHT));
    }

    /// Returns the congestion event, if there is one: losses or marks at least a round-trip time after the last event.
    fn congestion(&mut self, now: Time, marked: bool) -> Option<Congestion> {
        let lost = self.missing.take_lost(now);
        let s_rtt = self.s_rtt();
        self.loss_events.update(now, s_rtt, lost, LOSS_WEIGHT);
        let kind = if lost { Congestion::Loss } else { Congestion::Mark };
        let counts = self.congested.is_none_or(|at| now - at >= s_rtt);
        ((lost || marked) && counts).then_some(kind)
    }

    /// Handles a congestion event (`on congestion event`), also for the media rate.
    fn handle_congestion(&mut self, now: Time, congestion: Congestion) {
        self.congested = Some(now);
        self.start_update(now);
        self.window.handle_congestion(now, congestion);
        self.media.handle_congestion(congestion);
        self.target.adjust(self.qdelay, self.loss_events.rate);
    }

    /// Handles feedback without a congestion event (`on acknowledgement`).
    fn handle_acknowledged(&mut self, now: Time) {
        if self.updated.is_none_or(|at| now - at >= self.config.window_interval) {
            let (newly, span) = self.start_update(now);
            let ack = AckSummary {
                newly,
                counted_max: self.counted_max(span),
                in_flight: self.in_flight,
                max_in_flight: self.flight.get(),
                qdelay: self.qdelay,
                target: self.target.target,
                trend: self.trend.trend,
            };
            let before = self.window.growth;
            self.window.handle_acknowledged(&ack);
            if (before, self.window.growth) == (WindowGrowth::Fast, WindowGrowth::Delay) {
                self.media.inflect();
            }
        }
        self.target.adjust(self.qdelay, self.loss_events.rate);
        self.window.check_to_resume(now, self.trend.trend);
    }

    /// Starts an update of the window. Returns the bytes acknowledged since the last update, and the time since then.
    fn start_update(&mut self, now: Time) -> (DataSize, TimeDelta) {
        let span = now - self.updated.replace(now).unwrap_or(now);
        (core::mem::take(&mut self.newly_acked), span)
    }

    /// Returns the bound of the acknowledged bytes that count for growth in this time.
    fn counted_max(&self, span: TimeDelta) -> DataSize {
        if self.config.acked_max == f64::INFINITY {
            return DataSize::from_bytes(u64::MAX);
        }
        let rate = self.rates.current(self.config.throughput).scale(self.config.acked_max);
        (rate * span).max(DataSize::from_bytes(COUNTED_MIN * self.window.config.mss.as_bytes()))
    }

    fn adjust_target(&mut self, now: Time, signals: &mut Signals) {
        self.advance_trend(now);
        self.rates.update(now);
        let queued = self.queue.size();
        // An interval without feedback, or whose feedback began after an interruption, does not show the throughput.
        let began = now - RATE_ADJUST_INTERVAL;
        if self.last_feedback.is_some_and(|at| at >= began) && self.resumed <= began {
            self.media.update(&MediaRateInput {
                growth: self.window.growth,
                throughput: self.rates.current(self.config.throughput),
                media: self.rates.media,
                media_median: self.rates.media_median(),
                queued,
                trend: self.trend.trend,
                trend_memory: self.trend.memory,
            });
            self.decide();
        }
        signals.emit(ScreamSignal::RateTransmit, self.rates.transmit.as_bps_f64());
        signals.emit(ScreamSignal::RateAck, self.rates.ack.as_bps_f64());
        signals.emit(ScreamSignal::RateMedia, self.rates.media.as_bps_f64());
        signals.emit(ScreamSignal::RtpQueue, queued.as_bytes() as f64);
        signals.emit(ScreamSignal::LastMax, self.media.last_max().as_bps_f64());
        signals.emit(ScreamSignal::Target, self.media.get().as_bps_f64());
    }

    fn advance_trend(&mut self, now: Time) {
        self.trend.advance(now, self.qdelay.as_secs_f64() / self.target.target.as_secs_f64());
    }

    fn s_rtt(&self) -> TimeDelta {
        self.s_rtt.unwrap_or_default()
    }

    /// Before the first round-trip time, packets are paced at the target rate.
    fn decide(&mut self) {
        let target = self.media.get();
        let allowed =
            self.stall.allowed(self.window.config.min, || self.window.allowed(self.qdelay, self.target.target));
        self.decision = Decision {
            pacing: self.s_rtt.map_or(target.max(self.window.config.pace_min), |s_rtt| self.window.pacing(s_rtt)),
            window: Some(Window::AfterHighest(allowed)),
            ecn: Ecn::Ect0,
            tick: self.config.tick,
            ..Decision::new(target)
        };
    }

    fn update_open_due(&mut self, now: Time) {
        if let Some(Window::AfterHighest(allowed)) = self.decision.window {
            let s_rtt = self.s_rtt();
            self.stall.update(now, self.in_flight, allowed, s_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PacketKind, testing};
    use alloc::vec::Vec;
    use paceline_units::{Rate, StreamId};

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const PACKET: DataSize = DataSize::from_bytes(1200);

    /// A sender on a path with [`RTT`] and no queue. Its encoder produces the target rate, one packet at a time.
    struct Call {
        half: Sender,
        signals: Signals,
        now: Time,
        next_packet: Time,
        next_feedback: Time,
        /// The send times of all packets, and the first packet that was not reported yet.
        sent: Vec<Time>,
        reported: usize,
    }

    impl Call {
        fn new(config: ScreamConfig) -> Self {
            let setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(100), Rate::from_kbps(2500));
            Self {
                half: Sender::new(&config, &setup),
                signals: Signals::disabled(),
                now: Time::ZERO,
                next_packet: Time::ZERO,
                next_feedback: Time::ZERO + RTT,
                sent: Vec::new(),
                reported: 0,
            }
        }

        /// Runs until this time. `fate` returns the ECN field with which a packet arrives, or `None` if it is lost.
        fn run(&mut self, until_ms: i64, mut fate: impl FnMut(u64) -> Option<Ecn>) {
            while self.now < Time::from_millis(until_ms) {
                self.now += TimeDelta::from_millis(1);
                if self.half.poll_timeout().is_some_and(|due| due <= self.now) {
                    self.half.handle_timeout(self.now, &mut self.signals);
                    assert!(self.half.poll_timeout().is_none_or(|due| due > self.now));
                }
                if self.now >= self.next_feedback {
                    self.send_feedback(&mut fate);
                    self.next_feedback = self.now + TimeDelta::from_millis(20);
                }
                let Decision { target, window, .. } = self.half.decision();
                let Some(Window::AfterHighest(window)) = window else { panic!("no window") };
                if self.now >= self.next_packet && self.half.in_flight < window {
                    self.half.handle_stream(&StreamState::new(StreamId(0), DataSize::ZERO));
                    let packet = testing::sent(self.sent.len() as u64, PacketKind::Media, PACKET.as_bytes());
                    self.half.handle_sent(self.now, &packet);
                    self.sent.push(self.now);
                    self.next_packet = self.next_packet.max(self.now - RTT) + PACKET / target;
                }
            }
        }

        fn send_feedback(&mut self, fate: &mut impl FnMut(u64) -> Option<Ecn>) {
            let (now, first) = (self.now, self.reported);
            let due = self.sent[first..].iter().take_while(|sent| now - **sent >= RTT).count();
            let report = |n: usize| {
                let (sequence, sent) = (n as u64, self.sent[n]);
                let ecn = fate(sequence);
                let arrival = ecn.map(|_| RemoteTime::from_nanos(sent.as_nanos()) + RTT / 2);
                PacketReport { ecn, ..PacketReport::new(sequence, sent, PACKET, arrival) }
            };
            let packets: Vec<PacketReport> = (first..first + due).map(report).collect();
            // The last packet of a report is one that arrived.
            let Some(last) = packets.iter().rposition(|p| p.arrival.is_some()) else { return };
            self.reported = first + last + 1;
            let flight = DataSize::from_bytes(PACKET.as_bytes() * (self.sent.len() - self.reported) as u64);
            let feedback = Feedback::new(&packets[..=last], flight, flight);
            self.half.handle_feedback(now, &feedback, &mut self.signals);
        }

        fn kbps(&self) -> u64 {
            self.half.decision().target.as_bps() / 1000
        }
        fn cwnd(&self) -> u64 {
            self.half.window.get().as_bytes()
        }
    }

    fn arrives(_: u64) -> Option<Ecn> {
        Some(Ecn::NotEct)
    }

    /// 200 kbit/s per second from 1 to 2.5 Mbit/s, with a window that covers the path.
    #[test]
    fn rate_reaches_its_maximum_on_a_path_without_congestion() {
        for config in [ScreamConfig::default(), ScreamConfig::CPP] {
            let mut call = Call::new(config);
            call.run(2000, arrives);
            assert!((1150..=1450).contains(&call.kbps()), "{}", call.kbps());
            call.run(12_000, arrives);
            assert_eq!(call.kbps(), 2500);
            assert!(call.cwnd() > 2_500_000 / 8 / 10, "{}", call.cwnd());
            assert_eq!(call.half.s_rtt().as_nanos() / 10_000_000, 10, "plus up to 20 ms until feedback");
            assert!(call.half.trend.trend < 0.01);
        }
    }

    /// A mark decreases window and rate less than a loss.
    #[test]
    fn losses_count_once_per_round_trip() {
        let after = |affected: &[u64], fate: Option<Ecn>| {
            let mut config = ScreamConfig::CPP;
            config.window.head_room = 10.0; // the events alone limit the window
            let mut call = Call::new(config);
            call.run(5000, arrives);
            let (cwnd, kbps, next) = (call.cwnd(), call.kbps(), call.sent.len() as u64);
            call.run(5600, |n| if affected.iter().any(|s| next + s == n) { fate } else { arrives(n) });
            assert_eq!(call.half.window.growth, WindowGrowth::Delay);
            (call.cwnd() as f64 / cwnd as f64, call.kbps() as f64 / kbps as f64)
        };
        let near = |(cwnd, rate): (f64, f64), cut: (f64, f64)| {
            // In addition to the events there are 0.6 s of growth.
            assert!((cut.0..cut.0 + 0.1).contains(&cwnd), "{cwnd} for {}", cut.0);
            assert!((cut.1 - 0.001..cut.1 + 0.1).contains(&rate), "{rate} for {}", cut.1);
        };
        near(after(&[0], None), (0.8, 0.9));
        near(after(&[0, 2, 5], None), (0.8, 0.9));
        near(after(&[0, 40], None), (0.64, 0.81));
        near(after(&[0, 2, 5], Some(Ecn::Ce)), (0.9, 0.95));
    }

    /// Without feedback the sender sends one window, then the minimum window every half second. With feedback it
    /// recovers.
    #[test]
    fn closed_window_opens_by_the_minimum_window() {
        let mut call = Call::new(ScreamConfig::default());
        call.run(5000, arrives);
        let (kbps, next) = (call.kbps(), call.sent.len() as u64);
        call.run(6000, |_| None);
        let sent = call.sent.len() as u64 - next;
        call.run(16_000, |_| None);
        let more = call.sent.len() as u64 - next - sent;
        // 20 times MIN_CWND of 2.5 packets, each plus the packet that exceeds it.
        assert!((50..=63).contains(&more), "{more}");
        assert!((5..=40).contains(&sent), "{sent} at first");
        assert!(call.kbps() <= kbps + 200, "no growth without feedback: {}", call.kbps());
        assert!(call.half.stall.given_up > DataSize::ZERO);
        call.run(16_500, arrives);
        assert_eq!(call.half.stall.given_up, DataSize::ZERO);
        call.run(30_000, arrives);
        assert_eq!(call.kbps(), 2500);
    }

    #[test]
    fn target_is_constant_before_the_first_feedback() {
        let mut call = Call::new(ScreamConfig::default());
        call.run(10_000, |_| None);
        assert_eq!(call.kbps(), 1000);
        assert!((45..=65).contains(&call.sent.len()), "{}", call.sent.len());
    }
}
