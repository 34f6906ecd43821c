// SPDX-License-Identifier: MIT OR Apache-2.0
//! What continuous integration reads, and the comparison with a baseline.

use crate::output;
use crate::view::View;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use paceline_lab::metrics;
use paceline_lab::report::suites::ci;
use paceline_lab::results::baseline::{BaselineChange, changes, have_a_common_test};
use paceline_lab::results::{SUITES_FILE, SuitesReport};
use std::path::{Path, PathBuf};

/// Files for continuous integration.
#[derive(clap::Args)]
pub(super) struct CiOptions {
    /// Writes a test case for each test and controller into this file, in the format of JUnit.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Writes a table for a pull request into this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Writes a badge into this file, as the endpoint of shields.io reads it (JSON).
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// Compares with earlier results: a folder of --out, or its suites.json. The exit code is 1 if a bound fails that held there, or if a score
    /// fell by more than chance over the same seeds.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

impl CiOptions {
    /// Reads the baseline, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn baseline(&self) -> Result<Option<SuitesReport>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let file = if path.is_dir() { path.join(SUITES_FILE) } else { path.clone() };
        if !file.is_file() {
            let help = "name a folder that `paceline suite --out` has written, or its suites.json";
            return Err(miette!(help = help, "there is no baseline at {}", path.display()));
        }
        SuitesReport::read(&file).into_diagnostic().map(Some)
    }

    /// Writes the files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, report: &SuitesReport, changes: Option<&[BaselineChange]>) -> Result<()> {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))
        };
        if let Some(path) = &self.junit {
            write(path, ci::junit(report, metrics::catalogue()).into_diagnostic()?)?;
        }
        if let Some(path) = &self.markdown {
            write(path, ci::pull_request(report, changes))?;
        }
        self.badge.as_ref().map_or(Ok(()), |path| write(path, ci::badge(report)))
    }
}

/// Returns what changed since the baseline.
///
/// # Errors
/// The two have no test in common.
pub(super) fn compared(baseline: Option<&SuitesReport>, report: &SuitesReport) -> Result<Option<Vec<BaselineChange>>> {
    let Some(baseline) = baseline else { return Ok(None) };
    if !have_a_common_test(baseline, report) {
        let help = "use the same suites, seeds, settings, world and names of controllers";
        return Err(miette!(help = help, "the baseline has no test in common with these results"));
    }
    Ok(Some(changes(baseline, report)))
}

/// Describes the changes.
pub(super) fn view(changes: &[BaselineChange]) -> View {
    let mut view = View::default();
    let worse = changes.iter().filter(|change| change.is_regression()).count();
    view.gap();
    view.heading(output::bold(&format!("beside the baseline: {worse} worse, {} better", changes.len() - worse)));
    for change in changes {
        let mark = if change.is_regression() { "worse: " } else { "better: " };
        let parts = [format!("{} points", ci::points(change)), ci::bounds(change)];
        let what: Vec<&str> =
            parts.iter().map(String::as_str).filter(|part| !part.is_empty() && *part != "– points").collect();
        view.line(mark, format!("{}, {}: {}", change.controller, change.test, what.join(", ")));
    }
    view
}
