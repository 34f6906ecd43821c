// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss as receiver reports state it.

use super::{Accumulator, MetricSpec, accumulators::contains};
use paceline_netsim::records::{EventRecord, MetricKind};
use paceline_scenario::Window;

const ID: &str = "reported_loss";

pub(super) const REPORTED_LOSS: MetricSpec = MetricSpec::new(
    ID,
    MetricKind::Loss,
    "mean fraction lost in the RTCP reports that reached the sender; of the first flow, if none is named",
    |r, flow, _| r.own(ID, flow.unwrap_or(0)),
)
.with_accumulator(|scenario, window| {
    Some(Box::new(Reports { window, sums: vec![(0.0, 0); scenario.plan.flows.len()] }))
});

struct Reports {
    window: Window,
    /// Sum and number of the fractions of each flow.
    sums: Vec<(f64, u64)>,
}

impl Accumulator for Reports {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::FractionLost { at, flow, fraction } = *event
            && contains(&self.window, at)
        {
            let (sum, n) = &mut self.sums[usize::from(flow.0)];
            (*sum, *n) = (*sum + fraction, *n + 1);
        }
    }
    fn values(&self) -> Vec<Option<f64>> {
        self.sums.iter().map(|(sum, n)| (*n > 0).then(|| sum / *n as f64)).collect()
    }
}
