//! Text tables with aligned columns, and values with a sensible number of digits.

use paceline_lab::metrics::find;
use paceline_records::MetricKind;

/// Shown in place of a missing value.
pub const MISSING: &str = "–";

/// Rows of text, aligned.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Number of left-aligned columns; the rest are right-aligned.
    left: usize,
    /// Whether the last column is left-aligned text.
    text_last: bool,
}

impl Table {
    /// Creates a table with these headings; its first `left` columns are left-aligned.
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = H>, left: usize) -> Self {
        Self { rows: vec![headings.into_iter().map(Into::into).collect()], left, text_last: false }
    }

    /// Left-aligns the last column.
    pub fn with_text_last(mut self) -> Self {
        self.text_last = true;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the table as text, each line indented.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| columns_of(t)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (c, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[c] - columns_of(cell));
                let is_left = c < self.left || (self.text_last && c + 1 == columns);
                line += &if is_left { format!(" {cell}{pad} ") } else { format!(" {pad}{cell} ") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}

/// Returns the number of columns that a text takes, without the sequences that style it.
fn columns_of(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// Returns a value with its unit, or a dash if it is missing.
pub fn value_text(value: Option<f64>, kind: MetricKind) -> String {
    value.map_or_else(|| MISSING.to_owned(), |v| kind.show(v))
}

/// Returns the kind of a metric's values.
pub fn kind_of(metric: &str) -> MetricKind {
    find(metric).map_or(MetricKind::Number, |m| m.kind)
}

/// Returns `pass` or `FAIL`.
pub fn pass_text(passed: bool) -> &'static str {
    if passed { "pass" } else { "fail" }
}

/// Returns one block character for each value, scaled from 0 to `top`.
pub fn sparkline(values: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |v: &f64| if top > 0.0 { ((v / top) * 8.0).clamp(0.0, 7.0) as usize } else { 0 };
    values.iter().map(|v| BARS[level(v)]).collect()
}
