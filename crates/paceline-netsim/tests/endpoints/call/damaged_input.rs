// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged and random input: no panic, no endless loop, and every malformed packet is counted.

use crate::call::harness::{CallConfig, controller};
use crate::call::kbps;
use paceline::{FecScheme, FeedbackRequirement, Protection, ResendRule, Signals};
use paceline_netsim::flow::{Datagram, MediaReceiver, MediaSender};
use paceline_units::{DataSize, Ecn, RemoteTime, Time, TimeDelta};
use proptest::prelude::*;

fn endpoints(fec: FecScheme, feedback: FeedbackRequirement) -> (MediaSender, MediaReceiver) {
    let mut config = CallConfig::new(controller("gcc-2016", kbps(1000), &[]), kbps(1000));
    config.controller.feedback = Some(feedback);
    config.streams[0].first_sequence = 65_500;
    config.streams[0].timestamp_offset = 9;
    config.clock_offset = TimeDelta::ZERO;
    config.protection = Protection { fec, resend: ResendRule::RoundTrip };
    config.endpoints(Signals::enabled)
}

fn fec() -> impl Strategy<Value = FecScheme> {
    prop_oneof![Just(FecScheme::None), Just(FecScheme::Ulpfec)]
}

/// Either format.
fn feedback() -> impl Strategy<Value = FeedbackRequirement> {
    let interval = TimeDelta::from_millis(50);
    any::<bool>().prop_map(move |ecn| FeedbackRequirement::new(interval, interval).with_ecn(ecn))
}

/// The damage to a datagram: bytes changed, truncated, dropped or duplicated; then a pause.
#[derive(Clone, Debug)]
struct Damage {
    changes: Vec<(usize, u8)>,
    cut: Option<usize>,
    copies: u8,
    then: TimeDelta,
}

fn damage_strategy() -> impl Strategy<Value = Damage> {
    let changes = prop_oneof![4 => Just(Vec::new()), 1 => proptest::collection::vec((0usize..80, any::<u8>()), 1..4)];
    let cut = prop_oneof![8 => Just(None), 1 => (0usize..60).prop_map(Some)];
    let then = prop_oneof![20 => Just(0i64), 1 => 0i64..100_000_000, 1 => 0i64..100_000_000_000];
    (changes, cut, prop_oneof![1 => Just(0u8), 9 => Just(1), 1 => Just(2)], then)
        .prop_map(|(changes, cut, copies, then)| Damage { changes, cut, copies, then: TimeDelta::from_nanos(then) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_datagrams_cause_no_panic_and_no_endless_loop(
        damages in proptest::collection::vec(damage_strategy(), 50..400),
        fec in fec(),
        feedback in feedback(),
    ) {
        let (mut sender, mut receiver) = endpoints(fec, feedback);
        let mut now = Time::ZERO;
        let mut out = Datagram::new();
        let mut damages = damages.into_iter();
        'call: loop {
            let reading = RemoteTime::from_nanos(now.as_nanos() + 777);
            let mut there: Vec<(Vec<u8>, DataSize)> = Vec::new();
            let mut back: Vec<Vec<u8>> = Vec::new();
            sender.handle_timeout(now);
            while sender.poll_transmit(now, &mut out).is_some() {
                there.push((out.bytes().to_vec(), out.size()));
                prop_assert!(there.len() < 10_000, "endless burst");
            }
            for (mut bytes, size) in there {
                let Some(damage_strategy) = damages.next() else { break 'call };
                damage(&mut bytes, &damage_strategy);
                for _ in 0..damage_strategy.copies {
                    receiver.handle_packet(reading, &bytes, size, Ecn::NotEct);
                }
                now += damage_strategy.then;
            }
            receiver.handle_timeout(reading);
            while receiver.poll_transmit(reading, &mut out) {
                back.push(out.bytes().to_vec());
                prop_assert!(back.len() < 10_000, "endless burst");
            }
            for mut bytes in back {
                let Some(damage_strategy) = damages.next() else { break 'call };
                damage(&mut bytes, &damage_strategy);
                for _ in 0..damage_strategy.copies {
                    sender.handle_packet(now, &bytes);
                }
            }
            while sender.poll_event().is_some() {}
            while receiver.poll_event().is_some() {}
            let d = sender.decision();
            prop_assert!(d.target >= kbps(50) && d.pacing >= d.target);
            now += TimeDelta::from_millis(2);
        }
    }

    #[test]
    fn random_bytes_cause_no_panic_and_no_rate_change(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..100),
        feedback in feedback(),
    ) {
        let (mut sender, mut receiver) = endpoints(FecScheme::Ulpfec, feedback);
        for (n, bytes) in datagrams.iter().enumerate() {
            let size = DataSize::from_bytes(bytes.len() as u64 + 28);
            sender.handle_packet(Time::from_millis(n as i64), bytes);
            receiver.handle_packet(RemoteTime::from_millis(n as i64), bytes, size, Ecn::NotEct);
        }
        let before = *sender.decision();
        prop_assert_eq!(before.target, kbps(300));
    }
}

fn damage(bytes: &mut Vec<u8>, damage_strategy: &Damage) {
    for &(at, value) in &damage_strategy.changes {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    if let Some(len) = damage_strategy.cut {
        bytes.truncate(len);
    }
}
