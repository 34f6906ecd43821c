//! The send half.

use super::report::{Delays, Report};
use super::{DeliveryRate, DrcConfig, ExcessLoss, History, Observation, Past, StandingQueue, equations as eq};
use crate::blocks::{EcnValidation, RtpQueue};
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, Message, SendHalf, SentPacket, Setup, SignalName,
    SignalTables, Signals, Window, signal_names,
};
use core::mem::take;
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "drc",
        "delivery-rate control: follows the delivery rate while a queue stands, and grows while there is none",
        "Paceline's own design, docs/algorithms/drc.md",
        DrcConfig::default(),
    )
}

signal_names! {
    /// The signals of the send half.
    pub enum DrcSignal {
        Rate = series("rate", "bit/s"),
        Delivery = series("D", "bit/s"),
        Queue = series("q", "ms"),
        Reference = series("q_ref", "ms"),
        Mode = state("mode", &["grow", "drain", "compete"]),
    }
}

impl Config for DrcConfig {
    const SIGNALS: SignalTables = (DrcSignal::TABLE, &[]);

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(Sender::new(*self, *setup), self.feedback, self.feedback_longest, self.ecn)
    }
}

/// The weight of a message in the share of marked packets: 1/16, as DCTCP's per round trip (RFC 8257, section 4.2).
const MARKS_GAIN: f64 = 1.0 / 16.0;
/// A queue that marked packets in this time marks.
const MARKS: TimeDelta = TimeDelta::from_secs(2);
/// The pacing rate over the rate while the queue marks, whether frames wait or not: a frame that leaves faster than the link carries is
/// marked at any rate, because the threshold is about 1 ms. More than 1, so that the frames of an encoder that makes a little too much do not wait.
const MARKED_PACING: f64 = 1.1;
/// The longest lateness of a message that counts.
const LATE_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The weight of a shorter interval of feedback. A longer one counts at once.
const INTERVAL_GAIN: f64 = 0.1;
/// The longest time between two messages that counts.
const DT_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The rate after a loss, over the delivery rate.
const LOSS_DECREASE: f64 = 0.9;
/// What the link delivered while it had a queue is what it carries, for this time: losses are seen up to two periods later.
const CARRIED: TimeDelta = TimeDelta::from_secs(2);
/// The rate after a time without feedback, over the rate before.
const TIMEOUT_DECREASE: f64 = 0.5;
/// The packets that may leave in addition after a timeout.
const TIMEOUT_PACKETS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Grow,
    Drain,
    Compete,
}

/// The losses, and what they have done.
#[derive(Clone, Debug)]
struct Losses {
    excess: ExcessLoss,
    /// m: the share of q_0 and of the additive step that losses leave.
    factor: f64,
    /// What messages without arrivals showed, to which the next one with arrivals responds: a loss, and an excess of loss.
    pending: (bool, bool),
    /// When loss last lowered the rate.
    decreased_at: Option<Time>,
    /// C: what the link carried then, less a tenth. Growth up to it needs no caution.
    carried: Rate,
    /// The last message with a queue above the reference, and the delivery rate at that time.
    last_queue: (Time, Rate),
}

impl Losses {
    fn new(excess: ExcessLoss) -> Self {
        let (carried, last_queue) = (Rate::ZERO, (Time::ZERO, Rate::ZERO));
        Self { excess, factor: 1.0, pending: (false, false), decreased_at: None, carried, last_queue }
    }

    fn restart(&mut self, now: Time) {
        self.excess.restart(now);
        *self = Self::new(self.excess.clone());
    }

    /// Handles an excess that lowers the rate.
    fn decrease(&mut self, now: Time, delivery: Rate) {
        let (at, rate) = self.last_queue;
        let carried = if now - at < CARRIED { rate.max(delivery) } else { delivery };
        (self.decreased_at, self.carried) = (Some(now), carried.scale(LOSS_DECREASE));
        self.factor = eq::shorten(self.factor);
    }
}

/// The marks of the bottleneck.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// alpha: the share of marked packets, smoothed.
    alpha: f64,
    last: Option<Time>,
}

impl Marks {
    /// Returns whether the queue marks.
    fn is_recent(&self, now: Time) -> bool {
        self.last.is_some_and(|at| now - at < MARKS)
    }
}

