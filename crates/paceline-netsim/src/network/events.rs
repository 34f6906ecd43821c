//! The event queue: a heap of small keys with a total order.
//!
//! An event is one 128-bit key: due time, sequence number, component to wake. Events with equal times keep the order of
//! insertion. Nothing is cancelled: a component that no longer needs a wake-up does nothing.

use paceline_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const TARGET_BITS: u32 = 20;
const NEVER: u128 = (Time::MAX.as_nanos() as u128) << 64;

/// Pending wake-ups; each component has at most one, at its earliest time.
#[derive(Debug)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<u128>>,
    sequence: u64,
    /// The key of each component's pending wake-up, [`NEVER`] without one. Other keys in the heap are stale and skipped.
    scheduled: Vec<u128>,
    handled: u64,
    pending_max: usize,
}

impl Events {
    pub fn new(components: usize) -> Self {
        assert!(components < 1 << TARGET_BITS, "more components than an event can name");
        let scheduled = vec![NEVER; components];
        Self { heap: BinaryHeap::new(), sequence: 0, scheduled, handled: 0, pending_max: 0 }
    }

    /// Wakes `component` at `at`, unless it has an earlier wake-up.
    #[inline]
    pub fn wake(&mut self, component: usize, at: Time) {
        let due = (at.as_nanos() as u128) << 64;
        if due >= self.scheduled[component] & (u128::MAX << 64) {
            return;
        }
        let key = due | ((self.sequence << TARGET_BITS) | component as u64) as u128;
        self.sequence += 1;
        self.scheduled[component] = key;
        self.heap.push(Reverse(key));
        self.pending_max = self.pending_max.max(self.heap.len());
    }

    /// Returns the next component to wake and its time; `None` if there is none by `end`.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<(Time, usize)> {
        loop {
            let Reverse(key) = *self.heap.peek()?;
            let at = Time::from_nanos((key >> 64) as i64);
            if at > end {
                return None;
            }
            self.heap.pop();
            let component = (key as u64 & ((1 << TARGET_BITS) - 1)) as usize;
            if self.scheduled[component] == key {
                self.scheduled[component] = NEVER;
                self.handled += 1;
                return Some((at, component));
            }
        }
    }

    /// Returns a lower bound of the next wake-up, which a stale key may determine; `None` without any key.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(key)| Time::from_nanos((key >> 64) as i64))
    }

    pub fn handled(&self) -> u64 {
        self.handled
    }

    pub fn pending_max(&self) -> usize {
        self.pending_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn order_agrees_with_a_sorted_list() {
        let mut random = RandomStreams::new(1).stream("events");
        let mut events = Events::new(50);
        let mut model: Vec<(Time, u64, usize)> = Vec::new();
        let mut now = Time::ZERO;
        for step in 0..20_000u64 {
            let component = (random.bits() % 50) as usize;
            let at = now + paceline_units::TimeDelta::from_nanos((random.bits() % 20) as i64);
            events.wake(component, at);
            match model.iter_mut().find(|(_, _, c)| *c == component) {
                Some(entry) if at < entry.0 => *entry = (at, step, component),
                Some(_) => {}
                None => model.push((at, step, component)),
            }
            if step % 3 == 0 {
                model.sort_unstable();
                let (at, _, component) = model.remove(0);
                assert_eq!(events.pop(Time::MAX), Some((at, component)));
                now = at;
            }
        }
        assert_eq!(events.pop(now - paceline_units::TimeDelta::from_nanos(1)), None);
    }
}
