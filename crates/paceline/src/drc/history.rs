//! The rate and the queue of the last messages.

use paceline_units::{Rate, Time, TimeDelta};

/// The number of messages that are kept: 1.6 s at the shortest interval of feedback.
const CAPACITY: usize = 64;

/// What was decided at a message, and the queue that it showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Past {
    /// When.
    pub at: Time,
    /// The rate.
    pub rate: Rate,
    /// The queue.
    pub queue: TimeDelta,
}

/// A ring of the last messages.
#[derive(Clone, Debug)]
pub struct History {
    past: [Past; CAPACITY],
    next: usize,
    len: usize,
}

impl History {
    /// Creates a history without messages.
    pub fn new() -> Self {
        let none = Past { at: Time::ZERO, rate: Rate::ZERO, queue: TimeDelta::ZERO };
        Self { past: [none; CAPACITY], next: 0, len: 0 }
    }

    /// Adds a message.
    pub fn push(&mut self, past: Past) {
        self.past[self.next] = past;
        (self.next, self.len) = ((self.next + 1) % CAPACITY, (self.len + 1).min(CAPACITY));
    }

    /// Returns the latest message of `time` or before; the oldest that is kept if all are later, and `None` without messages.
    pub fn at(&self, time: Time) -> Option<Past> {
        let mut back = (1..=self.len).map(|n| self.past[(self.next + CAPACITY - n) % CAPACITY]);
        let mut found = None;
        back.find(|past| {
            found = Some(*past);
            past.at <= time
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_message_of_a_time_or_before() {
        let mut history = History::new();
        assert_eq!(history.at(Time::from_secs(1)), None);
        for n in 0..100_u64 {
            let at = Time::from_millis(25 * n as i64);
            history.push(Past { at, rate: Rate::from_bps(n), queue: TimeDelta::ZERO });
        }
        let of = |ms| history.at(Time::from_millis(ms)).unwrap().rate.as_bps();
        assert_eq!([of(9999), of(2475), of(2474), of(2000)], [99, 99, 98, 80]);
        assert_eq!(of(0), 36, "64 are kept");
    }
}
