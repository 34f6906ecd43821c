//! Transport-wide feedback through both endpoints: what the send half is told of each packet that it sent.

use crate::told::{Call, arrivals_are_right, packets, pass, said, windowed};
use crate::world::Fate;
use crate::{kbps, ms, within};
use paceline::FeedbackKind;
use paceline_units::{DataSize, Ecn, Streams, Time, TimeDelta};
use paceline_wire::TICK;

const FEEDBACK: FeedbackKind = FeedbackKind::TransportWide { interval: ms(50), longest: ms(50) };

fn call(rate_kbps: u64, seconds: i64) -> Call {
    Call { feedback: FEEDBACK, ecn: Ecn::NotEct, rate: kbps(rate_kbps), seconds }
}

#[test]
fn every_packet_is_told_of_once() {
    let mut random = Streams::new(11).stream("loss");
    let mut lost = Vec::new();
    let lose: Vec<bool> = (0..20_000).map(|_| random.chance(0.05)).collect();
    let (_, log) = call(1500, 60).run(
        packets({
            let lose = lose.clone();
            move |n, now| if now < Time::from_secs(59) && lose[n as usize] { Fate::Drop } else { Fate::Pass }
        }),
        pass(),
    );
    for (n, said) in said(&log).iter().enumerate() {
        let dropped = log.sent[n].0 < Time::from_secs(59) && lose[n];
        assert_eq!(said[..], [!dropped], "packet {n}");
        lost.push(dropped);
    }
    within(lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64, 0.04, 0.06, "loss");
    arrivals_are_right(&log, TICK, |_| TimeDelta::ZERO);
    for (at, report) in &log.reports {
        // 20 ms there and back, at most an interval of waiting; a loss is known with the next arrival.
        within((*at - report.sent).as_millis_f64(), 40.0, 40.0 + 50.0 + 40.0, "told after, ms");
    }
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
}

#[test]
fn the_sixteen_bits_wrap() {
    let (_, log) = call(30_000, 30).run(pass(), pass());
    within(log.sent.len() as f64, 90_000.0, 110_000.0, "packets");
    assert!(said(&log).iter().all(|said| said[..] == [true]));
    arrivals_are_right(&log, TICK, |_| TimeDelta::ZERO);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    // 100 ms of 30 Mbps at most.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 375_000));
}

#[test]
fn a_gap_wider_than_a_report_is_told_of() {
    for gap in [150, 200, 201, 300, 5000] {
        let (_, log) = call(5000, 30)
            .run(packets(move |n, _| if (1007..1007 + gap).contains(&n) { Fate::Drop } else { Fate::Pass }), pass());
        for (n, said) in said(&log).iter().enumerate() {
            assert_eq!(said[..], [!(1007..1007 + gap).contains(&(n as u64))], "packet {n}, gap {gap}");
        }
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}

#[test]
fn lost_feedback_does_not_break_the_join() {
    let mut random = Streams::new(12).stream("loss");
    let (world, log) = call(1500, 60).run(
        // The very first packets as well: of those nobody ever tells.
        packets(|n, _| if n < 3 { Fate::Drop } else { Fate::Pass }),
        Box::new(move |_, now, _| {
            if (Time::from_secs(1)..Time::from_secs(59)).contains(&now) && random.chance(0.2) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        }),
    );
    let said = said(&log);
    let silent = said.iter().filter(|s| s.is_empty()).count();
    within(silent as f64 / said.len() as f64, 0.12, 0.28, "packets nobody told of");
    assert!(said.iter().enumerate().all(|(n, s)| s.is_empty() || s[..] == [n >= 3]));
    arrivals_are_right(&log, TICK, |_| TimeDelta::ZERO);
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
    // A few reports' worth at 1.5 Mbps; never the tenth part of what was not told.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 150_000));
    within(world.shown.len() as f64, 1795.0, 1799.0, "frames");
}

#[test]
fn duplicates_are_told_of_once_and_late_packets_again() {
    let late = |n: u64| if n % 50 == 7 { ms(150) } else { TimeDelta::ZERO };
    let (_, log) = call(1500, 60).run(
        packets(move |n, _| match n {
            _ if n % 50 == 7 => Fate::Late(late(n)),
            _ if n % 9 == 0 => Fate::Twice,
            _ => Fate::Pass,
        }),
        pass(),
    );
    let said = said(&log);
    for (n, said) in said[..said.len() - 60].iter().enumerate() {
        let expected = if n % 50 == 7 { &[false, true][..] } else { &[true][..] };
        assert_eq!(said, expected, "packet {n}");
    }
    arrivals_are_right(&log, TICK, late);
    assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
}

/// 6000 bytes each round trip of 40 ms, and up to 50 ms until they are reported: 0.53 to 1.2 Mbit/s of the 2 wanted.
#[test]
fn a_window_bounds_what_is_in_flight() {
    let (packets, most) = windowed(FEEDBACK, pass());
    let bytes: u64 = packets as u64 * 1228;
    within(bytes as f64 * 8.0 / 20.0, 0.5e6, 1.25e6, "bit/s");
    within(most as f64, 1000.0, 6000.0 + 1228.0, "bytes in flight");
}