#[derive(Clone, Debug)]
struct Sender {
    config: DrcConfig,
    setup: Setup,
    bounds: Bounds,
    rate: Rate,
    delivery: DeliveryRate,
    delays: Delays,
    /// Whether the queue of the path marks packets.
    is_marked: bool,
    history: History,
    losses: Losses,
    standing: StandingQueue,
    ecn: EcnValidation,
    marks: Marks,
    /// When the queue last exceeded its reference.
    queued_at: Option<Time>,
    feedback_at: Option<Time>,
    /// The first feedback after the last timeout; `None` before it.
    resumed_at: Option<Time>,
    /// I: the time between two messages.
    interval: TimeDelta,
    /// The receiver's limit (REMB).
    cap: Rate,
    outstanding: DataSize,
    timeout: Option<Time>,
    /// The frames that wait in the pacer, without the newest one.
    waiting: RtpQueue,
    window: DataSize,
    decision: Decision,
}

impl Sender {
    fn new(config: DrcConfig, setup: Setup) -> Self {
        let rate = setup.start.min(setup.max);
        let ecn = if config.ecn { Ecn::Ect1 } else { Ecn::NotEct };
        let mut sender = Self {
            config,
            setup,
            bounds: setup.bounds(),
            rate,
            delivery: DeliveryRate::new(),
            delays: Delays::new(),
            is_marked: false,
            history: History::new(),
            losses: Losses::new(ExcessLoss::new()),
            standing: StandingQueue::new(),
            ecn: EcnValidation::new(ecn),
            marks: Marks::default(),
            queued_at: None,
            feedback_at: None,
            resumed_at: Some(Time::ZERO),
            interval: config.feedback,
            cap: Rate::from_bps(u64::MAX),
            outstanding: DataSize::ZERO,
            timeout: None,
            waiting: RtpQueue::default(),
            window: DataSize::from_bytes(u64::MAX),
            decision: Decision { ecn, ..Decision::new(rate) },
        };
        sender.decide();
        sender
    }

    /// The time without feedback after which the rate is halved.
    fn patience(&self) -> TimeDelta {
        self.delays.srtt.scale(1.5) + self.interval * 2 + TimeDelta::from_millis(100)
    }

    /// How late the last message is, apart from the interval of messages. A receiver's clock that is set back looks like a late message.
    fn late(&self) -> TimeDelta {
        (self.delays.late - self.interval).max(TimeDelta::ZERO).min(LATE_MAX)
    }

    fn decide(&mut self) {
        let rate = self.bounds.clamp(self.rate.min(self.cap));
        let earlier = self.waiting.size();
        let waiting = eq::waiting(rate, earlier);
        let target = self.bounds.clamp(eq::media(&self.config, rate, earlier));
        self.decision = Decision {
            target,
            stable_target: target,
            pacing: if self.is_marked {
                rate.scale(MARKED_PACING.min(self.config.pacing_factor))
            } else {
                eq::pacing(&self.config, rate, waiting)
            },
            window: (self.window.as_bytes() < u64::MAX).then_some(Window::Outstanding(self.window)),
            ecn: self.ecn.codepoint(),
            ..self.decision
        };
    }

    /// Reads a message. Losses do not count of packets that were sent before the flow was heard again, or before a loss lowered
    /// the rate.
    fn observe(&mut self, now: Time, dt: TimeDelta, feedback: &Feedback<'_>) -> Report {
        if self.resumed_at.is_none() && feedback.packets.iter().any(|packet| packet.arrival.is_some()) {
            // The path may be another one: the flow starts again.
            (self.resumed_at, self.queued_at) = (Some(now), None);
            self.standing = StandingQueue::new();
            self.losses.restart(now);
        }
        let counted = self.resumed_at.unwrap_or(Time::MAX).max(self.losses.decreased_at.unwrap_or(Time::ZERO));
        let (ecn, delivery) = (&mut self.ecn, &mut self.delivery);
        self.delays.handle(now, dt, feedback, counted, |packet| {
            ecn.handle_report(packet);
            if let Some(arrival) = packet.arrival {
                delivery.handle_arrival(arrival, packet.size);
            }
        })
    }

