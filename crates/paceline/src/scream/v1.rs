//! SCReAM of RFC 8298: a window that follows the queuing delay, and a media rate that follows what the window lets
//! through.
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
//! What the RFC leaves open, and what was chosen, stands in `docs/algorithms/scream.md`.

use super::ScreamConfig;
use super::flight::MaxInFlight;
use super::media_rate::{MediaRate, Observed, RATE_ADJUST_INTERVAL};
use super::missing::MissingPackets;
use super::rates::Rates;
use super::rtp_queue::RtpQueue;
use super::target::DelayTarget;
use super::trend::Trend;
use super::window::{Acknowledged, Congestion, CongestionWindow, Growth};
use crate::blocks::QueueDelay;
use crate::{
    Controller, Decision, Entry, Feedback, FeedbackKind, PacketReport, SendHalf, SentPacket, Setup, SignalSpec,
    Signals, StreamState, Window,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's lines.
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
            ScreamConfig::cpp(),
        ),
    ]
}

pub(super) const SIGNALS: &[SignalSpec] = &[
    SignalSpec::series("qdelay", "ms"),
    SignalSpec::series("qdelay target", "ms"),
    SignalSpec::series("qdelay trend", ""),
    SignalSpec::series("cwnd", "B"),
    SignalSpec::series("bytes in flight", "B"),
    SignalSpec::state("window grows", Growth::NAMES),
    SignalSpec::series("s_rtt", "ms"),
    SignalSpec::series("rate transmit", "bit/s"),
    SignalSpec::series("rate ack", "bit/s"),
    SignalSpec::series("rate media", "bit/s"),
    SignalSpec::series("RTP queue", "B"),
    SignalSpec::series("target last max", "bit/s"),
    SignalSpec::series("A", "bit/s"),
];

/// RFC 8888 is feedback that tells of marks, so packets are sent ECN-capable (RFC 8298, section 4.2.1: `n_ECN`).
pub(super) fn controller(config: &ScreamConfig, setup: &Setup) -> Controller {
    let (interval, longest) = (config.feedback, config.feedback_longest.max(config.feedback));
    Controller {
        send: Some(Box::new(Sender::new(config, setup))),
        receive: None,
        feedback: FeedbackKind::Rfc8888 { interval, longest },
        ecn: Ecn::Ect0,
    }
}

/// Weight of a sample in `s_rtt` (RFC 6298, section 2): one in so many.
const S_RTT_WEIGHT: i64 = 8;
/// What a round-trip time with losses counts in `loss_event_rate`. The RFC does not say; the C++ has this.
const LOSS_WEIGHT: f64 = 0.01;
/// A window that has been shut for this long, or for two round-trip times, opens by the least window. The RFC speaks of
/// a minimum send rate without saying how it comes about; the C++ forgets what is in flight after as long. The least
/// window each half second is about `RATE_PACE_MIN`.
const STALL: TimeDelta = TimeDelta::from_millis(500);
/// The target is not adjusted while no feedback has come for this long, or for two round-trip times (C++: the same half
/// second): before the first there is nothing to grow by.
const DEAF: TimeDelta = TimeDelta::from_millis(500);
/// Growth of the window is never held below so many packets a report (C++).
const COUNTED_MIN: u64 = 2;

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
    /// Highest acknowledged packet.
    highest: Option<u64>,
    /// Sent after it.
    in_flight: DataSize,
    /// In flight and not expected any more, until something is acknowledged.
    given_up: DataSize,
    /// Acknowledged since the window was updated, and when that was.
    newly_acked: DataSize,
    updated: Option<Time>,
    /// When congestion was last answered.
    congested: Option<Time>,
    /// `loss_event_rate`, when its current round-trip time began, and whether that had a loss.
    loss_event_rate: f64,
    round: Option<Time>,
    round_lost: bool,
    /// When feedback last moved the highest packet.
    heard: Option<Time>,
    /// When the target is adjusted next; [`Time::MAX`] before anything was sent.
    adjust: Time,
    /// When a shut window opens, and when one last did.
    open: Time,
    opened: Time,
    decision: Decision,
}

