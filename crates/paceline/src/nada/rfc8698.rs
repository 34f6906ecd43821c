//! NADA of RFC 8698, with what is observed of arrivals at the receiver (`nada`) or at the sender (`nada-sender`).
//!
//! ```text
//! nada:         arrivals ─ Sequences ─ Observer ─ a report each DELTA ──▶ ┐
//! nada-sender:  arrivals ══ RFC 8888 ══▶ at each feedback: Observer ────▶ ┴─ r_ref ─ Shaping ─▶ r_vin, r_send
//!                                                    ramp_up, or gradual ──────┘
//! ```
//!
//! What the RFC leaves open, and what was chosen, stands in `docs/algorithms/nada.md`.

use super::{
    GradualConfig, NadaConfig, Observer, Place, RampUpConfig, ReportClock, Seen, Sequences, Shaping, gradual, observer,
    ramp_up,
};
use crate::{
    Arrival, Controller, Decision, Entry, Feedback, FeedbackKind, Message, NadaMode, NadaReport, PacketKind,
    ReceiveHalf, ReceiverReport, SendHalf, Setup, SignalSpec, Signals, StreamState,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's lines.
pub(crate) fn entries() -> [Entry; 2] {
    const SOURCE: &str = "Zhu, Pan, Ramalho, Mena: Network-Assisted Dynamic Adaptation (NADA), RFC 8698 (2020)";
    [
        Entry::new(
            "nada",
            "NADA: delay, loss and marks as one signal, ramp-up and gradual update, a rate-shaping buffer",
            SOURCE,
            NadaConfig::<false>::default(),
        ),
        Entry::new(
            "nada-sender",
            "the same, computed at the sender from per-packet feedback",
            SOURCE,
            NadaConfig::<true>::default(),
        ),
    ]
}

/// Per-packet feedback that would take more than a twentieth of the rate comes less often, up to this: reports further
/// apart than 250 ms break up the loop (section 6.3).
const FEEDBACK_LONGEST: TimeDelta = TimeDelta::from_millis(250);

/// How many of [`SIGNALS`] are the sender's own; the rest is the observer's.
pub(super) const SENDER_SIGNALS: usize = 6;

pub(super) const SIGNALS: [SignalSpec; SENDER_SIGNALS + observer::SIGNALS.len()] = {
    let [d_fwd, d_queue, d_tilde, p_loss, p_mark, loss_int] = observer::SIGNALS;
    [
        SignalSpec::series("r_ref", "bit/s"),
        SignalSpec::state("rmode", NadaMode::NAMES),
        SignalSpec::series("x_curr", "ms"),
        SignalSpec::series("r_recv", "bit/s"),
        SignalSpec::series("buffer_len", "B"),
        SignalSpec::series("rtt", "ms"),
        d_fwd,
        d_queue,
        d_tilde,
        p_loss,
        p_mark,
        loss_int,
    ]
};

pub(super) fn controller<const AT_SENDER: bool>(config: &NadaConfig<AT_SENDER>, setup: &Setup) -> Controller {
    let observer = Observer::new(config.observer);
    let interval = config.interval;
    let (here, receive, feedback) = if AT_SENDER {
        let longest = FEEDBACK_LONGEST.max(interval);
        (Some(observer), None, FeedbackKind::Rfc8888 { interval, longest })
    } else {
        let half: Box<dyn ReceiveHalf> = Box::new(Receiver::new(observer, interval, config.observer.log_window));
        (None, Some(half), FeedbackKind::None)
    };
    let rate = setup.start.min(setup.max);
    let mut send = Sender {
        interval,
        ramp_up: config.ramp_up,
        span: config.interval + config.filter_delay,
        gradual: GradualConfig { x_ref: config.priority * config.gradual.x_ref, ..config.gradual },
        min: setup.min,
        max: setup.max,
        rate,
        before: 0.0,
        rtt: TimeDelta::ZERO,
        updated: None,
        shaping: Shaping::new(config.shaping),
        observer: here,
        missing: 0,
        next: 0,
        decision: Decision { target: rate, pacing: rate, window: None, padding: Rate::ZERO },
    };
    send.decide();
    Controller { send: Some(Box::new(send)), receive, feedback, ecn: Ecn::Ect0 }
}

/// Section 4.2 where packets arrive.
struct Receiver {
    observer: Observer,
    sequences: Sequences,
    clock: ReportClock,
    pending: Option<NadaReport>,
}

impl Receiver {
    fn new(observer: Observer, interval: TimeDelta, silence: TimeDelta) -> Self {
        let (sequences, clock) = (Sequences::default(), ReportClock::new(interval, silence));
        Self { observer, sequences, clock, pending: None }
    }
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        // FEC has a place in the media's sequence; retransmissions and padding have not.
        let placed = matches!(arrival.kind, PacketKind::Media | PacketKind::Fec);
        let missing = match placed.then(|| self.sequences.handle_arrival(arrival.stream, arrival.sequence)) {
            Some(Place::Next { missing }) => Some(missing),
            _ => None,
        };
        let Arrival { sent, size, ecn, .. } = *arrival;
        self.observer.handle_packet(&Seen { arrival: now, sent, size, ecn, missing });
        self.clock.handle_arrival(now);
    }

    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.pending = Some(self.observer.report(now, signals, 0));
        self.clock.handle_report(now);
    }

    fn poll_timeout(&self) -> RemoteTime {
        self.clock.due()
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Nada)
    }
}

