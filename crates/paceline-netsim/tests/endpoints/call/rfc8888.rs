// SPDX-License-Identifier: MIT OR Apache-2.0
//! RFC 8888 feedback through both endpoints: the reports that the send half gets on each sent packet. They are the same
//! as with transport-wide feedback, except for coarser times and ECN.

use crate::call::harness::{CallConfig, Fate, Impairment, Log, TestCall, compound, controller, drop_if, pass};
use crate::call::packet_reports::{
    Call, RFC8888, RFC8888_ERROR, TRANSPORT_WIDE, assert_arrivals, outcomes, packets, windowed,
};
use crate::call::{assert_within, kbps, ms};
use paceline::{FecScheme, PacketKind, Protection, ResendRule, Setup};
use paceline_units::{DataSize, Ecn, RandomStreams, Time, TimeDelta};
use paceline_wire::{ArrivalOffset, Reception, Rtcp, is_rtcp, parse_compound};

fn call(rate_kbps: u64, seconds: i64) -> Call {
    Call { feedback: Some(RFC8888), ecn: Ecn::Ect1, rate: kbps(rate_kbps), seconds }
}

fn is_report(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::CongestionFeedback(_)))
}

/// The fate of the feedback by its number.
fn reports(mut fate: impl FnMut(u64) -> Fate + 'static) -> Impairment {
    let mut number = 0;
    Box::new(move |_, _, bytes| {
        number += u64::from(is_report(bytes));
        if is_report(bytes) { fate(number - 1) } else { Fate::Deliver }
    })
}

/// Media, retransmissions and FEC, each with a sequence number of its SSRC.
#[test]
fn every_packet_of_every_kind_is_reported_once() {
    let mut random = RandomStreams::new(11).stream("loss");
    let lose: Vec<bool> = (0..20_000).map(|_| random.chance(0.05)).collect();
    let fate = {
        let lose = lose.clone();
        packets(move |n, now| if now < Time::from_secs(59) && lose[n as usize] { Fate::Drop } else { Fate::Deliver })
    };
    let (run, log) = call(1500, 60).run_with(fate, pass(), |config| {
        config.protection = Protection { fec: FecScheme::Ulpfec, resend: ResendRule::RoundTrip };
    });
    assert_eq!(run.sender_rejected(), 0);
    let (mut silent, mut resent_lost) = (0, 0);
    for (n, outcomes) in outcomes(&log).iter().enumerate() {
        let dropped = log.sent[n].0 < Time::from_secs(59) && lose[n];
        let resent = log.sent[n].1.kind == PacketKind::Retransmission;
        resent_lost += u32::from(dropped && resent);
        // The first and the last packets of an SSRC are not reported if they are lost.
        if dropped && outcomes.is_empty() {
            silent += 1;
            assert!(resent, "packet {n}");
        } else {
            assert_eq!(outcomes[..], [!dropped], "packet {n}");
        }
    }
    assert!(silent <= 2 && resent_lost >= 2, "{silent}, {resent_lost}");
    for (kind, least) in [(PacketKind::Media, 5000), (PacketKind::Fec, 300), (PacketKind::Retransmission, 20)] {
        let count = log.sent.iter().filter(|(_, p)| p.kind == kind).count();
        assert!(count >= least, "{kind:?}: {count}");
    }
    assert_arrivals(&log, RFC8888_ERROR, |_| TimeDelta::ZERO);
    for (at, report) in &log.reports {
        let delay_ms = (*at - report.sent).as_millis_f64();
        // 20 ms each way and at most one report interval; a loss is known with the next arrival of the SSRC.
        let most = if log.sent[report.sequence as usize].1.kind == PacketKind::Retransmission { 5000.0 } else { 130.0 };
        assert_within(delay_ms, 40.0, if report.arrival.is_some() { 90.0 + 1.0 } else { most }, "report delay, ms");
        assert_eq!(report.ecn, report.arrival.map(|_| Ecn::Ect1));
    }
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    assert_eq!(log.after_highest, DataSize::ZERO);
}

