//! The simulator, in steps: between two it can be stopped, and it hears of what a controller in Python raised.

use crate::controller::{Raised, take_raised};
use crate::errors::Failure;
use crate::stop::Stop;
use paceline::Registry;
use paceline_lab::plan::Plan;
use paceline_lab::rows::RowSink;
use paceline_lab::sim::Simulation;
use paceline_lab::world::{Outcome, World, WorldError};
use paceline_units::{Time, TimeDelta};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Simulated time between two looks.
const STEP: TimeDelta = TimeDelta::from_millis(200);

/// The simulator as Python runs it.
pub struct Steps<'a> {
    stop: &'a Stop,
    /// The call that makes a run again, up to the arguments that say which run.
    again: Option<&'a str>,
    /// The first exception of any run.
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Steps<'a> {
    pub fn new(stop: &'a Stop, again: Option<&'a str>) -> Self {
        Self { stop, again, raised: Mutex::new(None) }
    }

    /// What ended a run: the exception, if a controller raised one.
    pub fn failure(&self, error: WorldError) -> Failure {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Failure::World(error), Failure::Raised)
    }

    /// Ends this run and all others if a controller of this thread's run raised an exception.
    fn look(&self, plan: &Plan, seed: u64) -> Result<(), WorldError> {
        if let Some(raised) = take_raised() {
            let cause = format!("controller `{}` raised an exception", raised.controller);
            let error = noted(raised, plan, seed, self.again);
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.stop.ask();
            return Err(WorldError::Broken { cause });
        }
        match self.stop.is_asked() {
            true => Err(WorldError::Broken { cause: "it was interrupted".to_owned() }),
            false => Ok(()),
        }
    }
}

/// The exception with a note on when it was raised, and how to see it again.
fn noted(raised: Raised, plan: &Plan, seed: u64, again: Option<&str>) -> PyErr {
    let Raised { controller, half, at_s, error } = raised;
    let call = again.map_or_else(|| format!("paceline.run({:?}, controller={controller:?}", plan.id), str::to_owned);
    let case = if plan.case.is_empty() { String::new() } else { format!(", case={:?}", plan.case.to_string()) };
    let note = format!(
        "raised by the {half} half of controller `{controller}`, {at_s:.6} s into a run of {}\n\
         the same run again: {call}{case}, seed={seed})",
        plan.id
    );
    Python::attach(|py| {
        let _ = error.value(py).call_method1("add_note", (note,));
        error
    })
}

impl World for Steps<'_> {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn run(&self, plan: &Plan, registry: &Registry, seed: u64, rows: &mut dyn RowSink) -> Result<Outcome, WorldError> {
        // What a thread before this run left behind is not this run's.
        take_raised();
        let mut simulation = Simulation::new(plan, registry, seed, rows)?;
        let (mut now, end) = (Time::ZERO, Time::ZERO + plan.duration);
        loop {
            self.look(plan, seed)?;
            if now == end {
                return Ok(simulation.outcome());
            }
            now = (now + STEP).min(end);
            simulation.advance(now);
        }
    }
}
