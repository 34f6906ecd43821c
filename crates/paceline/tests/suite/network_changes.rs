// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every registered controller handles new limits, a change of the route, and a network that is unavailable.

use crate::conformance::{Harness, built, setups, step};
use paceline::{Bounds, Event, Registry, SendHalf, SentPacket, Setup, Signals};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn target_lies_within_new_bounds_at_once_and_stays_there(
        setup in setups(),
        before in proptest::collection::vec(step(), 0..60),
        (min, more) in (0u64..3_000_000, 0u64..3_000_000),
        after in proptest::collection::vec(step(), 1..60),
    ) {
        let bounds = Bounds::new(Rate::from_bps(min), Rate::from_bps(min + more));
        for entry in Registry::standard().iter() {
            let mut harness = Harness::new(built(entry, &setup), setup);
            harness.run(&before);
            let Harness { controller, now, remote, signals, .. } = &mut harness;
            if let Some(half) = &mut controller.send {
                half.handle_event(*now, &Event::Bounds(&bounds), signals);
                let target = half.decision().target;
                prop_assert!(bounds.clamp(target) == target, "{}: {target} in {bounds:?}", entry.name());
            }
            if let Some(half) = &mut controller.receive {
                half.handle_bounds(*remote, &bounds);
            }
            (harness.setup.min, harness.max) = (bounds.min, bounds.max);
            harness.run(&after);
        }
    }

    #[test]
    fn controller_behaves_like_a_new_one_after_a_route_change(
        setup in setups(),
        before in proptest::collection::vec(step(), 1..60),
        new in setups(),
        after in proptest::collection::vec(step(), 1..60),
    ) {
        for entry in Registry::standard().iter() {
            let mut harness = Harness::new(built(entry, &setup), setup);
            harness.run(&before);
            harness.setup = new;
            let mut fresh = harness.branch(built(entry, &new));
            let Harness { controller, now, remote, signals, .. } = &mut harness;
            if let Some(half) = &mut controller.send {
                half.handle_event(*now, &Event::RouteChange(&new), signals);
            }
            if let Some(half) = &mut controller.receive {
                half.handle_route_change(*remote, &new);
            }
            signals.drain().for_each(drop);
            harness.outputs.clear();
            harness.emitted.clear();
            harness.run(&after);
            fresh.run(&after);
            prop_assert!(harness.outputs == fresh.outputs && harness.emitted == fresh.emitted, "{}", entry.name());
        }
    }
}

/// Sends a packet each 100 ms if the network is available, and handles timeouts in any case. Returns the last target.
fn run(half: &mut dyn SendHalf, now: &mut Time, for_s: i64, sends: bool) -> Rate {
    for _ in 0..10 * for_s {
        *now += TimeDelta::from_millis(100);
        if half.poll_timeout().is_some_and(|due| due <= *now) {
            half.handle_event(*now, &Event::Timeout, &mut Signals::disabled());
        }
        if sends {
            let packet = SentPacket::new(0, DataSize::from_bytes(1200));
            half.handle_event(*now, &Event::Sent(&packet), &mut Signals::disabled());
        }
    }
    half.decision().target
}

/// Without feedback, the guard lowers the target 3 s after the first packet; not while the network is unavailable.
#[test]
fn unavailable_network_does_not_lower_the_target() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    for entry in Registry::standard().iter().filter(|entry| entry.controls()) {
        let mut half = built(entry, &setup).send.unwrap();
        let mut now = Time::ZERO;
        let before = run(&mut *half, &mut now, 2, true);
        half.handle_event(now, &Event::Availability(false), &mut Signals::disabled());
        assert_eq!(run(&mut *half, &mut now, 60, false), before, "{}", entry.name());
        half.handle_event(now, &Event::Availability(true), &mut Signals::disabled());
        assert_eq!(run(&mut *half, &mut now, 2, true), before, "{}", entry.name());
        let after = run(&mut *half, &mut now, 2, true);
        assert!(after < before.scale(0.81), "{}: {after} without feedback", entry.name());

        let mut half = built(entry, &setup).send.unwrap();
        assert!(run(&mut *half, &mut Time::ZERO.clone(), 4, true) < before.scale(0.81), "{}", entry.name());
    }
}

/// The first decrease follows 3 s after the first packet, however often the half is told that there is a network.
#[test]
fn availability_that_does_not_change_has_no_effect_on_the_guard() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    for entry in Registry::standard().iter().filter(|entry| entry.controls()) {
        let mut half = built(entry, &setup).send.unwrap();
        let mut now = Time::ZERO;
        let before = run(&mut *half, &mut now, 2, true);
        half.handle_event(now, &Event::Availability(true), &mut Signals::disabled());
        assert!(run(&mut *half, &mut now, 2, true) < before.scale(0.81), "{}", entry.name());
    }
}

/// The guard does not lower the target below a new minimum, and a higher minimum raises its cap.
#[test]
fn every_controller_falls_to_the_minimum_without_feedback() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    for entry in Registry::standard().iter().filter(|entry| entry.name() != "fixed") {
        let mut half = built(entry, &setup).send.unwrap();
        let (mut now, before) = (Time::ZERO, half.decision().target);
        let early = run(&mut *half, &mut now, 4, true);
        assert!(early <= before.scale(0.5), "{}: {early} after {before}", entry.name());
        assert_eq!(run(&mut *half, &mut now, 26, true), setup.min, "{}", entry.name());
    }
}

#[test]
fn guard_follows_the_minimum() {
    let setup = Setup::new(Rate::from_kbps(900), Rate::from_kbps(50), Rate::from_kbps(2000));
    let entry = Registry::standard();
    let mut half = built(entry.get("gcc-2016").unwrap(), &setup).send.unwrap();
    let mut now = Time::ZERO;
    let bounds = |min| Bounds::new(Rate::from_kbps(min), Rate::from_kbps(2000));
    half.handle_event(now, &Event::Bounds(&bounds(200)), &mut Signals::disabled());
    assert_eq!(run(&mut *half, &mut now, 30, true), Rate::from_kbps(200));
    half.handle_event(now, &Event::Bounds(&bounds(400)), &mut Signals::disabled());
    assert_eq!(half.decision().target, Rate::from_kbps(400));
    half.handle_event(now, &Event::Bounds(&bounds(50)), &mut Signals::disabled());
    assert_eq!(run(&mut *half, &mut now, 30, true), Rate::from_kbps(50));
    half.handle_event(now, &Event::RouteChange(&setup), &mut Signals::disabled());
    assert_eq!(half.decision().target, setup.start, "no cap after a route change");
}
