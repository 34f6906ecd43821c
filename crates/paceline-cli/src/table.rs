// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text tables with aligned columns, and values with a sensible number of digits.

use crate::output;
use paceline_lab::metrics::find;
use paceline_netsim::records::MetricKind;

/// Shown in place of a missing value.
pub const MISSING: &str = "–";

/// Blanks that each column takes besides its text.
const GAP: usize = 2;

/// Rows of text, aligned. The first is the headings.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Number of left-aligned columns; the rest are right-aligned.
    left: usize,
    /// Whether the last column is left-aligned text.
    text_last: bool,
    /// Number of columns that identify a row. Each part of a table that is too wide begins with them.
    keys: usize,
}

/// A cell of a table.
pub(crate) struct ShownCell<'a> {
    pub(crate) text: &'a str,
    /// Whether it is text, and not a number.
    pub(crate) is_left: bool,
}

impl Table {
    /// Creates a table with these headings; its first `left` columns are left-aligned.
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = H>, left: usize) -> Self {
        Self { rows: vec![headings.into_iter().map(Into::into).collect()], left, text_last: false, keys: 1 }
    }

    /// Left-aligns the last column.
    pub fn with_text_last(mut self) -> Self {
        self.text_last = true;
        self
    }

    /// Sets the number of columns that identify a row; 1 if this is not called.
    pub fn with_keys(mut self, keys: usize) -> Self {
        self.keys = keys;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the cells of each row, the headings first, without the columns that have no text below the heading.
    pub(crate) fn shown_rows(&self) -> Vec<Vec<ShownCell<'_>>> {
        let columns = self.shown_columns();
        let mut rows = Vec::new();
        for row in &self.rows {
            let cell = |column: &usize| Some(ShownCell { text: row.get(*column)?, is_left: self.is_left(*column) });
            rows.push(columns.iter().filter_map(cell).collect());
        }
        rows
    }

    /// Returns the columns that have text below the heading, and the first.
    fn shown_columns(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let has_text =
            |column: &usize| self.rows.iter().skip(1).any(|row| row.get(*column).is_some_and(|c| !c.is_empty()));
        (0..count).filter(|c| *c == 0 || has_text(c)).collect()
    }

    /// Returns the table as text, each line indented, in lines of at most [`output::width`] columns where possible: texts on the left
    /// and headings are wrapped, and a table that is still too wide is split into several that begin with the same columns. Columns without
    /// any text below the heading are left out.
    pub fn render(&self) -> String {
        self.render_to(output::width())
    }

    /// Returns the table as one, however wide it is.
    pub fn render_wide(&self) -> String {
        self.render_to(usize::MAX)
    }

    fn render_to(&self, width: usize) -> String {
        let columns = self.shown_columns();
        let least = |columns: &[usize]| columns.iter().map(|c| self.least_width(*c) + GAP).sum::<usize>();
        let keys: Vec<usize> = columns.iter().copied().filter(|column| *column < self.keys).collect();
        let mut blocks: Vec<Vec<usize>> = vec![vec![]];
        for column in columns {
            let last = blocks.last_mut().expect("there is one block at least");
            if last.len() > keys.len() && least(&[&last[..], &[column]].concat()) > width {
                blocks.push([&keys[..], &[column]].concat());
            } else {
                last.push(column);
            }
        }
        blocks.iter().map(|columns| self.render_columns(columns, width)).collect::<Vec<_>>().join("\n")
    }

    fn render_columns(&self, columns: &[usize], width: usize) -> String {
        let mut widths: Vec<usize> = columns.iter().map(|c| self.widest(*c)).collect();
        // First headings above numbers are wrapped, then texts and intervals.
        for floors in [Self::width_below_heading, Self::least_width] {
            let floors: Vec<usize> = columns.iter().map(|column| floors(self, *column)).collect();
            while widths.iter().map(|w| w + GAP).sum::<usize>() > width {
                let shrinkable = (0..columns.len()).filter(|i| widths[*i] > floors[*i]);
                let Some(widest) = shrinkable.max_by_key(|i| widths[*i]) else { break };
                widths[widest] -= 1;
            }
        }
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cell = |(column, width): (&usize, &usize)| {
                let text = row.get(*column).map_or("", String::as_str);
                if self.wraps(index, *column) { output::wrap_to(text, *width) } else { number_lines(text, *width) }
            };
            let cells: Vec<Vec<String>> = columns.iter().zip(&widths).map(cell).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for number in 0..height {
                let mut line = String::from(" ");
                for (i, cell) in cells.iter().enumerate() {
                    // Headings stand directly above their column.
                    let skipped = if index == 0 { height - cell.len() } else { 0 };
                    let text = number.checked_sub(skipped).and_then(|n| cell.get(n)).map_or("", String::as_str);
                    let pad = " ".repeat(widths[i].saturating_sub(columns_of(text)));
                    let text = if index == 0 && !text.is_empty() { output::bold(text) } else { text.to_owned() };
                    line += &if self.is_left(columns[i]) { format!(" {text}{pad} ") } else { format!(" {pad}{text} ") };
                }
                out += line.trim_end();
                out.push('\n');
            }
        }
        out
    }

    fn is_left(&self, column: usize) -> bool {
        column < self.left || (self.text_last && column + 1 == self.rows[0].len())
    }

    /// Returns whether a cell is wrapped at each blank: headings and texts.
    fn wraps(&self, row: usize, column: usize) -> bool {
        row == 0 || self.is_left(column)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = (usize, &str)> {
        self.rows.iter().enumerate().filter_map(move |(index, row)| Some((index, row.get(column)?.as_str())))
    }

    fn widest(&self, column: usize) -> usize {
        self.cells(column).map(|(_, text)| columns_of(text)).max().unwrap_or(0)
    }

    /// Returns the width of a column whose heading alone is wrapped.
    fn width_below_heading(&self, column: usize) -> usize {
        let below = self.cells(column).skip(1).map(|(_, text)| columns_of(text)).max().unwrap_or(0);
        below.max(self.least_width(column))
    }

    /// Returns the width of a column in which every text is wrapped at each blank.
    fn least_width(&self, column: usize) -> usize {
        let least = |(row, text): (usize, &str)| match self.wraps(row, column) {
            true => output::longest_part(text),
            false => number_lines(text, 0).iter().map(|line| columns_of(line)).max().unwrap_or(0),
        };
        self.cells(column).map(least).max().unwrap_or(0)
    }
}

