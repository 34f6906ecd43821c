// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scream-libwebrtc` beside libwebrtc's code: the same packets and reports, decision by decision.
//!
//! `vectors/scream-libwebrtc.json` contains decisions of libwebrtc's `ScreamNetworkController` (f3ae3eb62e) in calls over random
//! links. [`Call`] makes each call again from its number. What is sent depends on the decisions of this implementation, so a
//! difference would also change what follows.

use paceline::{
    Bounds, Config, Event, Feedback, Guard, Message, PacketReport, RoundTrip, ScreamLibwebrtcConfig, SendHalf,
    SentPacket, Setup, Signals, StreamState, Window,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};
use serde_json::Value;
use std::collections::VecDeque;

/// Numbers of a linear congruential generator (Knuth's MMIX).
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }
    fn one_of<const N: usize>(&mut self, choices: [u64; N]) -> u64 {
        choices[self.below(N as u64) as usize]
    }
}

/// A packet that was sent. Times in µs.
#[derive(Clone, Copy)]
struct Sent {
    sequence: u64,
    at: u64,
    size: u64,
    /// `None` if it was dropped.
    arrival: Option<u64>,
    marked: bool,
    /// Whether a report said that it is missing.
    missing: bool,
}

/// A report on its way: when it arrives, when it was written, its packets.
struct Written {
    due: u64,
    at: u64,
    packets: Vec<Sent>,
}

/// What a call draws once. Times in µs, shares of packets in thousandths.
struct Path {
    delay: u64,
    queue_max: u64,
    mark: u64,
    lost: u64,
    reordered: u64,
    lost_reports: u64,
    interval: u64,
    /// The time without reports.
    silent: (u64, u64),
    /// Rate of the source over the target, percent, and the highest rate of the source.
    used: u64,
    source_max: u64,
}

/// The decisions at one time: target, pacing rate and padding in bit/s, the send window in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Decisions {
    target: u64,
    pacing: u64,
    padding: u64,
    window: u64,
}

/// A source, a pacer, a link with a queue, and a receiver, in steps of 1 ms.
struct Call {
    half: Guard,
    signals: Signals,
    numbers: Numbers,
    bounds: Bounds,
    path: Path,
    now: u64,
    capacity: u64,
    /// When the link is free, and when its capacity changes.
    free: u64,
    next_change: u64,
    next_frame: u64,
    next_packet: u64,
    next_report: u64,
    /// The pacer's queue.
    queue: VecDeque<u64>,
    /// What was sent and not reported as arrived, by number.
    sent: VecDeque<Sent>,
    reports: VecDeque<Written>,
    /// The number after the highest one that a report mentions; the same as the sender knows it.
    reported: u64,
    highest: u64,
    /// Number and size of the packets in flight.
    in_flight: VecDeque<(u64, u64)>,
    sequence: u64,
    /// The decisions after each report.
    decisions: Vec<Decisions>,
}

/// The receiver's clock is ahead.
const CLOCK_OFFSET: u64 = 5_000_000;
const FRAME: u64 = 33_000;

