// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts stored results to figures, and figures to HTML pages and SVG files.
//!
//! ```text
//! DIR --read--> events ---------------panels-----> Figure --page-----------------> report.html
//!                                                     '-----figure_groups, svg---> figures/*.svg
//! DIR/results.sqlite --------------------------validations---------------'
//! SweepResult ----------------------sweeps--------------svg----------------------> figures/*.svg
//! DIR/scoreboard.json ------------------cells--------------scoreboard------------> scoreboard.html
//! Choice -------------------------ranking_text, dot_plot--choice----------------> choice.html
//! DIR/suites.json ----------------------check_text---------suites----------------> suites.html
//! ```
//!
//! A [`figure::Figure`] contains everything that a plot shows; the output modules do not read events. A report needs only the
//! files of `--out DIR`.

pub mod cells;
pub mod check_text;
pub mod choice;
pub mod committed;
mod dot_plot;
pub mod error;
pub mod figure;
pub mod figure_groups;
pub mod page;
pub mod panels;
mod policy;
pub mod ranking_text;
pub mod read;
pub mod scoreboard;
pub mod suites;
pub mod svg;
pub mod sweeps;
pub mod timeline;
pub mod validation_text;

pub use error::ReportError;
pub use figure::Figure;
pub use read::Results;

/// Quotes a word for a POSIX shell where needed.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns text as it is written inside of an element of HTML or SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_words_that_a_shell_would_split_or_expand() {
        for (word, wanted) in [
            ("path.rtt=50ms", "path.rtt=50ms"),
            ("path.forward.burst=20 KB", "'path.forward.burst=20 KB'"),
            ("path.reverse.jitter={std=\"10 ms\"}", "'path.reverse.jitter={std=\"10 ms\"}'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_quoted(word), wanted);
        }
    }
}
