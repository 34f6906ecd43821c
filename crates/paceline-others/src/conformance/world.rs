// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simple path with a sender and a receiver: it turns the conditions of a script into inputs.

use crate::conformance::input::{Cluster, Input, MAX_BPS, Output, Packet, ProbeTag, Sent};
use crate::conformance::script::{Class, Conditions, Script, Steps};
use paceline_units::RandomStream;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The largest packet, bytes.
const PACKET: u64 = 1200;
/// The interval of ticks, µs (`GoogCcNetworkControllerFactory::GetProcessInterval`).
const TICK: i64 = 25_000;
/// The interval of receiver reports, µs.
const REPORT: i64 = 1_000_000;
/// The least time between bursts of a cluster, µs.
const PROBE_DELTA: i64 = 2_000;
/// The offset of the receiver's clock, µs.
const OFFSET: i64 = 1_234_000_000;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Tick,
    Frame,
    Pacer,
    Probe,
    /// A packet arrives.
    Arrival(u64),
    /// The receiver sends feedback.
    Feedback,
    /// Feedback with this number arrives.
    Arrived(u64),
    Report,
    Allocation(u64),
}

/// Sender, path and receiver.
pub struct World {
    c: Conditions,
    random: RandomStream,
    now: i64,
    due: BinaryHeap<Reverse<(i64, u64, Due)>>,
    order: u64,
    /// Sizes of packets that wait at the sender.
    queue: VecDeque<u64>,
    pacer_runs: bool,
    clusters: VecDeque<(Cluster, u64)>,
    sent: Vec<Sent>,
    arrivals: Vec<Option<i64>>,
    reported: Vec<bool>,
    in_flight: u64,
    highest_acknowledged: Option<u64>,
    /// The time at which the link is free.
    free: i64,
    /// Arrived packets that were not reported yet.
    fresh: Vec<u64>,
    /// The packet that the next feedback begins with, and one more than the highest one that arrived.
    next_reported: u64,
    messages: BTreeMap<u64, (u64, u64, Vec<u64>)>,
    next_message: u64,
    /// Lost and all packets at the last receiver report.
    counted: (u64, u64),
    output: Output,
}

impl World {
    /// Creates the world of a script.
    pub fn new(script: &Script) -> Self {
        Self::with(script, script.conditions())
    }

    /// Creates a world with a link of this capacity in kbit/s that never changes, and feedback at this interval in ms.
    pub fn steady(script: &Script, kbps: u64, feedback_ms: i64) -> Self {
        let quiet = Script { class: Class::CapacitySteps, ..*script }.conditions();
        let c = Conditions {
            ms: 60_000,
            capacity: vec![(0, kbps)],
            queue_ms: 300,
            delay_ms: 25,
            feedback_ms,
            source: vec![(0, MAX_BPS / 1000)],
            follows: true,
            fps: 30.0,
            ..quiet
        };
        Self::with(script, c)
    }

    fn with(script: &Script, c: Conditions) -> Self {
        let mut world = Self {
            random: script.stream("world"),
            now: 0,
            due: BinaryHeap::new(),
            order: 0,
            queue: VecDeque::new(),
            pacer_runs: false,
            clusters: VecDeque::new(),
            sent: Vec::new(),
            arrivals: Vec::new(),
            reported: Vec::new(),
            in_flight: 0,
            highest_acknowledged: None,
            free: 0,
            fresh: Vec::new(),
            next_reported: 0,
            messages: BTreeMap::new(),
            next_message: 0,
            counted: (0, 0),
            output: Output::default(),
            c,
        };
        world.schedule(TICK, Due::Tick);
        world.schedule(1000, Due::Frame);
        world.schedule(world.c.feedback_ms * 1000 + world.c.delay_ms * 1000, Due::Feedback);
        world.schedule(REPORT, Due::Report);
        for (ms, kbps) in world.c.allocation.clone() {
            world.schedule(ms * 1000, Due::Allocation(kbps));
        }
        world
    }

    /// Runs the script. `handle` passes an input to the controllers and returns the output of the one that leads.
    pub fn run(mut self, mut handle: impl FnMut(&Input) -> Output) {
        self.take(handle(&Input::Start(0)));
        while let Some(Reverse((at, _, due))) = self.due.pop() {
            if at > self.c.ms * 1000 {
                return;
            }
            self.now = at;
            if let Some(input) = self.step(due) {
                self.take(handle(&input));
            }
        }
    }

