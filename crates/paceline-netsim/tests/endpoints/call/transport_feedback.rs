// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transport-wide feedback through both endpoints: the reports that the send half gets on each sent packet.

use crate::call::harness::{Fate, drop_if, pass};
use crate::call::packet_reports::{Call, TRANSPORT_WIDE, assert_arrivals, outcomes, packets, windowed};
use crate::call::{assert_within, kbps};
use paceline_units::{DataSize, Ecn, RandomStreams, Time, TimeDelta};
use paceline_wire::TWCC_TICK;

fn call(rate_kbps: u64, seconds: i64) -> Call {
    Call { feedback: Some(TRANSPORT_WIDE), ecn: Ecn::NotEct, rate: kbps(rate_kbps), seconds }
}

#[test]
fn every_packet_is_reported_once() {
    let mut random = RandomStreams::new(11).stream("loss");
    let mut lost = Vec::new();
    let lose: Vec<bool> = (0..20_000).map(|_| random.chance(0.05)).collect();
    let (_, log) = call(1500, 60).run(
        packets({
            let lose = lose.clone();
            move |n, now| if now < Time::from_secs(59) && lose[n as usize] { Fate::Drop } else { Fate::Deliver }
        }),
        pass(),
    );
    for (n, outcomes) in outcomes(&log).iter().enumerate() {
        let dropped = log.sent[n].0 < Time::from_secs(59) && lose[n];
        assert_eq!(outcomes[..], [!dropped], "packet {n}");
        lost.push(dropped);
    }
    assert_within(lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64, 0.04, 0.06, "loss");
    assert_arrivals(&log, TWCC_TICK, |_| TimeDelta::ZERO);
    for (at, report) in &log.reports {
        // 20 ms each way and at most one report interval; a loss is known with the next arrival.
        assert_within((*at - report.sent).as_millis_f64(), 40.0, 40.0 + 50.0 + 40.0, "report delay, ms");
    }
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
}

#[test]
fn a_gap_wider_than_a_report_is_reported() {
    for gap in [150, 200, 201, 300, 5000] {
        let (_, log) = call(5000, 30)
            .run(packets(move |n, _| if (1007..1007 + gap).contains(&n) { Fate::Drop } else { Fate::Deliver }), pass());
        for (n, outcomes) in outcomes(&log).iter().enumerate() {
            assert_eq!(outcomes[..], [!(1007..1007 + gap).contains(&(n as u64))], "packet {n}, gap {gap}");
        }
        assert_eq!(*log.outstanding.last().unwrap(), DataSize::ZERO);
    }
}

#[test]
fn feedback_is_joined_correctly_after_lost_reports() {
    let mut random = RandomStreams::new(12).stream("loss");
    let (run, log) = call(1500, 60).run(
        // The first packets are lost too; they are never reported.
        packets(|n, _| if n < 3 { Fate::Drop } else { Fate::Deliver }),
        drop_if(move |_, now, _| (Time::from_secs(1)..Time::from_secs(59)).contains(&now) && random.chance(0.2)),
    );
    let outcomes = outcomes(&log);
    let silent = outcomes.iter().filter(|s| s.is_empty()).count();
    assert_within(silent as f64 / outcomes.len() as f64, 0.12, 0.28, "unreported packets");
    assert!(outcomes.iter().enumerate().all(|(n, s)| s.is_empty() || s[..] == [n >= 3]));
    assert_arrivals(&log, TWCC_TICK, |_| TimeDelta::ZERO);
    assert_eq!((*log.outstanding.last().unwrap(), log.after_highest), (DataSize::ZERO, DataSize::ZERO));
    // The data of a few reports at 1.5 Mbps, which is less than a tenth of the unreported data.
    assert!(log.outstanding.iter().all(|o| o.as_bytes() < 150_000));
    assert_within(run.rendered.len() as f64, 1795.0, 1799.0, "frames");
}

/// 6000 bytes per round trip of 40 ms and up to 50 ms until the report: 0.53 to 1.2 Mbit/s of the target of 2.
#[test]
fn the_window_limits_the_bytes_in_flight() {
    let (packets, most) = windowed(TRANSPORT_WIDE, pass());
    let bytes: u64 = packets as u64 * 1228;
    assert_within(bytes as f64 * 8.0 / 20.0, 0.5e6, 1.25e6, "bit/s");
    assert_within(most as f64, 1000.0, 6000.0 + 1228.0, "bytes in flight");
}
