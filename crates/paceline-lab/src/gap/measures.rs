//! What is compared: numbers of a run's document, by where they stand in it.

use crate::metrics::Kind;
use crate::plan::Plan;

/// Of the bottleneck.
const OF_HOP: [(&str, Kind); 7] = [
    ("utilization", Kind::Utilization),
    ("loss_ratio", Kind::Loss),
    ("queue_ms.p5", Kind::Delay),
    ("queue_ms.p50", Kind::Delay),
    (P95, Kind::Delay),
    ("queue_ms.p99", Kind::Delay),
    ("queue_ms.mean", Kind::Delay),
];
/// Of the run, where it has several flows.
const OF_RUN: [(&str, Kind); 1] = [("jain", Kind::Jain)];
/// Of each flow; the share where there are several.
const OF_FLOW: [(&str, Kind); 6] = [
    ("throughput_bps", Kind::Rate),
    ("share", Kind::Share),
    ("loss_ratio", Kind::Loss),
    ("rtt_ms.p50", Kind::Delay),
    ("rtt_ms.p95", Kind::Delay),
    ("rtt_ms.p99", Kind::Delay),
];

/// What there is a verdict on, besides the utilisation.
pub(super) const P95: &str = "queue_ms.p95";
/// What there is a verdict on, besides the queue.
pub(super) const UTILIZATION: &str = OF_HOP[0].0;

/// A number of a run's document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) hop: Option<String>,
    pub(super) flow: Option<String>,
    pub(super) metric: &'static str,
    /// Where it stands, as a JSON pointer.
    pub(super) pointer: String,
}

/// What is compared of runs of a plan, in the order of the document.
pub(super) fn places(plan: &Plan) -> Vec<Place> {
    let several = plan.flows.len() > 1;
    let at = |within: &str, metric: &str| format!("{within}/{}", metric.replace('.', "/"));
    let hop = &plan.hops[plan.bottleneck].id;
    let of_hop = OF_HOP.iter().map(|(metric, _)| Place {
        hop: Some(hop.clone()),
        flow: None,
        metric,
        pointer: at("/link", metric),
    });
    let of_run = OF_RUN.iter().filter(|_| several).map(|(metric, _)| Place {
        hop: None,
        flow: None,
        metric,
        pointer: at("", metric),
    });
    let of_flows = plan.flows.iter().enumerate().flat_map(|(index, flow)| {
        let told = OF_FLOW.iter().filter(move |(metric, _)| several || *metric != "share");
        told.map(move |(metric, _)| Place {
            hop: None,
            flow: Some(flow.id.clone()),
            metric,
            pointer: at(&format!("/flows/{index}"), metric),
        })
    });
    of_hop.chain(of_run).chain(of_flows).collect()
}

/// What kind of number a metric of these is.
pub(super) fn kind(metric: &str) -> Kind {
    let all = OF_HOP.iter().chain(&OF_RUN).chain(&OF_FLOW);
    all.into_iter().find(|(name, _)| *name == metric).map_or(Kind::Number, |(_, kind)| *kind)
}
