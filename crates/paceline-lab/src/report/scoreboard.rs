// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scoreboard page: one HTML file with a square per cell and a table per experiment. It contains only data of
//! `scoreboard.json`, has no script and loads nothing.

use crate::report::cells::{self, CellText};
use crate::report::check_text::cell_verdict;
use crate::report::error::ReportError;
use crate::report::page::write_page;
use crate::report::policy::policy;
use crate::results::{Assumed, Cell, Counts, ExperimentReport, PaperCounts, SCOREBOARD_FILE, Scoreboard, papers};
use askama::Template;
use paceline_netsim::records::MetricCatalogue;
use std::path::Path;

pub const SCOREBOARD_PAGE: &str = "scoreboard.html";

pub fn write(dir: &Path, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&render(&Scoreboard::read(&dir.join(SCOREBOARD_FILE))?, metrics)?, to)
}

/// Returns the page of a scoreboard.
pub fn render(board: &Scoreboard, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let experiments = &board.report.experiments;
    let papers: Vec<PaperView<'_>> =
        papers(experiments).iter().map(|paper| PaperView::of(paper, experiments, CellText::new(metrics))).collect();
    let page = Page {
        title: papers.iter().map(|paper| paper.paper.as_str()).collect::<Vec<_>>().join(", "),
        version: &board.version,
        counts: Counts::of(experiments),
        papers,
        policy: policy(&[], &[crate::report::page::STYLE, OWN_STYLE]),
    };
    Ok(page.render()?)
}

const OWN_STYLE: &str = include_str!("page/scoreboard.css");

#[derive(Template)]
#[template(path = "scoreboard.html")]
struct Page<'a> {
    title: String,
    version: &'a str,
    counts: Counts,
    papers: Vec<PaperView<'a>>,
    policy: String,
}

struct PaperView<'a> {
    paper: String,
    counts: Counts,
    experiments: Vec<ExperimentView<'a>>,
    assumed: Vec<AssumedView<'a>>,
}

struct ExperimentView<'a> {
    report: &'a ExperimentReport,
    counts: Counts,
    cells: Vec<CellView<'a>>,
    /// Rows of a real-time experiment with a column per controller; empty if an earlier view has them.
    rows: Vec<RowView<'a>>,
}

/// A cell in the simulator and under each real-time controller.
struct RowView<'a> {
    first: CellView<'a>,
    simulated: String,
    /// The verdict in the simulator.
    verdict: &'static str,
    columns: Vec<CellView<'a>>,
}

struct CellView<'a> {
    cell: &'a Cell,
    anchor: String,
    /// The verdict as a character, so that verdicts differ not only by colour.
    sign: char,
    what: String,
    case: String,
    window: String,
    published: String,
    tolerance: String,
    measured: String,
    runs: String,
    null: String,
    /// The note; every second part is a command or an override.
    note: Vec<String>,
}

struct AssumedView<'a> {
    constant: &'a Assumed,
    /// The experiments that assume it; empty if all experiments of the paper with assumptions do.
    only: String,
}

impl<'a> PaperView<'a> {
    fn of(paper: &PaperCounts, experiments: &'a [ExperimentReport], text: CellText) -> Self {
        let own: Vec<&ExperimentReport> = experiments.iter().filter(|report| report.paper() == paper.paper).collect();
        Self {
            paper: paper.paper.clone(),
            counts: paper.counts,
            assumed: assumed(&own),
            experiments: own
                .iter()
                .enumerate()
                .map(|(index, report)| ExperimentView::of(report, index, &own, text))
                .collect(),
        }
    }
}

/// Returns the assumed constants without repetitions of key and value.
fn assumed<'a>(experiments: &[&'a ExperimentReport]) -> Vec<AssumedView<'a>> {
    let mut all: Vec<(&Assumed, Vec<&str>)> = Vec::new();
    for report in experiments {
        for constant in &report.assumed {
            match all.iter_mut().find(|(other, _)| *other == constant) {
                Some((_, users)) => users.push(&report.id),
                None => all.push((constant, vec![&report.id])),
            }
        }
    }
    let assuming = experiments.iter().filter(|report| !report.assumed.is_empty()).count();
    let view = |(constant, users): (&'a Assumed, Vec<&str>)| {
        let only = if users.len() == assuming { String::new() } else { users.join(", ") };
        AssumedView { constant, only }
    };
    all.into_iter().map(view).collect()
}

