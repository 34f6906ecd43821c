// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of a run that are plotted, with their names and descriptions.

use super::FLOWS_SHOWN;
use crate::report::figure::{Series, Subject};
use crate::report::read::{Run, SignalRow};
use paceline_netsim::records::{FlowDescription, HopDescription, RunDescription};
use paceline_units::FlowId;

pub(super) struct RunView<'a> {
    pub(super) run: &'a Run,
    pub(super) duration_s: f64,
    /// Subject of the first plotted flow.
    first: usize,
    shown: Vec<usize>,
    subjects: Vec<Option<usize>>,
    /// Whether the data of each flow takes the reverse hops.
    reverse: Vec<bool>,
    /// Whether each hop has a capacity. Folders of older versions do not store it; all hops then count.
    limited: Vec<bool>,
}

pub(crate) fn is_media(run: &Run, flow: usize) -> bool {
    run.description().and_then(|s| s.flows.get(flow)).is_some_and(|f| f.kind == "media")
}

/// Returns the flows that have their own series and table rows, in the order of the run. Media flows take precedence.
pub(crate) fn shown(run: &Run) -> Vec<usize> {
    let is_media = |flow: &usize| is_media(run, *flow);
    let (mut shown, others): (Vec<usize>, Vec<usize>) = (0..run.about.flows.len()).partition(is_media);
    shown.extend(others);
    shown.truncate(FLOWS_SHOWN);
    shown.sort_unstable();
    shown
}

impl<'a> RunView<'a> {
    pub(super) fn new(run: &'a Run, first: usize) -> Self {
        let shown = shown(run);
        let subject = |flow| Some(first + shown.binary_search(&flow).ok()?);
        let subjects = (0..run.about.flows.len()).map(subject).collect();
        let is_reverse = |description: &RunDescription| {
            let hop = |name: &String| description.hops.iter().find(|hop| hop.id == *name);
            let flow = |flow: &FlowDescription| flow.route.first().and_then(hop).is_some_and(|hop| !hop.forward);
            description.flows.iter().map(flow).collect()
        };
        let reverse = run.description().map(is_reverse).unwrap_or_default();
        let has_capacity = |s: &RunDescription| s.hops.iter().map(|hop| hop.capacity.is_some()).collect();
        let limited = run.description().map_or_else(|| vec![true; run.about.hops.len()], has_capacity);
        Self { run, duration_s: run.duration_s(), first, shown, subjects, reverse, limited }
    }

    /// Returns the subject of a flow with its own series.
    pub(super) fn subject(&self, flow: FlowId) -> Option<usize> {
        *self.subjects.get(usize::from(flow.0))?
    }

    /// Returns the subject of any flow; the other flows share one subject.
    pub(super) fn any_subject(&self, flow: FlowId) -> usize {
        self.subject(flow).unwrap_or(self.first + self.shown.len())
    }

