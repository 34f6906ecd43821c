// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suites: scenarios whose bounds judge controllers.
//!
//! ```text
//! manifest ──▶ scenarios x controllers x cases x seeds ──runs──▶ values ──judge──▶ bounds that hold ──▶ matrix
//! ```
//!
//! `file.rs` reads the manifest and the expected verdicts, `runs.rs` makes the runs, here or in other processes, and `run.rs`
//! makes the document.

mod file;
mod run;
mod runs;
#[cfg(test)]
mod tests;

pub use file::{Expected, SHORT, Suite};
pub use run::{ALL, Subject};
pub use runs::{SuiteJob, SuiteRun, SuiteRuns, run};
