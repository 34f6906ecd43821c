// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws utilisation against queuing delay as an SVG element.

use super::pareto::Point;
use crate::report::escaped;
use crate::results::RowKind;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = WIDTH - 24.0;
const BOTTOM: f64 = HEIGHT - 44.0;
/// Size of a character of a label.
const LINE: f64 = 13.0;
const CHARACTER: f64 = 6.4;
/// Half the size of a mark.
const MARK: f64 = 5.0;
/// Values with a line across the plot, ms.
const DELAYS: [f64; 13] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4];

/// Where values are drawn: a logarithmic axis of delays, and a linear one of utilisation.
struct Axes {
    delays: (f64, f64),
    lowest: f64,
}

impl Axes {
    fn of(points: &[Point]) -> Self {
        let delays = || points.iter().map(|point| point.queue_ms.max(1.0));
        let highest = delays().fold(10.0, f64::max);
        let lowest = points.iter().map(|point| point.utilization).fold(1.0, f64::min);
        Self {
            delays: (delays().fold(highest, f64::min) / 1.2, highest * 1.2),
            lowest: ((lowest * 10.0).floor() / 10.0).clamp(0.0, 0.9),
        }
    }

    fn x(&self, ms: f64) -> f64 {
        let (from, to) = self.delays;
        LEFT + libm::log(ms.max(from) / from) / libm::log(to / from) * (RIGHT - LEFT)
    }

    fn y(&self, utilization: f64) -> f64 {
        TOP + (1.0 - utilization) / (1.0 - self.lowest) * (BOTTOM - TOP)
    }

    fn draw(&self) -> String {
        let mut svg = String::new();
        let tenths = (self.lowest * 10.0).round() as u32..=10;
        for tenth in tenths {
            let y = self.y(f64::from(tenth) / 10.0);
            _ = write!(svg, "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
            let (x, y) = (LEFT - 6.0, y + 4.0);
            let text = format_args!("{} %", tenth * 10);
            _ = write!(svg, "<text class=\"tick\" x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>");
        }
        for ms in DELAYS.into_iter().filter(|ms| (self.delays.0..=self.delays.1).contains(ms)) {
            let (x, y) = (self.x(ms), BOTTOM + 16.0);
            _ = write!(svg, "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>");
            _ = write!(svg, "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{ms}</text>");
        }
        let (x, y) = ((LEFT + RIGHT) / 2.0, HEIGHT - 6.0);
        let name = "95th percentile of the queuing delay, ms, mean over the tests";
        _ = write!(svg, "<text class=\"name\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>");
        let turn = format!("translate(12 {}) rotate(-90)", HEIGHT / 2.0);
        _ = write!(svg, "<text class=\"name\" transform=\"{turn}\" text-anchor=\"middle\">utilisation</text>");
        svg
    }
}

#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

#[derive(Clone, Copy)]
struct Label {
    x: f64,
    baseline: f64,
    anchor: &'static str,
    width: f64,
}

impl Label {
    fn area(&self) -> Area {
        let left = if self.anchor == "start" { self.x } else { self.x - self.width };
        Area { left, top: self.baseline - LINE + 3.0, right: left + self.width, bottom: self.baseline + 3.0 }
    }
}

/// Returns the plot, whose colours are those of the page.
pub fn draw(points: &[Point]) -> String {
    let axes = Axes::of(points);
    let places: Vec<(f64, f64)> = points.iter().map(|p| (axes.x(p.queue_ms), axes.y(p.utilization))).collect();
    let mut svg = format!(
        "<svg class=\"pareto\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Utilisation against queuing delay\">"
    );
    svg += &axes.draw();
    svg += &front(points, &places);
    for ((point, (x, y)), label) in points.iter().zip(&places).zip(labels(points, &places)) {
        let class = match (point.kind, point.on_front) {
            (RowKind::Oracle, _) => "oracle",
            (RowKind::Faulty, _) => "faulty",
            (RowKind::Controller, true) => "best",
            (RowKind::Controller, false) | (RowKind::OtherImplementation, _) => "other",
        };
        let name = escaped(&point.name);
        let title = format!("{name}: {:.1} ms, {:.1} %", point.queue_ms, point.utilization * 100.0);
        _ = write!(svg, "<g class=\"{class}\"><title>{title}</title>");
        match point.kind {
            RowKind::Oracle => _ = write!(svg, "<path d=\"M{x:.1} {:.1}l6 6l-6 6l-6 -6z\"/>", y - 6.0),
            _ => _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
        }
        if let Some(Label { x, baseline, anchor, .. }) = label {
            _ = write!(svg, "<text x=\"{x:.1}\" y=\"{baseline:.1}\" text-anchor=\"{anchor}\">{name}</text>");
        }
        svg += "</g>";
    }
    svg + "</svg>"
}

/// The style of a plot that is a file of its own.
const ALONE: &str = "svg{background:#fff;font:12px sans-serif}.grid{stroke:#e3e3e3}text{fill:#222}.tick,.name,.faulty text{fill:#666}\
    .front{fill:none;stroke:#1a7f37;stroke-width:1.5}.best circle{fill:#1a7f37}.best text{font-weight:600}.other circle{fill:#2a6fb0}\
    .faulty circle{fill:none;stroke:#c0392b;stroke-width:1.5}.oracle path{fill:#222}.title{font-weight:600}";

pub fn draw_alone(points: &[Point], family: &str) -> String {
    let (x, y) = (RIGHT - 6.0, BOTTOM - 10.0);
    let title =
        format!("<text class=\"title\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text></svg>\n", escaped(family));
    let head = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" ");
    let drawn = draw(points).replacen("<svg ", &head, 1);
    let drawn = drawn.replacen('>', &format!("><style>{ALONE}</style>"), 1);
    drawn.strip_suffix("</svg>").unwrap_or(&drawn).to_owned() + &title
}

