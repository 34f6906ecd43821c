// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts that the ends of a flow learn during a run, from the keys of a scenario: limits, route changes, availability.

use crate::fixtures::{observe, scenario, within};
use paceline_netsim::records::{EventRecord, PacketClass};
use paceline_scenario::Scenario;
use paceline_units::{Rate, Time};

/// A call over 5 Mbit/s, which never limits it.
const CALL: &str = r#"
id = "test/facts"
title = "A call that learns of changes"
duration = "40 s"
[path]
rtt = "40 ms"
[path.forward]
capacity = "5 Mbps"
[[flow]]
id = "video"
controller = "gcc-tfb"
encoder = { max = "4 Mbps" }
"#;

fn s(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as i64)
}

/// The targets of a run, bit/s, and the times at which packets of RTP left, s.
fn outcomes(scenario: &Scenario) -> (Vec<(Time, Rate)>, Vec<Time>) {
    let (mut targets, mut sent) = (Vec::new(), Vec::new());
    observe(scenario, 1, |event| match *event {
        EventRecord::Decision { at, target, .. } => targets.push((at, target)),
        EventRecord::Sent { at, packet, .. }
            if !matches!(packet.class, PacketClass::ReceiverControl | PacketClass::SenderControl) =>
        {
            sent.push(at);
        }
        _ => {}
    });
    (targets, sent)
}

/// Returns the target in force after everything that happens at a time.
fn target_at(targets: &[(Time, Rate)], at: Time) -> Rate {
    targets.iter().rfind(|(from, _)| *from <= at).expect("the first decision is at the start").1
}

/// The controller alone starts at 1 Mbit/s and reaches more than 3 Mbit/s. Each limit holds from its time on, to the
/// nanosecond, and the controller grows up to the new one.
#[test]
fn limits_hold_from_their_time_on() {
    let limits = [
        "flow.video.start_rate=1 Mbps",
        "flow.video.max_rate=[[\"0s\", \"700 kbps\"], [\"10s\", \"400 kbps\"], [\"20s\", \"3 Mbps\"]]",
        "flow.video.min_rate=[[\"0s\", \"100 kbps\"], [\"19s\", \"390 kbps\"], [\"30s\", \"3 Mbps\"]]",
    ];
    for controller in ["gcc-2016", "gcc-tfb", "nada", "nada-sender", "scream", "scream-cpp"] {
        let set = format!("flow.video.controller={controller}");
        let unlimited = outcomes(&scenario(CALL, &[&set, limits[0]])).0;
        assert!(unlimited.iter().any(|(_, target)| *target > Rate::from_kbps(1000)), "{controller}");
        let (targets, _) = outcomes(&scenario(CALL, &[&[set.as_str()][..], &limits].concat()));
        let kbps = |at: f64| target_at(&targets, s(at)).as_bps() as f64 / 1e3;
        within("first target", kbps(0.0), 700.0, 700.0);
        for (from, to, min, max) in [
            (0.0, 10.0, 100.0, 700.0),
            (10.0, 20.0, 100.0, 400.0),
            (20.0, 30.0, 390.0, 3000.0),
            (30.0, 40.0, 3000.0, 3000.0),
        ] {
            let in_force = targets.iter().filter(|(at, _)| s(from) <= *at && *at < s(to)).map(|(at, _)| *at);
            for at in in_force.chain([s(from)]) {
                within(
                    &format!("{controller}: target at {at}, kbit/s"),
                    target_at(&targets, at).as_bps_f64() / 1e3,
                    min,
                    max,
                );
            }
        }
        within(&format!("{controller}: target before 10 s"), kbps(9.999), 401.0, 700.0);
        within(&format!("{controller}: target at 10 s"), kbps(10.0), 100.0, 400.0);
        within(&format!("{controller}: target before 30 s"), kbps(29.999), 401.0, 3000.0);
    }
}

