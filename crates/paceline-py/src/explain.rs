// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanations of calls, and their paths as scenarios.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::recording::{both, json};
use crate::request::{check_controller, registry_with};
use crate::stop::interruptible;
use paceline_cli::Explained;
use paceline_explain::ReadError;
use paceline_explain::fit::input::{FitError, fit_input};
use paceline_explain::readers;
use pyo3::prelude::*;
use std::path::PathBuf;

/// An explanation as Python receives it.
#[derive(IntoPyObject)]
pub struct ExplanationData {
    /// The JSON document of `explain --json`.
    document: String,
    text: String,
    html: String,
}

/// Explains an input. `what_if` are controllers that run on its path.
#[pyfunction]
#[pyo3(signature = (file, run, what_if, controllers))]
pub fn explain(
    py: Python<'_>,
    file: PathBuf,
    run: Option<String>,
    what_if: Vec<String>,
    controllers: Vec<Registered>,
) -> PyResult<ExplanationData> {
    let registry = registry_with(py, controllers, &what_if)?;
    interruptible(py, |_| {
        what_if.iter().try_for_each(|name| check_controller(name, &registry))?;
        let call =
            readers::read(&file, run.as_deref()).map_err(|error| unreadable(&file.display().to_string(), error))?;
        let explained =
            Explained::new(call, &what_if, &registry).map_err(|error| Failure::Argument(error.to_string()))?;
        let (text, html) = both(&explained.view(&file.display().to_string()));
        Ok(ExplanationData { document: json(&explained.document())?, text, html })
    })
}

/// Returns the path of an input as the text of a scenario.
#[pyfunction]
#[pyo3(signature = (input, run, controller, controllers))]
pub fn fit(
    py: Python<'_>,
    input: PathBuf,
    run: Option<String>,
    controller: Option<String>,
    controllers: Vec<Registered>,
) -> PyResult<String> {
    let registry = registry_with(py, controllers, &controller)?;
    interruptible(py, |_| {
        controller.iter().try_for_each(|name| check_controller(name, &registry))?;
        let fitted = fit_input(&input, run.as_deref(), controller.as_deref(), &registry);
        let failed = |error: FitError| match (error.help(), error) {
            (_, FitError::Scenario(error)) => Failure::ScenarioError(error),
            (_, FitError::Read { path, error }) => unreadable(&path.display().to_string(), error),
            (help, error) => Failure::Input(hinted(&error, help)),
        };
        Ok(fitted.map_err(failed)?.text)
    })
}

/// Returns the exception of an input that cannot be read.
fn unreadable(name: &str, error: ReadError) -> Failure {
    match error {
        ReadError::Store(error) => Failure::Store(error),
        error => Failure::Input(format!("{name}: {}", hinted(&error, Some(error.help())))),
    }
}

/// Returns an error with its hint, which names arguments and not the options of the command.
fn hinted(error: &dyn std::error::Error, help: Option<String>) -> String {
    let help = help.map_or_else(String::new, |help| format!("; {help}"));
    format!("{error}{help}").replace("--run", "`run=`").replace("--out", "`out=`")
}
