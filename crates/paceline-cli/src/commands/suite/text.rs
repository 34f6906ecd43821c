// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matrix of a suite as text.

use crate::output;
use crate::table::Table;
use crate::view::View;
use paceline_lab::compare::score_text;
use paceline_lab::metrics;
use paceline_lab::report::check_text::BoundText;
use paceline_lab::report::suites::{advice, others_text};
use paceline_lab::results::{
    Agreement, BoundResult, Passed, Possible, RankedRow, Rankings, SuiteReport, SuiteRow, SuitesReport, TestResult,
    Verdict, repeats_text,
};
use paceline_lab::suite::Suite;
use paceline_netsim::records::MetricKind;
use std::collections::BTreeSet;

/// Bounds that do not hold are listed for one suite and at most this many controllers, and this many for each.
const CONTROLLERS_LISTED: usize = 3;
const BOUNDS_LISTED: usize = 20;

/// Describes the results: a matrix of each suite, the bounds that do not hold, and the verdicts that changed. The first `own` rows are of
/// this run, the others of earlier ones.
pub fn describe(suites: &[Suite], report: &SuitesReport, own: usize) -> View {
    let mut view = View::default();
    for (suite, of) in suites.iter().zip(&report.suites) {
        view.extend(of_suite(suite, report, of, own));
    }
    let rankings = Rankings::of(report);
    if report.suites.len() > 1 && !rankings.all.is_empty() {
        view.heading("All suites  score of the possible, by family");
        view.gap();
        view.table(all(report, &rankings));
        view.gap();
    }
    let advice = advice::sentences(report);
    if !advice.is_empty() {
        view.heading("Which controller to choose");
        advice.iter().for_each(|sentence| view.line("· ", sentence));
    }
    if report.suites.len() > 1 {
        view.line("· ", "which bounds do not hold: run one suite, or look at the page of --out");
    }
    view
}

