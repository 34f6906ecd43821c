// SPDX-License-Identifier: MIT OR Apache-2.0
//! The objective of mmsys16, equations 20 and 21: `U^2(x) - 0.15 U^1(y)` with `U^2(x) = -1/x` and `U^1(y) = ln y`, that is
//! alpha 2, beta 1, delta 0.15. The paper gives no units; these are ours.

use super::{FlowResult, MetricSpec};
use paceline_netsim::records::{Better, MetricKind};

pub(super) const OBJECTIVE: MetricSpec = MetricSpec::new(
    "objective",
    MetricKind::Number,
    "sum over media flows of -1/x - 0.15 ln y, with x the throughput in Mbit/s and y the mean queuing delay in ms, sampled by \
     RTCP, at least 1 (mmsys16, eq. 21 with alpha 2, beta 1, delta 0.15; its units are ours)",
    |r, flow, _| match flow {
        Some(f) => of(&r.flows[f]),
        None => r.media().map(of).reduce(|a, b| Some(a? + b?)).flatten(),
    },
)
.with_better(Better::Higher)
.with_round_trips();

fn of(flow: &FlowResult) -> Option<f64> {
    let (mbps, queue_ms) = (flow.throughput_bps / 1e6, flow.rtt_sampled_queue_ms?.mean);
    (mbps > 0.0).then(|| -1.0 / mbps - 0.15 * libm::log(queue_ms.max(1.0)))
}
