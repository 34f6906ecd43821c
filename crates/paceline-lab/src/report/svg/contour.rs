// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contour maps of a value over two parameters. The region at or above each level is one filled shape over the level below
//! (marching squares; D. Salomon, The Computer Graphics Manual, section 20.3).

use super::canvas::{Canvas, finish_document};
use super::style::{MM, Point, WIDTH};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    pub title: String,
    pub x: Scale,
    pub y: Scale,
    /// The values, with all values of the first x first; NaN for a missing value.
    pub values: Vec<f64>,
    /// Marked points: x, y, label and sign.
    pub marks: Vec<(f64, f64, String, Sign)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    pub name: String,
    pub values: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Disc,
    Cross,
}

/// Largest number of nodes per side. Larger maps are averaged, which has no visible effect.
const NODES: usize = 100;
/// Approximate number of bands.
const BANDS: f64 = 14.0;
/// Ratio of the largest to the smallest value from which an axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 30.0;

const LEFT: i32 = 15 * MM;
const SIDE: i32 = 58 * MM;
const TOP: i32 = 12 * MM;
const BAR: i32 = 4 * MM;

/// The perceptually uniform colour map viridis (van der Walt and Smith), from low to high.
const COLOURS: [(u8, u8, u8); 11] = [
    (68, 1, 84),
    (72, 36, 117),
    (65, 68, 135),
    (53, 95, 141),
    (42, 120, 142),
    (33, 145, 140),
    (34, 168, 132),
    (68, 191, 112),
    (122, 209, 81),
    (189, 223, 38),
    (253, 231, 37),
];

/// Returns the map as an SVG document. Equal maps give equal text.
pub fn contour(map: &Map) -> String {
    let (xs, ys, nodes) = averaged(map);
    let size = (WIDTH, TOP + SIDE + 11 * MM);
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);
    let across = |x: f64| LEFT + (map.x.share(x) * f64::from(SIDE)).round() as i32;
    let up = |y: f64| bottom - (map.y.share(y) * f64::from(SIDE)).round() as i32;

    let found = nodes.iter().copied().filter(|value| value.is_finite());
    let (low, high) = found.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let (mut shapes, mut text) = (String::new(), String::new());
    let mut canvas = Canvas::new(&mut text, size);
    canvas.title((LEFT, 5 * MM / 2), &map.title);
    if low.is_finite() {
        let levels = levels(low, high);
        let height = SIDE / levels.len() as i32;
        for (band, (level, name)) in levels.iter().zip(names(&levels)).enumerate() {
            let mut path = String::new();
            for shape in shapes_above(&nodes, xs.len(), ys.len(), *level) {
                let places = shape.iter().map(|(x, y)| (across(between(&xs, *x)), up(between(&ys, *y))));
                outline(&mut path, &simplify(places.collect()));
            }
            let fill = colour(band, levels.len());
            writeln!(shapes, r#"<path fill="{fill}" fill-rule="evenodd" d="{path}"/>"#).expect("infallible");
            let y = bottom - height * (band as i32 + 1);
            let x = right + 4 * MM;
            writeln!(shapes, r#"<rect fill="{fill}" x="{x}" y="{y}" width="{BAR}" height="{height}"/>"#)
                .expect("infallible");
            canvas.label_right((x + BAR, y + height), &name);
        }
    }
    canvas.frame((LEFT, TOP), (right, bottom));
    for (value, name) in map.x.ticks() {
        canvas.x_tick((across(value), bottom), &name);
    }
    for (value, name) in map.y.ticks() {
        canvas.y_tick((LEFT, up(value)), &name);
    }
    canvas.x_name(((LEFT + right) / 2, bottom), &map.x.name);
    canvas.y_name((0, (TOP + bottom) / 2), &map.y.name);
    let mut signs = String::new();
    for (row, (x, y, what, sign)) in map.marks.iter().enumerate() {
        sign.draw(&mut signs, (across(*x), up(*y)));
        let at = (LEFT + MM + (SIDE / 2 + 6 * MM) * row as i32, TOP - 7 * MM / 2);
        sign.draw(&mut signs, at);
        canvas.title((at.0 + 2 * MM, at.1), what);
    }
    canvas.close();
    // Draw order: background, shapes, everything else, signs.
    let paper = text.find("/>").map_or(0, |at| at + 2);
    text.insert_str(paper, &format!("\n{shapes}"));
    let end = text.rfind("</svg>").unwrap_or(text.len());
    text.insert_str(end, &signs);
    finish_document(&text, size)
}

impl Scale {
    fn ends(&self) -> (f64, f64) {
        (self.values.first().copied().unwrap_or(0.0), self.values.last().copied().unwrap_or(1.0))
    }

    pub fn is_logarithmic(&self) -> bool {
        let (low, high) = self.ends();
        low > 0.0 && high / low >= LOGARITHMIC_FROM
    }

    /// Returns the relative position of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.ends();
        let share = match self.is_logarithmic() {
            true => libm::log(value / low) / libm::log(high / low),
            false => (value - low) / (high - low),
        };
        share.clamp(0.0, 1.0)
    }

    pub fn contains(&self, value: f64) -> bool {
        let (low, high) = self.ends();
        (low..=high).contains(&value)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let (low, high) = self.ends();
        if self.is_logarithmic() {
            let decades = (libm::log10(low) - 1e-9).ceil() as i32..=(libm::log10(high) + 1e-9).floor() as i32;
            return decades.map(|decade| libm::pow(10.0, f64::from(decade))).map(|at| (at, number(at))).collect();
        }
        let step = step((high - low) / 6.0);
        let at = (low / step).ceil() as i64..=(high / step).floor() as i64;
        let at: Vec<f64> = at.map(|n| n as f64 * step).collect();
        let names = names(&at);
        at.into_iter().zip(names).collect()
    }
}

