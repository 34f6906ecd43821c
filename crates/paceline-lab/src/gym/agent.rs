//! The agent's seat: a send half whose target is set from outside, and which notes what a sender hears.
//!
//! It is a controller like any other: transport-wide feedback as `gcc-tfb` has it, the same pacing over target as the GCC
//! paper's, no padding. All that it notes comes from its own packets and their feedback.

use paceline::{Config, Controller, Decision, Entry, Feedback, FeedbackKind, SendHalf, SentPacket, Setup, SignalSpec};
use paceline::{PacketReport, Signals};
use paceline_units::{DataSize, Ecn, Rate, Time, TimeDelta};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Shortest and longest interval of feedback (libwebrtc's kMinSendIntervalMs and kMaxSendIntervalMs).
const FEEDBACK: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
/// Pacing over target (mmsys16, section 3.5).
const PACING_FACTOR: f64 = 1.5;
/// A silence is told up to this.
const SILENCE_MAX: TimeDelta = TimeDelta::from_secs(10);

/// A number that the gym tells, what it is in, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// A line on it.
    pub meaning: &'static str,
}

const fn feature(name: &'static str, unit: &'static str, meaning: &'static str) -> Quantity {
    Quantity { name, unit, meaning }
}

/// What an agent observes of a step, in order: what a sender knows, finite, none below zero.
pub const FEATURES: [Quantity; 8] = [
    feature("target", "Mbit/s", "the target in force at the end of the step, as the guard leaves it"),
    feature("sent", "Mbit/s", "what left the pacer in the step"),
    feature("received", "Mbit/s", "what feedback in the step told to have arrived, over the step's length"),
    feature(
        "queuing",
        "s",
        "mean one-way delay that feedback told, over the smallest so far; the last known without news",
    ),
    feature("rtt", "s", "from sending the newest packet told of to hearing of it; the last known; 0 before the first"),
    feature("rtt_min", "s", "the smallest of those so far"),
    feature("loss", "fraction", "packets told lost in the step, of those told of"),
    feature("silence", "s", "since the last feedback, or since the flow began; at most 10"),
];

/// What an action means: from -1 to 1, evenly in the logarithm of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionSpace {
    /// The rate of -1: the flow's lowest target.
    pub min: Rate,
    /// The rate of 1: the most that the flow's sources make, headers included.
    pub max: Rate,
}

impl ActionSpace {
    /// The rate of an action; what is beyond -1 and 1 counts as those.
    pub fn rate(&self, action: f32) -> Rate {
        let part = (f64::from(action).clamp(-1.0, 1.0) + 1.0) / 2.0;
        let (min, max) = (self.min.as_bps_f64().max(1.0), self.max.as_bps_f64().max(1.0));
        Rate::from_bps_f64(min * libm::pow(max / min, part)).max(self.min).min(self.max)
    }

    /// The action of a rate.
    pub fn action(&self, rate: Rate) -> f32 {
        let (min, max) = (self.min.as_bps_f64().max(1.0), self.max.as_bps_f64().max(1.0));
        if max <= min {
            return 1.0;
        }
        let part = libm::log(rate.as_bps_f64().clamp(min, max) / min) / libm::log(max / min);
        (part * 2.0 - 1.0) as f32
    }
}

/// What agent and send half share. One thread at a time uses both ends of it.
#[derive(Debug)]
pub(super) struct Seat {
    /// The target that the agent wants, bit/s.
    wanted: AtomicU64,
    /// The half has not been asked since it was set.
    new: AtomicBool,
    seen: Mutex<Seen>,
}

/// What a sender has seen. Sums are of the step that goes on.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    target: Rate,
    sent: DataSize,
    received: DataSize,
    arrived: u32,
    lost: u32,
    /// Of one-way delays between two clocks that do not agree, ns: the sum in this step, and the smallest so far.
    delays: i128,
    smallest: Option<i64>,
    /// The last known.
    queuing: TimeDelta,
    rtt: Option<TimeDelta>,
    rtt_min: Option<TimeDelta>,
    /// When feedback last came.
    heard: Time,
}

impl Seat {
    /// A seat of a flow that begins at `begin` with this target.
    pub fn new(begin: Time, start: Rate) -> Arc<Self> {
        let seen = Seen { target: start, heard: begin, ..Seen::default() };
        Arc::new(Self { wanted: AtomicU64::new(start.as_bps()), new: AtomicBool::new(false), seen: Mutex::new(seen) })
    }

    /// The agent wants this from now on. The sender is to be asked.
    pub fn want(&self, target: Rate) {
        self.wanted.store(target.as_bps(), Ordering::Relaxed);
        self.new.store(true, Ordering::Relaxed);
    }

