// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of frames that the sender dropped because the queue of its pacer was full.

use super::{Accumulator, MetricSpec, accumulators::contains};
use paceline_netsim::records::{EventRecord, MetricKind};
use paceline_scenario::Window;

const ID: &str = "pacer_drops";

pub(super) const PACER_DROPS: MetricSpec = MetricSpec::new(
    ID,
    MetricKind::Count,
    "frames that the sender dropped because the pacer's queue was full; of the first flow, if none is named",
    |result, flow, _| result.own(ID, flow.unwrap_or(0)),
)
.with_accumulator(|scenario, window| {
    Some(Box::new(PacerDrops { window, dropped: vec![0; scenario.plan.flows.len()] }))
});

struct PacerDrops {
    window: Window,
    dropped: Vec<u64>,
}

impl Accumulator for PacerDrops {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::FrameDropped { at, flow, .. } = *event
            && contains(&self.window, at)
        {
            self.dropped[usize::from(flow.0)] += 1;
        }
    }

    fn values(&self) -> Vec<Option<f64>> {
        self.dropped.iter().map(|n| Some(*n as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{FlowId, StreamId, Time};

    #[test]
    fn frames_dropped_inside_the_window_count_for_their_flow() {
        let window = Window { from: Time::from_secs(1), to: Time::from_secs(3) };
        let mut metric = PacerDrops { window, dropped: vec![0; 2] };
        let drop =
            |ms, flow| EventRecord::FrameDropped { at: Time::from_millis(ms), flow: FlowId(flow), stream: StreamId(0) };
        for (ms, flow) in [(999, 0), (1000, 0), (2999, 0), (2000, 1), (3001, 1)] {
            metric.on_event(&drop(ms, flow));
        }
        assert_eq!(metric.values(), [Some(2.0), Some(1.0)]);
        assert_eq!(PACER_DROPS.info().id, ID);
    }
}
