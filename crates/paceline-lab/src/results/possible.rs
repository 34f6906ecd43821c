// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scores of the possible: what a controller earns of the points that a path allows.
//!
//! The scale of a test has two ends. 0 is the mean score under a constant rate without feedback, which any sender reaches; 100 is that
//! under the oracle `causal`, which takes its fair share of a path that it knows one round trip late. Over several tests
//!
//! ```text
//! possible = 100 * sum(min(score, hundred) - zero) / sum(hundred - zero)
//! ```
//!
//! What exceeds the oracle earns nothing: it was taken from others, is noise, or is what the oracle does not know. A quotient of sums is steadier than a mean of
//! quotients: on a path that allows 6 points, each point would count for 17. Tests that allow less than [`LEAST`] points do not count.
//!
//! Paths are a sample of those of their family, so the interval is that of a quotient over tests (Cochran, 1977, "Sampling Techniques",
//! equation 6.13). Over several families it is the mean of the families, each with its own variance (equation 5.10), and Student's t has
//! the degrees of freedom of Satterthwaite (equation 5.16).

use super::suite::{RowKind, Scale, SuiteReport, SuiteTest, SuitesReport, TestResult};
use paceline_netsim::records::{Summary, t_quantile};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The sender whose score is 0 of the possible.
pub const ZERO: &str = "faulty-constant";
/// The sender whose score is 100.
pub const HUNDRED: &str = "causal";
/// A test counts if it allows this many points or more.
const LEAST: f64 = 5.0;
/// With fewer degrees of freedom there is no interval.
const FREEDOM: usize = 2;
/// Allowance for the rounding of a number of degrees of freedom.
const ROUNDING: f64 = 1e-9;

impl Scale {
    /// Returns whether the test allows enough points to count.
    pub fn counts(&self) -> bool {
        self.hundred - self.zero >= LEAST
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Possible {
    /// Points: 0 is a constant rate, 100 the oracle. Negative values are worse than a constant rate.
    pub points: f64,
    /// Half-width of the 95 % interval over tests as a sample of paths; `None` for the ends of the scale, and with less than two degrees
    /// of freedom.
    pub interval: Option<f64>,
    pub tests: usize,
}

impl Possible {
    pub fn short(&self) -> String {
        // Without the sign of a zero.
        format!("{:.0}", self.points.round() + 0.0)
    }
}

/// Writes `69 ± 5`.
impl fmt::Display for Possible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        self.interval.map_or(Ok(()), |interval| write!(f, " ± {interval:.0}"))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankedRow {
    /// Its place, from 1; `None` for an oracle, a faulty controller, and a row without a result of each test that counts.
    pub place: Option<usize>,
    pub controller: String,
    pub kind: RowKind,
    #[serde(flatten)]
    pub possible: Possible,
    /// What TCP and cross traffic keep of their fair share beside it, mean over the tests that have such flows.
    pub others_keep: Option<f64>,
    /// Its score minus that of the first place; `None` for the first place. The interval is corrected for the number of places, so that the
    /// tie group contains the best with 95 % confidence.
    pub difference: Option<Possible>,
    /// Whether it is in the tie group of the first place: the interval of the difference reaches 0.
    pub tied: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rankings {
    /// Over all families.
    pub all: Vec<RankedRow>,
    /// Over the tests of each use of media, with its name. All tests together: some families have one test of a use.
    pub uses: Vec<(String, Vec<RankedRow>)>,
    pub families: Vec<(String, Vec<RankedRow>)>,
}

impl Rankings {
    pub fn of(report: &SuitesReport) -> Self {
        let tests = || report.suites.iter().flat_map(|suite| &suite.tests);
        let families = distinct(report.suites.iter().map(|suite| &suite.family));
        let uses = distinct(tests().map(|test| &test.media_use));
        let of_family = |name: String| (name.clone(), Self::over_tests(report, |suite, _| suite.family == name));
        let of_use = |name: String| (name.clone(), Self::over_tests(report, |_, test| test.media_use == name));
        Self {
            all: Self::over_families(report, |_| true),
            uses: uses.into_iter().map(of_use).collect(),
            families: families.into_iter().map(of_family).collect(),
        }
    }

    /// Returns the ranking over the families of these suites, the best first, then what is only scale. Rows without a result of any test
    /// are left out.
    pub fn over_families(report: &SuitesReport, belongs: impl Fn(&SuiteReport) -> bool) -> Vec<RankedRow> {
        ranking(report, |suite, _| belongs(suite).then_some(&suite.family))
    }

    /// Returns the ranking over the tests that belong to it, in which families do not matter.
    pub fn over_tests(report: &SuitesReport, belongs: impl Fn(&SuiteReport, &SuiteTest) -> bool) -> Vec<RankedRow> {
        ranking(report, |suite, test| belongs(suite, test).then_some(""))
    }

    /// Returns the score of a row over all families, or in this family.
    pub fn possible(&self, family: Option<&str>, controller: &str) -> Option<Possible> {
        let of_family = |name| Some(&self.families.iter().find(|(family, _)| family == name)?.1);
        let ranking = family.map_or(Some(&self.all), of_family)?;
        Some(ranking.iter().find(|ranked| ranked.controller == controller)?.possible)
    }
}

impl Serialize for SuitesReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("SuitesReport", 2)?;
        document.serialize_field("rankings", &Rankings::of(self))?;
        document.serialize_field("suites", &self.suites)?;
        document.end()
    }
}

/// Returns these names in order, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names.filter(|name| !name.is_empty()) {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

impl SuiteReport {
    /// Returns the scale of a test: that of the rows of this report, or the one that the suite expects. `None` without one, or if the test
    /// allows too few points to count.
    pub fn scale(&self, test: usize) -> Option<Scale> {
        let scale = self.scale_of_rows(test).or(self.tests[test].scale);
        scale.filter(Scale::counts)
    }

