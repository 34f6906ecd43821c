// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of an input as a scenario: of a folder that `--out` wrote from its packets, of a capture, a dump or statistics of a call
//! from the series of its fastest flow.

use super::observation::{Clocks, Collector, Observation};
use super::{PathFit, fit, scenario};
use crate::error::ReadError;
use crate::model::{Call, Flow};
use crate::path::{self, Unknown, observe};
use crate::readers;
use crate::readers::run::run_folder;
use paceline::Registry;
use paceline_lab::results::tables::RunTables;
use paceline_lab::results::{About, Store};
use paceline_scenario::{Changes, Origin, Scenario, ScenarioError};
use std::path::{Path, PathBuf};

/// The world whose ends have clocks of their own.
const APART: &str = "hosts";
/// The controller of a call whose own one is not known.
const CONTROLLER: &str = "googcc";
/// The name of the scenario in error messages.
const NAME: &str = "path.toml";

pub struct FittedScenario {
    /// The scenario file.
    pub text: String,
    /// The same, loaded.
    pub scenario: Scenario,
    /// The run of a folder; `None` for a call that one end recorded.
    pub run: Option<FittedRun>,
}

/// The run whose path was fitted.
pub struct FittedRun {
    /// What its ends know of the path.
    pub seen: Observation,
    pub seed: u64,
    /// Whether its flows filled the path; else the capacity is a lower bound.
    pub has_capacity: bool,
}

/// An input has no path that can be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The input does not exist.
    #[error("there is no {}", path.display())]
    Missing {
        /// The input.
        path: PathBuf,
    },
    /// The input cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The input.
        path: PathBuf,
        /// Why.
        error: ReadError,
    },
    /// A run was named, and the input is no folder.
    #[error("{} is no folder of --out, so it has no runs", path.display())]
    HasNoRuns {
        /// The input.
        path: PathBuf,
    },
    /// No flow of a call has a rate.
    #[error("{}: no flow has a rate, so its path is unknown", path.display())]
    HasNoRate {
        /// The input.
        path: PathBuf,
    },
    /// No packet of a run arrived.
    #[error("{}: no packet arrived", path.display())]
    HasNoPacket {
        /// The input.
        path: PathBuf,
    },
    /// The scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
}

impl FitError {
    /// Returns how to mend it; `None` for a scenario, whose error has its own hint.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::Missing { .. } => {
                "name a folder that --out wrote, or a capture, a dump or statistics of a call".to_owned()
            }
            Self::Read { error, .. } => error.help(),
            Self::HasNoRuns { .. } => "leave --run out".to_owned(),
            Self::HasNoRate { .. } => "`paceline explain` shows what is known of the call".to_owned(),
            Self::HasNoPacket { .. } => "a fit needs packets that arrived; store them with --out".to_owned(),
            Self::Scenario(_) => return None,
        })
    }
}

/// Fits the path of an input. `run` selects one of several runs of a folder, `controller` replaces those of its media flows.
///
/// # Errors
/// The input cannot be read, or has no path.
pub fn fit_input(
    input: &Path,
    run: Option<&str>,
    controller: Option<&str>,
    registry: &Registry,
) -> Result<FittedScenario, FitError> {
    let path = || input.to_path_buf();
    let failed = |error: ReadError| FitError::Read { path: path(), error };
    if !input.exists() {
        return Err(FitError::Missing { path: path() });
    }
    if !input.is_dir() {
        let call = readers::read(input, None).map_err(failed)?;
        return match run {
            Some(_) => Err(FitError::HasNoRuns { path: path() }),
            None => of_call(&call, input, controller, registry),
        };
    }
    let (folder, about, seen) = Store::read_settled(input, || {
        let folder = run_folder(input, run)?;
        let about = Store::read_run(&folder)?.about;
        let seen = packets(&folder, &about)?;
        Ok((folder, about, seen))
    })
    .map_err(failed)?;
    let seen = seen.ok_or(FitError::HasNoPacket { path: folder })?;
    let fitted = fit(&seen);
    let (text, scenario) = of_run(&fitted, &seen, &about, controller, registry)?;
    let run = FittedRun { seen, seed: about.run.seed, has_capacity: fitted.has_capacity() };
    Ok(FittedScenario { text, scenario, run: Some(run) })
}

