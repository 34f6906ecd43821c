//! The runs of a gap: each is made once. What a folder holds of an earlier start, which may have been cut at any moment,
//! is taken from there.

use super::{GapRun, WAITING, WaitingAt};
use crate::kept::{self, KeptError};
use crate::plan::Plan;
use crate::run::{self, Runner};
use crate::store::{RunManifest, Store, StoreError};
use paceline::Registry;

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
    ) -> Result<Self, KeptError> {
        let watch = || WaitingAt::bottleneck(plan);
        let document = kept::made(runner, plan, seed, into, watch, |_, waiting| {
            (WAITING, serde_json::to_value(waiting.finish()).expect("counts become JSON"))
        })?;
        Ok(Self::of(plan, &document).expect("a document says what was put into it"))
    }
}
