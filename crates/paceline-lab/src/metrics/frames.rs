//! Video metrics: frame delay and freezes.

use super::MetricSpec;
use paceline_records::MetricKind;

pub(super) const FRAME_DELAY_P95: MetricSpec = MetricSpec::new(
    "frame_delay_p95_ms",
    MetricKind::Delay,
    "95th percentile of the delay from capture to rendering, of the first stream; of the first flow, if none is named",
    |r, flow, _| r.flow(flow).streams.first()?.frame_delay_ms.map(|d| d.p95),
);

pub(super) const FREEZE_DURATION: MetricSpec = MetricSpec::new(
    "freeze_duration_s",
    MetricKind::Time,
    "total duration of freezes (W3C totalFreezesDuration) of all streams, including a gap open at the end",
    |r, flow, _| {
        let flows = flow.map_or(&r.flows[..], |f| core::slice::from_ref(&r.flows[f]));
        flows.iter().flat_map(|f| &f.streams).map(|s| s.freeze_s).reduce(|a, b| a + b)
    },
);