    /// Returns whether the scores of a test under the two ends are known.
    pub fn has_scale(&self, test: usize) -> bool {
        self.scale_of_rows(test).or(self.tests[test].scale).is_some()
    }

    /// Returns the scores of a test under the two ends; `None` unless both are rows of this report.
    pub(crate) fn scale_of_rows(&self, test: usize) -> Option<Scale> {
        let mean = |name: &str| {
            let row = self.rows.iter().find(|row| row.controller == name)?;
            row.results.get(test)?.mean_score()
        };
        Some(Scale { zero: mean(ZERO)?, hundred: mean(HUNDRED)? })
    }

    /// Returns the points that a result earns in a test, and those that it allows.
    fn earned(&self, test: usize, result: &TestResult) -> Option<Earned> {
        let Scale { zero, hundred } = self.scale(test)?;
        Some(Earned { points: result.mean_score()?.min(hundred) - zero, allowed: hundred - zero })
    }
}

#[derive(Clone, Copy, Debug)]
struct Earned {
    points: f64,
    allowed: f64,
}

/// The part of a ranking to which a test belongs, by name; `None` if it belongs to none. Parts count alike.
type Part<'a> = Option<&'a str>;

/// What is earned in each test that counts, by part. `None`: there is no result of the test.
type Parts = Vec<Vec<Option<Earned>>>;

struct Row {
    name: String,
    kind: RowKind,
    parts: Parts,
    possible: Possible,
    others_keep: Option<f64>,
}

impl Row {
    /// Returns the row of this name; `None` without a result of any test that counts.
    fn of<'a>(
        report: &'a SuitesReport,
        name: &str,
        part: impl Fn(&'a SuiteReport, &'a SuiteTest) -> Part<'a>,
    ) -> Option<Self> {
        let mut kind = RowKind::default();
        let mut parts: Vec<(&str, Vec<Option<Earned>>)> = Vec::new();
        let mut kept = Vec::new();
        for suite in &report.suites {
            let own = suite.rows.iter().find(|row| row.controller == name);
            kind = own.map_or(kind, |row| row.kind);
            for (n, test) in suite.tests.iter().enumerate() {
                let Some(part) = part(suite, test) else { continue };
                let result = own.and_then(|row| row.results.get(n));
                kept.extend(result.and_then(|result| result.others_keep));
                if suite.scale(n).is_none() {
                    continue;
                }
                let earned = result.and_then(|result| suite.earned(n, result));
                match parts.iter_mut().find(|(name, _)| *name == part) {
                    Some((_, tests)) => tests.push(earned),
                    None => parts.push((part, vec![earned])),
                }
            }
        }
        let parts: Parts = parts.into_iter().map(|(_, tests)| tests).collect();
        let mut possible = possible(&parts, 1)?;
        if [ZERO, HUNDRED].contains(&name) {
            possible.interval = None;
        }
        let others_keep = Summary::from_values(&kept).map(|kept| kept.mean);
        Some(Self { possible, name: name.to_owned(), kind, parts, others_keep })
    }