impl<'a> ExperimentView<'a> {
    fn of(report: &'a ExperimentReport, index: usize, all: &[&'a ExperimentReport], text: CellText) -> Self {
        let same: Vec<usize> = (0..all.len()).filter(|other| all[*other].id == report.id).collect();
        let anchor = |place: usize| format!("{}/{}", report.id, place + 1);
        let cells = report.cells.iter().enumerate();
        let row = |(place, cell): (usize, &'a Cell)| {
            let other = cell.beside.as_ref();
            RowView {
                first: CellView::of(cell, anchor(place), text),
                simulated: text.beside(cell),
                verdict: other.map_or("", |other| other.verdict.name()),
                columns: same
                    .iter()
                    .map(|other| CellView::of(&all[*other].cells[place], anchor(place), text))
                    .collect(),
            }
        };
        let is_first = report.under.is_some() && same.first() == Some(&index);
        Self {
            report,
            counts: Counts::of([report]),
            rows: if is_first { report.cells.iter().enumerate().map(row).collect() } else { Vec::new() },
            cells: cells.map(|(place, cell)| CellView::of(cell, anchor(place), text)).collect(),
        }
    }

    fn name(&self) -> String {
        match &self.report.under {
            None => self.report.id.clone(),
            Some(under) => format!("{}: {under}", self.report.id),
        }
    }

    fn under(&self) -> &str {
        self.report.under.as_deref().unwrap_or_default()
    }

    fn world(&self) -> &str {
        self.report.cells.first().filter(|_| self.report.under.is_some()).map_or("", |cell| &cell.world)
    }

    fn disturbed(&self) -> String {
        match self.report.disturbed {
            0 => String::new(),
            some => format!("; {some} disturbed by the machine"),
        }
    }

    fn runs(&self) -> String {
        let each = self.report.runs.iter().map(|case| case.n);
        match (each.clone().min().unwrap_or(0), each.max().unwrap_or(0)) {
            (_, 0) => "no run: a formula".to_owned(),
            (least, most) if least == most => format!("{most}"),
            (least, most) => format!("{least} to {most}"),
        }
    }
}

impl RowView<'_> {
    /// Returns the CSS classes of the best verdict of its columns.
    fn classes(&self) -> String {
        let best = self.columns.iter().min_by_key(|column| column.cell.verdict);
        best.map_or(String::new(), CellView::classes)
    }
}

impl<'a> CellView<'a> {
    fn of(cell: &'a Cell, anchor: String, text: CellText) -> Self {
        let [mut what, case, flow, window] = cells::place(cell);
        if !flow.is_empty() {
            what += &format!(" of {flow}");
        }
        Self {
            cell,
            anchor,
            sign: cell.verdict.mark(),
            what,
            case,
            window,
            published: text.value(cell.published, cell),
            tolerance: text.tolerance(cell),
            measured: text.measured(cell),
            runs: cells::runs(cell),
            null: text.value(cell.null_sender, cell),
            note: text.note(cell).unwrap_or_default().split('`').map(str::to_owned).collect(),
        }
    }

    /// Returns the CSS classes of the verdict and of the null sender.
    fn classes(&self) -> String {
        let given = if self.cell.is_evidence() { "" } else { " given" };
        format!("cell {}{given}", self.verdict())
    }

    fn verdict(&self) -> String {
        self.cell.verdict.name().replace(' ', "-")
    }

    fn claim(&self) -> &str {
        self.cell.claim.as_deref().unwrap_or_default()
    }

    /// Returns a one-line summary, the tooltip of its square.
    fn summary(&self) -> String {
        let name = if self.cell.published.is_none() { self.claim() } else { &self.what };
        let parts = [name, &self.case, &self.window];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let given = match &self.cell.fitted {
            _ if self.cell.null_reproduces => "; also reproduced by the null sender",
            Some(_) => "; a constant was fitted to it",
            None => "",
        };
        format!("{text}: {}{given}", cell_verdict(self.cell))
    }
}
