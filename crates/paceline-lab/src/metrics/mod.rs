// SPDX-License-Identifier: MIT OR Apache-2.0
//! From events to numbers. A [`Collector`] receives the events of a run and returns a [`WindowResult`] for each window that
//! the scenario requests; a metric takes its value from there.
//!
//! A metric is a file of this folder, or a constant in the file of its family, and a line in [`METRICS`]. It reads sums that
//! several metrics share (`accumulators`), or has an accumulator of its own. `docs/explanation/metrics.md` describes how the
//! papers measure; [`Measure`](paceline_scenario::Measure) selects among them.

mod accumulators;
mod collector;
mod convergence;
mod delay;
mod dips;
mod documents;
mod fairness;
mod feedback;
mod frames;
mod link_share;
mod loss;
mod metric;
mod objective;
mod oscillation;
mod others;
mod overuse_count;
#[cfg(test)]
mod pacer_drops;
mod protection;
mod quality;
mod rate;
mod remb_count;
mod reported_loss;
mod results;
mod run_data;
mod score;
mod utilization;

pub(crate) use accumulators::AgeLimits;
pub use accumulators::{Distribution, Freezes, Score};
pub use collector::Collector;
pub use dips::Dips;
pub use documents::{FlowResult, LinkResult, Pooled, StreamResult, WindowResult};
pub use metric::{MetricSpec, Tolerance};
pub use oscillation::Oscillations;
pub(crate) use others::is_competing;

use accumulators::Delays;
use metric::Accumulator;
use paceline_netsim::records::{MetricCatalogue, MetricInfo};
use run_data::RunData;
use std::sync::LazyLock;

/// Every metric. To add one, add a line.
pub const METRICS: &[MetricSpec] = &[
    utilization::UTILIZATION,
    utilization::GOOD,
    utilization::FEC,
    utilization::RTX,
    protection::FEC_SHARE,
    protection::RTX_SHARE,
    protection::FEC_OVER_TARGET_MAX,
    loss::LOSS_RATIO,
    loss::CUMULATIVE_LOSS_RATIO,
    reported_loss::REPORTED_LOSS,
    remb_count::REMB_COUNT,
    overuse_count::OVERUSE_COUNT,
    loss::BOTTLENECK_DROPS,
    loss::CE_RATIO,
    delay::QUEUE_P5,
    delay::QUEUE_P50,
    delay::QUEUE_P90,
    delay::QUEUE_P95,
    delay::QUEUE_P99,
    delay::QUEUE_MEAN,
    delay::OWD_P50,
    delay::OWD_P95,
    delay::OWD_P99,
    delay::RTT_P50,
    delay::RTT_MEAN,
    delay::RTT_P95,
    fairness::JAIN,
    utilization::MEDIA,
    fairness::MEDIA_JAIN,
    fairness::ACTIVE_JAIN,
    fairness::MAX_MIN_RATIO,
    rate::THROUGHPUT,
    rate::GOODPUT,
    rate::SENDING_RATE,
    feedback::FEEDBACK_OVERHEAD,
    rate::TARGET,
    utilization::TARGET,
    rate::SENT_OVER_TARGET_MIN,
    rate::SENT_OVER_TARGET_MAX,
    fairness::SHARE,
    others::OTHERS_KEEP,
    link_share::LINK_SHARE,
    objective::OBJECTIVE,
    rate::RATE_CV,
    rate::SENDING_RATE_CV,
    rate::RECEIVE_RATE_CV,
    dips::DIP_COUNT,
    dips::DIP_DEPTH,
    oscillation::OSCILLATION_COUNT,
    oscillation::OSCILLATION_AMPLITUDE,
    oscillation::OSCILLATION_PERIOD,
    convergence::RISE_TIME,
    convergence::CONVERGENCE_TIME,
    frames::FRAME_DELAY_P95,
    frames::FREEZE_DURATION,
    frames::FREEZE_RATIO,
    frames::LATE_OR_LOST,
    frames::DISCARD_RATIO,
    frames::AUDIO_GAPS,
    quality::QUALITY,
    score::SCORE,
    score::LOST_TO_RATE,
    score::LOST_TO_FREEZES,
    score::LOST_TO_DELAY,
];

pub fn find(id: &str) -> Option<&'static MetricSpec> {
    METRICS.iter().find(|m| m.id == id)
}

/// Returns every metric as scenarios and reports know it.
pub fn catalogue() -> MetricCatalogue {
    static CATALOGUE: LazyLock<Vec<MetricInfo>> = LazyLock::new(|| METRICS.iter().map(MetricSpec::info).collect());
    MetricCatalogue::new(&CATALOGUE)
}