impl Sign {
    fn draw(self, text: &mut String, (x, y): Point) {
        let r = 14;
        let drawn = match self {
            Self::Disc => {
                format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"#fff\" stroke=\"#222\" stroke-width=\"6\"/>\n")
            }
            Self::Cross => {
                let (l, r, t, b) = (x - r, x + r, y - r, y + r);
                let d = format!("M{l} {t}L{r} {b}M{l} {b}L{r} {t}");
                format!(
                    "<path d=\"{d}\" stroke=\"#fff\" stroke-width=\"14\"/>\n<path d=\"{d}\" stroke=\"#d00\" stroke-width=\"6\"/>\n"
                )
            }
        };
        text.push_str(&drawn);
    }
}

fn colour(band: usize, bands: usize) -> String {
    let along = band as f64 * (COLOURS.len() - 1) as f64 / (bands.max(2) - 1) as f64;
    let low = (along as usize).min(COLOURS.len() - 2);
    let mix = |a: u8, b: u8| (f64::from(a) + (along - low as f64) * (f64::from(b) - f64::from(a))).round() as u8;
    let (from, to) = (COLOURS[low], COLOURS[low + 1]);
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if !(1e-3..1e4).contains(&v.abs()) => {
            let short = format!("{v:.2e}").parse().unwrap_or(v);
            format!("{short:e}").replace('-', "−")
        }
        v => format!("{}", (v * 1e4).round() / 1e4).replace('-', "−"),
    }
}

