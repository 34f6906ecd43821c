// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that change what a sender learns: a cap from outside, the interval of feedback, lost reports.

use crate::fixtures::{observe, scenario, within};
use paceline_netsim::records::{EventRecord, PacketClass};

const CALL: &str = r#"
id = "test/feedback"
title = "A call"
duration = "30s"
[path.forward]
capacity = "2 Mbps"
delay = "20 ms"
[path.reverse]
hops = [{ id = "reports" }, { id = "back", delay = "20 ms" }]
[[flow]]
id = "call"
controller = "googcc"
retransmit = false
encoder = { source = "ideal", min = "100 kbps", max = "1.5 Mbps" }
[[flow]]
id = "other"
controller = "fixed"
direction = "reverse"
route = ["back"]
encoder = { source = "ideal", min = "100 kbps", max = "100 kbps" }
"#;

/// What a run contains of flow 0.
struct Run {
    hash: String,
    /// Times at which the receiver sent reports or other feedback, s.
    reports: Vec<f64>,
    /// Time and target of each decision.
    targets: Vec<(f64, f64)>,
    /// Dropped packets: of the receiver of flow 0, and all others.
    dropped: (usize, usize),
}

fn run(settings: &[&str]) -> Run {
    let (mut reports, mut targets, mut dropped) = (Vec::new(), Vec::new(), (0, 0));
    let hash = observe(&scenario(CALL, settings), 1, |event| match *event {
        EventRecord::Sent { at, packet } if packet.flow.0 == 0 && packet.class == PacketClass::ReceiverControl => {
            reports.push(at.as_secs_f64());
        }
        EventRecord::Decision { at, flow, target, .. } if flow.0 == 0 => {
            targets.push((at.as_secs_f64(), target.as_bps_f64()));
        }
        EventRecord::Dropped { packet, .. } => {
            let is_report = packet.flow.0 == 0 && packet.class == PacketClass::ReceiverControl;
            *(if is_report { &mut dropped.0 } else { &mut dropped.1 }) += 1;
        }
        _ => {}
    })
    .trace_hash;
    Run { hash, reports, targets, dropped }
}

impl Run {
    /// Returns the lowest and the highest target of the decisions from `from` to `to`, kbit/s.
    fn targets_between(&self, from: f64, to: f64) -> (f64, f64) {
        let targets = self.targets.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, target)| target / 1e3);
        targets.fold((f64::MAX, 0.0), |(low, high), target| (low.min(target), high.max(target)))
    }
}

/// A REMB has 18 bits of precision, so 400 kbit/s are exact to 4 bit/s.
#[test]
fn remb_of_a_middlebox_caps_the_target_until_it_is_lifted() {
    let run = run(&["flow.call.remb=[[\"10 s\", \"400 kbps\"], [\"20 s\", \"100 Mbps\"]]"]);
    // A decision is an event only if it differs from the one before.
    within("the highest target before", run.targets_between(0.0, 10.0).1, 1000.0, 1700.0);
    within("the highest target under the cap", run.targets_between(10.0, 20.0).1, 399.9, 400.0);
    within("the lowest target under the cap", run.targets_between(10.0, 20.0).0, 300.0, 400.0);
    within("the highest target after", run.targets_between(20.0, 30.0).1, 800.0, 1700.0);
}

/// NADA has no use for a REMB, and a wake-up more each second changes nothing.
#[test]
fn controller_without_remb_is_not_capped() {
    let of = |remb: &[&str]| run(&[&["flow.call.controller=nada"], remb].concat()).hash;
    assert_eq!(of(&["flow.call.remb=[[\"10 s\", \"400 kbps\"]]"]), of(&[]));
}

/// GoogCC has per-packet reports at most every 50 ms, NADA has messages every 100 ms, and both have receiver reports every second.
#[test]
fn feedback_interval_replaces_that_of_the_controller() {
    for (controller, least) in [("googcc", 150), ("nada", 180), ("scream-v2", 150), ("gcc-2016", 20)] {
        let of = |interval: &[&str]| {
            let run = run(&[&[&*format!("flow.call.controller={controller}")], interval].concat());
            // A report of RFC 8888 may take several datagrams.
            let mut times: Vec<f64> = run.reports.into_iter().filter(|at| (5.0..25.0).contains(at)).collect();
            times.dedup();
            times.len()
        };
        let (own, slow) = (of(&[]), of(&["flow.call.feedback_interval=1 s"]));
        assert!(own >= least, "{controller}: {own} reports in 20 s");
        // A per-packet report and a receiver report each second, whose interval RFC 3550 draws from 0.41 to 1.23 s.
        assert!((19..=45).contains(&slow), "{controller}: {slow} reports in 20 s at an interval of 1 s");
    }
}

/// The reports have a hop of their own, which the media of the other flow does not cross.
#[test]
fn reports_of_one_flow_are_lost_alone() {
    let loss = r#"path.reverse.hops.0.loss=[["0 s", "0 %"], ["10 s", "100 %"], ["12 s", "0 %"]]"#;
    let run = run(&[loss]);
    let expected = run.reports.iter().filter(|at| (10.0..12.0).contains(*at)).count();
    assert!(expected > 10 && run.dropped == (expected, 0), "{expected} reports, dropped {:?}", run.dropped);
}

/// Returns how many packets arrive after one that was sent later.
fn overtaken(settings: &[&str]) -> usize {
    let (mut newest, mut count) = (0, 0);
    observe(&scenario(CALL, settings), 1, |event| {
        if let EventRecord::Arrived { packet, .. } = event
            && packet.flow.0 == 0
            && packet.class == PacketClass::Media
        {
            count += usize::from(packet.packet < newest);
            newest = newest.max(packet.packet);
        }
    });
    count
}

/// By hand: 100 ms less delay at 0.3 to 2 Mbit/s let at most 21 packets of 1228 B overtake those in transit.
#[test]
fn shorter_route_reorders_packets_only_if_jitter_may() {
    let delay = r#"path.forward.delay=[["0 s", "120 ms"], ["15 s", "20 ms"]]"#;
    let jitter = |order: &str| format!("path.forward.jitter={{ std = \"10 us\", order = \"{order}\" }}");
    assert_eq!(overtaken(&[delay]), 0);
    assert_eq!(overtaken(&[delay, &jitter("keep")]), 0);
    within("the overtaken packets", overtaken(&[delay, &jitter("reorder")]) as f64, 2.0, 21.0);
    assert_eq!(overtaken(&[&jitter("reorder")]), 0, "without a change of the route");
}
