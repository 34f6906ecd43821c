//! `--out DIR` and `--pcap FILE`: runs whose events or packets are written to disk, with their results.

use super::Selection;
use crate::errors::{StorageError, world_error};
use miette::{Report, Result};
use paceline_lab::capture::Capture;
use paceline_lab::results::Store;
use paceline_lab::run::{Runner, RunsResult};
use paceline_lab::storage::{MadeRuns, Resume, run_or_resume};
use paceline_netsim::records::RunHeader;
use paceline_scenario::Scenario;
use std::path::Path;

/// Where runs are written.
#[derive(Clone, Copy, Default)]
pub struct Destination<'a> {
    /// Events and results.
    pub store: Option<&'a Store>,
    /// Every packet, of one run.
    pub pcap: Option<&'a Path>,
    /// Whether stored runs are not repeated.
    pub resume: bool,
}

/// Makes the runs: in parallel, or one after the other where they are written.
pub fn make_runs(
    destination: Destination<'_>,
    selection: &Selection,
    controller: Option<&str>,
    runner: &Runner<'_>,
    scenario: &Scenario,
    seeds: &[u64],
) -> Result<MadeRuns<Report>> {
    let Destination { store, pcap, resume } = destination;
    if store.is_none() && pcap.is_none() {
        let result = runner.run_all(scenario, seeds).map_err(world_error)?;
        return Ok(MadeRuns { result, unstored: None });
    }
    let start = |header: &RunHeader| -> Result<_, StorageError> {
        pcap.map(|file| Capture::create(file, &scenario.plan, header)).transpose().map_err(StorageError::new)
    };
    let finish = |capture: Option<Capture>| match capture {
        None => Ok(()),
        Some(capture) => capture.finish().map(drop).map_err(StorageError::new),
    };
    let inputs = selection.inputs("run", controller, seeds)?;
    let resume = if resume { Resume::Now } else { Resume::Later };
    let made = run_or_resume(runner, scenario, seeds, (store, inputs, resume), start, finish)?;
    Ok(MadeRuns { result: made.result, unstored: made.unstored.map(Report::from) })
}

/// Splits what was made into the results and the first problem of storing them.
pub fn split(made: Vec<MadeRuns<Report>>) -> (Vec<RunsResult>, Option<Report>) {
    let (results, problems): (Vec<_>, Vec<_>) = made.into_iter().map(|made| (made.result, made.unstored)).unzip();
    (results, problems.into_iter().flatten().next())
}
