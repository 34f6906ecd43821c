// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as text tables.

use crate::output;
use crate::table::{Table, kind_of, value_text};
use paceline_lab::report::cells::{CellText, place, runs};
use paceline_lab::report::check_text::cell_verdict;
use paceline_lab::reproduce::{ConstantEnd, SensitivityReport};
use paceline_lab::results::{
    Cell, CellVerdict, Conclusion, Counts, EvidenceResult, ExperimentReport, Report, VerdictCounts, VerdictSummary,
    papers,
};

/// Returns how cells are formatted: with the units of the lab's metrics.
pub(super) fn cell_text() -> CellText {
    CellText::new(paceline_lab::metrics::catalogue())
}

/// Returns how many cells have which verdict.
pub(super) fn verdict_counts_text(counts: &VerdictCounts) -> String {
    let VerdictCounts { cells, reproduced, direction, not, .. } = counts;
    format!("{cells}: {reproduced} reproduced, {direction} in direction, {not} not")
}

/// Returns metric, case, flow and window of a cell in one text.
pub(super) fn place_text(cell: &Cell) -> String {
    let parts: Vec<String> = place(cell).into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Returns a line for each note of a report.
pub(super) fn notes(report: &ExperimentReport, indent: &str) -> String {
    let note = |cell: &Cell| {
        Some(output::hang(&format!("{indent}· "), &format!("{}: {}", place_text(cell), cell_text().note(cell)?)) + "\n")
    };
    report.cells.iter().filter_map(note).collect()
}

pub(super) fn describe(report: &Report) -> String {
    let mut text = String::new();
    if report.experiments.len() > 1 {
        text += &matrix(report);
    }
    text.extend(report.experiments.iter().map(describe_experiment));
    if report.experiments.iter().flat_map(|e| &e.cells).any(|c| c.null_reproduces) {
        text += &line(
            "* the null sender (85 % of the capacity, no congestion control) also reproduces the cell, so it is no evidence",
        );
    }
    let fitted = report.experiments.iter().flat_map(|e| &e.cells).filter_map(|c| c.fitted.as_deref());
    for key in fitted.collect::<std::collections::BTreeSet<_>>() {
        text += &line(&format!("† `{key}` was chosen by a sweep of this value, so the cell is no evidence"));
    }
    text + &describe_assumed(&report.experiments) + &describe_summary(&report.summary) + &describe_conclusions(report)
}

/// Returns the conclusions of the papers: whether each holds, and its evidence.
fn describe_conclusions(report: &Report) -> String {
    let mut text = String::new();
    let mut paper = "";
    for conclusion in &report.conclusions {
        if conclusion.paper != paper {
            paper = &conclusion.paper;
            text += &format!("\n{}\n", line(&output::bold(&format!("conclusions of {paper}"))).trim_end());
        }
        let Conclusion { verdict, text: sentence, place, .. } = conclusion;
        text += &output::hang(&format!("{} ", verdict.mark()), &format!("{}: {sentence} ({place})", verdict.name()));
        text.push('\n');
        if !conclusion.conditions.is_empty() {
            text += &output::hang("  if ", &conclusion.conditions.join(", "));
            text.push('\n');
        }
        text += &output::hang("  ", &evidence(conclusion).join(", "));
        text.push('\n');
    }
    text
}

/// Returns each piece of evidence of a conclusion with its mark, and a star if it is reproduced in any case.
pub(super) fn evidence(conclusion: &Conclusion) -> Vec<String> {
    let one = |result: &EvidenceResult| {
        let star = if result.given { "*" } else { "" };
        format!("{} {}{star}", result.verdict.mark(), result.evidence.describe())
    };
    conclusion.evidence.iter().map(one).collect()
}

/// Returns the counts of verdicts: a row for each paper, then one for each of its experiments.
fn matrix(report: &Report) -> String {
    let half = ["cells", "✓", "≈", "✗", "claims"];
    let headings = [&["experiment"], &half[..], &["│"], &half, &["runs"]].concat();
    let mut table = Table::new(headings, 1);
    let mut row = |name: String, counts: &Counts| {
        let Counts { verdicts, runs, .. } = counts;
        let half = |counts: &VerdictCounts, held: usize, claims: usize| {
            let VerdictCounts { cells, reproduced, direction, not, .. } = counts;
            let claims = if claims > 0 { format!("{held}/{claims}") } else { String::new() };
            [cells, reproduced, direction, not].map(usize::to_string).into_iter().chain([claims])
        };
        let bar = || ["│".to_owned()];
        let all = half(&verdicts.all, verdicts.claims_held, verdicts.claims);
        let without_null =
            half(&verdicts.without_null, verdicts.claims_held_without_null, verdicts.claims_without_null);
        let runs = [runs.to_string()];
        table.row([name].into_iter().chain(all).chain(bar()).chain(without_null).chain(runs).collect());
    };
    let papers = papers(&report.experiments);
    for paper in &papers {
        row(paper.paper.clone(), &paper.counts);
        for experiment in &paper.experiments {
            row(format!("  {}", experiment.id), &experiment.counts);
        }
    }
    if papers.len() > 1 {
        row("all".to_owned(), &Counts::of(&report.experiments));
    }
    table.render()
        + "\n"
        + &line("cells: published values and bounds; ✓ reproduced, ≈ in direction, ✗ neither; claims: held/all")
        + &line("second half: without the cells that the null sender reproduces too")
        + "\n"
}

/// Lists the constants that the experiments assume, each once.
fn describe_assumed(experiments: &[ExperimentReport]) -> String {
    let mut list: Vec<String> = Vec::new();
    for constant in experiments.iter().flat_map(|e| &e.assumed) {
        let only = constant.only.as_ref().map_or(String::new(), |only| format!(" ({only})"));
        let line = format!("{} = {}{only}", constant.key, constant.value);
        if !list.contains(&line) {
            list.push(line);
        }
    }
    match list.is_empty() {
        true => String::new(),
        false => {
            line(&format!("assumed, because no source gives it (--sensitivity shows the effect): {}", list.join(", ")))
        }
    }
}

fn describe_experiment(experiment: &ExperimentReport) -> String {
    let under = experiment.under.as_ref().map_or(String::new(), |name| format!("  under {name}"));
    let heading = format!("{}  {}{under}", output::bold(&experiment.id), experiment.title);
    let mut text = format!("{}\n", line(&heading).trim_start());
    let filters = experiment.cells.iter().any(|cell| cell.left_out.is_some());
    let (published, claims): (Vec<&Cell>, Vec<&Cell>) = experiment.cells.iter().partition(|c| c.published.is_some());
    for (cells, what, allowed) in [(published, "value", "published ± tolerance"), (claims, "claim", "allowed")] {
        if cells.is_empty() {
            continue;
        }
        let mut headings = vec![what, allowed, "measured", "null", "verdict"];
        if filters {
            headings.insert(3, "included");
        }
        let mut table = Table::new(headings, 1).with_text_last();
        for cell in cells {
            let claim = cell.claim.as_ref().filter(|_| cell.published.is_none());
            let mut row = vec![claim.map_or(place_text(cell), |claim| format!("{claim}: {}", place_text(cell)))];
            row.extend([cell_text().allowed(cell), cell_text().measured(cell)]);
            row.extend(filters.then(|| runs(cell)));
            row.extend([cell_text().null(cell), verdict_text(cell)]);
            table.row(row);
        }
        text += &table.render();
        text.push('\n');
    }
    text += &notes(experiment, "");
    if experiment.cells.iter().any(|c| c.note.is_some()) {
        text.push('\n');
    }
    text
}

fn line(text: &str) -> String {
    output::wrap(text) + "\n"
}

fn verdict_text(cell: &Cell) -> String {
    let text = cell_verdict(cell);
    match (cell.verdict, cell.judgement()) {
        (CellVerdict::Direction, _) => output::middling(&text),
        (_, None) => text,
        (_, Some(judgement)) => output::in_colour_of(judgement.verdict, text),
    }
}

fn describe_summary(verdicts: &VerdictSummary) -> String {
    let mut text = line(&format!("published values {}", verdict_counts_text(&verdicts.published)));
    if verdicts.claims > 0 {
        let (held, claims) = (verdicts.claims_held_without_null, verdicts.claims_without_null);
        text += &line(&format!(
            "claims {}: {} hold; {claims} of them are evidence, and {held} of these hold",
            verdicts.claims, verdicts.claims_held
        ));
    }
    let VerdictCounts { cells, reproduced, .. } = verdicts.published_without_null;
    let part = match cells {
        0 => String::new(),
        _ => format!(" ({:.0} %)", reproduced as f64 / cells as f64 * 100.0),
    };
    text + &line(&format!(
        "of the {cells} published values that the null sender does not reproduce, {reproduced}{part} are reproduced"
    ))
}

pub(super) fn describe_sensitivity(report: &SensitivityReport) -> String {
    if report.constants.is_empty() {
        return "  no constants to vary: these scenarios have no constants.toml, or it sets none of their keys"
            .to_owned();
    }
    let mut table = Table::new(["constant", "key", "assumed", "instead", "cells", "change verdict"], 2);
    let ends = || report.constants.iter().flat_map(|c| c.ends.iter().map(move |e| (c, e)));
    for (constant, end) in ends() {
        table.row(vec![
            format!("{}/{}", constant.paper, constant.id),
            constant.key.clone(),
            constant.value.clone(),
            end.value.clone(),
            end.cells.to_string(),
            end.changed.to_string(),
        ]);
    }
    let mut text = table.render() + "\n";
    for (constant, end) in ends().filter(|(_, e)| e.changed > 0) {
        text += &format!("  {} = {} instead of {}\n{}\n", constant.key, end.value, constant.value, flips(end));
    }
    let s = &report.summary;
    text + &format!(
        "  {} of {} constants change a verdict; {} of {} cells depend on one\n",
        s.constants_that_matter, s.constants, s.cells_that_change, s.cells
    )
}

fn flips(end: &ConstantEnd) -> String {
    let headings = ["experiment", "metric", "case", "flow", "window", "measured", "then", "from", "to"];
    let mut table = Table::new(headings, 5).with_text_last();
    for flip in &end.changes {
        let value = |v: Option<f64>| value_text(v, kind_of(&flip.metric));
        table.row(vec![
            flip.experiment.clone(),
            flip.claim.as_ref().map_or(flip.metric.clone(), |claim| format!("{} ({claim})", flip.metric)),
            flip.case.to_string(),
            flip.flow.clone().unwrap_or_default(),
            format!("{} to {} s", flip.window_s.0, flip.window_s.1),
            value(flip.measured),
            value(flip.measured_then),
            flip.from.name().to_owned(),
            flip.to.name().to_owned(),
        ]);
    }
    table.render()
}
