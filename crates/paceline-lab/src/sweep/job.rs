//! A job, what it is known by, and what it came to.

use super::{Sweep, VERSION};
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// One run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number, from 0: points in their order, of each its subjects, of each its seeds.
    pub number: u64,
    /// Which point.
    pub point: u64,
    /// Which of a point's scenarios.
    pub subject: usize,
    /// Its seed.
    pub seed: u64,
}

/// What a job came to: a line of a part, a row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRow {
    /// Its number.
    pub job: u64,
    /// Hash, 16 hexadecimal digits, of all that its values hang on but code: the plan with nothing left open, seed, world,
    /// version. Where code is the same, jobs of any sweeps with the same address come to the same.
    pub address: String,
    /// Hash over every decision of links and endpoints, as of a run.
    pub trace_hash: String,
    /// The measures of its subject, in their order; none where the run has no value.
    pub values: Vec<Option<f64>>,
}

impl Sweep {
    /// How many jobs there are.
    pub fn jobs(&self) -> u64 {
        self.points() * self.subjects.len() as u64 * self.repeats
    }

    /// The job of a number below [`Sweep::jobs`].
    pub fn job(&self, number: u64) -> Job {
        let (rest, seed) = (number / self.repeats, number % self.repeats + 1);
        let subjects = self.subjects.len() as u64;
        Job { number, point: rest / subjects, subject: (rest % subjects) as usize, seed }
    }
}

/// The address of a run of this plan.
pub(super) fn address(plan: &Plan, world: &str, seed: u64) -> String {
    let mut hash = Hash(blake3::Hasher::new_derive_key("paceline 2026 job of a sweep"));
    let Plan { duration, hops, forward_hops, bottleneck, flows, measure, references, .. } = plan;
    // What a plan is called does not matter, and who made it no longer does.
    let decides = (duration, hops, forward_hops, bottleneck, flows, measure, references);
    write!(hash, "{VERSION}\n{world}\n{seed}\n{decides:?}").expect("a hash takes everything");
    hash.0.finalize().to_hex()[..16].to_owned()
}

struct Hash(blake3::Hasher);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}
