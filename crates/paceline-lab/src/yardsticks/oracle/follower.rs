// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender half of an oracle: it knows the capacity of its path, and measures what it has in the queue.
//!
//! The scenario tells it two rates as the limits of the target: its share of the path as the highest, and the part that it may use as
//! the lowest. From reports on packets it computes when the path will have carried what it has sent:
//!
//! ```text
//! departure(i) = max(departure(i - 1), sent(i)) + size(i) / capacity
//! ```
//!
//! without the constant delay of the path, from the last packet that arrived on. A packet that was lost leaves this queue.

use paceline::{
    Bounds, Config, Controller, Decision, Event, Feedback, FeedbackRequirement, SendHalf, Setup, Signals, StreamState,
    params,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::collections::{BTreeMap, VecDeque};

/// The time between two decisions.
const INTERVAL: TimeDelta = TimeDelta::from_millis(10);
/// The time between two reports, and the longest. On Wi-Fi a report takes about as much air as a packet of media.
const REPORTS: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(50), TimeDelta::from_millis(250));
/// The least delay is looked for among the packets of one to two of these times.
const BASE_TIME: TimeDelta = TimeDelta::from_secs(5);
/// The pacing rate of a constant rate, relative to it: frames vary.
const CONSTANT_PACING: f64 = 1.5;
/// What waits for longer than this counts as this.
const LONGEST: TimeDelta = TimeDelta::from_secs(10);

params! {
    #[derive(Clone, Debug)]
    pub(super) struct FollowerConfig {
        /// The default values.
        default const DEFAULT;

        /// A queue that takes less than this to drain is left: it is about one frame.
        free_s: f64 = 0.05, unit "s", in 0.0..=10.0;
        /// A queue that takes this time longer stops the sources; a shorter one lowers their rate in proportion.
        drain_s: f64 = 0.15, unit "s", in 0.001..=10.0;
        /// A constant rate without feedback in place of all this; 0: none.
        constant_bps: f64 = 0.0, unit "bit/s", in 0.0..=1e12;
    }
}

impl Config for FollowerConfig {
    const CONTROLS: bool = false;

    fn halves(&self, setup: &Setup) -> Controller {
        if self.constant_bps > 0.0 {
            return Controller::from_sender(Constant(Rate::from_bps_f64(self.constant_bps)));
        }
        let feedback = FeedbackRequirement::new(REPORTS.0, REPORTS.1).with_ecn(true);
        Controller::from_sender(Follower::new(self, setup)).with_feedback(Some(feedback))
    }
}

#[derive(Clone, Debug)]
struct Constant(Rate);

impl SendHalf for Constant {
    fn handle_event(&mut self, _: Time, _: &Event<'_>, _: &mut Signals) {}

    fn decision(&self) -> Decision {
        Decision::new(self.0).with_pacing(self.0.scale(CONSTANT_PACING)).with_ecn(Ecn::Ect1)
    }
}

#[derive(Clone, Debug)]
struct Follower {
    config: FollowerConfig,
    bounds: Bounds,
    path: Path,
    /// What waits in the pacer, of each stream.
    waiting: BTreeMap<StreamId, DataSize>,
    target: Rate,
    due: Time,
}

#[derive(Clone, Debug, Default)]
struct Path {
    /// Packets that are neither reported nor older than one that arrived: number, time, size.
    sent: VecDeque<(u64, Time, DataSize)>,
    /// When the last packet that arrived left the queue, on the sender's clock.
    departed: Time,
    /// The least difference of the two clocks in the current time and in the one before, and the end of the current one.
    base: (Option<TimeDelta>, Option<TimeDelta>),
    base_until: Time,
}

impl Path {
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        if now >= self.base_until {
            self.base = (None, self.base.0);
            self.base_until = now + BASE_TIME;
        }
        let elapsed = |sent: Time, arrival: RemoteTime| (arrival - RemoteTime::ZERO) - (sent - Time::ZERO);
        for packet in feedback.packets {
            if let Some(arrival) = packet.arrival {
                let delay = elapsed(packet.sent, arrival);
                self.base.0 = Some(self.base.0.map_or(delay, |base| base.min(delay)));
                let base = self.base.1.map_or(delay, |last| last.min(delay)).min(self.base.0.unwrap_or(delay));
                self.departed = self.departed.max(packet.sent + (delay - base));
                while self.sent.front().is_some_and(|(number, ..)| *number <= packet.sequence) {
                    self.sent.pop_front();
                }
            } else {
                self.sent.retain(|(number, ..)| *number != packet.sequence);
            }
        }
    }

