// SPDX-License-Identifier: MIT OR Apache-2.0
//! The overhead of feedback (RFC 8867, section 4.1, metric 1D).

use super::MetricSpec;
use paceline_netsim::records::{Better, MetricKind};

pub(super) const FEEDBACK_OVERHEAD: MetricSpec = MetricSpec::new(
    "feedback_overhead",
    MetricKind::Share,
    "bytes that the receiver sent, headers included, over bytes that it received; of all media flows, or of the flow, if one is \
     named",
    |r, flow, _| {
        let received = r.sum_of_media(flow, |f| f.received_bytes as f64);
        (received > 0.0).then(|| r.sum_of_media(flow, |f| f.feedback_bytes as f64) / received)
    },
)
.with_better(Better::Lower);
