// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of Python: a scenario by name or as text, its changes, and controllers.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::world::Repeat;
use paceline::Registry;
use paceline_cli::external;
use paceline_lab::storage::Inputs;
use paceline_lab::yardsticks::{self, Oracle};
use paceline_scenario::{self, Catalogue, Changes, Label, Origin, Override, Scenario};
use pyo3::prelude::*;

/// A scenario and its changes: `paceline.scenario._Request`.
#[derive(FromPyObject)]
pub struct Request {
    /// Id or file; for a text, its name in error messages.
    pub name: String,
    text: Option<String>,
    settings: Vec<String>,
    case: Option<String>,
    /// The call that repeats a run, without its last arguments and without the closing parenthesis.
    call: Option<String>,
}

impl Request {
    /// Returns the text and its name.
    pub fn origin(&self) -> Result<Origin, Failure> {
        Ok(match &self.text {
            Some(text) => Origin::from_text(self.name.clone(), text.clone()),
            None => Catalogue.find(&self.name)?,
        })
    }

    /// Returns the call that repeats a run.
    pub fn repeat<'a>(&'a self, controller: Option<&'a str>) -> Repeat<'a> {
        Repeat { call: self.call.as_deref(), controller }
    }

    /// Returns the inputs of runs: the text of the scenario, the changes and the command.
    pub fn inputs(&self) -> Result<Inputs, Failure> {
        let command = self.call.as_ref().map_or_else(String::new, |call| format!("{call})"));
        let environment = paceline_cli::environment().clone();
        Ok(Inputs { environment, scenario_text: self.origin()?.text, changes: self.settings.clone(), command })
    }

    /// Returns the changes as they are typed for `--set`.
    pub fn typed_changes(&self) -> Vec<String> {
        self.settings.clone()
    }

    /// Returns whether the scenario is given as text.
    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// Parses the changes.
    pub fn settings(&self) -> Result<Vec<Override>, Failure> {
        let parsed = self.settings.iter().map(|text| text.parse());
        parsed.collect::<Result<_, String>>().map_err(Failure::Argument)
    }

    /// Returns all changes, with a controller or the scenario's own.
    pub fn changes(&self, controller: Option<&str>) -> Result<Changes, Failure> {
        let case = match &self.case {
            None => Label::default(),
            Some(text) => text.parse().map_err(Failure::Argument)?,
        };
        let controller = controller.map(str::to_owned);
        Ok(Changes { case, settings: self.settings()?, controller, ..Changes::default() })
    }

    /// Loads the scenario.
    pub fn scenario(&self, controller: Option<&str>, registry: &Registry) -> Result<Scenario, Failure> {
        if let Some(name) = controller {
            check_controller(name, registry)?;
        }
        let (origin, changes) = (self.origin()?, self.changes(controller)?);
        Ok(paceline_lab::load(&origin, &changes, registry)?)
    }
}

/// Checks that a controller is registered.
pub fn check_controller(name: &str, registry: &Registry) -> Result<(), Failure> {
    if registry.get(name).is_some() {
        return Ok(());
    }
    if external::is_external(name) {
        let message = format!(
            "the controller `{name}` cannot run here: external controllers run with `paceline.run`, `repeat`, `compare`, `suite` and \
             `reproduce`"
        );
        return Err(Failure::Argument(message));
    }
    let known: Vec<&str> = registry.iter().map(paceline::Entry::name).collect();
    Err(Failure::Argument(format!("no controller `{name}`; {}", paceline_scenario::suggestion(name, &known))))
}

/// Returns the controllers of the library, the faulty ones of the yardsticks, and these.
pub fn registry(controllers: Vec<Registered>) -> PyResult<Registry> {
    let mut registry = yardsticks::add(Registry::standard());
    for controller in controllers {
        if registry.get(&controller.name).is_some() || Oracle::find(&controller.name).is_some() {
            let message = format!("the name `{}` is taken: choose another", controller.name);
            return Err(Failure::Argument(message).into());
        }
        registry.add(controller.entry()?);
    }
    Ok(registry)
}

/// Returns the controllers of [`registry`], and the external ones among these names: `exec:COMMAND` starts its program, `lib:FILE` loads
/// its library.
pub fn registry_with<'a>(
    py: Python<'_>,
    controllers: Vec<Registered>,
    names: impl IntoIterator<Item = &'a String>,
) -> PyResult<Registry> {
    let registry = registry(controllers)?;
    let names: Vec<String> = names.into_iter().filter(|name| external::is_external(name)).cloned().collect();
    // A program may take a while to introduce itself.
    py.detach(|| external::add_named(registry, &names)).map_err(|error| Failure::Argument(error).into())
}
