//! Draws the scores of the possible: a row for each controller, a column for each family, from the constant rate at 0 to the oracle at 100.

use super::{Board, Points};
use crate::report::escaped;
use crate::results::RowKind;
use std::fmt::Write as _;

/// Width of the names, of a column, and of its axis.
const NAMES: f64 = 180.0;
const COLUMN: f64 = 96.0;
const AXIS: f64 = 80.0;
/// Height of the headings and of a row.
const HEADING: f64 = 34.0;
const ROW: f64 = 20.0;
/// With more columns, a narrow page scrolls the picture.
const FEW: usize = 6;
/// The values at the ends of an axis. Lower ones are drawn as an arrow.
const LOWEST: f64 = -50.0;
const HIGHEST: f64 = 110.0;

/// Returns where a value is on an axis that starts at `left`.
fn place(left: f64, points: f64) -> f64 {
    left + (points.clamp(LOWEST, HIGHEST) - LOWEST) / (HIGHEST - LOWEST) * AXIS
}

/// Returns the picture, whose colours are those of the page.
pub(super) fn draw(board: &Board) -> String {
    let rows: Vec<_> = board.groups.iter().flat_map(|group| &group.rows).filter(|row| row.all.0.is_some()).collect();
    let names: Vec<&str> = match board.families.as_slice() {
        [_] => vec!["of the possible"],
        families => ["all"].into_iter().chain(families.iter().map(|(name, _)| name.as_str())).collect(),
    };
    let (width, bottom) = (NAMES + COLUMN * names.len() as f64, HEADING + ROW * rows.len() as f64);
    let height = bottom + 20.0;
    let size = if names.len() > FEW { "scores many" } else { "scores" };
    let mut svg = format!(
        "<svg class=\"{size}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" \
         aria-label=\"Score of the possible by family\">"
    );
    let left = |column: usize| NAMES + COLUMN * column as f64;
    for (column, name) in names.iter().enumerate() {
        let (left, middle) = (left(column), left(column) + AXIS / 2.0);
        _ = write!(svg, "<text class=\"head\" x=\"{middle}\" y=\"14\" text-anchor=\"middle\">{}</text>", escaped(name));
        for end in [0.0, 100.0] {
            let (x, top, below) = (place(left, end), HEADING - 4.0, bottom + 14.0);
            _ = write!(svg, "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>");
            _ = write!(svg, "<text class=\"tick\" x=\"{x}\" y=\"{below}\" text-anchor=\"middle\">{end}</text>");
        }
    }
    for (n, row) in rows.iter().enumerate() {
        let (middle, class) = (HEADING + ROW * (n as f64 + 0.5), class(row.kind));
        let (x, baseline, name) = (NAMES - 12.0, middle + 4.0, escaped(&row.controller));
        _ = write!(svg, "<g class=\"{class}\"><text x=\"{x}\" y=\"{baseline}\" text-anchor=\"end\">{name}</text>");
        let families = || row.families.iter();
        let columns: Vec<&Points> = match names.len() {
            1 => families().collect(),
            _ => [&row.all].into_iter().chain(families()).collect(),
        };
        for (column, points) in columns.into_iter().enumerate() {
            mark(&mut svg, points, left(column), middle);
        }
        svg += "</g>";
    }
    svg + "</svg>"
}

/// Draws a value with its interval, or an arrow for one that is below the axis.
fn mark(svg: &mut String, points: &Points, left: f64, y: f64) {
    let Some(possible) = points.0 else { return };
    let (x, title) = (place(left, possible.points), points.title());
    _ = write!(svg, "<g><title>{title}</title>");
    if let Some(interval) = possible.interval.filter(|interval| *interval > 0.0) {
        let [from, to] = [-interval, interval].map(|side| place(left, possible.points + side));
        _ = write!(svg, "<line class=\"interval\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    match possible.points < LOWEST {
        true => _ = write!(svg, "<path d=\"M{x:.1} {y}l7 -4v8z\"/>"),
        false => _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"4\"/>"),
    }
    *svg += "</g>";
}

fn class(kind: RowKind) -> &'static str {
    match kind {
        RowKind::Controller => "own",
        RowKind::OtherImplementation => "other",
        RowKind::Oracle => "oracle",
        RowKind::Faulty => "faulty",
    }
}

/// The style of a picture that is a file of its own.
const ALONE: &str = "svg{background:#fff;font:12px sans-serif}.grid{stroke:#bbb}text{fill:#222}.tick,.faulty text{fill:#666}\
    .head{font-weight:600}.interval{stroke:#2a6fb0;opacity:.45;stroke-width:3}.own circle,.own path,.other circle,.other path{fill:#2a6fb0}\
    .faulty .interval{stroke:#c0392b}.faulty circle,.faulty path{fill:#c0392b}.oracle circle{fill:#222}";

/// Draws the picture as an SVG file.
pub(super) fn draw_alone(board: &Board) -> String {
    let drawn = draw(board).replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    drawn.replacen('>', &format!("><style>{ALONE}</style>"), 1) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 and 100 are at 50/160 and 150/160 of the axis, and its ends hold what is beyond.
    #[test]
    fn values_are_on_the_axis_of_their_column() {
        assert_eq!([-50.0, 0.0, 100.0, 110.0].map(|points| place(10.0, points)), [10.0, 35.0, 85.0, 90.0]);
        assert_eq!([-300.0, 400.0].map(|points| place(10.0, points)), [10.0, 90.0]);
    }
}
