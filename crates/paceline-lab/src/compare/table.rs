// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a comparison: the ranking, and quantities by controllers with which differences are significant.

use super::difference::difference;
use super::{REPEATS, Ranked, rank};
use crate::metrics::{StreamResult, WindowResult, find};
use crate::results::{Check, ComparisonRow, ComparisonTable, Role, Subject};
use crate::run_result::RunsResult;
use paceline::Registry;
use paceline_netsim::flow::MediaKind;
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::records::{Better, MetricKind, Summary};
use paceline_scenario::Scenario;

struct Quantity {
    metric: &'static str,
    label: &'static str,
    better: Better,
}

/// The quantities of a media flow, of TCP traffic and of the bottleneck: metrics with their names in tables. The better values are
/// those of the metric.
const MEDIA: &[(&str, &str)] = &[
    ("score", "score"),
    ("throughput_bps", "rate"),
    ("share", "share of traffic"),
    ("loss_ratio", "loss"),
    ("owd_p95_ms", "packet delay p95"),
];
const TRAFFIC: &[(&str, &str)] = &[("throughput_bps", "rate"), ("share", "share of traffic"), ("loss_ratio", "loss")];
const LINK: &[(&str, &str)] =
    &[("utilization", "utilization"), ("queue_p95_ms", "queuing delay p95"), ("jain", "Jain's index")];

struct StreamQuantity {
    metric: &'static str,
    label: &'static str,
    better: Better,
    /// The kind of stream that has it; none: each.
    kind: Option<MediaKind>,
    value: fn(&StreamResult) -> Option<f64>,
}

const STREAM: &[StreamQuantity] = &[
    StreamQuantity {
        metric: "score",
        label: "score",
        better: Better::Higher,
        kind: None,
        value: |s| Some(s.score?.score),
    },
    StreamQuantity {
        metric: "throughput_bps",
        label: "rate",
        better: Better::Higher,
        kind: Some(MediaKind::Video),
        value: |s| Some(s.throughput_bps),
    },
    StreamQuantity {
        metric: "frame_delay_p95_ms",
        label: "frame delay p95",
        better: Better::Lower,
        kind: None,
        value: |s| s.frame_delay_ms.map(|d| d.p95),
    },
    StreamQuantity {
        metric: "late_or_lost_ratio",
        label: "frames late or lost",
        better: Better::Lower,
        kind: Some(MediaKind::Video),
        value: |s| s.late_or_lost_ratio,
    },
    StreamQuantity {
        metric: "freeze_ratio",
        label: "frozen",
        better: Better::Lower,
        kind: Some(MediaKind::Video),
        value: |s| s.freeze_ratio,
    },
    StreamQuantity {
        metric: "audio_gap_ratio",
        label: "gaps",
        better: Better::Lower,
        kind: Some(MediaKind::Audio),
        value: |s| s.late_or_lost_ratio,
    },
];

/// What a row describes, and its value in each run of each controller.
struct Values {
    subject: Subject,
    quantity: Quantity,
    /// By controller, then by seed.
    values: Vec<Vec<Option<f64>>>,
}

/// Returns the table for the runs under each controller, which have the same seeds in the same order.
pub(super) fn table(
    names: &[String],
    scenarios: &[Scenario],
    results: &[RunsResult],
    registry: &Registry,
) -> ComparisonTable {
    let scenario = &scenarios[0];
    let runs: Vec<Vec<&WindowResult>> = results.iter().map(|r| r.runs.iter().map(|run| &run.whole).collect()).collect();
    let values: Vec<Values> = values(scenario, &runs).into_iter().filter(|row| row.is_known()).collect();
    let judged = values.iter().filter(|row| row.quantity.better != Better::Neither).count() * (names.len() - 1);
    let rows: Vec<ComparisonRow> = values.into_iter().map(|row| row.compare(judged)).collect();
    let plan = &scenario.plan;
    let seeds: Vec<u64> = results[0].runs.iter().map(|run| run.seed).collect();
    let Ranked { ranking, verdict } = rank(names, scenarios, results, registry, REPEATS);
    ComparisonTable {
        scenario: plan.id.clone(),
        title: plan.title.clone(),
        case: plan.case.clone(),
        changes: Vec::new(),
        world: results[0].runs.first().map(|run| run.world.clone()).unwrap_or_default(),
        controllers: names.to_vec(),
        command: String::new(),
        judged,
        rows,
        verdict,
        ranking,
        seeds,
    }
}

