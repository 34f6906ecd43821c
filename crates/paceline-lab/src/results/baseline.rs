// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of suites beside earlier ones of the same controllers: what became worse, and what better, by more than chance.

use crate::results::Verdict;
use crate::results::suite::{SuiteBound, SuiteReport, SuiteRow, SuiteTest, SuitesReport, TestResult};
use paceline_netsim::records::{Summary, t_quantile};

/// A test that changed under a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineChange {
    /// Suite and test.
    pub test: String,
    pub controller: String,
    /// The change of the score, points: the mean over the common seeds, with the interval of all comparisons together. `None` without
    /// scores.
    pub points: Option<Summary>,
    /// Bounds that held and fail now.
    pub broken: Vec<String>,
    /// Bounds that failed and hold now.
    pub mended: Vec<String>,
}

impl BaselineChange {
    /// Returns whether the controller became worse: a bound broke, or the score fell by more than chance.
    pub fn is_regression(&self) -> bool {
        !self.broken.is_empty() || self.points.is_some_and(|points| points.mean + points.ci95 < 0.0)
    }

    /// Returns whether it became better, and nothing worse.
    pub fn is_improvement(&self) -> bool {
        let is_better = !self.mended.is_empty() || self.points.is_some_and(|points| points.mean - points.ci95 > 0.0);
        is_better && !self.is_regression()
    }
}

/// Returns the regressions and the improvements, suite by suite. Tests and controllers that only one of the two has are left out, and so
/// are equal runs.
pub fn changes(before: &SuitesReport, after: &SuitesReport) -> Vec<BaselineChange> {
    let is_changed = |(.., [then, now]): &Pair<'_>| then.trace_hash.is_empty() || then.trace_hash != now.trace_hash;
    let pairs: Vec<_> = after.suites.iter().flat_map(|suite| common(before, suite)).filter(is_changed).collect();
    let comparisons = pairs.len().max(1);
    let of_pair = |(suite, [known, test], controller, [before, after]): &Pair<'_>| {
        let differences: Vec<f64> =
            before.scores.iter().zip(&after.scores).map(|(before, after)| after - before).collect();
        let points = Summary::from_values(&differences)
            .map(|of| Summary { ci95: t_quantile(comparisons, of.n - 1) * of.std / (of.n as f64).sqrt(), ..of });
        let became = |from: Verdict, to: Verdict| -> Vec<String> {
            let of = |test: &SuiteTest, id: &str| -> Vec<SuiteBound> {
                test.bounds.iter().filter(|bound| bound.id == id).cloned().collect()
            };
            // Only bounds that are the same in both are compared.
            let is = |id: &&str| {
                of(known, id) == of(test, id) && known.verdict(id, before) == from && test.verdict(id, after) == to
            };
            test.bound_ids().filter(is).map(str::to_owned).collect()
        };
        BaselineChange {
            test: format!("{}: {}", suite.id, test.name()),
            controller: (*controller).to_owned(),
            points: points.filter(|of| of.n > 1),
            broken: became(Verdict::Holds, Verdict::Fails),
            mended: became(Verdict::Fails, Verdict::Holds),
        }
    };
    let changes = pairs.iter().map(of_pair);
    changes.filter(|change| change.is_regression() || change.is_improvement()).collect()
}

