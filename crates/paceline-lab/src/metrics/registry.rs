//! The metrics by name.

use super::{FlowResult, WindowResult, queue_of};
use crate::plan::{LossMeasure, Measure};

/// A metric.
pub struct MetricSpec {
    /// Its id in scenarios and results.
    pub id: &'static str,
    /// Unit of its values; empty for ratios.
    pub unit: &'static str,
    /// A line on it.
    pub summary: &'static str,
    /// Its value for one flow (by index) or, with none, for the run as a whole; `None` where it has none.
    pub value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
}

/// The metric of this id.
pub fn find(id: &str) -> Option<&'static MetricSpec> {
    METRICS.iter().find(|m| m.id == id)
}

/// Every metric. To add one: a line here.
pub const METRICS: &[MetricSpec] = &[
    metric(
        "utilization",
        "",
        "bits that crossed the forward bottleneck, or arrived for one flow, over bits that could have",
        |r, flow, _| match flow {
            None => r.link.utilization,
            Some(f) => Some(r.flows[f].throughput_bps / r.link.capacity_bps.filter(|c| *c > 0.0)?),
        },
    ),
    metric(
        "good_utilization",
        "",
        "bits of rendered frames over bits that the forward bottleneck could have passed",
        |r, flow, _| Some(sum(r, flow, |f| f.goodput_bps) / r.link.capacity_bps.filter(|c| *c > 0.0)?),
    ),
    metric(
        "loss_ratio",
        "",
        "bytes lost over bytes sent (or received, as the scenario measures)",
        |r, flow, measure| {
            let lost = sum(r, flow, |f| f.lost_bytes as f64);
            let sent = sum(r, flow, |f| f.sent_bytes as f64);
            let whole = match (measure.loss, flow) {
                (_, Some(f)) => return Some(r.flows[f].loss_ratio),
                (LossMeasure::Sent, None) => sent,
                (LossMeasure::Received, None) => sent - lost,
            };
            (whole > 0.0).then(|| lost / whole)
        },
    ),
    metric("queue_p5_ms", "ms", "5th percentile of queuing delay, as the scenario measures it", |r, f, m| {
        queue(r, f, m, |d| d.p5)
    }),
    metric("queue_p50_ms", "ms", "median queuing delay, as the scenario measures it", |r, f, m| {
        queue(r, f, m, |d| d.p50)
    }),
    metric("queue_p95_ms", "ms", "95th percentile of queuing delay, as the scenario measures it", |r, f, m| {
        queue(r, f, m, |d| d.p95)
    }),
    metric("queue_mean_ms", "ms", "mean queuing delay, as the scenario measures it", |r, f, m| {
        queue(r, f, m, |d| d.mean)
    }),
    metric("owd_p50_ms", "ms", "median one-way delay of packets", |r, flow, _| {
        flow.map_or(&r.pooled.owd, |f| &r.flows[f].owd_ms).map(|d| d.p50)
    }),
    metric("owd_p95_ms", "ms", "95th percentile of one-way delay of packets", |r, flow, _| {
        flow.map_or(&r.pooled.owd, |f| &r.flows[f].owd_ms).map(|d| d.p95)
    }),
    metric("rtt_p50_ms", "ms", "median round-trip time, as RTCP samples it", |r, flow, _| {
        flow.map_or(&r.pooled.rtt, |f| &r.flows[f].rtt_ms).map(|d| d.p50)
    }),
    metric("rtt_p95_ms", "ms", "95th percentile of round-trip time, as RTCP samples it", |r, flow, _| {
        flow.map_or(&r.pooled.rtt, |f| &r.flows[f].rtt_ms).map(|d| d.p95)
    }),
    metric("jain", "", "Jain's index of the flows' rates in 1 s bins, mean over bins", |r, _, _| r.jain),
    metric("throughput_bps", "bit/s", "bytes that arrived, headers included, over time", |r, flow, _| {
        Some(sum(r, flow, |f| f.throughput_bps))
    }),
    metric("goodput_bps", "bit/s", "bytes of rendered frames over time", |r, flow, _| {
        Some(sum(r, flow, |f| f.goodput_bps))
    }),
    metric("target_bps", "bit/s", "mean target of the controller", |r, flow, _| {
        Some(sum(r, flow, |f| f.target_bps.unwrap_or(0.0)))
    }),
    metric("share", "", "a flow's throughput over that of all flows; of the first, if none is named", |r, flow, _| {
        r.flows[flow.unwrap_or(0)].share
    }),
    metric("attained", "", "throughput over what the sources or, where less, the capacity allow", |r, flow, _| match (
        flow,
        r.flows.len(),
    ) {
        (Some(f), _) => r.flows[f].attained,
        (None, 1) => r.flows[0].attained,
        (None, _) => None,
    }),
    metric(
        "converge_s",
        "s",
        "seconds until a flow first receives 90 % of its fair share or of its sources' maximum",
        |r, flow, _| r.flows[flow.unwrap_or(0)].converge_s,
    ),
    metric(
        "frame_delay_p95_ms",
        "ms",
        "95th percentile of the delay from capture to rendering, first stream",
        |r, flow, _| r.flows[flow.unwrap_or(0)].streams.first()?.frame_delay_ms.map(|d| d.p95),
    ),
    metric("freeze_s", "s", "total time frozen, all streams", |r, flow, _| {
        Some(sum(r, flow, |f| f.streams.iter().map(|s| s.freeze_s).sum()))
    }),
];

const fn metric(
    id: &'static str,
    unit: &'static str,
    summary: &'static str,
    value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
) -> MetricSpec {
    MetricSpec { id, unit, summary, value }
}

fn sum(result: &WindowResult, flow: Option<usize>, of: impl Fn(&FlowResult) -> f64) -> f64 {
    match flow {
        Some(f) => of(&result.flows[f]),
        None => result.flows.iter().map(of).sum(),
    }
}

fn queue(
    result: &WindowResult,
    flow: Option<usize>,
    measure: &Measure,
    of: fn(&super::Distribution) -> f64,
) -> Option<f64> {
    use crate::plan::QueueMeasure;
    match (flow, measure.queue) {
        (Some(f), QueueMeasure::Rtcp) => result.flows[f].rtt_sampled_queue_ms.as_ref().map(of),
        _ => queue_of(result, measure).map(of),
    }
}
