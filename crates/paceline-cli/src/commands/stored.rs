// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--out DIR` and `--pcap FILE`: runs whose events or packets are written to disk, with their results.

use super::options::ControllerOptions;
use super::{Selection, with_progress};
use crate::errors::{StorageError, world_error};
use crate::interrupt::{self, Continues};
use crate::worlds;
use miette::{IntoDiagnostic, Report, Result, miette};
use paceline::Registry;
use paceline_lab::capture::Capture;
use paceline_lab::results::Store;
use paceline_lab::run::{Runner, RunsResult};
use paceline_lab::storage::{MadeRuns, Resume, run_or_resume};
use paceline_netsim::records::RunHeader;
use paceline_netsim::world::World;
use paceline_scenario::Scenario;
use std::path::{Path, PathBuf};

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

/// The arguments of commands that run one scenario under controllers.
#[derive(clap::Args)]
pub struct StoredRuns {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub controllers: ControllerOptions,
    /// Writes events and results into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Makes only the runs that the folder of --out lacks. Runs of another version of the program, of a changed scenario, or of a
    /// program or library of your own are made again.
    #[arg(long, requires = "out")]
    resume: bool,
}

/// The runs under each controller.
pub struct Made {
    pub registry: Registry,
    pub controllers: Vec<Option<String>>,
    pub scenarios: Vec<Scenario>,
    pub seeds: Vec<u64>,
    pub store: Option<Store>,
    pub results: Vec<RunsResult>,
    /// The first problem of storing them.
    pub unstored: Option<Report>,
}

impl StoredRuns {
    /// Returns the scenario and how it is run, and the controllers that the arguments name.
    pub fn selected(&self) -> (Selection, Vec<String>) {
        (self.selection.clone(), self.controllers.names.clone())
    }

    /// Makes the runs, as many as `repeats` says if the arguments do not.
    pub fn make(&self, pcap: Option<&Path>, repeats: impl FnOnce(&[Scenario]) -> u32) -> Result<Made> {
        let (selection, options) = (&self.selection, &self.selection.options);
        let registry = selection.registry(&self.controllers.names)?;
        let world = worlds::open(&options.world, None)?;
        let (controllers, scenarios) = selection.load_all(&self.controllers, &registry)?;
        let seeds = options.seeds.list(repeats(&scenarios))?;
        options.jobs.start()?;
        if pcap.is_some() {
            check_capture(&*world, scenarios.len() * seeds.len())?;
        }
        let store = self.out.as_deref().map(Store::create).transpose().into_diagnostic()?;
        let destination = Destination { store: store.as_ref(), pcap, resume: self.resume };
        interrupt::announce(self.out.as_deref(), Continues::Resume);
        let seconds = scenarios.iter().map(|s| s.plan.duration.as_secs_f64() * seeds.len() as f64).sum();
        let made = with_progress(&*world, &registry, seconds, |runner, _| -> Result<Vec<_>> {
            let mut made: Vec<MadeRuns<Report>> = Vec::new();
            for (name, scenario) in controllers.iter().zip(&scenarios) {
                let make = |to| make_runs(to, selection, name.as_deref(), runner, scenario, &seeds);
                made.push(match make(destination) {
                    // What earlier controllers did is printed nevertheless.
                    Err(problem) if !made.is_empty() => {
                        MadeRuns { unstored: Some(problem), ..make(Destination::default())? }
                    }
                    of_controller => of_controller?,
                });
            }
            Ok(made)
        })?;
        let (results, problems): (Vec<_>, Vec<_>) = made.into_iter().map(|made| (made.result, made.unstored)).unzip();
        let unstored = problems.into_iter().flatten().next();
        Ok(Made { registry, controllers, scenarios, seeds, store, results, unstored })
    }
}

fn check_capture(world: &dyn World, runs: usize) -> Result<()> {
    if runs != 1 {
        let help = "leave out --repeats and --seeds, or name one controller; --seed selects the run";
        return Err(miette!(help = help, "--pcap captures one run, not {runs}"));
    }
    if world.real_time() {
        let help =
            "capture the packets of a real path with a tool such as tcpdump, or use --out for the fate of each packet";
        return Err(miette!(help = help, "--pcap works in the simulator only, not in the world `{}`", world.name()));
    }
    Ok(())
}
