// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scream-v2-cpp` in closed loop beside the authors' C++: the same script of capacities, the same link, the same marks.
//!
//! `vectors/scream-v2-cpp.json` contains the scripts and the mean target of each second that EricssonResearch/scream@c8f84c3
//! reached on them, in a program of the same steps as [`Loop`]. The first seconds are not compared: until 2 s the C++ has no
//! `max_bytes_in_flight_prev`, so its first mark lowers the window to the minimum.
//!
//! In the case `losses` all packets of the C++ have one RTP timestamp. With timestamps that advance with the frames, its loss
//! detection extends the reordering window of a packet by its age in media time (`tsDiffCorrection`): it then finds a loss only
//! 512 packets later, and its target swings between 0.2 and 6 Mbit/s.

use paceline::{
    Decision, Event, Feedback, Guard, PacketKind, PacketReport, QueuedFrame, Registry, SendHalf, SentPacket, Setup,
    Signals, StreamState, Window,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};
use serde_json::Value;
use std::collections::VecDeque;

const STEP: TimeDelta = TimeDelta::from_micros(500);
const FRAME: TimeDelta = TimeDelta::from_millis(20);
const FEEDBACK: TimeDelta = TimeDelta::from_millis(10);
const PACKET: u64 = 1200;

#[derive(Clone, Copy)]
struct Sent {
    sequence: u64,
    at: Time,
    size: DataSize,
    /// `None` if the queue dropped it.
    arrival: Option<Time>,
    marked: bool,
}

struct Script {
    owd: TimeDelta,
    queue_max: TimeDelta,
    mark: TimeDelta,
    l4s: bool,
    max: Rate,
    seconds: i64,
    capacities: Vec<(f64, Rate)>,
}

/// A source that makes its target, in frames each 20 ms, a pacer, and a link with a mark and a limit in time.
struct Loop {
    script: Script,
    half: Guard,
    signals: Signals,
    now: Time,
    next_frame: Time,
    next_feedback: Time,
    next_packet: Time,
    link_free: Time,
    carry: f64,
    queue: VecDeque<DataSize>,
    sent: VecDeque<Sent>,
    in_flight: DataSize,
    /// Messages on their way: arrival, packets.
    messages: VecDeque<(Time, Vec<Sent>)>,
    sequence: u64,
}

