// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparisons of controllers on one scenario, as `compare --json` prints them and as pages show them.

use crate::results::{Judgement, RowKind, Verdict};
use paceline_netsim::records::json::{finite_or_null, or_infinite};
use paceline_netsim::records::{Better, Label, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Controllers on one scenario, side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonTable {
    pub scenario: String,
    pub title: String,
    /// Case of the scenario; empty for the scenario as written.
    pub case: Label,
    pub changes: Vec<String>,
    pub world: String,
    /// The controllers; the first is the baseline.
    pub controllers: Vec<String>,
    pub seeds: Vec<u64>,
    pub command: String,
    /// The number of differences that are judged. The intervals are corrected for it.
    pub judged: usize,
    /// The compared quantities: media first, then other traffic, then the bottleneck.
    pub rows: Vec<ComparisonRow>,
    /// The controllers in order of their mean score, then those that are only shown as scale. Controllers without a score in some
    /// run are not in it.
    #[serde(default)]
    pub ranking: Vec<RankedController>,
    /// What follows from the ranking, in a few sentences.
    pub verdict: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankedController {
    /// Its place, from 1; `None` for what is shown as scale: an oracle, a faulty controller, or a sender that controls nothing.
    pub place: Option<usize>,
    pub controller: String,
    pub kind: RowKind,
    /// Its score, over the seeds.
    pub score: Summary,
    /// Mean of the points that a low rate costs.
    pub lost_to_rate: f64,
    pub lost_to_delay: f64,
    pub lost_to_freezes: f64,
    /// Its score minus that of the first place, seed by seed; `None` for the first place. `holds`: it differs. The intervals of all
    /// places together contain the true differences with 95 % confidence.
    pub difference: Option<ComparedDifference>,
    /// Whether it is in the tie group of the first place: it is not significantly worse.
    pub tied: bool,
    /// The part of their fair share that other flows receive, mean of the flows that have no compared controller; `None` if there is
    /// no such flow. The fair share is an equal part of the slowest hop, or what their sources allow, where that is less.
    pub others_keep: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    pub subject: Subject,
    pub metric: String,
    /// Its name in tables.
    pub label: String,
    pub better: Better,
    /// Mean and interval over the runs of each controller; `None` if the quantity has no value in some run.
    pub values: Vec<Option<Summary>>,
    /// Whether each controller has the best mean. Several have it if their means are equal.
    pub best: Vec<bool>,
    /// The difference of each controller to the baseline; `None` for the baseline itself, and where a value is missing.
    pub differences: Vec<Option<ComparedDifference>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Whether it is media, other traffic, or the bottleneck.
    pub role: Role,
    /// The flow, or the name of a group of equal flows, whose mean it is; `None` for the bottleneck.
    pub flow: Option<String>,
    /// The stream; `None` for the flow as a whole.
    pub stream: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A media flow: the controllers control it.
    Media,
    /// Other traffic, such as TCP.
    Traffic,
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedDifference {
    /// Mean of the differences: controller minus baseline.
    pub mean: f64,
    /// Half-width of the interval. All intervals of a table together contain the true means with 95 % confidence
    /// (Bonferroni); infinite for one seed, written as null.
    #[serde(serialize_with = "finite_or_null", deserialize_with = "or_infinite")]
    pub interval: f64,
    pub margin: f64,
    /// Whether it improves the metric; `None` for no difference, and if the metric does not say which values are better.
    pub better: Option<bool>,
    /// Whether it differs by an amount that matters: [`Check::Difference`](crate::results::Check::Difference).
    #[serde(flatten)]
    pub judgement: Judgement,
}

/// Writes `better`, `worse` or `different` for a difference that matters, `equal` if there is none, or `undecided, 6 more runs`.
impl fmt::Display for ComparedDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.judgement.verdict, self.better) {
            (Verdict::Holds, Some(true)) => f.pad("better"),
            (Verdict::Holds, Some(false)) => f.pad("worse"),
            (Verdict::Holds, None) => f.pad("different"),
            (Verdict::Fails, _) => f.pad("equal"),
            (Verdict::Undecided, _) => write!(f, "{}", self.judgement),
        }
    }
}

impl ComparedDifference {
    /// Returns whether a difference that matters improves the metric; `None` without one, and if the metric does not say.
    pub fn improves(&self) -> Option<bool> {
        self.better.filter(|_| self.judgement.verdict == Verdict::Holds)
    }
}

impl Subject {
    /// Returns the name for readers: the flow, and the stream if there is one.
    pub fn name(&self) -> String {
        match (&self.flow, &self.stream) {
            (None, _) => "forward bottleneck".to_owned(),
            (Some(flow), None) => flow.clone(),
            (Some(flow), Some(stream)) => format!("{flow}/{stream}"),
        }
    }
}

impl ComparisonTable {
    /// Returns the rows of one subject after the other.
    pub fn by_subject(&self) -> impl Iterator<Item = &[ComparisonRow]> {
        self.rows.chunk_by(|a, b| a.subject == b.subject)
    }
}
