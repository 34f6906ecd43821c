// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: series, labels on the timeline, evidence one click away.

use super::text::{disconnected, rate, what, when, when_all, worst};
use super::what_if::{WhatIf, caveats};
use paceline_explain::causes::UNKNOWN;
use paceline_explain::document::{Explanation, FindingDocument};
use paceline_explain::model::{Call, Confidence, Flow, Quantity, Series as Measured};
use paceline_explain::summary::CauseSummary;
use paceline_lab::report::figure::{Axis, Figure, Panel, Role, Series, SeriesKind, Subject};
use paceline_lab::report::timeline::{Label, Part, Timeline};
use paceline_units::{Time, TimeDelta};

/// Findings of a cause whose evidence is listed.
const LISTED: usize = 40;
/// What evidence shows before and after its span.
const AROUND: TimeDelta = TimeDelta::from_secs(5);

/// Panels: id, title, unit, caption, quantities.
const PANELS: &[(&str, &str, &str, &[Quantity])] = &[
    (
        "rate",
        "Rate",
        "Mbit/s",
        &[Quantity::Target, Quantity::Estimate, Quantity::SentRate, Quantity::ReceivedRate, Quantity::Cap],
    ),
    (
        "delay",
        "Delay",
        "ms",
        &[
            Quantity::DelayLow,
            Quantity::DelayHigh,
            Quantity::RoundTrip,
            Quantity::ArrivalGap,
            Quantity::Jitter,
            Quantity::PacerDelay,
            Quantity::EncodeTime,
        ],
    ),
    ("packets", "Packets", "packets", &[Quantity::PacketsSent, Quantity::PacketsLost, Quantity::Repairs]),
    (
        "ecn",
        "ECN",
        "packets",
        &[Quantity::EctSent, Quantity::EctArrived, Quantity::CeArrived, Quantity::EctCleared, Quantity::EctLost],
    ),
    ("reports", "Reports", "reports", &[Quantity::Feedback, Quantity::FeedbackSent]),
    ("frames", "Frames", "1/s", &[Quantity::FrameRate, Quantity::SourceFrameRate]),
];

/// Adds the flows of an input.
pub(super) fn add(timeline: &mut Timeline, call: &Call, explanation: &Explanation, what_if: &[WhatIf]) {
    timeline.title = "Why the rate fell".to_owned();
    let first = timeline.parts.len();
    timeline.notes.extend(explanation.notes.iter().cloned());
    for (flow, explained) in call.flows.iter().zip(&explanation.flows) {
        let name = format!("{} of {}", explained.flow, explanation.format);
        let id = format!("explain/{}", timeline.parts.len());
        let mut facts = vec![("duration".to_owned(), format!("{:.0} s", explained.duration_s))];
        facts.push(("poor".to_owned(), format!("{} s", explained.poor_s)));
        facts.extend(explained.highest_bps.map(|bps| ("highest rate".to_owned(), format!("{} Mbit/s", rate(bps)))));
        facts.extend(explained.loss_ratio.map(|loss| ("packets lost".to_owned(), format!("{:.2} %", loss * 100.0))));
        if explained.freezes > 0 {
            facts.push(("freezes".to_owned(), format!("{}, {:.1} s", explained.freezes, explained.frozen_s)));
        }
        facts.extend(explained.ecn.as_ref().map(|ecn| ("ECN".to_owned(), ecn.text.clone())));
        facts.extend(disconnected(explained).map(|times| ("connection".to_owned(), times)));
        let mut overview = figure(&id, flow, flow.span, None);
        overview.panels.insert(0, causes(flow, &explained.findings));
        let found = explained.causes.iter().filter_map(|cause| Some((cause, worst(cause, &explained.findings)?)));
        let labels = found.enumerate().map(|(index, (cause, finding))| {
            let figure = finding.evidence.as_ref().map(|evidence| {
                let at = |seconds: f64| flow.span.0 + TimeDelta::from_secs_f64(seconds);
                let from = (at(evidence.span_s.0.min(finding.start_s)) - AROUND).max(flow.span.0);
                let to = (at(evidence.span_s.1.max(finding.end_s)) + AROUND).min(flow.span.1);
                figure(&format!("{id}/{index}"), flow, (from, to), Some(&evidence.series))
            });
            label(cause, finding, &explained.findings, figure.filter(|figure| !figure.panels.is_empty()))
        });
        let here: Vec<&WhatIf> = what_if.iter().filter(|what_if| what_if.flow == explained.flow).collect();
        let rows: Vec<Vec<String>> = here.iter().map(|what_if| what_if.cells()).collect();
        // Once for the call.
        let verdict = if timeline.parts.len() == first { explanation.verdict.clone() } else { String::new() };
        timeline.parts.push(Part {
            name,
            verdict,
            facts,
            labels: labels.collect(),
            overview,
            table: (WhatIf::HEADINGS.map(str::to_owned).to_vec(), rows),
            caveats: caveats(&here),
        });
    }
}