/// At 20 s the path gets another delay, and the controllers learn that. Afterwards each behaves like one of a flow that
/// starts at 20 s: its first target is the start rate, and ten seconds later both have about the same target.
#[test]
fn a_controller_starts_again_after_a_route_change() {
    let delay = "path.forward.delay=[[\"0s\", \"20 ms\"], [\"20s\", \"60 ms\"]]";
    for controller in ["gcc-2016", "gcc-tfb", "nada", "nada-sender", "scream", "scream-cpp"] {
        let set = format!("flow.video.controller={controller}");
        let run = |more: &str| outcomes(&scenario(CALL, &[&set, delay, more])).0;
        let (changed, new) = (run("flow.video.route_change_at=[\"20s\"]"), run("flow.video.start=20 s"));
        let before = target_at(&changed, s(19.999));
        assert!(before > Rate::from_kbps(500), "{controller}: {before} before");
        assert_eq!(target_at(&changed, s(20.0)), Rate::from_kbps(300), "{controller}");
        assert_eq!(target_at(&new, s(20.0)), Rate::from_kbps(300), "{controller}");
        let [changed, new] =
            [&changed, &new].map(|targets| [20.5, 30.0].map(|at| target_at(targets, s(at)).as_bps_f64()));
        // NADA takes 5 % off for the packets in the pacer.
        within(&format!("{controller}: target at 20.5 s"), changed[0], 285e3, 750e3);
        within(&format!("{controller}: target at 30 s over that of a new flow"), changed[1] / new[1], 0.95, 1.05);
    }
}

/// While the network is unavailable nothing leaves, and the media flows again afterwards. The target stays, but for the few
/// per cent that NADA takes off for packets in the pacer, and the growth of SCReAM in the half second after the last
/// feedback: three steps of 40 kbit/s.
#[test]
fn nothing_leaves_while_the_network_is_unavailable() {
    let available = "flow.video.available=[[\"0s\", true], [\"10s\", false], [\"15s\", true]]";
    for controller in ["gcc-2016", "gcc-tfb", "nada", "scream"] {
        let set = format!("flow.video.controller={controller}");
        let (targets, sent) = outcomes(&scenario(CALL, &[&set, available]));
        let count = |from, to| sent.iter().filter(|at| (s(from)..s(to)).contains(at)).count() as f64;
        within(&format!("{controller}: packets without a network"), count(10.0, 15.0), 0.0, 0.0);
        within(&format!("{controller}: packets before"), count(5.0, 10.0), 150.0, 3000.0);
        within(&format!("{controller}: packets afterwards"), count(15.0, 20.0), 150.0, 3000.0);
        let (before, after) = (target_at(&targets, s(9.999)), target_at(&targets, s(15.0)));
        let (least, most) = (before.scale(0.95), before + Rate::from_kbps(120));
        assert!(least <= after && after <= most, "{controller}: {before}, then {after}");
    }
}

/// What an end knows already, or what changed before the flow starts, changes nothing.
#[test]
fn facts_before_the_start_are_in_force_at_the_start() {
    let start = "flow.video.start=5 s";
    let hash = |more: &[&str]| observe(&scenario(CALL, &[&[start][..], more].concat()), 1, |_| ()).trace_hash;
    let plain = hash(&[]);
    assert_eq!(hash(&["flow.video.available=[[\"0s\", false], [\"5s\", true]]"]), plain);
    assert_eq!(hash(&["flow.video.route_change_at=[\"3s\", \"5s\"]"]), plain);
    assert_eq!(hash(&["flow.video.min_rate=[[\"0s\", \"30 kbps\"]]"]), plain);
    assert_eq!(hash(&["flow.video.available=[[\"0s\", true], [\"50s\", false]]"]), plain, "after the end");
    assert_ne!(hash(&["flow.video.route_change_at=[\"6s\"]"]), plain);
    let (targets, sent) =
        outcomes(&scenario(CALL, &[start, "flow.video.max_rate=[[\"0s\", \"3 Mbps\"], [\"4s\", \"200 kbps\"]]"]));
    assert_eq!((target_at(&targets, s(5.0)), sent[0] >= s(5.0)), (Rate::from_kbps(200), true));
}
