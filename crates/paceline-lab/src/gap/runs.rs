//! The runs of a gap: each is made once. What a folder holds of an earlier start, which may have been cut at any moment,
//! is taken from there.

use super::{GapRun, WAITING, WaitingAt};
use crate::plan::Plan;
use crate::run::{self, Runner};
use crate::store::{RunManifest, Store, StoreError};
use crate::world::WorldError;
use paceline::Registry;

/// Why a run of a gap came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GapError {
    /// The world could not run it.
    #[error(transparent)]
    World(#[from] WorldError),
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GapRun {
    /// The run of this plan, world and seed that the store holds, if it was made from what `inputs` says, and as a gap
    /// makes it.
    ///
    /// # Errors
    /// The store's manifest cannot be read.
    pub fn stored(
        (store, inputs): (&Store, &RunManifest),
        registry: &Registry,
        world: &str,
        plan: &Plan,
        seed: u64,
    ) -> Result<Option<Self>, StoreError> {
        let document = store.result(&run::header(plan, registry, world, seed), inputs)?;
        Ok(document.and_then(|document| Self::of(plan, &document)))
    }

    /// Makes a run; into the store, if there is one: rows, and the result with how long packets waited.
    ///
    /// # Errors
    /// The world cannot run it, or the store cannot keep it.
    pub fn made(
        runner: &Runner<'_>,
        plan: &Plan,
        seed: u64,
        into: Option<(&Store, &RunManifest)>,
    ) -> Result<Self, GapError> {
        let header = run::header(plan, runner.registry, runner.world.name(), seed);
        let (result, (rows, waiting)) = runner.undisturbed(|| -> Result<_, GapError> {
            let rows = into.map(|(store, inputs)| store.run(&header, inputs.clone())).transpose()?;
            let mut rows = rows.map(|rows| rows.in_parts(runner.world.real_time()));
            let mut waiting = WaitingAt::bottleneck(plan);
            let result = runner.run(plan, seed, Some(&mut (&mut rows, &mut waiting)))?;
            Ok((result, (rows, waiting)))
        })?;
        let mut document = serde_json::to_value(&result).expect("names and numbers become JSON");
        document[WAITING] = serde_json::to_value(waiting.finish()).expect("counts become JSON");
        if let Some(rows) = rows {
            rows.finish(&document)?;
        }
        Ok(Self::of(plan, &document).expect("a document says what was put into it"))
    }
}
