//! The metrics by name.

use super::{FlowResult, WindowResult, queue_of};
use crate::plan::{LossMeasure, Measure};

/// A metric.
pub struct MetricSpec {
    /// Its id in scenarios and results.
    pub id: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// A line on it.
    pub summary: &'static str,
    /// Its value for one flow (by index) or, with none, for the run as a whole; `None` where it has none.
    pub value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
}

/// What kind of number a metric is: its unit, how people read it, and how far it may lie from a published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Capacity used, of what there was.
    Utilization,
    /// A part of a whole.
    Share,
    /// Loss ratios.
    Loss,
    /// Jain's index.
    Jain,
    /// A number that is no part of anything.
    Number,
    /// How many.
    Count,
    /// Queuing delays, one-way delays, round-trip times, frame delays.
    Delay,
    /// Durations.
    Time,
    /// Rates.
    Rate,
}

impl Kind {
    /// Unit of its values; empty for plain numbers and ratios.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Utilization | Self::Share | Self::Loss | Self::Jain | Self::Number | Self::Count => "",
            Self::Delay => "ms",
            Self::Time => "s",
            Self::Rate => "bit/s",
        }
    }

    /// Its name, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilisation",
            Self::Share => "share",
            Self::Loss => "loss",
            Self::Jain => "Jain's index",
            Self::Number => "number",
            Self::Count => "count",
            Self::Delay => "delay",
            Self::Time => "time",
            Self::Rate => "rate",
        }
    }

    /// A value for people: fractions as per cent, rates in Mbit/s, no more digits than mean something.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Utilization | Self::Share => format!("{:.1} %", value * 100.0),
            Self::Loss => format!("{:.3} %", value * 100.0),
            Self::Jain => format!("{value:.3}"),
            Self::Number => format!("{value:.2}"),
            Self::Count => format!("{value:.1}"),
            Self::Delay => format!("{value:.1} ms"),
            Self::Time => format!("{value:.1} s"),
            Self::Rate => format!("{:.3} Mbit/s", value / 1e6),
        }
    }

    /// The size of a difference for people: of per cents, in points.
    pub fn show_size(self, value: f64) -> String {
        match self {
            Self::Utilization | Self::Share => format!("{:.1} points", value * 100.0),
            Self::Loss => format!("{:.3} points", value * 100.0),
            _ => self.show(value),
        }
    }

    /// A difference for people, with its sign.
    pub fn show_difference(self, value: f64) -> String {
        let size = self.show_size(value.abs());
        // A difference that is shown as nothing has no sign.
        let sign = match size.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            false => "",
            true if value < 0.0 => "-",
            true => "+",
        };
        format!("{sign}{size}")
    }

    /// Whether its values lie between 0 and 1.
    pub fn is_fraction(self) -> bool {
        matches!(self, Self::Utilization | Self::Share | Self::Loss | Self::Jain)
    }
}

/// The metric of this id.
pub fn find(id: &str) -> Option<&'static MetricSpec> {
    METRICS.iter().find(|m| m.id == id)
}

