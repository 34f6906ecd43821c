// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits, route, availability and streams that change during a call.

use crate::call::harness::{CallConfig, FPS, Fate, Impairment, TestCall, controller, pass, stream, video};
use crate::call::packet_reports::{Call, RFC8888, TRANSPORT_WIDE};
use crate::call::probes::probing_call;
use crate::call::{assert_within, kbps};
use paceline::{Bounds, FecScheme, PacketKind, Registry, Setup};
use paceline_netsim::flow::source::{Ideal, VideoConfig};
use paceline_netsim::flow::{DatagramKind, MediaKind, SenderEvent};
use paceline_units::{Ecn, StreamId, Time, TimeDelta};
use paceline_wire::is_rtcp;

fn at(s: i64) -> Time {
    Time::from_secs(s)
}

/// Returns the rate of a stream's media between two times, bit/s.
fn media_bps(call: &TestCall, id: u8, from: i64, to: i64) -> f64 {
    let is_media = |kind: &DatagramKind| *kind == DatagramKind::Rtp { stream: StreamId(id), kind: PacketKind::Media };
    call.sent_bps(is_media, at(from), at(to))
}

#[test]
fn sources_and_pacer_follow_new_bounds() {
    let mut call = TestCall::new(CallConfig::new(controller("gcc-tfb", kbps(5000), &[]), kbps(5000)));
    call.run_secs(5);
    call.sender.set_bounds(call.now, &Bounds::new(kbps(50), kbps(200)));
    assert_eq!(call.sender.decision().target, kbps(200));
    call.run_secs(10);
    assert_within(media_bps(&call, 0, 6, 10), 170e3, 205e3, "media, bit/s");
    call.sender.set_bounds(call.now, &Bounds::new(kbps(600), kbps(5000)));
    assert_eq!(call.sender.decision().target, kbps(600));
    call.run_secs(15);
    assert_within(media_bps(&call, 0, 11, 15), 560e3, 2500e3, "media, bit/s");
}

/// With every registered controller: nothing leaves, the target does not fall, and media flows again afterwards.
#[test]
fn no_controller_sends_or_falls_while_the_network_is_unavailable() {
    for entry in Registry::standard().iter() {
        let name = entry.name();
        let mut call = TestCall::new(CallConfig::new(controller(name, kbps(2000), &[]), kbps(2000)));
        call.run_secs(5);
        let target = call.sender.decision().target;
        call.sender.set_available(call.now, false);
        call.run_secs(25);
        assert!(call.forward_log.iter().all(|sent| sent.at < at(5)), "{name}");
        assert!(call.sender.decision().target >= target, "{name}: {target}, then {}", call.sender.decision().target);
        call.sender.set_available(call.now, true);
        call.run_secs(30);
        assert_within(media_bps(&call, 0, 26, 30), 100e3, 2000e3, name);
    }
}

/// Frames of the pause are dropped, and packets that waited in the pacer leave afterwards without a burst.
#[test]
fn frames_of_a_pause_are_dropped() {
    let mut call = TestCall::new(CallConfig::new(controller("gcc-tfb", kbps(2000), &[]), kbps(2000)));
    call.run_secs(5);
    call.sender.set_available(call.now, false);
    call.run_secs(25);
    let dropped =
        |(at, event): &&(Time, SenderEvent)| matches!(event, SenderEvent::FrameDropped(_)) && *at >= Time::from_secs(5);
    assert_within(call.events.iter().filter(dropped).count() as f64, 20.0 * FPS - 2.0, 20.0 * FPS + 2.0, "frames");
    call.sender.set_available(call.now, true);
    call.run_secs(30);
    let burst = call.forward_log.iter().filter(|sent| (at(25)..at(25) + TimeDelta::from_millis(20)).contains(&sent.at));
    assert_within(burst.count() as f64, 1.0, 10.0, "datagrams at once");
    assert_within(media_bps(&call, 0, 26, 30), 250e3, 2000e3, "media, bit/s");
    let frames = call.rendered.iter().filter(|frame| frame.at > at(26)).count();
    assert_within(frames as f64, 3.9 * FPS, 4.1 * FPS, "frames after the pause");
}

