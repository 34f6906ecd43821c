// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of suites: which controller to choose, scores of the possible by family of paths, utilisation against delay, and the bounds
//! that do not hold under each controller. It contains only data of `suites.json`, has no script and loads nothing.

pub mod advice;
pub mod ci;
pub mod markdown;
pub mod pareto;
mod plot;
mod scores;

use crate::report::check_text::BoundText;
use crate::report::error::ReportError;
use crate::report::page::{STYLE, write_page};
use crate::report::policy::policy;
use crate::report::shell_quoted;
use crate::results::{
    Judgement, Passed, Possible, Rankings, RowKind, SUITES_FILE, SuiteReport, SuiteRow, SuiteTest, SuitesReport,
    TestResult,
};
use askama::Template;
use paceline_netsim::records::MetricCatalogue;
use std::path::Path;

pub const SUITES_PAGE: &str = "suites.html";

const OWN_STYLE: &str = concat!(
    include_str!("../page/scoreboard.css"),
    include_str!("../page/dot_plot.css"),
    include_str!("../page/suites.css")
);

pub fn write(dir: &Path, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&render(&SuitesReport::read(&dir.join(SUITES_FILE))?, dir, metrics)?, to)
}

/// Returns the page of suites. Plots of runs are linked if they are in `dir`.
pub fn render(report: &SuitesReport, dir: &Path, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let (text, board) = (BoundText::new(metrics), Board::of(report));
    let page = Page {
        title: report.suites.iter().map(|suite| suite.id.as_str()).collect::<Vec<_>>().join(", "),
        board: &board,
        scores: scores::draw(&board),
        advice: advice::sentences(report),
        families: pareto::families(report)
            .into_iter()
            .filter(|(_, points)| !points.is_empty())
            .map(|(name, points)| (name, plot::draw(&points)))
            .collect(),
        suites: report.suites.iter().map(|suite| SuiteView::of(report, suite, dir, text)).collect(),
        policy: policy(&[], &[STYLE, OWN_STYLE]),
    };
    Ok(page.render()?)
}

/// Returns the path of the plots of a test under a controller, relative to the folder of the results.
pub fn plots_path(suite: &str, test: &SuiteTest, controller: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' };
    let name: String = format!("{} {controller}", test.name()).chars().map(plain).collect();
    format!("plots/{suite}/{name}")
}

#[derive(Template)]
#[template(path = "suites.html")]
struct Page<'a> {
    title: String,
    board: &'a Board,
    scores: String,
    advice: Vec<String>,
    families: Vec<(String, String)>,
    suites: Vec<SuiteView<'a>>,
    policy: String,
}

/// The scores of the possible: a row for each controller, a column for each family.
struct Board {
    /// Each family, and the first of its suites.
    families: Vec<(String, String)>,
    groups: Vec<Group>,
}

/// The rows of one kind, the best first.
struct Group {
    title: &'static str,
    rows: Vec<BoardRow>,
}

struct BoardRow {
    controller: String,
    kind: RowKind,
    /// Its place with a sign if it is in the tie group of the first; empty for what is only scale.
    place: String,
    all: Points,
    families: Vec<Points>,
    others_keep: String,
    passed: Passed,
}

struct Points(Option<Possible>);

impl Points {
    /// Returns the points without decimals; a dash without a score.
    fn short(&self) -> String {
        self.0.map_or("–".to_owned(), |possible| possible.short())
    }

    fn text(&self) -> String {
        self.0.map_or("–".to_owned(), |possible| possible.to_string())
    }

    /// Returns how many tests it is of.
    fn title(&self) -> String {
        self.0.map_or("no test counts".to_owned(), |possible| format!("{possible}, {} tests", possible.tests))
    }

    fn class(&self) -> String {
        self.0.map_or("none".to_owned(), |possible| class(possible.points / 100.0))
    }
}

fn class(share: f64) -> String {
    format!("s{}", (share * 10.0).floor().clamp(0.0, 10.0))
}

/// Returns what other flows keep, in per cent.
pub fn others_text(others_keep: Option<f64>) -> String {
    others_keep.map_or("–".to_owned(), |part| format!("{:.0} %", 100.0 * part))
}

fn passed_class(passed: &Passed) -> String {
    passed.share().map_or("none".to_owned(), class)
}

impl Board {
    fn of(report: &SuitesReport) -> Self {
        let kinds = [
            (RowKind::Controller, "Controllers"),
            (RowKind::OtherImplementation, "Other implementations: controllers of other libraries"),
            (RowKind::Oracle, "Oracles: senders that know the path"),
            (RowKind::Faulty, "Faulty controllers: each has one fault, which the suites have to find"),
        ];
        let rankings = Rankings::of(report);
        let first = |family: &String| report.suites.iter().find(|suite| suite.family == *family);
        let family =
            |(name, _): &(String, _)| (name.clone(), first(name).map_or(String::new(), |suite| suite.id.clone()));
        let families: Vec<(String, String)> = rankings.families.iter().map(family).collect();
        let row = |name: &str, kind: RowKind| {
            let ranked = rankings.all.iter().find(|ranked| ranked.controller == name);
            let has_ties = rankings.all.iter().filter(|ranked| ranked.tied).count() > 1;
            let place = |place: usize, tied: bool| format!("{place}{}", if tied && has_ties { " =" } else { "" });
            let placed = ranked.and_then(|ranked| Some(place(ranked.place?, ranked.tied)));
            BoardRow {
                controller: name.to_owned(),
                kind,
                place: placed.unwrap_or_default(),
                all: Points(ranked.map(|ranked| ranked.possible)),
                others_keep: others_text(ranked.and_then(|ranked| ranked.others_keep)),
                families: families.iter().map(|(family, _)| Points(rankings.possible(Some(family), name))).collect(),
                passed: report.passed(name),
            }
        };
        // Those with a score in its order, then those without one.
        let mut names: Vec<(&str, RowKind)> =
            rankings.all.iter().map(|one| (one.controller.as_str(), one.kind)).collect();
        for row in report.suites.iter().flat_map(|suite| &suite.rows) {
            if names.iter().all(|(name, _)| *name != row.controller) {
                names.push((&row.controller, row.kind));
            }
        }
        let group = |(kind, title): (RowKind, &'static str)| {
            let own = names.iter().filter(|(_, of)| *of == kind);
            Group { title, rows: own.map(|(name, kind)| row(name, *kind)).collect() }
        };
        Self { groups: kinds.into_iter().map(group).filter(|group: &Group| !group.rows.is_empty()).collect(), families }
    }
}

