// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings as one JSON document. It has no addresses, names, user agents or identities: the model has none.

use crate::causes::{self, Evidence, Strength, UNKNOWN};
use crate::diagnosis::{Finding, of_flow};
use crate::ecn::{self, Ecn};
use crate::episodes::EpisodeKind;
use crate::model::{Call, Confidence, Flow, MarkKind, Media, Origin, Quantity};
use crate::summary::{self, CauseSummary, of_findings, unknowable};
use paceline_units::Time;
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

/// Explains each flow of a call: finds the drops, plateaus and slow returns of its rate, and their causes. The `verdict` is about the
/// [worst](summary::worst) flow.
pub fn explain(call: &Call) -> Explanation {
    let flows: Vec<FlowExplanation> = call.flows.iter().map(of).collect();
    let verdict = summary::verdict(&call.flows, &flows);
    Explanation { verdict, format: call.format.clone(), notes: call.notes.clone(), flows }
}

fn of(flow: &Flow) -> FlowExplanation {
    let seconds = |at: Time| ((at - flow.span.0).as_secs_f64() * 1e3).round() / 1e3;
    let rate = flow.rate();
    let freezes = flow.marks.iter().filter_map(|mark| match mark.kind {
        MarkKind::Freeze(lasted) => Some(lasted.as_secs_f64()),
        _ => None,
    });
    let lost = flow.losses(flow.span.0, Time::MAX).filter(|(_, sent)| *sent > 0.0);
    let findings = of_flow(flow);
    let (poor_s, causes) = of_findings(flow, &findings);
    FlowExplanation {
        flow: flow.name.clone(),
        is_sent: flow.is_sent,
        media: flow.media,
        duration_s: seconds(flow.span.1),
        rate: rate.map(|(quantity, _)| quantity),
        highest_bps: rate.and_then(|(_, series)| series.max(flow.span.0, Time::MAX)),
        last_bps: rate.and_then(|(_, series)| series.at(Time::MAX)),
        loss_ratio: lost.map(|(lost, sent)| lost / sent),
        freezes: freezes.clone().count(),
        frozen_s: freezes.fold(0.0, |sum, frozen| sum + frozen),
        disconnected_s: flow.disconnections().into_iter().map(|(from, to)| (seconds(from), seconds(to))).collect(),
        poor_s,
        causes,
        ecn: ecn::of_flow(flow),
        series: flow
            .series
            .iter()
            .map(|(quantity, series)| SeriesSummary {
                quantity: *quantity,
                origin: series.origin,
                confidence: series.confidence,
                points: series.points.len(),
            })
            .collect(),
        findings: findings.iter().map(|finding| document(flow, finding, &seconds)).collect(),
    }
}

fn document(flow: &Flow, finding: &Finding, seconds: &dyn Fn(Time) -> f64) -> FindingDocument {
    let evidence = |evidence: &Evidence| EvidenceDocument {
        strength: evidence.strength,
        text: evidence.text.clone(),
        series: evidence.series.clone(),
        span_s: (seconds(evidence.span.0), seconds(evidence.span.1)),
    };
    let (title, advice) = match causes::find(finding.cause) {
        Some(cause) => (cause.title.to_owned(), cause.advice.to_owned()),
        None => {
            let (why, record) = unknowable(flow);
            let title = format!("{UNKNOWN}: the cause cannot be known from this file, because {why}");
            (title, format!("record {record} to know"))
        }
    };
    FindingDocument {
        kind: finding.episode.kind,
        start_s: seconds(finding.episode.start),
        end_s: seconds(finding.episode.end),
        from_bps: finding.episode.from,
        to_bps: finding.episode.to,
        cause: finding.cause,
        title,
        advice,
        is_ambiguous: finding.is_ambiguous(),
        evidence: finding.evidence.as_ref().map(evidence),
        others: finding.others.iter().map(|(cause, e)| OtherCause { cause, evidence: evidence(e) }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mark;
    use paceline_units::TimeDelta;

    #[test]
    fn the_time_of_freezes_is_positive() {
        let mut flow = Flow::default();
        assert!(of(&flow).frozen_s.is_sign_positive());
        for ms in [500, 250] {
            flow.marks.push(Mark { at: Time::ZERO, kind: MarkKind::Freeze(TimeDelta::from_millis(ms)) });
        }
        assert_eq!((of(&flow).freezes, of(&flow).frozen_s), (2, 0.75));
    }
}
