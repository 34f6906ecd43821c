//! Feedback of RFC 8888 through both endpoints: what the send half is told of each packet that it sent, as transport-wide
//! feedback would tell it, but for coarser times and with ECN.

use crate::told::{Call, Log, arrivals_are_right, packets, pass, said, windowed};
use crate::world::{Fate, Impair, World};
use crate::{kbps, ms, within};
use paceline::{FecScheme, FeedbackKind, PacketKind, Protection, ResendRule};
use paceline_units::{DataSize, Ecn, Streams, Time, TimeDelta};
use paceline_wire::{ArrivalOffset, CompoundWriter, Reception, Rtcp, is_rtcp, parse_compound};

const FEEDBACK: FeedbackKind = FeedbackKind::Rfc8888 { interval: ms(50), longest: ms(50) };
/// Between two arrivals: half of 1/1024 s each, and the clock's 1/65536 s.
const ERROR: TimeDelta = TimeDelta::from_micros(977 + 31);

fn call(rate_kbps: u64, seconds: i64) -> Call {
    Call { feedback: FEEDBACK, ecn: Ecn::Ect1, rate: kbps(rate_kbps), seconds }
}

fn is_report(bytes: &[u8]) -> bool {
    parse_compound(bytes).unwrap().into_iter().any(|p| matches!(p, Rtcp::CongestionFeedback(_)))
}

/// What feedback meets by its number.
fn reports(mut fate: impl FnMut(u64) -> Fate + 'static) -> Impair {
    let mut number = 0;
    Box::new(move |_, _, bytes| {
        number += u64::from(is_report(bytes));
        if is_report(bytes) { fate(number - 1) } else { Fate::Pass }
    })
}

/// Media, retransmissions and forward error correction, each with a place in its stream's numbers.
#[test]
fn every_packet_of_every_kind_is_told_of_once() {
    let mut random = Streams::new(11).stream("loss");
    let lose: Vec<bool> = (0..20_000).map(|_| random.chance(0.05)).collect();
    let fate = {
        let lose = lose.clone();
        packets(move |n, now| if now < Time::from_secs(59) && lose[n as usize] { Fate::Drop } else { Fate::Pass })
    };
    let (world, log) = call(1500, 60).run_with(fate, pass(), |setting| {
        setting.protection = Protection { fec: FecScheme::Ulpfec, resend: ResendRule::RoundTrip };
    });
    assert_eq!(world.sender_refused(), 0);
    let (mut silent, mut resent_lost) = (0, 0);
    for (n, said) in said(&log).iter().enumerate() {
        let dropped = log.sent[n].0 < Time::from_secs(59) && lose[n];
        let resent = log.sent[n].1.kind == PacketKind::Retransmission;
        resent_lost += u32::from(dropped && resent);
        // Nothing tells of the first and the last of a stream's packets, if they are lost.
        if dropped && said.is_empty() {
            silent += 1;
            assert!(resent, "packet {n}");
        } else {
            assert_eq!(said[..], [!dropped], "packet {n}");
        }
    }
    assert!(silent <= 2 && resent_lost >= 2, "{silent}, {resent_lost}");
    for (kind, least) in [(PacketKind::Media, 5000), (PacketKind::Fec, 300), (PacketKind::Retransmission, 20)] {
        let count = log.sent.iter().filter(|(_, p)| p.kind == kind).count();
        assert!(count >= least, "{kind:?}: {count}");
    }
    arrivals_are_right(&log, ERROR, |_| TimeDelta::ZERO);
    for (at, report) in &log.reports {
        let told_ms = (*at - report.sent).as_millis_f64();
        // 20 ms there and back, at most an interval of waiting; a loss is known with the stream's next arrival.
        let most = if log.sent[report.sequence as usize].1.kind == PacketKind::Retransmission { 5000.0 } else { 130.0 };
        within(told_ms, 40.0, if report.arrival.is_some() { 90.0 + 1.0 } else { most }, "told after, ms");
        assert_eq!(report.ecn, if report.arrival.is_some() { Ecn::Ect1 } else { Ecn::NotEct });
    }
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    assert_eq!(log.after_highest, DataSize::ZERO);
}

#[test]
fn the_sixteen_bits_and_the_report_clock_wrap() {
    let (_, log) = call(30_000, 30).run_with(pass(), pass(), |setting| {
        setting.clock_offset = TimeDelta::from_secs(65_536 - 10); // the timestamp's 32 bits begin anew after 10 s
    });
    within(log.sent.len() as f64, 90_000.0, 110_000.0, "packets");
    assert!(said(&log).iter().all(|said| said[..] == [true]));
    arrivals_are_right(&log, ERROR, |_| TimeDelta::ZERO);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    // 100 ms of 30 Mbps at most.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 375_000));
}

