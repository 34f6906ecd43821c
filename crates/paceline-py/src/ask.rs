//! What Python asks for: a scenario by name or as text, changes, controllers.

use crate::controller::{Registered, take_raised};
use crate::errors::Failure;
use crate::world::Again;
use paceline::Registry;
use paceline_lab::plan::Plan;
use paceline_lab::scenario::{self, Catalogue, Changes, Label, Origin, Setting};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One scenario under some changes: `paceline.scenario.Ask`.
#[derive(FromPyObject)]
pub struct Ask {
    /// Id or file; with a text, what complaints call it.
    pub name: String,
    text: Option<String>,
    settings: Vec<String>,
    case: Option<String>,
    /// The call that makes a run again, up to the arguments that say which run.
    again: Option<String>,
}

impl Ask {
    /// Where the text comes from.
    pub fn origin(&self) -> Result<Origin, Failure> {
        Ok(match &self.text {
            Some(text) => Origin::from_text(self.name.clone(), text.clone()),
            None => Catalogue.find(&self.name)?,
        })
    }

    /// How a run is made again.
    pub fn again<'a>(&'a self, controller: Option<&'a str>) -> Again<'a> {
        Again { call: self.again.as_deref(), controller }
    }

    /// The call that made this.
    pub fn call(&self) -> String {
        self.again.as_ref().map_or_else(String::new, |call| format!("{call})"))
    }

    /// Whether it brings its text.
    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// What is to be changed, each as `key=value`.
    pub fn settings(&self) -> Result<Vec<Setting>, Failure> {
        let parsed = self.settings.iter().map(|text| text.parse());
        parsed.collect::<Result<_, String>>().map_err(|message| PyValueError::new_err(message).into())
    }

    /// The changes as they were typed.
    pub fn typed(&self) -> &[String] {
        &self.settings
    }

    /// All of it, under one controller or the scenario's own.
    pub fn changes(&self, controller: Option<&str>) -> Result<Changes, Failure> {
        let case = match &self.case {
            None => Label::default(),
            Some(text) => text.parse().map_err(PyValueError::new_err)?,
        };
        let controller = controller.map(str::to_owned);
        Ok(Changes { case, settings: self.settings()?, controller, ..Changes::default() })
    }

    /// The plan.
    pub fn plan(&self, controller: Option<&str>, registry: &Registry) -> Result<Plan, Failure> {
        if let Some(name) = controller {
            known(name, registry)?;
        }
        let (origin, changes) = (self.origin()?, self.changes(controller)?);
        raised_or(|| scenario::load(&origin, &changes, registry))
    }
}

/// What `make` makes on this thread, unless a controller in Python raises an exception meanwhile.
pub fn raised_or<T, E>(make: impl FnOnce() -> Result<T, E>) -> Result<T, Failure>
where
    Failure: From<E>,
{
    // What was raised before is not this one's.
    take_raised();
    let made = make();
    match take_raised() {
        Some(raised) => Err(Failure::Raised(raised.error)),
        None => Ok(made?),
    }
}

/// Complains about a controller that nobody registered.
pub fn known(name: &str, registry: &Registry) -> Result<(), Failure> {
    if registry.get(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = registry.iter().map(paceline::Entry::name).collect();
    let message = format!("no controller `{name}`; {}", scenario::suggestion(name, &known));
    Err(PyValueError::new_err(message).into())
}

/// The controllers of the library, and these.
pub fn registry(controllers: Vec<Registered>) -> PyResult<Registry> {
    let mut registry = Registry::standard();
    for controller in controllers {
        if registry.get(&controller.name).is_some() {
            return Err(PyValueError::new_err(format!("the name `{}` is taken", controller.name)));
        }
        registry.add(controller.entry()?);
    }
    Ok(registry)
}
