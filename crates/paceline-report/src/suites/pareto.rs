//! The plot of utilisation against queuing delay: a point for each controller, and the front of those that no other one exceeds
//! in both.

use paceline_results::{RowKind, SuitesReport};
use std::fmt::Write;

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
        if both.is_empty() {
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

/// Size of the drawing and its margins.
const SIZE: (f64, f64) = (720.0, 430.0);
const MARGIN: (f64, f64, f64, f64) = (56.0, 14.0, 24.0, 44.0);
/// Height of a label.
const LINE: f64 = 13.0;
/// Width of a character of a label.
const CHARACTER: f64 = 6.4;

/// Returns the plot as an SVG element whose colours are those of the page.
pub fn draw(points: &[Point]) -> String {
    let (left, top, right, bottom) = MARGIN;
    let shown = |point: &&Point| point.queue_ms.is_finite();
    let delays = || points.iter().filter(shown).map(|point| point.queue_ms.max(1.0));
    let lowest = points.iter().map(|point| point.utilization).fold(1.0, f64::min);
    let y_from = ((lowest * 10.0).floor() / 10.0).clamp(0.0, 0.9);
    let x_to = delays().fold(10.0, f64::max) * 1.2;
    let x_from = delays().fold(x_to, f64::min).max(1.0) / 1.2;
    let across = |ms: f64| {
        let part = libm::log(ms.max(x_from) / x_from) / libm::log(x_to / x_from);
        left + part * (SIZE.0 - left - right)
    };
    let down = |share: f64| top + (1.0 - (share - y_from) / (1.0 - y_from)) * (SIZE.1 - top - bottom);
    let mut svg = format!(
        "<svg class=\"pareto\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Utilisation against queuing delay\">",
        SIZE.0, SIZE.1
    );
    let mut step = 0;
    while y_from + 0.1 * f64::from(step) <= 1.0 + 1e-9 {
        let share = y_from + 0.1 * f64::from(step);
        let y = down(share);
        _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            SIZE.0 - right
        );
        _ = write!(
            svg,
            "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            left - 6.0,
            y + 4.0,
            share * 100.0
        );
        step += 1;
    }
    for ms in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0] {
        if (x_from..=x_to).contains(&ms) {
            let x = across(ms);
            _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{:.1}\"/>",
                SIZE.1 - bottom
            );
            _ = write!(
                svg,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{ms}</text>",
                SIZE.1 - bottom + 16.0
            );
        }
    }
    let middle = (left + SIZE.0 - right) / 2.0;
    _ = write!(
        svg,
        "<text class=\"name\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">95th percentile of the queuing delay, ms, mean over the tests</text>",
        SIZE.1 - 6.0
    );
    _ = write!(
        svg,
        "<text class=\"name\" transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">utilisation</text>",
        SIZE.1 / 2.0
    );
    let mut front: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.on_front)
        .map(|point| (across(point.queue_ms), down(point.utilization)))
        .collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(((x, y), rest)) = front.split_first() {
        let mut path = format!("M{x:.1} {y:.1}");
        rest.iter().for_each(|(x, y)| _ = write!(path, "H{x:.1}V{y:.1}"));
        _ = write!(path, "H{:.1}", SIZE.0 - right);
        _ = write!(svg, "<path class=\"front\" d=\"{path}\"/>");
    }
    for (point, (at, label)) in points.iter().filter(shown).zip(placed_labels(points, across, down)) {
        let class = match (point.kind, point.on_front) {
            (RowKind::Oracle, _) => "oracle",
            (RowKind::Faulty, _) => "faulty",
            (RowKind::Controller, true) => "best",
            (RowKind::Controller, false) => "other",
        };
        let title = format!("{}: {:.1} ms, {:.1} %", point.name, point.queue_ms, point.utilization * 100.0);
        let (x, y) = at;
        _ = write!(svg, "<g class=\"{class}\"><title>{title}</title>");
        match point.kind {
            RowKind::Oracle => _ = write!(svg, "<path d=\"M{x:.1} {:.1}l6 6l-6 6l-6 -6z\"/>", y - 6.0),
            _ => _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
        }
        if let Some((x, y, anchor)) = label {
            _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", point.name);
        }
        svg += "</g>";
    }
    svg + "</svg>"
}

/// A place of a label: its baseline, and whether it starts or ends there.
type LabelPlace = Option<((f64, f64), Option<(f64, f64, &'static str)>)>;

/// Returns the place of each point, and that of its label if there is room for it: those of the front and of oracles first.
fn placed_labels(
    points: &[Point],
    across: impl Fn(f64) -> f64,
    down: impl Fn(f64) -> f64,
) -> Vec<((f64, f64), Option<(f64, f64, &'static str)>)> {
    let (left, top, right, bottom) = MARGIN;
    let shown: Vec<&Point> = points.iter().filter(|point| point.queue_ms.is_finite()).collect();
    let places: Vec<(f64, f64)> = shown.iter().map(|p| (across(p.queue_ms), down(p.utilization))).collect();
    // Boxes that are taken: left, top, right, bottom.
    let mut taken: Vec<(f64, f64, f64, f64)> =
        places.iter().map(|(x, y)| (x - 5.0, y - 5.0, x + 5.0, y + 5.0)).collect();
    let mut found: Vec<LabelPlace> = vec![None; shown.len()];
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.sort_by_key(|n| (!(shown[*n].on_front || shown[*n].kind == RowKind::Oracle), shown[*n].kind as u8));
    for n in order {
        let ((x, y), width) = (places[n], shown[n].name.len() as f64 * CHARACTER);
        let offsets = [0.0, -10.0, 10.0, -18.0, 18.0, -26.0, 26.0];
        let candidates = offsets.iter().flat_map(|dy| {
            let baseline = y + 4.0 + dy;
            [(x + 8.0, baseline, "start"), (x - 8.0, baseline, "end")]
        });
        let area = |(x, baseline, anchor): &(f64, f64, &str)| {
            let from = if *anchor == "start" { *x } else { x - width };
            (from, baseline - LINE + 3.0, from + width, baseline + 3.0)
        };
        let fits = |place: &(f64, f64, &str)| {
            let area = area(place);
            let inside =
                area.0 >= left && area.2 <= SIZE.0 - right + 20.0 && area.1 >= top - 8.0 && area.3 <= SIZE.1 - bottom;
            let overlaps = |other: &(f64, f64, f64, f64)| {
                area.0 < other.2 && other.0 < area.2 && area.1 < other.3 && other.1 < area.3
            };
            inside && !taken.iter().enumerate().any(|(m, other)| m != n && overlaps(other))
        };
        let place = candidates.into_iter().find(fits);
        taken.extend(place.iter().map(area));
        found[n] = Some((places[n], place));
    }
    found.into_iter().flatten().collect()
}