#[test]
fn of_a_wide_gap_the_end_is_told() {
    for gap in [150, 300, 1000, 5000] {
        let fate = packets(move |n, _| if (1007..1007 + gap).contains(&n) { Fate::Drop } else { Fate::Pass });
        let (_, log) = call(5000, 30).run_with(fate, pass(), |setting| setting.retransmit = false);
        for (n, said) in said(&log).iter().enumerate() {
            let n = n as u64;
            match () {
                () if !(1007..1007 + gap).contains(&n) => assert_eq!(said[..], [true], "packet {n}, gap {gap}"),
                // The report reaches back by 1024 from the highest that had come, a few after the gap.
                () if n + 990 >= 1007 + gap => assert_eq!(said[..], [false], "packet {n}, gap {gap}"),
                () => assert!(said.is_empty() || said[..] == [false], "packet {n}, gap {gap}"),
            }
        }
        let told = said(&log)[1007..1007 + gap as usize].iter().filter(|s| !s.is_empty()).count() as u64;
        within(told as f64, gap.min(990) as f64, gap.min(1023) as f64, "packets told of");
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}

/// Every other report: each packet is in one that comes.
#[test]
fn a_lost_report_loses_nothing() {
    for odd in [0, 1] {
        let (world, log) = call(1500, 60).run(
            // The very first packets as well: of those nobody ever tells.
            packets(|n, _| if n < 3 { Fate::Drop } else { Fate::Pass }),
            reports(move |n| if n % 2 == odd { Fate::Drop } else { Fate::Pass }),
        );
        assert!(said(&log).iter().enumerate().all(|(n, s)| if n < 3 { s.is_empty() } else { s[..] == [true] }));
        arrivals_are_right(&log, ERROR, |_| TimeDelta::ZERO);
        assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
        assert!(log.outstanding.iter().all(|o| o.as_bytes() < 50_000), "two reports' worth at 1.5 Mbps");
        within(world.shown.len() as f64, 1795.0, 1799.0, "frames");
    }
}

#[test]
fn two_lost_reports_lose_what_only_they_told() {
    let (_, log) = call(1500, 60).run(pass(), reports(|n| if n % 10 < 2 { Fate::Drop } else { Fate::Pass }));
    let said = said(&log);
    let silent = said.iter().filter(|s| s.is_empty()).count();
    within(silent as f64 / said.len() as f64, 0.08, 0.12, "packets nobody told of");
    assert!(said.iter().all(|s| s.is_empty() || s[..] == [true]));
    arrivals_are_right(&log, ERROR, |_| TimeDelta::ZERO);
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 75_000), "what was not told is not in flight");
}

#[test]
fn duplicates_are_told_of_once_and_late_packets_again() {
    let late = |n: u64| if n % 50 == 7 { ms(150) } else { TimeDelta::ZERO };
    let fate = packets(move |n, _| match n {
        _ if n % 50 == 7 => Fate::Late(late(n)),
        _ if n % 9 == 0 => Fate::Twice,
        _ => Fate::Pass,
    });
    let (_, log) = call(1500, 60).run_with(fate, pass(), |setting| setting.retransmit = false);
    let said = said(&log);
    for (n, said) in said[..said.len() - 60].iter().enumerate() {
        let expected = if n % 50 == 7 { &[false, true][..] } else { &[true][..] };
        assert_eq!(said, expected, "packet {n}");
    }
    arrivals_are_right(&log, ERROR, late);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
}

#[test]
fn marks_are_told() {
    for sent in [Ecn::Ect0, Ecn::Ect1] {
        let fate = packets(|n, _| match n % 10 {
            3 => Fate::Marked,
            7 => Fate::TwiceMarked,
            8 => Fate::Twice,
            _ => Fate::Pass,
        });
        let (_, log) = Call { ecn: sent, ..call(1500, 20) }.run(fate, pass());
        assert!(log.reports.len() > 2000);
        for (_, report) in &log.reports {
            let marked = matches!(report.sequence % 10, 3 | 7);
            assert_eq!(report.ecn, if marked { Ecn::Ce } else { sent }, "packet {}", report.sequence);
        }
    }
}