/// Formats equally spaced numbers with enough digits to distinguish them, in plain or scientific notation, whichever is
/// shorter.
fn names(steps: &[f64]) -> Vec<String> {
    let [first, second, ..] = steps else { return steps.iter().map(|value| number(*value)).collect() };
    let power = |value: f64| (libm::log10(value.abs()) + 1e-9).floor() as i32;
    let last = power(second - first);
    let scale = libm::pow(10.0, f64::from(-last.min(0)));
    let plain = |value: f64| format!("{}", (value * scale).round() / scale);
    let powers = |value: f64| format!("{value:.*e}", (power(value) - last).max(0) as usize);
    let all = |name: &dyn Fn(f64) -> String| -> Vec<String> {
        let name = |value: f64| if value == 0.0 { "0".to_owned() } else { name(value).replace('-', "−") };
        steps.iter().map(|value| name(*value)).collect()
    };
    let width = |names: &[String]| names.iter().map(|name| name.chars().count()).max();
    let (plain, powers) = (all(&plain), all(&powers));
    if width(&plain) <= width(&powers) { plain } else { powers }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `least`.
fn step(least: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(least).floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Returns the lower bounds of the bands: round numbers, the first at or below the smallest value.
fn levels(low: f64, high: f64) -> Vec<f64> {
    if high <= low {
        return vec![low];
    }
    let step = step((high - low) / BANDS);
    let first = (low / step).floor() as i64;
    (first..).map(|n| n as f64 * step).take_while(|level| *level < high).collect()
}

/// Reduces the map to at most [`NODES`] nodes per side by averaging.
fn averaged(map: &Map) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let groups = |values: &[f64]| -> Vec<std::ops::Range<usize>> {
        let each = values.len().div_ceil(NODES).max(1);
        (0..values.len()).step_by(each).map(|from| from..(from + each).min(values.len())).collect()
    };
    let (columns, rows) = (groups(&map.x.values), groups(&map.y.values));
    let places = |values: &[f64], groups: &[std::ops::Range<usize>]| -> Vec<f64> {
        let middle = |group: &std::ops::Range<usize>| (values[group.start] * values[group.end - 1]).max(0.0).sqrt();
        let mean = |group: &std::ops::Range<usize>| (values[group.start] + values[group.end - 1]) / 2.0;
        let all_positive = values.iter().all(|value| *value > 0.0);
        let mut places: Vec<f64> = groups.iter().map(|g| if all_positive { middle(g) } else { mean(g) }).collect();
        // The outermost nodes lie at the ends of the axes.
        if let (Some(first), Some(end)) = (places.first_mut(), values.first()) {
            *first = *end;
        }
        if let (Some(last), Some(end)) = (places.last_mut(), values.last()) {
            *last = *end;
        }
        places
    };
    let height = map.y.values.len();
    let mut nodes = Vec::new();
    for column in &columns {
        for row in &rows {
            let within = column.clone().flat_map(|x| row.clone().map(move |y| map.values[x * height + y]));
            let (sum, n) = within.filter(|v| v.is_finite()).fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
            nodes.push(if n > 0 { sum / f64::from(n) } else { f64::NAN });
        }
    }
    (places(&map.x.values, &columns), places(&map.y.values, &rows), nodes)
}

/// A side of a cell: the nodes at its ends.
type Side = [(i32, i32); 2];

/// Returns the outlines of the regions at or above a level, in node coordinates. Holes are separate outlines.
fn shapes_above(nodes: &[f64], width: usize, height: usize, level: f64) -> Vec<Vec<(f64, f64)>> {
    // A border below every level closes all outlines.
    let value = |x: i32, y: i32| match (usize::try_from(x), usize::try_from(y)) {
        (Ok(x), Ok(y)) if x < width && y < height => nodes[x * height + y],
        _ => f64::NEG_INFINITY,
    };
    let inside = |(x, y): (i32, i32)| value(x, y) >= level;
    // Maps each side where the outline leaves a cell to the side where it continues.
    let mut next: BTreeMap<Side, Side> = BTreeMap::new();
    let side = |a: (i32, i32), b: (i32, i32)| if a < b { [a, b] } else { [b, a] };
    for x in -1..width as i32 {
        for y in -1..height as i32 {
            let corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)];
            let crossings: Vec<(bool, [(i32, i32); 2])> = (0..4)
                .map(|n| (corners[n], corners[(n + 1) % 4]))
                .filter(|(a, b)| inside(*a) != inside(*b))
                .map(|(a, b)| (inside(a), side(a, b)))
                .collect();
            let middle = corners.iter().map(|(x, y)| value(*x, *y)).sum::<f64>() / 4.0;
            let ahead = if crossings.len() == 4 && middle < level { 3 } else { 1 };
            for (n, (leaves, at)) in crossings.iter().enumerate() {
                if *leaves {
                    next.insert(*at, crossings[(n + ahead) % crossings.len()].1);
                }
            }
        }
    }
    let crossing = |[a, b]: [(i32, i32); 2]| {
        let (low, high) = (value(a.0, a.1), value(b.0, b.1));
        let share = match (low.is_finite(), high.is_finite()) {
            (true, true) => (level - low) / (high - low),
            (true, false) => 0.0,
            _ => 1.0,
        };
        let mix = |a: i32, b: i32| f64::from(a) + share * f64::from(b - a);
        (mix(a.0, b.0), mix(a.1, b.1))
    };
    let mut shapes = Vec::new();
    while let Some((&first, _)) = next.iter().next() {
        let (mut at, mut shape) = (first, Vec::new());
        while let Some(on) = next.remove(&at) {
            shape.push(crossing(at));
            at = on;
        }
        shapes.push(shape);
    }
    shapes
}

/// Interpolates a value at a fractional node coordinate.
fn between(values: &[f64], at: f64) -> f64 {
    let low = (at.floor().max(0.0) as usize).min(values.len() - 1);
    let high = (low + 1).min(values.len() - 1);
    let share = at - low as f64;
    if values[low] > 0.0 && values[high] > 0.0 {
        return values[low] * libm::pow(values[high] / values[low], share);
    }
    values[low] + share * (values[high] - values[low])
}

