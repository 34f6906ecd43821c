// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of the receive half to the send half, through encoded packets.

use crate::call::harness::{CallConfig, Fate, Impairment, Log, RecordingHalf, TestCall, video};
use crate::call::{assert_within, kbps, ms};
use paceline::{AppMessage, Arrival, Controller, Decision, Message, NadaMode, NadaReport, ReceiveHalf, Signals};
use paceline_netsim::flow::StreamConfig;
use paceline_units::{Rate, RemoteTime};
use paceline_wire::{Rtcp, parse_compound};
use std::collections::VecDeque;

/// Emits one message of each kind every 100 ms from the first packet on. Their rates number them.
#[derive(Clone, Debug)]
struct MessageSource {
    next: RemoteTime,
    round: u64,
    due: VecDeque<Message>,
}

fn messages(round: u64) -> [Message; 4] {
    let incoming = Rate::from_bps(round);
    [
        Message::Remb(incoming),
        Message::App(AppMessage::new(*b"GCCM", 0, &[2000, 33_000, 70, round as u32]).unwrap()),
        Message::Nada(NadaReport { mode: NadaMode::Gradual, signal: ms(7), incoming }),
        Message::App(AppMessage::new(*b"MINE", 3, &[round as u32; 16]).unwrap()),
    ]
}

impl ReceiveHalf for MessageSource {
    fn handle_arrival(&mut self, now: RemoteTime, _: &Arrival, _: &mut Signals) {
        self.next = self.next.min(now + ms(100));
    }
    fn handle_timeout(&mut self, now: RemoteTime, _: &mut Signals) {
        (self.next, self.round) = (now + ms(100), self.round + 1);
        self.due.extend(messages(self.round));
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        Some(self.next).filter(|next| *next < RemoteTime::MAX)
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.due.pop_front()
    }
}

/// Ten seconds with this impairment of the reports.
fn received(back: Impairment) -> (TestCall, Vec<Message>) {
    received_on(vec![video(0, kbps(2000))], back)
}

/// The same with these streams.
fn received_on(streams: Vec<StreamConfig>, back: Impairment) -> (TestCall, Vec<Message>) {
    let (sink, log) = RecordingHalf::new(Decision::new(kbps(300)).with_pacing(kbps(600)));
    let source = MessageSource { next: RemoteTime::MAX, round: 0, due: VecDeque::new() };
    let controller = Controller::from_halves(sink, source);
    let mut config = CallConfig::new(controller, kbps(2000));
    (config.streams, config.back) = (streams, back);
    let call = TestCall::run(config, 10);
    (call, Log::take(&log).messages)
}

/// Also before the first sender report, and with reports that cover no new packet.
#[test]
fn messages_of_one_instant_share_a_report_and_all_arrive() {
    let (call, received) = received(Box::new(|_, _, _| Fate::Deliver));
    assert_within(received.len() as f64, 388.0, 400.0, "four every 100 ms for 9.9 s");
    let expected: Vec<Message> = (1..).flat_map(messages).take(received.len()).collect();
    assert!(received == expected, "each once and in order");
    assert_eq!(call.sender_rejected(), 0);
    for left in &call.back_log {
        let kinds = parse_compound(&left.bytes).unwrap().into_iter().map(|packet| match packet {
            Rtcp::ReceiverReport { .. } => 'r',
            Rtcp::Remb { .. } | Rtcp::Nada { .. } | Rtcp::App { .. } => 'm',
            _ => '-',
        });
        let kinds: String = kinds.filter(|kind| *kind != '-').collect();
        assert!(["r", "rmmmm"].contains(&kinds.as_str()), "{kinds}");
    }
}

/// Ten streams: reports take two datagrams, and the messages of an instant share the first with fewer
/// blocks.
#[test]
fn messages_arrive_beside_reports_of_several_datagrams() {
    let streams = (0..10).map(|index| video(index, kbps(300))).collect();
    let (call, received) = received_on(streams, Box::new(|_, _, _| Fate::Deliver));
    assert_within(received.len() as f64, 380.0, 400.0, "four every 100 ms for 9.9 s");
    let expected: Vec<Message> = (1..).flat_map(messages).take(received.len()).collect();
    assert!(received == expected, "each once and in order");
    assert_eq!(call.sender_rejected(), 0);
}

/// Duplicated messages are delivered once, late ones never.
#[test]
fn old_messages_are_dropped() {
    let (call, received) = received(Box::new(|n, _, _| match n % 10 {
        3 => Fate::Duplicate,
        6 => Fate::Delay(ms(350)),
        _ => Fate::Deliver,
    }));
    let expected: Vec<Message> = (1..=100).flat_map(messages).collect();
    let mut last = None;
    for message in &received {
        let place = expected.iter().position(|t| t == message);
        assert!(place > last, "{message:?}");
        last = place;
    }
    // 10 % are late: ten compounds of four messages.
    assert_within(received.len() as f64, 340.0, 366.0, "received");
    assert_within(call.sender_rejected().into(), 66.0, 120.0, "rejected");
}