/// Every metric. To add one: a line here.
pub const METRICS: &[MetricSpec] = &[
    metric(
        "utilization",
        Kind::Utilization,
        "bits that the forward bottleneck served over bits that it could have; of a flow: that arrived, over those \
         that the slowest hop of its route could have passed while it lived",
        |r, flow, _| match flow {
            None => r.link.utilization,
            f => over_capacity(r, f, |f| Some(f.received_bytes)),
        },
    ),
    metric(
        "good_utilization",
        Kind::Utilization,
        "bits of media packets that arrived on their first way and of what TCP's applications read, of the flows that \
         cross the forward bottleneck, over bits that it could have passed; of a flow: over the same as its utilization",
        |r, flow, _| over_capacity(r, flow, |f| Some(f.good_bytes)),
    ),
    metric(
        "fec_utilization",
        Kind::Utilization,
        "bits of forward error correction that arrived, over the same as good_utilization",
        |r, flow, _| over_capacity(r, flow, |f| f.fec_bytes),
    ),
    metric(
        "rtx_utilization",
        Kind::Utilization,
        "bits of retransmissions of media that arrived, over the same as good_utilization",
        |r, flow, _| over_capacity(r, flow, |f| f.rtx_bytes),
    ),
    metric(
        "fec_share",
        Kind::Share,
        "bytes of forward error correction over bytes sent; of the first flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].fec_share,
    ),
    metric(
        "rtx_share",
        Kind::Share,
        "bytes of retransmissions of media over bytes sent; of the first flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].rtx_share,
    ),
    metric(
        "fec_over_target_max",
        Kind::Number,
        "largest of the 5 s means of forward error correction that a flow sent over its target; of the first flow, if \
         none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].fec_over_target_max,
    ),
    metric(
        "loss_ratio",
        Kind::Loss,
        "bytes lost over bytes sent (or received, as the scenario measures); of the run: of its media flows together",
        |r, flow, measure| {
            let lost = media(r, flow, |f| f.lost_bytes as f64);
            let sent = media(r, flow, |f| f.sent_bytes as f64);
            let whole = match (measure.loss, flow) {
                (_, Some(f)) => return Some(r.flows[f].loss_ratio),
                (LossMeasure::Sent, None) => sent,
                (LossMeasure::Received, None) => sent - lost,
            };
            (whole > 0.0).then(|| lost / whole)
        },
    ),
    metric(
        "reported_loss",
        Kind::Loss,
        "mean of the fractions lost that RTCP reports told the sender; of the first flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].reported_loss,
    ),
    metric("rembs", Kind::Count, "REMBs that the receiver sent; of the first flow, if none is named", |r, flow, _| {
        Some(r.flows[flow.unwrap_or(0)].rembs as f64)
    }),
    metric(
        "overuses",
        Kind::Count,
        "how often the controller found the path over-used anew, where a scenario asks for it; of all flows, if none \
         is named",
        |r, flow, _| match flow {
            Some(f) => r.flows[f].overuses.map(|n| n as f64),
            None => r.flows.iter().filter_map(|f| f.overuses).reduce(|a, b| a + b).map(|n| n as f64),
        },
    ),
    metric(
        "drops",
        Kind::Count,
        "packets that the forward bottleneck dropped, lost on its wire or not; of the run, even if a flow is named",
        |r, _, _| Some(r.link.dropped_packets as f64),
    ),
    metric(
        "ce_ratio",
        Kind::Share,
        "packets that arrived marked by ECN (congestion experienced) over those that arrived ECN-capable; of the run: of \
         its media flows together",
        |r, flow, _| {
            let packets = media(r, flow, |f| f.ecn_packets as f64);
            (packets > 0.0).then(|| media(r, flow, |f| f.marked_packets as f64) / packets)
        },
    ),
    metric(
        "queue_p5_ms",
        Kind::Delay,
        "5th percentile of queuing delay, as the scenario measures it; of the run \
         even if a flow is named, unless measured by RTCP",
        |r, f, m| queue(r, f, m, |d| d.p5),
    ),
    metric(
        "queue_p50_ms",
        Kind::Delay,
        "median queuing delay, as the scenario measures it; of the run \
         even if a flow is named, unless measured by RTCP",
        |r, f, m| queue(r, f, m, |d| d.p50),
    ),
    metric(
        "queue_p90_ms",
        Kind::Delay,
        "90th percentile of queuing delay, as the scenario measures it; of the run \
         even if a flow is named, unless measured by RTCP",
        |r, f, m| queue(r, f, m, |d| d.p90),
    ),
    metric(
        "queue_p95_ms",
        Kind::Delay,
        "95th percentile of queuing delay, as the scenario measures it; of the run \
         even if a flow is named, unless measured by RTCP",
        |r, f, m| queue(r, f, m, |d| d.p95),
    ),
    metric(
        "queue_mean_ms",
        Kind::Delay,
        "mean queuing delay, as the scenario measures it; of the run \
         even if a flow is named, unless measured by RTCP",
        |r, f, m| queue(r, f, m, |d| d.mean),
    ),
    metric("owd_p50_ms", Kind::Delay, "median one-way delay of packets", |r, flow, _| {
        flow.map_or(&r.pooled.owd, |f| &r.flows[f].owd_ms).map(|d| d.p50)
    }),
    metric("owd_p95_ms", Kind::Delay, "95th percentile of one-way delay of packets", |r, flow, _| {
        flow.map_or(&r.pooled.owd, |f| &r.flows[f].owd_ms).map(|d| d.p95)
    }),
    metric("rtt_p50_ms", Kind::Delay, "median round-trip time, as RTCP samples it", |r, flow, _| {
        flow.map_or(&r.pooled.rtt, |f| &r.flows[f].rtt_ms).map(|d| d.p50)
    }),
    metric("rtt_mean_ms", Kind::Delay, "mean round-trip time, as RTCP samples it", |r, flow, _| {
        flow.map_or(&r.pooled.rtt, |f| &r.flows[f].rtt_ms).map(|d| d.mean)
    }),
    metric("rtt_p95_ms", Kind::Delay, "95th percentile of round-trip time, as RTCP samples it", |r, flow, _| {
        flow.map_or(&r.pooled.rtt, |f| &r.flows[f].rtt_ms).map(|d| d.p95)
    }),
    metric(
        "jain",
        Kind::Jain,
        "Jain's index of the rates of the flows that cross the forward bottleneck, in 1 s bins, mean over bins; of \
         the run, even if a flow is named",
        |r, _, _| r.jain,
    ),
    metric(
        "media_utilization",
        Kind::Utilization,
        "bits of the media flows that cross the forward bottleneck, as they arrived, over bits that it could have \
         passed; of the run, even if a flow is named",
        |r, _, _| {
            let crossing = || r.flows.iter().filter(|f| f.crosses_link && f.kind == "media");
            crossing().next()?;
            let received: u64 = crossing().map(|f| f.received_bytes).sum();
            Some(received as f64 * 8.0 / span(r) / r.link.capacity_bps.filter(|c| *c > 0.0)?)
        },
    ),
    metric(
        "media_jain",
        Kind::Jain,
        "Jain's index as `jain`, of the media flows alone; of the run, even if a flow is named",
        |r, _, _| r.media_jain,
    ),
    metric(
        "spread",
        Kind::Number,
        "largest over smallest throughput of the media flows; of the run, even if a flow is named",
        |r, _, _| {
            let rates = || r.flows.iter().filter(|f| f.kind == "media").map(|f| f.throughput_bps);
            let (most, least) = (rates().reduce(f64::max)?, rates().reduce(f64::min)?);
            (least > 0.0).then(|| most / least)
        },
    ),
    metric(
        "throughput_bps",
        Kind::Rate,
        "bytes that arrived, headers included, over the span; of a flow: over the part it lived",
        |r, flow, _| Some(rate(r, flow, |f| f.throughput_bps, |f| f.received_bytes as f64 * 8.0)),
    ),
    metric(
        "goodput_bps",
        Kind::Rate,
        "bytes of rendered frames over the span; of a flow: over the part it lived",
        |r, flow, _| Some(rate(r, flow, |f| f.goodput_bps, |f| f.useful_bytes as f64 * 8.0)),
    ),
    metric(
        "target_bps",
        Kind::Rate,
        "target times time, summed over flows, over the span; of a flow: mean target while it had one",
        |r, flow, _| {
            r.flows.iter().any(|f| f.target_bps.is_some()).then_some(())?;
            flow.map_or_else(|| Some(sum(r, None, |f| f.target_bits) / span(r)), |f| r.flows[f].target_bps)
        },
    ),
    metric(
        "target_utilization",
        Kind::Utilization,
        "targets times time, of the flows that cross the forward bottleneck, over bits that it could have passed; of a \
         flow: over the same as its utilization",
        |r, flow, _| over_capacity(r, flow, |f| f.target_bps.map(|_| (f.target_bits / 8.0) as u64)),
    ),
    metric(
        "sent_over_target_min",
        Kind::Number,
        "least of the 5 s means of what a flow sent over its target; of the first flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].sent_over_target.map(|s| s.0),
    ),
    metric(
        "sent_over_target_max",
        Kind::Number,
        "largest of the 5 s means of what a flow sent over its target; of the first flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].sent_over_target.map(|s| s.1),
    ),
    metric(
        "share",
        Kind::Share,
        "a flow's throughput over that of all flows; of the first, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].share,
    ),
    metric(
        "attained",
        Kind::Utilization,
        "throughput over what the sources or, where less, the slowest hop allow, second by second; of a \
         run: if it has one flow",
        |r, flow, _| match (flow, r.flows.len()) {
            (Some(f), _) => r.flows[f].attained,
            (None, 1) => r.flows[0].attained,
            (None, _) => None,
        },
    ),
    metric(
        "objective",
        Kind::Number,
        "sum over media flows of -1/x - 0.15 ln y: x throughput in Mbit/s, y mean queuing delay in ms as RTCP samples \
         it, at least 1 (mmsys16, eq. 21 with alpha 2, beta 1, delta 0.15; its units are ours)",
        |r, flow, _| {
            let of = |f: &FlowResult| objective(f.throughput_bps / 1e6, f.rtt_sampled_queue_ms?.mean);
            match flow {
                Some(f) => of(&r.flows[f]),
                None => r.flows.iter().filter(|f| f.kind == "media").map(of).reduce(|a, b| Some(a? + b?)).flatten(),
            }
        },
    ),
    metric(
        "rate_cv",
        Kind::Number,
        "standard deviation over mean of what a flow receives in 1 s bins: how much it oscillates; of the first flow, if \
         none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].rate_cv,
    ),
    metric(
        "converge_s",
        Kind::Time,
        "seconds until a flow first receives 90 % of its fair share or of its sources' maximum; of the first \
         flow, if none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].converge_s,
    ),
    metric(
        "frame_delay_p95_ms",
        Kind::Delay,
        "95th percentile of the delay from capture to rendering, first stream; of the first flow, if \
         none is named",
        |r, flow, _| r.flows[flow.unwrap_or(0)].streams.first()?.frame_delay_ms.map(|d| d.p95),
    ),
    metric("freeze_s", Kind::Time, "total time frozen, all streams, the gap open at the end included", |r, flow, _| {
        let flows = flow.map_or(&r.flows[..], |f| core::slice::from_ref(&r.flows[f]));
        flows.iter().flat_map(|f| &f.streams).map(|s| s.freeze_s).reduce(|a, b| a + b)
    }),
];

