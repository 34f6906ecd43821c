// SPDX-License-Identifier: MIT OR Apache-2.0
//! Markdown tables and links.

use serde_json::Value;
use std::fmt;

pub struct Table {
    columns: usize,
    lines: Vec<String>,
}

impl Table {
    /// Returns a table with these headings and no row.
    pub fn new(headings: &[&str]) -> Self {
        let rule = "---|".repeat(headings.len());
        Self { columns: headings.len(), lines: vec![format!("| {} |", headings.join(" | ")), format!("|{rule}")] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[String]) {
        assert_eq!(cells.len(), self.columns, "a row has a cell for each heading");
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        self.lines.push(format!("| {} |", cells.join(" | ")));
    }

    /// Returns whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.lines.len() == 2
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns a string of the document on one line.
pub fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\n', " ")
}

/// Returns a link to a heading of the same page.
pub fn linked(word: String) -> String {
    format!("[{word}](#{})", word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_in_cells_are_escaped() {
        let mut table = Table::new(&["a", "b"]);
        assert!(table.is_empty());
        table.row(&["|T|".to_owned(), plain(&Value::from("x\ny"))]);
        assert_eq!(table.to_string(), "| a | b |\n|---|---|\n| \\|T\\| | x y |\n");
    }
}
