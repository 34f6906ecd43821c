// SPDX-License-Identifier: MIT OR Apache-2.0
//! The next timer of each flow. To ask every flow at each wake-up would take most of the time of a session with many flows.

use paceline_units::Time;

/// The times, by flow.
pub(crate) struct Timers(Vec<Time>);

impl Timers {
    /// Collects the first times; `None` for never.
    pub(crate) fn new(due: impl Iterator<Item = Option<Time>>) -> Self {
        Self(due.map(|due| due.unwrap_or(Time::MAX)).collect())
    }

    /// Sets the time of a flow, after each of its calls.
    pub(crate) fn set(&mut self, index: usize, due: Option<Time>) {
        self.0[index] = due.unwrap_or(Time::MAX);
    }

    /// Returns the time of a flow if it is not after `now`.
    pub(crate) fn due(&self, index: usize, now: Time) -> Option<Time> {
        self.0.get(index).copied().filter(|due| *due <= now)
    }

    /// Returns the earliest time; `None` for never.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.iter().min().copied().filter(|due| *due < Time::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_due_from_its_time_on() {
        let ms = Time::from_millis;
        let mut timers = Timers::new([Some(ms(5)), None, Some(ms(3))].into_iter());
        assert_eq!((timers.next(), timers.due(2, ms(2)), timers.due(2, ms(3))), (Some(ms(3)), None, Some(ms(3))));
        timers.set(2, None);
        timers.set(0, Some(ms(9)));
        assert_eq!((timers.next(), timers.due(0, ms(8)), timers.due(1, ms(99))), (Some(ms(9)), None, None));
        timers.set(0, None);
        assert_eq!(timers.next(), None);
    }
}
