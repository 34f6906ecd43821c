// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a sweep file, `NAME.sweep.toml`.

use paceline_netsim::records::Label;
use paceline_scenario::{AnyValue, Spanned};
use paceline_units::Time;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SweepFile {
    /// Its id, such as `mmsys16/fig8`.
    pub id: String,
    pub title: String,
    /// The document, section or figure that it follows.
    #[serde(default)]
    pub source: String,
    /// Seeds per point; 1 if absent.
    pub repeats: Option<Spanned<u64>>,
    /// Controllers of every media flow, the first axis; those of the scenarios if absent.
    pub controllers: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    pub axis: Vec<AxisTable>,
    #[serde(default)]
    pub measure: Vec<MeasureTable>,
    pub sum: Option<SumTable>,
    pub published: Option<Spanned<BTreeMap<String, f64>>>,
    /// Repeats the best points on more seeds.
    pub refine: Option<Spanned<RefineTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AxisTable {
    /// A key as of `--set`, or `controller` ...
    pub key: Option<Spanned<String>>,
    /// ... or several that change together: each value is then a list with a value for each key.
    pub keys: Option<Spanned<Vec<String>>>,
    /// Each value ...
    pub values: Option<Spanned<Vec<AnyValue>>>,
    /// ... or a grid of equal ratios ...
    pub log: Option<Spanned<StepsTable>>,
    /// ... or of equal differences ...
    pub linear: Option<Spanned<StepsTable>>,
    /// ... or draws with a uniform logarithm ...
    pub samples: Option<Spanned<SamplesTable>>,
    /// ... or, without `key`, constants that are varied one at a time.
    pub one_at_a_time: Option<Spanned<Vec<ConstantTable>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConstantTable {
    /// A key as of `--set`.
    pub key: String,
    /// Its value while others are varied.
    pub base: f64,
    /// The lower value; half of the base if absent.
    pub low: Option<f64>,
    /// The higher; double the base if absent.
    pub high: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsTable {
    /// The first value: a number, or a quantity such as "10 ms".
    pub from: Bound,
    /// The last, in the same unit.
    pub to: Bound,
    /// Number of values, with both ends.
    pub steps: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SamplesTable {
    /// The least value of all keys, or of each.
    pub from: Numbers,
    pub to: Numbers,
    pub count: u64,
    /// Seed of the draws; 1 if absent.
    pub seed: Option<u64>,
}

/// A number, or a number with its unit.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Bound {
    Number(f64),
    Quantity(String),
}

impl Bound {
    /// Returns the number and its unit; without a unit, an empty one. `None` for text that is not a number with a unit.
    pub(super) fn parts(&self) -> Option<(f64, &str)> {
        match self {
            Self::Number(number) => Some((*number, "")),
            Self::Quantity(text) => {
                let text = text.trim();
                let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic() || c == '%')?);
                Some((number.trim().parse().ok()?, unit.trim()))
            }
        }
    }
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
    pub name: String,
    /// Scenario id or file.
    pub scenario: Spanned<String>,
    pub case: Option<Spanned<Label>>,
    /// Values set at every point, by the keys of `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, AnyValue>,
    pub metric: Spanned<String>,
    pub flow: Option<Spanned<String>>,
    pub window: Option<Spanned<(Time, Time)>>,
    /// The published value, in the metric's unit.
    pub published: Option<f64>,
    /// The values that become 0 and 1 in a normalised sum; the least and the largest of the sweep if absent.
    pub range: Option<Spanned<(f64, f64)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SumTable {
    /// Whether each measure is scaled to 0 to 1 before it is added.
    pub normalised: bool,
    /// Two keys: the claim that the mean of the sums is larger where the first exceeds the second than where it is less.
    pub larger_where: Option<Spanned<(String, String)>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefineTable {
    /// Number of points with the largest sums; 0 for none.
    pub best: u64,
    /// Seeds of each.
    pub repeats: u64,
}
