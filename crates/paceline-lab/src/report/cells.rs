// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats cells of a reproduction for the terminal and the pages.

use crate::report::check_text::ValueText;
use crate::results::Cell;
use paceline_netsim::records::MetricCatalogue;

#[derive(Clone, Copy, Debug)]
pub struct CellText {
    metrics: MetricCatalogue,
}

impl CellText {
    pub fn new(metrics: MetricCatalogue) -> Self {
        Self { metrics }
    }

    fn values(self, cell: &Cell) -> ValueText {
        ValueText::of(self.metrics, &cell.metric, cell.each.is_some(), cell.over.is_some())
    }

    pub fn value(self, value: Option<f64>, cell: &Cell) -> String {
        self.values(cell).value(value)
    }

    /// Formats the measured mean with its confidence interval.
    pub fn measured(self, cell: &Cell) -> String {
        self.values(cell).mean(cell.measured, cell.ci95)
    }

    /// Formats the mean and interval of the compared world.
    pub fn beside(self, cell: &Cell) -> String {
        cell.beside.as_ref().map_or(String::new(), |other| self.values(cell).mean(other.measured, other.ci95))
    }

    /// Formats the tolerance of a published value, or the bounds of a claim.
    pub fn tolerance(self, cell: &Cell) -> String {
        match (cell.tolerance, cell.bounds) {
            (Some(tolerance), _) => self.values(cell).size(tolerance),
            (None, bounds) => self.values(cell).range(bounds.unwrap_or((f64::NEG_INFINITY, f64::INFINITY))),
        }
    }

    /// Formats the published value with its tolerance and one unit, or the bounds of a claim.
    pub fn allowed(self, cell: &Cell) -> String {
        let tolerance = self.tolerance(cell);
        let Some(value) = cell.published else { return tolerance };
        let value = self.value(Some(value), cell);
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let unit = tolerance.rsplit_once(' ').map(|(_, unit)| unit).filter(|unit| !is_number(unit));
        let number = unit.and_then(|unit| value.strip_suffix(unit)).map_or(&*value, str::trim_end);
        format!("{number} {tolerance}")
    }

    /// Formats the value of the null sender, with a star if it also reproduces the cell, or a dagger if a constant was fitted to
    /// the cell.
    pub fn null(self, cell: &Cell) -> String {
        let mark = match cell.null_reproduces {
            true => "*",
            false if cell.fitted.is_some() => "†",
            false => " ",
        };
        format!("{}{mark}", self.value(cell.null_sender, cell))
    }

    /// Returns the note with the result of the change that it names.
    pub fn note(self, cell: &Cell) -> Option<String> {
        let then = |mean, ci95| format!(": {}", self.values(cell).mean(mean, ci95));
        let then = cell.moved.as_ref().map_or(String::new(), |moved| then(moved.measured, moved.ci95));
        cell.note.as_ref().map(|note| note.clone() + &then)
    }
}

/// Returns metric, case, flow and window of a cell.
pub fn place(cell: &Cell) -> [String; 4] {
    let (from, to) = cell.window_s;
    let window = if to > from { format!("{from} to {to} s") } else { String::new() };
    [cell.quantity(), cell.case.to_string(), cell.flow.clone().unwrap_or_default(), window]
}

/// Returns the number of runs, and the total if some were left out.
pub fn runs(cell: &Cell) -> String {
    cell.left_out.map_or_else(|| cell.n.to_string(), |left_out| format!("{} of {}", cell.n, cell.n + left_out))
}
