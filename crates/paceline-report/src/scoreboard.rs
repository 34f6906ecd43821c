//! One HTML file of a scoreboard: a square for each cell, then every experiment's table. It has no script, loads nothing, and
//! says what `scoreboard.json` says and nothing else.

use crate::cells;
use crate::error::ReportError;
use crate::page::write_page;
use askama::Template;
use paceline_lab::reproduce::{
    Assumed, Cell, Counts, ExperimentReport, PaperCounts, SCOREBOARD_FILE, Scoreboard, Verdict, papers,
};
use std::path::Path;

/// Name of the page in its folder, unless another is asked for.
pub const SCOREBOARD_PAGE: &str = "scoreboard.html";

/// Reads the scoreboard in a folder and writes its page.
///
/// # Errors
/// There is none in the folder, or it is damaged, or the page cannot be written.
pub fn write(dir: &Path, to: &Path) -> Result<(), ReportError> {
    write_page(&render(&Scoreboard::read(&dir.join(SCOREBOARD_FILE))?)?, to)
}

/// The page of a scoreboard.
///
/// # Errors
/// The page's template fails, which is a defect of this crate.
pub fn render(board: &Scoreboard) -> Result<String, ReportError> {
    let experiments = &board.report.experiments;
    let papers: Vec<PaperView<'_>> =
        papers(experiments).iter().map(|paper| PaperView::of(paper, experiments)).collect();
    let page = Page {
        title: papers.iter().map(|paper| paper.paper.as_str()).collect::<Vec<_>>().join(", "),
        version: &board.version,
        counts: Counts::of(experiments),
        papers,
        style: include_str!("page/page.css"),
        own_style: include_str!("page/scoreboard.css"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "scoreboard.html")]
struct Page<'a> {
    title: String,
    version: &'a str,
    counts: Counts,
    papers: Vec<PaperView<'a>>,
    style: &'static str,
    own_style: &'static str,
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
    /// In a world in real time: a row of all that the experiment was run under; nothing where an earlier view has it.
    rows: Vec<RowView<'a>>,
}

/// A cell of the simulator and of each that it stands beside.
struct RowView<'a> {
    first: CellView<'a>,
    simulated: String,
    /// The verdict there.
    verdict: &'static str,
    columns: Vec<CellView<'a>>,
}

struct CellView<'a> {
    cell: &'a Cell,
    /// Where its row is.
    anchor: String,
    /// Its verdict as one character, so that colour is not all that tells them apart.
    sign: char,
    what: String,
    case: String,
    window: String,
    published: String,
    tolerance: String,
    measured: String,
    runs: String,
    null: String,
    /// The note; every second part is a command or a setting.
    note: Vec<String>,
}

struct AssumedView<'a> {
    constant: &'a Assumed,
    /// The experiments that assume it; empty: all of the paper that assume anything.
    only: String,
}

impl<'a> PaperView<'a> {
    fn of(paper: &PaperCounts, experiments: &'a [ExperimentReport]) -> Self {
        let own: Vec<&ExperimentReport> = experiments.iter().filter(|report| report.paper() == paper.paper).collect();
        Self {
            paper: paper.paper.clone(),
            counts: paper.counts,
            assumed: assumed(&own),
            experiments: own
                .iter()
                .enumerate()
                .map(|(index, report)| ExperimentView::of(report, index, &own))
                .collect(),
        }
    }
}

/// Every constant that any of them assumes, once for each value that it has.
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
    let told = |(constant, users): (&'a Assumed, Vec<&str>)| {
        let only = if users.len() == assuming { String::new() } else { users.join(", ") };
        AssumedView { constant, only }
    };
    all.into_iter().map(told).collect()
}

impl<'a> ExperimentView<'a> {
    /// Of the report at `index` among those of its paper.
    fn of(report: &'a ExperimentReport, index: usize, all: &[&'a ExperimentReport]) -> Self {
        let same: Vec<usize> = (0..all.len()).filter(|other| all[*other].id == report.id).collect();
        let anchor = |place: usize| format!("{}/{}", report.id, place + 1);
        let cells = report.cells.iter().enumerate();
        let row = |(place, cell): (usize, &'a Cell)| {
            let other = cell.beside.as_ref();
            RowView {
                first: CellView::of(cell, anchor(place)),
                simulated: cells::beside(cell),
                verdict: other.map_or("", |other| other.verdict.name()),
                columns: same.iter().map(|other| CellView::of(&all[*other].cells[place], anchor(place))).collect(),
            }
        };
        let is_first = report.under.is_some() && same.first() == Some(&index);
        Self {
            report,
            counts: Counts::of([report]),
            rows: if is_first { report.cells.iter().enumerate().map(row).collect() } else { Vec::new() },
            cells: cells.map(|(place, cell)| CellView::of(cell, anchor(place))).collect(),
        }
    }

    /// Its name in the matrix.
    fn name(&self) -> String {
        match &self.report.under {
            None => self.report.id.clone(),
            Some(under) => format!("{}: {under}", self.report.id),
        }
    }

    /// What its media flows are under.
    fn under(&self) -> &str {
        self.report.under.as_deref().unwrap_or_default()
    }

    /// The world of its cells, where it is not the simulator.
    fn world(&self) -> &str {
        self.report.cells.first().filter(|_| self.report.under.is_some()).map_or("", |cell| &cell.world)
    }

    /// How many runs the machine disturbed, if it did.
    fn disturbed(&self) -> String {
        match self.report.disturbed {
            0 => String::new(),
            some => format!("; {some} disturbed by the machine"),
        }
    }

    /// How many runs each case has; nothing where none is made.
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
    /// Its classes: the best verdict of its columns, so that a row which any of them reproduces is not open.
    fn classes(&self) -> String {
        let best = self.columns.iter().min_by_key(|column| column.cell.verdict);
        best.map_or(String::new(), CellView::classes)
    }
}

impl<'a> CellView<'a> {
    fn of(cell: &'a Cell, anchor: String) -> Self {
        let [mut what, case, flow, window] = cells::place(cell);
        if !flow.is_empty() {
            what += &format!(" of {flow}");
        }
        Self {
            cell,
            anchor,
            sign: match cell.verdict {
                Verdict::Reproduced => '✓',
                Verdict::Direction => '≈',
                Verdict::Not => '✗',
                Verdict::NotRun => '·',
            },
            what,
            case,
            window,
            published: cells::value(cell.published, cell),
            tolerance: cells::tolerance(cell),
            measured: cells::measured(cell),
            runs: cells::runs(cell),
            null: cells::value(cell.null_sender, cell),
            note: cells::note(cell).unwrap_or_default().split('`').map(str::to_owned).collect(),
        }
    }

    /// Its classes: the verdict, and whether the null sender gives it away.
    fn classes(&self) -> String {
        let given = if self.cell.null_reproduces { " given" } else { "" };
        format!("cell {}{given}", self.verdict())
    }

    /// Its verdict as a class.
    fn verdict(&self) -> String {
        self.cell.verdict.name().replace(' ', "-")
    }

    /// A bound's claim; a value says its claim only where it rests on it.
    fn claim(&self) -> &str {
        self.cell.claim.as_deref().unwrap_or_default()
    }

    /// In a line, for whoever points at its square.
    fn told(&self) -> String {
        let name = if self.cell.published.is_none() { self.claim() } else { &self.what };
        let parts = [name, &self.case, &self.window];
        let told = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let given = if self.cell.null_reproduces { "; the null sender gives it away" } else { "" };
        format!("{told}: {}{given}", self.cell.verdict.name())
    }
}
