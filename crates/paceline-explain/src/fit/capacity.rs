// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capacity of a path, from packets that waited behind another one.
//!
//! In a first-in, first-out queue a packet that reached the server before the packet ahead of it had left follows that packet at once. The
//! time between their arrivals is then the service time: size over capacity. A packet reached the server in time if, with the smallest
//! delay of the session, it would have arrived before the packet ahead of it did. Packets that did not wait show their sender's pacing.

use super::observation::Packet;
use super::statistics::{median, quantile};

/// By how much a packet must have been early, s. Assumed: above the noise of kernel timestamps.
const MARGIN_S: f64 = 100e-6;

/// Pairs of packets that make one sample of the capacity, at least. Assumed.
const PAIRS: usize = 20;

/// Samples, at most: the search for steps takes the square of this. Assumed.
const SAMPLES_MAX: usize = 4000;

/// The longest pause between two pairs of a sample, s. Assumed.
const PAUSE_S: f64 = 1.0;

/// Samples below which the capacity counts as not seen. Assumed.
const SAMPLES_MIN: usize = 3;

/// The smallest change of the capacity that counts as a step, as a ratio. Assumed.
const STEP: f64 = 1.1;

/// What a further step must explain, as a multiple of the variance of samples. Assumed: far beyond chance, because every place is tried.
const STEP_PENALTY: f64 = 64.0;

/// Standard deviation of samples, as a ratio, below which differences do not count. Assumed.
const NOISE_MIN: f64 = 0.01;

/// Samples on each side of a step, at least. Assumed.
const STEP_SAMPLES: usize = 4;

/// Share of the samples that must be within [`STEP`] of the capacity for it to count as clear. Assumed.
const CLEAR: f64 = 0.8;

/// Packets whose rate is the lower bound if the capacity was not seen. Assumed.
const TRAIN: usize = 10;

/// What is known of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityFit {
    /// Start of each step, s, and capacity, bit/s.
    pub steps: Vec<(f64, f64)>,
    /// How it is known.
    pub evidence: Evidence,
}

/// How a capacity is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// From packets that waited.
    Waited {
        /// Their number.
        packets: usize,
        /// The range of 80 % of the samples, as ratios to the capacity.
        range: (f64, f64),
        /// Whether most samples are close to the capacity. Otherwise other traffic may share the path.
        is_clear: bool,
    },
    /// Too few packets waited: the path carried at least this.
    LowerBound,
}

impl CapacityFit {
    /// Returns the capacity at a time, bit/s.
    pub fn at(&self, seconds: f64) -> f64 {
        let index = self.steps.partition_point(|(start, _)| *start <= seconds);
        self.steps[index.saturating_sub(1)].1
    }

    /// Returns the highest capacity within a second of a time, bit/s.
    pub fn highest_near(&self, seconds: f64) -> f64 {
        [-1.0, 0.0, 1.0].map(|shift| self.at(seconds + shift)).into_iter().fold(0.0, f64::max)
    }
}

/// A sample of the capacity.
struct Sample {
    start: f64,
    end: f64,
    bps: f64,
}

/// Fits the capacity to packets in order of sending.
pub fn fit(packets: &[Packet]) -> CapacityFit {
    let pairs = waiting_pairs(packets);
    let samples = samples(&pairs);
    if samples.len() < SAMPLES_MIN {
        return CapacityFit { steps: vec![(0.0, fastest_train(packets))], evidence: Evidence::LowerBound };
    }
    let logs: Vec<f64> = samples.iter().map(|sample| libm::log(sample.bps)).collect();
    let with_steps = assess(&samples, &partition(&logs), pairs.len());
    if matches!(with_steps.evidence, Evidence::Waited { is_clear: true, .. }) {
        return with_steps;
    }
    assess(&samples, &[0], pairs.len())
}

/// A pair of packets, the second of which waited: arrivals, and bits of the second.
struct Pair {
    from: f64,
    to: f64,
    bits: f64,
}