struct SuiteView<'a> {
    report: &'a SuiteReport,
    /// Each scenario: its id and the last part of it.
    scenarios: Vec<(&'a str, &'a str)>,
    rows: Vec<RowView<'a>>,
    tests: Vec<TestView<'a>>,
}

struct RowView<'a> {
    row: &'a SuiteRow,
    points: Points,
    all: Passed,
    cells: Vec<Passed>,
    failures: Vec<FailureView<'a>>,
}

/// A bound that does not hold under a controller.
struct FailureView<'a> {
    test: String,
    anchor: String,
    bound: &'a str,
    quantity: String,
    measured: String,
    allowed: String,
    judgement: Judgement,
    command: String,
    /// The page with the plots of the run; empty if it was not made.
    plots: String,
}

struct TestView<'a> {
    name: String,
    title: &'a str,
    bounds: Vec<BoundView<'a>>,
}

struct BoundView<'a> {
    anchor: String,
    id: &'a str,
    quantity: String,
    allowed: String,
    why: &'a str,
    /// Controllers under which it holds, of all; and faulty controllers under which it does not.
    passes: Passed,
    found: Passed,
}

impl<'a> SuiteView<'a> {
    fn of(all: &SuitesReport, report: &'a SuiteReport, dir: &Path, text: BoundText) -> Self {
        let ranking = Rankings::over_families(all, |suite| suite.id == report.id);
        let mut scenarios: Vec<(&str, &str)> = Vec::new();
        for test in &report.tests {
            let id = test.scenario.as_str();
            if scenarios.last().is_none_or(|(last, _)| *last != id) {
                scenarios.push((id, id.rsplit('/').next().unwrap_or(id)));
            }
        }
        let row = |row: &'a SuiteRow| {
            let tests = || report.tests.iter().zip(&row.results);
            let cell = |(id, _): &(&str, &str)| {
                tests().filter(|(test, _)| test.scenario == *id).map(|(test, result)| test.passed(result)).sum()
            };
            let ranked = ranking.iter().find(|ranked| ranked.controller == row.controller);
            RowView {
                row,
                points: Points(ranked.map(|ranked| ranked.possible)),
                all: report.passed(row),
                cells: scenarios.iter().map(cell).collect(),
                failures: tests().flat_map(|(test, result)| failures(report, dir, row, test, result, text)).collect(),
            }
        };
        let test = |(n, test): (usize, &'a SuiteTest)| {
            let bound = |(m, bound): (usize, &'a crate::results::SuiteBound)| {
                let count = |kind: RowKind, pass: bool| {
                    let rows = report.rows.iter().filter(|row| row.kind == kind);
                    let made = rows.filter_map(|row| row.results[n].bounds.get(m));
                    made.map(|result| Passed { passed: usize::from(result.pass == pass), made: 1 }).sum()
                };
                BoundView {
                    anchor: anchor(report, test, &bound.id),
                    id: &bound.id,
                    quantity: text.quantity(bound),
                    allowed: text.allowed(bound),
                    why: &bound.why,
                    passes: count(RowKind::Controller, true),
                    found: count(RowKind::Faulty, false),
                }
            };
            TestView {
                name: test.name(),
                title: &test.title,
                bounds: test.bounds.iter().enumerate().map(bound).collect(),
            }
        };
        Self {
            report,
            rows: report.rows.iter().map(row).collect(),
            tests: report.tests.iter().enumerate().map(test).collect(),
            scenarios,
        }
    }
}

fn anchor(report: &SuiteReport, test: &SuiteTest, bound: &str) -> String {
    format!("{}:{}:{bound}", report.id, test.name().replace(' ', "-"))
}

fn failures<'a>(
    report: &'a SuiteReport,
    dir: &Path,
    row: &SuiteRow,
    test: &'a SuiteTest,
    result: &TestResult,
    text: BoundText,
) -> Vec<FailureView<'a>> {
    let case: String =
        test.case.pairs().map(|(k, v)| format!(" --case {}", shell_quoted(&format!("{k}={v}")))).collect();
    let plots = format!("{}/{}", plots_path(&report.id, test, &row.controller), crate::report::page::REPORT_FILE);
    let plots = if dir.join(&plots).is_file() { plots } else { String::new() };
    let failed = test.bounds.iter().zip(&result.bounds).filter(|(_, result)| !result.pass);
    let view = |(bound, result): (&'a crate::results::SuiteBound, &crate::results::BoundResult)| FailureView {
        test: test.name(),
        anchor: anchor(report, test, &bound.id),
        bound: &bound.id,
        quantity: text.quantity(bound),
        measured: text.measured(bound, result),
        allowed: text.allowed(bound),
        judgement: result.judgement,
        command: format!("paceline run {}{case} --controller {} --out plots", shell_quoted(&test.run), row.controller),
        plots: plots.clone(),
    };
    failed.map(view).collect()
}