#[test]
fn only_the_end_of_a_wide_gap_is_reported() {
    for gap in [150, 300, 1000, 5000] {
        let fate = packets(move |n, _| if (1007..1007 + gap).contains(&n) { Fate::Drop } else { Fate::Deliver });
        let (_, log) = call(5000, 30).run_with(fate, pass(), |config| config.retransmit = false);
        for (n, outcomes) in outcomes(&log).iter().enumerate() {
            let n = n as u64;
            match () {
                () if !(1007..1007 + gap).contains(&n) => assert_eq!(outcomes[..], [true], "packet {n}, gap {gap}"),
                // The report covers 1024 numbers up to the highest one, which is a few after the gap.
                () if n + 990 >= 1007 + gap => assert_eq!(outcomes[..], [false], "packet {n}, gap {gap}"),
                () => assert!(outcomes.is_empty() || outcomes[..] == [false], "packet {n}, gap {gap}"),
            }
        }
        let reported = outcomes(&log)[1007..1007 + gap as usize].iter().filter(|s| !s.is_empty()).count() as u64;
        assert_within(reported as f64, gap.min(990) as f64, gap.min(1023) as f64, "reported packets");
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}

/// Every second report is lost: each packet is in one that arrives.
#[test]
fn one_lost_report_loses_no_information() {
    for odd in [0, 1] {
        let (run, log) = call(1500, 60).run(
            // The first packets are lost too; they are never reported.
            packets(|n, _| if n < 3 { Fate::Drop } else { Fate::Deliver }),
            reports(move |n| if n % 2 == odd { Fate::Drop } else { Fate::Deliver }),
        );
        assert!(outcomes(&log).iter().enumerate().all(|(n, s)| if n < 3 { s.is_empty() } else { s[..] == [true] }));
        assert_arrivals(&log, RFC8888_ERROR, |_| TimeDelta::ZERO);
        assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
        assert!(log.outstanding.iter().all(|o| o.as_bytes() < 50_000), "the data of two reports at 1.5 Mbps");
        assert_within(run.rendered.len() as f64, 1795.0, 1799.0, "frames");
    }
}

#[test]
fn two_lost_reports_lose_the_packets_that_only_they_covered() {
    let (_, log) = call(1500, 60).run(pass(), reports(|n| if n % 10 < 2 { Fate::Drop } else { Fate::Deliver }));
    let outcomes = outcomes(&log);
    let silent = outcomes.iter().filter(|s| s.is_empty()).count();
    assert_within(silent as f64 / outcomes.len() as f64, 0.08, 0.12, "unreported packets");
    assert!(outcomes.iter().all(|s| s.is_empty() || s[..] == [true]));
    assert_arrivals(&log, RFC8888_ERROR, |_| TimeDelta::ZERO);
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 75_000), "unreported packets are not in flight");
}

#[test]
fn ecn_marks_are_reported() {
    for sent in [Ecn::Ect0, Ecn::Ect1] {
        let fate = packets(|n, _| match n % 10 {
            3 => Fate::Mark,
            7 => Fate::DuplicateMarked,
            8 => Fate::Duplicate,
            _ => Fate::Deliver,
        });
        let (_, log) = Call { ecn: sent, ..call(1500, 20) }.run(fate, pass());
        assert!(log.reports.len() > 2000);
        for (_, report) in &log.reports {
            let marked = matches!(report.sequence % 10, 3 | 7);
            assert_eq!(report.ecn, Some(if marked { Ecn::Ce } else { sent }), "packet {}", report.sequence);
        }
    }
}

