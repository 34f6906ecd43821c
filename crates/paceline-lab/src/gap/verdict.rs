//! Whether two worlds are close enough that what one shows holds in the other.

use super::Measured;
use super::measures::{P95, UTILIZATION};
use serde::{Deserialize, Serialize};

/// How far the mean utilisation may differ: as far as a measured one may lie from a published one
/// (`reproduce::tolerance`). A simulator that is further from a real path could not judge what a paper measured on one.
pub const UTILIZATION_TOLERANCE: f64 = 0.05;

/// How far the mean of the 95th percentile of queuing delay may differ, ms; or by [`QUEUE_PART`], the larger holds. Twice
/// what a published percentile may differ by, for a tail is moved by each single overshoot, and 30 ms is one frame
/// (30 a second): what the next frame finds in the queue.
pub const QUEUE_TOLERANCE_MS: f64 = 30.0;

/// See [`QUEUE_TOLERANCE_MS`]; of the second world's mean. The part by which a published delay may differ.
pub const QUEUE_PART: f64 = 0.25;

/// Rounding of a difference of decimals, over what is compared.
const ROUNDING: f64 = 1e-9;

/// Whether a difference is within its tolerance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of which hop.
    pub hop: String,
    /// Of what.
    pub metric: String,
    /// Mean of the differences, second world minus first, in the metric's unit; none where some run of one world has no
    /// value, which is not within anything.
    pub difference: Option<f64>,
    /// How large it may be, in the metric's unit.
    pub tolerance: f64,
    /// Whether it is no larger.
    pub within: bool,
    /// Whether all of its 95 % interval is on the same side of the tolerance; none: there is no interval.
    pub sure: Option<bool>,
}

/// The verdicts on what was measured; none on what neither world has.
pub(super) fn verdicts(measured: &[Measured]) -> Vec<Verdict> {
    let of_hop = |m: &&Measured| m.hop.is_some() && [UTILIZATION, P95].contains(&m.metric.as_str());
    measured.iter().filter(of_hop).map(verdict).collect()
}

fn verdict(measured: &Measured) -> Verdict {
    let tolerance = match measured.metric == UTILIZATION {
        true => UTILIZATION_TOLERANCE,
        false => measured.worlds[1].map_or(0.0, |s| s.mean * QUEUE_PART).max(QUEUE_TOLERANCE_MS),
    };
    let difference = measured.difference;
    let edge = tolerance + ROUNDING * tolerance.max(1.0);
    let within = difference.is_some_and(|d| d.mean.abs() <= edge);
    let sure = difference.filter(|d| d.n > 1).map(|d| match within {
        true => d.mean.abs() + d.ci95 <= edge,
        false => d.mean.abs() - d.ci95 > edge,
    });
    let hop = measured.hop.clone().unwrap_or_default();
    Verdict { hop, metric: measured.metric.clone(), difference: difference.map(|d| d.mean), tolerance, within, sure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Paired, Summary};

    fn measured(metric: &str, pairs: &[(f64, f64)]) -> Measured {
        let of = |side: fn(&(f64, f64)) -> f64| Summary::of(&pairs.iter().map(side).collect::<Vec<_>>());
        Measured {
            hop: Some("forward".to_owned()),
            flow: None,
            metric: metric.to_owned(),
            worlds: [of(|p| p.0), of(|p| p.1)],
            difference: Paired::of(pairs),
        }
    }

    #[test]
    fn both_sides_of_each_tolerance() {
        let of = |metric: &str, pairs: &[(f64, f64)]| {
            let all = verdicts(&[measured(metric, pairs)]);
            (all[0].tolerance, all[0].within, all[0].sure)
        };
        // 0.89 - 0.84 is a little more than 0.05 in binary.
        assert_eq!(of("utilization", &[(0.84, 0.89)]), (0.05, true, None));
        assert_eq!(of("utilization", &[(0.84, 0.789)]), (0.05, false, None));
        // 30 ms up to 120 ms in the second world, from there a quarter of what that one has.
        assert_eq!(of("queue_ms.p95", &[(40.0, 70.0)]), (30.0, true, None));
        assert_eq!(of("queue_ms.p95", &[(70.1, 40.0)]), (30.0, false, None));
        assert_eq!(of("queue_ms.p95", &[(151.0, 200.0)]), (50.0, true, None));
        assert_eq!(of("queue_ms.p95", &[(200.0, 151.0)]), (37.75, false, None));
        // Differences 0.01, 0.02, 0.03: 0.02 ± 0.0248; and ten times that: 0.2 ± 0.248; 0.2 ± 0.
        assert_eq!(of("utilization", &[(0.5, 0.51), (0.5, 0.52), (0.5, 0.53)]), (0.05, true, Some(true)));
        assert_eq!(of("utilization", &[(0.5, 0.51), (0.5, 0.51), (0.5, 0.59)]), (0.05, true, Some(false)));
        assert_eq!(of("utilization", &[(0.5, 0.6), (0.5, 0.7), (0.5, 0.8)]), (0.05, false, Some(false)));
        assert_eq!(of("utilization", &[(0.5, 0.7), (0.5, 0.7)]), (0.05, false, Some(true)));
    }

    #[test]
    fn a_value_that_only_one_world_has_is_not_within() {
        let mut one = measured("queue_ms.p95", &[(40.0, 40.0)]);
        (one.worlds[1], one.difference) = (None, None);
        let all = verdicts(&[one, measured("queue_ms.p50", &[(1.0, 900.0)])]);
        assert_eq!(all.len(), 1, "no verdict on other percentiles");
        assert_eq!((all[0].difference, all[0].within, all[0].sure), (None, false, None));
        assert!(verdicts(&[]).is_empty());
    }
}
