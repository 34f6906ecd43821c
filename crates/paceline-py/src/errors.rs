//! What goes wrong, as exceptions of `paceline.errors`.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use paceline_lab::scenario::Problem;
use paceline_lab::store::StoreError;
use paceline_lab::sweep::SweepError;
use paceline_lab::world::WorldError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Why there is no result.
pub enum Failure {
    /// The scenario, or what was to be changed in it.
    Problem(Box<Problem>),
    /// The world.
    World(WorldError),
    /// A folder of results.
    Store(StoreError),
    /// A sweep and its folder.
    Sweep(Box<SweepError>),
    /// Something that Python raised, in a controller for example.
    Raised(PyErr),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<WorldError> for Failure {
    fn from(error: WorldError) -> Self {
        Self::World(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Problem(problem) => problem.into(),
            SweepError::World(error) => error.into(),
            SweepError::Store(error) => error.into(),
            other => Self::Sweep(Box::new(other)),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::World(WorldError::Broken { cause: format!("its result is no JSON: {error}") })
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| match failure {
            Failure::Raised(error) => error,
            Failure::Problem(problem) => of_problem(py, &problem).unwrap_or_else(|error| error),
            Failure::World(error) => of_world(py, &error).unwrap_or_else(|error| error),
            Failure::Sweep(error) => {
                // Hints name the command's option.
                let text = rendered(&*error).replace("--resume", "resume=True");
                raise(py, "SweepError", (text,)).unwrap_or_else(|error| error)
            }
            Failure::Store(error) => PyOSError::new_err(told(&error)),
        })
    }
}

/// As the command prints it, without colours.
fn rendered(diagnostic: &dyn Diagnostic) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_wrap_lines(false);
    let mut text = String::new();
    match handler.render_report(&mut text, diagnostic) {
        Ok(()) => text.trim_end().to_owned(),
        Err(_) => diagnostic.to_string(),
    }
}

fn of_problem(py: Python<'_>, problem: &Problem) -> PyResult<PyErr> {
    let (line, column, hint, snippet) = (problem.line(), problem.column(), problem.hint(), problem.offending());
    raise(py, "ScenarioError", (rendered(problem), problem.to_string(), line, column, hint, snippet))
}

fn of_world(py: Python<'_>, error: &WorldError) -> PyResult<PyErr> {
    match error {
        WorldError::Unavailable { cause, hint } => raise(py, "WorldUnavailable", (cause, hint)),
        _ => raise(py, "RunError", (told(error),)),
    }
}

fn raise<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyResult<PyErr> {
    let exception = py.import("paceline.errors")?.getattr(class)?.call1(arguments)?;
    Ok(PyErr::from_value(exception))
}

/// An error and what is behind it, on one line.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
