// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator with runs that can be stopped.

use super::Simulation;
use crate::plan::Plan;
use crate::records::EventObserver;
use crate::world::{Outcome, World, WorldError};
use paceline::Registry;
use paceline_units::{Time, TimeDelta};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time between two checks.
const STEP: TimeDelta = TimeDelta::from_millis(200);

/// The simulator, whose runs break off when this flag is set.
#[derive(Clone, Debug)]
pub struct StoppableSimulator(pub Arc<AtomicBool>);

impl World for StoppableSimulator {
    fn name(&self) -> &'static str {
        crate::records::SIMULATOR
    }

    fn run(
        &self,
        plan: &Plan,
        registry: &Registry,
        seed: u64,
        observer: &mut dyn EventObserver,
    ) -> Result<Outcome, WorldError> {
        let mut run = Simulation::new(plan, registry, seed, observer)?;
        let mut now = Time::ZERO;
        while now < run.end {
            if self.0.load(Ordering::Relaxed) {
                return Err(WorldError::Broken { cause: "interrupted".to_owned() });
            }
            now = (now + STEP).min(run.end);
            run.advance(now).map_err(|failure| failure.in_run(plan, seed))?;
        }
        Ok(run.outcome())
    }
}
