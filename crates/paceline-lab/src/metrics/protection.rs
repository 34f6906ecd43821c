// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of what a flow sends is forward error correction, and how much is retransmissions.

use super::MetricSpec;
use paceline_netsim::records::MetricKind;

pub(super) const FEC_SHARE: MetricSpec = MetricSpec::new(
    "fec_share",
    MetricKind::Share,
    "bytes of forward error correction over bytes sent; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).fec_share,
);

pub(super) const RTX_SHARE: MetricSpec = MetricSpec::new(
    "rtx_share",
    MetricKind::Share,
    "bytes of media retransmissions over bytes sent; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).rtx_share,
);

pub(super) const FEC_OVER_TARGET_MAX: MetricSpec = MetricSpec::new(
    "fec_over_target_max",
    MetricKind::Number,
    "largest mean over 5 s of forward error correction sent over the target; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).fec_over_target_max,
);