/// Returns the pairs of adjacent packets that both arrived, the second of which waited for the first.
fn waiting_pairs(packets: &[Packet]) -> Vec<Pair> {
    let least = packets.iter().filter_map(Packet::delay).fold(f64::INFINITY, f64::min);
    let pair = |two: &[Packet]| {
        let (from, to) = (two[0].arrived?, two[1].arrived?);
        let waited = two[1].sent + least + MARGIN_S < from && to > from;
        waited.then_some(Pair { from, to, bits: two[1].bits })
    };
    packets.windows(2).filter_map(pair).collect()
}

fn samples(pairs: &[Pair]) -> Vec<Sample> {
    let size = PAIRS.max(pairs.len() / SAMPLES_MAX);
    let mut samples = Vec::new();
    let mut first = 0;
    for index in 0..pairs.len() {
        if index > first && pairs[index].from - pairs[index - 1].to > PAUSE_S {
            first = index;
        }
        if index + 1 - first == size {
            let all = &pairs[first..=index];
            let (bits, span) = all.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.bits, sum.1 + p.to - p.from));
            samples.push(Sample { start: pairs[first].from, end: pairs[index].to, bps: bits / span });
            first = index + 1;
        }
    }
    samples
}

/// Returns the first index of each part of the best partition: the one with the smallest sum of squared distances from the means of its
/// parts, and a penalty for each part (optimal partitioning of Jackson et al. 2005, "An algorithm for optimal partitioning of data on an
/// interval", IEEE Signal Processing Letters 12).
fn partition(logs: &[f64]) -> Vec<usize> {
    // Differences of adjacent samples have twice the variance of samples, and steps are few among them; 0.954 is the median of their
    // absolute value if the samples are normal with variance 1.
    let noise = median(logs.windows(2).map(|two| (two[1] - two[0]).abs())) / 0.954;
    let penalty = STEP_PENALTY * (noise * noise).max(NOISE_MIN * NOISE_MIN);
    let mut sums = vec![(0.0, 0.0)];
    for log in logs {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + log, squares + log * log));
    }
    let within = |from: usize, to: usize| {
        let sum: f64 = sums[to].0 - sums[from].0;
        (sums[to].1 - sums[from].1 - sum * sum / (to - from) as f64).max(0.0)
    };
    // The cost of the best partition of the first samples, and the start of its last part.
    let mut best = vec![(0.0, 0)];
    for to in 1..=logs.len() {
        let last = to.saturating_sub(STEP_SAMPLES);
        let starts = std::iter::once(0).chain(STEP_SAMPLES..=last);
        let costs = starts.map(|from| (best[from].0 + penalty + within(from, to), from));
        best.push(costs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0)));
    }
    let (mut starts, mut to) = (Vec::new(), logs.len());
    while to > 0 {
        to = best[to].1;
        starts.push(to);
    }
    starts.reverse();
    starts
}

/// Returns the capacity of parts that start with these samples.
fn assess(samples: &[Sample], starts: &[usize], packets: usize) -> CapacityFit {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    let mut ratios = Vec::new();
    for (index, start) in starts.iter().enumerate() {
        let part = &samples[*start..starts.get(index + 1).copied().unwrap_or(samples.len())];
        let bps = median(part.iter().map(|sample| sample.bps));
        ratios.extend(part.iter().map(|sample| sample.bps / bps));
        let at = match index {
            0 => 0.0,
            _ => (samples[*start - 1].end + samples[*start].start) / 2.0,
        };
        match steps.last() {
            Some((_, last)) if (bps / last).max(last / bps) < STEP => {}
            _ => steps.push((at, bps)),
        }
    }
    let close = ratios.iter().filter(|ratio| (1.0 / STEP..STEP).contains(*ratio)).count();
    let is_clear = close as f64 >= CLEAR * ratios.len() as f64;
    let range = (quantile(&mut ratios, 0.1), quantile(&mut ratios, 0.9));
    CapacityFit { steps, evidence: Evidence::Waited { packets, range, is_clear } }
}