/// Returns the lines of a value with its unit: an interval and the end of a range may stand in a second line.
fn number_lines(text: &str, width: usize) -> Vec<String> {
    let middle = [" ± ", " to "].into_iter().find_map(|between| text.find(between));
    match middle.filter(|_| columns_of(text) > width) {
        Some(middle) => vec![text[..middle].to_owned(), text[middle + 1..].to_owned()],
        None => vec![text.to_owned()],
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

/// Returns a value without its unit, or a dash if it is missing.
pub fn digits_text(value: Option<f64>, kind: MetricKind) -> String {
    value.map_or_else(|| MISSING.to_owned(), |v| kind.digits(v))
}

/// Returns one block character for each value, scaled from 0 to `top`.
pub fn sparkline(values: &[f64], top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |v: &f64| if top > 0.0 { ((v / top) * 8.0).clamp(0.0, 7.0) as usize } else { 0 };
    values.iter().map(|v| BARS[level(v)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(["name of a flow", "empty", "delay p95 ms", "rate Mbit/s", "note"], 2).with_text_last();
        for name in ["video of the first caller", "b"] {
            let row = [name, "", "12.5 ± 1.0", "1.250", "a note of several words that wraps"];
            table.row(row.map(str::to_owned).to_vec());
        }
        table
    }

    fn lines(table: &Table, width: usize) -> Vec<String> {
        let text = anstream::adapter::strip_str(&table.render_to(width)).to_string();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_fits_and_keeps_its_numbers_in_one_line() {
        for width in [40, 50, 80] {
            let lines = lines(&table(), width);
            assert!(lines.iter().all(|line| columns_of(line) <= width), "{width}: {lines:#?}");
            assert_eq!(lines.iter().filter(|line| line.contains("± 1.0")).count(), 2, "{lines:#?}");
            assert!(!lines.concat().contains("empty"));
        }
        let wide = lines(&table(), 200);
        assert_eq!(wide.len(), 3, "{wide:#?}");
        assert_eq!(
            wide[2],
            "  b                            12.5 ± 1.0        1.250  a note of several words that wraps"
        );
    }

    #[test]
    fn a_table_that_cannot_fit_is_split_and_repeats_its_first_column() {
        let lines = lines(&table(), 30);
        assert!(lines.iter().all(|line| columns_of(line) <= 30), "{lines:#?}");
        assert!(lines.iter().filter(|line| line.trim_start().starts_with("b ")).count() > 1, "{lines:#?}");
    }

    #[test]
    fn each_part_of_a_split_table_begins_with_the_keys() {
        let mut table = Table::new(["name", "limit", "first value", "second value"], 0).with_keys(2);
        table.row(["googcc", "100 ms", "1.433 Mbit/s ± 0.304 Mbit/s", "12 ms ± 1 ms"].map(str::to_owned).into());
        let keyed =
            |width| lines(&table, width).iter().filter(|l| l.contains("googcc") && l.contains("100 ms")).count();
        assert_eq!([keyed(34), keyed(200)], [2, 1]);
    }
}