    /// Equations 2 to 14: the rate and the window after a message.
    fn update(&mut self, now: Time, dt: TimeDelta, report: &Report, signals: &mut Signals) {
        let c = self.config;
        let Some((delivery, window)) = self.delivery.sample(c.delivery) else { return };
        let (is_lost, is_excess) = take(&mut self.losses.pending);
        let (q, srtt) = (self.delays.queue, self.delays.srtt);
        let response = eq::response_time(self.delays.rtt, window, self.interval, self.late());
        let time = eq::drain_time(&c, response);
        let losses = &mut self.losses;
        let reference = eq::reference(&c, self.delays.jitter, losses.factor);
        losses.factor = eq::lengthen(losses.factor, dt);
        if losses.factor >= 1.0 {
            losses.carried = Rate::ZERO;
        }
        let free = eq::additive(&c, delivery);
        let additive = free.scale(eq::caution(losses.factor, losses.decreased_at.map(|at| now - at)));
        if q > reference {
            losses.last_queue = (now, delivery);
        }
        let competing = self.standing.update(
            now,
            &Observation {
                queue: q,
                reference,
                usual: time.scale(additive.as_bps_f64() / delivery.as_bps_f64().max(1.0)),
                delivery,
                response,
                srtt,
                is_lost,
                limit: self.bounds.max.min(self.cap),
                packet: self.setup.packet_size,
            },
        );
        let mode = if let (Some(rate), true) = (competing, c.compete) {
            (self.rate, self.queued_at) = (rate, Some(now));
            Mode::Compete
        } else if q > reference {
            let before = self.history.at(now - response).map_or(self.rate, |past| past.rate);
            let slope = self
                .history
                .at(now - window)
                .map_or(0.0, |past| (q - past.queue).as_secs_f64() / (now - past.at).as_secs_f64().max(1e-3));
            let base = eq::base(&c, before, slope, delivery);
            let rate = eq::drain(self.rate, base, eq::drained(q, reference, time), additive);
            (self.rate, self.queued_at) = (rate, Some(now));
            Mode::Drain
        } else {
            let factor = eq::growth(&c, self.queued_at.map(|at| now - at), response);
            let is_below = self.rate < losses.carried;
            let is_free = is_below || losses.factor >= 1.0;
            let step = if self.marks.is_recent(now) {
                eq::marked_step(self.setup.packet_size, srtt, response)
            } else {
                let share = (response.as_secs_f64() / time.as_secs_f64()).min(1.0);
                (if is_below { free } else { additive }).scale(share)
            };
            let rate = eq::grow(
                &c,
                &eq::Growth {
                    rate: self.rate,
                    delivery,
                    step,
                    factor: if is_free { factor } else { 0.0 },
                    elapsed: (dt.as_secs_f64() / response.as_secs_f64()).min(1.0),
                    queue: (q.as_secs_f64() / reference.as_secs_f64()).min(1.0),
                },
            );
            self.rate = if is_below && losses.factor < 1.0 { rate.min(losses.carried) } else { rate };
            Mode::Grow
        };
        if report.marked > 0 {
            self.rate = eq::marked(self.rate, self.marks.alpha, dt, srtt);
            (self.marks.last, self.queued_at) = (Some(now), Some(now));
        }
        if is_excess && c.loss {
            self.rate = self.rate.min(delivery.scale(LOSS_DECREASE));
            losses.decrease(now, delivery);
        }
        self.rate = self.bounds.clamp(self.rate);
        self.is_marked = self.marks.is_recent(now);
        self.history.push(Past { at: now, rate: self.rate, queue: q });
        let queue = if mode == Mode::Compete { reference + q } else { reference };
        let path = self.delays.rtt + self.interval + self.late();
        self.window = eq::window(&c, self.rate.max(delivery), path, queue, self.setup.packet_size);
        self.decide();
        signals.emit(DrcSignal::Rate, self.rate.as_bps_f64());
        signals.emit(DrcSignal::Delivery, delivery.as_bps_f64());
        signals.emit(DrcSignal::Queue, q.as_millis_f64());
        signals.emit(DrcSignal::Reference, reference.as_millis_f64());
        signals.emit(DrcSignal::Mode, f64::from(mode as u8));
    }
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.handle_sent(now, packet),
            _ => self.handle_other(now, event, signals),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn decision(&self) -> Decision {
        self.decision
    }
}

