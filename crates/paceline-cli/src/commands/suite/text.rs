//! The matrix of a suite as text.

use crate::output;
use crate::table::Table;
use crate::view::View;
use paceline_lab::metrics;
use paceline_lab::report::check_text::BoundText;
use paceline_lab::report::suites::advice;
use paceline_lab::results::{Held, RowKind, SuiteReport, SuiteRow, SuitesReport, repeats_text};
use paceline_lab::suite::Suite;
use paceline_netsim::records::{MetricKind, Summary};
use std::collections::BTreeSet;

/// Bounds that do not hold are listed for at most this many controllers, and this many for each.
const CONTROLLERS_LISTED: usize = 3;
const BOUNDS_LISTED: usize = 20;

/// Describes the results: a matrix of each suite, the bounds that do not hold, and the verdicts that changed. The first `own` rows are of
/// this run, the others of earlier ones.
pub fn describe(suites: &[Suite], report: &SuitesReport, own: usize) -> View {
    let mut view = View::default();
    for (suite, report) in suites.iter().zip(&report.suites) {
        view.extend(of_suite(suite, report, own));
    }
    if report.suites.len() > 1 {
        view.heading("All suites  share of bounds that hold");
        view.gap();
        view.table(all(report));
        let advice = advice::sentences(report);
        if !advice.is_empty() {
            view.gap();
            view.heading("Which controller to choose  utilisation at the 95th percentile of the queuing delay");
            advice.iter().for_each(|sentence| view.line("· ", sentence));
        }
    }
    view
}

fn of_suite(suite: &Suite, report: &SuiteReport, own: usize) -> View {
    let mut view = View::default();
    view.heading(format!("{}  {}", report.id, report.title));
    let count = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let (tests, runs) = (count(report.tests.len() as u64, "test"), runs_text(report));
    view.line("", format!("{tests}, {runs} of each · number of bounds that hold, of all, and mean score"));
    view.gap();
    view.table(matrix(report));
    let (made, earlier) = report.rows.split_at(own.min(report.rows.len()));
    if !earlier.is_empty() {
        made.iter().for_each(|row| view.line("· ", place(report, row)));
    }
    if made.len() <= CONTROLLERS_LISTED {
        made.iter().for_each(|row| failures(report, row, &mut view));
    }
    match &suite.expected {
        None => view.line("· ", "no verdicts are expected yet: --accept writes those of this run"),
        Some(expected) if !expected.is_of(report) => {
            let runs = repeats_text(expected.repeats, expected.sequential);
            view.line("· ", format!("the expected verdicts are of {runs} runs of each test"));
        }
        Some(expected) => {
            let is_new = |row: &&SuiteRow| !expected.fails.contains_key(&row.controller);
            let new: Vec<&str> = made.iter().filter(is_new).map(|row| row.controller.as_str()).collect();
            if !new.is_empty() {
                view.line("· ", format!("no verdicts are expected of {}", new.join(", ")));
            }
            if report.changed.is_empty() && new.len() < made.len() {
                view.line("· ", "every verdict is as expected");
            }
        }
    }
    for changed in &report.changed {
        let now = match changed.verdict {
            None => "is no bound of this suite any more".to_owned(),
            Some(verdict) => output::in_colour_of(verdict, format!("now {verdict}")),
        };
        view.line("", format!("{}: {} {now}", changed.controller, changed.bound));
    }
    if !report.changed.is_empty() {
        let accept = if suite.expected_file.is_some() { "; --accept makes them the expected ones" } else { "" };
        view.line("· ", format!("these verdicts differ from the expected ones{accept}"));
    }
    view.gap();
    view
}

/// Returns the number of runs of each test: `10 runs`, or `3 to 20 runs`.
fn runs_text(report: &SuiteReport) -> String {
    let results = report.rows.iter().flat_map(|row| &row.results);
    let made: BTreeSet<u64> = results.map(|result| result.runs).filter(|runs| *runs > 0).collect();
    match (made.first(), made.last()) {
        (Some(1), Some(1)) => "1 run".to_owned(),
        (Some(least), Some(most)) if least < most => format!("{least} to {most} runs"),
        (Some(all), _) => format!("{all} runs"),
        (None, _) => format!("{} runs", report.repeats_text()),
    }
}