impl Sender {
    fn new(config: &ScreamConfig, setup: &Setup) -> Self {
        let window = CongestionWindow::new(config.window);
        let media = MediaRate::starting_at(config.media, setup.start, setup.min, setup.max);
        let target = media.get();
        let decision = Decision { target, pacing: target, window: None, padding: Rate::ZERO };
        let mut sender = Self {
            qdelays: QueueDelay::new(config.base_delay),
            trend: Trend::new(config.trend),
            target: DelayTarget::new(config.target),
            missing: MissingPackets::new(config.reordering),
            flight: MaxInFlight::new(),
            window,
            rates: Rates::new(),
            queue: RtpQueue::default(),
            media,
            config: config.clone(),
            qdelay: TimeDelta::ZERO,
            s_rtt: None,
            highest: None,
            in_flight: DataSize::ZERO,
            given_up: DataSize::ZERO,
            newly_acked: DataSize::ZERO,
            updated: None,
            congested: None,
            loss_event_rate: 0.0,
            round: None,
            round_lost: false,
            heard: None,
            adjust: Time::MAX,
            open: Time::MAX,
            opened: Time::ZERO,
            decision,
        };
        sender.decide();
        sender
    }
}

impl SendHalf for Sender {
    #[inline]
    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.adjust == Time::MAX {
            self.rates.begin(now);
            self.adjust = now + RATE_ADJUST_INTERVAL;
        }
        self.in_flight += packet.size;
        self.flight.update(now, self.in_flight);
        self.rates.handle_sent(packet.size);
        self.queue.handle_sent(packet);
        self.watch(now);
    }

    fn handle_stream(&mut self, _: Time, stream: &StreamState) {
        let made = self.queue.handle_stream(stream);
        self.rates.handle_made(made);
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        self.advance_trend(now);
        let Told { newest, marked } = self.settle(now, feedback.packets);
        let acked = self.in_flight.saturating_sub(feedback.after_highest);
        self.in_flight = feedback.after_highest;
        self.newly_acked += acked;
        self.rates.handle_acked(acked);
        if let Some(newest) = newest {
            self.measure(now, &newest);
        }
        match self.congestion(now, marked) {
            Some(congestion) => self.handle_congestion(now, congestion),
            None if newest.is_some() => self.handle_acknowledged(now),
            None => {}
        }
        self.decide();
        self.watch(now);
        signals.emit(0, self.qdelay.as_millis_f64());
        signals.emit(1, self.target.get().as_millis_f64());
        signals.emit(2, self.trend.trend());
        signals.emit(3, self.window.get().as_bytes() as f64);
        signals.emit(4, self.in_flight.as_bytes() as f64);
        signals.emit(5, self.window.growth().index());
        signals.emit(6, self.s_rtt.unwrap_or_default().as_millis_f64());
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if self.adjust <= now {
            self.adjust = now + RATE_ADJUST_INTERVAL;
            self.adjust_target(now, signals);
        }
        if self.open <= now {
            self.given_up = self.in_flight;
            self.opened = now;
            self.decide();
            self.watch(now);
        }
    }

    fn poll_timeout(&self) -> Time {
        self.adjust.min(self.open)
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }
}

/// What a message said besides how much it acknowledged.
struct Told {
    /// The highest packet, if it is higher than any before.
    newest: Option<(PacketReport, RemoteTime)>,
    /// Packets arrived with a mark (`n_ECN` increased).
    marked: bool,
}

impl Sender {
    /// Reads a message packet by packet.
    fn settle(&mut self, now: Time, packets: &[PacketReport]) -> Told {
        let mut told = Told { newest: None, marked: false };
        let s_rtt = self.s_rtt();
        for packet in packets {
            let above = self.highest.is_none_or(|highest| packet.sequence > highest);
            match packet.arrival {
                None => self.missing.handle_missing(now, packet.sequence),
                Some(arrival) => {
                    told.marked |= packet.ecn == Ecn::Ce;
                    if above {
                        told.newest = Some((*packet, arrival));
                    } else {
                        self.missing.handle_late(now, packet.sequence, s_rtt);
                    }
                }
            }
        }
        told
    }

