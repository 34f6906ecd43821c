// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outputs of a link that are not due yet.

use super::output::Output;
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

    #[inline(always)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::queue::testing::packet;
    use paceline_units::{Ecn, TimeDelta};

    fn output(id: u32, due: Time) -> Output {
        let packet = packet(id, Ecn::NotEct);
        Output::Delivered { packet, waited: TimeDelta::ZERO, left: due, due }
    }

    /// Inserts outputs due at these milliseconds, numbered from 0, and removes all. Returns the numbers.
    fn order(wire: &mut Wire, due: &[i64]) -> Vec<u32> {
        for (id, ms) in (0..).zip(due) {
            wire.insert(output(id, Time::from_millis(*ms)));
        }
        assert_eq!(wire.first_due(), due.iter().min().map_or(Time::MAX, |ms| Time::from_millis(*ms)));
        std::iter::from_fn(|| wire.pop_first()).map(|output| output.packet().id).collect()
    }

    #[test]
    fn outputs_leave_by_due_time_and_then_in_order_of_insertion() {
        let mut wire = Wire::new();
        assert_eq!(order(&mut wire, &[10, 30, 20, 30, 10, 5]), [5, 0, 4, 2, 1, 3]);
        // Also after later ones have left.
        assert_eq!(order(&mut wire, &[7, 6, 7]), [1, 0, 2]);
        assert_eq!((wire.first_due(), wire.is_empty()), (Time::MAX, true));
    }

    #[test]
    fn only_an_output_that_is_never_due_is_stuck() {
        let mut wire = Wire::new();
        wire.insert(output(0, Time::from_millis(1)));
        assert_eq!(wire.pop_stuck(), None);
        wire.insert(output(1, Time::MAX));
        assert_eq!(wire.pop_stuck().map(|stuck| stuck.packet().id), Some(1));
        assert_eq!(order(&mut wire, &[2, 1]), [0, 1, 0], "the one of 1 ms before, then those of 1 and 2 ms");
    }
}
