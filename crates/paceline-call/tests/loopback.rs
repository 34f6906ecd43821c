//! Two ends of ours call each other over the loopback device, in real time, without a browser: the session comes up, frames
//! and reports cross it, and each controller does what it does. How fast this machine is does not matter.
#![cfg(target_os = "linux")]

use paceline::Registry;
use paceline_call::endpoint::{Endpoint, EndpointError};
use paceline_lab::plan::Plan;
use paceline_lab::rows::Row;
use paceline_lab::scenario::{self, Changes, Origin};
use paceline_live::clock::Monotonic;
use paceline_live::wait::Timing;
use paceline_units::{Rate, Streams, TimeDelta};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::mpsc;

const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Longest that a call is waited for.
const PATIENCE: TimeDelta = TimeDelta::from_secs(60);

fn plan(controller: &str, more: &str) -> Plan {
    let text = format!(
        r#"
id = "test/loopback"
title = "Two ends on one machine"
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
    scenario::load(&Origin::from_text("loopback", &text), &Changes::default(), &Registry::standard()).unwrap()
}

struct Call {
    sender: Endpoint,
    receiver: Endpoint,
    clock: Monotonic,
    told: (mpsc::Sender<Row>, mpsc::Receiver<Row>),
    rows: Vec<Row>,
}

impl Call {
    fn new(controller: &str) -> Self {
        let (plan, registry, streams) = (plan(controller, ""), Registry::standard(), Streams::new(3));
        let flow = &plan.flows[0];
        let media = flow.media().unwrap();
        let mut sender = Endpoint::sender(0, flow, media, &registry, &streams, true, ANYWHERE, None).unwrap();
        let mut receiver = Endpoint::receiver(0, flow, media, &registry, &streams, true, ANYWHERE).unwrap();
        let answer = receiver.answer(&sender.offer().unwrap()).unwrap();
        sender.accept(&answer).unwrap();
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        Self { sender, receiver, clock, told: mpsc::channel(), rows: Vec::new() }
    }

    /// Runs until the rows are as wanted.
    fn run_until(&mut self, what: &str, wanted: impl Fn(&[Row]) -> bool) {
        let begin = self.clock.now();
        while !wanted(&self.rows) {
            let now = self.clock.now();
            assert!(now < begin + PATIENCE, "{what}: not in {PATIENCE:?}, after {} rows", self.rows.len());
            for end in [&mut self.sender, &mut self.receiver] {
                end.serve(self.clock.now(), &self.clock, &self.told.0).unwrap();
            }
            self.rows.extend(self.told.1.try_iter());
            let due = self.sender.timeout().min(self.receiver.timeout()).min(now + TimeDelta::from_millis(20));
            Timing::Sleep.wait(&[self.sender.socket(), self.receiver.socket()], due - self.clock.now());
        }
    }
}

fn frames(rows: &[Row]) -> Vec<(TimeDelta, u16)> {
    let frame = |row: &Row| match row {
        Row::Frame { at, captured, dropped, .. } => Some((*at - *captured, *dropped)),
        _ => None,
    };
    rows.iter().filter_map(frame).collect()
}

fn targets(rows: &[Row]) -> Vec<Rate> {
    let target = |row: &Row| match row {
        Row::Decision { target, .. } => Some(*target),
        _ => None,
    };
    rows.iter().filter_map(target).collect()
}

/// The call lasts until there are so many frames; then what is true of any call is looked at.
fn carries_video(controller: &str) -> Call {
    let mut call = Call::new(controller);
    call.run_until(controller, |rows| frames(rows).len() >= 90);
    assert!(call.sender.is_connected() && call.receiver.is_connected());
    let frames = frames(&call.rows);
    assert!(frames.iter().map(|(_, dropped)| *dropped as u32).sum::<u32>() <= 10, "{frames:?}");
    let after = frames.iter().filter(|(after, _)| (TimeDelta::ZERO..TimeDelta::from_secs(2)).contains(after)).count();
    assert!(after * 10 >= frames.len() * 9, "frames come after they were captured, and not for ever: {frames:?}");
    let targets = targets(&call.rows);
    let bounded = |rate: &Rate| *rate >= Rate::from_kbps(30) && *rate <= Rate::from_kbps(1300);
    assert!(!targets.is_empty() && targets.iter().all(bounded), "{targets:?}");
    call
}

#[test]
fn a_receivers_estimate_steers_the_sender() {
    let mut call = carries_video("gcc-2016");
    let remb = |rows: &[Row]| rows.iter().any(|row| matches!(row, Row::Remb { rate, .. } if *rate > Rate::ZERO));
    call.run_until("a REMB", remb);
    call.run_until("a decision by it", |rows| targets(rows).len() >= 2);
    call.run_until("a round-trip time", |rows| rows.iter().any(|row| matches!(row, Row::RoundTrip { .. })));
}

#[test]
fn transport_wide_feedback_steers_the_sender() {
    let mut call = carries_video("gcc-tfb");
    call.run_until("more than the first target", |rows| {
        targets(rows).iter().any(|target| *target > Rate::from_kbps(330))
    });
}

#[test]
fn feedback_of_rfc_8888_steers_the_sender() {
    let mut call = carries_video("scream");
    call.run_until("more than the first target", |rows| {
        targets(rows).iter().any(|target| *target > Rate::from_kbps(330))
    });
}

#[test]
fn a_stranger_changes_nothing() {
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
        // As if it were RTP, RTCP, STUN, DTLS.
        let first = [0x80, 0x81, 0x00, 0x01, 22, 23, 20, 0xFF][round % 8];
        bytes.splice(..0, [first, [96, 97, 200, 201, 205, 206, 0, 1][round / 8 % 8]]);
        for end in [&call.sender, &call.receiver] {
            stranger.send_to(&bytes, end.address().unwrap()).unwrap();
        }
    }
    let before = frames(&call.rows).len();
    call.run_until("frames after the strangers'", |rows| frames(rows).len() > before + 30);
    assert!(call.sender.is_connected() && call.receiver.is_connected());
}

