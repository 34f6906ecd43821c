//! Formats cells of a reproduction for the terminal and the pages.

use paceline_netsim::records::{MetricCatalogue, MetricKind};
use paceline_results::Cell;

/// Formats cells in the units of their metrics.
#[derive(Clone, Copy, Debug)]
pub struct CellText {
    metrics: MetricCatalogue,
}

impl CellText {
    /// Creates a formatter for these metrics.
    pub fn new(metrics: MetricCatalogue) -> Self {
        Self { metrics }
    }

    /// Formats a value of a cell in the unit of its metric. Ratios start with `×`; formulas have four decimals.
    pub fn value(self, value: Option<f64>, cell: &Cell) -> String {
        let kind = match &cell.each {
            Some(_) => Some(MetricKind::Share),
            None => self.metrics.get(&cell.metric).map(|metric| metric.kind),
        };
        match (value, &cell.over) {
            (None, _) => "–".to_owned(),
            (Some(infinite), _) if infinite.is_infinite() => if infinite > 0.0 { "∞" } else { "-∞" }.to_owned(),
            (Some(ratio), Some(_)) => format!("× {ratio:.3}"),
            (Some(value), None) => kind.map_or_else(|| format!("{value:.4}"), |kind| kind.show(value)),
        }
    }

    fn with_interval(self, mean: Option<f64>, ci95: Option<f64>, cell: &Cell) -> String {
        match ci95 {
            None => self.value(mean, cell),
            Some(_) => format!("{} ± {}", self.value(mean, cell), self.size(ci95, cell)),
        }
    }

    fn size(self, difference: Option<f64>, cell: &Cell) -> String {
        self.value(difference, cell).trim_start_matches("× ").to_owned()
    }

    /// Formats the measured mean with its confidence interval.
    pub fn measured(self, cell: &Cell) -> String {
        self.with_interval(cell.measured, cell.ci95, cell)
    }

    /// Formats the mean and interval of the compared world.
    pub fn beside(self, cell: &Cell) -> String {
        cell.beside.as_ref().map_or(String::new(), |other| self.with_interval(other.measured, other.ci95, cell))
    }

    /// Formats the tolerance of a published value, or the bounds of a claim.
    pub fn tolerance(self, cell: &Cell) -> String {
        let end = |end: f64| Some(end).filter(|end| end.is_finite()).map(|end| self.value(Some(end), cell));
        match (cell.tolerance, cell.bounds.map(|(low, high)| (end(low), end(high)))) {
            (Some(_), _) => format!("± {}", self.size(cell.tolerance, cell)),
            (None, Some((Some(low), Some(high)))) => format!("{low} to {high}"),
            (None, Some((Some(low), None))) => format!("at least {low}"),
            (None, Some((None, Some(high)))) => format!("at most {high}"),
            (None, Some((None, None)) | None) => "–".to_owned(),
        }
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
        let then = |mean, ci95| format!(": {}", self.with_interval(mean, ci95, cell));
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