impl Sender {
    /// Handles an event other than [`Event::Sent`], the most frequent one.
    #[inline(never)]
    fn handle_other(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::Message(message) => self.handle_message(message),
            Event::Stream(stream) => {
                self.waiting.handle_stream(stream);
                self.decide();
            }
            Event::StreamRemoved(stream) => {
                self.waiting.remove_stream(stream);
                self.decide();
            }
            Event::Bounds(bounds) => self.handle_bounds(bounds),
            Event::RouteChange(setup) => *self = Self::new(self.config, *setup),
            Event::Timeout => self.handle_timeout(now, signals),
            _ => {}
        }
    }

    fn handle_message(&mut self, message: &Message) {
        if let &Message::Remb(cap) = message {
            self.cap = cap;
            self.decide();
        }
    }

    /// No feedback for too long: the rate is halved, and a few packets more may leave.
    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        if self.timeout.is_none_or(|at| now < at) {
            return;
        }
        self.rate = self.bounds.clamp(self.rate.scale(TIMEOUT_DECREASE));
        self.window = self.outstanding + DataSize::from_bytes(self.setup.packet_size.as_bytes() * TIMEOUT_PACKETS);
        self.timeout = Some(now + self.patience());
        self.resumed_at = None;
        self.decide();
        signals.emit(DrcSignal::Rate, self.rate.as_bps_f64());
    }

    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.ecn.handle_sent(now);
        self.waiting.handle_sent(packet);
        self.outstanding = packet.in_flight.unwrap_or(DataSize::ZERO) + packet.size;
        if self.timeout.is_none() && self.feedback_at.is_some() {
            self.timeout = Some(now + self.patience());
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let dt = self.feedback_at.map_or(self.config.feedback, |at| now - at).max(TimeDelta::ZERO).min(DT_MAX);
        let report = self.observe(now, dt, feedback);
        let losses = &mut self.losses;
        let is_short = self.delays.queue * 2 < eq::reference(&self.config, self.delays.jitter, losses.factor);
        let excess = losses.excess.handle(now, report.arrived + report.lost, report.lost, is_short);
        losses.pending = (losses.pending.0 || report.lost > 0, losses.pending.1 || excess.congested);
        if excess.lasting && self.config.loss {
            losses.factor = eq::shorten(losses.factor);
        }
        self.outstanding = feedback.outstanding;
        if report.arrived == 0 {
            return;
        }
        self.feedback_at = Some(now);
        self.interval = dt.max(self.interval + (dt - self.interval).scale(INTERVAL_GAIN));
        self.timeout = (self.outstanding > DataSize::ZERO).then(|| now + self.patience());
        self.marks.alpha += (f64::from(report.marked) / f64::from(report.arrived) - self.marks.alpha) * MARKS_GAIN;
        self.update(now, dt, &report, signals);
    }

    fn handle_bounds(&mut self, bounds: &Bounds) {
        (self.bounds, self.rate) = (*bounds, bounds.clamp(self.rate));
        self.decide();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;
    use crate::{PacketReport, StreamState};
    use alloc::vec::Vec;
    use paceline_units::{Ecn, RemoteTime, StreamId};

    /// A flow with 10 packets of 1250 bytes in each message of 100 ms, 50 ms after the last of them was sent, from 1 s to 10 s.
    fn started() -> Sender {
        let mut sender = Sender::new(DrcConfig::default(), SETUP);
        for n in 10..100 {
            message(&mut sender, n, |_| true);
        }
        sender
    }

    fn message(sender: &mut Sender, n: i64, arrives: impl Fn(i64) -> bool) {
        message_at(sender, n, 100 * n + 140, arrives);
    }

    fn message_at(sender: &mut Sender, n: i64, at: i64, arrives: impl Fn(i64) -> bool) {
        let size = DataSize::from_bytes(1250);
        let packet = |k: i64| {
            let sent = 100 * n + 10 * k;
            let arrival = arrives(k).then(|| RemoteTime::from_millis(sent + 20));
            PacketReport::new((10 * n + k) as u64, Time::from_millis(sent), size, arrival)
        };
        let packets: Vec<_> = (0..10).map(packet).collect();
        let feedback = Feedback::new(&packets, size, size);
        sender.handle_feedback(Time::from_millis(at), &feedback, &mut Signals::disabled());
    }

    /// All packets of 0.6 s are lost, in messages without arrivals. The next message with arrivals lowers the rate.
    #[test]
    fn loss_in_messages_without_arrivals_lowers_the_rate() {
        let mut sender = started();
        let before = sender.rate;
        assert_eq!(sender.losses.decreased_at, None);
        for n in 100..106 {
            message(&mut sender, n, |_| false);
        }
        assert_eq!((sender.rate, sender.losses.decreased_at, sender.losses.pending), (before, None, (true, true)));
        message(&mut sender, 106, |_| true);
        assert!(
            sender.rate < before && sender.losses.decreased_at.is_some() && sender.losses.pending == (false, false),
            "{} {before}",
            sender.rate
        );
    }

    /// The packets of a frame leave more slowly for 2 s after a mark.
    #[test]
    fn marks_slow_the_pacer() {
        let mut sender = started();
        let factor = |sender: &Sender| sender.decision.pacing.as_bps_f64() / sender.decision.target.as_bps_f64();
        assert!((factor(&sender) - 1.25).abs() < 1e-4);
        for (n, expected) in [(100, 1.1), (119, 1.1), (120, 1.25)] {
            let (size, sent) = (DataSize::from_bytes(1250), Time::from_millis(100 * n));
            let mut packet = PacketReport::new(10 * n as u64, sent, size, Some(RemoteTime::from_millis(100 * n + 20)));
            packet.ecn = Some(if n == 100 { Ecn::Ce } else { Ecn::Ect1 });
            let feedback = Feedback::new(core::slice::from_ref(&packet), size, size);
            sender.handle_feedback(Time::from_millis(100 * n + 140), &feedback, &mut Signals::disabled());
            assert!((factor(&sender) - expected).abs() < 1e-4, "{n}: {}", factor(&sender));
            let waiting = Event::Stream(&StreamState::new(StreamId(0), DataSize::from_bytes(10_000)));
            let mut sender = sender.clone();
            let before = sender.decision.pacing;
            sender.handle_event(Time::from_millis(100 * n + 140), &waiting, &mut Signals::disabled());
            assert_eq!(
                sender.decision.pacing > before,
                expected > 1.2,
                "frames that wait do not leave faster while the queue marks"
            );
        }
    }

    /// 5 kB of earlier frames wait: the target is 500 kbit/s lower. The pacing rate is 1212 kbit/s higher for 5 kB more than leave in 33
    /// ms. Packets that leave end that with the next decision, and so does a stream that ends. A tenth of the rate is left for the encoders.
    #[test]
    fn frames_that_wait_lower_the_target() {
        let mut sender = started();
        let before = sender.decision;
        let state = |bytes| StreamState::new(StreamId(0), DataSize::from_bytes(bytes));
        let queue = |sender: &mut Sender, bytes| {
            sender.handle_event(Time::from_secs(10), &Event::Stream(&state(bytes)), &mut Signals::disabled());
            sender.decision
        };
        let soon = (before.target * TimeDelta::from_millis(33)).as_bytes();
        assert_eq!(before.target.as_bps() - queue(&mut sender, 5000).target.as_bps(), 500_000);
        assert_eq!(queue(&mut sender, soon).pacing, before.pacing);
        assert_eq!(queue(&mut sender, soon + 5000).pacing.as_bps() - before.pacing.as_bps(), 1_212_121);
        let packet = SentPacket::new(1000, DataSize::from_bytes(1250));
        (0..10).for_each(|_| sender.handle_sent(Time::from_secs(10), &packet));
        sender.decide();
        assert_eq!((sender.decision.target, sender.decision.pacing), (before.target, before.pacing));
        assert_eq!(queue(&mut sender, 1_000_000).target, before.target.scale(0.1));
        let removed = Event::StreamRemoved(StreamId(0));
        sender.handle_event(Time::from_secs(10), &removed, &mut Signals::disabled());
        assert_eq!((sender.decision.target, sender.decision.pacing), (before.target, before.pacing));
    }

    /// Reports come 400 ms later than before, and packets arrive as before. The window has room for 50 ms of path, 100 of the
    /// interval, 300 of lateness beyond it, 60, and 8 to 20 of reference; without lateness it would be less than half of that.
    #[test]
    fn late_reports_do_not_shut_the_window() {
        let mut sender = started();
        let time =
            |sender: &Sender| sender.window.as_bits() as f64 / sender.rate.max(Rate::from_kbps(1000)).as_bps_f64();
        let (before, rate) = (time(&sender), sender.rate);
        assert!((0.21..=0.25).contains(&before) && sender.delays.late == TimeDelta::ZERO, "{before}");
        for n in 100..180 {
            message_at(&mut sender, n, 100 * n + 540, |_| true);
        }
        assert_eq!(sender.delays.late, TimeDelta::from_millis(400));
        let late = time(&sender);
        assert!((0.51..=0.55).contains(&late), "{late}");
        assert!(sender.rate >= rate, "{} {rate}", sender.rate);
        message(&mut sender, 184, |_| true);
        assert_eq!(sender.delays.late, TimeDelta::ZERO);
    }

    /// What an outage has lost says nothing about the path after it, whether its losses end a period or not.
    #[test]
    fn loss_before_a_timeout_is_forgotten() {
        for last in [104, 106] {
            let mut sender = started();
            for n in 100..last {
                message(&mut sender, n, |_| false);
            }
            sender.handle_timeout(Time::from_secs(100), &mut Signals::disabled());
            message(&mut sender, 1200, |_| true);
            assert_eq!((sender.losses.decreased_at, sender.losses.pending), (None, (false, false)), "{last}");
        }
    }

    /// Of the packets of 1.2 s a third is lost; the link delivers 1 Mbit/s without a queue. Growth below the rate that it carried, 0.9
    /// Mbit/s, is not careful; above it is.
    #[test]
    fn growth_is_careful_above_what_the_link_has_carried() {
        let mut sender = started();
        for n in 100..112 {
            message(&mut sender, n, |k| k % 3 > 0);
        }
        assert!(sender.losses.factor < 1.0 && sender.losses.decreased_at.is_some());
        let carried = sender.losses.carried.as_bps_f64();
        assert!((5e5..=9e5).contains(&carried), "{carried}");
        let steps = |sender: &Sender, from: f64| {
            let mut sender = sender.clone();
            sender.rate = Rate::from_bps_f64(from);
            for n in 112..122 {
                message(&mut sender, n, |_| true);
            }
            sender.rate.as_bps_f64() / from
        };
        let (below, above) = (steps(&sender, 0.5 * carried), steps(&sender, 1.1 * carried));
        assert!((1.5..=2.1).contains(&below) && (1.0..=1.1).contains(&above), "{below} {above}");
    }

    /// 2.5 % of loss in a queue, and none without: m is halved, the rate is not lowered.
    #[test]
    fn loss_that_lasts_shortens_the_queue() {
        let mut sender = started();
        let (size, mut least) = (DataSize::from_bytes(1250), 1.0_f64);
        for n in 100..400_i64 {
            let is_short = n % 10 == 0;
            let packets: Vec<_> = (0..10)
                .map(|k| {
                    let sent = 100 * n + 10 * k;
                    let is_lost = n % 10 > 1 && n % 4 == 3 && k == 5;
                    let delay = if is_short { 20 } else { 40 };
                    let arrival = (!is_lost).then(|| RemoteTime::from_millis(sent + delay));
                    PacketReport::new((10 * n + k) as u64, Time::from_millis(sent), size, arrival)
                })
                .collect();
            let feedback = Feedback::new(&packets, size, size);
            sender.handle_feedback(Time::from_millis(100 * n + 140), &feedback, &mut Signals::disabled());
            least = least.min(sender.losses.factor);
        }
        assert!(
            (0.35..=0.55).contains(&least) && sender.losses.decreased_at.is_none(),
            "{least} {:?}",
            sender.losses.decreased_at
        );
    }
}
