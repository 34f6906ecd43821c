//! Scenarios: text to plan.
//!
//! [`file`] is what may be written, `overrides` is `--set`, `resolve` fills in every default and checks what only
//! makes sense together; each complaint is a [`Problem`] with its place and a hint.

mod catalogue;
mod file;
mod overrides;
mod problem;
mod resolve;
mod values;

pub use catalogue::{Catalogue, Origin};
pub use file::{ScenarioFile, schema};
pub use overrides::Setting;
pub use problem::{Problem, suggestion};

use crate::plan::Plan;
use paceline::Registry;

/// How a scenario is to be changed before it is resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Controller of every media flow, with its own defaults.
    pub controller: Option<String>,
    /// Values to set, in order.
    pub settings: Vec<Setting>,
}

/// Text to plan: parses, applies the changes, resolves.
pub fn load(origin: &Origin, changes: &Changes, registry: &Registry) -> Result<Plan, Problem> {
    let mut text = origin.text.clone();
    // Complaints about the file itself come before those about changes to it.
    file::parse(&origin.name, &text)?;
    if !changes.settings.is_empty() {
        text = overrides::apply(&origin.name, &text, &changes.settings)?;
    }
    let mut file = file::parse(&origin.name, &text).map_err(|p| p.after_settings(&changes.settings))?;
    if let Some(controller) = &changes.controller {
        file.control_all_by(controller, &changes.settings);
    }
    resolve::resolve(file, &text, origin, registry).map_err(|p| p.after_settings(&changes.settings))
}