    fn has_place(&self) -> bool {
        let is_scale = matches!(self.kind, RowKind::Oracle | RowKind::Faulty);
        !is_scale && self.parts.iter().flatten().all(Option::is_some)
    }
}

fn ranking<'a>(report: &'a SuitesReport, part: impl Fn(&'a SuiteReport, &'a SuiteTest) -> Part<'a>) -> Vec<RankedRow> {
    let names = distinct(report.suites.iter().flat_map(|suite| &suite.rows).map(|row| &row.controller));
    rankings(names.iter().filter_map(|name| Row::of(report, name, &part)).collect())
}

fn rankings(mut rows: Vec<Row>) -> Vec<RankedRow> {
    let order = |a: &Row, b: &Row| b.possible.points.total_cmp(&a.possible.points);
    rows.sort_by(|a, b| b.has_place().cmp(&a.has_place()).then(order(a, b)));
    let places = rows.iter().filter(|row| row.has_place()).count();
    let comparisons = places.saturating_sub(1).max(1);
    let ranked = |(n, row): (usize, &Row)| {
        let differs = n > 0 && places > 0;
        let difference = differs.then(|| possible(&minus(&row.parts, &rows[0].parts), comparisons)).flatten();
        let is_worse = |d: &Possible| d.interval.is_some_and(|interval| d.points + interval < 0.0);
        RankedRow {
            place: (n < places).then_some(n + 1),
            controller: row.name.clone(),
            kind: row.kind,
            possible: row.possible,
            others_keep: row.others_keep,
            difference,
            tied: n < places && !difference.as_ref().is_some_and(is_worse),
        }
    };
    rows.iter().enumerate().map(ranked).collect()
}

fn minus(row: &Parts, other: &Parts) -> Parts {
    let test = |(a, b): (&Option<Earned>, &Option<Earned>)| {
        a.zip(*b).map(|(a, b)| Earned { points: a.points - b.points, allowed: a.allowed })
    };
    row.iter().zip(other).map(|(a, b)| a.iter().zip(b).map(test).collect()).collect()
}

/// Returns the mean over parts, with an interval for this number of comparisons. Parts without results are left out.
fn possible(row: &Parts, comparisons: usize) -> Option<Possible> {
    let parts: Vec<Quotient> = row.iter().filter_map(|tests| Quotient::of(tests.iter().flatten())).collect();
    let count = parts.len() as f64;
    let points = 100.0 * parts.iter().map(|part| part.value).sum::<f64>() / count;
    let interval = || {
        let variances: Vec<f64> = parts.iter().map(|part| part.variance).collect::<Option<_>>()?;
        let variance: f64 = variances.iter().sum();
        let squares =
            parts.iter().zip(&variances).map(|(part, variance)| variance * variance / (part.tests - 1) as f64);
        let freedom = (variance * variance / squares.sum::<f64>() + ROUNDING).floor();
        if variance == 0.0 {
            let freedom: usize = parts.iter().map(|part| part.tests - 1).sum();
            return (freedom >= FREEDOM).then_some(0.0);
        }
        (freedom >= FREEDOM as f64).then(|| 100.0 * t_quantile(comparisons, freedom as usize) * variance.sqrt() / count)
    };
    (!parts.is_empty()).then(|| Possible {
        points,
        interval: interval(),
        tests: parts.iter().map(|part| part.tests).sum(),
    })
}

/// The quotient of two sums over the tests of a part.
struct Quotient {
    value: f64,
    /// The variance of the value; `None` for one test.
    variance: Option<f64>,
    tests: usize,
}

