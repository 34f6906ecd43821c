//! The outputs of a link that are not due yet.

use super::hop::Output;
use paceline_units::Time;
use std::collections::VecDeque;

/// Outputs in order of due time; equal times keep the order of insertion.
pub(super) struct Wire {
    outputs: VecDeque<Output>,
    /// Due time of the first output; [`Time::MAX`] if there is none.
    first_due: Time,
    /// Not before the due time of any output.
    latest_due: Time,
}

impl Wire {
    pub fn new() -> Self {
        Self { outputs: VecDeque::new(), first_due: Time::MAX, latest_due: Time::ZERO }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Returns the due time of the first output; [`Time::MAX`] for never.
    #[inline]
    pub fn first_due(&self) -> Time {
        self.first_due
    }

    #[inline]
    pub fn insert(&mut self, output: Output) {
        let due = output.due();
        self.first_due = self.first_due.min(due);
        if due >= self.latest_due {
            self.latest_due = due;
            self.outputs.push_back(output);
        } else {
            let index = self.outputs.partition_point(|other| other.due() <= due);
            self.outputs.insert(index, output);
        }
    }

    /// Removes the first output.
    #[inline]
    pub fn pop_first(&mut self) -> Option<Output> {
        let first = self.outputs.pop_front();
        self.first_due = self.outputs.front().map_or(Time::MAX, Output::due);
        first
    }

    /// Removes the last output if it is never due.
    pub fn pop_stuck(&mut self) -> Option<Output> {
        let stuck = self.outputs.pop_back_if(|last| last.due() == Time::MAX)?;
        self.latest_due = self.outputs.back().map_or(Time::ZERO, Output::due);
        Some(stuck)
    }
}