impl Call {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let start = Rate::from_kbps(numbers.between(100, 2000));
        let (min, max) = (numbers.one_of([30, 100]), numbers.one_of([2500, 6000, 30_000]));
        let bounds = Bounds::new(Rate::from_kbps(min), Rate::from_kbps(max));
        let setup = Setup::new(start, bounds.min, bounds.max);
        let path = Path {
            delay: numbers.one_of([2, 5, 10, 25, 50, 120]) * 1000,
            queue_max: numbers.between(20, 400) * 1000,
            mark: numbers.one_of([1, 5, 20, 1000, 1000]) * 1000,
            lost: numbers.one_of([0, 0, 1, 10, 60]),
            reordered: numbers.one_of([0, 0, 10]),
            lost_reports: numbers.one_of([0, 0, 50]),
            interval: numbers.between(10, 110) * 1000,
            silent: if numbers.below(16) == 0 { (20_000_000, 85_000_000) } else { (0, 0) },
            used: numbers.one_of([20, 60, 95, 100, 100, 130]),
            source_max: numbers.between(300, 12_000) * 1000,
        };
        Self {
            half: ScreamLibwebrtcConfig::LIBWEBRTC.halves(&setup).send.unwrap(),
            signals: Signals::enabled(),
            numbers,
            bounds,
            path,
            now: 0,
            capacity: 0,
            free: 0,
            next_change: 0,
            next_frame: 0,
            next_packet: 0,
            next_report: 0,
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            reports: VecDeque::new(),
            reported: 0,
            highest: 0,
            in_flight: VecDeque::new(),
            sequence: 0,
            decisions: Vec::new(),
        }
    }

    /// Runs for a minute, or for two if reports are missing for more than one.
    fn run(mut self) -> Self {
        let end = if self.path.silent.1 > 0 { 120_000_000 } else { 60_000_000 };
        while self.now < end {
            self.change();
            self.make_frame();
            self.send();
            self.write_report();
            self.deliver_reports();
            if self.half.poll_timeout().is_some_and(|due| due <= time(self.now)) {
                self.handle(&Event::Timeout);
            }
            self.now += 1000;
        }
        self
    }

    fn handle(&mut self, event: &Event<'_>) {
        self.half.handle_event(time(self.now), event, &mut self.signals);
        self.signals.drain().for_each(drop);
    }

    fn now_decides(&self) -> Decisions {
        let decision = self.half.decision();
        let Some(Window::AfterHighest(window)) = decision.window else { panic!("no window") };
        let (target, pacing) = (decision.target.as_bps(), decision.pacing.as_bps());
        Decisions { target, pacing, padding: decision.padding.as_bps(), window: window.as_bytes() }
    }

    /// Changes capacity, limits and the receiver's estimate at random times.
    fn change(&mut self) {
        if self.now < self.next_change {
            return;
        }
        self.next_change = self.now + self.numbers.between(2_000_000, 25_000_000);
        self.capacity = self.numbers.one_of([150_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 20_000_000]);
        match self.numbers.below(8) {
            0 => {
                self.bounds.max = Rate::from_kbps(self.numbers.between(200, 8000));
                let bounds = self.bounds;
                self.handle(&Event::Bounds(&bounds));
            }
            1 => {
                let remb = Rate::from_kbps(self.numbers.between(200, 8000));
                self.handle(&Event::Message(&Message::Remb(remb)));
            }
            2 => self.path.source_max = self.numbers.between(300, 12_000) * 1000,
            _ => {}
        }
    }

    /// The source makes a frame of its share of the target. Padding follows if there is nothing else to send.
    fn make_frame(&mut self) {
        if self.now < self.next_frame {
            return;
        }
        self.next_frame += FRAME;
        let queued = self.queue.iter().sum();
        let state = StreamState::new(StreamId(0), DataSize::from_bytes(queued));
        let max = Rate::from_bps(self.path.source_max);
        self.handle(&Event::Stream(&state.with_max(max)));
        let Decisions { target, padding, .. } = self.now_decides();
        let rate = self.half.stream_rate(StreamId(0)).map_or(target, Rate::as_bps);
        let media = (rate * self.path.used / 100).min(self.path.source_max).min(20_000_000);
        let bytes = media * FRAME / 8_000_000;
        let padded = if queued == 0 { (padding * FRAME / 8_000_000).max(bytes) } else { bytes };
        let count = padded.div_ceil(1200).min(200);
        self.queue.extend((0..count).map(|_| padded / count));
    }

    /// Sends what the pacer and the window allow.
    fn send(&mut self) {
        self.next_packet = self.next_packet.max(self.now);
        while self.next_packet < self.now + 1000 {
            let Decisions { pacing, window, .. } = self.now_decides();
            let Some(&size) = self.queue.front().filter(|_| self.flight() < window) else { return };
            self.queue.pop_front();
            self.in_flight.push_back((self.sequence, size));
            self.handle(&Event::Sent(&SentPacket::new(self.sequence, DataSize::from_bytes(size))));
            self.transmit(size);
            self.sequence += 1;
            self.next_packet += (size * 8_000_000 / pacing).max(1);
        }
    }

    fn transmit(&mut self, size: u64) {
        let wait = self.free.saturating_sub(self.now);
        let is_dropped = wait > self.path.queue_max || self.numbers.below(1000) < self.path.lost;
        let late = if self.numbers.below(1000) < self.path.reordered { self.numbers.between(1000, 60_000) } else { 0 };
        if wait <= self.path.queue_max {
            self.free = self.now + wait + size * 8_000_000 / self.capacity;
        }
        let arrival = (!is_dropped).then_some(self.free + self.path.delay + late);
        let (sequence, marked) = (self.sequence, wait > self.path.mark);
        self.sent.push_back(Sent { sequence, at: self.now, size, arrival, marked, missing: false });
    }

    fn flight(&self) -> u64 {
        self.in_flight.iter().map(|(_, size)| size).sum()
    }

    /// Writes a report on all packets up to the highest that arrived, and on those that arrived after a report said that they are
    /// missing.
    fn write_report(&mut self) {
        if self.now < self.next_report {
            return;
        }
        self.next_report = self.now + self.path.interval;
        let (now, reported) = (self.now, self.reported);
        let has_arrived = |sent: &Sent| sent.arrival.is_some_and(|at| at <= now);
        let highest = self.sent.iter().filter(|sent| has_arrived(sent)).map(|sent| sent.sequence + 1).max();
        self.reported = highest.unwrap_or(0).max(reported);
        let mut packets = Vec::new();
        for sent in self.sent.iter_mut().filter(|sent| sent.sequence < self.reported) {
            if has_arrived(sent) {
                packets.push(*sent);
            } else if !sent.missing {
                sent.missing = true;
                packets.push(Sent { arrival: None, ..*sent });
            }
        }
        self.sent.retain(|sent| (sent.sequence >= self.reported || !has_arrived(sent)) && now - sent.at < 30_000_000);
        let is_silent = (self.path.silent.0..self.path.silent.1).contains(&now);
        let is_lost = is_silent || self.numbers.below(1000) < self.path.lost_reports;
        if !packets.is_empty() && !is_lost {
            self.reports.push_back(Written { due: now + self.path.delay, at: now, packets });
        }
    }

    fn deliver_reports(&mut self) {
        while self.reports.front().is_some_and(|report| report.due <= self.now) {
            let report = self.reports.pop_front().unwrap();
            let arrived = report.packets.iter().rev().find_map(|sent| Some((sent.sequence, sent.at, sent.arrival?)));
            if let Some((highest, ..)) = arrived {
                self.highest = self.highest.max(highest + 1);
                self.in_flight.retain(|(sequence, _)| *sequence > highest);
            }
            let reports: Vec<PacketReport> = report.packets.iter().map(packet_report).collect();
            let rtt = arrived.map(|(_, at, arrival)| {
                let rtt = TimeDelta::from_micros((self.now - at - (report.at - arrival)) as i64);
                RoundTrip::new(rtt, rtt)
            });
            let flight = DataSize::from_bytes(self.flight());
            let feedback = Feedback::new(&reports, flight, flight).with_rtt(rtt);
            self.handle(&Event::Feedback(&feedback));
            self.decisions.push(self.now_decides());
        }
    }
}

