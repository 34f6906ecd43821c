// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws states as bars, one row per state, and other bands as shades over the whole panel.

use super::canvas::{Canvas, SHADE};
use super::downsample;
use super::layout::Frame;
use super::style::{SeriesStyles, Style};
use crate::report::figure::{Panel, Series};

/// Draws the bars. Bars of several flows share a row, one below the other.
pub(super) fn draw(canvas: &mut Canvas<'_>, frame: &Frame, panel: &Panel, styles: &SeriesStyles) {
    for (index, state) in frame.rows.iter().enumerate() {
        if index > 0 && frame.rows[index - 1].of != state.of {
            canvas.separator((frame.left, state.top), (frame.right, state.top));
        }
        let of_row: Vec<&Series> = panel.series.iter().filter(|series| series.id == state.of).collect();
        let share = (state.bottom - state.top) / of_row.len() as i32;
        for (row, series) in of_row.into_iter().enumerate() {
            let top = state.top + share * row as i32;
            let style = styles.style(panel, series);
            for (from, to) in ranges(frame, series, |y| y == state.index as f64) {
                canvas.bar((from, top + share / 6), (to, top + share - share / 6), style, 1.0);
            }
        }
    }
}

/// Shades the whole height of the panel while a series has any state.
pub(super) fn shade(canvas: &mut Canvas<'_>, frame: &Frame, series: &Series, style: Style) {
    for (from, to) in ranges(frame, series, |y| !y.is_nan()) {
        canvas.bar((from, frame.top), (to, frame.bottom), style, SHADE);
    }
}

/// Returns the horizontal ranges in which a predicate on the value holds. Ranges closer than half a column are merged.
fn ranges(frame: &Frame, series: &Series, is: impl Fn(f64) -> bool) -> Vec<(i32, i32)> {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for at in (0..series.len()).filter(|at| is(series.y[*at])) {
        let Some(until) = series.x.get(at + 1) else { continue };
        let (from, to) = (frame.across(series.x[at]), frame.across(*until));
        // Every state must be visible.
        let to = to.max(from + downsample::COLUMN / 2);
        match ranges.last_mut() {
            Some(last) if from - last.1 < downsample::COLUMN / 2 => last.1 = last.1.max(to),
            _ => ranges.push((from, to)),
        }
    }
    ranges
}