impl Loop {
    fn new(script: Script) -> Self {
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(100), script.max);
        let flags = [("l4s", f64::from(u8::from(script.l4s))), ("queue_max_ms", 1e4)];
        let values: Vec<(String, f64)> = flags.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let half = Registry::standard().get("scream-v2-cpp").unwrap().build(&setup, &values).unwrap().send.unwrap();
        Self {
            script,
            half,
            signals: Signals::disabled(),
            now: Time::ZERO,
            next_frame: Time::ZERO,
            next_feedback: Time::ZERO,
            next_packet: Time::ZERO,
            link_free: Time::ZERO,
            carry: 0.0,
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            in_flight: DataSize::ZERO,
            messages: VecDeque::new(),
            sequence: 0,
        }
    }

    /// Returns the mean target of each second, kbit/s.
    fn run(mut self) -> Vec<f64> {
        let (mut means, mut sum, mut count) = (Vec::new(), 0.0, 0);
        let end = Time::from_secs(self.script.seconds);
        while self.now < end {
            self.send();
            self.collect_feedback();
            self.deliver_feedback();
            if self.half.poll_timeout().is_some_and(|due| due <= self.now) {
                self.half.handle_event(self.now, &Event::Timeout, &mut self.signals);
            }
            self.make_frame();
            (sum, count) = (sum + self.half.decision().target.as_bps_f64(), count + 1);
            self.now += STEP;
            if self.now.as_nanos() % 1_000_000_000 == 0 {
                means.push(sum / f64::from(count) / 1000.0);
                (sum, count) = (0.0, 0);
            }
        }
        means
    }

    /// The receiver reports all packets up to the last one that arrived.
    fn collect_feedback(&mut self) {
        if self.now < self.next_feedback {
            return;
        }
        self.next_feedback += FEEDBACK;
        let arrived = |sent: &Sent| sent.arrival.is_some_and(|at| at <= self.now);
        if let Some(last) = self.sent.iter().rposition(arrived) {
            let packets = self.sent.drain(..=last).collect();
            self.messages.push_back((self.now + self.script.owd, packets));
        }
    }

    fn deliver_feedback(&mut self) {
        while self.messages.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, packets) = self.messages.pop_front().unwrap();
            let ecn = |marked| {
                if marked {
                    Ecn::Ce
                } else if self.script.l4s {
                    Ecn::Ect1
                } else {
                    Ecn::Ect0
                }
            };
            let report = |sent: &Sent| {
                let arrival = sent.arrival.map(|at| RemoteTime::from_nanos(at.as_nanos()));
                let ecn = arrival.map(|_| ecn(sent.marked));
                PacketReport::new(sent.sequence, sent.at, sent.size, arrival).with_ecn(ecn)
            };
            let reports: Vec<PacketReport> = packets.iter().map(report).collect();
            self.in_flight = self.in_flight.saturating_sub(packets.iter().map(|sent| sent.size).sum());
            let feedback = Feedback::new(&reports, self.in_flight, self.in_flight);
            self.half.handle_event(self.now, &Event::Feedback(&feedback), &mut self.signals);
        }
    }

    fn make_frame(&mut self) {
        if self.now < self.next_frame {
            return;
        }
        self.next_frame += FRAME;
        let queued = self.queue.iter().copied().sum();
        let state = StreamState::new(StreamId(0), queued).with_max(self.script.max);
        self.half.handle_event(self.now, &Event::Stream(&state), &mut Signals::disabled());
        let want = self.half.decision().target.as_bps_f64() * FRAME.as_secs_f64() / 8.0 + self.carry;
        let bytes = want as u64;
        self.carry = want - bytes as f64;
        let count = bytes.div_ceil(PACKET);
        let sizes = (0..count).map(|i| DataSize::from_bytes(bytes / count + u64::from(i < bytes % count)));
        self.queue.extend(sizes);
        let size = DataSize::from_bytes(bytes);
        let frame = QueuedFrame::new(StreamId(0), size, count as u32);
        self.half.handle_event(self.now, &Event::Frame(&frame), &mut Signals::disabled());
    }

    /// Sends the packets up to now, each at its time.
    fn send(&mut self) {
        loop {
            let Decision { pacing, window, .. } = self.half.decision();
            let Some(Window::AfterHighest(window)) = window else { panic!("no window") };
            if self.now < self.next_packet {
                return;
            }
            let waits = self.in_flight > window;
            let Some(size) = (!waits).then(|| self.queue.pop_front()).flatten() else {
                self.next_packet = self.now;
                return;
            };
            let at = self.next_packet;
            let packet = SentPacket::new(self.sequence, size).with_kind(PacketKind::Media);
            self.half.handle_event(at, &Event::Sent(&packet), &mut Signals::disabled());
            self.in_flight += size;
            let backlog = (self.link_free - at).max(TimeDelta::ZERO);
            let arrives = backlog <= self.script.queue_max;
            if arrives {
                self.link_free = self.link_free.max(at) + size / self.capacity();
            }
            self.sent.push_back(Sent {
                sequence: self.sequence,
                at,
                size,
                arrival: arrives.then_some(self.link_free + self.script.owd),
                marked: backlog > self.script.mark,
            });
            self.sequence += 1;
            self.next_packet = at + size / pacing;
        }
    }

    fn capacity(&self) -> Rate {
        let at = (self.now - Time::ZERO).as_secs_f64();
        self.script.capacities.iter().rev().find(|(from, _)| *from <= at).expect("a capacity from 0 s on").1
    }
}

fn script(case: &Value) -> Script {
    let number = |key: &str| case[key].as_f64().unwrap_or_else(|| panic!("{key}"));
    let capacities = case["capacity_kbps"].as_array().unwrap().iter();
    Script {
        owd: TimeDelta::from_millis_f64(number("rtt_ms") / 2.0),
        queue_max: TimeDelta::from_millis_f64(number("queue_ms")),
        mark: TimeDelta::from_millis_f64(number("mark_ms")),
        l4s: case["l4s"].as_bool().unwrap(),
        max: Rate::from_kbps(number("max_kbps") as u64),
        seconds: number("seconds") as i64,
        capacities: capacities
            .map(|step| (step[0].as_f64().unwrap(), Rate::from_kbps(step[1].as_u64().unwrap())))
            .collect(),
    }
}

/// From 5 s after the start and after each step of the capacity, the mean target is within 5 % of that of the C++.
#[test]
fn targets_are_those_of_the_authors_code() {
    let file: Value = serde_json::from_str(include_str!("../vectors/scream-v2-cpp.json")).unwrap();
    let mut failures = Vec::new();
    for case in file["cases"].as_array().unwrap() {
        let script = script(case);
        let theirs: Vec<f64> = case["target_kbps"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let steps: Vec<usize> = script.capacities.iter().map(|(at, _)| *at as usize).collect();
        let end = script.seconds as usize;
        let ours = Loop::new(script).run();
        for (n, step) in steps.iter().enumerate() {
            let (from, to) = (step + 5, steps.get(n + 1).copied().unwrap_or(end));
            let mean = |of: &[f64]| of[from..to].iter().sum::<f64>() / (to - from) as f64;
            let ratio = mean(&ours) / mean(&theirs);
            println!(
                "{} from {from} s: {:.0} kbit/s, {:.0} of the C++, {ratio:.3}",
                case["id"],
                mean(&ours),
                mean(&theirs)
            );
            if !(0.95..=1.05).contains(&ratio) {
                failures.push(format!("{} from {from} s: {ratio:.3}\n{ours:.0?}\n{theirs:.0?}", case["id"]));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
