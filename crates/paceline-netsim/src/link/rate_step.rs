// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a change of the rate does to a token bucket and its queue.
//!
//! Linux fills the bucket of a `tbf` whenever its parameters change (`tbf_change` in `sch_tbf.c` sets `tokens` to
//! `buffer`) and keeps the queue. `tc qdisc del` and `add` create a full bucket with an empty queue.

use super::capacity::Capacity;
use paceline_units::Time;
use std::collections::VecDeque;

/// What happens to tokens and queue when the rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateStep {
    /// Both stay.
    #[default]
    Keep,
    /// The bucket is full and the queue stays, as after `tc qdisc change` of a tbf.
    Change,
    /// The bucket is full and the queue is lost, as after `tc qdisc del` and `tc qdisc add`.
    DeleteAdd,
}

impl RateStep {
    /// The names in scenarios, in order.
    pub const NAMES: [&'static str; 3] = ["keep", "change", "delete-add"];

    /// Returns the variant with this name.
    pub fn named(name: &str) -> Option<Self> {
        let index = Self::NAMES.iter().position(|of| *of == name)?;
        Some([Self::Keep, Self::Change, Self::DeleteAdd][index])
    }
}

/// The times at which the rate of a link changes.
#[derive(Debug)]
pub(super) struct RateSteps {
    /// The next change; [`Time::MAX`] for never.
    next: Time,
    later: VecDeque<Time>,
}

impl RateSteps {
    /// Returns the changes after `now`; none if they leave tokens and queue as they are.
    pub fn new(rate_step: RateStep, capacity: Option<&Capacity>, now: Time) -> Self {
        let capacity = capacity.filter(|_| rate_step != RateStep::Keep);
        let mut later: VecDeque<Time> = capacity.into_iter().flat_map(|of| of.changes_after(now)).collect();
        Self { next: later.pop_front().unwrap_or(Time::MAX), later }
    }

    /// Returns the next change; [`Time::MAX`] for never.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// Marks the next change as passed.
    pub fn advance(&mut self) {
        self.next = self.later.pop_front().unwrap_or(Time::MAX);
    }
}