    pub(super) fn flow(&self, flow: FlowId) -> Option<&'a FlowDescription> {
        self.run.description()?.flows.get(usize::from(flow.0))
    }

    pub(super) fn shown_flow(&self, series: &Series) -> Option<&'a FlowDescription> {
        self.run.description()?.flows.get(*self.shown.get(series.subject?.checked_sub(self.first)?)?)
    }

    pub(super) fn stream(&self, flow: FlowId, stream: usize) -> String {
        let name = self.flow(flow).and_then(|flow| flow.streams.get(stream));
        name.cloned().unwrap_or_else(|| format!("stream {stream}"))
    }

    /// Returns the number of a state signal among the signals of its flow, and the names of its values.
    pub(super) fn states(&self, row: &SignalRow<'_>) -> Option<(usize, &'a [String])> {
        let [send, receive] = &self.flow(row.flow)?.signals;
        let (signals, before) = if row.receive { (receive, send.len()) } else { (send, 0) };
        let at = signals.iter().position(|signal| signal.name == row.name)?;
        Some((before + at, signals[at].states.as_slice())).filter(|(_, states)| !states.is_empty())
    }

    pub(super) fn is_limited(&self, hop: u16) -> bool {
        self.limited.get(usize::from(hop)) == Some(&true)
    }

    pub(super) fn limits(
        &self,
        forward: bool,
    ) -> impl Iterator<Item = (&'a HopDescription, &'a [(f64, f64)])> + use<'a> {
        let hops = self.run.description().map_or(&[][..], |setting| &setting.hops);
        hops.iter().filter(move |hop| hop.forward == forward).filter_map(|hop| Some((hop, hop.capacity.as_deref()?)))
    }

    /// Returns whether the data of a flow takes the reverse hops.
    pub(super) fn is_reverse(&self, flow: FlowId) -> bool {
        self.reverse.get(usize::from(flow.0)) == Some(&true)
    }

    pub(super) fn subjects(&self) -> Vec<Subject> {
        let flows = &self.run.about.flows;
        let subject = |flow: String, controller: &str, traffic: bool| Subject {
            run: self.run.about.run.directory.clone(),
            seed: self.run.about.run.seed,
            flow,
            controller: controller.to_owned(),
            traffic,
            ..Subject::default()
        };
        let of = |flow: &usize| subject(flows[*flow].clone(), self.run.controller(*flow), !is_media(self.run, *flow));
        let mut subjects: Vec<Subject> = self.shown.iter().map(of).collect();
        let others = (0..flows.len()).filter(|flow| !self.shown.contains(flow));
        let mut controllers: Vec<&str> = others.map(|flow| self.run.controller(flow)).collect();
        if !controllers.is_empty() {
            let more = format!("{} more flows", controllers.len());
            controllers.sort_unstable();
            controllers.dedup();
            subjects.push(subject(more, &controllers.join(", "), true));
        }
        subjects
    }
}

pub(super) fn changes(run: &Run) -> String {
    let changes = run.about.run.changes.iter().map(|change| change.strip_prefix("case.").unwrap_or(change));
    let changes: Vec<&str> = changes.collect();
    if changes.is_empty() { "as written".to_owned() } else { changes.join(", ") }
}

/// Returns the controllers of the flows of a run that have another controller in some of `runs`, without repetition.
pub(super) fn differing_controllers(run: &Run, runs: &[&Run]) -> String {
    let of = |run: &Run, flow: &str| {
        let index = run.about.flows.iter().position(|name| name == flow);
        index.map(|index| run.controller(index).to_owned())
    };
    let mut controllers: Vec<String> = Vec::new();
    for flow in &run.about.flows {
        let own = of(run, flow).unwrap_or_default();
        if !controllers.contains(&own) && runs.iter().any(|other| of(other, flow).is_some_and(|c| c != own)) {
            controllers.push(own);
        }
    }
    controllers.join(", ")
}

/// Labels each subject by the properties that differ: flow, controller, changes, world, cut and seed. The kind is the label
/// without the seed.
pub(super) fn label(subjects: &mut [Subject], runs: &[&Run]) {
    let differ = |of: fn(&Subject) -> String| subjects.iter().any(|s| of(s) != of(&subjects[0]));
    let (flows, controllers) = (differ(|s| s.flow.clone()), differ(|s| s.controller.clone()));
    let seeds = differ(|s| s.seed.to_string());
    let run = |name: &str| runs.iter().find(|run| run.about.run.directory == name);
    let worlds = runs.iter().any(|run| run.about.run.world != runs[0].about.run.world);
    let changed = runs.iter().any(|run| run.about.run.changes != runs[0].about.run.changes);
    let kinds: Vec<String> = subjects
        .iter()
        .map(|s| {
            let mut parts = Vec::new();
            if flows || !controllers {
                parts.push(s.flow.clone());
            }
            if controllers || runs.len() == 1 {
                parts.push(s.controller.clone());
            }
            if changed {
                parts.extend(run(&s.run).map(|run| changes(run)));
            }
            if worlds {
                parts.extend(run(&s.run).map(|run| run.about.run.world.clone()));
            }
            parts.extend(run(&s.run).and_then(|run| run.cut()));
            parts.join(" · ")
        })
        .collect();
    for (subject, kind) in subjects.iter_mut().zip(kinds) {
        subject.label = if seeds { format!("{kind} · seed {}", subject.seed) } else { kind.clone() };
        subject.kind = kind;
    }
}