fn of_suite(suite: &Suite, all: &SuitesReport, report: &SuiteReport, own: usize) -> View {
    let mut view = View::default();
    let ranking = Rankings::over_families(all, |suite| suite.id == report.id);
    view.heading(format!("{}  {}", report.id, report.title));
    let count = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let (tests, runs) = (count(report.tests.len() as u64, "test"), runs_text(report));
    view.line("", format!("{tests}, {runs} of each · tests: those whose bounds all hold"));
    match ranking.is_empty() {
        false => {
            let what = "possible: the score between 0, a constant rate, and 100, the oracle `causal`; ± over tests; then by scenario";
            view.line("", what);
        }
        true if (0..report.tests.len()).any(|test| report.has_scale(test)) => {
            view.line("", "no score of the possible: a constant rate is as good as the oracle within 5 points");
        }
        true => view.line("", "no score of the possible: it needs the controllers faulty-constant and causal, too"),
    }
    view.gap();
    view.table(matrix(all, report, &ranking));
    if let Some(agreement) = &report.agreement {
        view.line("· ", agreement_text(agreement));
    }
    let (made, earlier) = report.rows.split_at(own.min(report.rows.len()));
    if !earlier.is_empty() {
        made.iter().filter_map(|row| place(&ranking, row)).for_each(|place| view.line("· ", place));
    }
    if let [row] = made {
        let lost = [0, 1, 2].map(|cause| report.mean_of(row, |result| Some(result.lost?[cause])));
        if let (Some(score), [Some(rate), Some(delay), Some(freezes)]) =
            (report.mean_of(row, TestResult::mean_score), lost)
        {
            let score = score_text(score, f64::INFINITY, [rate, delay, freezes]);
            view.line("· ", format!("{} has a score of {score}", row.controller));
        }
    }
    if made.len() <= CONTROLLERS_LISTED && all.suites.len() == 1 {
        made.iter().for_each(|row| failures(report, row, &mut view));
    }
    match &suite.expected {
        None => view.line("· ", "no verdicts are expected yet: --accept writes those of this run"),
        // A short suite.
        Some(expected) if expected.fails.is_empty() => {}
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

/// Says whether the simulator and another world put the controllers in the same order.
fn agreement_text(agreement: &Agreement) -> String {
    let Agreement { world, controllers, tests, tau, interval } = agreement;
    let interval = interval.map_or(String::new(), |(low, high)| format!(", 95 % interval {low:.2} to {high:.2}"));
    let each = controllers.iter().map(|(name, [here, there])| format!("{name} {here:.1}, {there:.1}"));
    format!(
        "order of {} controllers in the simulator and in {world}, {tests} tests: Kendall's tau {tau:.2}{interval} \
         (scores: {})",
        controllers.len(),
        each.collect::<Vec<_>>().join("; ")
    )
}

/// Returns the place of a row among the controllers.
fn place(ranking: &[RankedRow], row: &SuiteRow) -> Option<String> {
    let ranked = ranking.iter().find(|ranked| ranked.controller == row.controller)?;
    let places = ranking.iter().filter(|ranked| ranked.place.is_some()).count();
    let (name, possible, place) = (&row.controller, ranked.possible, ranked.place?);
    Some(format!("{name} has {possible} of the possible: place {place} of {places}"))
}

/// Returns the table with a row for each controller, the best first, and a column for each scenario with its score of the possible; without
/// a scale, with its mean score.
fn matrix(all: &SuitesReport, report: &SuiteReport, ranking: &[RankedRow]) -> Table {
    let mut scenarios: Vec<&str> = report.tests.iter().map(|test| test.scenario.as_str()).collect();
    scenarios.dedup();
    let of_scenario =
        |scenario: &&str| Rankings::over_tests(all, |suite, test| suite.id == report.id && test.scenario == **scenario);
    let rankings: Vec<Vec<RankedRow>> = scenarios.iter().map(of_scenario).collect();
    let short = |id: &&str| id.rsplit('/').next().unwrap_or(id).to_owned();
    let possible = (!ranking.is_empty()).then_some("possible");
    let others = |row: &SuiteRow| report.mean_of(row, |result| result.others_keep);
    let has_others = report.rows.iter().any(|row| others(row).is_some()).then_some("others keep");
    let headings = ["controller"].into_iter().chain(possible).chain(["score"]).chain(has_others).chain(["tests"]);
    let headings = headings.map(str::to_owned);
    let mut table = Table::new(headings.chain(scenarios.iter().map(short)), 1);
    let find = |ranking: &[RankedRow], row: &SuiteRow| {
        Some(ranking.iter().find(|ranked| ranked.controller == row.controller)?.possible)
    };
    let place = |row: &&SuiteRow| ranking.iter().position(|ranked| ranked.controller == row.controller);
    let mut rows: Vec<&SuiteRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| place(row).unwrap_or(usize::MAX));
    for row in rows {
        let score = |value: Option<f64>| value.map_or("–".to_owned(), |score| MetricKind::Points.digits(score));
        let of = |(scenario, of): (&&str, &Vec<RankedRow>)| match possible {
            Some(_) => find(of, row).map_or("–".to_owned(), |possible| possible.short()),
            None => {
                let tests = report.tests.iter().zip(&row.results).filter(|(test, _)| test.scenario == **scenario);
                let scores: Option<Vec<f64>> = tests.map(|(_, result)| result.mean_score()).collect();
                score(scores.map(|scores| scores.iter().sum::<f64>() / scores.len() as f64))
            }
        };
        let points = possible.map(|_| possible_text(find(ranking, row)));
        let mean = score(report.mean_of(row, TestResult::mean_score));
        let kept = has_others.map(|_| others_text(others(row)));
        let cells = [row.controller.clone()].into_iter().chain(points).chain([mean]).chain(kept);
        let cells = cells.chain([passed_text(report.passed(row))]);
        table.row(cells.chain(scenarios.iter().zip(&rankings).map(of)).collect());
    }
    table
}

fn possible_text(possible: Option<Possible>) -> String {
    possible.map_or("–".to_owned(), |possible| possible.to_string())
}

fn passed_text(passed: Passed) -> String {
    let text = passed.to_string();
    if passed.made > 0 && passed.is_all() { output::good(&text) } else { text }
}

/// Adds a line for each bound that fails under a controller, and for each one that leaves its test undecided.
fn failures(report: &SuiteReport, row: &SuiteRow, view: &mut View) {
    let failed = report.tests.iter().zip(&row.results).flat_map(|(test, result)| {
        let worst = Verdict::all(result.bounds.iter().map(|bound| bound.judgement.verdict));
        let is_listed = move |of: &BoundResult| worst != Verdict::Holds && of.judgement.verdict == worst;
        let failed = test.bounds.iter().zip(&result.bounds).filter(move |(_, result)| is_listed(result));
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

/// Returns the table with a row for each controller, the best first, and a column for each family.
fn all(report: &SuitesReport, rankings: &Rankings) -> Table {
    let names = rankings.families.iter().map(|(name, _)| name.clone());
    let headings = ["controller", "all"].map(str::to_owned).into_iter().chain(names);
    let mut table = Table::new(headings.chain(["others keep", "tests"].map(str::to_owned)), 1);
    for RankedRow { controller, possible, others_keep, .. } in &rankings.all {
        let of_family = |(family, _): &(String, _)| {
            let possible = rankings.possible(Some(family), controller);
            possible.map_or("–".to_owned(), |possible| possible.short())
        };
        let cells = [controller.clone(), possible.to_string()].into_iter();
        let cells = cells.chain(rankings.families.iter().map(of_family));
        table.row(cells.chain([others_text(*others_keep), passed_text(report.passed(controller))]).collect());
    }
    table
}