/// A sender with a full window sends nothing that would trigger a report, so the last packets are reported twice in any
/// case. If every second report is lost, a round takes up to 100 ms longer: at worst 6000 bytes in 240 ms.
#[test]
fn a_full_window_survives_a_lost_report() {
    let bps = |packets| packets as f64 * 1228.0 * 8.0 / 20.0;
    let (packets, most) = windowed(RFC8888, pass());
    assert_within(most as f64, 1000.0, 6000.0 + 1228.0, "bytes in flight");
    assert_within(bps(packets), 0.5e6, 1.25e6, "bit/s");
    let (packets, most) = windowed(RFC8888, reports(|n| if n % 2 == 0 { Fate::Drop } else { Fate::Deliver }));
    assert!(most < 6000 + 1228, "{most} bytes in flight");
    assert_within(bps(packets), 0.2e6, 0.8e6, "bit/s");
}

fn forged_call(injected: Vec<(Time, Vec<u8>)>) -> (TestCall, Log) {
    let mut random = RandomStreams::new(5).stream("loss");
    let fate = packets(move |_, _| if random.chance(0.02) { Fate::Drop } else { Fate::Deliver });
    call(1500, 20).run_with(fate, pass(), |config| config.injected = injected)
}

#[test]
fn replayed_and_forged_reports_have_no_effect() {
    let (plain, log) = forged_call(Vec::new());
    assert!(log.reports.iter().filter(|(_, r)| r.arrival.is_none()).count() > 20, "losses are reported");
    for after_ms in [20, 27, 150, 2520, 9020] {
        let copies = plain.back_log.iter().filter(|l| is_report(&l.bytes));
        let (again, same) = forged_call(copies.map(|l| (l.at + ms(after_ms), l.bytes.clone())).collect());
        assert!(same == log && again.forward_log == plain.forward_log, "replayed after {after_ms} ms");
    }
    // The flow's SSRCs are 1000 and 1001; media starts at 100, and about 3000 packets are sent.
    let report = |ssrc, begin| {
        let packets = [Some(Reception { ecn: Ecn::Ce, offset: ArrivalOffset::Units(1) }), None, None];
        compound(|w| w.congestion_feedback(1, 0x8000_0000, &[(ssrc, begin, &packets)]).unwrap())
    };
    for (what, bytes) in [
        ("another flow's", report(77, 400)),
        ("on packets not yet sent", report(1000, 20_000)),
        ("on packets before the first", report(1000, 96)),
        ("on a stream that never sent so much", report(1001, 60_000)),
        (
            "transport-wide feedback, which was not negotiated",
            compound(|w| {
                w.transport_feedback(1, 1000, 400, 0, &[Some(1), None, Some(9000)]).unwrap();
            }),
        ),
    ] {
        let at = [Time::from_millis(10_003), Time::from_millis(15_001)];
        let (injected, same) = forged_call(at.map(|at| (at, bytes.clone())).to_vec());
        assert!(same == log && injected.forward_log == plain.forward_log, "{what}");
        assert!(injected.sender_rejected() >= 2, "{what}");
    }
}

/// A packet whose arrival time is not in the report is neither reported nor in flight.
#[test]
fn arrivals_without_a_time_are_not_reported() {
    let arrived = |offset| Some(Reception { ecn: Ecn::NotEct, offset });
    let packets = [ArrivalOffset::OverRange, ArrivalOffset::Unavailable, ArrivalOffset::Units(9)].map(arrived);
    let bytes = compound(|w| w.congestion_feedback(1, 77, &[(1000, 100, &packets)]).unwrap());
    let drop: Impairment = drop_if(|_, _, bytes| is_report(bytes));
    let at = Time::from_secs(1);
    let (_, log) = call(1500, 2).run_with(pass(), drop, |config| config.injected = vec![(at, bytes)]);
    let [(at_report, report)] = log.reports[..] else { panic!("{} reports", log.reports.len()) };
    assert_eq!((at_report, report.sequence, report.arrival.is_some()), (at, 2, true));
    let sent: DataSize = log.sent.iter().filter(|(t, _)| *t < at).skip(3).map(|(_, p)| p.size).sum();
    assert_eq!(log.outstanding, [sent]);
}

