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
    /// Controllers of every media flow, the outermost axis; as the scenarios say if absent.
    pub controllers: Option<Placed<Vec<String>>>,
    /// The keys and the values that each takes.
    #[serde(default)]
    pub axis: Vec<AxisTable>,
    /// What is measured at each point.
    #[serde(default)]
    pub measure: Vec<MeasureTable>,
    /// One more column: the sum of the measures.
    pub sum: Option<SumTable>,
    /// The point that was published as the best; none if absent.
    pub published: Option<Placed<BTreeMap<String, f64>>>,
    /// The best points once more, on more seeds; not if absent.
    pub refine: Option<Placed<RefineTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisTable {
    /// A key as of `--set`, or `controller` ...
    pub key: Option<Placed<String>>,
    /// ... or several that move together: each value is then a list, a value for each key.
    pub keys: Option<Placed<Vec<String>>>,
    /// Each value ...
    pub values: Option<Placed<Vec<Anything>>>,
    /// ... or a grid of equal ratios ...
    pub log: Option<Placed<StepsTable>>,
    /// ... or of equal differences ...
    pub linear: Option<Placed<StepsTable>>,
    /// ... or draws whose logarithm is uniform ...
    pub samples: Option<Placed<SamplesTable>>,
    /// ... or, without `key`, constants that leave their base one at a time.
    pub one_at_a_time: Option<Placed<Vec<ConstantTable>>>,
}

/// A constant, and how far it goes to either side.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConstantTable {
    /// A key as of `--set`.
    pub key: String,
    /// Its value while others leave theirs.
    pub base: f64,
    /// The lower value; half of the base if absent.
    pub low: Option<f64>,
    /// The higher; double the base if absent.
    pub high: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsTable {
    /// The first value.
    pub from: f64,
    /// The last.
    pub to: f64,
    /// How many, both ends included.
    pub steps: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SamplesTable {
    /// The least value: of the key, or of each key.
    pub from: Numbers,
    /// The largest.
    pub to: Numbers,
    /// How many draws.
    pub count: u64,
    /// What they are drawn from; 1 if absent.
    pub seed: Option<u64>,
}

/// A number, or one for each key.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Numbers {
    One(f64),
    Each(Vec<f64>),
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
    /// What is 0 and what is 1 of a normalised sum; the least and the largest of the sweep if absent.
    pub range: Option<Placed<(f64, f64)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SumTable {
    /// Each measure goes from 0 to 1 over the grid before it is added.
    pub normalised: bool,
    /// Two keys: the claim that the sum's mean is larger where the first exceeds the second than where it is less; no
    /// claim if absent.
    pub larger_where: Option<Placed<(String, String)>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefineTable {
    /// How many points, those with the largest sums; 0: not at all.
    pub best: u64,
    /// On how many seeds each.
    pub repeats: u64,
}