fn time(us: u64) -> Time {
    Time::from_nanos(us as i64 * 1000)
}

fn packet_report(sent: &Sent) -> PacketReport {
    let arrival = sent.arrival.map(|at| RemoteTime::from_nanos((at + CLOCK_OFFSET) as i64 * 1000));
    let ecn = arrival.map(|_| if sent.marked { Ecn::Ce } else { Ecn::Ect1 });
    PacketReport::new(sent.sequence, time(sent.at), DataSize::from_bytes(sent.size), arrival).with_ecn(ecn)
}

/// Every 20th report of 24 calls: target, pacing rate, send window, and whether there is padding.
#[test]
fn decisions_are_those_of_libwebrtc() {
    let file: Value = serde_json::from_str(include_str!("../vectors/scream-libwebrtc.json")).unwrap();
    let calls = file["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 24);
    let (mut count, mut padded) = (0, 0);
    for call in calls {
        let number = call["call"].as_u64().unwrap();
        let ours = Call::new(number).run().decisions;
        let theirs = call["decisions"].as_array().unwrap();
        assert_eq!(theirs.len(), ours.len().div_ceil(20), "call {number}");
        for (n, (ours, theirs)) in ours.iter().step_by(20).zip(theirs).enumerate() {
            let theirs: Vec<u64> = theirs.as_array().unwrap().iter().map(|x| x.as_u64().unwrap()).collect();
            let pads = u64::from(ours.padding > 0);
            assert_eq!([ours.target, ours.pacing, ours.window, pads], theirs[..], "call {number}, report {}", 20 * n);
            (count, padded) = (count + 1, padded + pads);
        }
    }
    println!("{count} decisions");
    assert!(count > 1000 && padded > count / 10 && padded < count / 2, "{count} decisions, {padded} with padding");
}
