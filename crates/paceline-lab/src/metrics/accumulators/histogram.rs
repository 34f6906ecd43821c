//! A histogram of microseconds whose buckets grow with the value: a value below 2048 has a bucket of its own, and a larger one
//! shares it with values that differ by less than 0.1 %. Quantiles equal those of HdrHistogram with three significant digits.

/// Every power of two above the exact values is divided into this many buckets.
const HALF: u64 = 1 << 10;
/// Values below this are exact.
const EXACT: u64 = 2 * HALF;
/// The number of buckets that a search for a quantile passes at once.
const BLOCK: usize = 64;

/// The counts of each bucket, up to the largest value.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u32>,
    len: u64,
}

#[inline]
fn bucket(value: u64) -> usize {
    let shift = 53 - (value | (EXACT - 1)).leading_zeros();
    ((u64::from(shift) << HALF.trailing_zeros()) + (value >> shift)) as usize
}

/// Returns the largest value of a bucket.
fn largest(bucket: usize) -> u64 {
    let shift = (bucket as u64 / HALF).saturating_sub(1);
    ((bucket as u64 - shift * HALF + 1) << shift) - 1
}

impl Histogram {
    /// Counts a value. A count does not exceed `u32::MAX`.
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        let count = &mut self.counts[bucket];
        *count = count.saturating_add(1);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_multiple_of(64), 0);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.len += other.len;
    }

    /// Returns the largest value of the bucket of `value`.
    pub(super) fn largest_in_bucket_of(value: u64) -> u64 {
        largest(bucket(value))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the quantiles at these fractions, which ascend: the largest value of the bucket in which the count of values
    /// reaches the fraction. Zero for an empty histogram.
    pub(super) fn quantiles<const N: usize>(&self, fractions: [f64; N]) -> [u64; N] {
        let (mut index, mut below) = (0, 0);
        fractions.map(|fraction| {
            let target = ((fraction * self.len as f64).ceil() as u64).max(1);
            while index < self.counts.len() {
                // Whole blocks below the quantile are passed by their sum.
                if index % BLOCK == 0
                    && let Some(block) = self.counts.get(index..index + BLOCK)
                {
                    let sum = below + block.iter().map(|count| u64::from(*count)).sum::<u64>();
                    if sum < target {
                        (index, below) = (index + BLOCK, sum);
                        continue;
                    }
                }
                let after = below + u64::from(self.counts[index]);
                if after >= target {
                    return largest(index);
                }
                (index, below) = (index + 1, after);
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
                own.add(value);
                peer.record(value).unwrap();
            }
            own.merge(&other);
            peer.add(&other_peer).unwrap();
            assert_eq!(own.len(), peer.len());
            let fractions = [0.0, 0.001, 0.05, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            for (fraction, quantile) in fractions.into_iter().zip(own.quantiles(fractions)).skip(1) {
                assert_eq!(quantile, peer.value_at_quantile(fraction), "{fraction} of {round}");
            }
        }
        assert_eq!(Histogram::default().quantiles([0.5]), [0]);
    }
}
