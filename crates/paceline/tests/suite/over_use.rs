// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every registered controller lowers its rate when the queue grows, and does not when the queue is empty.

use paceline::{
    Arrival, Controller, Entry, Event, Feedback, History, Message, PacketReport, ReceiverReport, Registry, RoundTrip,
    SentPacket, Setup, Signals, StreamState,
};
use paceline_units::{DataSize, Fraction, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::collections::VecDeque;

/// Frames of three packets, 33 ms apart: 873 kbit/s. From this frame on each takes 8 ms more than the previous one, so
/// that packets arrive at 702 kbit/s.
const ONSET: i64 = 300;
const FRAMES: i64 = 420;
const SIZE: DataSize = DataSize::from_bytes(1200);
/// The one-way delay without the queue, and the offset of the receiver's clock, ms.
const OWD: i64 = 25;
const CLOCK_OFFSET: i64 = 70_000;
/// The sources use their maximum: some controllers do not change a target that is not used.
const SETUP: Setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(900));

/// Within four seconds of a growing queue the rate falls; before, it does not. The rate is that of the receiver's
/// messages if they contain one, otherwise the sender's target.
#[test]
fn growing_queue_lowers_the_rate() {
    let registry = Registry::standard();
    let (controllers, uncontrolled): (Vec<_>, Vec<_>) = registry.iter().partition(|entry| entry.controls());
    assert_eq!(uncontrolled.iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["fixed"]);
    for entry in controllers.into_iter().filter(|entry| measures_delay(entry)) {
        let (steady, growing): (Vec<_>, Vec<_>) = Call::new(entry).rates().into_iter().partition(|(f, _)| *f <= ONSET);
        let rates = || format!("{}: {steady:?}, {growing:?}", entry.name());
        // Without a queue the rate never falls, except above the incoming rate, which some controllers follow.
        let stays = steady.is_sorted_by_key(|(_, rate)| *rate) || steady.iter().all(|(_, r)| r.as_bps() > 873_000);
        let regular = if entry.name() == "gcc-2013" { steady.is_empty() } else { steady.len() >= 5 };
        assert!(stays && regular, "{}", rates());
        let least = growing.iter().map(|(_, rate)| rate.as_bps() / 1000).min().expect("rates");
        // NADA of RFC 8698 reduces the rate down to the minimum while the delay grows. The target of SCReAM version 2 is its
        // window over the round-trip time, and both change.
        let to_minimum = entry.name().starts_with("scream-v2")
            || ["nada", "nada-sender", "scream-libwebrtc"].contains(&entry.name());
        // The queue of a second brings drc to the least part of the delivery rate, 0.3 of 702 kbit/s.
        let lowest = if to_minimum {
            50
        } else if entry.name() == "drc" {
            200
        } else {
            500
        };
        assert!((lowest..=860).contains(&least), "{}", rates());
    }
}

/// Whether a controller sees the delay of packets, at the receiver or by feedback.
fn measures_delay(entry: &Entry) -> bool {
    let pair = entry.build(&SETUP, &[]).expect("valid defaults");
    pair.receive.is_some() || pair.feedback.is_some()
}

/// A controller and a path on which the sending rate does not depend on the controller.
struct Call {
    pair: Controller,
    history: History,
    signals: Signals,
    /// The packets on the path: arrival time and number.
    on_path: VecDeque<(i64, u64)>,
    /// The arrivals that were not reported yet.
    arrived: Vec<(u64, RemoteTime)>,
    /// By frame: the rate in the receiver's message, or the sender's target after feedback.
    rates: Vec<(i64, Rate)>,
}

impl Call {
    fn new(entry: &Entry) -> Self {
        let pair = entry.build(&SETUP, &[]).expect("valid defaults");
        let (on_path, arrived, rates) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { pair, history: History::new(), signals: Signals::disabled(), on_path, arrived, rates }
    }

    fn rates(mut self) -> Vec<(i64, Rate)> {
        for now in 0..33 * FRAMES {
            if now % 33 % 4 == 0 && now % 33 < 12 {
                self.send(now);
            }
            while self.on_path.front().is_some_and(|(at, _)| *at == now) {
                let (_, sequence) = self.on_path.pop_front().expect("it has a front");
                self.arrive(now, sequence);
            }
            if now % 50 == 0 {
                self.send_feedback(now);
            }
            if now % 1000 == 999 {
                let rtt = RoundTrip::after(None, TimeDelta::from_millis(2 * OWD + queue(now / 33)));
                let report = ReceiverReport::new(Fraction::from_q8(0));
                let half = self.pair.send.as_mut().expect("a send half");
                for event in [Event::RoundTrip(&rtt), Event::Report(&report)] {
                    half.handle_event(Time::from_millis(now), &event, &mut self.signals);
                }
            }
        }
        self.rates
    }

    fn send(&mut self, now: i64) {
        let (sequence, stream) = (self.history.next_sequence(), StreamId(0));
        let (at, packet) = (Time::from_millis(now), SentPacket::new(sequence, SIZE).with_stream(stream));
        let half = self.pair.send.as_mut().expect("a send half");
        while half.poll_timeout().is_some_and(|due| due <= at) {
            half.handle_event(at, &Event::Timeout, &mut self.signals);
        }
        half.handle_event(at, &Event::Stream(&StreamState::new(stream, DataSize::ZERO)), &mut Signals::disabled());
        half.handle_event(at, &Event::Sent(&packet), &mut Signals::disabled());
        self.history.handle_sent(at, &packet);
        self.on_path.push_back((now + OWD + queue(now / 33), sequence));
    }

    /// The receive half handles the packet immediately; per-packet feedback reports it later.
    fn arrive(&mut self, now: i64, sequence: u64) {
        let at = RemoteTime::from_millis(CLOCK_OFFSET + now);
        self.arrived.push((sequence, at));
        let (Some(half), Some(sender)) = (&mut self.pair.receive, &mut self.pair.send) else { return };
        let (frame, part) = (sequence as i64 / 3, sequence as i64 % 3);
        let sent = Time::from_millis(33 * frame + 4 * part);
        let (timestamp, sequence) = (2970 * frame as u32, sequence as u16);
        let arrival = Arrival::new(timestamp, sequence, SIZE).with_sent(Some(sent));
        half.handle_arrival(at, &arrival, &mut self.signals);
        if half.poll_timeout().is_some_and(|due| due <= at) {
            half.handle_timeout(at, &mut self.signals);
        }
        while let Some(message) = half.poll_message(at) {
            sender.handle_event(Time::from_millis(now), &Event::Message(&message), &mut self.signals);
            let target = sender.decision().target;
            self.rates.push((frame, if let Message::Remb(rate) = message { rate } else { target }));
        }
    }

    fn send_feedback(&mut self, now: i64) {
        let settle = |(sequence, at)| self.history.settle(sequence, Some(at), None);
        let packets: Vec<PacketReport> = self.arrived.drain(..).filter_map(settle).collect();
        let (Some(last), Some(half)) = (packets.last(), &mut self.pair.send) else { return };
        if self.pair.receive.is_none() {
            let flight = self.history.flight();
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let feedback = Feedback::new(&packets, outstanding, after_highest);
            half.handle_event(Time::from_millis(now), &Event::Feedback(&feedback), &mut self.signals);
            self.rates.push((last.sequence as i64 / 3, half.decision().target));
        }
    }
}

/// Returns the queuing delay of the packets of this frame, ms.
fn queue(frame: i64) -> i64 {
    8 * (frame - ONSET).max(0)
}