#[test]
fn what_a_call_cannot_carry_is_refused() {
    let (registry, streams) = (Registry::standard(), Streams::new(3));
    let refusals = |more: &str| {
        let plan = plan("gcc-2016", more);
        let flow = &plan.flows[0];
        let media = flow.media().unwrap();
        let receives = Endpoint::receiver(0, flow, media, &registry, &streams, true, ANYWHERE).err();
        let sends = Endpoint::sender(0, flow, media, &registry, &streams, true, ANYWHERE, None).err();
        [receives, sends].map(|error| error.map(|error| error.to_string()).unwrap_or_default())
    };
    assert_eq!(refusals(""), ["", ""]);
    assert!(refusals("audio = {}").iter().all(|error| error.contains("other streams than one of video")));
    let [receives, sends] = refusals("protection = { fec = \"ulpfec\" }");
    assert_eq!(receives, "", "whoever sends is not asked");
    assert!(sends.contains("forward error correction"), "{sends}");
}

#[test]
fn an_answer_without_the_reports_is_refused() {
    let (plan, registry, streams) = (plan("gcc-tfb", ""), Registry::standard(), Streams::new(3));
    let flow = &plan.flows[0];
    let media = flow.media().unwrap();
    let mut sender = Endpoint::sender(0, flow, media, &registry, &streams, true, ANYWHERE, None).unwrap();
    let mut receiver = Endpoint::receiver(0, flow, media, &registry, &streams, true, ANYWHERE).unwrap();
    let answer = receiver.answer(&sender.offer().unwrap()).unwrap();
    let without: String = answer.lines().filter(|l| !l.contains("transport-cc")).map(|l| format!("{l}\r\n")).collect();
    let error = sender.accept(&without).unwrap_err();
    assert!(matches!(&error, EndpointError::Disagreement(what) if what.contains("transport-cc")), "{error}");
}
