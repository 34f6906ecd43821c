// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of many queues has the most bytes: a tournament tree, in which a change costs the logarithm of their number.

/// The sizes of queues, by number. Of equal ones the lowest number is first.
#[derive(Clone, Debug)]
pub(super) struct Fattest {
    /// The leaves are the sizes, from index `leaves` on; the parent of `i` is `i / 2` and has the larger size of both.
    sizes: Vec<u64>,
    leaves: usize,
}

impl Fattest {
    pub fn new(sizes: impl ExactSizeIterator<Item = u64>) -> Self {
        let leaves = sizes.len().next_power_of_two();
        let mut all = vec![0; leaves];
        all.extend(sizes);
        all.resize(2 * leaves, 0);
        for index in (1..leaves).rev() {
            all[index] = all[2 * index].max(all[2 * index + 1]);
        }
        Self { sizes: all, leaves }
    }

    /// Sets the size of a queue; a number above all before makes room for it.
    #[inline]
    pub fn set(&mut self, number: usize, size: u64) {
        if number >= self.leaves {
            let mut leaves = self.sizes.split_off(self.leaves);
            leaves.resize(number + 1, 0);
            *self = Self::new(leaves.into_iter());
        }
        let mut index = self.leaves + number;
        self.sizes[index] = size;
        while index > 1 {
            index /= 2;
            let larger = self.sizes[2 * index].max(self.sizes[2 * index + 1]);
            if self.sizes[index] == larger {
                return;
            }
            self.sizes[index] = larger;
        }
    }

    /// Returns the number of the queue with the largest size.
    pub fn first(&self) -> usize {
        let mut index = 1;
        while index < self.leaves {
            index = if self.sizes[2 * index] >= self.sizes[2 * index + 1] { 2 * index } else { 2 * index + 1 };
        }
        index - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn the_first_is_the_largest_of_the_lowest_number() {
        let mut random = RandomStreams::new(1).stream("fattest");
        let mut plain = vec![3, 1];
        let mut tree = Fattest::new(plain.iter().copied());
        for _ in 0..2000 {
            let (number, size) = ((random.bits() % 37) as usize, random.bits() % 9);
            plain.resize(plain.len().max(number + 1), 0);
            plain[number] = size;
            tree.set(number, size);
            let most = *plain.iter().max().unwrap();
            assert_eq!(tree.first(), plain.iter().position(|size| *size == most).unwrap());
        }
        assert_eq!(Fattest::new([7].into_iter()).first(), 0, "a single queue");
    }
}