/// Sections 4.3 and 5.2, and with an observer 4.2 as well.
struct Sender {
    interval: TimeDelta,
    ramp_up: RampUpConfig,
    /// What of the time until a ramp-up shows is not the round-trip time, `DELTA + DFILT`.
    span: TimeDelta,
    gradual: GradualConfig,
    min: Rate,
    max: Rate,
    /// `r_ref`.
    rate: Rate,
    /// `x_prev`, ms.
    before: f64,
    rtt: TimeDelta,
    /// When the last report came, `t_last`.
    updated: Option<Time>,
    shaping: Shaping,
    observer: Option<Observer>,
    /// Reported lost, and no packet behind them observed yet.
    missing: u32,
    /// One past the highest packet that was reported.
    next: u64,
    decision: Decision,
}

impl SendHalf for Sender {
    /// Loss comes in the signal; here only the round-trip time is new.
    fn handle_report(&mut self, _: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.rtt = report.rtt.unwrap_or(self.rtt);
        signals.emit(5, self.rtt.as_millis_f64());
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        match message {
            Message::Nada(report) if self.observer.is_none() => self.update(now, report, signals),
            _ => {}
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let Some(observer) = &mut self.observer else { return };
        for packet in feedback.packets {
            let above = packet.sequence >= self.next;
            self.next = self.next.max(packet.sequence + 1);
            let Some(arrival) = packet.arrival else {
                self.missing += 1;
                continue;
            };
            // What was passed over before, and counted as lost, does not count again.
            let missing = above.then(|| core::mem::take(&mut self.missing));
            let (sent, size, ecn) = (Some(packet.sent), packet.size, packet.ecn);
            observer.handle_packet(&Seen { arrival, sent, size, ecn, missing });
        }
        let report = observer.report(observer.now(), signals, SENDER_SIGNALS as u8);
        self.update(now, &report, signals);
    }

    fn handle_stream(&mut self, _: Time, stream: &StreamState) {
        self.shaping.handle_queued(stream.stream, stream.queued);
        self.decide();
    }

    #[inline]
    fn decision(&self) -> Decision {
        self.decision
    }
}

impl Sender {
    /// Encoders are told `r_vin`, the pacer `r_send`.
    fn decide(&mut self) {
        let (encoder, pacer) = self.shaping.rates(self.rate);
        let target = encoder.max(self.min);
        self.decision = Decision { target, pacing: pacer.min(self.max).max(target), ..self.decision };
    }

