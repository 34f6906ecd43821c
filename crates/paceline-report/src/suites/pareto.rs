//! Utilisation against queuing delay: a point for each controller, and the front of those that no other one exceeds in both.

use paceline_results::{RowKind, SuitesReport};

/// The mean result of a controller over the tests of a family of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The controller.
    pub name: String,
    /// The purpose of its row.
    pub kind: RowKind,
    /// Mean over the tests of the 95th percentile of the queuing delay, ms.
    pub queue_ms: f64,
    /// Mean over the tests of the utilisation of the bottleneck.
    pub utilization: f64,
    /// Whether no other controller has both a higher utilisation and a lower delay. Oracles and faulty controllers are not
    /// compared.
    pub on_front: bool,
}

/// Returns the points of each family of paths, in order of the suites.
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
