// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often over-use detectors enter over-use, from the signal that a controller declares for its state. Signals are
//! expensive, so they are requested only where the scenario uses the metric.

use super::{Accumulator, MetricSpec, accumulators::contains};
use paceline_netsim::records::{EventRecord, HalfName, MetricKind};
use paceline_scenario::Window;

const ID: &str = "overuse_count";

pub(super) const OVERUSE_COUNT: MetricSpec = MetricSpec::new(
    ID,
    MetricKind::Count,
    "how often the over-use detector of the controller entered over-use, where the scenario uses this metric; of all flows \
     together, if none is named",
    |r, flow, _| match flow {
        Some(f) => r.own(ID, f),
        None => (0..r.flows.len()).filter_map(|f| r.own(ID, f)).reduce(|a, b| a + b),
    },
)
.with_accumulator(|scenario, window| {
    scenario.quantities().any(|q| q.metric == ID).then(|| {
        let detector = scenario.plan.flows.iter().map(|flow| flow.media()?.controller.overuse);
        let flows = detector.map(|detector| Detector { detector, is_over: false, count: 0 }).collect();
        Box::new(OveruseCounter { window, flows }) as Box<dyn Accumulator>
    })
});

struct OveruseCounter {
    window: Window,
    flows: Vec<Detector>,
}

struct Detector {
    /// Half, signal and the value that means over-use; none: the controller has no detector.
    detector: Option<(HalfName, u8, f64)>,
    is_over: bool,
    count: u64,
}

impl Accumulator for OveruseCounter {
    fn on_event(&mut self, event: &EventRecord) {
        let EventRecord::Signal { at, flow, half, signal, value } = *event else { return };
        let flow = &mut self.flows[usize::from(flow.0)];
        if let Some((_, _, over)) = flow.detector.filter(|(h, s, _)| (*h, *s) == (half, signal)) {
            let is_over = value == over;
            flow.count += u64::from(is_over && !flow.is_over && contains(&self.window, at));
            flow.is_over = is_over;
        }
    }
    fn wants_signals(&self) -> bool {
        true
    }
    fn values(&self) -> Vec<Option<f64>> {
        self.flows.iter().map(|flow| flow.detector.map(|_| flow.count as f64)).collect()
    }
}
