// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent as a controller: a send half whose target is set from outside, and which records what a sender observes.
//!
//! It uses transport-wide feedback like `gcc-tfb`, the pacing factor of the GCC paper, and no padding. Everything that
//! it records comes from its own packets and their feedback.

use paceline::{
    Config, Controller, Decision, Entry, Event, FeedbackRequirement, PacketReport, Parameters, SendHalf, Setup, Signals,
};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Shortest and longest interval of feedback (libwebrtc's kMinSendIntervalMs and kMaxSendIntervalMs).
const FEEDBACK: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
/// Pacing over target (mmsys16, section 3.5).
const PACING_FACTOR: f64 = 1.5;
/// Largest value of the feature `silence`.
const SILENCE_MAX: TimeDelta = TimeDelta::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    pub name: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
}

pub(super) const fn quantity(name: &'static str, unit: &'static str, meaning: &'static str) -> Quantity {
    Quantity { name, unit, meaning }
}

/// The observation of a step, in order. A real sender knows these values. All values are finite and at least 0.
pub const FEATURES: [Quantity; 8] = [
    quantity("target", "Mbit/s", "the target in force at the end of the step, after the guard"),
    quantity("sent", "Mbit/s", "what left the pacer in the step"),
    quantity("received", "Mbit/s", "what arrived according to feedback in the step, over the length of the step"),
    quantity(
        "queuing",
        "s",
        "mean one-way delay in the feedback of the step, over the smallest so far; the last known without feedback",
    ),
    quantity(
        "rtt",
        "s",
        "from sending the newest acknowledged packet to its feedback; the last known; 0 before the first",
    ),
    quantity("rtt_min", "s", "the smallest of those so far"),
    quantity("loss", "fraction", "packets lost according to feedback in the step, of those reported"),
    quantity("silence", "s", "since the last feedback, or since the flow began; at most 10"),
];

/// The meaning of an action: from -1 to 1, evenly in the logarithm of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionSpace {
    /// The rate of -1: the flow's lowest target.
    pub min: Rate,
    /// The rate of 1: the maximum of the flow's sources, headers included.
    pub max: Rate,
}

impl ActionSpace {
    /// Returns the rate of an action, which is clamped to -1 and 1.
    pub fn rate(&self, action: f32) -> Rate {
        let part = (f64::from(action).clamp(-1.0, 1.0) + 1.0) / 2.0;
        let (min, max) = (self.min.as_bps_f64().max(1.0), self.max.as_bps_f64().max(1.0));
        Rate::from_bps_f64(min * libm::pow(max / min, part)).max(self.min).min(self.max)
    }

    pub fn action(&self, rate: Rate) -> f32 {
        let (min, max) = (self.min.as_bps_f64().max(1.0), self.max.as_bps_f64().max(1.0));
        if max <= min {
            return 1.0;
        }
        let part = libm::log(rate.as_bps_f64().clamp(min, max) / min) / libm::log(max / min);
        (part * 2.0 - 1.0) as f32
    }
}

/// The state that the agent and its send half share. One thread at a time uses it.
#[derive(Debug)]
pub(super) struct AgentState {
    /// The target that the agent set, bit/s.
    target: AtomicU64,
    /// Whether the target is newer than the last timeout.
    is_new: AtomicBool,
    observed: Mutex<Observation>,
}

/// What a sender observes of its own packets and their feedback, step by step. Sums are of the current step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    target: Rate,
    sent: DataSize,
    received: DataSize,
    arrived: u32,
    lost: u32,
    /// One-way delays between unsynchronised clocks, ns: the sum in this step, and the smallest so far.
    delays: i128,
    smallest: Option<i64>,
    /// The last known value.
    queuing: TimeDelta,
    rtt: Option<TimeDelta>,
    rtt_min: Option<TimeDelta>,
    last_feedback: Time,
}

impl Observation {
    /// Creates the observation of a flow that starts at `begin` with this target.
    pub fn new(begin: Time, target: Rate) -> Self {
        Self { target, last_feedback: begin, ..Self::default() }
    }

    pub fn set_target(&mut self, target: Rate) {
        self.target = target;
    }

    /// Adds a packet that left the pacer.
    pub fn handle_sent(&mut self, size: DataSize) {
        self.sent += size;
    }

