//! Tables for people: columns that line up, numbers to the right, no more digits than mean something.

use paceline_lab::metrics::{Kind, find};

/// Rows of text, aligned.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns aligned to the left; the rest go to the right.
    left: usize,
    /// The last column is prose, aligned to the left.
    prose: bool,
}

impl Table {
    /// A table with these headings; its first `left` columns are aligned to the left.
    pub fn new(headings: &[&str], left: usize) -> Self {
        Self { rows: vec![headings.iter().map(|h| (*h).to_owned()).collect()], left, prose: false }
    }

    /// The last column is prose: aligned to the left, and as long as it is.
    pub fn with_prose(mut self) -> Self {
        self.prose = true;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The text, each line indented.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - cell.chars().count());
                line += " ";
                let to_the_left = c < self.left || (self.prose && c + 1 == columns);
                line += &if to_the_left { format!("{cell}{pad} ") } else { format!("{pad}{cell} ") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}

/// A number of its kind, for people: fractions as per cent, rates in Mbit/s.
pub fn shown(value: f64, kind: Kind) -> String {
    kind.show(value)
}

/// A number that may be missing.
pub fn maybe(value: Option<f64>, kind: Kind) -> String {
    value.map_or_else(|| "–".to_owned(), |v| shown(v, kind))
}

/// What kind of number a metric is.
pub fn kind_of(metric: &str) -> Kind {
    find(metric).map_or(Kind::Number, |m| m.kind)
}

/// One character a value, from 0 to `top`.
pub fn sparkline(values: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |v: &f64| if top > 0.0 { ((v / top) * 8.0).clamp(0.0, 7.0) as usize } else { 0 };
    values.iter().map(|v| BARS[level(v)]).collect()
}
