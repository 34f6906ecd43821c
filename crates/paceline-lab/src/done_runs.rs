// SPDX-License-Identifier: MIT OR Apache-2.0
//! The finished runs of suites and reproductions in a folder of results, so that an interrupted one can continue.
//!
//! A run is stored when it ends, so a kill loses the runs in progress alone. Its identity is the hash of the resolved scenario,
//! the world, the seed and the version of the program; so a changed scenario or another version is run again, and a stored run
//! serves every suite that measures the same quantities. A run of an external controller is always made again, because its program
//! may have changed.

use crate::judge::RunValues;
use crate::results::StoreError;
use crate::results::database::{Database, FoundRun, QuantityKey};
use crate::run_identity::{ScenarioHashes, measured_run, quantity_key};
use paceline_scenario::Scenario;
use std::path::Path;

#[derive(Debug)]
pub struct DoneRuns {
    database: Database,
    count: u64,
}

impl DoneRuns {
    /// Opens a folder, which may be new.
    ///
    /// # Errors
    /// The folder contains something else, or the database cannot be read or written.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let database = Database::create(folder)?;
        let count = database.run_count()?;
        Ok(Self { database, count })
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn find(&self, scenario: &Scenario, world: &str, seed: u64) -> Result<Option<RunValues>, StoreError> {
        if self.count == 0 || is_external(scenario) {
            return Ok(None);
        }
        let inputs = ScenarioHashes::of(scenario).inputs(world, seed);
        let keys: Vec<QuantityKey> = scenario.quantities().map(|quantity| quantity_key(scenario, quantity)).collect();
        let found = self.database.find_run(&inputs, &keys)?;
        Ok(found.map(|FoundRun { trace_hash, values }| RunValues { trace_hash, values }))
    }

    pub(crate) fn add(&self, scenario: &Scenario, world: &str, seed: u64, run: &RunValues) -> Result<(), StoreError> {
        self.database.add_run(&measured_run(scenario, (world, seed), &run.trace_hash, &run.values))
    }
}

/// Returns whether a controller is a program or a library of the user.
pub(crate) fn is_external(scenario: &Scenario) -> bool {
    scenario.plan.flows.iter().filter_map(|flow| flow.media()).any(|media| media.controller.name.contains(':'))
}