    /// Section 4.3, on receiving feedback.
    fn update(&mut self, now: Time, report: &NadaReport, signals: &mut Signals) {
        let x = report.signal.as_millis_f64();
        let tau = TimeDelta::from_millis_f64(self.gradual.tau);
        // The first report stands for DELTA; and no report for more than TAU, beyond which the loop is not stable.
        let delta = self.updated.map_or(self.interval, |at| now - at).min(tau);
        let rate = match report.mode {
            NadaMode::RampUp => accelerated(self.rate, report.incoming, self.rtt + self.span, &self.ramp_up),
            NadaMode::Gradual => gradual(self.rate, x, self.before, delta, self.max, &self.gradual),
        };
        self.rate = clipped(rate, self.min, self.max);
        self.before = x;
        self.updated = Some(now);
        self.decide();
        signals.emit(0, self.rate.as_bps_f64());
        signals.emit(1, report.mode.index());
        signals.emit(2, x);
        signals.emit(3, report.incoming.as_bps_f64());
        signals.emit(4, self.shaping.queued().as_bytes() as f64);
    }
}

/// Eq. 4: `r_ref = max(r_ref, (1 + gamma) r_recv)`.
fn accelerated(rate: Rate, received: Rate, span: TimeDelta, c: &RampUpConfig) -> Rate {
    rate.max(ramp_up(received, span, c))
}

/// Eq. 8 and 9.
fn clipped(rate: Rate, min: Rate, max: Rate) -> Rate {
    rate.min(max).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, MediaKind, PacketReport};
    use paceline_units::{DataSize, StreamId};

    const SETUP: Setup = Setup { start: Rate::from_kbps(1000), min: Rate::from_kbps(150), max: Rate::from_kbps(1500) };

    fn sender<const AT_SENDER: bool>(config: &NadaConfig<AT_SENDER>) -> Box<dyn SendHalf> {
        config.build(&SETUP).send.expect("it has one")
    }

    fn told(half: &mut dyn SendHalf, ms: i64, mode: NadaMode, x_ms: f64, kbps: u64) -> u64 {
        let report = NadaReport { mode, signal: TimeDelta::from_millis_f64(x_ms), incoming: Rate::from_kbps(kbps) };
        half.handle_message(Time::from_millis(ms), &Message::Nada(report), &mut Signals::unheard());
        half.decision().target.as_bps()
    }

    /// V5.4 and V5.5, one report after the other.
    #[test]
    fn the_sender_follows_its_laws() {
        use NadaMode::{Gradual, RampUp};
        let mut half = sender(&NadaConfig::<false>::default());
        let rtt = Some(TimeDelta::from_millis(50));
        let report = ReceiverReport { fraction_lost: paceline_units::Fraction::from_q8(128), rtt };
        half.handle_report(Time::ZERO, &report, &mut Signals::unheard());
        assert_eq!(half.decision().target, SETUP.start, "loss comes in the signal");
        assert_eq!(told(&mut *half, 100, Gradual, 15.0, 1000), 970_000, "x_o = 0, x_d = 15: -3 %");
        assert_eq!(told(&mut *half, 200, RampUp, 20.0, 900), 1_066_667);
        assert_eq!(told(&mut *half, 300, RampUp, 20.0, 600), 1_066_667, "it does not lower");
        assert_eq!(told(&mut *half, 400, RampUp, 20.0, 1500), 1_500_000, "at most RMAX");
        // x_prev is the ramp-up's: x_o = 30 - 10, x_d = 10; -0.4 % and -2 %.
        assert_eq!(told(&mut *half, 500, Gradual, 30.0, 1500), 1_464_000);
        assert_eq!(told(&mut *half, 600, Gradual, 3000.0, 1500), 150_000, "at least RMIN");
    }

