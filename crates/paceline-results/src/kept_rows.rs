//! Rows of suites in short form: a line for each test of each controller, as in `scoreboard/suites`. They have no titles, reasons
//! and limits of bounds, so they can only be read beside a report of the same suite.

use crate::suite::{BoundResult, RowKind, SuiteReport, SuiteRow, SuiteTest, SuitesReport, TestResult};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The rows of a suite in short form.
#[derive(Clone, Debug, Deserialize)]
pub struct KeptRows {
    /// The suite.
    pub id: String,
    /// Runs of each test under each controller.
    pub repeats: u64,
    results: Vec<KeptResult>,
}

impl KeptRows {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// It has another shape.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// A test under a controller.
#[derive(Clone, Debug, Deserialize)]
struct KeptResult {
    controller: String,
    test: String,
    hash: String,
    utilization: Option<f64>,
    queue_p95_ms: Option<f64>,
    /// Name, mean, half-width of the interval, verdict.
    bounds: Vec<(String, Option<f64>, Option<f64>, KeptVerdict)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeptVerdict {
    Pass,
    Fail,
}

impl KeptResult {
    /// Returns the result of this test. `None` if its bounds are others.
    fn of(&self, test: &SuiteTest) -> Option<TestResult> {
        let ids = test.bounds.iter().map(|bound| bound.id.as_str());
        ids.eq(self.bounds.iter().map(|(id, ..)| id.as_str())).then(|| TestResult {
            trace_hash: self.hash.clone(),
            utilization: self.utilization,
            queue_p95_ms: self.queue_p95_ms,
            bounds: self.bounds.iter().map(|(_, measured, ci95, verdict)| bound(*measured, *ci95, *verdict)).collect(),
        })
    }
}

fn bound(measured: Option<f64>, ci95: Option<f64>, verdict: KeptVerdict) -> BoundResult {
    BoundResult { measured, ci95, pass: verdict == KeptVerdict::Pass }
}

/// Returns the words of the name of a test in one order: the keys of a case have none.
fn words(name: &str) -> Vec<&str> {
    let mut words: Vec<&str> = name.split(' ').collect();
    words.sort_unstable();
    words
}

impl SuitesReport {
    /// Gives each suite a row for each controller of any suite, in the same order. Tests of added rows were not made.
    pub fn align_rows(&mut self) {
        let mut names: Vec<(String, RowKind)> = Vec::new();
        for row in self.suites.iter().flat_map(|suite| &suite.rows) {
            if names.iter().all(|(name, _)| *name != row.controller) {
                names.push((row.controller.clone(), row.kind));
            }
        }
        for suite in &mut self.suites {
            let mut known = core::mem::take(&mut suite.rows);
            for (controller, kind) in &names {
                let place = known.iter().position(|row| row.controller == *controller);
                suite.rows.push(place.map(|n| known.swap_remove(n)).unwrap_or_else(|| SuiteRow {
                    controller: controller.clone(),
                    kind: *kind,
                    results: vec![TestResult::default(); suite.tests.len()],
                }));
            }
        }
    }
}

impl SuiteReport {
    /// Adds rows in short form after those of this report, except for controllers that it already has. `kind` returns
    /// the purpose of the row of a controller. A test that a controller lacks was not made.
    ///
    /// # Errors
    /// They are of another suite, other tests or another number of runs. Nothing is added then.
    pub fn add_kept_rows(&mut self, kept: &KeptRows, kind: impl Fn(&str) -> RowKind) -> Result<(), String> {
        if kept.id != self.id {
            return Err(format!("it has the suite `{}`, and these results are of `{}`", kept.id, self.id));
        }
        if kept.repeats != self.repeats {
            let (there, here) = (kept.repeats, self.repeats);
            return Err(format!("it has {there} runs of each test, and these results have {here}"));
        }
        let places: BTreeMap<Vec<&str>, usize> =
            kept.results.iter().enumerate().map(|(n, result)| (words(&result.test), n)).rev().collect();
        let names: Vec<String> = self.tests.iter().map(SuiteTest::name).collect();
        if names.len() != places.len() || names.iter().any(|name| !places.contains_key(&words(name))) {
            return Err("it has other tests: another version wrote it".to_owned());
        }
        let index: BTreeMap<Vec<&str>, usize> = names.iter().enumerate().map(|(n, name)| (words(name), n)).collect();
        let mut rows: Vec<SuiteRow> = Vec::new();
        for result in &kept.results {
            if self.rows.iter().any(|row| row.controller == result.controller) {
                continue;
            }
            let n = index[&words(&result.test)];
            let Some(of_test) = result.of(&self.tests[n]) else {
                return Err(format!("the bounds of {} differ: another version wrote it", result.test));
            };
            let at = rows.iter().position(|row| row.controller == result.controller).unwrap_or(rows.len());
            if at == rows.len() {
                let results = vec![TestResult::default(); self.tests.len()];
                rows.push(SuiteRow { controller: result.controller.clone(), kind: kind(&result.controller), results });
            }
            rows[at].results[n] = of_test;
        }
        self.rows.extend(rows);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::SuiteBound;
    use paceline_netsim::records::Label;

    /// A suite of two tests, one with two cases of its keys, under the controller `mine`.
    fn report() -> SuiteReport {
        let bounds = |ids: &[&str]| {
            ids.iter().map(|id| SuiteBound { id: (*id).to_owned(), ..SuiteBound::default() }).collect::<Vec<_>>()
        };
        let case =
            ["rate=low", "queue=pie"].iter().fold(Label::default(), |label, pair| label.with(&pair.parse().unwrap()));
        let test = |scenario: &str, case: Label, ids: &[&str]| SuiteTest {
            scenario: scenario.to_owned(),
            case,
            bounds: bounds(ids),
            ..SuiteTest::default()
        };
        let tests = vec![test("own/a", case, &["use", "use"]), test("own/b", Label::default(), &["delay"])];
        let results = vec![TestResult::default(); 2];
        let rows = vec![SuiteRow { controller: "mine".to_owned(), kind: RowKind::Controller, results }];
        SuiteReport { id: "own".to_owned(), repeats: 3, tests, rows, ..SuiteReport::default() }
    }

    const KEPT: &str = r#"{"id": "own", "repeats": 3, "results": [
        {"controller": "one", "test": "own/a queue=pie rate=low", "hash": "ab", "utilization": 0.5, "queue_p95_ms": null,
         "bounds": [["use", 0.5, 0.01, "pass"], ["use", 0.4, null, "fail"]]},
        {"controller": "one", "test": "own/b", "hash": "cd", "utilization": 0.9, "queue_p95_ms": 12, "bounds": [["delay", 7, 1, "pass"]]},
        {"controller": "mine", "test": "own/b", "hash": "ef", "utilization": 0, "queue_p95_ms": 0, "bounds": [["delay", 1, 1, "pass"]]},
        {"controller": "ideal", "test": "own/b", "hash": "01", "utilization": 1, "queue_p95_ms": 0, "bounds": [["delay", 8, 1, "fail"]]}
    ]}"#;

