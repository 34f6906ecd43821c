// SPDX-License-Identifier: MIT OR Apache-2.0
//! Utilisation against queuing delay: a point for each controller, and the front of those that no other one exceeds in both.

use crate::results::{RowKind, SuitesReport};

/// The mean result of a controller over the tests of a family of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub name: String,
    pub kind: RowKind,
    /// Mean over the tests of the 95th percentile of the queuing delay, ms.
    pub queue_ms: f64,
    /// Mean over the tests of the utilisation of the bottleneck.
    pub utilization: f64,
    /// Whether no other controller has both a higher utilisation and a lower delay. Oracles and faulty controllers are not
    /// compared.
    pub on_front: bool,
}

pub fn families(report: &SuitesReport) -> Vec<(String, Vec<Point>)> {
    let mut families: Vec<String> = Vec::new();
    for suite in &report.suites {
        if !families.contains(&suite.family) {
            families.push(suite.family.clone());
        }
    }
    families.into_iter().map(|family| (family.clone(), points(report, &family))).collect()
}

fn points(report: &SuitesReport, family: &str) -> Vec<Point> {
    let suites: Vec<_> = report.suites.iter().filter(|suite| suite.family == family).collect();
    let Some(first) = suites.first() else { return Vec::new() };
    let mut points = Vec::new();
    for (n, row) in first.rows.iter().enumerate() {
        let results = || suites.iter().flat_map(|suite| &suite.rows[n].results);
        let both: Vec<(f64, f64)> = results().filter_map(|r| Some((r.queue_p95_ms?, r.utilization?))).collect();
        if both.is_empty() || both.iter().any(|(queue_ms, _)| !queue_ms.is_finite()) {
            continue;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
        let (queue_ms, utilization) = (mean(|b| b.0), mean(|b| b.1));
        points.push(Point { name: row.controller.clone(), kind: row.kind, queue_ms, utilization, on_front: false });
    }
    let is_exceeded = |point: &Point, all: &[Point]| {
        let exceeds = |other: &Point| {
            other.queue_ms <= point.queue_ms
                && other.utilization >= point.utilization
                && (other.queue_ms, other.utilization) != (point.queue_ms, point.utilization)
        };
        all.iter().filter(|other| other.kind == RowKind::Controller).any(exceeds)
    };
    let all = points.clone();
    for point in points.iter_mut().filter(|point| point.kind == RowKind::Controller) {
        point.on_front = !is_exceeded(point, &all);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{SuiteReport, SuiteRow, TestResult};

    /// A controller: kind, and utilisation and delay of each test.
    type Row<'a> = (&'a str, RowKind, &'a [(f64, f64)]);

    fn report(rows: &[Row<'_>]) -> SuitesReport {
        let result = |(utilization, queue_ms): &(f64, f64)| TestResult {
            utilization: Some(*utilization),
            queue_p95_ms: Some(*queue_ms),
            ..TestResult::default()
        };
        let row = |(name, kind, tests): &Row<'_>| SuiteRow {
            controller: (*name).to_owned(),
            kind: *kind,
            results: tests.iter().map(result).collect(),
        };
        let suite =
            SuiteReport { family: "wired".to_owned(), rows: rows.iter().map(row).collect(), ..SuiteReport::default() };
        SuitesReport { suites: vec![suite] }
    }

    /// `short` and `full` are on the front; `worse` has less use and more delay than `full`. The faulty controller and the
    /// oracle exceed all but are not compared.
    #[test]
    fn the_front_has_the_controllers_that_no_other_exceeds() {
        let report = report(&[
            ("short", RowKind::Controller, &[(0.6, 8.0), (0.8, 12.0)]),
            ("full", RowKind::Controller, &[(0.9, 60.0), (0.9, 40.0)]),
            ("worse", RowKind::Controller, &[(0.85, 70.0), (0.85, 70.0)]),
            ("fault", RowKind::Faulty, &[(1.0, 1.0), (1.0, 1.0)]),
            ("ideal", RowKind::Oracle, &[(1.0, 1.0), (1.0, 1.0)]),
        ]);
        let families = families(&report);
        let [(name, points)] = &families[..] else { panic!("{families:?}") };
        assert_eq!(name, "wired");
        let front: Vec<&str> = points.iter().filter(|p| p.on_front).map(|p| p.name.as_str()).collect();
        assert_eq!(front, ["short", "full"]);
        assert!((points[0].utilization - 0.7).abs() < 1e-12 && (points[0].queue_ms - 10.0).abs() < 1e-12);
    }

    /// Two controllers with equal results do not exceed each other. One without results has no point.
    #[test]
    fn equal_points_are_both_on_the_front() {
        let report = report(&[
            ("one", RowKind::Controller, &[(0.9, 10.0)]),
            ("two", RowKind::Controller, &[(0.9, 10.0)]),
            ("none", RowKind::Controller, &[]),
        ]);
        let points = &families(&report)[0].1;
        assert_eq!(
            points.iter().map(|p| (p.name.as_str(), p.on_front)).collect::<Vec<_>>(),
            [("one", true), ("two", true)]
        );
    }
}
