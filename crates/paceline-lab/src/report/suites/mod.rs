//! The page of suites: a leaderboard, a plot of utilisation against delay for each family of paths, and the bounds that
//! do not hold under each controller. It contains only data of `suites.json`, has no script and loads nothing.

pub mod advice;
pub mod markdown;
pub mod pareto;
mod plot;

use crate::report::check_text::BoundText;
use crate::report::error::ReportError;
use crate::report::page::{STYLE, write_page};
use crate::report::policy::policy;
use crate::report::shell_quoted;
use crate::results::{
    Held, Judgement, RowKind, SUITES_FILE, SuiteReport, SuiteRow, SuiteTest, SuitesReport, TestResult,
};
use askama::Template;
use paceline_netsim::records::MetricCatalogue;
use std::path::Path;

/// Default name of the page in its folder.
pub const SUITES_PAGE: &str = "suites.html";

const OWN_STYLE: &str = concat!(include_str!("../page/scoreboard.css"), include_str!("../page/suites.css"));

/// Reads the results of suites in a folder and writes their page.
///
/// # Errors
/// The results are missing or damaged, or the page cannot be written.
pub fn write(dir: &Path, to: &Path, metrics: MetricCatalogue) -> Result<(), ReportError> {
    write_page(&render(&SuitesReport::read(&dir.join(SUITES_FILE))?, dir, metrics)?, to)
}

/// Returns the page of suites. Plots of runs are linked if they are in `dir`.
///
/// # Errors
/// The template fails, which is a defect of this crate.
pub fn render(report: &SuitesReport, dir: &Path, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let text = BoundText::new(metrics);
    let page = Page {
        title: report.suites.iter().map(|suite| suite.id.as_str()).collect::<Vec<_>>().join(", "),
        version: env!("CARGO_PKG_VERSION"),
        names: report.suites.iter().map(|suite| suite.id.as_str()).collect(),
        groups: groups(report),
        advice: advice::sentences(report),
        families: pareto::families(report)
            .into_iter()
            .filter(|(_, points)| !points.is_empty())
            .map(|(name, points)| (name, plot::draw(&points)))
            .collect(),
        suites: report.suites.iter().map(|suite| SuiteView::of(suite, dir, text)).collect(),
        policy: policy(&[], &[STYLE, OWN_STYLE]),
        style: STYLE,
        own_style: OWN_STYLE,
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
    version: &'static str,
    names: Vec<&'a str>,
    groups: Vec<Group<'a>>,
    advice: Vec<String>,
    families: Vec<(String, String)>,
    suites: Vec<SuiteView<'a>>,
    policy: String,
    style: &'static str,
    own_style: &'static str,
}

/// The rows of the leaderboard of one kind, best first.
struct Group<'a> {
    title: &'static str,
    rows: Vec<BoardRow<'a>>,
}

struct BoardRow<'a> {
    controller: &'a str,
    all: Share,
    suites: Vec<Share>,
}

/// A share of bounds that hold.
struct Share {
    held: Held,
}

impl Share {
    /// Returns the share in per cent; a dash without bounds.
    fn percent(&self) -> String {
        self.held.share().map_or("–".to_owned(), |share| format!("{:.0}", share * 100.0))
    }

    /// Returns the CSS class of its colour: a tenth of the share.
    fn class(&self) -> String {
        self.held.share().map_or("none".to_owned(), |share| format!("s{}", (share * 10.0).floor()))
    }

    fn text(&self) -> String {
        if self.held.all == 0 { "–".to_owned() } else { format!("{}/{}", self.held.held, self.held.all) }
    }
}

fn groups(report: &SuitesReport) -> Vec<Group<'_>> {
    let kinds = [
        (RowKind::Controller, "Controllers"),
        (RowKind::OtherImplementation, "Other implementations: controllers of other libraries"),
        (RowKind::Oracle, "Oracles: senders that know the path"),
        (RowKind::Faulty, "Faulty controllers: each has one fault, which the suites have to find"),
    ];
    let Some(first) = report.suites.first() else { return Vec::new() };
    let row = |(n, row): (usize, &'_ SuiteRow)| {
        let held: Vec<Held> = report.suites.iter().map(|suite| suite.held(&suite.rows[n])).collect();
        (n, row.kind, held)
    };
    let rows: Vec<(usize, RowKind, Vec<Held>)> = first.rows.iter().enumerate().map(row).collect();
    let group = |(kind, title): (RowKind, &'static str)| {
        let of_kind = rows.iter().filter(|(_, of, _)| *of == kind);
        let mut rows: Vec<BoardRow<'_>> = of_kind
            .map(|(n, _, held)| BoardRow {
                controller: &first.rows[*n].controller,
                all: Share { held: held.iter().copied().sum() },
                suites: held.iter().map(|held| Share { held: *held }).collect(),
            })
            .collect();
        let share = |row: &BoardRow<'_>| row.all.held.share().unwrap_or(0.0);
        rows.sort_by(|a, b| share(b).total_cmp(&share(a)));
        Group { title, rows }
    };
    kinds.into_iter().map(group).filter(|group| !group.rows.is_empty()).collect()
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
    all: Share,
    cells: Vec<Share>,
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
    passes: Held,
    found: Held,
}

impl<'a> SuiteView<'a> {
    fn of(report: &'a SuiteReport, dir: &Path, text: BoundText) -> Self {
        let mut scenarios: Vec<(&str, &str)> = Vec::new();
        for test in &report.tests {
            let id = test.scenario.as_str();
            if scenarios.last().is_none_or(|(last, _)| *last != id) {
                scenarios.push((id, id.rsplit('/').next().unwrap_or(id)));
            }
        }
        let row = |row: &'a SuiteRow| {
            let tests = || report.tests.iter().zip(&row.results);
            let cell = |(id, _): &(&str, &str)| Share {
                held: tests().filter(|(test, _)| test.scenario == *id).map(|(test, result)| test.held(result)).sum(),
            };
            RowView {
                row,
                all: Share { held: report.held(row) },
                cells: scenarios.iter().map(cell).collect(),
                failures: tests().flat_map(|(test, result)| failures(report, dir, row, test, result, text)).collect(),
            }
        };
        let test = |(n, test): (usize, &'a SuiteTest)| {
            let bound = |(m, bound): (usize, &'a crate::results::SuiteBound)| {
                let count = |kind: RowKind, pass: bool| {
                    let rows = report.rows.iter().filter(|row| row.kind == kind);
                    let made = rows.filter_map(|row| row.results[n].bounds.get(m));
                    made.map(|result| Held { held: usize::from(result.pass == pass), all: 1 }).sum()
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