fn load(text: &str, registry: &Registry) -> Result<Scenario, Box<ScenarioError>> {
    Ok(paceline_lab::load(&Origin::from_text(NAME, text.to_owned()), &Changes::default(), registry)?)
}

/// Returns the path of the fastest flow of a call that one end recorded.
fn of_call(
    call: &Call,
    input: &Path,
    controller: Option<&str>,
    registry: &Registry,
) -> Result<FittedScenario, FitError> {
    let paths = call.flows.iter().filter_map(|flow| Some((flow, observe(flow, Unknown::AsCarried)?)));
    // More is known of a flow at the end that sent it.
    let order = |(flow, path): &(&Flow, path::Path)| (flow.is_sent, path.highest_bps.round() as u64);
    let (flow, path) = paths.max_by_key(order).ok_or_else(|| FitError::HasNoRate { path: input.to_path_buf() })?;
    let rtt = if path.rtt_s.is_none() { "# The round-trip time is not known; this one is assumed.\n" } else { "" };
    let text = format!(
        "# The path of `{}` in a call ({}), in steps of a second. The capacity is known where a\n\
         # queue stood or nothing arrived: in {:.0} % of the call. Elsewhere it is what arrived, a lower bound.\n{rtt}{}",
        flow.name,
        call.format,
        100.0 * path.known,
        path.scenario(controller.unwrap_or(CONTROLLER)).trim_end()
    );
    let scenario = load(&text, registry)?;
    Ok(FittedScenario { text, scenario, run: None })
}

fn packets(folder: &Path, about: &About) -> Result<Option<Observation>, ReadError> {
    let header = about.header();
    let clocks = if about.run.world == APART { Clocks::Apart } else { Clocks::Same };
    let mut collector = Collector::new(&header, about.inputs.setting.as_ref(), clocks);
    RunTables::new(folder, about).replay(&header, &mut collector)?;
    Ok(collector.finish())
}

/// Returns the text of the scenario, and the scenario. Its flows are those of the run, if they can stand in a file of their own; else
/// media flows with the same controllers and targets.
fn of_run(
    path: &PathFit,
    seen: &Observation,
    about: &About,
    controller: Option<&str>,
    registry: &Registry,
) -> Result<(String, Scenario), Box<ScenarioError>> {
    let duration_s = about.inputs.setting.as_ref().map_or(0.0, |setting| setting.duration_s);
    let last = seen.forward.last().map_or(1.0, |packet| packet.sent);
    let duration_s = if duration_s > 0.0 { duration_s } else { last.max(1.0) };
    let origin = format!("{}, world {}, seed {}", about.run.scenario, about.run.world, about.run.seed);
    let write = |flows: &str| {
        let text = scenario::write(path, seen, &origin, duration_s, flows).trim_end().to_owned();
        load(&text, registry).map(|scenario| (text, scenario))
    };
    if let (None, Some(flows)) = (controller, own_flows(about))
        && let Ok(written) = write(&flows)
    {
        return Ok(written);
    }
    let control = |(index, id): (usize, &String)| {
        let own = about.run.controllers.get(index).cloned().flatten();
        let name = controller.map(str::to_owned).or(own).filter(|name| registry.get(name).is_some());
        seen.flows.contains(id).then(|| (id.clone(), name.unwrap_or_else(|| "fixed".to_owned())))
    };
    let flows: Vec<(String, String)> = about.flows.iter().enumerate().filter_map(control).collect();
    write(&scenario::media_flows(&flows, seen))
}

/// Returns the flows of the run's scenario as text; `None` if changes apply to it.
fn own_flows(about: &About) -> Option<String> {
    if !about.inputs.changes.is_empty() {
        return None;
    }
    let mut table: toml::Table = about.inputs.scenario_text.parse().ok()?;
    let flows = table.remove("flow")?;
    toml::to_string(&toml::Table::from_iter([("flow".to_owned(), flows)])).ok()
}
