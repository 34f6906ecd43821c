//! What may stand in a sweep file, `NAME.sweep.toml`.

use crate::label::Label;
use crate::scenario::{Anything, Placed};
use paceline_units::Time;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepFile {
    /// Its id, such as `mmsys16/fig8`.
    pub id: String,
    /// A line on it.
    pub title: String,
    /// The document, section or figure that it follows.
    #[serde(default)]
    pub source: String,
    /// Seeds per point; 1 if absent.
    pub repeats: Option<Placed<u64>>,
    /// One or two keys, and the values that each takes.
    #[serde(default)]
    pub axis: Vec<AxisTable>,
    /// What is measured at each point.
    #[serde(default)]
    pub measure: Vec<MeasureTable>,
    /// One more column: the sum of the measures.
    pub sum: Option<SumTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisTable {
    /// A key as of `--set`.
    pub key: Placed<String>,
    /// Each value ...
    pub values: Option<Placed<Vec<Anything>>>,
    /// ... or a grid of equal ratios.
    pub log: Option<Placed<LogTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogTable {
    /// The first value.
    pub from: f64,
    /// The last.
    pub to: f64,
    /// How many, both ends included.
    pub steps: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureTable {
    /// Its name in results.
    pub name: String,
    /// Scenario id or file.
    pub scenario: Placed<String>,
    /// Case of the scenario.
    pub case: Option<Placed<Label>>,
    /// Values set at every point, by the keys of `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, Anything>,
    /// Metric id.
    pub metric: Placed<String>,
    /// The flow it is taken of.
    pub flow: Option<Placed<String>>,
    /// The span it is taken over, [from, to].
    pub window: Option<Placed<(Time, Time)>>,
    /// What was published, in the metric's unit.
    pub published: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SumTable {
    /// Each measure goes from 0 to 1 over the grid before it is added.
    pub normalised: bool,
}