/// Returns the rows: of media flows and their streams, then of TCP traffic, then of the bottleneck.
fn values(scenario: &Scenario, runs: &[Vec<&WindowResult>]) -> Vec<Values> {
    let flows = &scenario.plan.flows;
    let of = |subject: &Subject, (metric, label, better), value: &dyn Fn(&WindowResult) -> Option<f64>| Values {
        subject: subject.clone(),
        quantity: Quantity { metric, label, better },
        values: runs.iter().map(|runs| runs.iter().map(|run| value(run)).collect()).collect(),
    };
    let metric_of = |id: &str| find(id).expect("the metrics of the table are registered");
    let mut rows = Vec::new();
    for role in [Role::Media, Role::Traffic] {
        for (name, members) in groups(flows, role) {
            let subject = Subject { role, flow: Some(name.clone()), stream: None };
            for (id, label) in if role == Role::Media { MEDIA } else { TRAFFIC } {
                if *id == "share" && flows.len() == 1 {
                    continue;
                }
                let metric = metric_of(id);
                let value = |run: &WindowResult| {
                    mean(members.iter().map(|flow| (metric.value)(run, Some(*flow), &scenario.measure)))
                };
                rows.push(of(&subject, (*id, *label, metric.better), &value));
            }
            let streams = flows[members[0]].media().map_or(&[][..], |media| &media.streams);
            for (index, stream) in streams.iter().enumerate() {
                let subject = Subject { role, flow: Some(name.clone()), stream: Some(stream.id.clone()) };
                for quantity in STREAM.iter().filter(|q| q.kind.is_none_or(|kind| kind == stream.kind)) {
                    let value = |run: &WindowResult| {
                        mean(members.iter().map(|flow| (quantity.value)(run.flows[*flow].streams.get(index)?)))
                    };
                    rows.push(of(&subject, (quantity.metric, quantity.label, quantity.better), &value));
                }
            }
        }
    }
    let subject = Subject { role: Role::Link, flow: None, stream: None };
    for (id, label) in LINK {
        let metric = metric_of(id);
        rows.push(of(&subject, (*id, *label, metric.better), &|run| (metric.value)(run, None, &scenario.measure)));
    }
    rows
}

/// Returns the names of the flows with this role, with their indices. Equal flows of one table of the scenario have one name.
fn groups(flows: &[FlowPlan], role: Role) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    let has_role = |flow: &FlowPlan| flow.media().is_some() == (role == Role::Media);
    for (index, flow) in flows.iter().enumerate().filter(|(_, flow)| has_role(flow)) {
        let name = flow.group.as_ref().unwrap_or(&flow.id);
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(index),
            None => groups.push((name.clone(), vec![index])),
        }
    }
    groups
}

/// Returns the mean; `None` if a value is missing.
fn mean(values: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let n = values.len();
    let sum: f64 = values.sum::<Option<f64>>()?;
    (n > 0).then(|| sum / n as f64)
}

impl Values {
    fn is_known(&self) -> bool {
        self.values.iter().flatten().any(Option::is_some)
    }

    /// Compares each controller with the first one.
    fn compare(self, judged: usize) -> ComparisonRow {
        let Self { subject, quantity: Quantity { metric, label, better }, values } = self;
        let complete: Vec<Option<Vec<f64>>> = values.into_iter().map(|of| of.into_iter().collect()).collect();
        let values: Vec<Option<Summary>> =
            complete.iter().map(|of| of.as_ref().and_then(|of| Summary::from_values(of))).collect();
        let means = || values.iter().flatten().map(|summary| summary.mean);
        let best = match better {
            Better::Higher => means().reduce(f64::max),
            Better::Lower => means().reduce(f64::min),
            Better::Neither => None,
        };
        let several = values.len() > 1;
        let best = values.iter().map(|v| several && v.zip(best).is_some_and(|(v, best)| v.mean == best)).collect();
        let differences = complete.iter().enumerate().map(|(index, of)| {
            let (baseline, of) = (complete[0].as_ref()?, of.as_ref().filter(|_| index > 0)?);
            let pairs: Vec<(f64, f64)> = baseline.iter().copied().zip(of.iter().copied()).collect();
            let margin = relevant(metric, values[0]?.mean);
            difference(&pairs, better, Check::Difference { margin, comparisons: judged })
        });
        ComparisonRow {
            subject,
            metric: metric.to_owned(),
            label: label.to_owned(),
            better,
            best,
            differences: differences.collect(),
            values,
        }
    }
}

/// Returns the smallest difference of a quantity that matters to a choice; `value` is that of the baseline. The numbers are our
/// own: 20 ms is less than a frame of 30 a second.
fn relevant(metric: &str, value: f64) -> f64 {
    match (metric, find(metric).map_or(MetricKind::Number, |metric| metric.kind)) {
        ("loss_ratio", _) => 0.001,
        (_, MetricKind::Points) => 1.0,
        (_, MetricKind::Rate) => 0.05 * value.abs(),
        (_, MetricKind::Delay) => 20.0,
        (_, MetricKind::Number) => 0.0,
        _ => 0.005,
    }
}
