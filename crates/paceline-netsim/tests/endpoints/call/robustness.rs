// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every registered controller with duplicated, replayed, forged, late or lost feedback, through encoded packets.
//! The controllers come from the registry, without those that do not adapt (`fixed`).

use crate::call::harness::{
    CallConfig, Fate, Impairment, SentDatagram, TestCall, compound, controller, outage, pass, random_loss,
};
use crate::call::{any_media, assert_within, kbps, ms};
use paceline::{Decision, Registry};
use paceline_netsim::flow::SenderEvent;
use paceline_units::{Rate, Time};
use paceline_wire::{CompoundWriter, NadaFeedback, ReportBlock, Rtcp, parse_compound};

fn controllers() -> Vec<&'static str> {
    let registry = Registry::standard();
    let names: Vec<&'static str> = registry.iter().filter(|e| e.controls()).map(|e| e.name()).collect();
    assert!(names.len() >= 3 && !names.contains(&"fixed"));
    names
}

/// 30 s at 700 kbit/s with 2 % loss, so that every kind of feedback is used.
fn call(name: &str, back: Impairment, injected: Vec<(Time, Vec<u8>)>) -> TestCall {
    let mut config = CallConfig::new(controller(name, kbps(2000), &[]), kbps(2000));
    config.capacity = kbps(700);
    config.forward = random_loss(5, 0.02);
    (config.back, config.injected) = (back, injected);
    TestCall::run(config, 30)
}

/// A path of 1 Mbit/s without loss.
fn megabit(name: &str, seconds: i64, back: Impairment) -> TestCall {
    let mut config = CallConfig::new(controller(name, kbps(2000), &[]), kbps(2000));
    (config.capacity, config.back) = (kbps(1000), back);
    TestCall::run(config, seconds)
}

fn is_request(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::Nack { .. } | Rtcp::Pli { .. }))
}

/// Copies of the sent feedback after this time.
fn replayed(log: &[SentDatagram], after_ms: i64) -> Vec<(Time, Vec<u8>)> {
    log.iter().filter(|l| !is_request(&l.bytes)).map(|l| (l.at + ms(after_ms), l.bytes.clone())).collect()
}

fn target(call: &TestCall, at: Time) -> Rate {
    decision(call, at).target
}
fn decision(call: &TestCall, at: Time) -> Decision {
    let decisions =
        call.events.iter().filter_map(|(t, e)| if let SenderEvent::Decision(d) = e { Some((t, d)) } else { None });
    *decisions.rev().find(|(t, _)| **t <= at).expect("there is a first decision").1
}

#[test]
fn duplicated_and_replayed_feedback_has_no_effect() {
    for name in controllers() {
        let plain = call(name, pass(), Vec::new());
        let steps = plain.events.iter().filter(|(_, e)| matches!(e, SenderEvent::Decision(_))).count();
        assert!(steps > 10, "{name}: {steps} decisions");
        // The copy arrives with the original, shortly after it, and after newer feedback.
        let back_ms = 20;
        for after_ms in [back_ms, back_ms + 7, back_ms + 130, back_ms + 2500, back_ms + 9000] {
            let again = call(name, pass(), replayed(&plain.back_log, after_ms));
            assert!(again.events == plain.events, "{name}: replayed after {after_ms} ms");
            assert!(again.forward_log == plain.forward_log, "{name}: replayed after {after_ms} ms");
        }
    }
}

