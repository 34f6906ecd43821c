// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the scores of the possible: a row for each controller, a column for each family, from the constant rate at 0 to the oracle at 100.

use super::{Board, Points};
use crate::report::dot_plot::{Dot, DotPlot, DotRow};

/// Returns the picture, whose colours are those of the page.
pub(super) fn draw(board: &Board) -> String {
    let is_one = board.families.len() == 1;
    let all = (!is_one).then_some("all");
    let columns = match board.families.as_slice() {
        [_] => vec!["of the possible"],
        families => all.into_iter().chain(families.iter().map(|(name, _)| name.as_str())).collect(),
    };
    let dot = |points: &Points| {
        let possible = points.0?;
        Some(Dot { value: possible.points, interval: possible.interval, title: points.title() })
    };
    let rows = board.groups.iter().flat_map(|group| &group.rows).filter(|row| row.all.0.is_some());
    let rows = rows.map(|row| DotRow {
        name: &row.controller,
        kind: row.kind,
        dots: all.map(|_| &row.all).into_iter().chain(&row.families).map(dot).collect(),
    });
    let label = "Score of the possible by family";
    DotPlot { label, ends: (-50.0, 110.0), axis: 80.0, gap: 16.0, columns, rows: rows.collect() }.draw()
}

/// The style of a picture that is a file of its own.
const ALONE: &str = "svg{background:#fff;font:12px sans-serif}.grid{stroke:#bbb}text{fill:#222}.tick,.faulty text{fill:#666}\
    .head{font-weight:600}.interval{stroke:#2a6fb0;opacity:.45;stroke-width:3}.own circle,.own path,.other circle,.other path{fill:#2a6fb0}\
    .faulty .interval{stroke:#c0392b}.faulty circle,.faulty path{fill:#c0392b}.oracle circle{fill:#222}";

pub(super) fn draw_alone(board: &Board) -> String {
    let drawn = draw(board).replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    drawn.replacen('>', &format!("><style>{ALONE}</style>"), 1) + "\n"
}