    pub fn handle_feedback(&mut self, now: Time, packets: &[PacketReport]) {
        let mut newest = None;
        for PacketReport { sent, size, arrival, .. } in packets {
            let Some(arrival) = arrival else {
                self.lost += 1;
                continue;
            };
            let delay = arrival.as_nanos() - sent.as_nanos();
            self.smallest = Some(self.smallest.map_or(delay, |smallest| smallest.min(delay)));
            self.delays += i128::from(delay);
            self.arrived += 1;
            self.received += *size;
            newest = newest.max(Some(*sent));
        }
        if let Some(sent) = newest {
            let rtt = now - sent;
            self.rtt = Some(rtt);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if !packets.is_empty() {
            self.last_feedback = now;
        }
    }

    /// Returns the step that ends at `now`, in the order of [`FEATURES`], and begins the next.
    pub fn observe(&mut self, now: Time, step: TimeDelta) -> [f32; FEATURES.len()] {
        if self.arrived > 0 {
            let mean = (self.delays / i128::from(self.arrived)) as i64;
            let smallest = self.smallest.unwrap_or(mean);
            self.queuing = TimeDelta::from_nanos(mean - smallest);
        }
        let reported = self.arrived + self.lost;
        let loss = if reported == 0 { 0.0 } else { f64::from(self.lost) / f64::from(reported) };
        let mbps = |rate: Rate| rate.as_bps_f64() / 1e6;
        let seconds = |time: Option<TimeDelta>| time.map_or(0.0, TimeDelta::as_secs_f64);
        let features = [
            mbps(self.target),
            mbps(Rate::from_size_and_time(self.sent, step)),
            mbps(Rate::from_size_and_time(self.received, step)),
            self.queuing.as_secs_f64(),
            seconds(self.rtt),
            seconds(self.rtt_min),
            loss,
            (now - self.last_feedback).min(SILENCE_MAX).as_secs_f64(),
        ];
        (self.sent, self.received) = (DataSize::ZERO, DataSize::ZERO);
        (self.arrived, self.lost, self.delays) = (0, 0, 0);
        features.map(|feature| feature as f32)
    }
}

impl AgentState {
    /// Creates the state of a flow that starts at `begin` with this target.
    pub fn new(begin: Time, start: Rate) -> Arc<Self> {
        let observed = Mutex::new(Observation::new(begin, start));
        Arc::new(Self { target: AtomicU64::new(start.as_bps()), is_new: AtomicBool::new(false), observed })
    }

    /// Sets the target. It takes effect when the sender is called next.
    pub fn set_target(&self, target: Rate) {
        self.target.store(target.as_bps(), Ordering::Relaxed);
        self.is_new.store(true, Ordering::Relaxed);
    }

    pub fn observed(&self) -> MutexGuard<'_, Observation> {
        self.observed.lock().expect("nothing panics while it holds this")
    }
}

pub(super) fn entry(state: &Arc<AgentState>) -> Entry {
    Entry::new("agent", "a target that is set from outside, step by step", "no paper", Agent(Arc::clone(state)))
}

/// An exception to the contract of [`SendHalf`] that a snapshot shares nothing: a copy shares the state, because the same
/// outside agent drives it. Its target is that of the original, and both add to the same observation.
#[derive(Clone, Debug)]
struct Agent(Arc<AgentState>);

impl Parameters for Agent {}

impl Config for Agent {
    fn halves(&self, _: &Setup) -> Controller {
        let feedback = FeedbackRequirement::new(FEEDBACK.0, FEEDBACK.1);
        Controller::from_sender(self.clone()).with_feedback(Some(feedback))
    }
}

impl SendHalf for Agent {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.0.observed().handle_sent(packet.size),
            Event::Feedback(feedback) => self.0.observed().handle_feedback(now, feedback.packets),
            Event::Timeout => self.0.is_new.store(false, Ordering::Relaxed),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        // A new action is due immediately; the episode calls the sender at that time.
        self.0.is_new.load(Ordering::Relaxed).then_some(Time::ZERO)
    }

    fn decision(&self) -> Decision {
        let target = Rate::from_bps(self.0.target.load(Ordering::Relaxed));
        Decision::new(target).with_pacing(target.scale(PACING_FACTOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_map_to_rates_and_back() {
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