/// Removes points that coincide with the previous one or lie on a straight line.
fn simplify(places: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for place in places {
        if kept.last().is_some_and(|last| (last.0 - place.0).abs() + (last.1 - place.1).abs() < 4) {
            continue;
        }
        if let [.., a, b] = kept[..] {
            let turn = (b.0 - a.0) * (place.1 - b.1) - (b.1 - a.1) * (place.0 - b.0);
            let ahead = (b.0 - a.0) * (place.0 - b.0) + (b.1 - a.1) * (place.1 - b.1);
            if turn == 0 && ahead > 0 {
                kept.pop();
            }
        }
        kept.push(place);
    }
    kept
}

fn outline(path: &mut String, places: &[Point]) {
    if places.len() < 3 {
        return;
    }
    let mut last = places[0];
    write!(path, "M{} {}l", last.0, last.1).expect("infallible");
    for place in &places[1..] {
        let (dx, dy) = (place.0 - last.0, place.1 - last.1);
        let space = |number: i32| if number < 0 { "" } else { " " };
        write!(path, "{}{dx}{}{dy}", space(dx), space(dy)).expect("infallible");
        last = *place;
    }
    path.push('z');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the enclosed area; holes are subtracted.
    fn area(shapes: &[Vec<(f64, f64)>]) -> f64 {
        let of = |shape: &Vec<(f64, f64)>| -> f64 {
            let next = shape.iter().cycle().skip(1);
            shape.iter().zip(next).map(|(a, b)| a.0 * b.1 - a.1 * b.0).sum::<f64>() / 2.0
        };
        shapes.iter().map(of).sum::<f64>()
    }

    #[test]
    fn outlines_match_known_areas() {
        // A peak of 1 among zeros: at level 0.5 a diamond with half-diagonals of 0.5, area 0.5.
        let peak = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let shapes = shapes_above(&peak, 3, 3, 0.5);
        assert_eq!((shapes.len(), area(&shapes)), (1, 0.5));
        // All nodes: a square of 2 by 2.
        let all = shapes_above(&peak, 3, 3, -1.0);
        assert!((area(&all) - 4.0).abs() < 1e-9, "{all:?}");
        // A hole: the square minus the diamond.
        let hole: Vec<f64> = peak.iter().map(|v| 1.0 - v).collect();
        let shapes = shapes_above(&hole, 3, 3, 0.5);
        assert_eq!(shapes.len(), 2);
        assert!((area(&shapes) - 3.5).abs() < 1e-9, "{shapes:?}");
        assert!(shapes_above(&peak, 3, 3, 2.0).is_empty());
        // Two opposite corners of a cell, separate or connected.
        assert_eq!(shapes_above(&[1.0, 0.0, 0.0, 1.0], 2, 2, 0.6).len(), 2);
        assert_eq!(shapes_above(&[1.0, 0.0, 0.0, 1.0], 2, 2, 0.4).len(), 1);
    }

    #[test]
    fn labels_are_distinct() {
        let of = |low: f64, high: f64| names(&levels(low, high));
        assert_eq!(of(1_000_000.0, 1_130_000.0)[..4], ["1.00e6", "1.01e6", "1.02e6", "1.03e6"]);
        assert_eq!(of(-120_000.0, 900_000.0)[..4], ["−2e5", "−1e5", "0", "1e5"]);
        assert_eq!(of(0.9952, 1.004)[..3], ["0.995", "0.996", "0.997"]);
        assert_eq!(of(0.0, 0.0007)[..3], ["0", "5e−5", "1.0e−4"]);
        for (low, high) in [(0.0, 1.0), (9_000.0, 11_000.0), (99_990.0, 100_003.0), (-1e-7, 3e-9), (1e6, 1e7)] {
            let names = of(low, high);
            let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
            assert!(names.len() > 5 && distinct.len() == names.len(), "{names:?}");
        }
        let rates = Scale { name: String::new(), values: vec![250_000.0, 500_000.0] };
        let ticks: Vec<String> = rates.ticks().into_iter().map(|(_, name)| name).collect();
        assert_eq!(ticks, ["2.5e5", "3.0e5", "3.5e5", "4.0e5", "4.5e5", "5.0e5"]);
        assert_eq!([350_000.0, 1e6, 1e-5, 0.1234].map(number), ["3.5e5", "1e6", "1e−5", "0.1234"]);
    }

    #[test]
    fn levels_are_round_numbers() {
        assert_eq!(names(&levels(0.03, 1.2))[..3], ["0", "0.1", "0.2"]);
        assert_eq!(levels(-3.0, 2.0), [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5]);
        assert_eq!(levels(1.0, 1.0), [1.0]);
        let ends = [0, 6].map(|band| colour(band, 7));
        assert_eq!((ends, colour(0, 1)), (["#440154", "#fde725"].map(str::to_owned), "#440154".to_owned()));
    }
}
