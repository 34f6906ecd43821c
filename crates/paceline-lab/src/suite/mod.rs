//! Suites: scenarios whose bounds judge controllers.
//!
//! ```text
//! manifest ──▶ scenarios x controllers x cases x seeds ──runs──▶ values ──judge──▶ bounds that hold ──▶ matrix
//! ```
//!
//! `file.rs` reads the manifest and the expected verdicts, and `run.rs` makes the runs and the document.

mod file;
mod run;
#[cfg(test)]
mod tests;

pub use file::{Expected, Suite};
pub use run::{ALL, Options, Subject, run, run_with};
