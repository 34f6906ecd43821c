//! Cells of a reproduction in words, for the terminal and the pages.

use paceline_lab::metrics::{Kind, find};
use paceline_lab::reproduce::Cell;

/// What a cell is about: metric, case, flow, window.
pub fn place(cell: &Cell) -> [String; 4] {
    let (from, to) = cell.window_s;
    let window = if to > from { format!("{from} to {to} s") } else { String::new() };
    [cell.quantity(), cell.case.to_string(), cell.flow.clone().unwrap_or_default(), window]
}

/// A value of a cell: in its metric's unit; of a ratio, times; of a formula, with the digits that its tolerance needs.
pub fn value(value: Option<f64>, cell: &Cell) -> String {
    let kind = || find(&cell.metric).map_or(Kind::Number, |metric| metric.kind);
    match (value, &cell.over) {
        (None, _) => "–".to_owned(),
        (Some(infinite), _) if infinite.is_infinite() => if infinite > 0.0 { "∞" } else { "-∞" }.to_owned(),
        (Some(ratio), Some(_)) => format!("× {ratio:.3}"),
        (Some(value), None) if find(&cell.metric).is_none() => format!("{value:.4}"),
        (Some(value), None) => kind().show(value),
    }
}

/// A mean of a cell and its interval, if it has one.
fn with_interval(mean: Option<f64>, ci95: Option<f64>, cell: &Cell) -> String {
    match ci95 {
        None => value(mean, cell),
        Some(_) => format!("{} ± {}", value(mean, cell), size(ci95, cell)),
    }
}

/// How large a difference of a cell is.
fn size(difference: Option<f64>, cell: &Cell) -> String {
    value(difference, cell).trim_start_matches("× ").to_owned()
}

/// The mean and its interval.
pub fn measured(cell: &Cell) -> String {
    with_interval(cell.measured, cell.ci95, cell)
}

/// The mean and interval of the world that stands beside it.
pub fn beside(cell: &Cell) -> String {
    cell.beside.as_ref().map_or(String::new(), |other| with_interval(other.measured, other.ci95, cell))
}

/// How far from the published value it may lie, or the bounds of a claim.
pub fn tolerance(cell: &Cell) -> String {
    let end = |end: f64| Some(end).filter(|end| end.is_finite()).map(|end| value(Some(end), cell));
    match (cell.tolerance, cell.bounds.map(|(low, high)| (end(low), end(high)))) {
        (Some(_), _) => format!("± {}", size(cell.tolerance, cell)),
        (None, Some((Some(low), Some(high)))) => format!("{low} to {high}"),
        (None, Some((Some(low), None))) => format!("at least {low}"),
        (None, Some((None, Some(high)))) => format!("at most {high}"),
        (None, Some((None, None)) | None) => "–".to_owned(),
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

/// The note, and what the changes that it names come to.
pub fn note(cell: &Cell) -> Option<String> {
    let then = |mean, ci95| format!(": {}", with_interval(mean, ci95, cell));
    let then = cell.moved.as_ref().map_or(String::new(), |moved| then(moved.measured, moved.ci95));
    cell.note.as_ref().map(|note| note.clone() + &then)
}
