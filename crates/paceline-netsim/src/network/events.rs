//! The event queue: a tournament tree over the components.
//!
//! A wake-up is one 128-bit key: due time, sequence number, component to wake. Wake-ups with equal times keep the order of
//! insertion. Each component has a leaf, because it has at most one wake-up, and each inner node has the smaller key of its
//! two children. Nothing is cancelled: a component that no longer needs a wake-up does nothing.

use paceline_units::Time;

const TARGET_BITS: u32 = 20;
const NEVER: u128 = (Time::MAX.as_nanos() as u128) << 64;

/// Pending wake-ups; each component has at most one, at its earliest time.
#[derive(Debug)]
pub(super) struct Events {
    /// The keys of nodes `2n` and `2n + 1`, the children of node `n`, at index `n`. The root is node 1, and the second half of
    /// all nodes are the leaves.
    nodes: Vec<[u128; 2]>,
    /// The leaf whose wake-up was returned last: the nodes above it still have its key. 0 for none.
    ///
    /// A component mostly sets its next wake-up before the next is returned, so one update of the path to the root serves both.
    popped: usize,
    sequence: u64,
    handled: u64,
}

impl Events {
    pub fn new(components: usize) -> Self {
        assert!(components < 1 << TARGET_BITS, "too many components");
        Self { nodes: vec![[NEVER; 2]; components.max(1)], popped: 0, sequence: 0, handled: 0 }
    }

    /// Wakes `component` at `at`, unless it has an earlier wake-up.
    #[inline]
    pub fn wake(&mut self, component: usize, at: Time) {
        let mut node = self.nodes.len() + component;
        let pending = &mut self.nodes[node / 2][node % 2];
        let due = (at.as_nanos() as u128) << 64;
        if due >= *pending & (u128::MAX << 64) {
            return;
        }
        let key = due | ((self.sequence << TARGET_BITS) | component as u64) as u128;
        self.sequence += 1;
        *pending = key;
        while node != self.popped && node > 1 {
            node /= 2;
            let least = &mut self.nodes[node / 2][node % 2];
            if key >= *least {
                return;
            }
            *least = key;
        }
    }

    /// Returns the next component to wake and its time; `None` if there is none by `end`.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<(Time, usize)> {
        let mut node = core::mem::take(&mut self.popped) / 2;
        while node > 0 {
            let [a, b] = self.nodes[node];
            self.nodes[node / 2][node % 2] = a.min(b);
            node /= 2;
        }
        let key = self.nodes[0][1];
        let at = Time::from_nanos((key >> 64) as i64);
        if at > end || key == NEVER {
            return None;
        }
        let component = (key as u64 & ((1 << TARGET_BITS) - 1)) as usize;
        self.popped = self.nodes.len() + component;
        self.nodes[self.popped / 2][self.popped % 2] = NEVER;
        self.handled += 1;
        Some((at, component))
    }

    /// Returns the time of the next wake-up; `None` without any.
    pub fn next(&self) -> Option<Time> {
        let key_of = |node: usize| self.nodes[node / 2][node % 2];
        let (mut node, mut key) = (self.popped, key_of(self.popped.max(1)));
        while node > 1 {
            key = key.min(key_of(node ^ 1));
            node /= 2;
        }
        (key != NEVER).then(|| Time::from_nanos((key >> 64) as i64))
    }

    /// Returns the number of wake-ups that were returned.
    pub fn handled(&self) -> u64 {
        self.handled
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
                assert_eq!(events.next(), Some(at));
                assert_eq!(events.pop(Time::MAX), Some((at, component)));
                assert_eq!(events.next(), model.iter().map(|(at, _, _)| *at).min());
                now = at;
            }
        }
        assert_eq!(events.pop(now - paceline_units::TimeDelta::from_nanos(1)), None);
    }
}
