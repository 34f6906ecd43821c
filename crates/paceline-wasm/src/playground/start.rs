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
    /// Calls over presets of the path, then shipped scenarios, in groups: title, and what is in it.
    pub groups: Vec<(String, Vec<Named>)>,
}

/// Titles of groups, with the beginnings of the names in each: of presets, then of scenarios. Other scenarios are in a group of their folder.
const GROUPS: [(&str, &[&str]); 22] = [
    ("A call over Wi-Fi", &["path:wifi"]),
    ("A call over a mobile network", &["path:lte", "path:5g", "path:3g"]),
    ("A call over satellites", &["path:satellite"]),
    ("A call over a fixed line", &[PRESET]),
    ("Cloud gaming", &["gaming/"]),
    ("Conferences over an SFU", &["sfu/"]),
    ("Beside other traffic", &["rivals/", "tcp/"]),
    ("Faults that users report", &["zoo/"]),
    ("Wi-Fi", &["wifi/"]),
    ("LTE and 3G", &["cellular/"]),
    ("5G", &["5g/"]),
    ("Satellites", &["satellite/"]),
    ("L4S and queues", &["l4s/", "queues/"]),
    ("Recordings, and calls of browsers", &["real/", "watch/"]),
    ("RFC 8867 and RFC 8869", &["rfc8867/", "rfc8869/"]),
    ("Paper: FhMN 2013", &["fhmn13/"]),
    ("Paper: MED 2016", &["med16/"]),
    ("Paper: MMSys 2016", &["mmsys16/"]),
    ("Paper: RMCAT in ns-3", &["rmcat-ns3/"]),
    ("Thesis of Ottawa, 2015", &["uottawa15/"]),
    ("Paths that a search found against controllers", &["adversarial/"]),
    ("Training and stability", &["gym/", "stability/"]),
];

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
        groups: groups(presets.chain(Catalogue.ids().map(|id| Named::new(id, title(id)))).collect()),
    }
}

/// Returns the groups that are not empty, in the order of [`GROUPS`]; the first group whose beginning fits has an entry.
fn groups(mut entries: Vec<Named>) -> Vec<(String, Vec<Named>)> {
    let mut groups = Vec::new();
    let mut take = |title: &str, begins: &dyn Fn(&str) -> bool, entries: &mut Vec<Named>| {
        let (of_group, others): (Vec<_>, Vec<_>) = std::mem::take(entries).into_iter().partition(|of| begins(&of.name));
        *entries = others;
        groups.extend((!of_group.is_empty()).then(|| (title.to_owned(), of_group)));
    };
    for (title, beginnings) in GROUPS {
        take(title, &|name| beginnings.iter().any(|beginning| name.starts_with(beginning)), &mut entries);
    }
    while let Some(first) = entries.first() {
        let folder = first.name.split('/').next().unwrap_or_default().to_owned();
        take(&folder, &|name| name.split('/').next() == Some(&folder), &mut entries);
    }
    groups
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
