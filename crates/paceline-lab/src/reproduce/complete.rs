// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the missing runs of a reproduction in real time.

use super::{FinishedRun, PendingRun, RealtimeReproduction};
use crate::results::Store;
use crate::run::Runner;
use crate::run_cache::RunCacheError;
use paceline_netsim::world::WorldError;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Limits of [`RealtimeReproduction::complete`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub at_once: usize,
    /// No run starts that would end later than this, in seconds on the runner's clock.
    pub within_s: Option<f64>,
}

impl RealtimeReproduction {
    /// Makes the missing runs in order, each into the store if there is one. `log` receives a line for each run.
    ///
    /// # Errors
    /// The first error of a run or of the store; no run starts after it. An experiment that the world does not support is
    /// not an error: its cells get the cause.
    pub fn complete(
        &mut self,
        runner: &Runner<'_>,
        store: Option<&Store>,
        limits: Limits,
        log: &(dyn Fn(&str) + Sync),
    ) -> Result<(), RunCacheError> {
        let failed = AtomicBool::new(false);
        let made: Mutex<Vec<(PendingRun, Result<FinishedRun, RunCacheError>)>> = Mutex::new(Vec::new());
        let fits =
            |task: &PendingRun| limits.within_s.is_none_or(|limit| (runner.clock)() + self.seconds(task) <= limit);
        let make = |task: PendingRun| {
            if failed.load(Ordering::Relaxed) || !fits(&task) {
                return;
            }
            let done = self.make(runner, store, &task);
            let run = self.describe(&task);
            match &done {
                Ok(FinishedRun { disturbed: None, .. }) => log(&format!("{run}: done")),
                Ok(FinishedRun { disturbed: Some(why), .. }) => log(&format!("{run}: disturbed: {why}")),
                Err(RunCacheError::World(WorldError::Unavailable { cause, .. })) => {
                    log(&format!("{run}: not run: {cause}"));
                }
                Err(_) => failed.store(true, Ordering::Relaxed),
            }
            made.lock().unwrap_or_else(PoisonError::into_inner).push((task, done));
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(limits.at_once).build();
        let pool = pool.map_err(|error| WorldError::Broken { cause: format!("cannot start threads: {error}") })?;
        // `par_bridge` keeps the order of the tasks.
        pool.install(|| self.missing().into_iter().par_bridge().for_each(make));
        let mut failure = None;
        for (task, done) in made.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match done {
                Ok(done) => self.add(&task, done),
                Err(RunCacheError::World(WorldError::Unavailable { cause, .. })) => self.mark_unavailable(&task, cause),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