fn front(points: &[Point], places: &[(f64, f64)]) -> String {
    let on_front = points.iter().zip(places).filter(|(point, _)| point.on_front);
    let mut front: Vec<(f64, f64)> = on_front.map(|(_, place)| *place).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(((x, y), rest)) = front.split_first() else { return String::new() };
    let mut path = format!("M{x:.1} {y:.1}");
    rest.iter().for_each(|(x, y)| _ = write!(path, "H{x:.1}V{y:.1}"));
    format!("<path class=\"front\" d=\"{path}H{RIGHT}\"/>")
}

/// Returns the label of each point, if there is room for it. Those of the front and of oracles are placed first.
fn labels(points: &[Point], places: &[(f64, f64)]) -> Vec<Option<Label>> {
    let mark = |(x, y): &(f64, f64)| Area { left: x - MARK, top: y - MARK, right: x + MARK, bottom: y + MARK };
    let mut taken: Vec<Area> = places.iter().map(mark).collect();
    let mut found = vec![None; points.len()];
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|n| (!(points[*n].on_front || points[*n].kind == RowKind::Oracle), points[*n].kind as u8));
    for n in order {
        let ((x, y), width) = (places[n], points[n].name.len() as f64 * CHARACTER);
        let beside = |down: f64| {
            let baseline = y + 4.0 + down;
            let right = Label { x: x + 8.0, baseline, anchor: "start", width };
            [right, Label { x: x - 8.0, anchor: "end", ..right }]
        };
        let fits = |label: &Label| {
            let area = label.area();
            let inside = area.left >= LEFT && area.right <= WIDTH && area.top >= 0.0 && area.bottom <= BOTTOM;
            inside && taken.iter().enumerate().all(|(m, other)| m == n || !area.overlaps(other))
        };
        let label = [-9.0, 11.0, 0.0, -18.0, 20.0, -27.0, 29.0].into_iter().flat_map(beside).find(fits);
        taken.extend(label.iter().map(Label::area));
        found[n] = label;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, queue_ms: f64, utilization: f64) -> Point {
        Point { name: name.to_owned(), kind: RowKind::Controller, queue_ms, utilization, on_front: false }
    }

    /// 1 ms and 100 ms are at the ends of the axis with a margin of a fifth, 10 ms is in their middle.
    #[test]
    fn delays_are_on_a_logarithmic_axis() {
        let axes = Axes::of(&[point("a", 1.0, 0.5), point("b", 100.0, 0.9)]);
        assert_eq!((axes.x(1.0 / 1.2), axes.x(120.0)), (LEFT, RIGHT));
        assert!((axes.x(10.0) - (LEFT + RIGHT) / 2.0).abs() < 1e-9);
        assert_eq!((axes.y(1.0), axes.y(0.5)), (TOP, BOTTOM));
        assert_eq!(axes.x(0.0), LEFT, "a delay of 0 is at the edge");
    }

    /// Of points in one place, labels take the free places around it; none covers another or leaves the drawing.
    #[test]
    fn labels_do_not_overlap() {
        let points: Vec<Point> = (0..30).map(|n| point(&format!("controller-{n}"), 10.0, 0.9)).collect();
        let axes = Axes::of(&points);
        let places: Vec<(f64, f64)> = points.iter().map(|p| (axes.x(p.queue_ms), axes.y(p.utilization))).collect();
        let areas: Vec<Area> = labels(&points, &places).iter().flatten().map(Label::area).collect();
        assert!((4..30).contains(&areas.len()), "{} labels", areas.len());
        for (n, area) in areas.iter().enumerate() {
            assert!(area.left >= 0.0 && area.right <= WIDTH && area.top >= 0.0 && area.bottom <= HEIGHT);
            assert!(areas[..n].iter().all(|other| !area.overlaps(other)));
        }
    }
}
