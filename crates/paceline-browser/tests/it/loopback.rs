// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls between two local endpoints over the loopback device, in real time and without a browser. The tests do not depend
//! on the speed of the machine.

use paceline::Registry;
use paceline_browser::call::endpoint::{Endpoint, EndpointError};
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::timing::Timing;
use paceline_netsim::network::FlowEnd;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::EventRecord;
use paceline_scenario::{self, Changes, Origin};
use paceline_units::{RandomStreams, Rate, TimeDelta};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::mpsc;

const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Longest time to wait for a condition.
const TIMEOUT: TimeDelta = TimeDelta::from_secs(60);

fn plan(controller: &str, more: &str) -> Plan {
    let text = format!(
        r#"
id = "test/loopback"
title = "Two endpoints on one machine"
duration = "1h"
[path.forward]
capacity = "100Mbps"
[[flow]]
id = "video"
controller = "{controller}"
start_rate = "300kbps"
encoder = {{ max = "1Mbps" }}
{more}
"#
    );
    paceline_scenario::load(&Origin::from_text("loopback", &text), &Changes::default(), &Registry::standard())
        .unwrap()
        .plan
}

struct Call {
    sender: Endpoint,
    receiver: Endpoint,
    clock: Monotonic,
    channel: (mpsc::Sender<EventRecord>, mpsc::Receiver<EventRecord>),
    events: Vec<EventRecord>,
}

/// Returns the receiver and the sender of a flow, or why a call cannot carry it.
fn endpoints(controller: &str, more: &str) -> [Result<Endpoint, EndpointError>; 2] {
    let (plan, registry, streams) = (plan(controller, more), Registry::standard(), RandomStreams::new(3));
    [FlowEnd::Receiver, FlowEnd::Sender]
        .map(|end| Endpoint::new(end, (0, &plan.flows[0]), (&registry, &streams, true), ANYWHERE, None))
}

impl Call {
    fn new(controller: &str) -> Self {
        let [mut receiver, mut sender] = endpoints(controller, "").map(Result::unwrap);
        let answer = receiver.answer(&sender.offer().unwrap()).unwrap();
        sender.accept(&answer).unwrap();
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        Self { sender, receiver, clock, channel: mpsc::channel(), events: Vec::new() }
    }

    /// Runs the call until the condition on its events holds.
    fn run_until(&mut self, what: &str, done: impl Fn(&[EventRecord]) -> bool) {
        let begin = self.clock.now();
        while !done(&self.events) {
            let now = self.clock.now();
            assert!(now < begin + TIMEOUT, "{what}: not within {TIMEOUT:?}, after {} events", self.events.len());
            for end in [&mut self.sender, &mut self.receiver] {
                end.serve(self.clock.now(), &self.clock, &self.channel.0).unwrap();
            }
            self.events.extend(self.channel.1.try_iter());
            let due = self.sender.timeout().min(self.receiver.timeout()).min(now + TimeDelta::from_millis(20));
            Timing::Sleep.wait(&[self.sender.socket(), self.receiver.socket()], due - self.clock.now());
        }
    }
}

fn frames(rows: &[EventRecord]) -> Vec<(TimeDelta, u16)> {
    let frame = |row: &EventRecord| match row {
        EventRecord::Frame { at, captured, dropped, .. } => Some((*at - *captured, *dropped)),
        _ => None,
    };
    rows.iter().filter_map(frame).collect()
}

fn targets(rows: &[EventRecord]) -> Vec<Rate> {
    let target = |row: &EventRecord| match row {
        EventRecord::Decision { target, .. } => Some(*target),
        _ => None,
    };
    rows.iter().filter_map(target).collect()
}

