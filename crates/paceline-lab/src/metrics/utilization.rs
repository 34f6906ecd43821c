// SPDX-License-Identifier: MIT OR Apache-2.0
//! Utilisation: bytes over what the bottleneck, or the slowest hop of a flow's route, could carry.

use super::MetricSpec;
use paceline_netsim::records::{Better, MetricKind::Utilization};

pub(super) const UTILIZATION: MetricSpec = MetricSpec::new(
    "utilization",
    Utilization,
    "bits that the forward bottleneck served over its capacity; of a flow: bits that arrived over the capacity of the \
     slowest hop of its route while it lived",
    |r, flow, _| match flow {
        None => r.link.utilization,
        f => r.over_capacity(f, |f| Some(f.received_bytes)),
    },
);

pub(super) const GOOD: MetricSpec = MetricSpec::new(
    "good_utilization",
    Utilization,
    "bits of media packets that arrived at their first transmission and bits that TCP applications read, of the flows \
     that cross the forward bottleneck, over its capacity; of a flow: over the same capacity as its utilization",
    |r, flow, _| r.over_capacity(flow, |f| Some(f.good_bytes)),
);

pub(super) const FEC: MetricSpec = MetricSpec::new(
    "fec_utilization",
    Utilization,
    "bits of forward error correction that arrived, over the same capacity as good_utilization",
    |r, flow, _| r.over_capacity(flow, |f| f.fec_bytes),
)
.with_better(Better::Neither);

pub(super) const RTX: MetricSpec = MetricSpec::new(
    "rtx_utilization",
    Utilization,
    "bits of media retransmissions that arrived, over the same capacity as good_utilization",
    |r, flow, _| r.over_capacity(flow, |f| f.rtx_bytes),
)
.with_better(Better::Neither);

pub(super) const MEDIA: MetricSpec = MetricSpec::new(
    "media_utilization",
    Utilization,
    "bits that arrived of the media flows that cross the forward bottleneck, over its capacity; of the run, even if a flow \
     is named",
    |r, _, _| {
        let crossing = || r.media().filter(|f| f.crosses_link);
        crossing().next()?;
        let received: u64 = crossing().map(|f| f.received_bytes).sum();
        Some(received as f64 * 8.0 / r.span() / r.link.capacity_bps.filter(|c| *c > 0.0)?)
    },
);

pub(super) const TARGET: MetricSpec = MetricSpec::new(
    "target_utilization",
    Utilization,
    "integral of the targets of the flows that cross the forward bottleneck, over its capacity; of a flow: over the same \
     capacity as its utilization",
    |r, flow, _| r.over_capacity(flow, |f| f.target_bps.map(|_| (f.target_bits / 8.0) as u64)),
)
.with_better(Better::Neither);
