// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether two worlds put controllers in the same order.
//!
//! ```text
//! scores of each test in two worlds --mean over tests--> two orders --pairs--> Kendall's tau
//! ```
//!
//! Tau is the share of pairs of controllers in the same order, less that of pairs in opposite order (Kendall, 1938, "A new measure of rank
//! correlation", Biometrika 30, 81-93). Its interval is the middle 95 % of tau over tests drawn with replacement (bootstrap, Efron 1979).

use super::suite::{Agreement, RowKind, SuiteReport, SuiteRow, TestResult};
use paceline_units::RandomStreams;

/// Samples of tests from which the interval is taken.
const SAMPLES: usize = 2000;
/// With fewer controllers there is no order to speak of.
const LEAST: usize = 3;
/// With fewer tests there is no interval.
const TESTS: usize = 10;

impl Agreement {
    /// Compares the order of the controllers of a suite with that in another world; `None` for fewer than three with a score in each test.
    /// Rows that are only scale do not count.
    pub fn of(report: &SuiteReport, other: &SuiteReport) -> Option<Self> {
        let scores = |row: &SuiteRow| -> Option<Vec<f64>> { row.results.iter().map(TestResult::mean_score).collect() };
        let pair = |row: &SuiteRow| {
            let same = other.rows.iter().find(|other| other.controller == row.controller)?;
            Some((row.controller.clone(), [scores(row)?, scores(same)?]))
        };
        let controllers = report.rows.iter().filter(|row| row.kind == RowKind::Controller);
        let rows: Vec<(String, [Vec<f64>; 2])> = controllers.filter_map(pair).collect();
        let tests = report.tests.len();
        if rows.len() < LEAST || tests == 0 || rows.iter().any(|(_, of)| of.iter().any(|all| all.len() != tests)) {
            return None;
        }
        let means = |drawn: &[usize]| -> Vec<[f64; 2]> {
            let mean = |of: &Vec<f64>| drawn.iter().map(|test| of[*test]).sum::<f64>() / drawn.len() as f64;
            rows.iter().map(|(_, of)| [mean(&of[0]), mean(&of[1])]).collect()
        };
        let all: Vec<usize> = (0..tests).collect();
        let mut random = RandomStreams::new(1).stream("agreement");
        let mut draw = || all.iter().map(|_| (random.unit() * tests as f64) as usize).collect::<Vec<_>>();
        let mut taus: Vec<f64> = (0..SAMPLES).map(|_| tau(&means(&draw()))).collect();
        taus.sort_by(f64::total_cmp);
        let of_all = means(&all);
        Some(Self {
            world: other.world.clone(),
            tau: tau(&of_all),
            controllers: rows.iter().map(|(name, _)| name.clone()).zip(of_all).collect(),
            tests,
            interval: (tests >= TESTS).then(|| (taus[SAMPLES / 40], taus[SAMPLES - 1 - SAMPLES / 40])),
        })
    }
}

/// Returns Kendall's tau of pairs of values. Equal values are in neither order.
fn tau(values: &[[f64; 2]]) -> f64 {
    let pairs = values.iter().enumerate().flat_map(|(n, a)| values[n + 1..].iter().map(move |b| (a, b)));
    let order = |a: f64, b: f64| if a == b { 0.0 } else { (a - b).signum() };
    let (sum, count) =
        pairs.fold((0.0, 0.0), |(sum, count), (a, b)| (sum + order(a[0], b[0]) * order(a[1], b[1]), count + 1.0));
    sum / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::SuiteTest;

    #[test]
    fn tau_counts_pairs_in_the_same_order() {
        let of = |second: &[f64]| {
            tau(&[1.0, 2.0, 3.0, 4.0, 5.0].into_iter().zip(second).map(|(a, b)| [a, *b]).collect::<Vec<_>>())
        };
        assert_eq!(of(&[10.0, 20.0, 30.0, 40.0, 50.0]), 1.0);
        assert_eq!(of(&[5.0, 4.0, 3.0, 2.0, 1.0]), -1.0);
        // One of ten pairs in opposite order: (9 - 1) / 10. Two equal values: 9 / 10.
        assert_eq!(of(&[2.0, 1.0, 3.0, 4.0, 5.0]), 0.8);
        assert_eq!(of(&[1.0, 1.0, 3.0, 4.0, 5.0]), 0.9);
    }

    fn report(world: &str, rows: &[(&str, &[f64])]) -> SuiteReport {
        let result = |score: &f64| TestResult { scores: vec![*score], ..TestResult::default() };
        let row = |(name, scores): &(&str, &[f64])| SuiteRow {
            controller: (*name).to_owned(),
            kind: if name.starts_with("faulty-") { RowKind::Faulty } else { RowKind::Controller },
            results: scores.iter().map(result).collect(),
        };
        let tests = vec![SuiteTest::default(); rows[0].1.len()];
        SuiteReport { world: world.to_owned(), tests, rows: rows.iter().map(row).collect(), ..SuiteReport::default() }
    }

    /// The means are 30, 20 and 10 in one world, and 15, 20 and 10 in the other, where the order of the first two depends on the half of the
    /// tests.
    #[test]
    fn the_interval_is_over_tests() {
        let halves = |first: f64, second: f64| [[first; 6], [second; 6]].concat();
        let (even, swapped, b) = (halves(30.0, 30.0), halves(30.0, 0.0), halves(19.0, 21.0));
        let (twenty, ten) = (halves(20.0, 20.0), halves(10.0, 10.0));
        let first = report("sim", &[("a", &even), ("b", &twenty), ("c", &ten), ("d", &[]), ("faulty-x", &ten)]);
        let second = report("testbed", &[("faulty-x", &ten), ("c", &ten), ("b", &b), ("a", &swapped)]);
        let found = Agreement::of(&first, &second).unwrap();
        let names: Vec<&str> = found.controllers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, found.tests, found.world.as_str()), (vec!["a", "b", "c"], 12, "testbed"));
        assert_eq!(found.controllers[0].1, [30.0, 15.0]);
        assert!((found.tau - 1.0 / 3.0).abs() < 1e-12, "{found:?}");
        // With many tests of the first half all pairs agree; with few of them a is behind c as well.
        let (low, high) = found.interval.unwrap();
        assert!(high == 1.0 && (low + 1.0 / 3.0).abs() < 1e-12, "{found:?}");
        let few = |report: &SuiteReport| {
            let rows = report
                .rows
                .iter()
                .map(|row| SuiteRow { results: row.results[..row.results.len().min(9)].to_vec(), ..row.clone() });
            SuiteReport { rows: rows.collect(), tests: report.tests[..9].to_vec(), ..report.clone() }
        };
        assert_eq!(Agreement::of(&few(&first), &few(&second)).unwrap().interval, None);
        let two = report("testbed", &[("c", &ten), ("b", &b)]);
        assert_eq!(Agreement::of(&first, &two), None);
    }
}