const fn metric(
    id: &'static str,
    kind: Kind,
    summary: &'static str,
    value: fn(&WindowResult, Option<usize>, &Measure) -> Option<f64>,
) -> MetricSpec {
    MetricSpec { id, kind, summary, value }
}

/// Of a flow or, of the run, over its media flows; over all, where none is media.
fn media(result: &WindowResult, flow: Option<usize>, of: impl Fn(&FlowResult) -> f64) -> f64 {
    let any = result.flows.iter().any(|f| f.kind == "media");
    match flow {
        Some(f) => of(&result.flows[f]),
        None => result.flows.iter().filter(|f| f.kind == "media" || !any).map(of).sum(),
    }
}

fn sum(result: &WindowResult, flow: Option<usize>, of: impl Fn(&FlowResult) -> f64) -> f64 {
    match flow {
        Some(f) => of(&result.flows[f]),
        None => result.flows.iter().map(of).sum(),
    }
}

/// A flow's rate over its own life or, of the run, all flows' bits over the span.
fn rate(result: &WindowResult, flow: Option<usize>, own: fn(&FlowResult) -> f64, bits: fn(&FlowResult) -> f64) -> f64 {
    match flow {
        Some(f) => own(&result.flows[f]),
        None => sum(result, None, bits) / span(result),
    }
}

