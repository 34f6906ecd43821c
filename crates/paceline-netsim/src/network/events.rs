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
    /// The first `hops` components wake for every packet. In a tree of their own they are few steps from its root, however many
    /// flows there are.
    hops: usize,
    hop_tree: Tree,
    flow_tree: Tree,
    sequence: u64,
    handled: u64,
}

impl Events {
    /// Creates the queue of this many components, of which the first `hops` are hops.
    pub fn new(hops: usize, components: usize) -> Self {
        assert!(components < 1 << TARGET_BITS, "too many components");
        let (hop_tree, flow_tree) = (Tree::new(hops), Tree::new(components - hops));
        Self { hops, hop_tree, flow_tree, sequence: 0, handled: 0 }
    }

    /// Wakes `component` at `at`, unless it has an earlier wake-up.
    #[inline]
    pub fn wake(&mut self, component: usize, at: Time) {
        let (tree, leaf) = self.leaf(component);
        let due = (at.as_nanos() as u128) << 64;
        if due >= tree.key(leaf) & (u128::MAX << 64) {
            return;
        }
        let key = due | ((self.sequence << TARGET_BITS) | component as u64) as u128;
        let (tree, leaf) = self.leaf(component);
        tree.lower(leaf, key);
        self.sequence += 1;
    }

    /// Returns the next component to wake and its time; `None` if there is none by `end`.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<(Time, usize)> {
        self.hop_tree.update();
        self.flow_tree.update();
        let key = self.hop_tree.least().min(self.flow_tree.least());
        let at = Time::from_nanos((key >> 64) as i64);
        if at > end || key == NEVER {
            return None;
        }
        let component = (key as u64 & ((1 << TARGET_BITS) - 1)) as usize;
        let (tree, leaf) = self.leaf(component);
        tree.remove(leaf);
        self.handled += 1;
        Some((at, component))
    }

    /// Returns the tree of a component and its number there.
    #[inline]
    fn leaf(&mut self, component: usize) -> (&mut Tree, usize) {
        match component.checked_sub(self.hops) {
            None => (&mut self.hop_tree, component),
            Some(number) => (&mut self.flow_tree, number),
        }
    }

    /// Returns the time of the next wake-up; `None` without any.
    pub fn next(&self) -> Option<Time> {
        let key = self.hop_tree.next().min(self.flow_tree.next());
        (key != NEVER).then(|| Time::from_nanos((key >> 64) as i64))
    }

    /// Returns the number of wake-ups that were returned.
    pub fn handled(&self) -> u64 {
        self.handled
    }
}

/// A tournament tree of keys; [`NEVER`] for none.
#[derive(Debug)]
struct Tree {
    /// The keys of nodes `2n` and `2n + 1`, the children of node `n`, at index `n`. The root is node 1, and the second half of
    /// all nodes are the leaves.
    nodes: Vec<[u128; 2]>,
    /// The leaf that was removed last: the nodes above it still have its key. 0 for none.
    ///
    /// A component mostly sets its next wake-up before the next is returned, so one update of the path to the root serves both.
    removed: usize,
}

impl Tree {
    fn new(leaves: usize) -> Self {
        Self { nodes: vec![[NEVER; 2]; leaves.max(1)], removed: 0 }
    }

    /// Returns the key of a leaf.
    #[inline]
    fn key(&self, leaf: usize) -> u128 {
        let node = self.nodes.len() + leaf;
        self.nodes[node / 2][node % 2]
    }

    /// Lowers the key of a leaf.
    #[inline]
    fn lower(&mut self, leaf: usize, key: u128) {
        let mut node = self.nodes.len() + leaf;
        self.nodes[node / 2][node % 2] = key;
        while node != self.removed && node > 1 {
            node /= 2;
            let least = &mut self.nodes[node / 2][node % 2];
            if key >= *least {
                return;
            }
            *least = key;
        }
    }

    /// Updates the nodes above the leaf that was removed last.
    #[inline]
    fn update(&mut self) {
        let mut node = core::mem::take(&mut self.removed) / 2;
        while node > 0 {
            let [a, b] = self.nodes[node];
            self.nodes[node / 2][node % 2] = a.min(b);
            node /= 2;
        }
    }

    /// Returns the least key, as of the last [`update`](Self::update).
    #[inline]
    fn least(&self) -> u128 {
        self.nodes[0][1]
    }

    /// Removes the key of a leaf, which is the least.
    #[inline]
    fn remove(&mut self, leaf: usize) {
        self.removed = self.nodes.len() + leaf;
        self.nodes[self.removed / 2][self.removed % 2] = NEVER;
    }

    /// Returns the least key, without an update.
    fn next(&self) -> u128 {
        let key_of = |node: usize| self.nodes[node / 2][node % 2];
        let (mut node, mut key) = (self.removed, key_of(self.removed.max(1)));
        while node > 1 {
            key = key.min(key_of(node ^ 1));
            node /= 2;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn order_agrees_with_a_sorted_list() {
        let mut random = RandomStreams::new(1).stream("events");
        let mut events = Events::new(2, 50);
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
