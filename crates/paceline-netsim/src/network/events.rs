// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event queue: two tournament trees, one over the hops and one over the other components.
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
    /// Hops are the first components and wake for every packet. In a tree of their own they are few steps from its root,
    /// however many flows there are.
    hops: Tree,
    others: Tree,
    sequence: u64,
    handled: u64,
}

impl Events {
    /// Creates the queue of this many hops and other components.
    pub fn new(hops: usize, others: usize) -> Self {
        assert!(hops + others < 1 << TARGET_BITS, "too many components");
        Self { hops: Tree::new(0, hops), others: Tree::new(hops, others), sequence: 0, handled: 0 }
    }

    /// Wakes a hop at `at`, unless it has an earlier wake-up.
    #[inline]
    pub fn wake_hop(&mut self, component: usize, at: Time) {
        self.hops.wake(component, at, &mut self.sequence);
    }

    /// Wakes a component that is not a hop at `at`, unless it has an earlier wake-up.
    #[inline]
    pub fn wake_other(&mut self, component: usize, at: Time) {
        self.others.wake(component, at, &mut self.sequence);
    }

    /// Returns whether a component that is not a hop has a wake-up at `at` or before.
    pub fn wakes_by(&self, component: usize, at: Time) -> bool {
        time(self.others.key(self.others.leaf(component))) <= at
    }

    /// Returns the next component to wake and its time; `None` if there is none by `end`.
    #[inline(always)]
    pub fn pop(&mut self, end: Time) -> Option<(Time, usize)> {
        let (hop, other) = (self.hops.least(), self.others.least());
        // One branch for each tree costs less than a choice between their fields.
        let removed = if hop < other { self.hops.remove(hop, end) } else { self.others.remove(other, end) };
        self.handled += u64::from(removed.is_some());
        removed
    }

    /// Returns the time of the next wake-up; `None` without any.
    pub fn next(&self) -> Option<Time> {
        let key = self.hops.peek().min(self.others.peek());
        (key != NEVER).then(|| time(key))
    }

    /// Returns the number of wake-ups that were returned.
    pub fn handled(&self) -> u64 {
        self.handled
    }
}

/// Returns the due time of a key.
#[inline]
fn time(key: u128) -> Time {
    Time::from_nanos((key >> 64) as i64)
}

/// A tournament tree over components with consecutive numbers.
#[derive(Debug)]
struct Tree {
    /// The number of the first component.
    first: usize,
    /// The keys of nodes `2n` and `2n + 1`, the children of node `n`, at index `n`. The root is node 1, and the second half of
    /// all nodes are the leaves. Node 1 has no key of its own.
    nodes: Vec<[u128; 2]>,
    /// The leaf whose key was removed last: the nodes above it still have its key. 0 for none.
    ///
    /// A component mostly sets its next wake-up before the next is removed, so one update of the path to the root serves both.
    removed: usize,
}

impl Tree {
    fn new(first: usize, components: usize) -> Self {
        Self { first, nodes: vec![[NEVER; 2]; components.max(2)], removed: 0 }
    }

    #[inline]
    fn leaf(&self, component: usize) -> usize {
        self.nodes.len() + component - self.first
    }

    #[inline]
    fn wake(&mut self, component: usize, at: Time, sequence: &mut u64) {
        let mut node = self.leaf(component);
        let pending = self.key_mut(node);
        if at >= time(*pending) {
            return;
        }
        let key = (at.as_nanos() as u128) << 64 | ((*sequence << TARGET_BITS) | component as u64) as u128;
        *sequence += 1;
        *pending = key;
        while node != self.removed && node > 3 {
            node /= 2;
            let least = self.key_mut(node);
            if key >= *least {
                return;
            }
            *least = key;
        }
    }

    /// Returns the least key; [`NEVER`] for none.
    #[inline]
    fn least(&mut self) -> u128 {
        let mut node = core::mem::take(&mut self.removed) / 2;
        while node > 1 {
            let [a, b] = self.nodes[node];
            *self.key_mut(node) = a.min(b);
            node /= 2;
        }
        let [a, b] = self.nodes[1];
        a.min(b)
    }

    /// Removes a key, which is the least, unless it is later than `end`. Returns its time and component.
    #[inline]
    fn remove(&mut self, key: u128, end: Time) -> Option<(Time, usize)> {
        let (at, component) = (time(key), (key as u64 & ((1 << TARGET_BITS) - 1)) as usize);
        // No other key than NEVER has the time MAX.
        if at > end || at == Time::MAX {
            return None;
        }
        self.removed = self.leaf(component);
        *self.key_mut(self.removed) = NEVER;
        Some((at, component))
    }

    /// Returns the least key without changing the tree.
    fn peek(&self) -> u128 {
        let mut node = self.removed.max(2);
        let mut key = self.key(node);
        while node > 1 {
            key = key.min(self.key(node ^ 1));
            node /= 2;
        }
        key
    }

    fn key(&self, node: usize) -> u128 {
        self.nodes.as_flattened()[node]
    }

    #[inline]
    fn key_mut(&mut self, node: usize) -> &mut u128 {
        &mut self.nodes.as_flattened_mut()[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn order_agrees_with_a_sorted_list() {
        let nanos = paceline_units::TimeDelta::from_nanos;
        let mut random = RandomStreams::new(1).stream("events");
        for (hops, others) in [(0, 2), (1, 0), (1, 2), (2, 2), (2, 3), (3, 3), (5, 1), (2, 48), (40, 7)] {
            let mut events = Events::new(hops, others);
            let mut model: Vec<(Time, u64, usize)> = Vec::new();
            let mut now = Time::ZERO;
            for step in 0..5_000u64 {
                let component = (random.bits() % (hops + others) as u64) as usize;
                let at = now + nanos((random.bits() % 20) as i64);
                match component < hops {
                    true => events.wake_hop(component, at),
                    false => events.wake_other(component, at),
                }
                match model.iter_mut().find(|(_, _, c)| *c == component) {
                    Some(entry) if at < entry.0 => *entry = (at, step, component),
                    Some(_) => {}
                    None => model.push((at, step, component)),
                }
                if step % 3 == 0 {
                    model.sort_unstable();
                    let (at, _, component) = model.remove(0);
                    assert_eq!(events.pop(at - nanos(1)), None);
                    assert_eq!(events.next(), Some(at));
                    assert_eq!(events.pop(Time::MAX), Some((at, component)));
                    assert_eq!(events.next(), model.iter().map(|(at, _, _)| *at).min());
                    now = at;
                }
            }
            while events.pop(Time::MAX).is_some() {
                model.pop();
            }
            assert!(model.is_empty() && events.next().is_none());
        }
    }
}
