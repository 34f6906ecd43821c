// SPDX-License-Identifier: MIT OR Apache-2.0
//! Storing a set of runs: the events and the result of each, and the group that comparisons and reports read.

use crate::done_runs::is_external;
use crate::group::{Provenance, group_of};
use crate::results::{RunInputs, Store, StoreError};
use crate::run::{Runner, RunsResult, summarise};
use crate::run_identity::{ScenarioHashes, changes, whole_values};
use crate::stored_run;
use paceline::Registry;
use paceline_netsim::records::{Environment, EventObserver, RunHeader};
use paceline_netsim::world::WorldError;
use paceline_scenario::Scenario;
use serde_json::{Map, Value, json};
use std::path::Path;

/// What a set of runs is made from, besides the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The program and the machine, as far as they are known.
    pub environment: Environment,
    pub scenario_text: String,
    pub changes: Vec<String>,
    pub command: String,
}

impl Inputs {
    pub fn manifest(&self, scenario: &Scenario, registry: &Registry) -> RunInputs {
        // The case is a change like any other. Assumed constants are kept apart, because the user did not write them.
        let assumed: Map<String, Value> =
            scenario.constants.iter().filter(|c| c.applied).map(|c| (c.key.clone(), json!(c.value))).collect();
        let hashes = ScenarioHashes::of(scenario);
        RunInputs {
            plan_hash: hashes.plan,
            scenario_hash: hashes.scenario,
            environment: Environment { version: env!("CARGO_PKG_VERSION").to_owned(), ..self.environment.clone() },
            scenario_text: self.scenario_text.clone(),
            changes: changes(&scenario.plan.case, self.changes.iter().cloned()),
            setting: Some(scenario.plan.describe(registry)),
            more: [("assumed".to_owned(), Value::Object(assumed))].into(),
            ..RunInputs::default()
        }
    }
}

/// Whether an interrupted set of runs can continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// Stores no more than the events and the result.
    #[default]
    Never,
    /// Every run is made, and can be read later.
    Later,
    /// Stored runs of the same inputs are read in place of being made. Runs of external controllers are made again, because their
    /// programs may have changed.
    Now,
}

/// Runs that were made, and the first problem of storing them. Runs after it are made, but not stored.
#[derive(Debug)]
#[must_use]
pub struct MadeRuns<E> {
    pub result: RunsResult,
    /// The problem; `None` if all are stored.
    pub unstored: Option<E>,
}

impl<E> MadeRuns<E> {
    /// Returns the results.
    pub fn stored(self) -> Result<RunsResult, E> {
        self.unstored.map_or(Ok(self.result), Err)
    }
}

/// Makes runs one after the other, each with an observer from `attach`, such as a packet capture, which `detach` closes.
/// If there is a store, it receives the events and the result of each run and the group of all.
///
/// # Errors
/// The world cannot run one of them, or the first one cannot be stored or observed.
pub fn run_and_store<O: EventObserver, E: From<WorldError> + From<StoreError>>(
    runner: &Runner<'_>,
    scenario: &Scenario,
    seeds: &[u64],
    (store, inputs): (Option<&Store>, Inputs),
    attach: impl FnMut(&RunHeader) -> Result<O, E>,
    detach: impl FnMut(O) -> Result<(), E>,
) -> Result<MadeRuns<E>, E> {
    run_or_resume(runner, scenario, seeds, (store, inputs, Resume::Never), attach, detach)
}

/// Makes runs as [`run_and_store`], except those that `resume` finds in the store, which need no observer.
pub fn run_or_resume<O: EventObserver, E: From<WorldError> + From<StoreError>>(
    runner: &Runner<'_>,
    scenario: &Scenario,
    seeds: &[u64],
    (store, inputs, resume): (Option<&Store>, Inputs, Resume),
    mut attach: impl FnMut(&RunHeader) -> Result<O, E>,
    mut detach: impl FnMut(O) -> Result<(), E>,
) -> Result<MadeRuns<E>, E> {
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let reads = resume == Resume::Now && !is_external(scenario);
    let (mut runs, mut folders, mut unstored) = (Vec::new(), Vec::new(), None);
    let manifest = inputs.manifest(scenario, runner.registry);
    for seed in seeds {
        let header = scenario.plan.header(runner.registry, runner.world.name(), *seed);
        let store = store.filter(|_| unstored.is_none());
        let stored = store.filter(|_| reads).map(|store| store.find(&header, &manifest)).transpose()?.flatten();
        if let Some((folder, run)) = stored.and_then(|(_, folder)| stored_run::read(&folder).map(|run| (folder, run))) {
            folders.extend(name(&folder));
            runs.push(run);
            continue;
        }
        let (result, (stored, attached)) = runner.retry_if_disturbed(|| -> Result<_, E> {
            let stored = store.map(|store| store.run(&header, manifest.clone())).transpose();
            let stored = match stored {
                Err(problem) if !runs.is_empty() => {
                    unstored = Some(problem.into());
                    None
                }
                stored => stored?,
            };
            let mut stored = stored.map(|stored| stored.in_parts(runner.world.real_time()));
            let mut attached = attach(&header)?;
            let result = runner.run(scenario, *seed, Some(&mut (&mut stored, &mut attached)))?;
            Ok((result, (stored, attached)))
        })?;
        if let Some(mut stored) = stored {
            if resume != Resume::Never {
                stored.on_attachment(stored_run::FILE, &stored_run::text(&result));
            }
            let document = serde_json::to_value(&result).expect("names and numbers become JSON");
            match stored.finish(&document, whole_values(scenario, &result.whole)) {
                Ok(folder) => folders.extend(name(&folder)),
                Err(problem) => unstored = Some(problem.into()),
            }
        }
        unstored = unstored.or(detach(attached).err());
        runs.push(result);
    }
    let result = summarise(scenario, runs);
    let Inputs { changes, command, .. } = inputs;
    let making = Provenance { version: manifest.environment.version, command, changes, runs: folders };
    let store = store.filter(|_| unstored.is_none());
    if let Some((store, group)) = store.zip(group_of(scenario, &result, making)) {
        unstored = store.group(&group).err().map(E::from);
    }
    Ok(MadeRuns { result, unstored })
}
