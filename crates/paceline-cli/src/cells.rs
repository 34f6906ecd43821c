//! Cells of a reproduction for people.

use crate::table::{kind_of, shown};
use paceline_lab::metrics::find;
use paceline_lab::reproduce::Cell;

/// What a cell is about: metric, case, flow, window.
pub fn place(cell: &Cell) -> [String; 4] {
    let (from, to) = cell.window_s;
    let window = if to > from { format!("{from} to {to} s") } else { String::new() };
    [cell.quantity(), cell.case.to_string(), cell.flow.clone().unwrap_or_default(), window]
}

/// A value of a cell: in its metric's unit; of a ratio, times; of a formula, with the digits that its tolerance needs.
pub fn value(value: Option<f64>, cell: &Cell) -> String {
    match (value, &cell.over) {
        (None, _) => "–".to_owned(),
        (Some(infinite), _) if infinite.is_infinite() => if infinite > 0.0 { "∞" } else { "-∞" }.to_owned(),
        (Some(ratio), Some(_)) => format!("× {ratio:.3}"),
        (Some(value), None) if find(&cell.metric).is_none() => format!("{value:.4}"),
        (Some(value), None) => shown(value, kind_of(&cell.metric)),
    }
}

/// The mean and its interval.
pub fn measured(cell: &Cell) -> String {
    match cell.ci95 {
        None => value(cell.measured, cell),
        Some(_) => format!("{} ± {}", value(cell.measured, cell), value(cell.ci95, cell).trim_start_matches("× ")),
    }
}

/// How many runs, of how many where some do not count.
pub fn runs(cell: &Cell) -> String {
    cell.left_out.map_or_else(|| cell.n.to_string(), |left_out| format!("{} of {}", cell.n, cell.n + left_out))
}

/// What the null sender comes to, with a star where that reproduces the cell too.
pub fn null(cell: &Cell) -> String {
    format!("{}{}", value(cell.null_sender, cell), if cell.null_reproduces { "*" } else { " " })
}