#[test]
fn forged_feedback_has_no_effect() {
    let block =
        |ssrc, highest_sequence| ReportBlock { ssrc, highest_sequence, fraction_lost: 200, ..Default::default() };
    let report = |ssrc, highest| compound(|w| w.receiver_report(1, &[block(ssrc, highest)]).unwrap());
    let remb = |ssrc, highest, named: u32| {
        compound(|w| {
            w.receiver_report(1, &[block(ssrc, highest)]).unwrap();
            w.remb(1, kbps(60), &[named]).unwrap();
        })
    };
    let nada = NadaFeedback { gradual: true, signal: ms(900), rate: kbps(60) };
    let messages = |w: &mut CompoundWriter<'_>| w.nada(1, &nada).and_then(|()| w.app(1, 0, *b"MINE", &[7])).unwrap();
    let messages_after = |ssrc, highest| {
        compound(|w| {
            w.receiver_report(1, &[block(ssrc, highest)]).unwrap();
            messages(w);
        })
    };
    let feedback = |ssrc, base| {
        compound(|w| {
            w.transport_feedback(1, ssrc, base, 0, &[Some(1), None, None, Some(9000)]).unwrap();
        })
    };
    // The flow's SSRCs are 1000 and 1001; media starts at 100, and about 1500 packets are sent.
    let kinds = [
        ("a report on another flow", report(77, 120)),
        ("a report from the future", report(1000, 60_000)),
        ("a report on packets before the first", report(1000, 99)),
        ("an old report", report(1000, 101)),
        ("an old report with a REMB", remb(1000, 101, 1000)),
        ("a REMB for another flow", remb(77, 120, 77)),
        ("messages of the receive half with an old report", messages_after(1000, 101)),
        ("messages of the receive half with a report from the future", messages_after(1000, 60_000)),
        ("messages of the receive half for another flow", messages_after(77, 120)),
        ("messages of the receive half without a report", compound(messages)),
        ("another flow's feedback on numbers that were sent", feedback(77, 400)),
        ("feedback on packets not yet sent", feedback(1000, 20_000)),
        ("feedback on packets just ahead", feedback(1000, 5000)),
        ("feedback on packets no longer in the history", feedback(1000, 40_000)),
    ];
    for name in controllers() {
        let plain = call(name, pass(), Vec::new());
        for (what, bytes) in &kinds {
            let injected = call(
                name,
                pass(),
                vec![(Time::from_millis(10_003), bytes.clone()), (Time::from_millis(20_001), bytes.clone())],
            );
            assert!(injected.events == plain.events && injected.forward_log == plain.forward_log, "{name}: {what}");
            assert!(injected.sender_rejected() >= 2, "{name}: {what}");
        }
    }
}

#[test]
fn feedback_delayed_by_a_second_does_not_starve_a_flow() {
    for name in controllers() {
        let call = megabit(name, 90, Box::new(|_, _, _| Fate::Delay(ms(1000))));
        let rate = call.sent_bps(any_media, Time::from_secs(45), Time::from_secs(90));
        assert_within(rate, 500e3, 1200e3, name);
    }
}

#[test]
fn target_falls_without_feedback_and_recovers() {
    for name in controllers() {
        let call = megabit(name, 120, outage(Time::from_secs(30)..Time::from_secs(45)));
        let at = |ms| target(&call, Time::from_millis(ms)).as_bps_f64();
        // The last feedback arrived within 1.3 s before 30 s. A controller may reduce its target further.
        let before = at(30_100);
        assert!(before > 300e3, "{name}: {before}");
        assert!(at(34_500) <= 0.81 * before, "{name}: {before}, 4.5 s later {}", at(34_500));
        for s in 35..44 {
            let (now, next) = (at(s * 1000), at((s + 1) * 1000));
            assert!(next <= (0.81 * now).max(50e3), "{name}: {now} at {s} s, then {next}");
        }
        assert!(at(45_000) <= 0.12 * before, "{name}: {before}, then {}", at(45_000));
        let after = at(119_000);
        assert_within(after, 0.5 * before, 4e6, name);
    }
}

/// Without any feedback from the start of the call.
#[test]
fn target_falls_without_feedback_from_the_start() {
    for name in controllers() {
        let call = megabit(name, 20, Box::new(|_, _, _| Fate::Drop));
        let at = |ms| target(&call, Time::from_millis(ms)).as_bps_f64();
        assert_within(at(2900), 50e3, 600e3, name);
        assert_within(at(4000) / at(2900), 0.1, 0.81, name);
        assert_eq!(at(15_000), 50e3, "{name}");
        let sent = call.sent_bps(any_media, Time::from_secs(14), Time::from_secs(20));
        if name == "scream-libwebrtc" {
            // Its window stays closed without reports, as in libwebrtc: a packet of at most 1228 B each 500 ms.
            assert_within(sent, 2e3, 20e3, name);
        } else {
            // At least the source's minimum of 30 kbit/s with headers.
            assert_within(sent, 30e3, 110e3, name);
        }
    }
}

/// Requests, and reports without newly received packets, do not count as feedback: all sent packets are lost.
#[test]
fn reports_without_received_packets_do_not_count_as_feedback() {
    for name in controllers() {
        let mut config = CallConfig::new(controller(name, kbps(2000), &[]), kbps(2000));
        config.capacity = kbps(1000);
        config.forward = outage(Time::from_secs(30)..Time::MAX);
        let call = TestCall::run(config, 50);
        let reports = call.back_log.iter().filter(|l| l.at > Time::from_secs(32)).count();
        assert_within(reports as f64, 10.0, 200.0, "reports while nothing arrives");
        let at = |s| target(&call, Time::from_secs(s)).as_bps_f64();
        // Down to the minimum, if a tenth is less.
        assert!(at(48) <= (0.1 * at(30)).max(50e3), "{name}: {} then {}", at(30), at(48));
    }
}
