// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller that fails ends a run in real time.

use crate::failing_halves::{FailingReceiver, FailingSender};
use paceline::{Config, Controller, Entry, Parameters, Registry, Setup};
use paceline_live::testbed::Testbed;
use paceline_netsim::ControllerFailure;
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::plan::Plan;
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{Changes, Origin};
use paceline_units::Time;
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
id = "test/failure"
title = "A controller that fails"
duration = "30s"
[path.forward]
capacity = "2 Mbps"
[[flow]]
id = "other"
controller = "gcc-2016"
[[flow]]
id = "video"
controller = "failing"
"#;

/// The send half fails half a second after the start, or the receive half at its tenth packet.
#[derive(Clone, Debug)]
struct Failing {
    at_receiver: bool,
}

impl Parameters for Failing {}

impl Config for Failing {
    fn halves(&self, setup: &Setup) -> Controller {
        let due = (!self.at_receiver).then_some(Time::from_millis(500));
        let send = FailingSender { rate: setup.start, due, failure: None };
        let arrivals = if self.at_receiver { 10 } else { u32::MAX };
        Controller::from_halves(send, FailingReceiver { arrivals, failure: None })
    }
}

fn prepared(at_receiver: bool) -> (Plan, Registry) {
    let mut registry = Registry::standard();
    registry.add(Entry::new("failing", "fails", "a test", Failing { at_receiver }));
    let origin = Origin::from_text("failure.toml", SCENARIO);
    (paceline_scenario::load(&origin, &Changes::default(), &registry).unwrap().plan, registry)
}

/// Returns the failure of a run, and how long the run was.
fn failure(at_receiver: bool) -> (ControllerFailure, Duration) {
    let (plan, registry) = prepared(at_receiver);
    let started = Instant::now();
    match Testbed::default().run(&plan, &registry, 7, &mut ()) {
        Err(WorldError::ControllerFailed { failure, seed: 7, .. }) => (failure, started.elapsed()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn failure_of_either_half_ends_the_run() {
    if !crate::common::is_testbed_available() {
        return;
    }
    let (sender, took) = failure(false);
    assert_eq!((&*sender.flow, sender.failure.to_string()), ("video", "ran out of ideas".to_owned()));
    // Loaded machines are late.
    assert!((Time::from_millis(500)..Time::from_secs(5)).contains(&sender.at), "{:?}", sender.at);
    assert!(took < Duration::from_secs(10), "{took:?}");
    let (receiver, took) = failure(true);
    assert_eq!((&*receiver.flow, receiver.failure.to_string()), ("video", "lost count".to_owned()));
    assert!((Time::from_millis(20)..Time::from_secs(5)).contains(&receiver.at), "{:?}", receiver.at);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn stopped_control_makes_no_run() {
    if !crate::common::is_testbed_available() {
        return;
    }
    let (plan, registry) = prepared(false);
    let control = LinkControl::default();
    control.stop();
    let testbed = Testbed { link_control: Some(control), ..Testbed::default() };
    assert!(matches!(testbed.run(&plan, &registry, 7, &mut ()), Err(WorldError::Broken { .. })));
}
