// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline suite --plots`: the events and the report of a run of each test that fails.

use super::super::stored::{Destination, make_runs};
use super::super::{RunOptions, Selection, with_progress};
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::metrics;
use paceline_lab::report::page::{self, REPORT_FILE};
use paceline_lab::report::suites::plots_path;
use paceline_lab::results::{RowKind, Store, SuitesReport};
use paceline_netsim::world::World;
use paceline_scenario::Override;
use std::path::Path;

/// The seed of the run that is plotted.
const SEED: u64 = 1;

/// Runs each test that a controller fails and writes its report where the page of suites links it.
pub(super) fn write(
    folder: &Path,
    report: &SuitesReport,
    settings: &[Override],
    world: &dyn World,
    registry: &Registry,
) -> Result<()> {
    let mut failed = Vec::new();
    for suite in &report.suites {
        for row in suite.rows.iter().filter(|row| row.kind != RowKind::Oracle) {
            let tests = suite.tests.iter().zip(&row.results).filter(|(test, result)| !test.passed(result).is_all());
            for (test, _) in tests {
                let options = RunOptions::of_case(test.case.clone(), settings.to_vec(), SEED);
                let selection = Selection { scenario: test.run.clone(), options };
                let scenario = selection.load(Some(&row.controller), registry)?;
                failed.push((folder.join(plots_path(&suite.id, test, &row.controller)), selection, scenario, row));
            }
        }
    }
    let seconds = failed.iter().map(|(_, _, scenario, _)| scenario.plan.duration.as_secs_f64()).sum();
    with_progress(world, registry, seconds, |runner, _| {
        for (dir, selection, scenario, row) in &failed {
            let store = Store::create(dir).into_diagnostic()?;
            let destination = Destination { store: Some(&store), ..Destination::default() };
            make_runs(destination, selection, Some(&row.controller), runner, scenario, &[SEED])?.stored()?;
            page::write(dir, &dir.join(REPORT_FILE), metrics::catalogue()).into_diagnostic()?;
        }
        Ok(())
    })
}
