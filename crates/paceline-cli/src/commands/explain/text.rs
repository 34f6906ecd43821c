// SPDX-License-Identifier: MIT OR Apache-2.0
//! One screen: the answer, then the causes with their times, their evidence and what to try.

use super::what_if::{self, WhatIf};
use crate::output;
use crate::table::{Table, sparkline};
use crate::view::View;
use paceline_explain::document::{Explanation, FindingDocument, FlowExplanation};
use paceline_explain::episodes::EpisodeKind;
use paceline_explain::model::{Call, Flow};
use paceline_explain::path::{Unknown, observe};
use paceline_explain::summary::{CauseSummary, times};
use paceline_units::TimeDelta;

/// Columns of the drawing.
const COLUMNS: usize = 50;
/// Causes of a flow that are listed, those with advice, and times of a cause.
const LISTED: usize = 7;
const ADVISED: usize = 3;
const TIMES: usize = 6;

/// Describes an input.
pub(super) fn describe(name: &str, call: &Call, explanation: &Explanation, what_if: &[WhatIf]) -> View {
    let mut view = View::default();
    let name = name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name);
    view.sentences(explanation.verdict.clone());
    view.gap();
    view.heading(format!("{}  {}", output::bold(name), explanation.format));
    for (flow, explained) in call.flows.iter().zip(&explanation.flows) {
        of_flow(flow, explained, call.flows.len() > 1, &mut view);
        let here: Vec<&WhatIf> = what_if.iter().filter(|what_if| what_if.flow == explained.flow).collect();
        if !here.is_empty() {
            what_if::describe(&here, &mut view);
        }
    }
    let is_offered = |(flow, explained): (&Flow, &FlowExplanation)| {
        flow.is_sent && explained.poor_s > 0 && observe(flow, Unknown::AsCarried).is_some()
    };
    if what_if.is_empty() && call.flows.iter().zip(&explanation.flows).any(is_offered) {
        view.line("", format!("Other controllers on this path: --what-if {OFFERED}"));
    }
    if !explanation.notes.is_empty() {
        view.line("", "Limits of the input:");
    }
    for note in &explanation.notes {
        view.line("· ", note.clone());
    }
    view
}

/// Controllers for a path of a user: ours, that of Chromium, and the next one of Chromium.
const OFFERED: &str = "drc,googcc,scream-libwebrtc";

/// The line of a flow without findings and without poor seconds.
const NOTHING: &str = "The rate neither fell nor stood still for a cause that shows.";

/// Formats a rate.
pub(super) fn rate(bps: f64) -> String {
    format!("{:.2}", bps / 1e6)
}

/// Lower rates are shown in kbit/s.
const SMALL: f64 = 1e5;

fn kbps(bps: f64) -> String {
    format!("{:.0}", bps / 1e3)
}

fn with_unit(bps: f64) -> String {
    if bps < SMALL { format!("{} kbit/s", kbps(bps)) } else { format!("{} Mbit/s", rate(bps)) }
}

/// Formats when something happened.
pub(super) fn when(finding: &FindingDocument) -> String {
    let (start, end) = (finding.start_s, finding.end_s);
    if end - start < 1.0 { format!("{start:.1} s") } else { format!("{start:.1}–{end:.1} s") }
}

/// Formats when the findings of a cause happened.
pub(super) fn when_all(cause: &CauseSummary, findings: &[FindingDocument]) -> String {
    let starts: Vec<String> = match cause.findings.as_slice() {
        [only] => return when(&findings[*only]),
        all => all.iter().map(|index| format!("{:.0}", findings[*index].start_s)).collect(),
    };
    let shown = match starts.as_slice() {
        [first @ .., last] if first.len() >= TIMES => format!("{}, …, {last}", first[..TIMES - 1].join(", ")),
        all => all.join(", "),
    };
    format!("{}: {shown} s", times(starts.len()))
}

/// Returns the finding of a cause in which the rate fell most.
pub(super) fn worst<'a>(cause: &CauseSummary, findings: &'a [FindingDocument]) -> Option<&'a FindingDocument> {
    let lost = |finding: &FindingDocument| finding.from_bps - finding.to_bps;
    cause.findings.iter().map(|index| &findings[*index]).rev().max_by(|a, b| lost(a).total_cmp(&lost(b)))
}

/// Formats what happened.
pub(super) fn what(finding: &FindingDocument) -> String {
    change(finding.kind, finding.from_bps, finding.to_bps)
}

fn change(kind: EpisodeKind, from_bps: f64, to_bps: f64) -> String {
    let (from, to, unit) = match from_bps.max(to_bps) < SMALL {
        true => (kbps(from_bps), kbps(to_bps), " kbit/s"),
        false => (rate(from_bps), rate(to_bps), ""),
    };
    match kind {
        EpisodeKind::Drop | EpisodeKind::SentDrop => format!("{from} → {to}{unit}"),
        EpisodeKind::Plateau => format!("stays {from}{unit}"),
        EpisodeKind::SlowReturn => format!("slow, {to} of {from}{unit}"),
    }
}

/// Names the times at which the connection was lost.
pub(super) fn disconnected(explained: &FlowExplanation) -> Option<String> {
    let times: Vec<String> = explained.disconnected_s.iter().map(|(from, _)| format!("{from:.1} s")).collect();
    (!times.is_empty()).then(|| format!("disconnected at {}", times.join(", ")))
}