/// Returns the highest rate at which a train of packets arrived, bit/s; at least 1.
fn fastest_train(packets: &[Packet]) -> f64 {
    let mut arrived: Vec<(f64, f64)> = packets.iter().filter_map(|p| p.arrived.map(|at| (at, p.bits))).collect();
    arrived.sort_by(|a, b| a.0.total_cmp(&b.0));
    let length = TRAIN.min(arrived.len()).max(1);
    let rate = |train: &[(f64, f64)]| {
        let bits: f64 = train[1..].iter().map(|(_, bits)| bits).sum();
        let span = train[train.len() - 1].0 - train[0].0;
        (span > 0.0).then(|| bits / span)
    };
    arrived.windows(length).filter_map(rate).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes through a server of `bps(time)`, sent at these times, with a delay of 20 ms.
    fn served(sent: impl Iterator<Item = f64>, bps: impl Fn(f64) -> f64) -> Vec<Packet> {
        let mut free = 0.0f64;
        let one = |sent: f64| {
            let start = free.max(sent);
            free = start + 8000.0 / bps(start);
            Packet { sent, arrived: Some(free + 0.02), bits: 8000.0, marked: false }
        };
        sent.map(one).collect()
    }

    #[test]
    fn packets_that_wait_show_the_capacity() {
        // Bursts of 5 packets at 20 Mbit/s, every 100 ms.
        let sent = (0..500).map(|n| f64::from(n / 5) * 0.1 + f64::from(n % 5) * 0.0004);
        let fitted = fit(&served(sent, |_| 10e6));
        assert_eq!(fitted.steps.len(), 1);
        assert!((fitted.steps[0].1 / 10e6 - 1.0).abs() < 1e-6, "{fitted:?}");
        assert!(matches!(fitted.evidence, Evidence::Waited { packets, is_clear: true, .. } if packets <= 400));
    }

    #[test]
    fn packets_that_do_not_wait_give_a_lower_bound() {
        // 4 Mbit/s, evenly.
        let fitted = fit(&served((0..500).map(|n| f64::from(n) * 0.002), |_| 10e6));
        assert_eq!(fitted.evidence, Evidence::LowerBound);
        assert!((fitted.steps[0].1 / 4e6 - 1.0).abs() < 1e-6, "{fitted:?}");
    }

    #[test]
    fn a_partition_has_short_parts_between_equal_ones() {
        let logs: Vec<f64> = (0..66).map(|n| if (25..45).contains(&n) { 0.0 } else { 0.7 }).collect();
        assert_eq!(partition(&logs), [0, 25, 45]);
        // Noise of 10 % and no step.
        let noise = |n: u32| 0.1 * (f64::from(n.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX) - 0.5);
        assert_eq!(partition(&(1..500).map(noise).collect::<Vec<_>>()), [0]);
        assert_eq!(partition(&(1..500).map(|n| noise(n) + f64::from(n / 250)).collect::<Vec<_>>()), [0, 249]);
    }

    #[test]
    fn steps_are_found_at_their_times() {
        let capacity = |at: f64| if (10.0..20.0).contains(&at) { 1e6 } else { 3e6 };
        let sent = (0..9000).map(|n| f64::from(n / 30) * 0.1 + f64::from(n % 30) * 0.0001);
        let sent = sent.filter(|at| !(10.0..25.0).contains(at) || (at * 10.0).fract() < 0.01);
        let fitted = fit(&served(sent, capacity));
        let rates: Vec<f64> = fitted.steps.iter().map(|(_, bps)| bps / 1e6).collect();
        assert_eq!(rates.len(), 3, "{fitted:?}");
        for (measured, expected) in rates.iter().zip([3.0, 1.0, 3.0]) {
            assert!((measured / expected - 1.0).abs() < 0.01, "{fitted:?}");
        }
        assert!((fitted.steps[1].0 - 10.0).abs() < 0.5 && (fitted.steps[2].0 - 20.0).abs() < 0.5, "{fitted:?}");
        assert_eq!((fitted.at(15.0), fitted.highest_near(9.5)), (fitted.steps[1].1, fitted.steps[0].1));
    }
}