    #[test]
    fn rows_are_added_test_by_test() {
        use RowKind::{Controller, Oracle};
        let mut report = report();
        let kind = |name: &str| if name == "ideal" { Oracle } else { Controller };
        report.add_kept_rows(&KeptRows::read(KEPT).unwrap(), kind).unwrap();
        let names: Vec<(&str, RowKind)> = report.rows.iter().map(|row| (row.controller.as_str(), row.kind)).collect();
        assert_eq!(names, [("mine", Controller), ("one", Controller), ("ideal", Oracle)]);
        assert_eq!(report.rows[0].results, [TestResult::default(), TestResult::default()], "its own row stays");
        let of_one = &report.rows[1].results;
        assert_eq!(
            (of_one[0].utilization, of_one[0].queue_p95_ms, of_one[1].queue_p95_ms),
            (Some(0.5), None, Some(12.0))
        );
        let passes: Vec<bool> = of_one.iter().flat_map(|result| &result.bounds).map(|bound| bound.pass).collect();
        assert_eq!(passes, [true, false, true]);
        let held: Vec<(usize, usize)> =
            report.rows.iter().map(|row| report.held(row)).map(|held| (held.held, held.all)).collect();
        assert_eq!(held, [(0, 0), (1, 2), (0, 1)], "bounds of one name hold together, and the oracle made one test");
    }

    #[test]
    fn suites_have_the_same_rows_in_the_same_order() {
        let mut all = SuitesReport { suites: vec![report(), report()] };
        all.suites[1].add_kept_rows(&KeptRows::read(KEPT).unwrap(), |_| RowKind::Oracle).unwrap();
        all.suites[1].rows.reverse();
        all.align_rows();
        for suite in &all.suites {
            assert_eq!(
                suite.rows.iter().map(|row| row.controller.as_str()).collect::<Vec<_>>(),
                ["mine", "ideal", "one"]
            );
        }
        let (added, kept) = (&all.suites[0].rows[2], &all.suites[1].rows[2]);
        assert_eq!((added.kind, added.results.len(), all.suites[0].held(added).all), (RowKind::Oracle, 2, 0));
        assert_eq!(all.suites[1].held(kept), crate::suite::Held { held: 1, all: 2 });
    }

    #[test]
    fn rows_of_other_suites_runs_tests_or_bounds_are_rejected() {
        let changes = [
            ("\"id\": \"own\"", "\"id\": \"other\"", "the suite `other`"),
            ("\"repeats\": 3", "\"repeats\": 2", "2 runs of each test"),
            ("\"own/b\"", "\"own/c\"", "other tests"),
            ("\"delay\"", "\"use\"", "bounds of own/b"),
            ("\"pass\"", "\"maybe\"", "maybe"),
        ];
        for (from, to, reason) in changes {
            let mut report = report();
            let before = report.clone();
            let kept = KeptRows::read(&KEPT.replace(from, to));
            let added = kept.and_then(|kept| report.add_kept_rows(&kept, |_| RowKind::Controller));
            let error = added.unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert_eq!(report, before);
        }
    }
}
