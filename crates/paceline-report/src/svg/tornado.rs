//! What each constant does to a measure, the strongest on top: two bars from where it stands, one for its low value and one
//! for its high, each with the 95 % interval of the difference seed by seed.

use super::ink::{Ink, finished, text_width};
use super::layout::{MM, WIDTH};
use super::ticks;
use std::fmt::Write;

/// A panel of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Tornado {
    /// What changes.
    pub title: String,
    /// In which unit; empty for a plain number.
    pub unit: String,
    /// The constants, in any order.
    pub bars: Vec<Bar>,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name and its values.
    pub name: String,
    /// The change at its low and at its high value, with half of its interval; none: not known.
    pub changes: [Option<(f64, f64)>; 2],
}

/// What low and high look like.
const COLOURS: [&str; 2] = ["#56b4e9", "#d55e00"];
const ROW: i32 = 5 * MM;
const HEAD: i32 = 6 * MM;
const FOOT: i32 = 11 * MM;
const RIGHT: i32 = WIDTH - 4 * MM;

/// The panels, one above the other, as an SVG document: the same text for the same panels.
pub fn tornado(panels: &[Tornado]) -> String {
    let names = panels.iter().flat_map(|panel| &panel.bars).map(|bar| text_width(&bar.name));
    let left = names.max().unwrap_or(0).min(WIDTH / 2) + 4 * MM;
    let heights = panels.iter().map(|panel| HEAD + ROW * panel.bars.len() as i32 + FOOT);
    let size = (WIDTH, 5 * MM + heights.sum::<i32>());
    let (mut text, mut shapes) = (String::new(), String::new());
    let mut ink = Ink::new(&mut text, size);
    for (which, (colour, what)) in COLOURS.iter().zip(["low value", "high value"]).enumerate() {
        let x = left + 25 * MM * which as i32;
        rect(&mut shapes, (x, 2 * MM), (4 * MM, 3 * MM), colour);
        ink.tag((x + 5 * MM, 7 * MM / 2), what);
    }
    let mut y = 5 * MM;
    for panel in panels {
        let range = range(panel);
        let across = |value: f64| {
            let share = ((value - range.0) / (range.1 - range.0)).clamp(0.0, 1.0);
            left + (share * f64::from(RIGHT - left)).round() as i32
        };
        ink.tag((left, y + HEAD / 2), &panel.title);
        y += HEAD;
        let bottom = y + ROW * panel.bars.len() as i32;
        for bar in sorted(&panel.bars) {
            ink.label_left((left, y + ROW / 2), &bar.name);
            for (which, change) in bar.changes.iter().enumerate() {
                let Some((change, half)) = change else { continue };
                // The low value's bar is the upper half of the row.
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
        ink.part((across(0.0), bottom - ROW * panel.bars.len() as i32), (across(0.0), bottom));
        ink.frame((left, bottom - ROW * panel.bars.len() as i32), (RIGHT, bottom));
        for (value, label) in ticks(range, 5) {
            ink.tick_below((across(value), bottom), &label);
        }
        let unit = if panel.unit.is_empty() { String::new() } else { format!(" ({})", panel.unit) };
        ink.name_below(((left + RIGHT) / 2, bottom), &format!("change{unit}"));
        y = bottom + FOOT;
    }
    ink.close();
    let paper = text.find("/>").map_or(0, |at| at + 2);
    text.insert_str(paper, &format!("\n{shapes}"));
    finished(&text, size)
}

/// The largest change on top.
fn sorted(bars: &[Bar]) -> Vec<&Bar> {
    let most = |bar: &Bar| bar.changes.iter().flatten().map(|(change, _)| change.abs()).fold(0.0, f64::max);
    let mut bars: Vec<&Bar> = bars.iter().collect();
    bars.sort_by(|a, b| most(b).total_cmp(&most(a)));
    bars
}

/// From the least to the largest change, and some room; around zero.
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
    rect.expect("memory takes it");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, low: f64, high: f64) -> Bar {
        Bar { name: name.to_owned(), changes: [Some((low, 0.1)), Some((high, f64::INFINITY))] }
    }

    #[test]
    fn the_strongest_stands_on_top() {
        let bars = vec![bar("weak", 0.1, -0.2), bar("strong", -3.0, 1.0), bar("some", 0.0, 1.0)];
        let names: Vec<&str> = sorted(&bars).iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, ["strong", "some", "weak"]);
        let panel = Tornado { title: "sum".to_owned(), unit: String::new(), bars };
        let (low, high) = range(&panel);
        assert!((low - -3.305).abs() < 1e-9 && (high - 1.205).abs() < 1e-9, "{low} {high}");
        let drawn = tornado(&[panel]);
        let at = |name: &str| drawn.find(&format!("\n{name}\n")).unwrap_or_else(|| panic!("{name} in {drawn}"));
        assert!(at("strong") < at("some") && at("some") < at("weak"));
        // Two bars a constant, two samples, the paper.
        assert_eq!(drawn.matches("<rect").count(), 9);
    }

    #[test]
    fn nothing_that_changes_is_drawn_too() {
        let bars = vec![Bar { name: "still".to_owned(), changes: [Some((0.0, 0.0)), None] }];
        assert_eq!(range(&Tornado { title: String::new(), unit: String::new(), bars }), (-1.0, 1.0));
    }
}
