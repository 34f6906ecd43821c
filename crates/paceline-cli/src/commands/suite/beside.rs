// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of earlier results, which a run is compared with.

use miette::{IntoDiagnostic, Result, miette};
use paceline_lab::results::{SUITES_FILE, SuitesReport, repeats_text};
use paceline_lab::suite::Suite;
use std::path::{Path, PathBuf};

/// The results of a folder that `suite --out` wrote.
pub(super) struct Earlier {
    folder: PathBuf,
    report: SuitesReport,
}

impl Earlier {
    /// Reads the results of these suites. `repeats` is the number of runs of each test, if it is fixed.
    pub fn read(folder: &Path, suites: &[Suite], repeats: Option<u64>) -> Result<Self> {
        let document = folder.join(SUITES_FILE);
        if !document.exists() {
            let help = "name a folder that `paceline suite --out` has written";
            return Err(miette!(help = help, "cannot read {}", document.display()));
        }
        let mut report = SuitesReport::read(&document).into_diagnostic()?;
        report.suites.retain(|suite| suites.iter().any(|here| here.id == suite.id));
        report.suites.sort_by_key(|suite| suites.iter().position(|here| here.id == suite.id));
        for earlier in &report.suites {
            let (id, there) = (&earlier.id, earlier.repeats_text());
            let of_suite = |suite: &Suite| repeats_text(repeats.unwrap_or(suite.repeats), repeats.is_none());
            let here = suites.iter().find(|suite| suite.id == *id).map(of_suite);
            if let Some(here) = here.filter(|here| *here != there) {
                let change = match (earlier.sequential, repeats) {
                    (true, Some(_)) => "leave out --repeats".to_owned(),
                    (true, None) => format!("write repeats = {} into its manifest", earlier.repeats),
                    (false, _) => format!("add --repeats {there}"),
                };
                let help = format!("{change}, or make the earlier results with as many runs");
                let folder = folder.display();
                return Err(miette!(
                    help = help,
                    "{folder} has {there} runs of each test of `{id}`, this run makes {here}"
                ));
            }
        }
        Ok(Self { folder: folder.to_owned(), report })
    }

    /// Adds the rows after those of a report, which keeps its own.
    pub fn add(mut self, report: &mut SuitesReport) -> Result<()> {
        for suite in &mut self.report.suites {
            suite.rows.retain(|row| !has(report, &row.controller));
        }
        report.add_rows(&self.report).map_err(|problem| {
            let help = "use results of this version and of the same suites";
            miette!(help = help, "cannot add the results in {}: {problem}", self.folder.display())
        })?;
        report.align_rows();
        Ok(())
    }
}

fn has(report: &SuitesReport, controller: &str) -> bool {
    report.suites.iter().flat_map(|suite| &suite.rows).any(|row| row.controller == controller)
}
