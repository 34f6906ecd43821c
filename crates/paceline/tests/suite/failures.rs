// SPDX-License-Identifier: MIT OR Apache-2.0
//! Halves that fail: the sender and the receiver report it, and do not call them any more.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use paceline::{
    Arrival, Controller, Decision, Event, Failure, FeedbackRequirement, Message, PacketHead, ReceiveHalf, Receiver,
    SendHalf, Sender, SenderConfig, SenderEvent, Setup, Signals, StreamConfig,
};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};
use std::sync::Arc;

const SETUP: Setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(8000));
const SIZE: DataSize = DataSize::from_bytes(1200);
const NEVER: u32 = u32::MAX;

/// A half at either end that fails in its call with this number; 0: when it is built.
#[derive(Clone, Debug)]
struct Failing {
    at: u32,
    calls: Arc<AtomicU32>,
    has_failed: Arc<AtomicBool>,
    messages: u32,
}

impl Failing {
    fn new(at: u32) -> Self {
        Self { at, calls: Arc::default(), has_failed: Arc::default(), messages: 0 }
    }
    fn calls(&self) -> u32 {
        assert!(!self.has_failed.load(Ordering::Relaxed), "a call after the failure");
        self.calls.load(Ordering::Relaxed)
    }
    fn count_call(&self) {
        self.calls.store(self.calls() + 1, Ordering::Relaxed);
    }
    fn failure(&self) -> Option<Failure> {
        let failure = (self.calls() >= self.at).then(|| Failure::new("gave up"));
        self.has_failed.store(failure.is_some(), Ordering::Relaxed);
        failure
    }
}

impl SendHalf for Failing {
    fn handle_event(&mut self, _: Time, _: &Event<'_>, _: &mut Signals) {
        self.count_call();
    }
    fn decision(&self) -> Decision {
        Decision::new(SETUP.start + Rate::from_bps(self.calls().into()))
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(Time::from_millis(self.calls().into()))
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure()
    }
}

impl ReceiveHalf for Failing {
    fn handle_arrival(&mut self, _: RemoteTime, _: &Arrival, _: &mut Signals) {
        self.count_call();
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        let calls = self.calls();
        let is_new = core::mem::replace(&mut self.messages, calls) != calls;
        (is_new && calls < self.at).then_some(Message::Remb(SETUP.start))
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure()
    }
}

/// Returns the number of failures that a sender reports within 1 s, and its sender.
fn sender_after_a_second(half: &Failing) -> (usize, Sender<()>) {
    let mut controller = Controller::from_sender(half.clone()).guarded(SETUP.min);
    let mut sender = Sender::new(&SenderConfig::new(&SETUP), &mut controller, Signals::disabled());
    sender.add_stream(&StreamConfig::video(StreamId(0), Rate::ZERO, SETUP.max));
    let mut failures = 0;
    for now in (0..50).map(|n| Time::from_millis(20 * n)) {
        sender.handle_timeout(now);
        sender.push_video(now, false, [((), SIZE)]).unwrap();
        while sender.poll_transmit(now).is_some() {}
        while let Some(event) = sender.poll_event() {
            failures += usize::from(event == SenderEvent::ControllerFailed);
        }
    }
    (failures, sender)
}

#[test]
fn sender_reports_failure_once_and_keeps_the_last_decision() {
    for at in [0, 1, 2, 40] {
        let (failures, sender) = sender_after_a_second(&Failing::new(at));
        assert_eq!((failures, sender.failure().unwrap().to_string()), (1, "gave up".to_owned()));
        let before = SETUP.start + Rate::from_bps(at.saturating_sub(1).into());
        assert!((SETUP.start..=before).contains(&sender.target()), "{at}: {}", sender.target());
        assert_eq!(sender.stream_rate(StreamId(0)), Some(sender.target()));
        assert!(sender.packets_sent() > 20 && sender.controller_timeout().is_none(), "{}", sender.packets_sent());
    }
}

#[test]
fn sender_reports_no_failure_of_a_controller_that_works() {
    let half = Failing::new(NEVER);
    let (failures, sender) = sender_after_a_second(&half);
    assert!(failures == 0 && sender.failure().is_none());
    assert_eq!(sender.target(), half.decision().target);
}

/// Returns a receiver after 50 packets, and the numbers of messages and of reported packets.
fn receiver_after_50_packets(half: Failing) -> (Receiver, usize, usize) {
    let feedback = FeedbackRequirement::new(TimeDelta::from_millis(50), TimeDelta::from_millis(50));
    let mut controller = Controller::new(None, Some(Box::new(half))).with_feedback(Some(feedback));
    let mut receiver = Receiver::new(&mut controller, Signals::disabled());
    let (mut messages, mut packets) = (0, 0);
    for number in 0..50 {
        let now = RemoteTime::ZERO + TimeDelta::from_millis(20 * number as i64);
        receiver.handle_packet(now, &PacketHead::new(number, Time::ZERO, 0), SIZE, Ecn::NotEct);
        receiver.handle_timeout(now);
        while let Some(report) = receiver.poll_report(now) {
            (messages, packets) = (messages + report.messages.len(), packets + report.packets.len());
        }
    }
    (receiver, messages, packets)
}

#[test]
fn receiver_drops_a_half_that_failed_and_reports_packets_on() {
    for (at, expected) in [(0, 0), (1, 0), (10, 9)] {
        let (receiver, messages, packets) = receiver_after_50_packets(Failing::new(at));
        assert_eq!((receiver.failure().unwrap().to_string(), messages), ("gave up".to_owned(), expected));
        assert!(packets > 40, "{packets}");
    }
    let (receiver, messages, _) = receiver_after_50_packets(Failing::new(NEVER));
    assert!(receiver.failure().is_none() && messages == 50, "{messages}");
}
