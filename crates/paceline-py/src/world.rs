//! Runs the simulator in steps. Between two steps it checks for a stop request and for an exception of a controller.

use crate::errors::Failure;
use crate::half::{Raised, take_raised};
use crate::stop::Stop;
use paceline::Registry;
use paceline_netsim::backend::{Backend, BackendError, Outcome};
use paceline_netsim::plan::Plan;
use paceline_netsim::sim::Simulation;
use paceline_records::EventObserver;
use paceline_units::{Time, TimeDelta};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Simulated time between two checks.
const STEP: TimeDelta = TimeDelta::from_millis(200);

/// The simulator in steps.
pub struct SteppedSimulator<'a> {
    stop: &'a Stop,
    repeat: Repeat<'a>,
    /// The first exception of any run.
    raised: Mutex<Option<PyErr>>,
}

/// The call that repeats a run, for error messages.
#[derive(Clone, Copy, Default)]
pub struct Repeat<'a> {
    /// The call without its last arguments; `None`: a run of the scenario without changes.
    pub call: Option<&'a str>,
    /// The controller of every media flow.
    pub controller: Option<&'a str>,
}

impl<'a> SteppedSimulator<'a> {
    pub fn new(stop: &'a Stop, repeat: Repeat<'a>) -> Self {
        Self { stop, repeat, raised: Mutex::new(None) }
    }

    /// Returns the failure of a run: the exception, if a controller raised one.
    pub fn failure(&self, error: BackendError) -> Failure {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Failure::Backend(error), Failure::Raised)
    }

    /// Ends this run, and all others, if a controller of this run raised an exception.
    fn check(&self, plan: &Plan, seed: u64) -> Result<(), BackendError> {
        if let Some(raised) = take_raised() {
            let cause = format!("controller `{}` raised an exception", raised.controller);
            let error = with_note(raised, plan, seed, self.repeat);
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.stop.request();
            return Err(BackendError::Broken { cause });
        }
        match self.stop.is_requested() {
            true => Err(BackendError::Broken { cause: "interrupted".to_owned() }),
            false => Ok(()),
        }
    }
}

/// Adds a note to the exception: when it was raised, and the call that repeats the run.
fn with_note(raised: Raised, plan: &Plan, seed: u64, repeat: Repeat<'_>) -> PyErr {
    let Raised { controller, half, when, error } = raised;
    let mut call = repeat.call.map_or_else(|| format!("paceline.run('{}'", plan.id), str::to_owned);
    if let Some(name) = repeat.controller {
        call += &format!(", controller='{name}'");
    }
    if !plan.case.is_empty() {
        call += &format!(", case='{}'", plan.case);
    }
    let note = format!(
        "raised by the {half} half of controller `{controller}`, {when} a run of {}\n\
         the same run again: {call}, seed={seed})",
        plan.id
    );
    Python::attach(|py| {
        // The exception matters more than its note.
        let _ = error.value(py).call_method1("add_note", (note,));
        error
    })
}

impl Backend for SteppedSimulator<'_> {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, BackendError> {
        // Discards the exception of an earlier run on this thread.
        take_raised();
        let mut simulation = Simulation::new(plan, registry, seed, observer)?;
        let (mut now, end) = (Time::ZERO, Time::ZERO + plan.duration);
        loop {
            self.check(plan, seed)?;
            if now == end {
                return Ok(simulation.outcome());
            }
            now = (now + STEP).min(end);
            simulation.advance(now);
        }
    }
}
