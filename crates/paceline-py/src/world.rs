// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs in the worlds of the command, which end at a stop request and with the exception of a controller.

use crate::errors::Failure;
use crate::half::exception;
use crate::stop::Stop;
use paceline::Registry;
use paceline_cli::worlds;
use paceline_lab::run::Runner;
use paceline_netsim::world::WorldError;
use pyo3::prelude::*;
use std::time::Instant;

/// The call that repeats a run, for error messages.
#[derive(Clone, Copy, Default)]
pub struct Repeat<'a> {
    /// The call without its last arguments; `None`: a run of the scenario without changes.
    pub call: Option<&'a str>,
    /// The controller of every media flow.
    pub controller: Option<&'a str>,
}

/// Calls `work` with a runner of the world with this name. If a controller in Python raised an exception, that is the failure.
pub fn with_runner<T>(
    world: &str,
    (registry, stop): (&Registry, &Stop),
    repeat: Repeat<'_>,
    work: impl FnOnce(&Runner<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let world = worlds::open_with(world, stop.control()).ok_or_else(|| unknown(world))??;
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let runner = Runner { world: &*world, registry, clock: &clock, ticked: &|| stop.tick() };
    work(&runner).map_err(|failure| match failure {
        Failure::World(error) => raised(&error, repeat).map_or(Failure::World(error), Failure::Raised),
        other => other,
    })
}

fn unknown(name: &str) -> Failure {
    let hint = paceline_scenario::suggestion(name, &worlds::names());
    Failure::Argument(format!("no world `{name}`; {hint}"))
}

/// Returns the exception of a controller, with a note that has the time and the call that repeats the run.
fn raised(error: &WorldError, repeat: Repeat<'_>) -> Option<PyErr> {
    let WorldError::ControllerFailed { failure, plan, case, seed } = error else { return None };
    let mut call = repeat.call.map_or_else(|| format!("paceline.run('{plan}'"), str::to_owned);
    if let Some(name) = repeat.controller {
        call += &format!(", controller='{name}'");
    }
    if !case.is_empty() {
        call += &format!(", case='{case}'");
    }
    let note = format!("{failure} of {plan}\nthe same run again: {call}, seed={seed})");
    Python::attach(|py| {
        let raised = exception(py, failure)?;
        // The exception matters more than its note.
        let _ = raised.value(py).call_method1("add_note", (note,));
        Some(raised)
    })
}
