//! How far a measured value may lie from the published one: set once for every metric, not per experiment.

use crate::metrics::{Kind, MetricSpec};

/// Rounding of a difference of decimals, over what is compared.
const ROUNDING: f64 = 1e-9;

/// How far a measured value may lie from a published one: by a part of that one, or by `least`; the larger holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the published value.
    pub part: f64,
    /// In the metric's unit.
    pub least: f64,
}

impl Tolerance {
    /// That of a kind of metric.
    pub const fn of(kind: Kind) -> Self {
        let (part, least) = match kind {
            Kind::Utilization => (0.0, 0.05),
            Kind::Rate => (0.15, 0.0),
            Kind::Share | Kind::Number | Kind::Count => (0.15, 0.05),
            Kind::Loss => (0.25, 0.005),
            Kind::Delay => (0.25, 15.0),
            Kind::Jain => (0.0, 0.07),
            Kind::Time => (0.30, 0.0),
        };
        Self { part, least }
    }
}

/// The tolerance of a published value of this metric, or of a ratio of two values of it, in its unit.
pub fn tolerance(metric: &MetricSpec, ratio: bool, published: f64) -> f64 {
    let Tolerance { part, least } = Tolerance::of(if ratio { Kind::Share } else { metric.kind });
    (part * published.abs()).max(least)
}

/// Whether `value` is no more than `tolerance`, but for rounding.
pub(super) fn within(value: f64, tolerance: f64) -> bool {
    value <= tolerance + ROUNDING * tolerance.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{METRICS, find};

    #[test]
    fn each_kind_has_its_own_and_the_larger_holds() {
        for (id, published, wanted) in [
            ("utilization", 0.84, 0.05),
            ("media_utilization", 0.5, 0.05),
            ("attained", 0.9, 0.05),
            ("throughput_bps", 1e6, 150e3),
            ("share", 0.2, 0.05),
            ("share", 0.5, 0.075),
            ("loss_ratio", 0.0002, 0.005),
            ("loss_ratio", 0.08, 0.02),
            ("queue_p50_ms", 20.0, 15.0),
            ("rtt_p95_ms", 187.0, 46.75),
            ("jain", 0.98, 0.07),
            ("media_jain", 0.5, 0.07),
            ("converge_s", 10.0, 3.0),
        ] {
            let found = tolerance(find(id).unwrap(), false, published);
            assert!((found - wanted).abs() < 1e-12 * published.max(1.0), "{id} {published}: {found}");
        }
        // A ratio of delays is a ratio.
        assert!((tolerance(find("rtt_p95_ms").unwrap(), true, 0.6) - 0.09).abs() < 1e-12);
        assert!((tolerance(find("rtt_p95_ms").unwrap(), true, 0.1) - 0.05).abs() < 1e-12);
        assert!(METRICS.iter().all(|m| tolerance(m, false, 1.0) > 0.0));
    }

    #[test]
    fn a_tolerance_includes_its_edge_and_nothing_beyond() {
        // 0.89 - 0.84 is a little more than 0.05 in binary.
        assert!(0.89 - 0.84 > 0.05 && within(0.89 - 0.84, 0.05));
        assert!(!within(0.0501, 0.05) && within(0.0499, 0.05) && !within(f64::INFINITY, 0.05));
    }
}
