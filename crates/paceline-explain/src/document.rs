// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings as one document.

use crate::causes::{self, Evidence, UNKNOWN};
use crate::diagnosis::{Finding, of_flow};
use crate::ecn;
use crate::model::{Call, Flow, MarkKind};
use crate::summary::{self, of_findings, unknowable};
use paceline_units::Time;

pub use crate::explanation::{
    EvidenceDocument, Explanation, FindingDocument, FlowExplanation, OtherCause, SeriesSummary,
};

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
        // Packets that arrive twice make the count of losses negative.
        loss_ratio: lost.map(|(lost, sent)| if lost > 0.0 { lost / sent } else { 0.0 }),
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
