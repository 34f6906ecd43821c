// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays: queuing as the scenario measures it, one way, and round trips.

use super::{Distribution, MetricSpec, WindowResult};
use paceline_netsim::records::MetricKind::Delay;
use paceline_scenario::{Measure, QueueMeasure};

macro_rules! delays {
    ($($name:ident, $id:literal, $summary:expr, $of:ident, $field:ident;)*) => {
        $(pub(super) const $name: MetricSpec =
            MetricSpec::new($id, Delay, $summary, |r, flow, measure| $of(r, flow, measure).map(|d| d.$field));)*
    };
}

macro_rules! queue {
    ($which:literal) => {
        concat!(
            $which,
            " queuing delay, by `measure.queue`; of the run, even if a flow is named, unless RTCP samples it"
        )
    };
}

delays! {
    QUEUE_P5, "queue_p5_ms", queue!("5th percentile of"), queuing, p5;
    QUEUE_P50, "queue_p50_ms", queue!("median"), queuing, p50;
    QUEUE_P90, "queue_p90_ms", queue!("90th percentile of"), queuing, p90;
    QUEUE_P95, "queue_p95_ms", queue!("95th percentile of"), queuing, p95;
    QUEUE_P99, "queue_p99_ms", queue!("99th percentile of"), queuing, p99;
    QUEUE_MEAN, "queue_mean_ms", queue!("mean"), queuing, mean;
    OWD_P50, "owd_p50_ms", "median one-way delay of packets", one_way, p50;
    OWD_P95, "owd_p95_ms", "95th percentile of one-way delay of packets", one_way, p95;
    OWD_P99, "owd_p99_ms", "99th percentile of one-way delay of packets", one_way, p99;
    RTT_P50, "rtt_p50_ms", "median round-trip time, sampled by RTCP", round_trip, p50;
    RTT_MEAN, "rtt_mean_ms", "mean round-trip time, sampled by RTCP", round_trip, mean;
    RTT_P95, "rtt_p95_ms", "95th percentile of round-trip time, sampled by RTCP", round_trip, p95;
}

fn queuing<'r>(result: &'r WindowResult, flow: Option<usize>, measure: &Measure) -> Option<&'r Distribution> {
    match (flow, measure.queue) {
        (Some(f), QueueMeasure::Rtcp) => result.flows[f].rtt_sampled_queue_ms.as_ref(),
        (None, QueueMeasure::Rtcp) => result.pooled.rtcp.as_ref(),
        (_, QueueMeasure::Packet) => result.link.queue_ms.as_ref(),
        (_, QueueMeasure::OneWay) => result.pooled.one_way.as_ref(),
    }
}

fn one_way<'r>(result: &'r WindowResult, flow: Option<usize>, _: &Measure) -> Option<&'r Distribution> {
    flow.map_or(&result.pooled.owd, |f| &result.flows[f].owd_ms).as_ref()
}

fn round_trip<'r>(result: &'r WindowResult, flow: Option<usize>, _: &Measure) -> Option<&'r Distribution> {
    flow.map_or(&result.pooled.rtt, |f| &result.flows[f].rtt_ms).as_ref()
}
