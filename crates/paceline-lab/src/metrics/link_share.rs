// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow receives of what its sources and its route allow, second by second.

use super::{MetricSpec, RunData, accumulators::seconds_between};
use paceline_netsim::records::MetricKind;
use paceline_units::Time;

pub(super) const LINK_SHARE: MetricSpec = MetricSpec::new(
    "link_share",
    MetricKind::Utilization,
    "throughput over what the sources or, where less, the slowest hop of the route allow, second by second; of the run: \
     only if it has one flow",
    |r, flow, _| match (flow, r.flows.len()) {
        (Some(f), _) => r.flows[f].link_share,
        (None, 1) => r.flows[0].link_share,
        (None, _) => None,
    },
);

/// Returns the share of a flow that received this much from `from` to `to`; `None` if nothing limits it, or if nothing is
/// allowed.
pub(super) fn share(run: &RunData<'_>, flow: usize, received: u64, from: Time, to: Time) -> Option<f64> {
    let allowed = seconds_between(from, to)
        .map(|(a, b)| {
            let (_, volume) = run.slowest(flow, a, b)?;
            Some((volume.as_bits() as f64).min(run.most(flow, a, b) * (b - a).as_secs_f64()))
        })
        .sum::<Option<f64>>();
    allowed.filter(|a| *a > 0.0).map(|a| received as f64 * 8.0 / a)
}
