// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tornado diagrams: the effect of each constant on a measure, sorted by size. A constant has one bar for its low value and
//! one for its high value, each with the 95 % interval of the difference paired by seed.

use super::canvas::{Canvas, finish_document};
use super::style::{MM, WIDTH, text_width};
use super::ticks;
use std::fmt::Write;

#[derive(Clone, Debug, PartialEq)]
pub struct Tornado {
    pub title: String,
    /// Unit; empty for a plain number.
    pub unit: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub name: String,
    /// The change at the low and the high value, with half of its interval; `None` if unknown.
    pub changes: [Option<(f64, f64)>; 2],
}

/// Colours of low and high.
const COLOURS: [&str; 2] = ["#56b4e9", "#d55e00"];
const ROW: i32 = 5 * MM;
const HEAD: i32 = 6 * MM;
const FOOT: i32 = 11 * MM;
const RIGHT: i32 = WIDTH - 4 * MM;

/// Returns the stacked panels as an SVG document. Equal panels give equal text.
pub fn tornado(panels: &[Tornado]) -> String {
    let names = panels.iter().flat_map(|panel| &panel.bars).map(|bar| text_width(&bar.name));
    let left = names.max().unwrap_or(0).min(WIDTH / 2) + 4 * MM;
    let heights = panels.iter().map(|panel| HEAD + ROW * panel.bars.len() as i32 + FOOT);
    let size = (WIDTH, 5 * MM + heights.sum::<i32>());
    let (mut text, mut shapes) = (String::new(), String::new());
    let mut canvas = Canvas::new(&mut text, size);
    for (which, (colour, what)) in COLOURS.iter().zip(["low value", "high value"]).enumerate() {
        let x = left + 25 * MM * which as i32;
        rect(&mut shapes, (x, 2 * MM), (4 * MM, 3 * MM), colour);
        canvas.title((x + 5 * MM, 7 * MM / 2), what);
    }
    let mut y = 5 * MM;
    for panel in panels {
        let range = range(panel);
        let across = |value: f64| {
            let share = ((value - range.0) / (range.1 - range.0)).clamp(0.0, 1.0);
            left + (share * f64::from(RIGHT - left)).round() as i32
        };
        canvas.title((left, y + HEAD / 2), &panel.title);
        y += HEAD;
        let bottom = y + ROW * panel.bars.len() as i32;
        for bar in sorted(&panel.bars) {
            canvas.label_left((left, y + ROW / 2), &bar.name);
            for (which, change) in bar.changes.iter().enumerate() {
                let Some((change, half)) = change else { continue };
                // The bar of the low value is in the upper half of the row.
                let (top, height) = (y + ROW / 8 + which as i32 * ROW * 3 / 8, ROW * 3 / 8);
                let (zero, end) = (across(0.0), across(*change));
                rect(&mut shapes, (zero.min(end), top), ((end - zero).abs().max(2), height), COLOURS[which]);
                if half.is_finite() {
                    let at = top + height / 2;
                    let (from, to) = (across(change - half), across(change + half));
                    let line = format!("<path d=\"M{from} {at}L{to} {at}\" stroke=\"#222\" stroke-width=\"4\"/>\n");
                    shapes.push_str(&line);
                }
            }
            y += ROW;
        }
        canvas.separator((across(0.0), bottom - ROW * panel.bars.len() as i32), (across(0.0), bottom));
        canvas.frame((left, bottom - ROW * panel.bars.len() as i32), (RIGHT, bottom));
        for (value, label) in ticks(range, 5) {
            canvas.x_tick((across(value), bottom), &label);
        }
        let unit = if panel.unit.is_empty() { String::new() } else { format!(" ({})", panel.unit) };
        canvas.x_name(((left + RIGHT) / 2, bottom), &format!("change{unit}"));
        y = bottom + FOOT;
    }
    canvas.close();
    let paper = text.find("/>").map_or(0, |at| at + 2);
    text.insert_str(paper, &format!("\n{shapes}"));
    finish_document(&text, size)
}

fn sorted(bars: &[Bar]) -> Vec<&Bar> {
    let most = |bar: &Bar| bar.changes.iter().flatten().map(|(change, _)| change.abs()).fold(0.0, f64::max);
    let mut bars: Vec<&Bar> = bars.iter().collect();
    bars.sort_by(|a, b| most(b).total_cmp(&most(a)));
    bars
}

fn range(panel: &Tornado) -> (f64, f64) {
    let ends = panel.bars.iter().flat_map(|bar| bar.changes.iter().flatten()).flat_map(|(change, half)| {
        let half = if half.is_finite() { *half } else { 0.0 };
        [change - half, change + half]
    });
    let (low, high) = ends.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
    match high - low {
        0.0 => (-1.0, 1.0),
        span => (low - 0.05 * span, high + 0.05 * span),
    }
}

fn rect(text: &mut String, (x, y): (i32, i32), (width, height): (i32, i32), fill: &str) {
    let rect = writeln!(text, r#"<rect fill="{fill}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#);
    rect.expect("infallible");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, low: f64, high: f64) -> Bar {
        Bar { name: name.to_owned(), changes: [Some((low, 0.1)), Some((high, f64::INFINITY))] }
    }

    #[test]
    fn sorts_bars_by_effect() {
        let bars = vec![bar("weak", 0.1, -0.2), bar("strong", -3.0, 1.0), bar("some", 0.0, 1.0)];
        let names: Vec<&str> = sorted(&bars).iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, ["strong", "some", "weak"]);
        let panel = Tornado { title: "sum".to_owned(), unit: String::new(), bars };
        let (low, high) = range(&panel);
        assert!((low - -3.305).abs() < 1e-9 && (high - 1.205).abs() < 1e-9, "{low} {high}");
        let drawn = tornado(&[panel]);
        let at = |name: &str| drawn.find(&format!("\n{name}\n")).unwrap_or_else(|| panic!("{name} in {drawn}"));
        assert!(at("strong") < at("some") && at("some") < at("weak"));
        // Two bars per constant, two samples, the background.
        assert_eq!(drawn.matches("<rect").count(), 9);
    }

    #[test]
    fn range_without_changes_is_not_empty() {
        let bars = vec![Bar { name: "still".to_owned(), changes: [Some((0.0, 0.0)), None] }];
        assert_eq!(range(&Tornado { title: String::new(), unit: String::new(), bars }), (-1.0, 1.0));
    }
}
