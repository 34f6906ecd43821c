// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page offers at the start: controllers, queues, scenarios.

use crate::playground::problem::Problem;
use paceline::Registry;
use paceline_netsim::link::queue::DISCIPLINES;
use paceline_scenario::{Catalogue, Template, Traffic, path_presets};
use serde::Serialize;

/// The first text of the page.
pub const FIRST: &str = include_str!("page/first.toml");

/// The controller beside that of [`FIRST`].
const BESIDE: &str = "nada";

/// Begins the id of a call over a preset of the path.
const PRESET: &str = "path:";

/// What the page offers.
#[derive(Debug, Serialize)]
pub struct Start {
    /// Version of Paceline.
    pub version: &'static str,
    /// The first scenario.
    pub text: &'static str,
    /// The controller beside the one of the text.
    pub beside: &'static str,
    /// Every controller.
    pub controllers: Vec<Named>,
    /// Every queue discipline.
    pub disciplines: Vec<Named>,
    /// Calls over presets of the path.
    pub presets: Vec<Named>,
    /// Shipped scenarios.
    pub scenarios: Vec<Named>,
}

/// A name and its description in one line.
#[derive(Debug, Serialize)]
pub struct Named {
    /// Name, as in scenarios.
    pub name: String,
    /// Description.
    pub summary: String,
}

impl Named {
    fn new(name: impl Into<String>, summary: impl Into<String>) -> Self {
        Self { name: name.into(), summary: summary.into() }
    }
}

/// Returns what the page offers.
pub fn start(registry: &Registry) -> Start {
    let presets = path_presets().into_iter().map(|preset| Named::new(format!("{PRESET}{}", preset.name), preset.title));
    Start {
        version: env!("CARGO_PKG_VERSION"),
        text: FIRST,
        beside: BESIDE,
        controllers: registry.iter().map(|entry| Named::new(entry.name(), entry.summary())).collect(),
        disciplines: DISCIPLINES.iter().map(|entry| Named::new(entry.name, entry.summary)).collect(),
        presets: presets.collect(),
        scenarios: Catalogue.ids().map(|id| Named::new(id, title(id))).collect(),
    }
}

fn title(id: &str) -> String {
    let text = Catalogue.find(id).map(|origin| origin.text).unwrap_or_default();
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    table.get("title").and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the text of a shipped scenario, which means the same anywhere, or of a call over a preset of the path.
///
/// # Errors
/// There is no such scenario.
pub fn open(id: &str, catalogue: Catalogue) -> Result<String, Problem> {
    let Some(path) = id.strip_prefix(PRESET) else { return Ok(catalogue.find(id)?.portable_text()) };
    let template = Template {
        path: path.to_owned(),
        source: "720p30".to_owned(),
        audio: None,
        controller: "gcc-tfb".to_owned(),
        traffic: Traffic::None,
        duration: "200 s".to_owned(),
    };
    Ok(template.text())
}