    /// Queuing delay and round-trip time, of the highest packet alone: its times are all that a report must carry.
    fn measure(&mut self, now: Time, (packet, arrival): &(PacketReport, RemoteTime)) {
        self.highest = Some(packet.sequence);
        self.heard = Some(now);
        self.given_up = DataSize::ZERO;
        self.qdelay = self.qdelays.update(now, packet.sent, *arrival);
        let rtt = now - packet.sent;
        self.s_rtt = Some(self.s_rtt.map_or(rtt, |s_rtt| s_rtt + (rtt - s_rtt) / S_RTT_WEIGHT));
    }

    /// Whether there is a congestion event: losses or marks, a round-trip time or more after the last that counted.
    fn congestion(&mut self, now: Time, marked: bool) -> Option<Congestion> {
        let lost = self.missing.take_lost(now);
        let s_rtt = self.s_rtt();
        self.round_lost |= lost;
        if now - *self.round.get_or_insert(now) >= s_rtt {
            let lost = core::mem::take(&mut self.round_lost);
            self.loss_event_rate += LOSS_WEIGHT * (f64::from(u8::from(lost)) - self.loss_event_rate);
            self.round = Some(now);
        }
        let kind = if lost { Congestion::Loss } else { Congestion::Mark };
        let counts = self.congested.is_none_or(|at| now - at >= s_rtt);
        ((lost || marked) && counts).then_some(kind)
    }

    /// `on congestion event`, and the media rate's part in it.
    fn handle_congestion(&mut self, now: Time, congestion: Congestion) {
        self.congested = Some(now);
        self.begin_update(now);
        self.window.handle_congestion(now, congestion);
        self.media.handle_congestion(congestion);
        self.target.adjust(self.qdelay, self.loss_event_rate);
    }

    /// `on acknowledgement`.
    fn handle_acknowledged(&mut self, now: Time) {
        if self.updated.is_none_or(|at| now - at >= self.config.window_interval) {
            let (newly, span) = self.begin_update(now);
            let ack = Acknowledged {
                newly,
                counted_max: self.counted_max(span),
                in_flight: self.in_flight,
                max_in_flight: self.flight.get(),
                qdelay: self.qdelay,
                target: self.target.get(),
                trend: self.trend.trend(),
            };
            let before = self.window.growth();
            self.window.handle_acknowledged(&ack);
            if (before, self.window.growth()) == (Growth::Fast, Growth::Delay) {
                self.media.inflect();
            }
        }
        self.target.adjust(self.qdelay, self.loss_event_rate);
        self.window.check_to_resume(now, self.trend.trend());
    }

    /// The window is being updated: what was acknowledged since it last was, and how long that is ago.
    fn begin_update(&mut self, now: Time) -> (DataSize, TimeDelta) {
        let span = now - self.updated.replace(now).unwrap_or(now);
        (core::mem::take(&mut self.newly_acked), span)
    }

    /// The most that counts as acknowledged in this time.
    fn counted_max(&self, span: TimeDelta) -> DataSize {
        if self.config.acked_max == f64::INFINITY {
            return DataSize::from_bytes(u64::MAX);
        }
        let rate = self.rates.current(self.config.throughput).scale(self.config.acked_max);
        (rate * span).max(DataSize::from_bytes(COUNTED_MIN * self.config.window.mss.as_bytes()))
    }

    fn adjust_target(&mut self, now: Time, signals: &mut Signals) {
        self.advance_trend(now);
        self.rates.take(now);
        let queued = self.queue.size();
        if self.heard.is_some_and(|at| now - at <= DEAF.max(self.s_rtt() * 2)) {
            self.media.update(&Observed {
                growth: self.window.growth(),
                throughput: self.rates.current(self.config.throughput),
                media: self.rates.media(),
                media_median: self.rates.media_median(),
                queued,
                trend: self.trend.trend(),
                trend_memory: self.trend.memory(),
            });
            self.decide();
        }
        signals.emit(7, self.rates.transmit().as_bps_f64());
        signals.emit(8, self.rates.ack().as_bps_f64());
        signals.emit(9, self.rates.media().as_bps_f64());
        signals.emit(10, queued.as_bytes() as f64);
        signals.emit(11, self.media.last_max().as_bps_f64());
        signals.emit(12, self.media.get().as_bps_f64());
    }