    fn take(&mut self, output: Output) {
        for cluster in &output.clusters {
            self.clusters.push_back((*cluster, 0));
            if self.clusters.len() == 1 {
                self.schedule(self.now + 1, Due::Probe);
            }
        }
        self.output = output;
    }

    fn schedule(&mut self, at: i64, due: Due) {
        self.order += 1;
        self.due.push(Reverse((at, self.order, due)));
    }

    fn step(&mut self, due: Due) -> Option<Input> {
        let now = self.now;
        match due {
            Due::Tick => {
                self.schedule(now + TICK, Due::Tick);
                return Some(Input::Tick(now));
            }
            Due::Frame => self.frame(),
            Due::Pacer => return self.pace(),
            Due::Probe => return self.probe(),
            Due::Arrival(number) => {
                let ppm = self.c.drift_ppm;
                let local = now + (now as f64 * ppm * 1e-6) as i64;
                self.arrivals[number as usize] = Some((OFFSET + local) / 1000 * 1000);
                self.fresh.push(number);
            }
            Due::Feedback => self.send_feedback(),
            Due::Arrived(message) => return self.receive_feedback(message),
            Due::Report => {
                self.schedule(now + REPORT, Due::Report);
                return self.report();
            }
            Due::Allocation(kbps) => return Some(Input::Allocation(now, kbps * 1000)),
        }
        None
    }

    /// Queues the packets of a frame.
    fn frame(&mut self) {
        let interval = 1e6 / self.c.fps;
        self.schedule(self.now + interval as i64, Due::Frame);
        let limit = at(&self.c.source, self.now) * 1000;
        let rate = if self.c.follows { limit.min(self.output.target) } else { limit };
        let mut bytes = (rate as f64 * interval / 8e6 * self.random.uniform(0.7, 1.3)) as u64;
        // The queue holds a second at most.
        if self.queue.iter().sum::<u64>() * 8 > rate {
            return;
        }
        while bytes > 0 {
            let size = bytes.clamp(60, PACKET);
            self.queue.push_back(size);
            bytes = bytes.saturating_sub(size);
        }
        if !self.pacer_runs {
            self.pacer_runs = true;
            self.schedule(self.now, Due::Pacer);
        }
    }

    /// Sends the next packet of the queue, or padding.
    fn pace(&mut self) -> Option<Input> {
        let limit = at(&self.c.source, self.now) * 1000;
        let rate = if self.c.follows { self.output.pacing.max(10_000) } else { limit * 3 / 2 };
        let Some(size) = self.queue.pop_front() else {
            // In a closed loop padding fills what the controller wants.
            if self.c.follows && self.output.padding > 0 {
                self.schedule(self.now + (PACKET * 8_000_000 / self.output.padding) as i64, Due::Pacer);
                return Some(self.send(PACKET, None));
            }
            self.pacer_runs = false;
            return None;
        };
        self.schedule(self.now + (size * 8_000_000 / rate) as i64, Due::Pacer);
        Some(self.send(size, None))
    }

    /// Sends the next packet of a cluster.
    fn probe(&mut self) -> Option<Input> {
        let (cluster, sent) = self.clusters.front_mut()?;
        let (cluster, bytes) = (*cluster, (cluster.bps as i64 * cluster.us / 8_000_000).max(1));
        let size = (cluster.bps * PROBE_DELTA as u64 / 8_000_000).clamp(200, PACKET);
        *sent += size;
        let done = *sent as i64 >= bytes && *sent >= size * cluster.packets as u64;
        if done {
            self.clusters.pop_front();
        }
        if !done || !self.clusters.is_empty() {
            self.schedule(self.now + (size * 8_000_000 / cluster.bps) as i64, Due::Probe);
        }
        Some(self.send(size, Some(ProbeTag { id: cluster.id, packets: cluster.packets, bytes })))
    }

    fn send(&mut self, size: u64, probe: Option<ProbeTag>) -> Input {
        let number = self.sent.len() as u64;
        let sent = Sent { number, at: self.now / 1000 * 1000, size, in_flight: self.in_flight, probe };
        self.sent.push(sent);
        self.arrivals.push(None);
        self.reported.push(false);
        self.in_flight += size;
        self.cross(number, size);
        Input::Sent(sent)
    }

