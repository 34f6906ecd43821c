//! The scoreboard that `reproduce --out DIR` writes: JSON for `paceline diff`, a table for review, a page to look at. Nothing
//! in it depends on when or where it was made.

use miette::{IntoDiagnostic, Result};
use paceline_lab::reproduce::{Cell, Report, SCOREBOARD_FILE, Scoreboard};
use paceline_lab::store::write_whole;
use paceline_report::cells::{measured, null, place, runs, value};
use paceline_report::scoreboard::{self, SCOREBOARD_PAGE};
use std::path::Path;

/// Writes its files. The page is made of the JSON that was written.
pub fn write(folder: &Path, report: &Report) -> Result<()> {
    let board = Scoreboard { version: env!("CARGO_PKG_VERSION").to_owned(), report: report.clone() };
    write_whole(folder, SCOREBOARD_FILE, board.text().as_bytes()).into_diagnostic()?;
    write_whole(folder, "scoreboard.md", table(report).as_bytes()).into_diagnostic()?;
    let page = folder.join(SCOREBOARD_PAGE);
    scoreboard::write(folder, &page).into_diagnostic()?;
    eprintln!("the scoreboard is in {}; to look at: {}", folder.display(), page.display());
    Ok(())
}

/// One row a cell, in Markdown. Columns are not padded: a row that did not move is the same text.
fn table(report: &Report) -> String {
    let s = &report.summary;
    let mut text = format!(
        "# Scoreboard\n\nPublished values: {} of {} reproduced, {} in direction, {} not. Claims: {} of {} hold. Of the {} \
         values and {} claims that the\nnull sender (\\*: reproduces or keeps it too) does not give away: {} and {}.\n\n",
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
    text += &row(&[
        "experiment",
        "case",
        "metric",
        "flow",
        "window",
        "published or claim",
        "measured",
        "n",
        "null",
        "verdict",
        "note",
    ]
    .map(str::to_owned));
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
                measured(cell),
                runs(cell),
                null(cell).trim_end().replace('*', "\\*"),
                cell.verdict.name().to_owned(),
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

/// What was published, or the claim and its bounds.
fn wanted(cell: &Cell) -> String {
    match (cell.bounds, &cell.claim) {
        (Some((from, to)), Some(claim)) => format!("{claim}: {} to {}", value(Some(from), cell), value(Some(to), cell)),
        _ => format!("{} ± {}", value(cell.published, cell), value(cell.tolerance, cell).trim_start_matches("× ")),
    }
}

/// The note, with the changes in place of the whole command.
fn note(cell: &Cell) -> String {
    let note = cell.note.clone().unwrap_or_default();
    match (&cell.moved, note.split_once(" by `paceline run")) {
        (Some(moved), Some((told, _))) => format!("{told} by `{}`", moved.by.join("`, `")),
        _ => note,
    }
}
