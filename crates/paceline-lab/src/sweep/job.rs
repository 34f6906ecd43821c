// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job, its address, and its result.

use super::Sweep;
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number, from 0, in the order of points, subjects, seeds.
    pub number: u64,
    pub point: u64,
    pub subject: usize,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRow {
    pub job: u64,
    /// Hash of its inputs, 16 hexadecimal digits: the resolved scenario, seed, world, version. With the same code, jobs of any
    /// sweeps with the same address have the same result.
    pub address: String,
    /// Hash of the resolved scenario without its controllers.
    pub scenario_hash: String,
    pub duration_s: f64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// The measures of its subject, in order; `None` if the run has no value.
    pub values: Vec<Option<f64>>,
}

impl Sweep {
    pub fn jobs(&self) -> u64 {
        self.points() * self.subjects.len() as u64 * self.repeats
    }

    pub fn job(&self, number: u64) -> Job {
        let (rest, seed) = (number / self.repeats, number % self.repeats + 1);
        let subjects = self.subjects.len() as u64;
        Job { number, point: rest / subjects, subject: (rest % subjects) as usize, seed }
    }
}

pub(super) fn in_batches(jobs: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = jobs;
    (start..end).step_by(size as usize).map(move |from| from..(from + size).min(end))
}
