//! A controller that fails ends a run in real time.

use paceline::{
    Arrival, Config, Controller, Decision, Entry, Event, Failure, Message, Parameters, ReceiveHalf, Registry, SendHalf,
    Setup, Signals,
};
use paceline_live::testbed::Testbed;
use paceline_netsim::ControllerFailure;
use paceline_netsim::link_control::LinkControl;
use paceline_netsim::plan::Plan;
use paceline_netsim::world::{World, WorldError};
use paceline_scenario::{Changes, Origin};
use paceline_units::{Rate, RemoteTime, Time};
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

#[derive(Clone, Debug)]
struct FailingSender {
    rate: Rate,
    due: Option<Time>,
    failure: Option<Failure>,
}

impl SendHalf for FailingSender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        if matches!(event, Event::Timeout) && self.due.take_if(|due| *due <= now).is_some() {
            self.failure = Some(Failure::new("ran out of ideas"));
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }
    fn decision(&self) -> Decision {
        Decision::new(self.rate)
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

#[derive(Clone, Debug)]
struct FailingReceiver {
    /// Packets up to the failure.
    arrivals: u32,
    failure: Option<Failure>,
}

impl ReceiveHalf for FailingReceiver {
    fn handle_arrival(&mut self, _: RemoteTime, _: &Arrival, _: &mut Signals) {
        self.arrivals = self.arrivals.saturating_sub(1);
        if self.arrivals == 0 {
            self.failure.get_or_insert_with(|| Failure::new("lost count"));
        }
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.failure.as_ref().map(|_| RemoteTime::ZERO)
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        None
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
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
