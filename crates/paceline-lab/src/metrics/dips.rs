// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dips: falls of the receive rate of a flow that its path does not explain. The thresholds are those of this project.

use super::{MetricSpec, RunData, accumulators::whole_seconds, convergence::fair_bits};
use paceline_netsim::records::{Better, MetricKind};
use paceline_units::Time;
use serde::{Deserialize, Serialize};

pub(super) const DIP_COUNT: MetricSpec = MetricSpec::new(
    "dip_count",
    MetricKind::Count,
    "how often a flow falls below 70 % of its level, the median of the 5 s before, or of its fair share where that is less; of \
     the first flow, if none is named",
    |r, flow, _| r.flow(flow).dips.map(|dips| dips.count as f64),
)
.with_shares()
.with_better(Better::Lower);

pub(super) const DIP_DEPTH: MetricSpec = MetricSpec::new(
    "dip_depth",
    MetricKind::Share,
    "depth of the deepest dip (see `dip_count`): 1 less the least rate of 1 s over the level; 0 without a dip; of the first \
     flow, if none is named",
    |r, flow, _| r.flow(flow).dips.map(|dips| dips.depth),
)
.with_shares()
.with_better(Better::Lower);

/// A dip begins below this share of the level: two decreases of GCC, to 85 % each, are still no dip; a halving is one.
const BEGINS: f64 = 0.7;
/// It ends at this share of the level.
const ENDS: f64 = 0.85;
/// Seconds before a dip whose median is the level.
const LEVEL_OVER: usize = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dips {
    pub count: u64,
    /// 1 less the least rate over the level, of the deepest; 0 without a dip.
    pub depth: f64,
}

/// Returns the dips of a flow from `from` to `to`; `None` if they are not longer than the level needs.
pub(super) fn of_flow(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<Dips> {
    let fair = |at, end| fair_bits(run, flow, at, end).unwrap_or(f64::INFINITY);
    let seconds = whole_seconds(from, to).zip(run.rates[flow].received_in(from, to));
    let seconds: Vec<(f64, f64)> = seconds.map(|((a, b), bytes)| (bytes as f64 * 8.0, fair(a, b))).collect();
    find(&seconds)
}

/// Finds the dips in seconds, each with what was received and the fair share.
fn find(seconds: &[(f64, f64)]) -> Option<Dips> {
    if seconds.len() <= LEVEL_OVER {
        return None;
    }
    let mut dips = Dips::default();
    let mut dip_level = None;
    for (before, (received, fair)) in seconds.windows(LEVEL_OVER).zip(&seconds[LEVEL_OVER..]) {
        let level = dip_level.unwrap_or_else(|| median(before)).min(*fair);
        dip_level = match dip_level {
            Some(_) if *received >= ENDS * level => None,
            None if *received < BEGINS * level => {
                dips.count += 1;
                Some(level)
            }
            other => other,
        };
        if dip_level.is_some() {
            dips.depth = dips.depth.max(1.0 - received / level);
        }
    }
    Some(dips)
}

fn median(seconds: &[(f64, f64)]) -> f64 {
    let mut received: Vec<f64> = seconds.iter().map(|(received, _)| *received).collect();
    received.sort_unstable_by(f64::total_cmp);
    received[received.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(seconds: &[(f64, f64)]) -> (u64, f64) {
        let Dips { count, depth } = find(seconds).unwrap();
        (count, (depth * 1000.0).round() / 1000.0)
    }
    fn of_rates(rates: &[f64]) -> (u64, f64) {
        found(&rates.iter().map(|rate| (*rate, f64::INFINITY)).collect::<Vec<_>>())
    }

    #[test]
    fn dips_are_counted_once_and_measured_at_their_bottom() {
        assert_eq!(of_rates(&[100.0, 90.0, 110.0, 100.0, 100.0, 70.0, 71.0]), (0, 0.0), "70 % is no dip");
        assert_eq!(of_rates(&[100.0, 90.0, 110.0, 100.0, 100.0, 69.0, 40.0, 84.0, 60.0, 85.0]), (1, 0.6));
        // The level of the second dip is the median of 60, 50, 85, 100, 100.
        assert_eq!(of_rates(&[100.0, 100.0, 100.0, 100.0, 100.0, 60.0, 50.0, 85.0, 100.0, 100.0, 50.0]), (2, 0.5));
        assert_eq!(find(&[(1.0, 1.0); 5]), None);
    }

    #[test]
    fn a_fall_of_the_path_is_no_dip() {
        let fair =
            |rates: &[f64], fair: &[f64]| found(&rates.iter().copied().zip(fair.iter().copied()).collect::<Vec<_>>());
        let halved = [100.0, 100.0, 100.0, 100.0, 100.0, 50.0, 50.0];
        assert_eq!(fair(&[95.0, 95.0, 95.0, 95.0, 95.0, 45.0, 40.0], &halved), (0, 0.0));
        assert_eq!(fair(&[95.0, 95.0, 95.0, 95.0, 95.0, 45.0, 25.0], &halved), (1, 0.5));
    }
}
