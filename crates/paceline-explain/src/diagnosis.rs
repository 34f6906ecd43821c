//! Model to findings: every episode with its cause, its evidence, and the causes that the input cannot exclude.

use crate::causes::{self, CAUSES, Evidence, Strength};
use crate::episodes::{self, Episode, EpisodeKind};
use crate::facts::Facts;
use crate::model::{Call, Flow};

/// An explained part of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What happened.
    pub episode: Episode,
    /// The id of the cause, or [`UNKNOWN`](causes::UNKNOWN).
    pub cause: &'static str,
    /// The evidence for it; `None` if the cause is unknown.
    pub evidence: Option<Evidence>,
    /// Other causes with evidence.
    pub others: Vec<(&'static str, Evidence)>,
}

/// The findings of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowFindings {
    /// Name of the flow.
    pub flow: String,
    /// Its findings, in order of time.
    pub findings: Vec<Finding>,
}

/// Explains every flow of a call.
pub fn diagnose(call: &Call) -> Vec<FlowFindings> {
    call.flows.iter().map(|flow| FlowFindings { flow: flow.name.clone(), findings: of_flow(flow) }).collect()
}

/// Explains the episodes of a flow.
pub fn of_flow(flow: &Flow) -> Vec<Finding> {
    let found = episodes::find(flow).into_iter().map(|episode| explain(flow, episode));
    // A rate that stands still without any evidence needs no explanation: it is wanted.
    found.filter(|finding| finding.episode.kind != EpisodeKind::Plateau || finding.evidence.is_some()).collect()
}

fn explain(flow: &Flow, episode: Episode) -> Finding {
    let facts = Facts { flow, episode: &episode };
    let mut all: Vec<(&'static str, Evidence)> =
        CAUSES.iter().filter_map(|cause| Some((cause.id, (cause.examine)(&facts)?))).collect();
    // Stable: of equal strength the first cause of the registry is first.
    all.sort_by_key(|(_, evidence)| std::cmp::Reverse(evidence.strength));
    let mut all = all.into_iter();
    match all.next() {
        Some((cause, evidence)) => Finding { episode, cause, evidence: Some(evidence), others: all.collect() },
        None => Finding { episode, cause: causes::UNKNOWN, evidence: None, others: Vec::new() },
    }
}

impl Finding {
    /// Returns whether another cause has evidence as strong.
    pub fn is_ambiguous(&self) -> bool {
        self.others.iter().any(|(_, evidence)| evidence.strength == Strength::Strong)
    }
}
