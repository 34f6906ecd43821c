// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document of suites: the verdict on each bound of each test under each controller.

use crate::results::check::{Judgement, Verdict};
use crate::results::error::StoreError;
use crate::results::files::read_json;
use paceline_netsim::records::{Label, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

pub const SUITES_FILE: &str = "suites.json";

/// The results of one or several suites. The document has the [`Rankings`](crate::results::Rankings), too.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct SuitesReport {
    pub suites: Vec<SuiteReport>,
}

impl SuitesReport {
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        read_json(path)
    }

    /// Adds the rows of another document, after those of this one. A row of the same name is replaced.
    ///
    /// # Errors
    /// The two have not the same suites with the same tests and as many runs of each. Nothing is added then.
    pub fn add_rows(&mut self, other: &Self) -> Result<(), String> {
        let ids = |report: &Self| report.suites.iter().map(|suite| suite.id.clone()).collect::<Vec<_>>().join(", ");
        if ids(self) != ids(other) {
            return Err(format!("it has the suites {}, and the rows are of {}", ids(self), ids(other)));
        }
        let pairs = || self.suites.iter().zip(&other.suites);
        if let Some((suite, of)) = pairs().find(|(suite, of)| suite.repeats_text() != of.repeats_text()) {
            let ([there, rows], id) = ([suite, of].map(SuiteReport::repeats_text), &suite.id);
            return Err(format!("`{id}` has {there} runs of each test there, and the rows are of {rows}"));
        }
        // Only one of them may expect a scale.
        let without_scale = |suite: &SuiteReport| -> Vec<SuiteTest> {
            suite.tests.iter().map(|test| SuiteTest { scale: None, ..test.clone() }).collect()
        };
        if let Some((suite, _)) = pairs().find(|(suite, of)| without_scale(suite) != without_scale(of)) {
            return Err(format!("the tests of `{}` differ", suite.id));
        }
        for (suite, of) in self.suites.iter_mut().zip(&other.suites) {
            for (test, of) in suite.tests.iter_mut().zip(&of.tests) {
                test.scale = test.scale.or(of.scale);
            }
            suite.rows.retain(|row| of.rows.iter().all(|added| added.controller != row.controller));
            suite.rows.extend(of.rows.iter().cloned());
        }
        Ok(())
    }
}

impl SuitesReport {
    /// Counts the tests of all suites that pass under a controller.
    pub fn passed(&self, controller: &str) -> Passed {
        let of_suite = |suite: &SuiteReport| -> Passed {
            suite.rows.iter().filter(|row| row.controller == controller).map(|row| suite.passed(row)).sum()
        };
        self.suites.iter().map(of_suite).sum()
    }

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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteReport {
    pub id: String,
    pub title: String,
    /// The document that it follows; empty if it follows none.
    pub source: String,
    pub family: String,
    /// The world of the runs; empty for the simulator.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub world: String,
    /// Controllers whose developers chose values or looked at results with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub developed: Vec<String>,
    /// Runs of each test under each controller.
    pub repeats: u64,
    /// Whether it is the highest number, and each test has as many runs as its verdicts need.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub sequential: bool,
    /// Their seeds; empty: those from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<u64>,
    pub tests: Vec<SuiteTest>,
    pub rows: Vec<SuiteRow>,
    /// Verdicts that differ from the expected ones.
    pub changed: Vec<ChangedVerdict>,
    /// Whether another world puts the controllers in the same order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// How far two worlds agree on the order of controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    pub world: String,
    /// The controllers with a score in each test of both worlds, and their mean scores in this world and in the other.
    pub controllers: Vec<(String, [f64; 2])>,
    pub tests: usize,
    /// Kendall's tau of the mean scores, from -1 to 1.
    pub tau: f64,
    /// The 95 % interval of tau over tests as a sample of paths; `None` for fewer than ten tests.
    pub interval: Option<(f64, f64)>,
}

/// Returns a number of runs of each test: `10`, or `up to 40`.
pub fn repeats_text(repeats: u64, sequential: bool) -> String {
    if sequential { format!("up to {repeats}") } else { repeats.to_string() }
}

/// A test: one case of a scenario with its bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteTest {
    pub scenario: String,
    /// What `paceline run` takes: the id, or the path of a file.
    pub run: String,
    pub title: String,
    /// The case; empty if the scenario has none.
    pub case: Label,
    /// What its media are for, as in scenarios.
    pub media_use: String,
    /// The scale of its score that the suite expects; `None` if it expects none. See [`SuiteReport::scale`].
    pub scale: Option<Scale>,
    pub bounds: Vec<SuiteBound>,
}

