// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds of a scenario that a sender can measure.

use paceline_live::hosts::session_plan::sent_flows;
use paceline_netsim::plan::Plan;
use paceline_scenario::{Assert, Each, EachOf, Quantity, QueueMeasure, Reference, Scenario};
use serde::Serialize;

/// Metrics that a sender knows: those of its packets, their arrivals and marks, its targets, the RTCP that it receives, and the rendered
/// frames that the receiver reports. It knows neither the capacity of the path nor one-way delays. Queuing delay is the delay variation.
const KNOWN: &str = "\
    freeze_duration_s freeze_ratio discard_ratio fec_share rtx_share fec_over_target_max loss_ratio \
    cumulative_loss_ratio reported_loss ce_ratio queue_p5_ms queue_p50_ms queue_p90_ms queue_p95_ms \
    queue_mean_ms rtt_p50_ms rtt_mean_ms rtt_p95_ms jain media_jain active_jain max_min_ratio \
    throughput_bps sending_rate_bps target_bps sent_over_target_min sent_over_target_max share rate_cv \
    sending_rate_cv_200ms receive_rate_cv_200ms oscillation_count oscillation_amplitude \
    oscillation_period_s";

/// Those that are of all flows, also if a flow is named.
const OF_ALL: [&str; 3] = ["share", "jain", "active_jain"];

/// Those that are of the media flows alone if no flow is named.
const OF_MEDIA: [&str; 7] =
    ["loss_ratio", "ce_ratio", "media_jain", "max_min_ratio", "freeze_duration_s", "freeze_ratio", "discard_ratio"];

/// Those that a bound may have of a stream.
const OF_STREAMS: [&str; 3] = ["freeze_duration_s", "freeze_ratio", "discard_ratio"];

/// Returns whether a bound is of rendered frames.
pub(super) fn is_of_frames(bound: &Assert) -> bool {
    let metric = |quantity: &Quantity| OF_STREAMS.contains(&quantity.metric.as_str());
    let reference = match &bound.relative_to {
        Some(Reference::SameRun(quantity)) => Some(quantity),
        _ => None,
    };
    metric(&bound.quantity) || reference.is_some_and(metric)
}

/// A bound that a sender cannot measure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unmeasured {
    pub(super) id: String,
    pub(super) metric: String,
    pub(super) flow: Option<String>,
}

impl Unmeasured {
    /// Returns a bound on a run of this plan.
    pub(super) fn of(bound: &Assert, plan: &Plan) -> Self {
        let Quantity { metric, flow, .. } = &bound.quantity;
        Self { id: bound.id.clone(), metric: metric.clone(), flow: flow.map(|flow| plan.flows[flow].id.clone()) }
    }
}

/// What a sender knows of the quantities of a scenario.
pub(super) struct Known<'a> {
    scenario: &'a Scenario,
    /// The flows that it sends, in order.
    sent: Vec<usize>,
    tcp: bool,
}

impl<'a> Known<'a> {
    /// Returns what the sender of a session of this scenario knows, with a TCP flow or not.
    pub(super) fn new(scenario: &'a Scenario, tcp: bool) -> Self {
        Self { scenario, sent: sent_flows(&scenario.plan).collect(), tcp }
    }

    /// Returns the bound with the flows of the session; `None` if it cannot be measured.
    pub(super) fn bound(&self, assert: &Assert) -> Option<Assert> {
        let relative_to = match &assert.relative_to {
            None => None,
            Some(Reference::SameRun(quantity)) => Some(Reference::SameRun(self.quantity(quantity)?)),
            Some(Reference::OtherCase { .. }) => return None,
        };
        Some(Assert { quantity: self.quantity(&assert.quantity)?, relative_to, ..assert.clone() })
    }

    fn quantity(&self, quantity: &Quantity) -> Option<Quantity> {
        let Scenario { plan, measure, .. } = self.scenario;
        let metric = quantity.metric.as_str();
        // The delay variation takes the place of the queue of a packet, and of no other queue.
        let is_known = KNOWN.split(' ').any(|known| known == metric)
            && (quantity.stream.is_none() || OF_STREAMS.contains(&metric))
            && (!metric.starts_with("queue_") || measure.queue == QueueMeasure::Packet);
        let media = plan.flows.iter().filter(|flow| flow.media().is_some()).count();
        // Without a name it is of all flows, or of the first one.
        let is_of_all = quantity.flow.is_none() || OF_ALL.contains(&metric);
        let sees_all = self.sent.len() == media && (!self.tcp || OF_MEDIA.contains(&metric));
        if is_of_all && !sees_all {
            return None;
        }
        let flow = match quantity.flow {
            Some(flow) => Some(self.sent.iter().position(|sent| *sent == flow)?),
            None => None,
        };
        let each = match &quantity.each {
            None => None,
            // The path of the scenario does not apply, and with it its changes.
            Some(each) if each.of == EachOf::Change => return None,
            Some(each) => {
                let relative_to = each.relative_to.as_ref();
                let relative_to = relative_to.map(|of| self.quantity(of).map(Box::new).ok_or(())).transpose().ok()?;
                Some(Each { relative_to, ..each.clone() })
            }
        };
        is_known.then(|| Quantity { flow, each, ..quantity.clone() })
    }
}

/// Lists the bounds that were not measured.
pub(super) fn describe_unmeasured(unmeasured: &[Unmeasured]) -> Option<String> {
    let name = |Unmeasured { id, metric, flow }: &Unmeasured| {
        let of = flow.as_ref().map_or(String::new(), |flow| format!(" of {flow}"));
        format!("{id} ({metric}{of})")
    };
    let names: Vec<String> = unmeasured.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("Bounds that were not measured: {}.", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_metrics_exist() {
        let known: Vec<&str> = KNOWN.split(' ').collect();
        for metric in known.iter().chain(&OF_MEDIA).chain(&OF_ALL).chain(&OF_STREAMS) {
            assert!(paceline_lab::metrics::find(metric).is_some() && known.contains(metric), "{metric}");
        }
    }
}
