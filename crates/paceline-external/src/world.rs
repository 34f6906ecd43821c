//! A backend whose runs end when an external controller fails.

use crate::failure::{Failure, collect, take, take_elsewhere};
use crate::{indented, is_external};
use paceline::Registry;
use paceline_netsim::backend::{Backend, BackendError, Outcome};
use paceline_netsim::plan::Plan;
use paceline_netsim::sim::{Simulation, Simulator};
use paceline_records::{EventObserver, SIMULATOR};
use paceline_units::{Time, TimeDelta};
use std::sync::{Mutex, PoisonError};

/// Simulated time between two checks.
const STEP: TimeDelta = TimeDelta::from_millis(200);

/// Held during a run with external controllers on threads of a backend.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// A backend, and the external controllers of its runs.
pub struct World {
    inner: Box<dyn Backend>,
}

impl World {
    /// Wraps a backend.
    pub fn new(inner: Box<dyn Backend>) -> Self {
        Self { inner }
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
            check(take(), plan, seed)?;
            if now == end {
                return Ok(simulation.outcome());
            }
            now = (now + STEP).min(end);
            simulation.advance(now);
        }
    }
}

impl Backend for World {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn real_time(&self) -> bool {
        self.inner.real_time()
    }
    fn baselines(&self) -> &'static [&'static str] {
        self.inner.baselines()
    }
    fn describe_controller(&self, controller: &str, registry: &Registry) -> String {
        self.inner.describe_controller(controller, registry)
    }

    fn simulator(&self, plan: &Plan) -> Option<Simulator> {
        self.inner.simulator(plan).filter(|_| !has_external(plan))
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, BackendError> {
        if self.inner.name() == SIMULATOR {
            return collect(|| self.simulate(plan, registry, seed, observer));
        }
        if !has_external(plan) {
            return self.inner.run(plan, registry, seed, observer);
        }
        // A failure on a thread of the backend does not name its run, so there is one at a time.
        let _one = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
        take_elsewhere();
        let outcome = self.inner.run(plan, registry, seed, observer);
        check(take_elsewhere(), plan, seed)?;
        outcome
    }
}

fn has_external(plan: &Plan) -> bool {
    plan.flows.iter().any(|flow| is_external(flow.control()))
}

/// Checks that no external controller has failed since [`collect`](crate::collect) began on this thread; for backends that step through
/// a run themselves.
///
/// # Errors
/// Returns [`BackendError::External`] with the failure, which is then taken.
pub fn check_failure(plan: &Plan, seed: u64) -> Result<(), BackendError> {
    check(take(), plan, seed)
}

/// Returns the error of a run in which a controller failed.
fn check(failure: Option<Failure>, plan: &Plan, seed: u64) -> Result<(), BackendError> {
    let Some(Failure { controller, at, cause, messages }) = failure else { return Ok(()) };
    let at = if at == Time::ZERO { "at the start".to_owned() } else { format!("at {:.6} s", at.as_secs_f64()) };
    Err(BackendError::External {
        controller: controller.to_owned(),
        plan: plan.id.clone(),
        case: plan.case.to_string(),
        seed,
        cause: format!("{cause}, {at}"),
        messages: indented(&messages),
    })
}
