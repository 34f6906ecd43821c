// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict: are two worlds close enough that results of one are valid in the other?

use super::fields::{P95, UTILIZATION};
use crate::results::{Check, ComparedMetric, ValidationCheck};
use paceline_netsim::records::{Paired, Summary};

/// Largest allowed difference of the mean utilisation: that between a measured and a published one
/// (`judge::tolerance`). A simulator with a larger difference could not judge measurements on real paths.
pub const UTILIZATION_TOLERANCE: f64 = 0.05;

/// Largest allowed difference of the mean 95th percentile of queuing delay, ms, or [`QUEUE_PART`] if that is larger. It is
/// twice the tolerance of a published percentile, because a single overshoot changes the tail, and about one frame interval
/// (30 frames/s).
pub const QUEUE_TOLERANCE_MS: f64 = 30.0;

/// Largest allowed difference as a part of the second world's mean, equal to that of a published delay.
pub const QUEUE_PART: f64 = 0.25;

/// Returns the verdicts on the metrics of the bottleneck that at least one world has.
pub(super) fn verdicts(measured: &[ComparedMetric]) -> Vec<ValidationCheck> {
    let of_hop = |m: &&ComparedMetric| m.hop.is_some() && [UTILIZATION, P95].contains(&m.metric.as_str());
    measured.iter().filter(of_hop).map(verdict).collect()
}

fn verdict(measured: &ComparedMetric) -> ValidationCheck {
    let tolerance = match measured.metric == UTILIZATION {
        true => UTILIZATION_TOLERANCE,
        false => measured.worlds[1].map_or(0.0, |s| s.mean * QUEUE_PART).max(QUEUE_TOLERANCE_MS),
    };
    let summary = |d: Paired| Summary { mean: d.mean, std: d.std, ci95: d.ci95, n: d.n };
    let difference = measured.difference.map(summary);
    ValidationCheck {
        hop: measured.hop.clone().unwrap_or_default(),
        metric: measured.metric.clone(),
        difference: difference.map(|d| d.mean),
        ci95: difference.map(|d| d.ci95).filter(|ci95| ci95.is_finite()),
        tolerance,
        judgement: Check::within(tolerance).judge(difference.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict::{Fails, Holds, Undecided};

    fn measured(metric: &str, pairs: &[(f64, f64)]) -> ComparedMetric {
        let of = |side: fn(&(f64, f64)) -> f64| Summary::from_values(&pairs.iter().map(side).collect::<Vec<_>>());
        ComparedMetric {
            hop: Some("forward".to_owned()),
            flow: None,
            metric: metric.to_owned(),
            worlds: [of(|p| p.0), of(|p| p.1)],
            difference: Paired::from_pairs(pairs),
        }
    }

    #[test]
    fn differences_up_to_the_tolerance_are_within() {
        let of = |metric: &str, pairs: &[(f64, f64)]| {
            let all = verdicts(&[measured(metric, pairs)]);
            (all[0].tolerance, all[0].judgement.verdict)
        };
        // 0.89 - 0.84 is a little more than 0.05 in binary.
        assert_eq!(of("utilization", &[(0.84, 0.89)]), (0.05, Holds));
        assert_eq!(of("utilization", &[(0.84, 0.789)]), (0.05, Fails));
        // 30 ms up to 120 ms in the second world, a quarter of its value above.
        assert_eq!(of("queue_ms.p95", &[(40.0, 70.0)]), (30.0, Holds));
        assert_eq!(of("queue_ms.p95", &[(70.1, 40.0)]), (30.0, Fails));
        assert_eq!(of("queue_ms.p95", &[(151.0, 200.0)]), (50.0, Holds));
        assert_eq!(of("queue_ms.p95", &[(200.0, 151.0)]), (37.75, Fails));
        // Differences 0.01, 0.02, 0.03: 0.02 ± 0.0248; and ten times that: 0.2 ± 0.248; 0.2 ± 0.
        assert_eq!(of("utilization", &[(0.5, 0.51), (0.5, 0.52), (0.5, 0.53)]), (0.05, Holds));
        assert_eq!(of("utilization", &[(0.5, 0.51), (0.5, 0.51), (0.5, 0.59)]), (0.05, Undecided));
        assert_eq!(of("utilization", &[(0.5, 0.6), (0.5, 0.7), (0.5, 0.8)]), (0.05, Undecided));
        assert_eq!(of("utilization", &[(0.5, 0.7), (0.5, 0.7)]), (0.05, Fails));
    }

    #[test]
    fn a_value_missing_in_one_world_is_not_within() {
        let mut one = measured("queue_ms.p95", &[(40.0, 40.0)]);
        (one.worlds[1], one.difference) = (None, None);
        let all = verdicts(&[one, measured("queue_ms.p50", &[(1.0, 900.0)])]);
        assert_eq!(all.len(), 1, "no verdict on other percentiles");
        assert_eq!((all[0].difference, all[0].judgement.verdict), (None, Fails));
        assert!(verdicts(&[]).is_empty());
    }
}
