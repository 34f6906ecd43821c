// SPDX-License-Identifier: MIT OR Apache-2.0
use super::config::LossV2Config;
use super::*;
use crate::testing::kbps;
use paceline_units::{DataSize, RemoteTime};

/// Reports on 50 packets of 1000 bytes, 5 ms apart, of which `lost` are lost; the newest was sent at 250 (i + 1) ms.
fn message(i: i64, lost: impl Fn(i64) -> bool) -> Vec<PacketReport> {
    let packet = |j: i64| {
        let (sent, number) = (Time::from_millis(250 * i + 5 * (j + 1)), (50 * i + j) as u64);
        let arrival = (!lost(j)).then_some(RemoteTime::ZERO);
        PacketReport::new(number, sent, DataSize::from_bytes(1000), arrival)
    };
    (0..50).map(packet).collect()
}

const CLOCK: TimeDelta = TimeDelta::from_millis(1);

fn estimator(config: LossV2Config) -> LossV2 {
    let mut v2 = LossV2::new(config);
    v2.set_bounds(kbps(5), Rate::from_bps(1_000_000_000));
    v2
}

/// Vector G1 (model run): from i = 4 to 9 half of the packets are lost; the delay-based rate is 2 Mbit/s.
#[test]
fn loss_phase_decreases_holds_pads_and_holds_longer() {
    let mut v2 = estimator(LossV2Config::LIBWEBRTC);
    let mut rows = Vec::new();
    for i in 0..24 {
        let in_phase = (4..10).contains(&i);
        v2.set_acked(kbps(if i < 4 {
            1600
        } else if in_phase {
            800
        } else {
            1200
        }));
        v2.handle_feedback(&message(i, |j| in_phase && j % 2 == 0), CLOCK, kbps(2000), false);
        if [4, 5, 10, 18, 19, 23].contains(&i) {
            let average = (v2.average_loss * 1e6).round() / 1e6;
            let best = v2.best.bandwidth.as_bps() / 1000;
            let result = v2.result().map(|(rate, state)| (rate.as_bps() / 1000, state));
            rows.push((i, average, v2.upper.as_bps().min(1_000_000_000), best, result));
        }
    }
    use LossState::{Decreasing as X, DelayBased as D, IncreaseUsingPadding as P};
    let expected = [
        (4, 0.0, 1_000_000_000, 2000, Some((2000, D))),
        (5, 0.196928, 680_606, 800, Some((800, X))),
        (10, 0.329403, 357_906, 1200, Some((1200, P))),
        (18, 0.114929, 1_540_133, 1200, Some((1200, P))),
        (19, 0.085856, 2_788_933, 1200, Some((1200, X))),
        (23, 0.0, 1_000_000_000, 1440, Some((1440, P))),
    ];
    for (row, expected) in rows.iter().zip(expected) {
        let near = row.2.abs_diff(expected.2) <= 300;
        assert!(near, "{row:?} {expected:?}");
        assert_eq!((row.0, row.1, row.3, row.4), (expected.0, expected.1, expected.3, expected.4));
    }
    assert_eq!(v2.hold.duration, TimeDelta::from_millis(1200));
    assert_eq!(rows.len(), 6);
}

#[test]
fn result_needs_three_observations_of_250_ms() {
    let mut v2 = estimator(LossV2Config::LIBWEBRTC);
    // The first message spans 245 ms.
    let ready = [0, 1, 2, 3].map(|i| {
        v2.handle_feedback(&message(i, |_| false), CLOCK, kbps(2000), false);
        v2.is_ready()
    });
    assert_eq!(ready, [false, false, false, true]);
    let mut unknown = estimator(LossV2Config::LIBWEBRTC);
    (0..9).for_each(|i| unknown.handle_feedback(&message(i, |_| false), CLOCK, Rate::MAX, false));
    assert!(!unknown.is_ready(), "no delay-based rate");
}

/// By hand, with weights of 1: of the ratios 0, 0.1, 0.5 and 0.2 the first and the third do not count.
#[test]
fn observations_of_most_and_least_loss_do_not_count() {
    let mut v2 = estimator(LossV2Config { weight: 1.0, upper_weight: 1.0, ..LossV2Config::LIBWEBRTC });
    for (i, lost) in [0, 0, 5, 25, 10].into_iter().enumerate() {
        v2.handle_feedback(&message(i as i64, |j| j < lost), CLOCK, kbps(2000), false);
    }
    // The first message is part of the first observation: 100 packets without loss.
    assert!((v2.average_loss - 15.0 / 100.0).abs() < 1e-12, "{}", v2.average_loss);
    assert!((v2.packet_loss() - 40.0 / 250.0).abs() < 1e-12);
    // The sending rates are 1616 and 1600 kbit/s. At twice the median of the four the observation of most loss counts.
    v2.observations[2].rate = kbps(3216);
    assert!((v2.byte_loss() - 15.0 / 100.0).abs() < 1e-12, "{}", v2.byte_loss());
    v2.observations[2].rate = kbps(3217);
    assert!((v2.byte_loss() - 40.0 / 250.0).abs() < 1e-12, "{}", v2.byte_loss());
}

#[test]
fn packet_that_arrives_after_all_is_not_lost() {
    let mut v2 = estimator(LossV2Config::LIBWEBRTC);
    let mut packets = message(0, |j| j == 3 || j == 7);
    v2.handle_feedback(&packets, CLOCK, kbps(2000), false);
    assert_eq!(v2.partial.lost, [(3, 1000), (7, 1000)]);
    packets[3].arrival = Some(RemoteTime::ZERO);
    v2.handle_feedback(&packets[3..4], CLOCK, kbps(2000), false);
    packets[1].arrival = None;
    v2.handle_feedback(&packets[1..2], CLOCK, kbps(2000), false);
    assert_eq!((&v2.partial.lost[..], v2.partial.packets), (&[(1, 1000), (7, 1000)][..], 52));
}