/// A suite, a test of it before and after, a controller, and its results before and after.
type Pair<'a> = (&'a SuiteReport, [&'a SuiteTest; 2], &'a str, [&'a TestResult; 2]);

/// Returns whether both have results of the same test, seeds and controller.
pub fn have_a_common_test(before: &SuitesReport, after: &SuitesReport) -> bool {
    after.suites.iter().any(|suite| !common(before, suite).is_empty())
}

/// Returns the tests that both made, on the same seeds and with the same settings.
fn common<'a>(before: &'a SuitesReport, after: &'a SuiteReport) -> Vec<Pair<'a>> {
    let is_same = |suite: &&SuiteReport| {
        let of =
            |suite: &SuiteReport| (suite.id.clone(), suite.title.clone(), suite.seeds.clone(), suite.world.clone());
        of(suite) == of(after)
    };
    let Some(earlier) = before.suites.iter().find(is_same) else { return Vec::new() };
    let of_row = |row: &'a SuiteRow| {
        let known = earlier.rows.iter().find(|known| known.controller == row.controller);
        after.tests.iter().zip(&row.results).filter_map(move |(test, now)| {
            let place = earlier.tests.iter().position(|known| known.name() == test.name())?;
            let then = known?.results.get(place)?;
            let is_made = !then.bounds.is_empty() && !now.bounds.is_empty();
            is_made.then_some((after, [&earlier.tests[place], test], &*row.controller, [then, now]))
        })
    };
    after.rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{BoundResult, Judgement};

    fn report(results: &[(&[f64], Verdict)]) -> SuitesReport {
        let test = |n| SuiteTest {
            scenario: format!("own/{n}"),
            bounds: vec![SuiteBound { id: "rate".to_owned(), ..SuiteBound::default() }],
            ..SuiteTest::default()
        };
        let result = |(scores, verdict): &(&[f64], Verdict)| TestResult {
            runs: scores.len() as u64,
            trace_hash: format!("{scores:?}"),
            scores: scores.to_vec(),
            bounds: vec![BoundResult {
                judgement: Judgement { verdict: *verdict, ..Judgement::default() },
                ..BoundResult::default()
            }],
            ..TestResult::default()
        };
        let row = SuiteRow {
            controller: "mine".to_owned(),
            results: results.iter().map(result).collect(),
            ..SuiteRow::default()
        };
        let tests = (0..results.len()).map(test).collect();
        SuitesReport {
            suites: vec![SuiteReport { id: "own".to_owned(), tests, rows: vec![row], ..SuiteReport::default() }],
        }
    }

    /// Five points less on each of five seeds are a regression, one point that varies by five is none, and a bound that breaks is one.
    #[test]
    fn changes_beyond_chance_are_found() {
        use Verdict::{Fails, Holds};
        let before = report(&[
            (&[60.0, 62.0, 58.0, 61.0, 59.0], Holds),
            (&[60.0, 50.0, 40.0, 30.0, 20.0], Holds),
            (&[60.0; 5], Fails),
            (&[60.0; 5], Holds),
            (&[50.0], Holds),
        ]);
        let after = report(&[
            (&[55.0, 57.1, 53.0, 55.9, 54.0], Holds),
            (&[54.0, 56.0, 34.0, 36.0, 15.0], Holds),
            (&[60.0, 60.0, 60.1, 60.0, 60.0], Holds),
            (&[60.0; 5], Holds),
            (&[10.0], Fails),
        ]);
        let found = changes(&before, &after);
        let names: Vec<_> = found.iter().map(|change| (&*change.test, change.is_regression())).collect();
        assert_eq!(names, [("own: own/0", true), ("own: own/2", false), ("own: own/4", true)]);
        let fall = found[0].points.unwrap();
        assert!((fall.mean + 5.0).abs() < 0.01 && fall.ci95 > 0.0 && fall.ci95 < 0.3, "{fall:?}");
        assert_eq!((&found[1].mended[..], &found[2].broken[..]), (&["rate".to_owned()][..], &["rate".to_owned()][..]));
        assert!(found[2].points.is_none(), "one run has no interval");
        // The other way round.
        let back = changes(&after, &before);
        let names: Vec<_> = back.iter().map(|change| (&*change.test, change.is_regression())).collect();
        assert_eq!(names, [("own: own/0", false), ("own: own/2", true), ("own: own/4", false)]);
        let other = SuitesReport { suites: vec![SuiteReport { id: "other".to_owned(), ..after.suites[0].clone() }] };
        assert!(changes(&before, &other).is_empty() && changes(&before, &before).is_empty());
        assert!(have_a_common_test(&before, &before) && !have_a_common_test(&before, &other));
        // A new bound before the others, which fails, is no regression.
        let mut more = before.clone();
        more.suites[0].tests[0].bounds.insert(0, SuiteBound { id: "new".to_owned(), ..SuiteBound::default() });
        let result = &mut more.suites[0].rows[0].results[0];
        result.trace_hash.clear();
        let fails = Judgement { verdict: Fails, ..Judgement::default() };
        result.bounds.insert(0, BoundResult { judgement: fails, ..BoundResult::default() });
        assert!(changes(&before, &more).is_empty());
    }
}
