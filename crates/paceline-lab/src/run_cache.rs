// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache of runs in real time: a run that a folder of results already contains is not repeated.
//!
//! A use case stores its own findings in the run's document (`run --json` prints it) under one name, and reads a stored run back from
//! that document. So a stored run serves as well as a fresh one.

use crate::results::{RunInputs, Store, StoreError};
use crate::run::{RunResult, Runner};
use crate::run_identity::whole_values;
use paceline::Registry;
use paceline_netsim::records::EventObserver;
use paceline_netsim::world::WorldError;
use paceline_scenario::Scenario;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunCacheError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The findings of a use case on one run.
pub trait CachedRun: Sized {
    const NAME: &'static str;
    type Observer: EventObserver;

    fn observer(scenario: &Scenario) -> Self::Observer;
    fn findings(scenario: &Scenario, result: &RunResult, observer: Self::Observer) -> Value;
    /// Reads a run of this scenario from its document; `None` if the document lacks findings that are needed now.
    fn from_document(scenario: &Scenario, document: &Value) -> Option<Self>;
}

pub fn find<R: CachedRun>(
    (store, inputs): (&Store, &RunInputs),
    registry: &Registry,
    world: &str,
    scenario: &Scenario,
    seed: u64,
) -> Result<Option<R>, StoreError> {
    let document = store.result(&scenario.plan.header(registry, world, seed), inputs)?;
    Ok(document.and_then(|document| R::from_document(scenario, &document)))
}

/// Makes a run, repeats it while other load of the host disturbs it, and stores events and document, if there is a store.
pub fn make<R: CachedRun>(
    runner: &Runner<'_>,
    scenario: &Scenario,
    seed: u64,
    into: Option<(&Store, &RunInputs)>,
) -> Result<R, RunCacheError> {
    let header = scenario.plan.header(runner.registry, runner.world.name(), seed);
    let (result, (stored, observer)) = runner.retry_if_disturbed(|| -> Result<_, RunCacheError> {
        let stored = into.map(|(store, inputs)| store.run(&header, inputs.clone())).transpose()?;
        let mut stored = stored.map(|stored| stored.in_parts(runner.world.real_time()));
        let mut observer = R::observer(scenario);
        let result = runner.run(scenario, seed, Some(&mut (&mut stored, &mut observer)))?;
        Ok((result, (stored, observer)))
    })?;
    let mut document = serde_json::to_value(&result).expect("names and numbers become JSON");
    document[R::NAME] = R::findings(scenario, &result, observer);
    if let Some(stored) = stored {
        stored.finish(&document, whole_values(scenario, &result.whole))?;
    }
    Ok(R::from_document(scenario, &document).expect("the document contains the findings"))
}