    /// A decision was made of what is wanted.
    pub fn decided(&self, target: Rate) {
        self.seen().target = target;
    }

    /// Writes the step that ends at `now` into `out`, in the order of [`FEATURES`], and begins the next.
    pub fn observe(&self, now: Time, step: TimeDelta, out: &mut [f32]) {
        let mut seen = self.seen();
        if seen.arrived > 0 {
            let mean = (seen.delays / i128::from(seen.arrived)) as i64;
            let smallest = seen.smallest.unwrap_or(mean);
            seen.queuing = TimeDelta::from_nanos(mean - smallest);
        }
        let told = seen.arrived + seen.lost;
        let loss = if told == 0 { 0.0 } else { f64::from(seen.lost) / f64::from(told) };
        let mbps = |rate: Rate| rate.as_bps_f64() / 1e6;
        let seconds = |time: Option<TimeDelta>| time.map_or(0.0, TimeDelta::as_secs_f64);
        let features = [
            mbps(seen.target),
            mbps(Rate::of(seen.sent, step)),
            mbps(Rate::of(seen.received, step)),
            seen.queuing.as_secs_f64(),
            seconds(seen.rtt),
            seconds(seen.rtt_min),
            loss,
            (now - seen.heard).min(SILENCE_MAX).as_secs_f64(),
        ];
        out.iter_mut().zip(features).for_each(|(out, feature)| *out = feature as f32);
        (seen.sent, seen.received) = (DataSize::ZERO, DataSize::ZERO);
        (seen.arrived, seen.lost, seen.delays) = (0, 0, 0);
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nothing panics while it holds this")
    }
}

/// The registry's line of an agent in this seat, for one flow of one run.
pub(super) fn entry(seat: &Arc<Seat>) -> Entry {
    let config = AgentConfig { seat: Arc::clone(seat) };
    Entry::new("agent", "a target that is set from outside, step by step", "no paper: whoever trains", config)
}

#[derive(Clone)]
struct AgentConfig {
    seat: Arc<Seat>,
}

impl Config for AgentConfig {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (&[], &[]);

    fn build(&self, _: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Half { seat: Arc::clone(&self.seat) })),
            receive: None,
            feedback: FeedbackKind::TransportWide { interval: FEEDBACK.0, longest: FEEDBACK.1 },
            ecn: Ecn::NotEct,
        }
    }
}

struct Half {
    seat: Arc<Seat>,
}

impl SendHalf for Half {
    fn handle_sent(&mut self, _: Time, packet: &SentPacket) {
        self.seat.seen().sent += packet.size;
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, _: &mut Signals) {
        let seen = &mut *self.seat.seen();
        let mut newest = None;
        for PacketReport { sent, size, arrival, .. } in feedback.packets {
            let Some(arrival) = arrival else {
                seen.lost += 1;
                continue;
            };
            let delay = arrival.as_nanos() - sent.as_nanos();
            seen.smallest = Some(seen.smallest.map_or(delay, |smallest| smallest.min(delay)));
            seen.delays += i128::from(delay);
            seen.arrived += 1;
            seen.received += *size;
            newest = newest.max(Some(*sent));
        }
        if let Some(sent) = newest {
            let rtt = now - sent;
            seen.rtt = Some(rtt);
            seen.rtt_min = Some(seen.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if !feedback.packets.is_empty() {
            seen.heard = now;
        }
    }

    fn handle_timeout(&mut self, _: Time, _: &mut Signals) {
        self.seat.new.store(false, Ordering::Relaxed);
    }

    fn poll_timeout(&self) -> Time {
        // Due at once, whenever that is: the episode has the sender served then.
        if self.seat.new.load(Ordering::Relaxed) { Time::ZERO } else { Time::MAX }
    }

    fn decision(&self) -> Decision {
        let target = Rate::from_bps(self.seat.wanted.load(Ordering::Relaxed));
        Decision { target, pacing: target.scale(PACING_FACTOR), window: None, padding: Rate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_a_rate_and_back() {
        let space = ActionSpace { min: Rate::from_kbps(50), max: Rate::from_kbps(5000) };
        assert_eq!((space.rate(-1.0), space.rate(1.0)), (space.min, space.max));
        assert_eq!(space.rate(0.0), Rate::from_kbps(500), "the middle of a factor of 100 is a factor of 10");
        assert_eq!((space.rate(-7.0), space.rate(7.0)), (space.min, space.max));
        for action in [-1.0, -0.6, 0.0, 0.3, 1.0] {
            assert!((space.action(space.rate(action)) - action).abs() < 1e-4, "{action}");
        }
        let point = ActionSpace { min: Rate::from_kbps(50), max: Rate::from_kbps(50) };
        assert_eq!(point.rate(point.action(Rate::from_kbps(900))), Rate::from_kbps(50));
    }
}
