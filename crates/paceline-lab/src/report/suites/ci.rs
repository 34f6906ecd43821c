// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of suites for continuous integration: a report in the format of JUnit, a table for a pull request, and a badge.

use super::{Board, BoardRow};
use crate::report::check_text::BoundText;
use crate::report::error::ReportError;
use crate::results::baseline::BaselineChange;
use crate::results::{Passed, SuiteReport, SuiteTest, SuitesReport, TestResult, Verdict};
use askama::Template;
use paceline_netsim::records::MetricCatalogue;
use serde_json::json;
use std::fmt::Write as _;

#[derive(Template)]
#[template(path = "junit.xml", escape = "xml")]
struct Junit {
    suites: Vec<JunitSuite>,
}

/// A suite under a controller.
struct JunitSuite {
    name: String,
    failures: usize,
    skipped: usize,
    cases: Vec<JunitCase>,
}

struct JunitCase {
    name: String,
    /// The kind of each element, `failure` or `skipped`, and its message.
    problems: Vec<(&'static str, String)>,
}

/// Returns a report in the format of JUnit: a test case for each test under each controller. Undecided tests, and those that were not
/// made, are skipped.
///
/// # Errors
/// The template fails, which is a defect of this crate.
pub fn junit(report: &SuitesReport, metrics: MetricCatalogue) -> Result<String, ReportError> {
    let bounds = BoundText::new(metrics);
    let mut suites = Vec::new();
    for suite in &report.suites {
        for row in &suite.rows {
            let case = |(test, result): (&SuiteTest, &TestResult)| {
                let lines = |verdict: Verdict| {
                    let of =
                        test.bounds.iter().zip(&result.bounds).filter(move |(_, of)| of.judgement.verdict == verdict);
                    of.map(|(bound, of)| bounds.line(&test.name(), bound, of).to_string())
                        .collect::<Vec<_>>()
                        .join("; ")
                };
                let (fails, undecided) = (lines(Verdict::Fails), lines(Verdict::Undecided));
                let problem = match () {
                    _ if result.bounds.is_empty() => Some(("skipped", "not made".to_owned())),
                    _ if !fails.is_empty() => Some(("failure", fails)),
                    _ if !undecided.is_empty() => Some(("skipped", undecided)),
                    _ => None,
                };
                JunitCase { name: test.name(), problems: problem.into_iter().collect() }
            };
            let cases: Vec<JunitCase> = suite.tests.iter().zip(&row.results).map(case).collect();
            let count = |kind| cases.iter().filter(|case| case.problems.iter().any(|(is, _)| *is == kind)).count();
            let (failures, skipped) = (count("failure"), count("skipped"));
            suites.push(JunitSuite { name: format!("{}: {}", suite.id, row.controller), failures, skipped, cases });
        }
    }
    Ok(Junit { suites }.render()?)
}

/// The most changes, and the most failures, that a table names.
const NAMED: usize = 20;

/// Returns a table for a pull request, Markdown: each controller, what changed, and which tests fail.
pub fn pull_request(report: &SuitesReport, changes: Option<&[BaselineChange]>) -> String {
    let suites: Vec<&str> = report.suites.iter().map(|suite| suite.id.as_str()).collect();
    let mut text = format!(
        "**Paceline**, suites {}\n\n| controller | score of the possible | tests that pass |\n|---|---:|---:|\n",
        suites.join(", ")
    );
    for BoardRow { controller, all, passed, .. } in Board::of(report).groups.iter().flat_map(|group| &group.rows) {
        _ = writeln!(text, "| {controller} | {} | {passed} |", all.text());
    }
    if let Some(changes) = changes {
        let (worse, better) = changes.iter().partition::<Vec<_>, _>(|change| change.is_regression());
        _ = writeln!(text, "\nBeside the baseline: {} worse, {} better.", worse.len(), better.len());
        text += if changes.is_empty() {
            ""
        } else {
            "\n| | test | controller | points | bounds |\n|---|---|---|---:|---|\n"
        };
        for change in worse.iter().chain(&better).take(NAMED) {
            let mark = if change.is_regression() { "worse" } else { "better" };
            _ = writeln!(
                text,
                "| {mark} | {} | {} | {} | {} |",
                change.test,
                change.controller,
                points(change),
                bounds(change)
            );
        }
        text += &more(changes.len());
    }
    let failures: Vec<(String, &str)> = report
        .suites
        .iter()
        .flat_map(|suite| suite.rows.iter().flat_map(move |row| suite.failed(row).map(|name| (name, &*row.controller))))
        .collect();
    if !failures.is_empty() {
        _ = writeln!(text, "\n<details><summary>Bounds that fail: {}</summary>\n", failures.len());
        for (name, controller) in failures.iter().take(NAMED) {
            _ = writeln!(text, "* {controller}, {name}");
        }
        text += &more(failures.len());
        text += "\n</details>\n";
    }
    text
}

fn more(count: usize) -> String {
    if count > NAMED { format!("\nand {} more\n", count - NAMED) } else { String::new() }
}

/// Returns the change of the score of a test.
pub fn points(change: &BaselineChange) -> String {
    change.points.map_or_else(|| "–".to_owned(), |points| format!("{:+.1} ± {:.1}", points.mean, points.ci95))
}

/// Returns the bounds that changed.
pub fn bounds(change: &BaselineChange) -> String {
    let broken = change.broken.iter().map(|id| format!("{id} fails now"));
    broken.chain(change.mended.iter().map(|id| format!("{id} holds now"))).collect::<Vec<_>>().join(", ")
}

/// Returns a badge, as the endpoint of shields.io reads it (JSON): the tests that pass of all rows.
pub fn badge(report: &SuitesReport) -> String {
    let of_suite = |suite: &SuiteReport| suite.rows.iter().map(|row| suite.passed(row)).sum();
    let passed: Passed = report.suites.iter().map(of_suite).sum();
    let color = match passed.share() {
        None => "lightgrey",
        Some(share) if share >= 1.0 => "brightgreen",
        Some(share) if share >= 0.8 => "yellow",
        Some(_) => "red",
    };
    let message = format!("{} of {} tests", passed.passed, passed.made);
    format!("{:#}\n", json!({"schemaVersion": 1, "label": "paceline", "message": message, "color": color}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{BoundResult, Judgement, SuiteBound, SuiteRow};

    fn report() -> SuitesReport {
        let bound =
            |id: &str| SuiteBound { id: id.to_owned(), metric: "utilization".to_owned(), ..SuiteBound::default() };
        let test = |n| SuiteTest {
            scenario: format!("own/<{n}> & \"more\""),
            bounds: vec![bound("rate"), bound("queue")],
            ..SuiteTest::default()
        };
        let result = |verdicts: &[Verdict]| {
            let bounds = verdicts.iter().map(|verdict| BoundResult {
                measured: Some(0.5),
                judgement: Judgement { verdict: *verdict, ..Judgement::default() },
                ..BoundResult::default()
            });
            TestResult { bounds: bounds.collect(), ..TestResult::default() }
        };
        use Verdict::{Fails, Holds, Undecided};
        let results =
            vec![result(&[Holds, Holds]), result(&[Undecided, Fails]), result(&[Undecided, Holds]), result(&[])];
        let row = SuiteRow { controller: "mine".to_owned(), results, ..SuiteRow::default() };
        let tests = (0..4).map(test).collect();
        SuitesReport {
            suites: vec![SuiteReport { id: "own".to_owned(), tests, rows: vec![row], ..SuiteReport::default() }],
        }
    }

    #[test]
    fn junit_has_a_case_for_each_test() {
        let text = junit(&report(), crate::metrics::catalogue()).unwrap();
        assert!(
            text.contains("<testsuite name=\"own: mine\" tests=\"4\" failures=\"1\" skipped=\"2\" errors=\"0\">"),
            "{text}"
        );
        assert_eq!((text.matches("<failure ").count(), text.matches("<skipped ").count()), (1, 2), "{text}");
        assert!(text.contains("message=\"own/&#60;1&#62; &#38; &#34;more&#34;: queue, "), "{text}");
        assert!(!text.contains("own/<"), "{text}");
    }

    #[test]
    fn tables_name_failures_and_changes() {
        let change = BaselineChange {
            test: "own: a".to_owned(),
            controller: "mine".to_owned(),
            points: None,
            broken: vec!["rate".to_owned()],
            mended: Vec::new(),
        };
        let text = pull_request(&report(), Some(&[change]));
        for part in [
            "Beside the baseline: 1 worse, 0 better.",
            "| worse | own: a | mine | – | rate fails now |",
            "Bounds that fail: 1",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!pull_request(&report(), None).contains("baseline"));
        let badge: serde_json::Value = serde_json::from_str(&badge(&report())).unwrap();
        assert_eq!((badge["message"].as_str(), badge["color"].as_str()), (Some("1 of 3 tests"), Some("red")));
    }
}
