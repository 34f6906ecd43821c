// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tolerance of published values: one rule for every metric, not one per experiment.

use crate::metrics::MetricSpec;
use paceline_netsim::records::MetricKind;

pub use crate::metrics::Tolerance;

/// Returns the tolerance of a published value of this metric, or of a ratio of two values of it, in its unit.
pub fn tolerance(metric: &MetricSpec, ratio: bool, published: f64) -> f64 {
    let tolerance = if ratio { Tolerance::of(MetricKind::Share) } else { metric.tolerance };
    tolerance.around(published)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{METRICS, find};

    #[test]
    fn each_kind_of_metric_has_its_tolerance() {
        for (id, published, wanted) in [
            ("utilization", 0.84, 0.05),
            ("media_utilization", 0.5, 0.05),
            ("link_share", 0.9, 0.05),
            ("throughput_bps", 1e6, 150e3),
            ("share", 0.2, 0.05),
            ("share", 0.5, 0.075),
            ("loss_ratio", 0.0, 0.0002),
            ("loss_ratio", 0.0002, 0.0002),
            ("loss_ratio", 0.002, 0.001),
            ("loss_ratio", 0.01, 0.005),
            ("loss_ratio", 0.08, 0.02),
            ("queue_p50_ms", 0.0, 1.0),
            ("queue_p50_ms", 20.0, 10.0),
            ("queue_p50_ms", 40.0, 15.0),
            ("rtt_p95_ms", 187.0, 46.75),
            ("jain", 0.98, 0.07),
            ("media_jain", 0.5, 0.07),
            ("convergence_time_s", 10.0, 3.0),
        ] {
            let found = tolerance(find(id).unwrap(), false, published);
            assert!((found - wanted).abs() < 1e-12 * published.max(1.0), "{id} {published}: {found}");
        }
        // A ratio of delays has the tolerance of a share.
        assert!((tolerance(find("rtt_p95_ms").unwrap(), true, 0.6) - 0.09).abs() < 1e-12);
        assert!((tolerance(find("rtt_p95_ms").unwrap(), true, 0.1) - 0.05).abs() < 1e-12);
        assert!(METRICS.iter().all(|m| tolerance(m, false, 1.0) > 0.0));
    }
}
