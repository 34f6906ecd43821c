//! `--out DIR` and `--pcap FILE`: runs whose events or packets are written to disk, with their results.

use super::Selection;
use crate::errors::{StorageError, world_error};
use miette::Result;
use paceline_lab::capture::Capture;
use paceline_lab::results::Store;
use paceline_lab::run::{Runner, RunsResult};
use paceline_lab::storage::{Resume, run_or_resume};
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
) -> Result<RunsResult> {
    let Destination { store, pcap, resume } = destination;
    if store.is_none() && pcap.is_none() {
        return runner.run_all(scenario, seeds).map_err(world_error);
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
    Ok(run_or_resume(runner, scenario, seeds, (store, inputs, resume), start, finish)?)
}