    /// Sends a packet over the link.
    fn cross(&mut self, number: u64, size: u64) {
        let waits = self.free - self.now;
        let lost = self.random.chance(at(&self.c.loss, self.now) as f64 / 1000.0);
        let late = self.random.chance(self.c.late.0);
        let later = self.random.uniform(0.0, 1.0) * self.c.late.1 * 1000.0;
        if waits > self.c.queue_ms * 1000 {
            return;
        }
        let mut start = self.free.max(self.now);
        let mut rate = at(&self.c.capacity, start) * 1000;
        let (period, stall) = (self.c.stalls_ms.0 * 1000, self.c.stalls_ms.1 * 1000);
        if period > 0 {
            let into = start.rem_euclid(period + stall);
            // What waited during a stall leaves ten times as fast.
            if into < stall {
                start += stall - into;
            }
            if waits > 0 || into < stall {
                rate *= 10;
            }
        }
        self.free = start + (size * 8_000_000 / rate.max(1)) as i64;
        if !lost {
            let later = if late { later as i64 } else { 0 };
            self.schedule(self.free + self.c.delay_ms * 1000 + later, Due::Arrival(number));
        }
    }

    /// Sends a message on all packets up to the highest one that arrived; and on packets that are late.
    fn send_feedback(&mut self) {
        let jitter = self.random.uniform(0.9, 1.1);
        self.schedule(self.now + (self.c.feedback_ms as f64 * 1000.0 * jitter) as i64, Due::Feedback);
        let Some(highest) = self.fresh.iter().copied().max() else { return };
        let late: Vec<u64> = self.fresh.drain(..).filter(|number| *number < self.next_reported).collect();
        let (first, end) = (self.next_reported, self.next_reported.max(highest + 1));
        self.next_reported = end;
        let ms = self.now / 1000;
        let in_gap = self.c.gaps.iter().any(|(begin, end)| (*begin..*end).contains(&ms));
        if self.random.chance(self.c.feedback_loss) || in_gap {
            return;
        }
        let message = self.next_message;
        self.next_message += 1;
        self.messages.insert(message, (first, end, late));
        self.schedule(self.now + self.c.delay_ms * 1000 + 137, Due::Arrived(message));
    }

    fn receive_feedback(&mut self, message: u64) -> Option<Input> {
        let (first, end, mut numbers) = self.messages.remove(&message)?;
        numbers.sort_unstable();
        numbers.extend(first..end);
        let mut packets = Vec::new();
        for number in numbers {
            let index = number as usize;
            let arrival = self.arrivals[index].filter(|_| !self.reported[index]);
            // A packet that is reported lost twice, or as received again, is no news.
            if arrival.is_none() && self.reported[index] {
                continue;
            }
            self.reported[index] = arrival.is_some();
            packets.push(Packet { sent: self.sent[index], arrival });
        }
        // Packets below the highest acknowledged one are not in flight.
        let begin = self.highest_acknowledged.map_or(0, |number| number + 1);
        if end > begin {
            for sent in &self.sent[begin as usize..end as usize] {
                self.in_flight -= sent.size;
            }
            self.highest_acknowledged = Some(end - 1);
        }
        let has_arrivals = packets.iter().any(|packet| packet.arrival.is_some());
        has_arrivals.then_some(Input::Feedback { at: self.now, packets, in_flight: self.in_flight })
    }

    /// Sends a receiver report and, with it, a round-trip time.
    fn report(&mut self) -> Option<Input> {
        let all = self.next_reported;
        let received = self.arrivals[..all as usize].iter().flatten().count() as u64;
        let lost = all - received;
        let (lost_before, all_before) = self.counted;
        if all == all_before {
            return None;
        }
        self.counted = (lost, all);
        // A packet that arrives late reduces the count; the oracle takes no negative number.
        let lost = lost.saturating_sub(lost_before).min(all - all_before);
        Some(Input::Report(self.now, lost, all - all_before))
    }

    /// Returns the round-trip time of the path, ms.
    pub fn round_trip_ms(&self) -> i64 {
        2 * self.c.delay_ms
    }
}

/// Returns the value at a time in µs.
fn at(steps: &Steps, us: i64) -> u64 {
    let index = steps.partition_point(|(ms, _)| ms * 1000 <= us);
    steps[index.max(1) - 1].1
}
