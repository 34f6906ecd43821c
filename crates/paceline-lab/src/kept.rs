//! A run that is made once: with its rows in a store, if there is one, and with what its document says besides the result.

use crate::plan::Plan;
use crate::rows::RowSink;
use crate::run::{self, RunResult, Runner};
use crate::store::{RunManifest, Store, StoreError};
use crate::world::WorldError;
use serde_json::Value;

/// Why a run that was to be kept came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// The world could not run it.
    #[error(transparent)]
    World(#[from] WorldError),
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a run until the machine does not disturb it, and answers its document: the result, and under a name of their own
/// the findings of `watch`, which saw all rows.
pub(crate) fn made<W: RowSink>(
    runner: &Runner<'_>,
    plan: &Plan,
    seed: u64,
    into: Option<(&Store, &RunManifest)>,
    watch: impl Fn() -> W,
    found: impl FnOnce(&RunResult, W) -> (&'static str, Value),
) -> Result<Value, KeptError> {
    let header = run::header(plan, runner.registry, runner.world.name(), seed);
    let (result, (rows, watched)) = runner.undisturbed(|| -> Result<_, KeptError> {
        let rows = into.map(|(store, inputs)| store.run(&header, inputs.clone())).transpose()?;
        let mut rows = rows.map(|rows| rows.in_parts(runner.world.real_time()));
        let mut watched = watch();
        let result = runner.run(plan, seed, Some(&mut (&mut rows, &mut watched)))?;
        Ok((result, (rows, watched)))
    })?;
    let mut document = serde_json::to_value(&result).expect("names and numbers become JSON");
    let (name, found) = found(&result, watched);
    document[name] = found;
    if let Some(rows) = rows {
        rows.finish(&document)?;
    }
    Ok(document)
}
