// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distribution of queuing delay at a hop, and the distance of two distributions.

use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::Scenario;
use paceline_units::{Time, TimeDelta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Width of the counted intervals of delay, µs. It is the timing precision of a link in real time, so smaller differences,
/// such as no delay against a very short one, are not differences between worlds.
pub const STEP_US: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDelayCounts {
    /// Width of an interval, µs.
    step_us: u32,
    /// Packets by interval: interval k is from k to k + 1 steps, the latter excluded.
    packets: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// The Kolmogorov-Smirnov distance: the largest difference of the cumulative distributions.
    pub ks: f64,
    /// The least delay with this difference, ms; `None` if they are equal.
    pub at_ms: Option<f64>,
}

impl Default for QueueDelayCounts {
    fn default() -> Self {
        Self { step_us: STEP_US, packets: BTreeMap::new() }
    }
}

impl QueueDelayCounts {
    /// Counts a packet. A negative delay counts as 0.
    pub fn add(&mut self, delay: TimeDelta) {
        let step = delay.as_nanos().max(0) / (i64::from(STEP_US) * 1000);
        *self.packets.entry(u32::try_from(step).unwrap_or(u32::MAX)).or_default() += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (step, packets) in &other.packets {
            *self.packets.entry(*step).or_default() += packets;
        }
    }

    pub fn packets(&self) -> u64 {
        self.packets.values().sum()
    }

    /// Returns whether its intervals have the width of this version.
    pub(super) fn has_current_steps(&self) -> bool {
        self.step_us == STEP_US
    }

    /// Returns the distance to another distribution; `None` if one is empty. The shares are compared exactly, as integers.
    pub fn distance(&self, other: &Self) -> Option<Distance> {
        let all = [u128::from(self.packets()), u128::from(other.packets())];
        let mut steps: Vec<u32> = self.packets.keys().chain(other.packets.keys()).copied().collect();
        steps.sort_unstable();
        steps.dedup();
        let (mut below, mut largest, mut at_ms) = ([0_u128; 2], 0, None);
        for step in steps {
            for (below, of) in below.iter_mut().zip([self, other]) {
                *below += u128::from(of.packets.get(&step).copied().unwrap_or(0));
            }
            let apart = (below[0] * all[1]).abs_diff(below[1] * all[0]);
            if apart > largest {
                (largest, at_ms) = (apart, Some((f64::from(step) + 1.0) * f64::from(STEP_US) / 1e3));
            }
        }
        let whole = all[0] * all[1];
        (whole > 0).then(|| Distance { ks: largest as f64 / whole as f64, at_ms })
    }
}

#[derive(Clone, Debug)]
pub struct QueueDelayObserver {
    hop: usize,
    end: Time,
    counts: QueueDelayCounts,
}

impl QueueDelayObserver {
    pub fn at_bottleneck(scenario: &Scenario) -> Self {
        let plan = &scenario.plan;
        Self { hop: plan.bottleneck, end: Time::ZERO + plan.duration, counts: QueueDelayCounts::default() }
    }

    /// Returns the counts of the packets that the hop's `queue_ms` includes.
    pub fn finish(self) -> QueueDelayCounts {
        self.counts
    }
}

impl EventObserver for QueueDelayObserver {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Crossed { hop, waited, left, .. } = *event
            && usize::from(hop) == self.hop
            && left < self.end
        {
            self.counts.add(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(micros: &[i64]) -> QueueDelayCounts {
        let mut counts = QueueDelayCounts::default();
        micros.iter().for_each(|us| counts.add(TimeDelta::from_micros(*us)));
        counts
    }

    #[test]
    fn distances_of_small_distributions() {
        let of = |a: &[i64], b: &[i64]| counts(a).distance(&counts(b)).map(|d| (d.ks, d.at_ms));
        // Shares below 0.1, 0.2, 0.3, 0.4 ms: 1/4 2/4 3/4 1 against 0 0 1/2 1.
        assert_eq!(of(&[0, 100, 200, 300], &[200, 300]), Some((0.5, Some(0.2))));
        // Below 0.1, 0.2, 0.3, 0.6 ms: 1/3 2/3 1 1 against 1/3 1/3 1/3 1.
        assert_eq!(of(&[0, 100, 200], &[0, 500, 500]), Some((2.0 / 3.0, Some(0.3))));
        // Disjoint, in both orders; equal shares of different numbers; empty.
        assert_eq!(of(&[0, 0], &[900, 1000, 2000]), Some((1.0, Some(0.1))));
        assert_eq!(of(&[900, 1000, 2000], &[0, 0]), Some((1.0, Some(0.1))));
        assert_eq!(of(&[0, 700], &[0, 0, 700, 700]), Some((0.0, None)));
        assert_eq!((of(&[], &[5]), of(&[5], &[]), of(&[], &[])), (None, None, None));
    }

    #[test]
    fn delays_within_one_interval_are_equal() {
        let of = |a: i64, b: i64| counts(&[a]).distance(&counts(&[b])).unwrap().ks;
        assert_eq!((of(0, 99), of(-3, 0), of(100, 199)), (0.0, 0.0, 0.0));
        assert_eq!((of(99, 100), of(0, 100)), (1.0, 1.0));
    }

    #[test]
    fn merges_counts_and_keeps_its_json_form() {
        let mut both = counts(&[0, 250, 250]);
        both.merge(&counts(&[250, 7000]));
        assert_eq!((&both, both.packets()), (&counts(&[0, 250, 250, 250, 7000]), 5));
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"{"step_us":100,"packets":{"0":1,"2":3,"70":1}}"#);
        assert_eq!(serde_json::from_str::<QueueDelayCounts>(&text).unwrap(), both);
    }
}