/// Runs a call until 90 frames have arrived and checks the properties that hold for every controller.
fn call_with_video(controller: &str) -> Call {
    let mut call = Call::new(controller);
    call.run_until(controller, |rows| frames(rows).len() >= 90);
    assert!(call.sender.is_connected() && call.receiver.is_connected());
    let frames = frames(&call.events);
    assert!(frames.iter().map(|(_, dropped)| *dropped as u32).sum::<u32>() <= 10, "{frames:?}");
    let valid = frames.iter().filter(|(delay, _)| (TimeDelta::ZERO..TimeDelta::from_secs(2)).contains(delay)).count();
    assert!(valid * 10 >= frames.len() * 9, "frame delays from 0 to 2 s: {frames:?}");
    let targets = targets(&call.events);
    let bounded = |rate: &Rate| *rate >= Rate::from_kbps(30) && *rate <= Rate::from_kbps(1300);
    assert!(!targets.is_empty() && targets.iter().all(bounded), "{targets:?}");
    call
}

#[test]
fn remb_limits_the_sender() {
    let mut call = call_with_video("gcc-2016");
    let remb = |rows: &[EventRecord]| {
        rows.iter().any(|row| matches!(row, EventRecord::Remb { rate, .. } if *rate > Rate::ZERO))
    };
    call.run_until("a REMB", remb);
    call.run_until("a decision after the REMB", |rows| targets(rows).len() >= 2);
    call.run_until("a round-trip time", |rows| rows.iter().any(|row| matches!(row, EventRecord::RoundTrip { .. })));
}

#[test]
fn per_packet_feedback_raises_the_target() {
    for controller in ["gcc-tfb", "scream"] {
        let mut call = call_with_video(controller);
        call.run_until("a target above the start rate", |events| {
            targets(events).iter().any(|target| *target > Rate::from_kbps(330))
        });
    }
}

#[test]
fn ignores_datagrams_of_strangers() {
    let mut call = Call::new("gcc-2016");
    call.run_until("the session", |rows| !frames(rows).is_empty());
    let stranger = UdpSocket::bind(ANYWHERE).unwrap();
    let mut seed = 1u32;
    for round in 0..300usize {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        let mut bytes: Vec<u8> = (0..round % 200).map(|_| next()).collect();
        // First bytes of RTP, RTCP, STUN and DTLS.
        let first = [0x80, 0x81, 0x00, 0x01, 22, 23, 20, 0xFF][round % 8];
        bytes.splice(..0, [first, [96, 97, 200, 201, 205, 206, 0, 1][round / 8 % 8]]);
        for end in [&call.sender, &call.receiver] {
            stranger.send_to(&bytes, end.address().unwrap()).unwrap();
        }
    }
    let before = frames(&call.events).len();
    call.run_until("frames after the foreign datagrams", |rows| frames(rows).len() > before + 30);
    assert!(call.sender.is_connected() && call.receiver.is_connected());
}

#[test]
fn rejects_unsupported_flows() {
    let refusals = |more: &str| {
        endpoints("gcc-2016", more).map(|end| end.err().map(|error| error.to_string()).unwrap_or_default())
    };
    assert_eq!(refusals(""), ["", ""]);
    assert!(refusals("audio = {}").iter().all(|error| error.contains("streams other than one video stream")));
    let [receives, sends] = refusals("protection = { fec = \"ulpfec\" }");
    assert_eq!(receives, "", "a receiver accepts FEC settings");
    assert!(sends.contains("forward error correction"), "{sends}");
    let [receives, sends] = refusals("packet_size = \"600 B\"");
    assert!(receives.contains("`packet_size` for packets of Chromium"), "{receives}");
    assert_eq!(sends, "", "a local sender has the size of the plan");
    // 28 bytes of IP and UDP headers and 10 of SRTP: at most 1462 of 1500.
    assert!(refusals("packet_size = \"1463 B\"")[1].contains("a `packet_size` of 1463 B"));
    assert_eq!(refusals("packet_size = \"1462 B\"")[1], "");
}

#[test]
fn rejects_answers_without_the_negotiated_feedback() {
    let [mut receiver, mut sender] = endpoints("gcc-tfb", "").map(Result::unwrap);
    let answer = receiver.answer(&sender.offer().unwrap()).unwrap();
    let without: String = answer.lines().filter(|l| !l.contains("transport-cc")).map(|l| format!("{l}\r\n")).collect();
    let error = sender.accept(&without).unwrap_err();
    assert!(matches!(&error, EndpointError::Disagreement(what) if what.contains("transport-cc")), "{error}");
}
