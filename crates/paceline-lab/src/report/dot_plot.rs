// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws points as a row for each controller and a column for each family or path, with intervals.

use crate::report::escaped;
use crate::results::RowKind;
use std::fmt::Write as _;

/// Width of the names.
const NAMES: f64 = 180.0;
/// Height of the headings and of a row.
const HEADING: f64 = 34.0;
const ROW: f64 = 20.0;
/// With more columns, a narrow page scrolls the picture.
const FEW: usize = 6;

pub(crate) struct DotPlot<'a> {
    pub(crate) label: &'static str,
    /// The values at the ends of an axis. Lower ones are drawn as an arrow.
    pub(crate) ends: (f64, f64),
    /// Width of an axis, and of the gap to the next.
    pub(crate) axis: f64,
    pub(crate) gap: f64,
    pub(crate) columns: Vec<&'a str>,
    pub(crate) rows: Vec<DotRow<'a>>,
}

/// The points of a controller, one for each column.
pub(crate) struct DotRow<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: RowKind,
    pub(crate) dots: Vec<Option<Dot>>,
}

/// A value, half of its interval, and its description.
pub(crate) struct Dot {
    pub(crate) value: f64,
    pub(crate) interval: Option<f64>,
    pub(crate) title: String,
}

impl DotPlot<'_> {
    /// Returns where a value is on an axis that starts at `left`.
    fn place(&self, left: f64, points: f64) -> f64 {
        let (lowest, highest) = self.ends;
        left + (points.clamp(lowest, highest) - lowest) / (highest - lowest) * self.axis
    }

    /// Returns the picture, whose colours are those of the page.
    pub(crate) fn draw(&self) -> String {
        let column = self.axis + self.gap;
        let (width, bottom) = (NAMES + column * self.columns.len() as f64, HEADING + ROW * self.rows.len() as f64);
        let height = bottom + 20.0;
        let size = if self.columns.len() > FEW { "scores many" } else { "scores" };
        let mut svg = format!(
            "<svg class=\"{size}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{}\">",
            self.label
        );
        let left = |number: usize| NAMES + column * number as f64;
        for (number, name) in self.columns.iter().enumerate() {
            let (left, middle) = (left(number), left(number) + self.axis / 2.0);
            _ = write!(
                svg,
                "<text class=\"head\" x=\"{middle}\" y=\"14\" text-anchor=\"middle\">{}</text>",
                escaped(name)
            );
            for end in [0.0, 100.0] {
                let (x, top, below) = (self.place(left, end), HEADING - 4.0, bottom + 14.0);
                _ = write!(svg, "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>");
                _ = write!(svg, "<text class=\"tick\" x=\"{x}\" y=\"{below}\" text-anchor=\"middle\">{end}</text>");
            }
        }
        for (n, row) in self.rows.iter().enumerate() {
            let (middle, class) = (HEADING + ROW * (n as f64 + 0.5), class(row.kind));
            let (x, baseline, name) = (NAMES - 12.0, middle + 4.0, escaped(row.name));
            _ = write!(svg, "<g class=\"{class}\"><text x=\"{x}\" y=\"{baseline}\" text-anchor=\"end\">{name}</text>");
            for (number, dot) in row.dots.iter().enumerate() {
                self.mark(&mut svg, dot.as_ref(), left(number), middle);
            }
            svg += "</g>";
        }
        svg + "</svg>"
    }

    /// Draws a value with its interval, or an arrow for one that is below the axis.
    fn mark(&self, svg: &mut String, dot: Option<&Dot>, left: f64, y: f64) {
        let Some(Dot { value, interval, title }) = dot else { return };
        let x = self.place(left, *value);
        _ = write!(svg, "<g><title>{title}</title>");
        if let Some(interval) = interval.filter(|interval| *interval > 0.0) {
            let [from, to] = [-interval, interval].map(|side| self.place(left, value + side));
            _ = write!(svg, "<line class=\"interval\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y}\" y2=\"{y}\"/>");
        }
        match *value < self.ends.0 {
            true => _ = write!(svg, "<path d=\"M{x:.1} {y}l7 -4v8z\"/>"),
            false => _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"4\"/>"),
        }
        *svg += "</g>";
    }
}

fn class(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Controller => "own",
        RowKind::OtherImplementation => "other",
        RowKind::Oracle => "oracle",
        RowKind::Faulty => "faulty",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 and 100 are at 50/160 and 150/160 of the axis, and its ends hold what is beyond.
    #[test]
    fn values_are_on_the_axis_of_their_column() {
        let plot =
            DotPlot { label: "", ends: (-50.0, 110.0), axis: 80.0, gap: 16.0, columns: Vec::new(), rows: Vec::new() };
        assert_eq!([-50.0, 0.0, 100.0, 110.0].map(|points| plot.place(10.0, points)), [10.0, 35.0, 85.0, 90.0]);
        assert_eq!([-300.0, 400.0].map(|points| plot.place(10.0, points)), [10.0, 90.0]);
    }
}
