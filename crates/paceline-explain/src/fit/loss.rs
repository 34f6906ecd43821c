// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random loss of a path, apart from the losses of a full queue.
//!
//! A lost packet has no delay. Each packet, lost or not, therefore counts as one that met the queue of the packets beside it. If
//! packets that met a queue near its maximum were lost far more often than others, the queue was full, and only the others show
//! random loss.

use paceline_netsim::records::{Z_95, score_interval};

/// Share of the longest wait from which a queue counts as near its maximum. Assumed.
const NEAR_FULL: f64 = 0.8;

/// Losses near the maximum below which a queue does not count as full. Assumed.
const FULL_LOSSES: u64 = 5;

/// Quantile of the normal distribution for comparisons: two-sided 0.1 %. Assumed.
const Z_CLEAR: f64 = 3.290_527;

/// Pairs of adjacent losses below which losses count as independent. Assumed.
const BURSTS_MIN: f64 = 5.0;

/// A packet, in order of sending: whether it was lost, and its wait relative to the longest one; `None` if lost.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    /// Wait relative to the longest one of its time; `None` if it was lost.
    pub wait: Option<f64>,
}

/// What is known of the losses.
#[derive(Clone, Debug, PartialEq)]
pub struct LossFit {
    /// Packets that show random loss, and how many of them were lost.
    pub packets: u64,
    /// See [`packets`](Self::packets).
    pub lost: u64,
    /// Share of packets lost at random.
    pub ratio: f64,
    /// Its 95 % interval; wider if losses come in bursts.
    pub interval: (f64, f64),
    /// Losses in bursts: the probabilities, per packet, to go to a state in which each packet is lost, and back; `None` if losses
    /// are independent.
    pub bursts: Option<(f64, f64)>,
    /// Packets that were lost near the longest wait; 0 unless the queue was full.
    pub overflows: u64,
}

/// Fits losses.
pub fn fit(fates: &[Fate]) -> LossFit {
    let near_full = near_full(fates);
    let count = |near: bool| {
        let all = fates.iter().zip(&near_full).filter(|(_, is_near)| **is_near == near);
        all.fold((0, 0), |(n, lost), (fate, _)| (n + 1, lost + u64::from(fate.wait.is_none())))
    };
    let ((near, near_lost), (far, far_lost)) = (count(true), count(false));
    let share = |lost: u64, n: u64| lost as f64 / n.max(1) as f64;
    let lowest = score_interval(share(near_lost, near), near as f64, Z_CLEAR).0;
    let is_full = near_lost >= FULL_LOSSES && lowest > score_interval(share(far_lost, far), far as f64, Z_CLEAR).1;
    let is_random = |index: usize| !is_full || !near_full[index];
    let (packets, lost) = if is_full { (far, far_lost) } else { (near + far, near_lost + far_lost) };
    let ratio = share(lost, packets);
    // Transitions between adjacent packets: after arrived ones, after lost ones.
    let (mut after, mut then_lost) = ([0.0; 2], [0.0; 2]);
    for index in 1..fates.len() {
        if is_random(index) && is_random(index - 1) {
            let before = usize::from(fates[index - 1].wait.is_none());
            after[before] += 1.0;
            then_lost[before] += f64::from(u8::from(fates[index].wait.is_none()));
        }
    }
    let rate = |state: usize| if after[state] > 0.0 { then_lost[state] / after[state] } else { 0.0 };
    let (to_bad, stays_bad) = (rate(0), rate(1));
    let lowest = score_interval(stays_bad, after[1], Z_CLEAR).0;
    let is_bursty = then_lost[1] >= BURSTS_MIN && lowest > score_interval(to_bad, after[0], Z_CLEAR).1;
    // The correlation of adjacent packets in a chain of two states; it makes n packets worth fewer independent ones.
    let correlation = if is_bursty { stays_bad - to_bad } else { 0.0 };
    let independent = packets as f64 * (1.0 - correlation) / (1.0 + correlation);
    LossFit {
        packets,
        lost,
        ratio,
        interval: score_interval(ratio, independent, Z_95),
        bursts: is_bursty.then_some((to_bad, 1.0 - stays_bad)),
        overflows: if is_full { near_lost } else { 0 },
    }
}

/// Returns for each packet whether one of the arrived packets beside it waited nearly as long as the longest.
fn near_full(fates: &[Fate]) -> Vec<bool> {
    let mut near = vec![false; fates.len()];
    let mut mark = |indices: &mut dyn Iterator<Item = usize>| {
        let mut last = 0.0f64;
        for index in indices {
            near[index] |= last >= NEAR_FULL;
            last = fates[index].wait.unwrap_or(last);
        }
    };
    mark(&mut (0..fates.len()));
    mark(&mut (0..fates.len()).rev());
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    /// Uniform numbers from 0 to 1.
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut random = RandomStreams::new(seed).stream("loss");
        move || random.unit()
    }

    fn fates(lost: impl FnMut(usize) -> bool, wait: impl Fn(usize) -> f64, count: usize) -> Vec<Fate> {
        let mut lost = lost;
        (0..count).map(|n| Fate { wait: (!lost(n)).then(|| wait(n)) }).collect()
    }

    #[test]
    fn independent_losses_are_a_ratio_with_its_interval() {
        let mut random = uniform(1);
        let fitted = fit(&fates(|_| random() < 0.03, |n| (n % 10) as f64 / 10.0, 20_000));
        assert_eq!((fitted.bursts, fitted.overflows, fitted.packets), (None, 0, 20_000));
        assert!(fitted.interval.0 < 0.03 && 0.03 < fitted.interval.1, "{fitted:?}");
        // 1.96 √(0.03 × 0.97 / 20000)
        let half = (fitted.interval.1 - fitted.interval.0) / 2.0;
        assert!((half / 0.002_36 - 1.0).abs() < 0.1, "{fitted:?}");
    }

    #[test]
    fn losses_of_a_full_queue_are_set_apart() {
        // The queue grows over 100 packets; it is full for the last 10, of which every second is lost.
        let mut random = uniform(2);
        let lost = |n: usize| random() < 0.01 || (n % 100 >= 90 && n.is_multiple_of(2));
        let fitted = fit(&fates(lost, |n| (n % 100) as f64 / 100.0, 50_000));
        assert!(fitted.interval.0 < 0.01 && 0.01 < fitted.interval.1, "{fitted:?}");
        assert!((2_400..3_000).contains(&fitted.overflows), "{fitted:?}");
    }

    #[test]
    fn losses_in_bursts_are_a_chain_of_two_states() {
        let (mut random, mut bad) = (uniform(3), false);
        let lost = |_| {
            bad = if bad { random() >= 0.4 } else { random() < 0.01 };
            bad
        };
        let fitted = fit(&fates(lost, |_| 0.1, 50_000));
        let (to_bad, to_good) = fitted.bursts.unwrap();
        assert!((to_bad / 0.01 - 1.0).abs() < 0.15 && (to_good / 0.4 - 1.0).abs() < 0.15, "{fitted:?}");
        let ratio = 0.01 / 0.41;
        assert!(fitted.interval.0 < ratio && ratio < fitted.interval.1, "{fitted:?}");
        // Correlation 0.59: the interval is √(1.59 / 0.41) times as wide as that of independent losses.
        let half = (fitted.interval.1 - fitted.interval.0) / 2.0;
        assert!((half / (1.96 * (ratio * (1.0 - ratio) / 50_000.0f64).sqrt() * 1.97) - 1.0).abs() < 0.15, "{fitted:?}");
    }
}
