//! How long packets waited at a hop, as a distribution, and how far two of them lie apart.

use crate::plan::Plan;
use crate::rows::{Row, RowSink};
use paceline_units::{Time, TimeDelta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Width of the steps in which waiting times are counted, µs. A link in real time is not served more exactly than that,
/// so what lies within a step is no difference between worlds: no waiting, above all, and next to none.
pub const STEP_US: u32 = 100;

/// How many packets waited how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Width of a step, µs.
    step_us: u32,
    /// Packets by step: those of step k waited from k to k + 1 steps, the latter excluded.
    packets: BTreeMap<u32, u64>,
}

/// How far two distributions lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// The Kolmogorov-Smirnov distance: the largest difference, over all times, of the shares of packets that waited less.
    pub ks: f64,
    /// The least time at which they differ by that, ms; none: they are equal.
    pub at_ms: Option<f64>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { step_us: STEP_US, packets: BTreeMap::new() }
    }
}

impl Waiting {
    /// Counts a packet; one that waited less than nothing waited not at all.
    pub fn add(&mut self, waited: TimeDelta) {
        let step = waited.as_nanos().max(0) / (i64::from(STEP_US) * 1000);
        *self.packets.entry(u32::try_from(step).unwrap_or(u32::MAX)).or_default() += 1;
    }

    /// Counts what another did, too.
    pub fn merge(&mut self, other: &Self) {
        for (step, packets) in &other.packets {
            *self.packets.entry(*step).or_default() += packets;
        }
    }

    /// How many packets it counted.
    pub fn packets(&self) -> u64 {
        self.packets.values().sum()
    }

    /// Whether its steps are those of today.
    pub(super) fn is_current(&self) -> bool {
        self.step_us == STEP_US
    }

    /// How far it lies from another; none if either counted nothing. The shares are compared as whole numbers.
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

/// Listens to a run for how long packets waited at the bottleneck.
#[derive(Clone, Debug)]
pub struct WaitingAt {
    hop: usize,
    end: Time,
    waiting: Waiting,
}

impl WaitingAt {
    /// The bottleneck of a plan.
    pub fn bottleneck(plan: &Plan) -> Self {
        Self { hop: plan.bottleneck, end: Time::ZERO + plan.duration, waiting: Waiting::default() }
    }

    /// What it counted: the packets that the hop's `queue_ms` counts.
    pub fn finish(self) -> Waiting {
        self.waiting
    }
}

impl RowSink for WaitingAt {
    fn row(&mut self, row: &Row) {
        if let Row::Crossed { hop, waited, left, .. } = *row
            && usize::from(hop) == self.hop
            && left < self.end
        {
            self.waiting.add(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(micros: &[i64]) -> Waiting {
        let mut waiting = Waiting::default();
        micros.iter().for_each(|us| waiting.add(TimeDelta::from_micros(*us)));
        waiting
    }

    #[test]
    fn distances_by_hand() {
        let of = |a: &[i64], b: &[i64]| waiting(a).distance(&waiting(b)).map(|d| (d.ks, d.at_ms));
        // Shares below 0.1, 0.2, 0.3, 0.4 ms: 1/4 2/4 3/4 1 against 0 0 1/2 1.
        assert_eq!(of(&[0, 100, 200, 300], &[200, 300]), Some((0.5, Some(0.2))));
        // Below 0.1, 0.2, 0.3, 0.6 ms: 1/3 2/3 1 1 against 1/3 1/3 1/3 1.
        assert_eq!(of(&[0, 100, 200], &[0, 500, 500]), Some((2.0 / 3.0, Some(0.3))));
        // Nothing in common, either way round; and nothing apart, but for how many there are.
        assert_eq!(of(&[0, 0], &[900, 1000, 2000]), Some((1.0, Some(0.1))));
        assert_eq!(of(&[900, 1000, 2000], &[0, 0]), Some((1.0, Some(0.1))));
        assert_eq!(of(&[0, 700], &[0, 0, 700, 700]), Some((0.0, None)));
        assert_eq!((of(&[], &[5]), of(&[5], &[]), of(&[], &[])), (None, None, None));
    }

    #[test]
    fn what_lies_within_a_step_is_no_difference() {
        let of = |a: i64, b: i64| waiting(&[a]).distance(&waiting(&[b])).unwrap().ks;
        assert_eq!((of(0, 99), of(-3, 0), of(100, 199)), (0.0, 0.0, 0.0));
        assert_eq!((of(99, 100), of(0, 100)), (1.0, 1.0));
    }

    #[test]
    fn merged_is_as_counted_together_and_survives_json() {
        let mut both = waiting(&[0, 250, 250]);
        both.merge(&waiting(&[250, 7000]));
        assert_eq!((&both, both.packets()), (&waiting(&[0, 250, 250, 250, 7000]), 5));
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"{"step_us":100,"packets":{"0":1,"2":3,"70":1}}"#);
        assert_eq!(serde_json::from_str::<Waiting>(&text).unwrap(), both);
    }
}
