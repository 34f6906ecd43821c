// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates: what arrives, what is useful, what the controller wants, and how steady it is.

use super::{FlowResult, MetricSpec, RunData};
use paceline_netsim::records::{Better, MetricKind, Summary};
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

pub(super) const SENDING_RATE: MetricSpec = MetricSpec::new(
    "sending_rate_bps",
    MetricKind::Rate,
    "bytes that were sent, headers included, over the window; of a flow: over the part in which it lived",
    |r, flow, _| {
        let seconds = |f: &FlowResult| (f.stop_s.min(r.window_s.1) - f.start_s.max(r.window_s.0)).max(0.0);
        match flow {
            Some(f) => Some(r.flows[f].sent_bytes as f64 * 8.0 / seconds(&r.flows[f])).filter(|rate| rate.is_finite()),
            None => Some(r.flows.iter().map(|f| f.sent_bytes as f64 * 8.0).sum::<f64>() / r.span()),
        }
    },
)
.with_better(Better::Neither);

pub(super) const SENDING_RATE_CV: MetricSpec = MetricSpec::new(
    "sending_rate_cv_200ms",
    MetricKind::Number,
    "coefficient of variation of what a flow sends in intervals of 200 ms (RFC 8868, section 3); of the first flow, if none is \
     named",
    |r, flow, _| r.flow(flow).rate_cv_200ms.0,
)
.with_better(Better::Lower);

pub(super) const RECEIVE_RATE_CV: MetricSpec = MetricSpec::new(
    "receive_rate_cv_200ms",
    MetricKind::Number,
    "coefficient of variation of what a flow receives in intervals of 200 ms (RFC 8868, section 3); of the first flow, if none \
     is named",
    |r, flow, _| r.flow(flow).rate_cv_200ms.1,
)
.with_better(Better::Lower);

/// Returns the coefficient of variation over the whole seconds from `from` to `to`; `None` if nothing arrived.
pub(super) fn variation(run: &RunData<'_>, flow: usize, from: Time, to: Time) -> Option<f64> {
    let received: Vec<u64> = run.rates[flow].received_in(from, to).collect();
    variation_of(&received)
}

/// Returns the coefficient of variation of these bins; `None` if all are empty.
pub(super) fn variation_of(bins: &[u64]) -> Option<f64> {
    let values: Vec<f64> = bins.iter().map(|bytes| *bytes as f64).collect();
    let summary = Summary::from_values(&values)?;
    (summary.mean > 0.0).then(|| summary.std / summary.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_matches_arithmetic() {
        // Mean 4, deviations 2, -2, 1, -1, squares 10 over 3.
        let cv = variation_of(&[6, 2, 5, 3]).unwrap();
        assert!((cv - libm::sqrt(10.0 / 3.0) / 4.0).abs() < 1e-12, "{cv}");
        assert_eq!((variation_of(&[7; 9]), variation_of(&[0; 9]), variation_of(&[])), (Some(0.0), None, None));
    }
}