/// Returns the place of a row among those of its kind, by the bounds that hold.
fn place(report: &SuiteReport, row: &SuiteRow) -> String {
    let held = report.held(row);
    let others: Vec<Held> =
        report.rows.iter().filter(|other| other.kind == row.kind).map(|other| report.held(other)).collect();
    let better = others.iter().filter(|other| other.share() > held.share()).count();
    let kind = match row.kind {
        RowKind::Controller => "controllers",
        RowKind::Faulty => "faulty controllers",
        RowKind::Oracle => "oracles",
        RowKind::OtherImplementation => "other implementations",
    };
    format!(
        "{} keeps {} of {} bounds: place {} of {} {kind}",
        row.controller,
        held.held,
        held.all,
        better + 1,
        others.len()
    )
}

/// Returns the table with a row for each controller and a column for each scenario.
fn matrix(report: &SuiteReport) -> Table {
    let mut scenarios: Vec<&str> = report.tests.iter().map(|test| test.scenario.as_str()).collect();
    scenarios.dedup();
    let short = |id: &&str| id.rsplit('/').next().unwrap_or(id).to_owned();
    let headings = HEADINGS.map(str::to_owned).into_iter().chain(scenarios.iter().map(short));
    let mut table = Table::new(headings, 1);
    for row in &report.rows {
        let of = |scenario: &&str| {
            let tests = report.tests.iter().zip(&row.results).filter(|(test, _)| test.scenario == **scenario);
            held_text(tests.map(|(test, result)| test.held(result)).sum())
        };
        let cells = [row.controller.clone(), held_text(report.held(row)), score_text(report.scores(row))];
        table.row(cells.into_iter().chain(scenarios.iter().map(of)).collect());
    }
    table
}

/// The first columns of the tables: bounds that hold, and the mean score, over all tests.
const HEADINGS: [&str; 3] = ["controller", "all", "score"];

/// Returns the mean of the scores of tests.
fn score_text(scores: impl Iterator<Item = f64>) -> String {
    let scores: Vec<f64> = scores.collect();
    Summary::from_values(&scores).map_or("–".to_owned(), |scores| MetricKind::Points.digits(scores.mean))
}

fn held_text(held: Held) -> String {
    let text = format!("{}/{}", held.held, held.all);
    match held.share() {
        None => "–".to_owned(),
        Some(_) if held.is_all() => output::good(&text),
        Some(_) => text,
    }
}

/// Adds a line for each bound that does not hold under a controller.
fn failures(report: &SuiteReport, row: &SuiteRow, view: &mut View) {
    let failed = report.tests.iter().zip(&row.results).flat_map(|(test, result)| {
        let failed = test.bounds.iter().zip(&result.bounds).filter(|(_, result)| !result.pass);
        failed.map(move |(bound, result)| (test, bound, result))
    });
    let failed: Vec<_> = failed.collect();
    let format = BoundText::new(metrics::catalogue());
    for (test, bound, result) in failed.iter().take(BOUNDS_LISTED) {
        let line = output::check_line(&format.line(&test.name(), bound, result));
        view.line("", format!("{}  {line}", row.controller));
    }
    if failed.len() > BOUNDS_LISTED {
        view.line(
            "",
            format!("… and {} more of {}; --json has them all", failed.len() - BOUNDS_LISTED, row.controller),
        );
    }
}

/// Returns the table with a row for each controller and a column for each suite.
fn all(report: &SuitesReport) -> Table {
    let names = report.suites.iter().map(|suite| suite.id.clone());
    let mut table = Table::new(HEADINGS.map(str::to_owned).into_iter().chain(names), 1);
    for (n, row) in report.suites[0].rows.iter().enumerate() {
        let held: Vec<Held> = report.suites.iter().map(|suite| suite.held(&suite.rows[n])).collect();
        let share = |held: Held| held.share().map_or("–".to_owned(), |share| MetricKind::Share.show(share));
        let scores = report.suites.iter().flat_map(|suite| suite.scores(&suite.rows[n]));
        let cells = [row.controller.clone(), share(held.iter().copied().sum()), score_text(scores)];
        table.row(cells.into_iter().chain(held.iter().map(|held| share(*held))).collect());
    }
    table
}