/// The ends of the scale of a test: mean scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// The score under a constant rate.
    pub zero: f64,
    /// The score under the oracle.
    pub hundred: f64,
}

impl From<(f64, f64)> for Scale {
    fn from((zero, hundred): (f64, f64)) -> Self {
        Self { zero, hundred }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteBound {
    /// Its name. Bounds of a test with one name have one verdict.
    pub id: String,
    pub quantity: String,
    pub metric: String,
    pub flow: Option<String>,
    pub window_s: (f64, f64),
    pub format: ValueFormat,
    #[serde(deserialize_with = "paceline_netsim::records::json::bounds")]
    pub bounds: (f64, f64),
    pub why: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueFormat {
    #[default]
    Metric,
    Ratio,
    Share,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    #[default]
    Controller,
    /// A controller with one fault, which every test should find.
    Faulty,
    /// A sender that knows the path.
    Oracle,
    /// A controller of another library, through a translation of its inputs and outputs.
    OtherImplementation,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteRow {
    pub controller: String,
    pub kind: RowKind,
    pub results: Vec<TestResult>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestResult {
    pub runs: u64,
    /// Hash over the trace hashes of all runs.
    pub trace_hash: String,
    /// The score of each run, in the order of the seeds; empty if a run has none.
    pub scores: Vec<f64>,
    /// The points of the score lost to rate, to delay and to freezes, means over the runs; `None` in stored results.
    #[serde(skip)]
    pub lost: Option<[f64; 3]>,
    /// What TCP and cross traffic keep of their fair share, mean over the runs; `None` without such flows.
    pub others_keep: Option<f64>,
    /// Utilisation of the bottleneck, mean over the runs; `None` for a shared medium.
    pub utilization: Option<f64>,
    /// 95th percentile of the queuing delay of packets at the bottleneck, ms, mean over the runs; `None` for a shared
    /// medium.
    pub queue_p95_ms: Option<f64>,
    /// The result of each bound. Empty if the test was not made: an oracle does not apply to each path, and not every
    /// controller can be coupled.
    pub bounds: Vec<BoundResult>,
}

impl TestResult {
    pub fn mean_score(&self) -> Option<f64> {
        Some(Summary::from_values(&self.scores)?.mean)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoundResult {
    /// The mean over the runs; `None` if a run has no value.
    pub measured: Option<f64>,
    /// Half-width of its 95 % interval; `None` for one run. If tests have as many runs as they need, the interval is that of a look: with
    /// 95 % probability the intervals of all looks contain the mean.
    pub ci95: Option<f64>,
    /// Whether the verdict is `holds`.
    pub pass: bool,
    #[serde(flatten)]
    pub judgement: Judgement,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedVerdict {
    pub controller: String,
    /// The test and the name of the bound.
    pub bound: String,
    /// The verdict now; `None` if the suite has no such bound any more.
    pub verdict: Option<Verdict>,
}

/// Numbers of tests: of those that were made, and of those that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Tests that pass: all their bounds hold.
    pub passed: usize,
    /// All tests that were made.
    pub made: usize,
}

impl Passed {
    /// Returns the share of tests that pass; `None` if none was made.
    pub fn share(self) -> Option<f64> {
        (self.made > 0).then(|| self.passed as f64 / self.made as f64)
    }

    pub fn is_all(self) -> bool {
        self.passed == self.made
    }
}

/// Writes `7/8`; a dash if no test was made.
impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.made == 0 { f.write_str("–") } else { write!(f, "{}/{}", self.passed, self.made) }
    }
}

impl core::iter::Sum for Passed {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self { passed: sum.passed + one.passed, made: sum.made + one.made })
    }
}

impl SuiteTest {
    pub fn name(&self) -> String {
        match self.case.is_empty() {
            true => self.scenario.clone(),
            false => format!("{} {}", self.scenario, self.case),
        }
    }

    /// Returns the names of its bounds in order, each once.
    pub fn bound_ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.bounds.iter().map(|bound| bound.id.as_str()).enumerate();
        ids.filter(|(n, id)| self.bounds[..*n].iter().all(|other| other.id != *id)).map(|(_, id)| id)
    }

    /// Returns the verdict on all bounds of this name together.
    pub fn verdict(&self, id: &str, result: &TestResult) -> Verdict {
        let of_id = self.bounds.iter().zip(&result.bounds).filter(|(bound, _)| bound.id == id);
        Verdict::all(of_id.map(|(_, result)| result.judgement.verdict))
    }

    /// Counts the test: it passes if all its bounds hold. It is not counted if it was not made.
    pub fn passed(&self, result: &TestResult) -> Passed {
        let all = Verdict::all(result.bounds.iter().map(|bound| bound.judgement.verdict));
        let made = usize::from(!result.bounds.is_empty());
        Passed { passed: if all == Verdict::Holds { made } else { 0 }, made }
    }
}

impl SuiteReport {
    pub fn repeats_text(&self) -> String {
        repeats_text(self.repeats, self.sequential)
    }

    /// Counts the tests that pass under a controller.
    pub fn passed(&self, row: &SuiteRow) -> Passed {
        self.tests.iter().zip(&row.results).map(|(test, result)| test.passed(result)).sum()
    }

    /// Returns the name of every bound under a controller, test and name of the bound, with its verdict. Tests that were not made have
    /// none.
    pub fn verdicts(&self, row: &SuiteRow) -> impl Iterator<Item = (String, Verdict)> {
        let of_test = |(test, result): (&SuiteTest, &TestResult)| {
            let ids = test.bound_ids().filter(|_| !result.bounds.is_empty());
            ids.map(|id| (format!("{}: {id}", test.name()), test.verdict(id, result))).collect::<Vec<_>>()
        };
        self.tests.iter().zip(&row.results).flat_map(of_test)
    }

    /// Returns the number of undecided verdicts, without those of tests that fail: no more runs are made for them.
    pub fn undecided(&self) -> usize {
        let of_test = |(test, result): (&SuiteTest, &TestResult)| {
            let verdicts: Vec<Verdict> = test.bound_ids().map(|id| test.verdict(id, result)).collect();
            let is_decided = result.bounds.is_empty() || verdicts.contains(&Verdict::Fails);
            if is_decided { 0 } else { verdicts.iter().filter(|verdict| **verdict == Verdict::Undecided).count() }
        };
        let of_row = |row: &SuiteRow| self.tests.iter().zip(&row.results).map(of_test).sum::<usize>();
        self.rows.iter().map(of_row).sum()
    }

    pub fn failed(&self, row: &SuiteRow) -> impl Iterator<Item = String> {
        self.verdicts(row).filter(|(_, verdict)| *verdict == Verdict::Fails).map(|(name, _)| name)
    }

    pub fn mean_of(&self, row: &SuiteRow, value: impl Fn(&TestResult) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = row.results.iter().filter_map(value).collect();
        Some(Summary::from_values(&values)?.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(id: &str, repeats: u64, rows: &[(&str, f64)]) -> SuitesReport {
        let result = |value: f64| TestResult { utilization: Some(value), ..TestResult::default() };
        let row = |&(name, value): &(&str, f64)| SuiteRow {
            controller: name.to_owned(),
            kind: RowKind::default(),
            results: vec![result(value)],
        };
        let rows = rows.iter().map(row).collect();
        let tests = vec![SuiteTest::default()];
        SuitesReport { suites: vec![SuiteReport { id: id.to_owned(), repeats, tests, rows, ..SuiteReport::default() }] }
    }

    #[test]
    fn added_rows_follow_and_replace_those_of_their_name() {
        let mut all = report("own", 2, &[("a", 0.1), ("b", 0.2)]);
        all.add_rows(&report("own", 2, &[("c", 0.3), ("a", 0.4)])).unwrap();
        assert_eq!(all, report("own", 2, &[("b", 0.2), ("c", 0.3), ("a", 0.4)]));
    }

    #[test]
    fn suites_have_the_same_rows_in_the_same_order() {
        let mut all = report("own", 2, &[("a", 0.1), ("b", 0.2)]);
        all.suites.extend(report("more", 2, &[("c", 0.3), ("a", 0.4)]).suites);
        all.align_rows();
        let rows = |suite: &SuiteReport| {
            let row = |row: &SuiteRow| (row.controller.clone(), row.results[0].utilization);
            suite.rows.iter().map(row).collect::<Vec<_>>()
        };
        let named = |rows: [(&str, Option<f64>); 3]| rows.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(rows(&all.suites[0]), named([("a", Some(0.1)), ("b", Some(0.2)), ("c", None)]));
        assert_eq!(rows(&all.suites[1]), named([("a", Some(0.4)), ("b", None), ("c", Some(0.3))]));
    }

    #[test]
    fn rows_of_other_suites_runs_or_tests_are_rejected() {
        let mut all = report("own", 2, &[("a", 0.1)]);
        let mut others = [report("other", 2, &[("c", 0.3)]), report("own", 3, &[("c", 0.3)]), report("own", 2, &[])];
        others[2].suites[0].tests[0].scenario = "x".to_owned();
        for (other, reason) in others.iter().zip(["it has the suites own", "`own` has 2 runs", "tests of `own` differ"])
        {
            let error = all.add_rows(other).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(all, report("own", 2, &[("a", 0.1)]));
    }
}
