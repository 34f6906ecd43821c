// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compared values: fields of a run's document.

use crate::results::validation::{OF_FLOW, OF_HOP, OF_RUN};
use paceline_scenario::Scenario;

/// Metric with a verdict, besides the utilisation.
pub(super) const P95: &str = "queue_ms.p95";
/// Metric with a verdict, besides the queuing delay.
pub(super) const UTILIZATION: &str = OF_HOP[0].0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ComparedField {
    pub(super) hop: Option<String>,
    pub(super) flow: Option<String>,
    pub(super) metric: &'static str,
    pub(super) pointer: String,
}

pub(super) fn compared_fields(scenario: &Scenario) -> Vec<ComparedField> {
    let plan = &scenario.plan;
    let several = plan.flows.len() > 1;
    let field = |hop: Option<&String>, flow: Option<&String>, within: &str, metric: &'static str| ComparedField {
        hop: hop.cloned(),
        flow: flow.cloned(),
        metric,
        pointer: format!("{within}/{}", metric.replace('.', "/")),
    };
    let bottleneck = &plan.hops[plan.bottleneck].id;
    let mut fields: Vec<_> = OF_HOP.iter().map(|(metric, _)| field(Some(bottleneck), None, "/link", metric)).collect();
    fields.extend(OF_RUN.iter().filter(|_| several).map(|(metric, _)| field(None, None, "", metric)));
    for (index, flow) in plan.flows.iter().enumerate() {
        let metrics = OF_FLOW.iter().filter(|(metric, _)| several || *metric != "share");
        fields.extend(metrics.map(|(metric, _)| field(None, Some(&flow.id), &format!("/flows/{index}"), metric)));
    }
    fields
}