    /// Returns how long the path needs to carry what is on it.
    fn queue(&self, now: Time, capacity: Rate) -> TimeDelta {
        if self.sent.is_empty() {
            return TimeDelta::ZERO;
        }
        let longest = now + LONGEST;
        let carried = |free: Time, (_, sent, size): &(u64, Time, DataSize)| free.max(*sent) + time_for(*size, capacity);
        self.sent.iter().fold(self.departed, |free, packet| carried(free, packet).min(longest)) - now
    }
}

fn time_for(size: DataSize, capacity: Rate) -> TimeDelta {
    if capacity.is_zero() { LONGEST } else { (size / capacity).min(LONGEST) }
}

impl Follower {
    fn new(config: &FollowerConfig, setup: &Setup) -> Self {
        let mut new = Self {
            config: config.clone(),
            bounds: setup.bounds(),
            path: Path::default(),
            waiting: BTreeMap::new(),
            target: Rate::ZERO,
            due: Time::ZERO,
        };
        new.decide(Time::ZERO);
        new
    }

    fn decide(&mut self, now: Time) {
        let capacity = self.bounds.max;
        let waiting: DataSize = self.waiting.values().copied().sum();
        let backlog = self.path.queue(now, capacity).max(TimeDelta::ZERO) + time_for(waiting, capacity);
        let excess = (backlog.as_secs_f64() - self.config.free_s).max(0.0);
        let part = (1.0 - excess / self.config.drain_s).max(0.0);
        self.target = capacity.scale(part).min(self.bounds.min);
        self.due = now + INTERVAL;
    }
}

impl SendHalf for Follower {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Sent(packet) => self.path.sent.push_back((packet.sequence, now, packet.size)),
            Event::Feedback(feedback) => {
                self.path.handle_feedback(now, feedback);
                self.decide(now);
            }
            Event::Stream(StreamState { stream, queued, .. }) => _ = self.waiting.insert(*stream, *queued),
            Event::StreamRemoved(stream) => _ = self.waiting.remove(&stream),
            Event::Bounds(bounds) => {
                self.bounds = *bounds;
                self.decide(now);
            }
            Event::RouteChange(setup) => *self = Self { bounds: self.bounds, ..Self::new(&self.config, setup) },
            Event::Timeout => self.decide(now),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due)
    }

    fn decision(&self) -> Decision {
        Decision::new(self.target).with_pacing(self.bounds.max.max(self.target)).with_ecn(Ecn::Ect1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::altered::tests::{SETUP, at};
    use super::*;
    use paceline::{PacketReport, SentPacket};

    /// By hand: 1 Mbit/s carries 1250 bytes in 10 ms. The first packet arrives without a queue. The other three, sent at 10, 11 and
    /// 12 ms, leave until 40 ms, so at 15 ms 25 ms wait; when one of them is lost, 15 ms.
    #[test]
    fn queue_is_what_was_sent_and_not_carried() {
        let (mut path, capacity, size) = (Path::default(), Rate::from_kbps(1000), DataSize::from_bytes(1250));
        path.sent = [(0, 0), (1, 10), (2, 11), (3, 12)].map(|(number, ms)| (number, at(ms), size)).into();
        let mut report = |packet: PacketReport| {
            path.handle_feedback(at(15), &Feedback::new(&[packet], DataSize::ZERO, DataSize::ZERO));
            path.queue(at(15), capacity)
        };
        let arrived = PacketReport::new(0, at(0), size, Some(RemoteTime::from_millis(70_020)));
        assert_eq!(report(arrived), TimeDelta::from_millis(25));
        assert_eq!(report(PacketReport::new(2, at(11), size, None)), TimeDelta::from_millis(15));
    }

    /// By hand: of the share of 1 Mbit/s the flow may use 600 kbit/s. 125 ms of queue are 75 ms too much, half of 150 ms, which
    /// leave 500 kbit/s; 200 ms leave nothing.
    #[test]
    fn the_target_is_lower_by_the_queue() {
        let mut half = FollowerConfig::default().halves(&SETUP).send.unwrap();
        let mut handle = |event: Event<'_>| {
            half.handle_event(at(0), &event, &mut Signals::disabled());
            half.decision().target.as_bps()
        };
        let bounds = Bounds::new(Rate::from_kbps(600), Rate::from_kbps(1000));
        assert_eq!(handle(Event::Bounds(&bounds)), 600_000);
        handle(Event::Sent(&SentPacket::new(0, DataSize::from_bytes(15_625))));
        assert_eq!(handle(Event::Timeout), 500_000);
        handle(Event::Sent(&SentPacket::new(1, DataSize::from_bytes(9_375))));
        assert_eq!(handle(Event::Timeout), 0);
    }
}