/// Returns the label of a cause, with the plots of its worst finding.
fn label(cause: &CauseSummary, worst: &FindingDocument, all: &[FindingDocument], figure: Option<Figure>) -> Label {
    let listed = cause.findings.iter().map(|index| &all[*index]).take(LISTED);
    let evidence = listed.filter_map(|finding| {
        let text = &finding.evidence.as_ref()?.text;
        Some(if cause.count == 1 { text.clone() } else { format!("{}: {}, {text}", when(finding), what(finding)) })
    });
    Label {
        when: when_all(cause, all),
        what: format!("{} Mbit/s", what(worst)),
        why: worst.title.clone(),
        evidence: std::iter::once(format!("{} evidence", cause.confidence())).chain(evidence).collect(),
        others: worst.others.iter().map(|other| format!("{}: {}", other.cause, other.evidence.text)).collect(),
        advice: worst.advice.clone(),
        is_known: worst.cause != UNKNOWN,
        figure,
    }
}

/// Returns the panels of a span: all, or those with quantities of the evidence.
fn figure(id: &str, flow: &Flow, (from, to): (Time, Time), only: Option<&[Quantity]>) -> Figure {
    let seconds = |at: Time| (at - flow.span.0).as_secs_f64();
    let mut panels = Vec::new();
    for (panel_id, title, unit, quantities) in PANELS {
        let wanted = |quantity: &&Quantity| {
            // The rate belongs to every piece of evidence.
            let is_rate = *panel_id == "rate" && **quantity != Quantity::Cap;
            only.is_none_or(|only| only.contains(quantity) || is_rate)
        };
        let measured = quantities.iter().filter(wanted).filter_map(|quantity| Some((*quantity, flow.get(*quantity)?)));
        let series = measured.map(|(quantity, measured)| drawn(quantity, measured, (from, to), &seconds));
        let series: Vec<Series> = series.filter(|series| !series.is_empty()).collect();
        if !series.is_empty() {
            let x = Axis { range: Some((seconds(from), seconds(to))), ..Axis::time(0.0) };
            panels.push(Panel {
                id: (*panel_id).to_owned(),
                title: (*title).to_owned(),
                caption: captions(&series, quantities, flow),
                x,
                y: Axis::new(&title.to_lowercase(), unit),
                series,
            });
        }
    }
    let (scenario, title) = ("explain".to_owned(), String::new());
    let subject = Subject { run: flow.name.clone(), flow: flow.name.clone(), ..Subject::named(&flow.name) };
    Figure { id: id.to_owned(), scenario, title, subjects: vec![subject], panels }
}

fn drawn(quantity: Quantity, measured: &Measured, (from, to): (Time, Time), seconds: &dyn Fn(Time) -> f64) -> Series {
    let (label, _, scale) = quantity.describe();
    let kind = match measured.confidence {
        Confidence::Exact if matches!(quantity, Quantity::RoundTrip) => SeriesKind::Line,
        _ => SeriesKind::Steps,
    };
    let mut series = Series::new(&format!("{quantity:?}"), label, 0, Role::Main, kind);
    let before = measured.at(from).map(|value| (from, value));
    for (at, value) in before.into_iter().chain(measured.within(from, to).iter().copied()) {
        if series.x.last().is_none_or(|last| *last < seconds(at)) {
            series.push(seconds(at), value * scale);
        }
    }
    series
}

/// Names origin and confidence of each series.
fn captions(series: &[Series], quantities: &[Quantity], flow: &Flow) -> String {
    let of = |quantity: &Quantity| {
        let measured = flow.get(*quantity)?;
        let (label, _, _) = quantity.describe();
        let shown = series.iter().any(|series| series.label == label);
        let origin = format!("{:?}", measured.origin).to_lowercase();
        let origin = origin.replace("bothends", "both ends");
        shown.then(|| format!("{label}: from {origin}, {}", format!("{:?}", measured.confidence).to_lowercase()))
    };
    quantities.iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

/// Returns the panel of the causes over time.
fn causes(flow: &Flow, findings: &[FindingDocument]) -> Panel {
    let mut states: Vec<String> = Vec::new();
    for finding in findings {
        if !states.iter().any(|state| state == finding.cause) {
            states.push(finding.cause.to_owned());
        }
    }
    let span = (flow.span.1 - flow.span.0).as_secs_f64();
    // One row for each cause.
    let series = states.iter().map(|cause| {
        let mut series = Series::new(cause, cause, 0, Role::Main, SeriesKind::Band);
        series.states = vec![cause.clone()];
        let mut last = 0.0;
        series.push(0.0, f64::NAN);
        for finding in findings.iter().filter(|finding| finding.cause == cause) {
            let start = finding.start_s.max(last);
            let end = finding.end_s.max(start + 0.004 * span).min(span.max(start));
            series.push(start, 0.0);
            series.push(end, f64::NAN);
            last = end;
        }
        series.push(span.max(last), f64::NAN);
        series
    });
    Panel {
        id: "causes".to_owned(),
        title: "Causes of falls and plateaus".to_owned(),
        caption: "from the beginning to the end of each".to_owned(),
        x: Axis::time(span),
        y: Axis::new("cause", ""),
        series: series.collect(),
    }
}
