// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe clusters: what leaves, at which rate, and how it is reported.

use crate::call::harness::{CallConfig, Log, RecordingHalf, TestCall, controller, pass, video_source};
use crate::call::packet_reports::{Call, RFC8888, TRANSPORT_WIDE};
use crate::call::{assert_within, kbps, ms};
use paceline::{Controller, Decision, FeedbackRequirement, PacketKind, ProbeCluster, SentPacket};
use paceline_units::Time;
use std::sync::{Arc, Mutex};

const CLUSTER: ProbeCluster = ProbeCluster::new(7, kbps(3000), ms(40), 5);

/// A call at a constant rate whose half requests a cluster after 2 s, and the log of it.
fn probing_config(feedback: Option<FeedbackRequirement>) -> (CallConfig, Arc<Mutex<Log>>) {
    let decision = Decision::new(kbps(500)).with_pacing(kbps(750)).with_burst(ms(40));
    let (mut half, log) = RecordingHalf::new(decision);
    half.probe = Some(CLUSTER);
    (CallConfig::new(Controller::from_sender(half).with_feedback(feedback), kbps(1000)), log)
}

/// The same with transport-wide feedback.
pub fn probing_call() -> (TestCall, Arc<Mutex<Log>>) {
    let (config, log) = probing_config(Some(TRANSPORT_WIDE));
    (TestCall::new(config), log)
}

fn run(feedback: Option<FeedbackRequirement>) -> Log {
    let (mut config, log) = probing_config(feedback);
    config.streams = vec![video_source(0, 30.0, kbps(30), kbps(500), kbps(500))];
    TestCall::run(config, 6);
    Log::take(&log)
}

/// 40 ms at 3 Mbit/s are 15,000 bytes: media that waits in the pacer, then earlier packets again, as padding. Frames of 500 kbit/s
/// are two packets, of which one fits three times the 750 bytes of a burst.
#[test]
fn cluster_leaves_at_its_rate_filled_with_padding_and_is_reported() {
    for feedback in [TRANSPORT_WIDE, RFC8888] {
        let log = run(Some(feedback));
        let probes: Vec<_> = log.sent.iter().filter(|(_, packet)| packet.probe == Some(CLUSTER.id)).collect();
        let bytes: u64 = probes.iter().map(|(_, packet)| packet.size.as_bytes()).sum();
        assert_within(bytes as f64, 15_000.0, 16_200.0, "bytes of the cluster");
        let (first, last) = (probes[0].0, probes[probes.len() - 1].0);
        assert_within((first - Time::from_secs(2)).as_millis_f64(), 0.0, 60.0, "start after the request, ms");
        let before_last = bytes - probes[probes.len() - 1].1.size.as_bytes();
        let rate = before_last as f64 * 8.0 / (last - first).as_secs_f64();
        assert_within(rate, 2.98e6, 3.02e6, "rate of the cluster, bit/s");
        let is_within = |(at, packet): &&(Time, SentPacket)| first <= *at && *at <= last && packet.probe.is_none();
        assert_eq!(log.sent.iter().filter(is_within).count(), 0, "no other packet leaves during the cluster");
        let filled = |packet: &SentPacket| packet.kind == PacketKind::Padding && packet.size.as_bytes() > 1000;
        assert!(probes.iter().filter(|(_, packet)| filled(packet)).count() >= 5, "earlier packets");
        let padding = probes.iter().filter(|(_, packet)| packet.kind == PacketKind::Padding).count();
        assert!(padding > probes.len() / 2 && padding < probes.len(), "{padding} of {}", probes.len());
        // Every packet of the cluster is reported, with the facts of the sender.
        for (at, sent) in &log.sent {
            let Some((_, report)) = log.reports.iter().find(|(_, report)| report.sequence == sent.sequence) else {
                assert!(*at > Time::from_secs(5), "packet {} is not reported", sent.sequence);
                continue;
            };
            assert_eq!(
                (report.probe, report.kind, report.stream, Some(report.in_flight), report.sent),
                (sent.probe, sent.kind, sent.stream, sent.in_flight, *at)
            );
        }
        let most = log.sent.iter().filter_map(|(_, packet)| packet.in_flight).max().unwrap().as_bytes();
        assert_within(most as f64, 15_000.0, 30_000.0, "most bytes in flight");
    }
}

/// A frame is due in the 40 ms of the cluster, and a burst lets it leave at once: it leaves as a part of the cluster.
#[test]
fn no_other_packet_leaves_within_a_cluster() {
    let log = run(Some(TRANSPORT_WIDE));
    let is_probe = |(_, packet): &(Time, SentPacket)| packet.probe == Some(CLUSTER.id);
    let (first, last) = (log.sent.iter().position(is_probe).unwrap(), log.sent.iter().rposition(is_probe).unwrap());
    let cluster = &log.sent[first..=last];
    assert!(cluster.iter().all(is_probe), "{cluster:?}");
    assert!(cluster.iter().any(|(_, packet)| packet.kind == PacketKind::Media));
}

#[test]
fn flow_without_packet_reports_sends_probes_too() {
    let log = run(None);
    assert!(log.sent.len() > 300);
    let probes = log.sent.iter().filter(|(_, packet)| packet.probe == Some(CLUSTER.id)).count();
    assert_within(probes as f64, f64::from(CLUSTER.packets), 100.0, "packets of the cluster");
    assert!(log.sent.iter().all(|(_, packet)| packet.in_flight.is_none()));
}

/// gcc-tfb with probes on a path of 4 Mbit/s: the second cluster of 1800 kbit/s succeeds, and so does one of 3600.
#[test]
fn gcc_tfb_finds_the_capacity_by_probes() {
    let reached = |probes: f64| {
        let mut config = CallConfig::new(controller("gcc-tfb", kbps(10_000), &[("probes", probes)]), kbps(10_000));
        config.capacity = kbps(4000);
        let call = TestCall::run(config, 10);
        let target = |(at, event): &(Time, paceline_netsim::flow::SenderEvent)| match event {
            paceline_netsim::flow::SenderEvent::Decision(decision) if decision.target > kbps(3000) => Some(*at),
            _ => None,
        };
        call.events.iter().find_map(target)
    };
    let (with, without) = (reached(1.0), reached(0.0));
    assert!(with.is_some_and(|at| at < Time::from_secs(2)), "{with:?}");
    assert!(without.is_none_or(|at| at > Time::from_secs(6)), "{without:?}");
}

/// The half gets the same call if only the other format was negotiated.
#[test]
fn feedback_comes_in_the_format_that_both_ends_support() {
    for (transport_wide, has_ecn) in [(true, false), (false, true)] {
        let call = Call {
            feedback: Some(TRANSPORT_WIDE.with_ecn(!has_ecn)),
            ecn: paceline_units::Ecn::Ect1,
            rate: kbps(500),
            seconds: 3,
        };
        let (mut config, log) = call.config(pass(), pass());
        config.feedback_formats.transport_wide = transport_wide;
        config.feedback_formats.rfc8888 = !transport_wide;
        TestCall::run(config, 5);
        let log = log.lock().unwrap();
        assert!(log.reports.len() > 100);
        assert!(log.reports.iter().all(|(_, report)| report.ecn.is_some() == has_ecn));
    }
}