fn of_flow(flow: &Flow, explained: &FlowExplanation, is_one_of_several: bool, view: &mut View) {
    let mut facts = vec![format!("{:.0} s", explained.duration_s)];
    if is_one_of_several {
        facts.insert(0, output::bold(&explained.flow));
    }
    if explained.poor_s > 0 {
        facts.push(format!("{} s poor", explained.poor_s));
    }
    facts.extend(explained.loss_ratio.map(|loss| format!("{:.1} % lost", loss * 100.0)));
    if explained.freezes > 0 {
        facts.push(format!("{} freezes, {:.1} s", explained.freezes, explained.frozen_s));
    }
    facts.extend(disconnected(explained));
    view.line("", facts.join(" · "));
    if let Some((quantity, series)) = flow.rate() {
        let span = (flow.span.1 - flow.span.0).as_secs_f64();
        let step = TimeDelta::from_secs_f64((span / COLUMNS as f64).max(0.001));
        let values: Vec<f64> = (0..COLUMNS)
            .map(|index| {
                let from = flow.span.0 + step * index as i64;
                series.mean(from, from + step).or(series.at(from)).unwrap_or(0.0)
            })
            .collect();
        let top = values.iter().copied().fold(0.0, f64::max);
        let mut drawing = Table::new(["".to_owned(), format!("0 to {span:.0} s, full height {}", with_unit(top))], 2);
        drawing.row(vec![quantity.describe().0.to_owned(), sparkline(&values, top)]);
        let mut marks = vec![' '; COLUMNS];
        let found =
            explained.causes.iter().enumerate().flat_map(|(row, cause)| cause.findings.iter().map(move |f| (row, f)));
        for (row, finding) in found {
            let at = ((explained.findings[*finding].start_s / span.max(0.001)) * COLUMNS as f64) as usize;
            let mark = mark_of(row);
            if let Some(place) = marks.get_mut(at.min(COLUMNS - 1)).filter(|place| **place == ' ') {
                *place = mark;
            }
        }
        drawing.row(vec![String::new(), marks.into_iter().collect::<String>().trim_end().to_owned()]);
        view.drawing(drawing);
    }
    if let Some(ecn) = &explained.ecn {
        view.line("", format!("ECN: {}.", ecn.text));
        view.gap();
    }
    if explained.findings.is_empty() {
        if explained.poor_s == 0 {
            view.line("", NOTHING);
        }
        return;
    }
    let mut table = Table::new(["", "when", "Mbit/s", "poor", "evidence", "why"], 6);
    let rows = explained.causes.iter().enumerate().take(LISTED);
    for (row, (cause, finding)) in
        rows.filter_map(|(row, cause)| Some((row, (cause, worst(cause, &explained.findings)?))))
    {
        let poor = if cause.poor_s > 0 { format!("{} s", cause.poor_s) } else { String::new() };
        let when = when_all(cause, &explained.findings);
        table.row(vec![mark_of(row).to_string(), when, what(finding), poor, cause.confidence(), why(finding)]);
    }
    view.table(table);
    if explained.causes.len() > LISTED {
        let more = explained.causes.len() - LISTED;
        view.line("", format!("… and {more} more; --json and --page have them all"));
    }
    view.line("", "To try:");
    let mut advised: Vec<&FindingDocument> = Vec::new();
    for finding in explained.causes.iter().filter_map(|cause| worst(cause, &explained.findings)) {
        if advised.iter().all(|other| other.cause != finding.cause) {
            advised.push(finding);
        }
    }
    for finding in advised.iter().take(ADVISED) {
        view.line("· ", format!("{}: {}", finding.cause, finding.advice));
    }
}

/// Returns the mark of a cause in the drawing and in the table.
fn mark_of(row: usize) -> char {
    char::from_digit(row as u32 + 1, 36).unwrap_or('*')
}

fn why(finding: &FindingDocument) -> String {
    let Some(evidence) = &finding.evidence else { return finding.title.clone() };
    let mut text = format!("{}: {}", output::bold(finding.cause), evidence.text);
    if finding.is_ambiguous {
        let others: Vec<&str> = finding.others.iter().map(|other| other.cause).collect();
        text += &format!("; or {}", others.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_explain::model::{Mark, MarkKind};
    use paceline_units::Time;

    #[test]
    fn only_a_flow_without_poor_seconds_has_the_line_that_nothing_happened() {
        let text = |freeze_s: Option<i64>| {
            let marks = freeze_s.map(|lasted| {
                let kind = MarkKind::Freeze(TimeDelta::from_secs(lasted));
                Mark { at: Time::from_secs(40), kind }
            });
            let span = (Time::ZERO, Time::from_secs(60));
            let flow = Flow { span, marks: marks.into_iter().collect(), ..Flow::default() };
            let call = Call { flows: vec![flow], ..Call::default() };
            let explanation = paceline_explain::document::explain(&call);
            describe("dump", &call, &explanation, &[]).text()
        };
        assert!(text(None).contains(NOTHING), "{}", text(None));
        let frozen = text(Some(31));
        assert!(frozen.contains("was poor for 31 of 60 s") && !frozen.contains(NOTHING), "{frozen}");
    }

    #[test]
    fn small_rates_are_in_kbps() {
        let shown = |from_bps, to_bps| change(EpisodeKind::Drop, from_bps, to_bps);
        assert_eq!(shown(2e4, 4e3), "20 → 4 kbit/s");
        assert_eq!(shown(2e6, 4e3), "2.00 → 0.00");
    }
}