fn span(result: &WindowResult) -> f64 {
    result.window_s.1 - result.window_s.0
}

/// mmsys16, eq. 20 and 21 with alpha 2, beta 1, delta 0.15: `U^2(x) = -1/x`, `U^1(y) = ln y`.
fn objective(mbps: f64, queue_ms: f64) -> Option<f64> {
    (mbps > 0.0).then(|| -1.0 / mbps - 0.15 * libm::log(queue_ms.max(1.0)))
}

/// Of a flow, over what the slowest hop of its route could have passed; of the run, over what the forward bottleneck
/// could have, of the flows that cross it. None, where no flow has a value.
fn over_capacity(result: &WindowResult, flow: Option<usize>, bytes: fn(&FlowResult) -> Option<u64>) -> Option<f64> {
    match flow {
        Some(f) => {
            let flow = &result.flows[f];
            let capacity = flow.capacity_bytes.filter(|c| *c > 0)?;
            Some(bytes(flow)? as f64 / capacity as f64)
        }
        None => {
            let bytes = result.flows.iter().filter(|f| f.crosses_link).filter_map(bytes).reduce(|a, b| a + b)?;
            Some(bytes as f64 * 8.0 / span(result) / result.link.capacity_bps.filter(|c| *c > 0.0)?)
        }
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
