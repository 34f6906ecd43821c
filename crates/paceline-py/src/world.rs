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
    again: Again<'a>,
    /// The first exception of any run.
    raised: Mutex<Option<PyErr>>,
}

/// How a run is made again, up to the arguments that say which run.
#[derive(Clone, Copy, Default)]
pub struct Again<'a> {
    /// The call, but for its last arguments; none: of the plan's scenario as it is.
    pub call: Option<&'a str>,
    /// The controller that every media flow was put under.
    pub controller: Option<&'a str>,
}

impl<'a> Steps<'a> {
    pub fn new(stop: &'a Stop, again: Again<'a>) -> Self {
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
fn noted(raised: Raised, plan: &Plan, seed: u64, again: Again<'_>) -> PyErr {
    let Raised { controller, half, when, error } = raised;
    let mut call = again.call.map_or_else(|| format!("paceline.run('{}'", plan.id), str::to_owned);
    if let Some(name) = again.controller {
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
        // Without its note it is still the exception.
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