/// Reports on packets of the old route do not reach the half.
#[test]
fn reports_on_packets_of_the_old_route_are_ignored() {
    for feedback in [TRANSPORT_WIDE, RFC8888] {
        let call = Call { feedback: Some(feedback), ecn: Ecn::NotEct, rate: kbps(500), seconds: 6 };
        let (config, log) = call.config(pass(), pass());
        let mut call = TestCall::new(config);
        call.run_secs(3);
        let sent = log.lock().unwrap().sent.len();
        let reported = log.lock().unwrap().reports.len();
        let setup = Setup::new(kbps(500), kbps(50), kbps(1000));
        call.sender.handle_route_change(call.now, &setup);
        call.run_secs(6);
        let log = log.lock().unwrap();
        assert!(sent > reported && reported > 50, "{reported} of {sent} were reported before");
        let old = log.reports[reported..].iter().filter(|(_, report)| report.sequence < sent as u64).count();
        assert_eq!((old, log.reports[reported].1.sequence), (0, sent as u64));
        assert!(log.reports.len() > reported + 50);
    }
}

#[test]
fn route_change_starts_both_halves_again() {
    for name in ["gcc-2016", "gcc-tfb", "nada", "nada-sender", "scream"] {
        let mut call = TestCall::new(CallConfig::new(controller(name, kbps(2000), &[]), kbps(2000)));
        call.run_secs(20);
        let setup = Setup::new(kbps(150), kbps(50), kbps(1000));
        assert!(call.sender.decision().target > kbps(400), "{name}: {}", call.sender.decision().target);
        call.sender.handle_route_change(call.now, &setup);
        call.receiver.handle_route_change(call.remote_now(), &setup);
        assert_eq!(call.sender.decision().target, kbps(150), "{name}");
        call.run_secs(40);
        let target = call.sender.decision().target;
        assert!((kbps(250)..=kbps(1000)).contains(&target), "{name}: {target}");
    }
}

/// 1 Mbit/s for one stream, then halves of it for two, then all of it again for the new one.
#[test]
fn streams_begin_change_and_end() {
    for name in ["fixed", "nada-sender"] {
        let mut config = CallConfig::new(controller(name, kbps(1000), &[]), kbps(1000));
        config.streams = vec![video(0, kbps(1000))];
        let mut call = TestCall::new(config);
        call.run_secs(10);
        let source = VideoConfig { fps: FPS, min: kbps(30), max: kbps(1000), start: kbps(300) };
        let second = stream(1, MediaKind::Video, Box::new(Ideal::new(source, call.now).unwrap()));
        let info = second.info;
        assert!(call.receiver.add_stream(info) && call.sender.add_stream(call.now, second));
        assert!(!call.receiver.add_stream(info) && !call.sender.add_stream(call.now, video(0, kbps(1000))));
        call.run_secs(20);
        assert!(call.sender.set_priority(call.now, StreamId(1), 3.0));
        call.run_secs(30);
        assert!(call.sender.remove_stream(call.now, StreamId(0)));
        assert!(!call.sender.remove_stream(call.now, StreamId(0)), "it is removed already");
        call.run_secs(32);
        assert!(call.receiver.remove_stream(StreamId(0)) && !call.receiver.remove_stream(StreamId(0)));
        call.run_secs(40);
        let share = |id, from, to| {
            let total = media_bps(&call, 0, from, to) + media_bps(&call, 1, from, to);
            assert_within(total, 800e3, 1010e3, "media of both, bit/s");
            media_bps(&call, id, from, to) / total
        };
        assert_eq!(share(0, 5, 10), 1.0);
        assert_within(share(1, 12, 20), 0.47, 0.53, "share of the second stream");
        assert_within(share(1, 22, 30), 0.70, 0.80, "share of the second stream with three times the weight");
        assert_eq!(share(1, 33, 40), 1.0);
        let rendered = |id| call.rendered.iter().filter(|f| f.stream == StreamId(id) && f.at >= at(33)).count();
        assert_eq!(rendered(0), 0);
        assert_within(rendered(1) as f64, 6.9 * FPS, 7.1 * FPS, "frames of the second stream");
        assert_eq!(call.sender_rejected(), 0);
    }
}

