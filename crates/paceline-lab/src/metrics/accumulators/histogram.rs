// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of microseconds whose buckets grow with the value: a value below 2048 has a bucket of its own, and a larger one
//! shares it with values that differ by less than 0.1 %. Quantiles equal those of HdrHistogram with three significant digits.

/// Every power of two above the exact values is divided into this many buckets.
const HALF: u64 = 1 << 10;
/// Values below this are exact.
const EXACT: u64 = 2 * HALF;
/// Buckets are stored in pages of this many. Delays are mostly close together, so most pages are never needed.
const PAGE: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// The position in `pages` of each page, plus one; 0 for a page without values.
    directory: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
    /// Values of zero, which are the most frequent ones where nothing waits. They are in no page.
    zeros: u64,
}

#[inline]
fn bucket(value: u64) -> usize {
    let shift = 53 - (value | (EXACT - 1)).leading_zeros();
    ((u64::from(shift) << HALF.trailing_zeros()) + (value >> shift)) as usize
}

fn largest(bucket: usize) -> u64 {
    let shift = (bucket as u64 / HALF).saturating_sub(1);
    ((bucket as u64 - shift * HALF + 1) << shift) - 1
}

impl Histogram {
    #[inline]
    pub(super) fn add_zero(&mut self) {
        self.zeros += 1;
    }

    /// Counts a value above zero. A count does not exceed `u32::MAX`.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        let position = self.directory.get(bucket / PAGE).copied().unwrap_or(0);
        let count = match self.pages.get_mut(usize::from(position).wrapping_sub(1)) {
            Some(page) => &mut page[bucket % PAGE],
            None => &mut self.new_page(bucket / PAGE)[bucket % PAGE],
        };
        *count = count.saturating_add(1);
    }

    #[cold]
    fn new_page(&mut self, number: usize) -> &mut [u32; PAGE] {
        if number >= self.directory.len() {
            self.directory.resize(number + 1, 0);
        }
        self.directory[number] = self.pages.len() as u16 + 1;
        self.pages.push([0; PAGE]);
        self.pages.last_mut().expect("a page was added")
    }

    fn used_pages(&self) -> impl Iterator<Item = (usize, &[u32; PAGE])> {
        let numbered = self.directory.iter().enumerate().filter(|(_, position)| **position > 0);
        numbered.map(|(number, position)| (number, &self.pages[usize::from(*position) - 1]))
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (number, more) in other.used_pages() {
            let page = match self.directory.get(number) {
                Some(&position) if position > 0 => &mut self.pages[usize::from(position) - 1],
                _ => self.new_page(number),
            };
            for (count, more) in page.iter_mut().zip(more) {
                *count = count.saturating_add(*more);
            }
        }
        self.zeros += other.zeros;
    }

    /// Returns the largest value of the last bucket with a value; zero for an empty histogram.
    pub(super) fn largest(&self) -> u64 {
        let last = self.used_pages().last();
        let index = last.and_then(|(number, page)| Some(number * PAGE + page.iter().rposition(|count| *count > 0)?));
        index.map_or(0, largest)
    }

    /// Returns the number of values. Sums the counts, so that `add` has no total to update.
    pub(super) fn len(&self) -> u64 {
        self.zeros + self.pages.iter().flatten().map(|count| u64::from(*count)).sum::<u64>()
    }

    /// Returns the quantiles at these fractions, which ascend: the largest value of the bucket in which the count of values
    /// reaches the fraction. Zero for an empty histogram.
    pub(super) fn quantiles<const N: usize>(&self, fractions: [f64; N]) -> [u64; N] {
        let mut pages = self.used_pages().peekable();
        let len = self.len() as f64;
        // The count of values in pages that were passed, and of zeros.
        let mut below = self.zeros;
        fractions.map(|fraction| {
            let target = ((fraction * len).ceil() as u64).max(1);
            if target <= self.zeros {
                return 0;
            }
            while let Some((number, page)) = pages.peek() {
                let sum = below + page.iter().map(|count| u64::from(*count)).sum::<u64>();
                if sum < target {
                    below = sum;
                    pages.next();
                    continue;
                }
                let mut reached = below;
                let index = page.iter().position(|count| {
                    reached += u64::from(*count);
                    reached >= target
                });
                return index.map_or(0, |index| largest(number * PAGE + index));
            }
            0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    #[test]
    fn buckets_cover_all_values_in_order() {
        for value in [0, 1, 2047, 2048, 2049, 4095, 4096, 1_000_000, 3_600_000_000] {
            let highest = largest(bucket(value));
            assert!(value <= highest && highest <= value + value / 1024, "{value}: {highest}");
            assert_eq!(bucket(highest), bucket(value));
            assert_eq!(bucket(highest + 1), bucket(value) + 1);
        }
    }

    #[test]
    fn quantiles_equal_those_of_hdrhistogram() {
        let mut random = RandomStreams::new(1).stream("histogram");
        for round in 0..200 {
            let (mut own, mut peer) = (Histogram::default(), hdrhistogram::Histogram::<u32>::new(3).unwrap());
            let (mut other, mut other_peer) = (own.clone(), peer.clone());
            let scale = 1 << (round % 32);
            for number in 0..1 + round * 5 {
                let value = random.bits() % scale;
                let (own, peer) = if number % 3 == 0 { (&mut other, &mut other_peer) } else { (&mut own, &mut peer) };
                match value {
                    0 => own.add_zero(),
                    _ => own.add(value),
                }
                peer.record(value).unwrap();
            }
            own.merge(&other);
            peer.add(&other_peer).unwrap();
            assert_eq!(own.len(), peer.len());
            assert_eq!(own.largest(), peer.max());
            let fractions = [0.0, 0.001, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            for (fraction, quantile) in fractions.into_iter().zip(own.quantiles(fractions)).skip(1) {
                assert_eq!(quantile, peer.value_at_quantile(fraction), "{fraction} of {round}");
            }
        }
        assert_eq!(Histogram::default().quantiles([0.5]), [0]);
    }
}
