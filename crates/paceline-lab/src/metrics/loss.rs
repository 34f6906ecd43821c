// SPDX-License-Identifier: MIT OR Apache-2.0
//! Losses and marks, counted where they happen.

use super::{FlowResult, MetricSpec};
use paceline_netsim::records::{Better, MetricKind};
use paceline_scenario::LossMeasure;

pub(super) const LOSS_RATIO: MetricSpec = MetricSpec::new(
    "loss_ratio",
    MetricKind::Loss,
    "bytes lost over bytes sent (or received, if `measure.loss` says so); of the run: of its media flows together",
    |r, flow, measure| {
        let lost = r.sum_of_media(flow, |f| f.lost_bytes as f64);
        let sent = r.sum_of_media(flow, |f| f.sent_bytes as f64);
        let whole = match (measure.loss, flow) {
            (_, Some(f)) => return Some(r.flows[f].loss_ratio),
            (LossMeasure::Sent, None) => sent,
            (LossMeasure::Received, None) => sent - lost,
        };
        (whole > 0.0).then(|| lost / whole)
    },
);

/// With media `M`, retransmissions `R` and losses `L` of both, `M + R - L` arrive. A count that expects `M`, because
/// retransmissions repeat the sequence numbers of media, misses `L - R` (RFC 3550, appendix A.3).
pub(super) const CUMULATIVE_LOSS_RATIO: MetricSpec = MetricSpec::new(
    "cumulative_loss_ratio",
    MetricKind::Loss,
    "losses less retransmissions, over media bytes sent: the loss by the cumulative count of RFC 3550 if retransmissions \
     shared the sequence numbers of media; of the run: of its media flows together",
    |r, flow, _| {
        let repeated = |f: &FlowResult| f.rtx_share.unwrap_or(0.0) * f.sent_bytes as f64;
        let missing = r.sum_of_media(flow, |f| f.lost_bytes as f64 - repeated(f));
        let media = r.sum_of_media(flow, |f| f.sent_bytes as f64 - repeated(f));
        (media > 0.0).then(|| missing.max(0.0) / media)
    },
);

pub(super) const BOTTLENECK_DROPS: MetricSpec = MetricSpec::new(
    "bottleneck_drops",
    MetricKind::Count,
    "packets that the forward bottleneck dropped, at its queue or on its wire; of the run, even if a flow is named",
    |r, _, _| Some(r.link.dropped_packets as f64),
)
.with_better(Better::Lower);

pub(super) const CE_RATIO: MetricSpec = MetricSpec::new(
    "ce_ratio",
    MetricKind::Share,
    "packets that arrived with an ECN mark (congestion experienced) over those that arrived ECN-capable; of the run: of \
     its media flows together",
    |r, flow, _| {
        let packets = r.sum_of_media(flow, |f| f.ecn_packets as f64);
        (packets > 0.0).then(|| r.sum_of_media(flow, |f| f.marked_packets as f64) / packets)
    },
);