    /// The offset counts by the time since the last report, TAU at most: 1 % for a tenth of a second at 1 Mbit/s.
    #[test]
    fn the_offset_counts_by_time() {
        let mut config = NadaConfig::<false>::default();
        config.gradual.eta = 0.0;
        // An offset of 50 ms, first above 15 RMAX / r at 1 Mbit/s, then at 990 kbit/s.
        let (first, second) = (65.0, 50.0 + 15.0 / 0.99);
        for (ms, less) in [(50, 4950), (100, 9900), (500, 49_500), (2000, 49_500), (86_400_000, 49_500)] {
            let mut half = sender(&config);
            assert_eq!(told(&mut *half, 1000, NadaMode::Gradual, first, 1000), 990_000);
            let after = told(&mut *half, 1000 + ms, NadaMode::Gradual, second, 1000);
            assert!(after.abs_diff(990_000 - less) <= 1, "{ms}: {after}");
        }
    }

    /// A flow of twice the weight rests at twice the rate: where x is PRIO XREF RMAX / r.
    #[test]
    fn priority_moves_the_equilibrium() {
        for (priority, x, rests) in [(1.0, 15.0, true), (2.0, 30.0, true), (2.0, 15.0, false)] {
            let mut half = sender(&NadaConfig::<false> { priority, ..NadaConfig::default() });
            told(&mut *half, 100, NadaMode::Gradual, x, 1000);
            let before = half.decision().target;
            let after = told(&mut *half, 200, NadaMode::Gradual, x, 1000);
            let moved = after.abs_diff(before.as_bps());
            assert!(if rests { moved < 800 } else { moved > 2000 }, "{priority} {x}: {before} to {after}");
        }
    }

    /// Both halves of both ways, on packets of 1250 bytes each 10 ms that meet this delay or are lost; answers the target
    /// after each second.
    fn targets<const AT_SENDER: bool>(delay: impl Fn(i64) -> Option<i64>) -> Vec<u64> {
        let pair = NadaConfig::<AT_SENDER>::default().build(&SETUP);
        let (mut send, mut receive) = (pair.send.expect("it has one"), pair.receive);
        let (mut signals, mut reports, mut targets) = (Signals::unheard(), Vec::new(), Vec::new());
        for n in 0..2000i64 {
            let (sent, size) = (Time::from_millis(10 * n), DataSize::from_bytes(1250));
            let arrival = delay(n).map(|ms| RemoteTime::from_millis(90_000 + 10 * n + ms));
            let ecn = Ecn::Ect0;
            if let (Some(half), Some(now)) = (&mut receive, arrival) {
                while half.poll_timeout() < now {
                    let due = half.poll_timeout();
                    half.handle_timeout(due, &mut signals);
                    let message = half.poll_message(due).expect("a report is due");
                    send.handle_message(sent, &message, &mut signals);
                }
                let arrival = Arrival {
                    sent: Some(sent),
                    timestamp: 0,
                    sequence: n as u16,
                    stream: StreamId(0),
                    media: MediaKind::Video,
                    kind: PacketKind::Media,
                    size,
                    ecn,
                };
                half.handle_arrival(now, &arrival, &mut signals);
            }
            reports.push(PacketReport { sequence: n as u64, sent, size, arrival, ecn });
            if n % 10 == 9 {
                let feedback = Feedback { packets: &reports, outstanding: size, after_highest: size };
                send.handle_feedback(sent, &feedback, &mut signals);
                reports.clear();
            }
            if n % 100 == 99 {
                targets.push(send.decision().target.as_bps());
            }
        }
        targets
    }

