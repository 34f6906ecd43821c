// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a testbed run that its threads share.

use crate::testbed::clock::Monotonic;
use crate::testbed::link::Side;
use crate::testbed::timing::Timing;
use paceline::Registry;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::EventRecord;
use paceline_units::{RandomStreams, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// The common state of the threads of a run.
#[derive(Clone)]
pub struct TestbedRun<'a> {
    pub plan: &'a Plan,
    /// The available controllers.
    pub registry: &'a Registry,
    /// The seed of the run.
    pub seed: u64,
    /// The random streams of the run.
    pub streams: &'a RandomStreams,
    /// The side of each flow's sender.
    pub senders: &'a [Side],
    /// Whether controllers emit signals.
    pub signals: bool,
    /// The clock of the run; negative until every thread is ready.
    pub clock: Monotonic,
    /// The accuracy with which threads wait.
    pub timing: Timing,
    /// The end of the run.
    pub end: Time,
    /// Ends the run early when set, after a failure.
    pub stop: &'a AtomicBool,
    /// Receives events, each within one second of its time.
    pub events: Sender<EventRecord>,
}

impl TestbedRun<'_> {
    /// Returns whether the run is over.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.now() >= self.end
    }
}
