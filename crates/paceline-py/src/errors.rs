// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures as exceptions of `paceline.errors`.

use crate::half::exception;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use paceline_lab::report::ReportError;
use paceline_lab::results::StoreError;
use paceline_lab::sweep::SweepError;
use paceline_netsim::world::WorldError;
use paceline_scenario::ScenarioError;
use pyo3::prelude::*;

/// Reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The scenario or a change to it is invalid.
    #[error(transparent)]
    ScenarioError(Box<ScenarioError>),
    /// The simulator could not make a run.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A folder of results cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A sweep or its folder is invalid.
    #[error(transparent)]
    Sweep(Box<SweepError>),
    /// An argument has a value that is not allowed.
    #[error("{0}")]
    Argument(String),
    /// A capture, a dump or a log cannot be used.
    #[error("{0}")]
    Input(String),
    /// A folder of results, or a page of it, cannot be used.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Python code raised an exception, for example a controller.
    #[error(transparent)]
    Raised(#[from] PyErr),
}

impl From<ScenarioError> for Failure {
    fn from(problem: ScenarioError) -> Self {
        Self::ScenarioError(Box::new(problem))
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::ScenarioError(problem) => problem.into(),
            SweepError::World(error) => error.into(),
            SweepError::Store(error) => error.into(),
            other => Self::Sweep(Box::new(other)),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::World(WorldError::Broken { cause: format!("the result is not valid JSON: {error}") })
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| match failure {
            Failure::Raised(error) => error,
            Failure::ScenarioError(problem) => scenario_error(py, &problem),
            Failure::World(error) => raised(py, &error).unwrap_or_else(|| run_error(py, &error)),
            // Hints name the option of the command.
            Failure::Sweep(error) => raise(py, "SweepError", (rendered(&*error).replace("--resume", "resume=True"),)),
            Failure::Argument(text) => raise(py, "ArgumentError", (text,)),
            Failure::Input(text) => raise(py, "InputError", (text,)),
            Failure::Store(error) => raise(py, "ResultsError", (with_causes(&error),)),
            Failure::Report(error) => raise(py, "ResultsError", (with_causes(&error),)),
        })
    }
}

/// Renders an error as the command does, without colours.
fn rendered(diagnostic: &dyn Diagnostic) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_wrap_lines(false);
    let mut text = String::new();
    match handler.render_report(&mut text, diagnostic) {
        Ok(()) => text.trim_end().to_owned(),
        Err(_) => diagnostic.to_string(),
    }
}

fn scenario_error(py: Python<'_>, problem: &ScenarioError) -> PyErr {
    let (line, column, hint, snippet) = (problem.line(), problem.column(), problem.hint(), problem.offending());
    raise(py, "ScenarioError", (rendered(problem), problem.to_string(), line, column, hint, snippet))
}

/// Returns the exception of a controller that ended a run.
fn raised(py: Python<'_>, error: &WorldError) -> Option<PyErr> {
    let WorldError::ControllerFailed { failure, .. } = error else { return None };
    exception(py, failure)
}

fn run_error(py: Python<'_>, error: &WorldError) -> PyErr {
    match error {
        WorldError::Unavailable { cause, hint } => raise(py, "WorldUnavailable", (cause, hint)),
        _ => raise(py, "RunError", (with_causes(error),)),
    }
}

/// Returns an exception of this class, or that of making it.
fn raise<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let class = py.import("paceline.errors").and_then(|module| module.getattr(class));
    class.and_then(|class| class.call1(arguments)).map_or_else(|error| error, PyErr::from_value)
}

/// Returns an error and its causes in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