/// A sender that waits for news sends nothing that would make the receiver report: the last packets are told of twice
/// all the same. With every other report lost a round takes up to 100 ms more: 6000 bytes in 240 ms at worst.
#[test]
fn a_full_window_survives_a_lost_report() {
    let bps = |packets| packets as f64 * 1228.0 * 8.0 / 20.0;
    let (packets, most) = windowed(FEEDBACK, pass());
    within(most as f64, 1000.0, 6000.0 + 1228.0, "bytes in flight");
    within(bps(packets), 0.5e6, 1.25e6, "bit/s");
    let (packets, most) = windowed(FEEDBACK, reports(|n| if n % 2 == 0 { Fate::Drop } else { Fate::Pass }));
    assert!(most < 6000 + 1228, "{most} bytes in flight");
    within(bps(packets), 0.2e6, 0.8e6, "bit/s");
}

fn forged_call(forged: Vec<(Time, Vec<u8>)>) -> (World, Log) {
    let mut random = Streams::new(5).stream("loss");
    let fate = packets(move |_, _| if random.chance(0.02) { Fate::Drop } else { Fate::Pass });
    call(1500, 20).run_with(fate, pass(), |setting| setting.forged = forged)
}

fn compound(write: impl Fn(&mut CompoundWriter<'_>)) -> Vec<u8> {
    let mut buffer = [0; 1024];
    let mut writer = CompoundWriter::new(&mut buffer);
    write(&mut writer);
    let len = writer.finish();
    buffer[..len].to_vec()
}

#[test]
fn replayed_and_forged_reports_change_nothing() {
    let (plain, log) = forged_call(Vec::new());
    assert!(log.reports.iter().filter(|(_, r)| r.arrival.is_none()).count() > 20, "there is loss to tell");
    for after_ms in [20, 27, 150, 2520, 9020] {
        let copies = plain.back_log.iter().filter(|l| is_report(&l.bytes));
        let (again, same) = forged_call(copies.map(|l| (l.at + ms(after_ms), l.bytes.clone())).collect());
        assert!(same == log && again.forward_log == plain.forward_log, "replayed after {after_ms} ms");
    }
    // Our streams are 1000 and 1001; media begin at 100, and some 3000 packets are sent in all.
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
            "transport-wide, which nobody asked for",
            compound(|w| {
                w.transport_feedback(1, 1000, 400, 0, &[Some(1), None, Some(9000)]).unwrap();
            }),
        ),
    ] {
        let at = [Time::from_millis(10_003), Time::from_millis(15_001)];
        let (forged, same) = forged_call(at.map(|at| (at, bytes.clone())).to_vec());
        assert!(same == log && forged.forward_log == plain.forward_log, "{what}");
        assert!(forged.sender_refused() >= 2, "{what}");
    }
}

/// What arrived at a time that the report cannot say is neither news nor in flight.
#[test]
fn an_arrival_without_a_time_is_not_told() {
    let came = |offset| Some(Reception { ecn: Ecn::NotEct, offset });
    let packets = [ArrivalOffset::OverRange, ArrivalOffset::Unavailable, ArrivalOffset::Units(9)].map(came);
    let bytes = compound(|w| w.congestion_feedback(1, 77, &[(1000, 100, &packets)]).unwrap());
    let drop: Impair = Box::new(|_, _, bytes| if is_report(bytes) { Fate::Drop } else { Fate::Pass });
    let at = Time::from_secs(1);
    let (_, log) = call(1500, 2).run_with(pass(), drop, |setting| setting.forged = vec![(at, bytes)]);
    let [(told, report)] = log.reports[..] else { panic!("{} reports", log.reports.len()) };
    assert_eq!((told, report.sequence, report.arrival.is_some()), (at, 2, true));
    let sent: DataSize = log.sent.iter().filter(|(t, _)| *t < at).skip(3).map(|(_, p)| p.size).sum();
    assert_eq!(log.outstanding, [sent]);
}

/// The other kind is refused where this one was not asked for.
#[test]
fn nobody_hears_a_report_that_was_not_asked_for() {
    let came = Some(Reception { ecn: Ecn::NotEct, offset: ArrivalOffset::Units(9) });
    let bytes = compound(|w| w.congestion_feedback(1, 77, &[(1000, 100, &[came])]).unwrap());
    for feedback in [FeedbackKind::None, FeedbackKind::TransportWide { interval: ms(50), longest: ms(50) }] {
        let (forged, log) = Call { feedback, ..call(1500, 2) }.run_with(
            pass(),
            Box::new(|_, _, bytes| if is_rtcp(bytes) { Fate::Drop } else { Fate::Pass }),
            |setting| {
                setting.forged = vec![(Time::from_secs(1), bytes.clone())];
            },
        );
        assert_eq!((log.reports.len(), forged.sender_refused()), (0, 1));
    }
}
