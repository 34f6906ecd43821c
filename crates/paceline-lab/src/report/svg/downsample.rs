// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reduces series to the points that a drawing can show: the first, smallest, largest and last of each column.

use super::style::Point;
use crate::report::figure::{Series, SeriesKind};

/// Width of a column, in units of the drawing.
pub const COLUMN: i32 = 5;

/// Returns the lines of a series, interrupted at missing values.
pub(super) fn lines(series: &Series, place: impl Fn(f64, f64) -> Point) -> Vec<Vec<Point>> {
    let mut lines = vec![Vec::new()];
    let mut before = f64::NAN;
    for (x, y) in series.x.iter().copied().zip(series.y.iter().copied()) {
        let holds = series.kind == SeriesKind::Steps && !before.is_nan();
        let line = lines.last_mut().expect("there is one");
        line.extend(holds.then(|| place(x, before)));
        if y.is_nan() {
            lines.push(Vec::new());
        } else {
            line.push(place(x, y));
        }
        before = y;
    }
    lines.retain(|line| !line.is_empty());
    lines.iter().map(|line| simplify(&columns(line))).collect()
}

/// Returns the points of a series. Of points in the same cell of `grain` units, only the first is kept.
pub(super) fn points(series: &Series, grain: i32, place: impl Fn(f64, f64) -> Point) -> Vec<Point> {
    let places = series.x.iter().zip(&series.y).filter(|(_, y)| !y.is_nan()).map(|(x, y)| place(*x, *y));
    let mut seen = std::collections::BTreeSet::new();
    places.filter(|(x, y)| seen.insert((x / grain, y / grain))).collect()
}

fn columns(line: &[Point]) -> Vec<Point> {
    let mut kept = Vec::new();
    for column in line.chunk_by(|a, b| a.0 / COLUMN == b.0 / COLUMN) {
        let (least, largest) = column.iter().enumerate().fold((0, 0), |(low, high), (index, place)| {
            let low = if place.1 < column[low].1 { index } else { low };
            (low, if place.1 > column[high].1 { index } else { high })
        });
        let mut shown = [0, least, largest, column.len() - 1];
        shown.sort_unstable();
        kept.extend(shown.map(|index| column[index]));
    }
    kept.dedup();
    kept
}

/// Removes points between two others on a horizontal or vertical line.
fn simplify(line: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for &place in line {
        if let [.., a, b] = kept[..] {
            let level = a.1 == b.1 && b.1 == place.1;
            let upright = a.0 == b.0 && b.0 == place.0 && (a.1 <= b.1) == (b.1 <= place.1);
            if level || upright {
                kept.pop();
            }
        }
        kept.push(place);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::Role;

    fn series(kind: SeriesKind, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let mut series = Series::new("s", "s", 0, Role::Main, kind);
        points.into_iter().for_each(|(x, y)| series.push(x, y));
        series
    }

    fn place(x: f64, y: f64) -> Point {
        (x as i32, y as i32)
    }

    #[test]
    fn columns_keep_ends_and_extremes() {
        let many = (0..1000).map(|n| (f64::from(n) / 200.0, f64::from(n * 7 % 100)));
        let lines = lines(&series(SeriesKind::Line, many), place);
        let [line] = &lines[..] else { panic!("one line") };
        assert!((2..=4).contains(&line.len()), "{line:?}");
        assert_eq!((line[0], line[line.len() - 1]), ((0, 0), (4, 93)));
        let heights: Vec<i32> = line.iter().map(|place| place.1).collect();
        assert!(heights.contains(&0) && heights.contains(&99), "{heights:?}");
    }

    #[test]
    fn draws_steps_and_interrupts_lines_at_missing_values() {
        let steps = series(SeriesKind::Steps, [(0.0, 1.0), (10.0, 1.0), (20.0, 5.0), (30.0, f64::NAN), (40.0, 2.0)]);
        assert_eq!(lines(&steps, place), [vec![(0, 1), (20, 1), (20, 5), (30, 5)], vec![(40, 2)]]);
    }

    #[test]
    fn merges_overlapping_points() {
        let points_of = |all: &[(f64, f64)]| points(&series(SeriesKind::Points, all.iter().copied()), 4, place).len();
        assert_eq!(points_of(&[(0.0, 0.0), (1.0, 1.0), (9.0, 1.0)]), 2);
    }
}
