//! The backends for Python. The simulator runs in steps: between two steps it checks for a stop request and for an exception of
//! a controller. Other backends end by the control of the stop request.

use crate::errors::Failure;
use crate::half::{Raised, collect_raised, take_raised, take_raised_elsewhere};
use crate::stop::Stop;
use paceline::Registry;
use paceline_cli::{external, worlds};
use paceline_lab::run::Runner;
use paceline_netsim::backend::{Backend, BackendError, Outcome};
use paceline_netsim::plan::Plan;
use paceline_netsim::sim::Simulation;
use paceline_records::EventObserver;
use paceline_units::{Time, TimeDelta};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Simulated time between two checks.
const STEP: TimeDelta = TimeDelta::from_millis(200);

/// A backend whose runs can be stopped, and whose controllers may raise exceptions.
pub struct World<'a> {
    /// `None`: the simulator.
    other: Option<Box<dyn Backend>>,
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

/// The name of the simulator.
pub const SIMULATOR: &str = "sim";

impl<'a> World<'a> {
    /// Opens the backend with this name.
    pub fn open(name: &str, stop: &'a Stop, repeat: Repeat<'a>) -> Result<Self, Failure> {
        let other = match name {
            SIMULATOR => None,
            other => Some(worlds::open_with(other, stop.control()).ok_or_else(|| unknown(other))??),
        };
        Ok(Self { other, stop, repeat, raised: Mutex::new(None) })
    }

    /// Calls `work` with a runner of this backend. If a controller in Python raised an exception, that is the failure.
    pub fn with_runner<T>(
        &self,
        registry: &Registry,
        work: impl FnOnce(&Runner<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        let clock = || started.elapsed().as_secs_f64();
        let runner = Runner { world: self, registry, clock: &clock, ticked: &|| () };
        work(&runner).map_err(|failure| match failure {
            Failure::Backend(error) => self.failure(error),
            other => other,
        })
    }

    /// Returns the failure of a run: the exception, if a controller raised one.
    fn failure(&self, error: BackendError) -> Failure {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Failure::Backend(error), Failure::Raised)
    }

    /// Ends this run, and all others, if a controller of this run raised an exception.
    fn check(&self, plan: &Plan, seed: u64) -> Result<(), BackendError> {
        self.check_raised(take_raised(), plan, seed)?;
        match self.stop.is_requested() {
            true => Err(BackendError::Broken { cause: "interrupted".to_owned() }),
            false => Ok(()),
        }
    }

    fn check_raised(&self, raised: Option<Raised>, plan: &Plan, seed: u64) -> Result<(), BackendError> {
        if let Some(raised) = raised {
            let cause = format!("controller `{}` raised an exception", raised.controller);
            let error = with_note(raised, plan, seed, self.repeat);
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.stop.request();
            return Err(BackendError::Broken { cause });
        }
        Ok(())
    }

    fn simulate(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, BackendError> {
        let mut simulation = Simulation::new(plan, registry, seed, observer)?;
        let (mut now, end) = (Time::ZERO, Time::ZERO + plan.duration);
        loop {
            self.check(plan, seed)?;
            external::check_failure(plan, seed)?;
            if now == end {
                return Ok(simulation.outcome());
            }
            now = (now + STEP).min(end);
            simulation.advance(now);
        }
    }
}

fn unknown(name: &str) -> Failure {
    let hint = paceline_scenario::suggestion(name, &worlds::names());
    Failure::Argument(format!("no world `{name}`; {hint}"))
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

impl Backend for World<'_> {
    fn name(&self) -> &'static str {
        self.other.as_ref().map_or(SIMULATOR, |other| other.name())
    }

    fn real_time(&self) -> bool {
        self.other.as_ref().is_some_and(|other| other.real_time())
    }

    fn baselines(&self) -> &'static [&'static str] {
        self.other.as_ref().map_or(&[], |other| other.baselines())
    }

    fn describe_controller(&self, controller: &str, registry: &Registry) -> String {
        match &self.other {
            None => controller.to_owned(),
            Some(other) => other.describe_controller(controller, registry),
        }
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, BackendError> {
        let Some(other) = &self.other else {
            let simulate = || self.simulate(plan, registry, seed, observer);
            return collect_raised(|| external::collect_failures(simulate));
        };
        take_raised_elsewhere();
        let outcome = other.run(plan, registry, seed, observer);
        self.check_raised(take_raised_elsewhere(), plan, seed)?;
        self.check(plan, seed)?;
        outcome
    }
}
