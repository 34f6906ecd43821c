// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between two worlds on one scenario, as `validate --json` prints them.

use crate::results::check::{Judgement, Verdict};
use paceline_netsim::records::{HostStats, Label, MetricKind, Paired, Summary};
use serde::{Deserialize, Serialize};

pub const OF_HOP: [(&str, MetricKind); 7] = [
    ("utilization", MetricKind::Utilization),
    ("loss_ratio", MetricKind::Loss),
    ("queue_ms.p5", MetricKind::Delay),
    ("queue_ms.p50", MetricKind::Delay),
    ("queue_ms.p95", MetricKind::Delay),
    ("queue_ms.p99", MetricKind::Delay),
    ("queue_ms.mean", MetricKind::Delay),
];
/// Compared metrics of a run with several flows.
pub const OF_RUN: [(&str, MetricKind); 1] = [("jain", MetricKind::Jain)];
/// Compared metrics of each flow; the share only where there are several flows.
pub const OF_FLOW: [(&str, MetricKind); 6] = [
    ("throughput_bps", MetricKind::Rate),
    ("share", MetricKind::Share),
    ("loss_ratio", MetricKind::Loss),
    ("rtt_ms.p50", MetricKind::Delay),
    ("rtt_ms.p95", MetricKind::Delay),
    ("rtt_ms.p99", MetricKind::Delay),
];

/// The validations of several scenarios, as `validate --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validations {
    /// One for each scenario and controller, in the order of the arguments.
    #[serde(rename = "gaps")]
    pub validations: Vec<Validation>,
}

/// The differences between two worlds on one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    pub scenario: String,
    pub title: String,
    /// Case of the scenario; empty for the scenario as written.
    pub case: Label,
    pub changes: Vec<String>,
    /// Controller of each flow, or TCP's congestion control; `None` for a flow without one.
    pub controllers: Vec<Option<String>>,
    pub command: String,
    pub duration_s: f64,
    /// The two worlds. Differences are the second minus the first.
    pub worlds: [String; 2],
    /// Seeds of the runs in both worlds, in order.
    pub seeds: Vec<u64>,
    pub measured: Vec<ComparedMetric>,
    /// The distributions of queuing delay; `None` if no packet crossed the bottleneck in one of the worlds.
    pub queue_delay: Option<QueueDelay>,
    /// Whether the differences are within their tolerances.
    pub verdicts: Vec<ValidationCheck>,
    pub runs: [Vec<ComparedRun>; 2],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedMetric {
    /// Hop, for a metric of a hop.
    pub hop: Option<String>,
    /// Flow, for a metric of a flow; without hop and flow it is a metric of the run.
    pub flow: Option<String>,
    /// Its path within the hop, flow or run in `run --json`, such as `queue_ms.p95`.
    pub metric: String,
    /// Summary over the runs of each world; `None` if a run has no value.
    pub worlds: [Option<Summary>; 2],
    /// Second world minus first, seed by seed.
    pub difference: Option<Paired>,
}

/// The distributions of queuing delay of all packets that crossed the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    pub hop: String,
    /// The Kolmogorov-Smirnov distance between the worlds, over all runs: the largest difference of the two cumulative
    /// distributions.
    pub ks: f64,
    /// The least delay with this difference, ms; `None` if the distributions are equal.
    pub at_ms: Option<f64>,
    /// Width of the counted intervals, ms.
    pub step_ms: f64,
    pub packets: [u64; 2],
    /// The distance between the two runs of each seed, in order.
    pub by_seed: Vec<Option<f64>>,
    /// In each world, the mean distance between runs of different seeds, which is the distance without a change of world;
    /// `None` for one seed.
    pub between_seeds: [Option<f64>; 2],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    pub seed: u64,
    /// Hash over every decision of links and endpoints.
    pub trace_hash: String,
    /// Load of the host; `None` in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<HostStats>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationCheck {
    pub hop: String,
    pub metric: String,
    /// Mean of the differences, second world minus first, in the metric's unit; `None` if a run has no value, which fails.
    pub difference: Option<f64>,
    /// Half-width of its 95 % interval; `None` for one seed.
    pub ci95: Option<f64>,
    /// The tolerance, in the metric's unit.
    pub tolerance: f64,
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Validation {
    pub fn verdict(&self) -> Verdict {
        Verdict::all(self.verdicts.iter().map(|check| check.judgement.verdict))
    }
}

impl ComparedMetric {
    pub fn kind(&self) -> MetricKind {
        kind(&self.metric)
    }
}

impl ValidationCheck {
    pub fn kind(&self) -> MetricKind {
        kind(&self.metric)
    }
}

fn kind(metric: &str) -> MetricKind {
    let all = OF_HOP.iter().chain(&OF_RUN).chain(&OF_FLOW);
    all.into_iter().find(|(name, _)| *name == metric).map_or(MetricKind::Number, |(_, kind)| *kind)
}