/// RFC 8888 feedback is rejected if it was not negotiated.
#[test]
fn feedback_that_was_not_negotiated_is_rejected() {
    let arrived = Some(Reception { ecn: Ecn::NotEct, offset: ArrivalOffset::Units(9) });
    let bytes = compound(|w| w.congestion_feedback(1, 77, &[(1000, 100, &[arrived])]).unwrap());
    for feedback in [None, Some(TRANSPORT_WIDE)] {
        let (injected, log) =
            Call { feedback, ..call(1500, 2) }.run_with(pass(), drop_if(|_, _, bytes| is_rtcp(bytes)), |config| {
                config.injected = vec![(Time::from_secs(1), bytes.clone())];
            });
        assert_eq!((log.reports.len(), injected.sender_rejected()), (0, 1));
    }
}

/// 20 ms each way. Reports leave every 50 ms, so without the receiver's time a packet seems to take up to 90 ms.
#[test]
fn round_trip_time_of_packets_excludes_the_time_in_the_receiver() {
    let (_, log) = call(500, 10).run(pass(), pass());
    let with_hold = |(at, report): &(Time, paceline::PacketReport)| (*at - report.sent).as_millis_f64();
    let slowest = log.reports.iter().map(with_hold).fold(0.0, f64::max);
    assert_within(slowest, 80.0, 120.0, "time from packet to report, ms");
    let samples: Vec<_> = log.feedback_rtts.iter().filter_map(|(_, rtt)| *rtt).collect();
    assert_within(samples.len() as f64, 150.0, 250.0, "samples");
    for rtt in samples {
        // 1200 bytes take 0.1 ms; the offset is rounded to 1/1024 s.
        assert_within(rtt.last.as_millis_f64(), 39.0, 41.2, "last, ms");
        assert_within(rtt.smoothed.as_millis_f64(), 39.0, 41.2, "smoothed, ms");
    }
    let (_, log) = Call { feedback: Some(TRANSPORT_WIDE), ..call(500, 10) }.run(pass(), pass());
    assert!(log.feedback_rtts.len() > 100 && log.feedback_rtts.iter().all(|(_, rtt)| rtt.is_none()));
}

/// RFC 9000, section 13.4.2: a path that clears the field gets no more ECN-capable packets, until the route changes.
#[test]
fn controllers_stop_ecn_on_a_path_that_clears_the_field() {
    for name in ["scream", "nada-sender"] {
        let codepoint = |cleared: bool| {
            let mut config = CallConfig::new(controller(name, kbps(1000), &[]), kbps(1000));
            config.forward = Box::new(move |_, now, _| match cleared && now >= Time::from_secs(3) {
                true => Fate::Bleach,
                false => Fate::Deliver,
            });
            let mut call = TestCall::new(config);
            call.run_secs(2);
            let before = call.sender.decision().ecn;
            call.run_secs(5);
            let after = call.sender.decision().ecn;
            let setup = Setup::new(kbps(300), kbps(50), kbps(1000));
            call.sender.handle_route_change(call.now, &setup);
            [before, after, call.sender.decision().ecn]
        };
        assert_eq!(codepoint(true), [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0], "{name}");
        assert_eq!(codepoint(false), [Ecn::Ect0; 3], "{name}");
    }
}

/// The receiver gets no packet, so it sends no report. Media flows once packets are no longer ECN-capable.
#[test]
fn controllers_stop_ecn_on_a_path_that_drops_ecn_capable_packets() {
    for name in ["scream", "nada-sender"] {
        let mut config = CallConfig::new(controller(name, kbps(1000), &[]), kbps(1000));
        config.forward = Box::new(|_, _, _| Fate::DropEcnCapable);
        let call = TestCall::run(config, 10);
        assert_eq!(call.sender.decision().ecn, Ecn::NotEct, "{name}");
        let first = call.rendered.first().expect("a frame arrives").at;
        assert!(first < Time::from_secs(5), "{name}: {first:?}");
    }
}