impl Quotient {
    fn of<'a>(tests: impl Iterator<Item = &'a Earned> + Clone) -> Option<Self> {
        let (mut points, mut allowed, mut count) = (0.0, 0.0, 0);
        for test in tests.clone() {
            (points, allowed, count) = (points + test.points, allowed + test.allowed, count + 1);
        }
        let value = points / allowed;
        let residual = |test: &Earned| test.points - value * test.allowed;
        let squares: f64 = tests.map(|test| residual(test) * residual(test)).sum();
        let n = count as f64;
        let variance = (count > 1).then(|| n / (n - 1.0) * squares / (allowed * allowed));
        (count > 0).then_some(Self { value, variance, tests: count })
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::SuiteRow;
    use super::*;

    /// A row: its name, its kind, and its score in each test.
    type Scores = (&'static str, RowKind, &'static [f64]);

    fn suite(family: &str, uses: &[&str], rows: &[Scores]) -> SuiteReport {
        let test = |media_use: &&str| SuiteTest { media_use: (*media_use).to_owned(), ..SuiteTest::default() };
        let result = |score: &f64| TestResult {
            scores: if score.is_nan() { Vec::new() } else { vec![score - 1.0, score + 1.0] },
            ..TestResult::default()
        };
        let row = |(name, kind, scores): &Scores| SuiteRow {
            controller: (*name).to_owned(),
            kind: *kind,
            results: scores.iter().map(result).collect(),
        };
        let (tests, rows) = (uses.iter().map(test).collect(), rows.iter().map(row).collect());
        SuiteReport { family: family.to_owned(), tests, rows, ..SuiteReport::default() }
    }

    const A: RowKind = RowKind::Controller;
    const ENDS: [Scores; 2] =
        [(ZERO, RowKind::Faulty, &[20.0, 40.0, 70.0, 0.0]), (HUNDRED, RowKind::Oracle, &[60.0, 100.0, 74.0, 100.0])];

    fn wired() -> SuiteReport {
        let [zero, hundred] = ENDS;
        let rows = [("low", A, &[30.0, 55.0, 0.0, 25.0][..]), ("high", A, &[50.0, 105.0, 99.0, 90.0]), zero, hundred];
        suite("wired", &["conversation", "game", "game", "conversation"], &rows)
    }

    /// By hand: the tests allow 40, 60, 4 and 100 points; the third does not count. `low` earns 10, 15 and 25, a quarter of each; `high` 30, as
    /// what exceeds the oracle earns nothing 60, and 90: 180 of 200. Its residuals are 30 - 0.9 * 40 = -6, 6 and 0, its variance
    /// 3 / 2 * 72 / 200^2 = 0.0027; t(2) is 4.303, and 4.303 * 0.05196 = 0.2236.
    #[test]
    fn points_are_those_of_the_scale_and_the_interval_is_that_of_a_quotient() {
        let report = SuitesReport { suites: vec![wired()] };
        let rankings = Rankings::of(&report);
        let rows: Vec<_> = rankings.all.iter().map(|s| (s.controller.as_str(), s.place, s.possible.points)).collect();
        let expected = [("high", Some(1), 90.0), ("low", Some(2), 25.0), (HUNDRED, None, 100.0), (ZERO, None, 0.0)];
        for (found, expected) in rows.iter().zip(expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1));
            assert!((found.2 - expected.2).abs() < 1e-9, "{found:?}");
        }
        let [high, low] = [0, 1].map(|n| &rankings.all[n]);
        assert!((high.possible.interval.unwrap() - 22.36).abs() < 0.01 && high.possible.tests == 3, "{high:?}");
        assert_eq!(low.possible.interval, Some(0.0));
        // -20 of 40, -45 of 60 and -65 of 100: -65 %, and residuals of 6, -6 and 0.
        let difference = low.difference.unwrap();
        assert!((difference.points + 65.0).abs() < 1e-9 && (difference.interval.unwrap() - 22.36).abs() < 0.01);
        assert!(high.tied && !low.tied && high.difference.is_none());
        assert_eq!(rankings.possible(Some("wired"), "low").unwrap().points, 25.0);
        let game = &rankings.uses[1];
        assert_eq!((game.0.as_str(), game.1[0].possible.points, game.1[0].possible.interval), ("game", 100.0, None));
    }

    /// By hand: families count alike, whatever their number of tests. In `wireless` `low` earns half of each test.
    #[test]
    fn families_count_alike() {
        let [zero, hundred] = ENDS;
        let rows =
            [("low", A, &[40.0, 70.0, f64::NAN, 50.0][..]), ("high", A, &[40.0, f64::NAN, 1.0, 1.0]), zero, hundred];
        let report = SuitesReport { suites: vec![wired(), suite("wireless", &["game"; 4], &rows)] };
        let all = Rankings::of(&report).all;
        let low = all.iter().find(|ranked| ranked.controller == "low").unwrap();
        assert!((low.possible.points - 37.5).abs() < 1e-9 && low.possible.interval == Some(0.0));
        assert_eq!(low.place, Some(1));
        let high = all.iter().find(|ranked| ranked.controller == "high").unwrap();
        assert_eq!(high.place, None, "it lacks a result of a test that counts");
    }

    /// By hand: `high` has 0.9 in `wired`, with a variance of 0.0027. In `wireless` it earns 20, 30 and 60 of 200: 0.55, residuals -2, -3 and 5,
    /// variance 3 / 2 * 38 / 200^2 = 0.001425. The mean is 0.725, its variance 0.004125 / 4. The degrees of freedom are
    /// 0.004125^2 / (0.0027^2 / 2 + 0.001425^2 / 2) = 3.65; t(3) is 3.182, and 3.182 * 0.03211 = 0.1022.
    #[test]
    fn interval_over_families_is_that_of_strata() {
        let [zero, hundred] = ENDS;
        let rows = [("high", A, &[40.0, 70.0, 0.0, 60.0][..]), ("low", A, &[20.0, 40.0, 0.0, 0.0]), zero, hundred];
        let report = SuitesReport { suites: vec![wired(), suite("wireless", &["game"; 4], &rows)] };
        let all = Rankings::of(&report).all;
        let Possible { points, interval, tests } = all[0].possible;
        assert!((points - 72.5).abs() < 1e-9 && (interval.unwrap() - 10.22).abs() < 0.01 && tests == 6, "{all:?}");
    }

    /// By hand: eight tests that allow 50 points have seven degrees of freedom, whatever the rounding; t(7) is 2.365.
    #[test]
    fn eight_tests_have_seven_degrees_of_freedom() {
        for k in 1..50_u32 {
            let earned: Vec<f64> = (0..8).map(|n| f64::from((n * 37 + k * k * 11) % 41)).collect();
            let tests: Vec<_> = earned.iter().map(|points| Some(Earned { points: *points, allowed: 50.0 })).collect();
            let mean = earned.iter().sum::<f64>() / 8.0;
            let squares: f64 = earned.iter().map(|points| (points - mean) * (points - mean)).sum();
            let expected = 2.365 * (8.0 / 7.0 * squares).sqrt() / 4.0;
            let found = possible(&vec![tests], 1).unwrap().interval.unwrap();
            assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        }
    }

    /// A suite without rows of the two ends has the scale that it expects.
    #[test]
    fn scale_is_that_of_the_rows_or_the_expected_one() {
        let mut report = wired();
        assert_eq!(report.scale(0), Some(Scale { zero: 20.0, hundred: 60.0 }));
        report.tests[0].scale = Some(Scale { zero: 25.0, hundred: 65.0 });
        assert_eq!(report.scale(0), Some(Scale { zero: 20.0, hundred: 60.0 }));
        report.rows.truncate(2);
        assert_eq!(report.scale(0), Some(Scale { zero: 25.0, hundred: 65.0 }));
        assert_eq!(report.scale(1), None);
        let all = Rankings::of(&SuitesReport { suites: vec![report] }).all;
        assert_eq!((all.len(), all[0].possible.points), (2, 62.5));
    }

    /// A difference that all tests show is one: 20 tests of 50 points, in each of which the second earns 9 to 11 less.
    #[test]
    fn a_clear_difference_is_no_tie() {
        const FIRST: [f64; 20] = [50.0; 20];
        const ZEROS: [f64; 20] = [10.0; 20];
        const ORACLE: [f64; 20] = [60.0; 20];
        const SECOND: [f64; 20] = {
            let (mut scores, mut n) = ([0.0; 20], 0);
            while n < 20 {
                scores[n] = 39.0 + (n % 3) as f64;
                n += 1;
            }
            scores
        };
        let rows = [
            ("second", A, &SECOND[..]),
            ("first", A, &FIRST[..]),
            (ZERO, RowKind::Faulty, &ZEROS[..]),
            (HUNDRED, RowKind::Oracle, &ORACLE[..]),
        ];
        let all = Rankings::of(&SuitesReport { suites: vec![suite("wired", &["game"; 20], &rows)] }).all;
        assert_eq!(
            all[..2].iter().map(|s| (s.controller.as_str(), s.tied)).collect::<Vec<_>>(),
            [("first", true), ("second", false)]
        );
    }
}
