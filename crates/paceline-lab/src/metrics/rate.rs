//! Rates: what arrives, what is useful, what the controller wants, and how steady it is.

use super::{MetricSpec, RunData};
use paceline_records::{Better, MetricKind, Summary};
use paceline_units::Time;

pub(super) const THROUGHPUT: MetricSpec = MetricSpec::new(
    "throughput_bps",
    MetricKind::Rate,
    "bytes that arrived, headers included, over the window; of a flow: over the part in which it lived",
    |r, flow, _| match flow {
        Some(f) => Some(r.flows[f].throughput_bps),
        None => Some(r.flows.iter().map(|f| f.received_bytes as f64 * 8.0).sum::<f64>() / r.span()),
    },
);

pub(super) const GOODPUT: MetricSpec = MetricSpec::new(
    "goodput_bps",
    MetricKind::Rate,
    "bytes of rendered frames, or that TCP applications read, over the window; of a flow: over the part in which it lived",
    |r, flow, _| match flow {
        Some(f) => Some(r.flows[f].goodput_bps),
        None => Some(r.flows.iter().map(|f| f.useful_bytes as f64 * 8.0).sum::<f64>() / r.span()),
    },
)
.with_streams(|s| Some(s.throughput_bps));

pub(super) const TARGET: MetricSpec = MetricSpec::new(
    "target_bps",
    MetricKind::Rate,
    "integral of the target over time, summed over flows, over the window; of a flow: mean target while it had one",
    |r, flow, _| {
        r.flows.iter().any(|f| f.target_bps.is_some()).then_some(())?;
        match flow {
            Some(f) => r.flows[f].target_bps,
            None => Some(r.flows.iter().map(|f| f.target_bits).sum::<f64>() / r.span()),
        }
    },
)
.with_better(Better::Neither);

pub(super) const SENT_OVER_TARGET_MIN: MetricSpec = MetricSpec::new(
    "sent_over_target_min",
    MetricKind::Number,
    "least mean over 5 s of what a flow sent over its target; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).sent_over_target.map(|s| s.0),
);

pub(super) const SENT_OVER_TARGET_MAX: MetricSpec = MetricSpec::new(
    "sent_over_target_max",
    MetricKind::Number,
    "largest mean over 5 s of what a flow sent over its target; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).sent_over_target.map(|s| s.1),
);

pub(super) const RATE_CV: MetricSpec = MetricSpec::new(
    "rate_cv",
    MetricKind::Number,
    "coefficient of variation (standard deviation over mean) of what a flow receives in bins of 1 s: how much it oscillates; \
     of the first flow, if none is named",
    |r, flow, _| r.flow(flow).rate_cv,
)
.with_better(Better::Lower);

/// Returns the coefficient of variation over the whole seconds from `from` to `to`; `None` if nothing arrived.
pub(super) fn variation(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<f64> {
    let received: Vec<f64> = run.rates[flow].received_in(from, to).map(|bytes| bytes as f64).collect();
    let summary = Summary::from_values(&received)?;
    (summary.mean > 0.0).then(|| summary.std / summary.mean)
}
