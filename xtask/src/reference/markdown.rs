//! Tables and words in Markdown.

use serde_json::Value;
use std::fmt;

/// A table.
pub struct Table {
    columns: usize,
    lines: Vec<String>,
}

impl Table {
    /// With these headings, and no row yet.
    pub fn new(headings: &[&str]) -> Self {
        let rule = "---|".repeat(headings.len());
        Self { columns: headings.len(), lines: vec![format!("| {} |", headings.join(" | ")), format!("|{rule}")] }
    }

    /// One more row.
    pub fn row(&mut self, cells: &[String]) {
        assert_eq!(cells.len(), self.columns, "a row has a cell for each heading");
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        self.lines.push(format!("| {} |", cells.join(" | ")));
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.lines.len() == 2
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A text of the document, on one line.
pub fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('\n', " ")
}

/// A word that leads to its heading on the same page.
pub fn linked(word: String) -> String {
    format!("[{word}](#{})", word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_does_not_end_a_cell() {
        let mut table = Table::new(&["a", "b"]);
        assert!(table.is_empty());
        table.row(&["|T|".to_owned(), plain(&Value::from("x\ny"))]);
        assert_eq!(table.to_string(), "| a | b |\n|---|---|\n| \\|T\\| | x y |\n");
    }
}
