//! Rows of earlier results, which a run is compared with.

use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::suite::{Subject, Suite};
use paceline_lab::yardsticks::Oracle;
use paceline_results::{KeptRows, RowKind, SUITES_FILE, SuitesReport};
use std::path::{Path, PathBuf};

/// The results of a folder.
pub(super) struct Earlier {
    folder: PathBuf,
    rows: Rows,
}

enum Rows {
    /// A document of `--out`.
    Document(SuitesReport),
    /// A file in short form for each suite.
    Kept(Vec<KeptRows>),
}

impl Earlier {
    /// Reads the results of these suites. `repeats` replaces the number of runs of each suite.
    pub fn read(folder: &Path, suites: &[Suite], repeats: Option<u64>) -> Result<Self> {
        let document = folder.join(SUITES_FILE);
        let earlier = if document.exists() {
            let mut report = SuitesReport::read(&document).into_diagnostic()?;
            report.suites.retain(|suite| suites.iter().any(|here| here.id == suite.id));
            report.suites.sort_by_key(|suite| suites.iter().position(|here| here.id == suite.id));
            Self { folder: folder.to_owned(), rows: Rows::Document(report) }
        } else {
            let kept = suites.iter().map(|suite| read_kept(&folder.join(format!("{}.json", suite.id))));
            Self { folder: folder.to_owned(), rows: Rows::Kept(kept.collect::<Result<_>>()?) }
        };
        for (id, there) in earlier.repeats() {
            let here = suites.iter().find(|suite| suite.id == id).map(|suite| repeats.unwrap_or(suite.repeats));
            if let Some(here) = here.filter(|here| *here != there) {
                let help = format!("add --repeats {there}, or make the earlier results with as many runs");
                let folder = folder.display();
                return Err(miette!(
                    help = help,
                    "{folder} has {there} runs of each test of `{id}`, this run makes {here}"
                ));
            }
        }
        Ok(earlier)
    }

    /// Returns each suite with its number of runs.
    fn repeats(&self) -> Vec<(&str, u64)> {
        match &self.rows {
            Rows::Document(report) => report.suites.iter().map(|suite| (suite.id.as_str(), suite.repeats)).collect(),
            Rows::Kept(kept) => kept.iter().map(|suite| (suite.id.as_str(), suite.repeats)).collect(),
        }
    }

    /// Adds the rows after those of a report, which keeps its own.
    pub fn add(self, report: &mut SuitesReport, registry: &Registry) -> Result<()> {
        let failed = |problem: String| {
            let help = "use results of this version and of the same suites";
            miette!(help = help, "cannot add the results in {}: {problem}", self.folder.display())
        };
        match self.rows {
            Rows::Document(mut others) => {
                for suite in &mut others.suites {
                    suite.rows.retain(|row| !has(report, &row.controller));
                }
                report.add_rows(&others).map_err(failed)?;
            }
            Rows::Kept(kept) => {
                for (suite, kept) in report.suites.iter_mut().zip(&kept) {
                    suite.add_kept_rows(kept, |name| kind(name, registry)).map_err(failed)?;
                }
            }
        }
        report.align_rows();
        Ok(())
    }
}

fn read_kept(file: &Path) -> Result<KeptRows> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let help = "name a folder that `paceline suite --out` has written";
        miette!(help = help, "cannot read {}: {error}", file.display())
    })?;
    KeptRows::read(&text).map_err(|error| miette!("{}: {error}", file.display()))
}

fn has(report: &SuitesReport, controller: &str) -> bool {
    report.suites.iter().flat_map(|suite| &suite.rows).any(|row| row.controller == controller)
}

fn kind(name: &str, registry: &Registry) -> RowKind {
    match (Oracle::find(name), registry.get(name)) {
        (Some(_), _) => RowKind::Oracle,
        (None, Some(_)) => Subject::controller(name, registry).kind,
        // A controller of the user.
        (None, None) => RowKind::Controller,
    }
}