/// The old route loses a fifth of the media and takes 300 ms each way. After the change nothing is lost, and the round-trip
/// time is 40 ms. No report on the old route changes loss, round-trip time, FEC or retransmissions, whenever the change
/// happens.
#[test]
fn losses_and_round_trip_times_of_the_old_route_are_ignored() {
    for change_ms in (10_000..12_000).step_by(200) {
        let change = Time::from_millis(change_ms);
        let late = |loses: bool| -> Impairment {
            Box::new(move |index, now, bytes| match now < change {
                true if loses && index % 5 == 0 && !is_rtcp(bytes) => Fate::Drop,
                true => Fate::Delay(TimeDelta::from_millis(280)),
                false => Fate::Deliver,
            })
        };
        let mut config = CallConfig::new(controller("fixed", kbps(500), &[("rate_bps", 500e3)]), kbps(2000));
        config.protection.fec = FecScheme::Ulpfec;
        (config.forward, config.back) = (late(true), late(false));
        let mut call = TestCall::new(config);
        call.run_until(change);
        call.sender.handle_route_change(change, &Setup::new(kbps(500), kbps(50), kbps(1000)));
        call.run_until(change + TimeDelta::from_secs(10));
        let (mut old, mut new) = (Vec::new(), Vec::new());
        call.fractions_lost().for_each(|(at, loss)| if at < change { old.push(loss) } else { new.push(loss) });
        assert!(old.iter().any(|loss| *loss > 0.1) && new.len() > 3, "{change_ms}: {old:?}");
        assert!(new.iter().all(|loss| *loss == 0.0), "{change_ms}: {new:?}");
        for (at, event) in &call.events {
            if let SenderEvent::RoundTrip(rtt) = event {
                assert!((*rtt < TimeDelta::from_millis(60)) == (*at >= change), "{change_ms}: {rtt} at {at:?}");
            }
        }
        let fec = |kind: &DatagramKind| matches!(kind, DatagramKind::Rtp { kind: PacketKind::Fec, .. });
        let second = TimeDelta::from_secs(1);
        assert!(call.sent_bps(fec, change - second, change) > 0.0);
        assert_eq!(call.sent_bps(fec, change + second, change + second * 9), 0.0, "{change_ms}");
    }
}

/// A cluster that waits for the network does not exceed a maximum that was set meanwhile.
#[test]
fn waiting_probes_follow_a_new_maximum() {
    for (max, sent) in [(kbps(2000), 0), (kbps(4000), 1)] {
        let (mut call, log) = probing_call();
        call.run_secs(1);
        call.sender.set_available(call.now, false);
        call.run_secs(3);
        // The cluster is ready since 2 s.
        call.sender.set_bounds(call.now, &Bounds::new(kbps(50), kbps(5000)));
        call.sender.set_bounds(call.now, &Bounds::new(kbps(50), max));
        call.sender.set_available(call.now, true);
        call.run_secs(6);
        let probes = log.lock().unwrap().sent.iter().filter(|(_, packet)| packet.probe.is_some()).count();
        assert_eq!(probes.min(1), sent, "{max}");
    }
}

/// Both endpoints begin without a stream.
#[test]
fn first_stream_may_begin_during_the_call() {
    for name in ["scream", "gcc-tfb", "gcc-2016"] {
        let mut config = CallConfig::new(controller(name, kbps(1000), &[]), kbps(1000));
        config.streams.clear();
        let mut call = TestCall::new(config);
        call.run_secs(5);
        assert_eq!(call.forward_log.len(), 0, "{name}: nothing to report");
        let source = VideoConfig { fps: FPS, min: kbps(30), max: kbps(1000), start: kbps(300) };
        let first = stream(0, MediaKind::Video, Box::new(Ideal::new(source, call.now).unwrap()));
        assert!(call.receiver.add_stream(first.info) && call.sender.add_stream(call.now, first));
        call.run_secs(25);
        let target = call.sender.decision().target;
        assert!(target > kbps(500), "{name}: {target}");
        assert_eq!(call.sender_rejected(), 0, "{name}");
    }
}