    fn advance_trend(&mut self, now: Time) {
        self.trend.advance(now, self.qdelay.as_secs_f64() / self.target.get().as_secs_f64());
    }

    fn s_rtt(&self) -> TimeDelta {
        self.s_rtt.unwrap_or_default()
    }

    /// Before a round-trip time is known packets are paced as they are made.
    fn decide(&mut self) {
        let target = self.media.get();
        let allowed = match self.given_up {
            DataSize::ZERO => self.window.allowed(self.qdelay, self.target.get()),
            given_up => given_up + self.config.window.min,
        };
        self.decision = Decision {
            target,
            pacing: self.s_rtt.map_or(target.max(self.config.window.pace_min), |s_rtt| self.window.pacing(s_rtt)),
            window: Some(Window::AfterHighest(allowed)),
            padding: Rate::ZERO,
        };
    }

    /// Looks when a window that is shut must open.
    fn watch(&mut self, now: Time) {
        let Some(Window::AfterHighest(allowed)) = self.decision.window else { return };
        let wait = STALL.max(self.s_rtt() * 2);
        self.open = match self.given_up {
            _ if self.in_flight < allowed => Time::MAX,
            DataSize::ZERO => now + wait,
            _ => now.max(self.opened + wait),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;
    use paceline_units::StreamId;

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const PACKET: DataSize = DataSize::from_bytes(1200);

    /// A sender over a path of [`RTT`] and no queue, whose encoder makes the target in a packet at a time.
    struct Call {
        half: Sender,
        signals: Signals,
        now: Time,
        next_packet: Time,
        next_feedback: Time,
        /// Sent, by when; and the first of them that is not told of.
        sent: Vec<Time>,
        told: usize,
    }

    impl Call {
        fn new(config: ScreamConfig) -> Self {
            let setup = Setup { start: Rate::from_kbps(1000), min: Rate::from_kbps(100), max: Rate::from_kbps(2500) };
            Self {
                half: Sender::new(&config, &setup),
                signals: Signals::unheard(),
                now: Time::ZERO,
                next_packet: Time::ZERO,
                next_feedback: Time::ZERO + RTT,
                sent: Vec::new(),
                told: 0,
            }
        }

        /// Goes on until then; of each packet `fate` says whether it arrives and with which mark.
        fn run(&mut self, until_ms: i64, mut fate: impl FnMut(u64) -> Option<Ecn>) {
            while self.now < Time::from_millis(until_ms) {
                self.now += TimeDelta::from_millis(1);
                if self.half.poll_timeout() <= self.now {
                    self.half.handle_timeout(self.now, &mut self.signals);
                    assert!(self.half.poll_timeout() > self.now);
                }
                if self.now >= self.next_feedback {
                    self.feed_back(&mut fate);
                    self.next_feedback = self.now + TimeDelta::from_millis(20);
                }
                let Decision { target, window, .. } = self.half.decision();
                let Some(Window::AfterHighest(window)) = window else { panic!("it has a window") };
                if self.now >= self.next_packet && self.half.in_flight < window {
                    self.half.handle_stream(self.now, &StreamState::new(StreamId(0), DataSize::ZERO));
                    let sequence = self.sent.len() as u64;
                    let packet = SentPacket { sequence, size: PACKET, stream: StreamId(0), kind: PacketKind::Media };
                    self.half.handle_sent(self.now, &packet);
                    self.sent.push(self.now);
                    self.next_packet = self.next_packet.max(self.now - RTT) + PACKET / target;
                }
            }
        }

        fn feed_back(&mut self, fate: &mut impl FnMut(u64) -> Option<Ecn>) {
            let (now, first) = (self.now, self.told);
            let known = self.sent[first..].iter().take_while(|sent| now - **sent >= RTT).count();
            let report = |n: usize| {
                let (sequence, sent) = (n as u64, self.sent[n]);
                let ecn = fate(sequence);
                let arrival = ecn.map(|_| RemoteTime::from_nanos(sent.as_nanos()) + RTT / 2);
                PacketReport { sequence, sent, size: PACKET, arrival, ecn: ecn.unwrap_or(Ecn::NotEct) }
            };
            let packets: Vec<PacketReport> = (first..first + known).map(report).collect();
            // A report ends with a packet that arrived.
            let Some(last) = packets.iter().rposition(|p| p.arrival.is_some()) else { return };
            self.told = first + last + 1;
            let flight = DataSize::from_bytes(PACKET.as_bytes() * (self.sent.len() - self.told) as u64);
            let feedback = Feedback { packets: &packets[..=last], outstanding: flight, after_highest: flight };
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

    /// 200 kbit/s a second from 1 to 2.5 Mbit/s, on a path that never fills, with a window that covers it.
    #[test]
    fn it_takes_what_a_wide_path_gives() {
        for config in [ScreamConfig::default(), ScreamConfig::cpp()] {
            let mut call = Call::new(config);
            call.run(2000, arrives);
            assert!((1150..=1450).contains(&call.kbps()), "{}", call.kbps());
            call.run(12_000, arrives);
            assert_eq!(call.kbps(), 2500);
            assert!(call.cwnd() > 2_500_000 / 8 / 10, "{}", call.cwnd());
            assert_eq!(call.half.s_rtt().as_nanos() / 10_000_000, 10, "with up to 20 ms until feedback");
            assert!(call.half.trend.trend() < 0.01);
        }
    }

    /// Losses in one round-trip time are one event, and in the next another; a mark takes less.
    #[test]
    fn losses_count_once_a_round_trip() {
        let after = |struck: &[u64], fate: Option<Ecn>| {
            let mut config = ScreamConfig::cpp();
            config.window.head_room = 10.0; // what is left of the window is by the event alone
            let mut call = Call::new(config);
            call.run(5000, arrives);
            let (cwnd, kbps, next) = (call.cwnd(), call.kbps(), call.sent.len() as u64);
            call.run(5600, |n| if struck.iter().any(|s| next + s == n) { fate } else { arrives(n) });
            assert_eq!(call.half.window.growth(), Growth::Delay);
            (call.cwnd() as f64 / cwnd as f64, call.kbps() as f64 / kbps as f64)
        };
        let near = |(cwnd, rate): (f64, f64), cut: (f64, f64)| {
            // Besides the events there are 0.6 s of growth.
            assert!((cut.0..cut.0 + 0.1).contains(&cwnd), "{cwnd} for {}", cut.0);
            assert!((cut.1 - 0.001..cut.1 + 0.1).contains(&rate), "{rate} for {}", cut.1);
        };
        near(after(&[0], None), (0.8, 0.9));
        near(after(&[0, 2, 5], None), (0.8, 0.9));
        near(after(&[0, 40], None), (0.64, 0.81));
        near(after(&[0, 2, 5], Some(Ecn::Ce)), (0.9, 0.95));
    }

    /// Who hears nothing sends a window, then the least window each half second; heard again, all is as it was.
    #[test]
    fn a_window_that_is_shut_opens_a_little() {
        let mut call = Call::new(ScreamConfig::default());
        call.run(5000, arrives);
        let (kbps, next) = (call.kbps(), call.sent.len() as u64);
        call.run(6000, |_| None);
        let sent = call.sent.len() as u64 - next;
        call.run(16_000, |_| None);
        let more = call.sent.len() as u64 - next - sent;
        // 20 half seconds, each MIN_CWND of 2.5 packets, and the one that does not fit any more.
        assert!((50..=63).contains(&more), "{more}");
        assert!((5..=40).contains(&sent), "{sent} at first");
        assert!(call.kbps() <= kbps + 200, "no growth unheard: {}", call.kbps());
        assert!(call.half.given_up > DataSize::ZERO);
        call.run(16_500, arrives);
        assert_eq!(call.half.given_up, DataSize::ZERO);
        call.run(30_000, arrives);
        assert_eq!(call.kbps(), 2500);
    }

    /// Nothing is adjusted before the first feedback.
    #[test]
    fn it_does_not_grow_unheard() {
        let mut call = Call::new(ScreamConfig::default());
        call.run(10_000, |_| None);
        assert_eq!(call.kbps(), 1000);
        assert!((45..=65).contains(&call.sent.len()), "{}", call.sent.len());
    }
}
