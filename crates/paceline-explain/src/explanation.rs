// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document of `explain --json`. It has no addresses, names, user agents or identities: the model has none.

use crate::causes::{Strength, UNKNOWN};
use crate::ecn::Ecn;
use crate::episodes::EpisodeKind;
use crate::model::{Confidence, Media, Origin, Quantity};
use schemars::JsonSchema;
use serde::Serialize;

/// The explanation of one input.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Explanation {
    /// The answer in one sentence.
    pub verdict: String,
    /// The format of the input.
    pub format: String,
    /// What the input cannot show, and what was wrong with it.
    pub notes: Vec<String>,
    /// The flows of the input. The answer is about the one that was poor for longest.
    pub flows: Vec<FlowExplanation>,
}

/// The explanation of one flow. Times in seconds count from its first packet or sample.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FlowExplanation {
    /// Name of the flow.
    pub flow: String,
    /// Whether the end that made the input sent it.
    pub is_sent: bool,
    /// What it carries; `null` if the input does not say it.
    pub media: Option<Media>,
    /// The time from its first to its last packet or sample, s.
    pub duration_s: f64,
    /// The quantity whose drops are explained; `null` if there is none.
    pub rate: Option<Quantity>,
    /// The highest value of that quantity, bit/s.
    pub highest_bps: Option<f64>,
    /// The last value of that quantity, bit/s.
    pub last_bps: Option<f64>,
    /// Share of packets lost.
    pub loss_ratio: Option<f64>,
    /// The number of freezes.
    pub freezes: usize,
    /// The total time of freezes, s.
    pub frozen_s: f64,
    /// When the connection was lost and when it returned, s.
    pub disconnected_s: Vec<(f64, f64)>,
    /// Seconds in which the rate was low after a fall, the picture stood still, or the connection was lost.
    pub poor_s: usize,
    /// The causes, first those that cost most poor seconds.
    pub causes: Vec<CauseSummary>,
    /// What the ECN fields of packets show; `null` if ECN is not used.
    pub ecn: Option<Ecn>,
    /// The series that the input has.
    pub series: Vec<SeriesSummary>,
    /// What happened, in order of time.
    pub findings: Vec<FindingDocument>,
}

/// A series of the input.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SeriesSummary {
    /// What it measures.
    pub quantity: Quantity,
    /// From what it was computed.
    pub origin: Origin,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// Number of points.
    pub points: usize,
}

/// A drop, a plateau or a slow return of the rate, with its cause.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct FindingDocument {
    /// What happened.
    pub kind: EpisodeKind,
    /// Beginning, s since the flow's first packet or sample.
    pub start_s: f64,
    /// End, s since the flow's first packet or sample.
    pub end_s: f64,
    /// The rate before, bit/s.
    pub from_bps: f64,
    /// The rate after, bit/s.
    pub to_bps: f64,
    /// The id of the cause, or `unknown`.
    pub cause: &'static str,
    /// The cause in words.
    pub title: String,
    /// What to try.
    pub advice: String,
    /// Whether the input cannot exclude another cause.
    pub is_ambiguous: bool,
    /// The evidence; `null` if the cause is unknown.
    pub evidence: Option<EvidenceDocument>,
    /// Other causes with evidence.
    pub others: Vec<OtherCause>,
}

/// Another cause with evidence.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct OtherCause {
    /// Its id.
    pub cause: &'static str,
    /// Its evidence.
    pub evidence: EvidenceDocument,
}

/// What in the input shows a cause.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct EvidenceDocument {
    /// How strong it is.
    pub strength: Strength,
    /// The observation.
    pub text: String,
    /// The series in which it shows.
    pub series: Vec<Quantity>,
    /// The span in which it shows, s.
    pub span_s: (f64, f64),
}

/// What has one cause: falls, plateaus or slow returns.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CauseSummary {
    /// The id of the cause, or `unknown`.
    pub cause: &'static str,
    /// What happened; `drop` stands for falls of the sent rate, too.
    pub kind: EpisodeKind,
    /// The number of findings.
    pub count: usize,
    /// How many of them have strong evidence.
    pub strong: usize,
    /// Poor seconds that belong to them.
    pub poor_s: usize,
    /// The lowest rate, bit/s.
    pub lowest_bps: f64,
    /// Indices of the findings, in order of time.
    pub findings: Vec<usize>,
}

impl CauseSummary {
    /// Returns how strong the evidence is.
    pub fn confidence(&self) -> String {
        match self.strong {
            _ if self.cause == UNKNOWN => "none".to_owned(),
            0 => "weak".to_owned(),
            strong if strong == self.count => "strong".to_owned(),
            strong => format!("{strong} of {} strong", self.count),
        }
    }
}
