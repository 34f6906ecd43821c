// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scoreboard of `reproduce --out DIR`: JSON for `paceline diff`, a Markdown table for review, and an HTML page. It does
//! not depend on time, machine or path.

use super::text::{cell_text, evidence};
use miette::{IntoDiagnostic, Result};
use paceline_lab::metrics;
use paceline_lab::report::cells::{place, runs};
use paceline_lab::report::check_text::cell_verdict;
use paceline_lab::report::scoreboard::{self, SCOREBOARD_PAGE};
use paceline_lab::results::{Cell, Report, SCOREBOARD_FILE, Scoreboard, write_whole};
use std::path::Path;

/// Writes the files. The page is made from the JSON file.
pub fn write(folder: &Path, report: &Report) -> Result<()> {
    let board = Scoreboard { version: env!("CARGO_PKG_VERSION").to_owned(), report: report.clone() };
    write_whole(folder, SCOREBOARD_FILE, board.text().as_bytes()).into_diagnostic()?;
    write_whole(folder, "scoreboard.md", table(report).as_bytes()).into_diagnostic()?;
    let page = folder.join(SCOREBOARD_PAGE);
    scoreboard::write(folder, &page, metrics::catalogue()).into_diagnostic()?;
    eprintln!("the scoreboard is in {}; open {}", folder.display(), page.display());
    Ok(())
}

/// Returns a Markdown table with a row for each cell. Columns are not padded, so unchanged rows are the same text.
fn table(report: &Report) -> String {
    let s = &report.summary;
    let mut text = format!(
        "# Scoreboard\n\nPublished values: {} of {} reproduced, {} in direction, {} not. Claims: {} of {} hold. The null sender does \
         not reproduce\n{} of the values and {} of the claims; of these, {} values are reproduced and {} claims hold. \\*: the \
         null sender also reproduces the\ncell.\n\n",
        s.published.reproduced,
        s.published.cells,
        s.published.direction,
        s.published.not,
        s.claims_held,
        s.claims,
        s.published_without_null.cells,
        s.claims_without_null,
        s.published_without_null.reproduced,
        s.claims_held_without_null,
    );
    for conclusion in &report.conclusions {
        let conditions = conclusion.conditions.iter().map(|change| format!(" `{change}`")).collect::<String>();
        let (verdict, evidence) = (conclusion.verdict.name(), evidence(conclusion).join(", ").replace('*', "\\*"));
        text += &format!("* {} **{verdict}**{conditions}: {evidence}\n", conclusion.text);
    }
    if !report.conclusions.is_empty() {
        text.push('\n');
    }
    text +=
        "| experiment | case | metric | flow | window | published or claim | measured | n | null | verdict | note |\n";
    text += "|---|---|---|---|---|---|---:|---:|---:|---|---|\n";
    for experiment in &report.experiments {
        for cell in &experiment.cells {
            let [metric, case, flow, window] = place(cell);
            text += &row(&[
                experiment.id.clone(),
                case,
                metric,
                flow,
                window,
                wanted(cell),
                cell_text().measured(cell),
                runs(cell),
                cell_text().null(cell).trim_end().replace('*', "\\*"),
                cell_verdict(cell),
                note(cell),
            ]);
        }
    }
    text
}

fn row(cells: &[String]) -> String {
    let escaped = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", escaped.collect::<Vec<_>>().join(" | "))
}

/// Returns the published value, or the claim and its bounds.
fn wanted(cell: &Cell) -> String {
    match (cell.published, &cell.claim) {
        (None, Some(claim)) => format!("{claim}: {}", cell_text().allowed(cell)),
        _ => cell_text().allowed(cell),
    }
}

/// Returns the note, with the changes instead of the whole command.
fn note(cell: &Cell) -> String {
    let note = cell.note.clone().unwrap_or_default();
    match (&cell.moved, note.split_once(" by `paceline run")) {
        (Some(moved), Some((text, _))) => format!("{text} by `{}`", moved.by.join("`, `")),
        _ => note,
    }
}
