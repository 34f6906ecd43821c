// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half.

use super::delivery::Delivery;
use super::loss::{LossExperiment, Seen, Verdict};
use super::others::{Observation, QueueOfOthers, Step};
use super::path::{Delays, Report};
use super::{DrcConfig, law};
use crate::blocks::RtpQueue;
use crate::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, Message, SendHalf, SentPacket, Setup, SignalName,
    SignalTables, Signals, Window, signal_names,
};
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
        Phase = state("phase", &["grow", "drain"]),
    }
}

impl Config for DrcConfig {
    const SIGNALS: SignalTables = (DrcSignal::TABLE, &[]);

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_reports(Sender::new(*self, *setup), self.feedback, self.delivery, self.ecn)
    }
}

/// The weight of a message in the share of marked packets: 1/16, as DCTCP's per round trip (RFC 8257, section 4.2).
const MARKS_GAIN: f64 = 1.0 / 16.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Grow,
    Drain,
}

/// The marks of the bottleneck.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// alpha: the share of marked packets, smoothed.
    alpha: f64,
    last: Option<Time>,
}

/// What a loss that the flow causes has left.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    since: Time,
    rate: f64,
}

#[derive(Clone, Debug)]
struct Sender {
    config: DrcConfig,
    setup: Setup,
    bounds: Bounds,
    rate: Rate,
    delivery: Delivery,
    delays: Delays,
    others: QueueOfOthers,
    losses: LossExperiment,
    marks: Marks,
    /// Whether the queue of the path marks packets.
    is_marked: bool,
    /// When the queue last exceeded its reference, packets were marked, or a loss was found that the flow causes.
    queued_at: Option<Time>,
    /// The limit of the rate after a loss.
    ceiling: Option<Ceiling>,
    /// What arrived while the flow lost packets, bit/s, if the rate was not lowered yet.
    excess: Option<f64>,
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
            delivery: Delivery::new(config.delivery),
            delays: Delays::new(),
            others: QueueOfOthers::default(),
            losses: LossExperiment::new(),
            marks: Marks::default(),
            is_marked: false,
            queued_at: None,
            ceiling: None,
            excess: None,
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
        self.delays.srtt.scale(self.config.drain_factor) + self.interval * 2 + self.config.delivery
    }

    /// rtt_min + I + late: the time from the sending of a packet to its report, on an empty path.
    fn path(&self) -> TimeDelta {
        // A receiver's clock that is set back looks like a late message.
        let late = (self.delays.late - self.interval).max(TimeDelta::ZERO).min(self.config.period);
        self.delays.rtt + self.interval + late
    }

    fn decide(&mut self) {
        let rate = self.bounds.clamp(self.rate.min(self.cap));
        let waiting = law::waiting(&self.config, rate, self.waiting.size());
        let target = self.bounds.clamp(law::media(&self.config, rate, waiting));
        self.decision = Decision {
            target,
            stable_target: target,
            pacing: if self.is_marked {
                rate.scale(self.config.marked_pacing)
            } else {
                law::pacing(&self.config, rate, waiting)
            },
            window: (self.window.as_bytes() < u64::MAX).then_some(Window::Outstanding(self.window)),
            ..self.decision
        };
    }

    /// Reads a message. Losses do not count of packets that were sent before the flow was heard again, or before a loss lowered
    /// the rate.
    fn observe(&mut self, now: Time, feedback: &Feedback<'_>) -> Report {
        if self.resumed_at.is_none() && feedback.packets.iter().any(|packet| packet.arrival.is_some()) {
            // The path may be another one: the flow starts again.
            (self.resumed_at, self.queued_at, self.ceiling, self.excess) = (Some(now), None, None, None);
            self.others = QueueOfOthers::default();
            self.losses.restart(now);
        }
        let counted =
            self.resumed_at.unwrap_or(Time::MAX).max(self.ceiling.map_or(Time::ZERO, |ceiling| ceiling.since));
        let waited = law::reference(&self.config, 1.0, self.delays.jitter, TimeDelta::ZERO).scale(0.5);
        let delivered = self.delivery.delivered();
        let delivery = &mut self.delivery;
        self.delays.handle(now, feedback, counted, delivered, &self.config, |packet, queue| {
            if let Some(arrival) = packet.arrival {
                delivery.handle_arrival(arrival, packet.size, queue > waited);
            }
        })
    }

    /// The rate and the window after a message with arrivals.
    fn update(&mut self, now: Time, dt: TimeDelta, report: &Report, signals: &mut Signals) {
        let c = self.config;
        let (q, delivered, path) = (self.delays.queue, self.delivery.delivered(), self.path());
        let response = law::response_time(&c, path);
        let time = law::drain_time(&c, response);
        // c: how much of the last loss is forgotten.
        let caution = self.ceiling.map_or(1.0, |of| ((now - of.since).as_secs_f64() / c.memory.as_secs_f64()).min(1.0));
        let reference = law::reference(&c, caution, self.delays.jitter, self.others.queue);
        let additive = law::additive(&c, delivered);
        let phase = if q > reference { Phase::Drain } else { Phase::Grow };
        if phase == Phase::Drain {
            self.queued_at = Some(now);
            self.rate = Rate::from_bps_f64(law::drain(delivered, q - reference, time, additive));
            let response = response + self.delays.srtt;
            let seen = Observation { dt, queue: q, reference, delivery: delivered, drain_time: time, response };
            if c.compete {
                self.compete(now, &seen);
            }
        } else {
            self.others.handle_short(dt, delivered, &c);
            let step = if self.is_marked {
                law::marked_step(self.setup.packet_size, self.delays.srtt)
            } else {
                additive / time.as_secs_f64()
            };
            self.rate = Rate::from_bps_f64(law::grow(&law::Growth {
                rate: self.rate.as_bps_f64(),
                growth: law::growth(&c, self.queued_at.map(|at| now - at), response),
                step,
                delivery: delivered.max(self.delivery.received()),
                response,
                elapsed: dt,
                queue: q.as_secs_f64() / reference.as_secs_f64().max(1e-6),
            }));
        }
        self.limit_after_loss(now, additive * caution * dt.as_secs_f64() / time.as_secs_f64());
        if report.marked > 0 {
            self.rate = law::marked(self.rate, self.marks.alpha, dt, self.delays.srtt);
            (self.marks.last, self.queued_at) = (Some(now), Some(now));
        }
        self.rate = self.bounds.clamp(self.rate);
        self.is_marked = self.marks.last.is_some_and(|at| now - at < c.period);
        let most = self.rate.as_bps_f64().max(delivered);
        self.window = law::window(&c, most, path, reference, self.setup.packet_size);
        self.decide();
        signals.emit(DrcSignal::Rate, self.rate.as_bps_f64());
        signals.emit(DrcSignal::Delivery, delivered);
        signals.emit(DrcSignal::Queue, q.as_millis_f64());
        signals.emit(DrcSignal::Reference, reference.as_millis_f64());
        signals.emit(DrcSignal::Phase, f64::from(phase as u8));
    }

    /// Tests whose queue it is.
    fn compete(&mut self, now: Time, seen: &Observation) {
        match self.others.handle_long(now, seen, &self.config) {
            Step::Nothing => {}
            Step::Test(rate) => self.rate = Rate::from_bps_f64(rate),
            // The decrease was in vain: the flow grows as at its start.
            Step::Found(rate) => (self.rate, self.queued_at) = (self.rate.max(Rate::from_bps_f64(rate)), None),
        }
    }

    /// The rate stays below the ceiling of the last loss, which rises by `step`. An excess of loss that a message without arrivals has shown is
    /// answered at the next one with arrivals.
    ///
    /// ```text
    /// congested   K = 0.85 of what arrived while packets were lost
    /// K = K + c A dt / T,  c = min(since / M, 1);    no ceiling once c is 1;    r = min(r, K)
    /// ```
    fn limit_after_loss(&mut self, now: Time, step: f64) {
        if let (Some(arrived), true) = (self.excess.take(), self.config.loss) {
            let rate = arrived * self.config.loss_factor;
            self.rate = self.rate.min(Rate::from_bps_f64(rate));
            self.queued_at = Some(now);
            if self.others.queue == TimeDelta::ZERO {
                self.ceiling = Some(Ceiling { since: now, rate });
            } else {
                // The others fill the queue again at once.
                self.losses.restart(now);
            }
            return;
        }
        let Some(ceiling) = &mut self.ceiling else { return };
        if !self.losses.is_testing {
            ceiling.rate += step;
        }
        let rate = Rate::from_bps_f64(ceiling.rate);
        if self.rate > rate {
            (self.rate, self.queued_at) = (rate, Some(now));
        }
        if now - ceiling.since >= self.config.memory {
            self.ceiling = None;
        }
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
        self.rate = self.bounds.clamp(self.rate.scale(law::HALF));
        self.window = self.outstanding + DataSize::from_bytes(self.setup.packet_size.as_bytes() * 4);
        self.timeout = Some(now + self.patience());
        self.resumed_at = None;
        self.decide();
        signals.emit(DrcSignal::Rate, self.rate.as_bps_f64());
    }

    fn handle_sent(&mut self, now: Time, packet: &SentPacket) {
        self.waiting.handle_sent(packet);
        self.outstanding = packet.in_flight.unwrap_or(DataSize::ZERO) + packet.size;
        if self.timeout.is_none() && self.feedback_at.is_some() {
            self.timeout = Some(now + self.patience());
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let dt =
            self.feedback_at.map_or(self.config.feedback, |at| now - at).max(TimeDelta::ZERO).min(self.config.period);
        let report = self.observe(now, feedback);
        let is_short = self.delays.queue <= law::reference(&self.config, 1.0, self.delays.jitter, TimeDelta::ZERO);
        let seen = Seen { arrived: report.counted, lost: report.lost, bits: report.bits as f64, is_short };
        match self.losses.handle(now, &seen, &self.config) {
            Verdict::Congested(arrived) => self.excess = Some(arrived),
            Verdict::InVain => (self.ceiling, self.queued_at) = (None, None),
            Verdict::Nothing => {}
        }
        self.outstanding = feedback.outstanding;
        if report.arrived == 0 {
            return;
        }
        self.feedback_at = Some(now);
        self.interval = dt.max(self.interval + (dt - self.interval).scale(self.config.gain));
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
    use paceline_units::{RemoteTime, StreamId};

    /// A flow with 10 packets of 1250 bytes in each message of 100 ms, 50 ms after the last of them was sent, from 1 s to 10 s.
    fn started() -> Sender {
        let mut sender = Sender::new(DrcConfig::default(), SETUP);
        for n in 10..100 {
            message(&mut sender, n, |_| true);
        }
        sender
    }

    fn message(sender: &mut Sender, n: i64, arrives: impl Fn(i64) -> bool) {
        message_at(sender, n, 100 * n + 140, 20, arrives);
    }

    /// Message n at `at` ms, of packets that took `delay` ms.
    fn message_at(sender: &mut Sender, n: i64, at: i64, delay: i64, arrives: impl Fn(i64) -> bool) {
        let size = DataSize::from_bytes(1250);
        let packet = |k: i64| {
            let sent = 100 * n + 10 * k;
            let arrival = arrives(k).then(|| RemoteTime::from_millis(sent + delay));
            PacketReport::new((10 * n + k) as u64, Time::from_millis(sent), size, arrival)
        };
        let packets: Vec<_> = (0..10).map(packet).collect();
        let feedback = Feedback::new(&packets, size, size);
        sender.handle_feedback(Time::from_millis(at), &feedback, &mut Signals::disabled());
    }

    /// A queue of 100 ms on a link that delivers 1 Mbit/s: T is 400 ms, so 0.76 of it and 65 kbit/s are sent, whatever the rate was.
    #[test]
    fn queue_sets_the_rate_by_what_the_link_delivers() {
        for rate in [500, 4000] {
            let mut sender = started();
            for n in 100..103 {
                sender.rate = Rate::from_kbps(rate);
                message_at(&mut sender, n, 100 * n + 240, 120, |_| true);
            }
            let kbps = sender.rate.as_bps_f64() / 1e3;
            assert!((800.0..=860.0).contains(&kbps), "{kbps}");
        }
    }

    /// All packets of 0.6 s are lost, in messages without arrivals. The next message with arrivals lowers the rate.
    #[test]
    fn loss_in_messages_without_arrivals_lowers_the_rate() {
        let mut sender = started();
        let before = sender.rate;
        for n in 100..106 {
            message(&mut sender, n, |_| false);
        }
        assert!(sender.rate == before && sender.ceiling.is_none() && sender.excess.is_some());
        message(&mut sender, 106, |_| true);
        assert!(
            sender.rate < before && sender.ceiling.is_some() && sender.excess.is_none(),
            "{} {before}",
            sender.rate
        );
    }

    /// A third of the packets is lost for 0.3 s: the rate falls to 0.85 of what arrives, 0.67 Mbit/s. It stays there for two seconds, and rises
    /// by a share of the step that grows with the time. After 30 s there is no ceiling.
    #[test]
    fn ceiling_of_a_loss_rises_slowly() {
        let mut sender = started();
        (100..103).for_each(|n| message(&mut sender, n, |k| k % 3 > 0));
        let low = sender.rate.as_bps_f64();
        assert!((4.0e5..=7.5e5).contains(&low), "{low}");
        (103..120).for_each(|n| message(&mut sender, n, |_| true));
        assert!((sender.rate.as_bps_f64() / low - 1.0).abs() < 1e-6, "{} {low}", sender.rate);
        (120..202).for_each(|n| message(&mut sender, n, |_| true));
        // From a fifteenth to a third of 30 s: (1/3^2 - 1/15^2) / 2 30 s, at 65 kbit/s in 400 ms.
        let risen = sender.rate.as_bps_f64() - low;
        assert!((2.4e5..=2.8e5).contains(&risen), "{risen}");
        (202..410).for_each(|n| message(&mut sender, n, |_| true));
        assert!(sender.ceiling.is_none());
    }

    /// What an outage has lost says nothing about the path after it.
    #[test]
    fn loss_before_a_timeout_is_forgotten() {
        for last in [104, 106] {
            let mut sender = started();
            for n in 100..last {
                message(&mut sender, n, |_| false);
            }
            sender.handle_timeout(Time::from_secs(100), &mut Signals::disabled());
            message(&mut sender, 1200, |_| true);
            assert!(sender.ceiling.is_none() && sender.excess.is_none(), "{last}");
        }
    }

    /// The packets of a frame leave more slowly for 1 s after a mark, and frames that wait do not leave faster.
    #[test]
    fn marks_slow_the_pacer() {
        let mut sender = started();
        let factor = |sender: &Sender| sender.decision.pacing.as_bps_f64() / sender.decision.target.as_bps_f64();
        assert!((factor(&sender) - 1.25).abs() < 1e-4);
        for (n, expected) in [(100, 1.1), (109, 1.1), (110, 1.25)] {
            let (size, sent) = (DataSize::from_bytes(1250), Time::from_millis(100 * n));
            let mut packet = PacketReport::new(10 * n as u64, sent, size, Some(RemoteTime::from_millis(100 * n + 20)));
            packet.ecn = Some(if n == 100 { Ecn::Ce } else { Ecn::Ect1 });
            let feedback = Feedback::new(core::slice::from_ref(&packet), size, size);
            sender.handle_feedback(Time::from_millis(100 * n + 140), &feedback, &mut Signals::disabled());
            assert!((factor(&sender) - expected).abs() < 1e-4, "{n}: {}", factor(&sender));
            let waiting = Event::Stream(&StreamState::new(StreamId(0), DataSize::from_bytes(1_000_000)));
            let mut sender = sender.clone();
            let before = sender.decision.pacing;
            sender.handle_event(Time::from_millis(100 * n + 140), &waiting, &mut Signals::disabled());
            assert_eq!(sender.decision.pacing > before, expected > 1.2, "{n}");
        }
    }

    /// Frames may wait for 33 ms. 5 kB more lower the target by 500 kbit/s and raise the pacing rate by 1212 kbit/s. Packets that leave end that with the
    /// next decision, and so does a stream that ends. A tenth of the rate is left for the encoders.
    #[test]
    fn frames_that_wait_lower_the_target() {
        let mut sender = started();
        let before = sender.decision;
        let state = |bytes| StreamState::new(StreamId(0), DataSize::from_bytes(bytes));
        let queue = |sender: &mut Sender, bytes| {
            sender.handle_event(Time::from_secs(10), &Event::Stream(&state(bytes)), &mut Signals::disabled());
            (sender.decision.target, sender.decision.pacing)
        };
        let soon = (before.target * TimeDelta::from_millis(33)).as_bytes();
        assert_eq!(queue(&mut sender, soon), (before.target, before.pacing));
        let (target, pacing) = queue(&mut sender, soon + 5000);
        assert_eq!(
            (before.target.as_bps() - target.as_bps(), pacing.as_bps() - before.pacing.as_bps()),
            (500_000, 1_212_121)
        );
        let packet = SentPacket::new(1000, DataSize::from_bytes(1250));
        (0..10).for_each(|_| sender.handle_sent(Time::from_secs(10), &packet));
        sender.decide();
        assert_eq!((sender.decision.target, sender.decision.pacing), (before.target, before.pacing));
        assert_eq!(queue(&mut sender, 1_000_000).0, before.target.scale(0.1));
        sender.handle_event(Time::from_secs(10), &Event::StreamRemoved(StreamId(0)), &mut Signals::disabled());
        assert_eq!((sender.decision.target, sender.decision.pacing), (before.target, before.pacing));
    }

    /// Reports come 400 ms later than before, and packets arrive as before. The window has room for 50 ms of path, 100 of the interval,
    /// 300 of lateness beyond it, 40, and 2 of reference and more; without lateness it would be less than half of that.
    #[test]
    fn late_reports_do_not_shut_the_window() {
        let mut sender = started();
        let time =
            |sender: &Sender| sender.window.as_bits() as f64 / sender.rate.max(Rate::from_kbps(1000)).as_bps_f64();
        let (before, rate) = (time(&sender), sender.rate);
        assert!((0.18..=0.24).contains(&before) && sender.delays.late == TimeDelta::ZERO, "{before}");
        for n in 100..180 {
            message_at(&mut sender, n, 100 * n + 540, 20, |_| true);
        }
        assert_eq!(sender.delays.late, TimeDelta::from_millis(400));
        let late = time(&sender);
        assert!((0.48..=0.54).contains(&late), "{late}");
        assert!(sender.rate >= rate, "{} {rate}", sender.rate);
        message(&mut sender, 184, |_| true);
        assert_eq!(sender.delays.late, TimeDelta::ZERO);
    }
}
