// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers that fail during a run.

use crate::failing_halves::{FailingReceiver, FailingSender};
use crate::fixtures::{Listener, load_from};
use paceline::{Config, Controller, Entry, Failure, Registry, Setup, params};
use paceline_lab::run::Runner;
use paceline_netsim::ControllerFailure;
use paceline_netsim::records::EventRecord;
use paceline_netsim::sim::{Simulator, StoppableSimulator};
use paceline_netsim::world::{Outcome, World, WorldError};
use paceline_scenario::{Origin, Scenario};
use paceline_units::{Time, TimeDelta};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SCENARIO: &str = r#"
id = "test/failure"
title = "A controller that fails"
duration = "20s"
[path]
rtt = "50ms"
[path.forward]
capacity = "2 Mbps"
[[flow]]
id = "other"
controller = "gcc-2016"
[[flow]]
id = "video"
controller = "failing"
"#;

params! {
    /// A controller whose send half fails at a time, or whose receive half fails at its tenth packet.
    #[derive(Clone, Debug)]
    struct Failing {
        /// The send half fails after 3.25 s.
        const LATER;

        /// Time of the failure.
        at as "at_ms": TimeDelta = TimeDelta::from_millis(3250), in 0.0..=1e6;
        /// Whether the receive half fails.
        at_receiver: bool = false;
    }
}

impl Config for Failing {
    fn halves(&self, setup: &Setup) -> Controller {
        let at = Time::ZERO + self.at;
        let is_at_receiver = self.at_receiver;
        let failure = (at == Time::ZERO).then(|| Failure::new("was built wrongly"));
        let due = Some(at).filter(|_| failure.is_none() && !is_at_receiver);
        let send = FailingSender { rate: setup.start, due, failure };
        let receive = FailingReceiver { arrivals: if is_at_receiver { 10 } else { u32::MAX }, failure: None };
        Controller::from_halves(send, receive)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add(Entry::new("failing", "fails", "a test", Failing::LATER));
    registry
}

fn scenario(settings: &[&str]) -> Scenario {
    load_from(&Origin::from_text("failure.toml", SCENARIO), None, settings, &registry())
}

fn run(world: &dyn World, settings: &[&str], seed: u64) -> (Result<Outcome, WorldError>, Vec<EventRecord>) {
    let mut events = Vec::new();
    let mut listener = Listener { signals: false, on_event: |event: &EventRecord| events.push(*event) };
    let outcome = world.run(&scenario(settings).plan, &registry(), seed, &mut listener);
    (outcome, events)
}

#[track_caller]
fn failure(outcome: Result<Outcome, WorldError>) -> ControllerFailure {
    match outcome {
        Err(WorldError::ControllerFailed { failure, .. }) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn failure_ends_the_run_at_its_time() {
    let (outcome, events) = run(&Simulator, &[], 7);
    let error = outcome.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the controller `failing` of flow `video` ran out of ideas, at 3.250000 s of test/failure, seed 7\n\
         an error occurred when formatting an argument"
    );
    let failure = failure(Err(error));
    assert_eq!((&*failure.flow, failure.at), ("video", Time::from_millis(3250)));
    assert!(failure.source().is_some_and(|source| source.is::<std::fmt::Error>()));
    let last = events.iter().map(EventRecord::at).max().unwrap();
    assert!(last > Time::from_millis(3200) && last <= failure.at, "{last:?}");
}

/// The runner calls the simulator without virtual calls if there is no other observer.
#[test]
fn every_way_of_running_reports_the_same_failure() {
    let at = |settings: &[&str]| failure(run(&Simulator, settings, 7).0).at;
    let stopped = StoppableSimulator(Arc::default());
    for (settings, expected) in [(&["flow.video.config.at_ms=1"][..], 1), (&[], 3250)] {
        let expected = Time::from_millis(expected);
        let runner = Runner { world: &Simulator, ..Runner::simulator(&registry()) }.run(&scenario(settings), 7, None);
        assert_eq!((at(settings), failure(run(&stopped, settings, 7).0).at), (expected, expected));
        assert!(matches!(runner, Err(WorldError::ControllerFailed { failure, .. }) if failure.at == expected));
    }
}

#[test]
fn half_that_fails_when_it_is_built_fails_at_the_start() {
    let (outcome, events) = run(&Simulator, &["flow.video.config.at_ms=0"], 7);
    let text = outcome.as_ref().unwrap_err().to_string();
    assert!(text.contains("was built wrongly, at the start of test/failure, seed 7"), "{text}");
    assert_eq!((failure(outcome).at, events.len()), (Time::ZERO, 0));
}

#[test]
fn receive_half_fails_at_the_packet_that_it_handles() {
    let (outcome, events) = run(&Simulator, &["flow.video.config.at_receiver=1"], 7);
    let failure = failure(outcome);
    let arrived: Vec<Time> = events
        .iter()
        .filter_map(|event| match event {
            EventRecord::Arrived { at, packet, .. } if packet.flow.0 == 1 && !packet.class.is_from_receiver() => {
                Some(*at)
            }
            _ => None,
        })
        .collect();
    assert_eq!((failure.failure.to_string(), failure.at), ("lost count".to_owned(), *arrived.last().unwrap()));
    // RTCP of the sender is no arrival of the half.
    assert!((10..=12).contains(&arrived.len()), "{arrived:?}");
}

#[test]
fn parallel_runs_report_their_own_failures() {
    let never = "flow.video.config.at_ms=30000";
    let (alone, _) = run(&Simulator, &[never], 1);
    let (first, second, finished) = thread::scope(|scope| {
        let first = scope.spawn(|| run(&Simulator, &[], 1).0);
        let second = scope.spawn(|| run(&Simulator, &["flow.video.config.at_ms=9000"], 2).0);
        let finished = scope.spawn(|| run(&Simulator, &[never], 1).0);
        (first.join().unwrap(), second.join().unwrap(), finished.join().unwrap())
    });
    assert_eq!(finished.unwrap(), alone.unwrap());
    assert_eq!(failure(first).at, Time::from_millis(3250));
    assert!(
        matches!(second, Err(WorldError::ControllerFailed { seed: 2, failure, .. }) if failure.at == Time::from_secs(9))
    );
}

#[test]
fn stopped_simulator_makes_no_run() {
    let stop = Arc::new(AtomicBool::new(false));
    let never = ["flow.video.config.at_ms=30000"];
    let (outcome, _) = run(&StoppableSimulator(Arc::clone(&stop)), &never, 1);
    assert_eq!(outcome.unwrap(), run(&Simulator, &never, 1).0.unwrap());
    stop.store(true, Ordering::Relaxed);
    let (stopped, events) = run(&StoppableSimulator(stop), &never, 1);
    assert!(matches!(stopped, Err(WorldError::Broken { .. })) && events.is_empty());
}