    /// At the sender the same is computed as at the receiver: on an empty path, with a queue, and with losses.
    #[test]
    fn both_ways_agree() {
        let paths: [fn(i64) -> Option<i64>; 3] =
            [|_| Some(40), |n| Some(40 + (n / 20) % 30), |n| (n % 150 != 77).then_some(40 + (n / 40) % 15)];
        for (path, moves) in paths.into_iter().zip([false, true, true]) {
            let (there, here) = (targets::<false>(path), targets::<true>(path));
            for (there, here) in there.iter().zip(&here) {
                let apart = *here as f64 / *there as f64 - 1.0;
                assert!(apart.abs() < 0.05, "{there} and {here}");
            }
            let ends = (there.iter().min().unwrap(), there.iter().max().unwrap());
            assert_eq!(ends.0 < ends.1, moves, "{ends:?}");
        }
    }

    /// What was counted as lost and comes after all is not counted again, and a report of nothing is survived.
    #[test]
    fn late_news_is_no_second_packet() {
        let mut half = sender(&NadaConfig::<true>::default());
        let mut signals = Signals::heard();
        let mut feed = |packets: &[(u64, Option<i64>)]| {
            let report = |&(n, ms): &(u64, Option<i64>)| PacketReport {
                sequence: n,
                sent: Time::from_millis(10 * n as i64),
                size: DataSize::from_bytes(1250),
                arrival: ms.map(|ms| RemoteTime::from_millis(500 + ms)),
                ecn: Ecn::Ect0,
            };
            let packets: Vec<PacketReport> = packets.iter().map(report).collect();
            let feedback = Feedback { packets: &packets, outstanding: DataSize::ZERO, after_highest: DataSize::ZERO };
            half.handle_feedback(Time::from_millis(200), &feedback, &mut signals);
            signals.drain().find(|(index, _)| *index == 9).expect("p_loss").1
        };
        assert_eq!(feed(&[]), 0.0);
        assert_eq!(feed(&[(0, Some(0)), (1, Some(10)), (2, Some(20))]), 0.0);
        let lost = feed(&[(3, None), (4, Some(40))]);
        // 1 of 5, smoothed once.
        assert!((lost - 0.02).abs() < 1e-9, "{lost}");
        assert_eq!(feed(&[(3, Some(45))]), lost);
    }

    /// An encoder a fifth over its target for a second fills the buffer by a tenth of the rate, 90 ms, for r_vin and r_send
    /// differ by a tenth at most; back at its target it drains. One that stays a fifth over never drains, as eq. 11 and
    /// 12 have it; without their bound it rests at 28 ms.
    #[test]
    fn the_shaping_buffer_drains() {
        let delays = |most, over: std::ops::Range<i64>| {
            let mut config = NadaConfig::<false>::default();
            config.shaping.most = most;
            let (mut half, mut buffer) = (sender(&config), 0.0f64);
            let step = |frame: i64| {
                let queued = DataSize::from_bytes(buffer as u64);
                let now = Time::from_millis(frame * 1000 / 30);
                half.handle_stream(now, &StreamState::new(StreamId(0), queued));
                let decision = half.decision();
                let factor = if over.contains(&frame) { 1.2 } else { 1.0 };
                buffer += factor * decision.target.as_bps_f64() / 8.0 / 30.0;
                let waits = buffer * 8e3 / decision.pacing.as_bps_f64();
                buffer = (buffer - decision.pacing.as_bps_f64() / 8.0 / 30.0).max(0.0);
                waits
            };
            (0..300).map(step).collect::<Vec<f64>>()
        };
        let most = |delays: &[f64]| delays.iter().copied().fold(0.0, f64::max);
        let burst = delays(0.05, 0..30);
        assert!((80.0..140.0).contains(&most(&burst)), "{}", most(&burst));
        // A frame alone takes its own 33 ms.
        assert!(burst[29] - 33.4 < 100.0 && burst[29] > 100.0 && most(&burst[70..]) < 36.0, "{burst:?}");
        assert!(most(&delays(0.05, 0..300)) > 800.0);
        let unbounded = delays(1.0, 0..300);
        assert!((55.0..66.0).contains(&most(&unbounded)), "{}", most(&unbounded));
    }
}
