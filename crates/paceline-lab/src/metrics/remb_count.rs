// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many REMB messages (draft-alvestrand-rmcat-remb) receivers send.

use super::{Accumulator, MetricSpec, accumulators::contains};
use paceline_netsim::records::{EventRecord, MetricKind};
use paceline_scenario::Window;

const ID: &str = "remb_count";

pub(super) const REMB_COUNT: MetricSpec = MetricSpec::new(
    ID,
    MetricKind::Count,
    "REMB messages that the receiver sent; of the first flow, if none is named",
    |r, flow, _| r.own(ID, flow.unwrap_or(0)),
)
.with_accumulator(|scenario, window| Some(Box::new(Rembs { window, sent: vec![0; scenario.plan.flows.len()] })));

struct Rembs {
    window: Window,
    sent: Vec<u64>,
}

impl Accumulator for Rembs {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Remb { at, flow, .. } = *event
            && contains(&self.window, at)
        {
            self.sent[usize::from(flow.0)] += 1;
        }
    }
    fn values(&self) -> Vec<Option<f64>> {
        self.sent.iter().map(|n| Some(*n as f64)).collect()
    }
}
