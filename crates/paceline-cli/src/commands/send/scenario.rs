//! `send --scenario`: the flows of a scenario as the terms of a session, and its bounds.
//!
//! The path of the scenario does not apply, because the real one is there, and neither do its models of hosts and clocks. Other keys that a
//! session cannot have are refused.

use super::bounds::{Known, Unmeasured};
use super::{NAMED, Planned};
use crate::commands::host_session;
use crate::environment::environment;
use crate::external::is_external;
use miette::Result;
use paceline::{FecScheme, Registry, ResendRule};
use paceline_lab::storage::Inputs;
use paceline_live::hosts::message::TERMS_MAX;
use paceline_live::hosts::terms::{DURATION_MS, FLOWS_MAX, FlowTerms, RATE_MAX, StreamTerms, Terms};
use paceline_netsim::plan::{Direction, FlowChange, FlowKind, FlowPlan, MediaPlan, StreamPlan};
use paceline_netsim::sim;
use paceline_scenario::{Catalogue, Changes, Origin, Scenario, ScenarioError};
use paceline_units::{Dscp, RandomStreams, Time, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// Longest pause of all flows of this host: an end that hears nothing for twice as long leaves the session.
const PAUSE_MAX: TimeDelta = TimeDelta::from_secs(5);

/// Loads the scenario of this name for a session, with changes. `tcp` adds a TCP flow. The notes say what does not apply.
///
/// # Errors
/// The scenario has an error, or something that a session cannot have.
pub(super) fn load(name: &str, changes: Changes, (seed, tcp): (u64, bool), registry: &Registry) -> Result<Planned> {
    let origin = Catalogue.find(name)?;
    let scenario = paceline_scenario::load(&origin, &changes, paceline_lab::registries(registry));
    let scenario = scenario.map_err(|error| match error.offending() {
        Some(name) if is_external(name.trim_matches('"')) => error.help(NAMED),
        _ => error,
    })?;
    let loaded = Loaded { origin, changes, registry, scenario };
    let has_tcp = loaded.has_tcp()?;
    let terms = loaded.terms(seed, tcp || has_tcp)?;
    if terms.count(true) > 0 {
        loaded.check(true, &host_session::scenario(&terms, true, registry)?.0)?;
    }
    let mut session = host_session::received_scenario(&terms, false, registry)?;
    loaded.check(false, &session)?;
    loaded.check_pauses(&session)?;
    let unmeasured = loaded.describe(&mut session, terms.tcp);
    let beside = if has_tcp { ", and the TCP of this system that of its TCP flow" } else { "" };
    let mut notes = vec![format!("the real path, hosts and clocks take the place of those of the scenario{beside}")];
    notes.extend(loaded.scenario.notes);
    let inputs = Inputs {
        environment: environment().clone(),
        scenario_text: loaded.origin.text,
        changes: loaded.changes.settings.iter().map(ToString::to_string).collect(),
        ..Inputs::default()
    };
    Ok(Planned { terms, scenario: session, inputs, unmeasured, notes })
}

/// A scenario, and what it was loaded from.
struct Loaded<'a> {
    origin: Origin,
    changes: Changes,
    registry: &'a Registry,
    scenario: Scenario,
}

impl Loaded<'_> {
    /// Returns an error about the first of `keys` that the table of the flow has.
    fn refuse<T>(
        &self,
        flow: &FlowPlan,
        keys: &[&str],
        message: impl Into<String>,
        help: &str,
    ) -> Result<T, ScenarioError> {
        let table = flow.group.as_ref().unwrap_or(&flow.id);
        let error =
            paceline_scenario::error_at_key(&self.origin, &self.changes, self.registry, (Some(table), keys), message);
        Err(error.help(help))
    }

    /// Returns the media flows of one direction, with their numbers.
    fn media_flows(&self, back: bool) -> impl Iterator<Item = (usize, &FlowPlan, &MediaPlan)> {
        let flows = self.scenario.plan.flows.iter().enumerate();
        flows
            .filter(move |(_, flow)| (flow.direction == Direction::Reverse) == back)
            .filter_map(|(index, flow)| Some((index, flow, flow.media()?)))
    }

    /// Returns whether there is a TCP flow.
    fn has_tcp(&self) -> Result<bool, ScenarioError> {
        let mut has_tcp = false;
        for flow in &self.scenario.plan.flows {
            let FlowKind::Tcp(tcp) = &flow.kind else { continue };
            let id = &flow.id;
            if has_tcp {
                return self.refuse(flow, &["count"], format!("`{id}` is a second TCP flow"), "two hosts have one");
            }
            if flow.direction == Direction::Reverse {
                let message = format!("the TCP flow `{id}` goes back");
                return self.refuse(flow, &["direction"], message, "the TCP flow between two hosts goes forward");
            }
            if !tcp.is_bulk() {
                let message = format!("the TCP flow `{id}` sends no bulk data");
                return self.refuse(flow, &["workload"], message, "leave `workload` out");
            }
            let end = Time::ZERO + self.scenario.plan.duration;
            if (flow.start, flow.start_spread, flow.stop) != (Time::ZERO, TimeDelta::ZERO, end) {
                let message = format!("the TCP flow `{id}` does not start and end with the session");
                let help = "leave out `start`, `start_spread` and `stop`";
                return self.refuse(flow, &["start", "start_spread", "stop"], message, help);
            }
            has_tcp = true;
        }
        Ok(has_tcp)
    }

    fn terms(&self, seed: u64, tcp: bool) -> Result<Terms, ScenarioError> {
        let mut flows: Vec<FlowTerms> = Vec::new();
        let end = Time::ZERO + self.scenario.plan.duration;
        let milliseconds = |time: Time| ((time - Time::ZERO).as_nanos() / 1_000_000) as u64;
        for back in [false, true] {
            for (_, flow, media) in self.media_flows(back) {
                let mut terms = self.flow_terms(flow, media, back)?;
                let start = sim::start_time(flow, &RandomStreams::new(seed));
                terms.start_ms = milliseconds(start);
                terms.stop_ms = Some(flow.stop).filter(|stop| *stop < end).map(milliseconds);
                match flows.last_mut() {
                    Some(last) if FlowTerms { count: 1, ..last.clone() } == terms => last.count += 1,
                    _ => flows.push(terms),
                }
            }
        }
        let terms = Terms { flows, duration_ms: milliseconds(end), seed, tcp };
        let flows = &self.scenario.plan.flows;
        match terms.problem() {
            None => Ok(terms),
            Some(_) if self.media_flows(false).next().is_none() => {
                let help = "this host must send: let a media flow go forward";
                self.refuse(&flows[0], &["direction"], "no media flow goes forward", help)
            }
            Some(problem)
                if [false, true].map(|back| terms.highest_bps(back)).iter().any(|bps| *bps > RATE_MAX.into()) =>
            {
                let largest =
                    self.media_flows(false).chain(self.media_flows(true)).max_by_key(|(.., media)| media.max_rate());
                let flow = largest.map_or(&flows[0], |(_, flow, _)| flow);
                self.refuse(flow, &["encoder.max", "count"], problem, "lower `max` of the encoder")
            }
            Some(problem) if terms.count(false).max(terms.count(true)) > usize::from(FLOWS_MAX) => {
                let largest = flows.iter().find(|flow| flow.group.is_some());
                self.refuse(largest.unwrap_or(&flows[0]), &["count"], problem, "lower `count`")
            }
            Some(problem) if [false, true].iter().any(|back| terms.stream_count(*back) > usize::from(FLOWS_MAX)) => {
                let largest = flows.iter().find(|flow| flow.group.is_some());
                let help = "lower `count`, or let flows have fewer streams";
                self.refuse(largest.unwrap_or(&flows[0]), &["count", "stream"], problem, help)
            }
            Some(problem) if terms.to_bytes().len() > TERMS_MAX => {
                let help = "equal flows that follow each other in the file count once";
                self.refuse(&flows[flows.len() - 1], &["id"], problem, help)
            }
            Some(problem) if DURATION_MS.contains(&terms.duration_ms) => {
                let help = "change `start` or `stop` of a flow, or the duration";
                self.refuse(&flows[flows.len() - 1], &["start", "stop", "start_spread"], problem, help)
            }
            Some(problem) => {
                let place = (None, &["duration"][..]);
                let error = paceline_scenario::error_at_key(&self.origin, &self.changes, self.registry, place, problem);
                Err(error.help("--duration sets another one"))
            }
        }
    }

    fn flow_terms(&self, flow: &FlowPlan, media: &MediaPlan, back: bool) -> Result<FlowTerms, ScenarioError> {
        let streams = media.streams.iter().map(|stream| self.stream_terms(flow, stream, back));
        let mut terms = FlowTerms {
            controller: media.controller.name.clone(),
            config: media.controller.config.iter().cloned().collect(),
            streams: streams.collect::<Result<_, _>>()?,
            retransmit: media.retransmit,
            fec: name_of(&FecScheme::NAMES, media.protection.fec),
            resend_budget: name_of(&ResendRule::NAMES, media.protection.resend),
            start_bps: media.start_rate.as_bps(),
            min_bps: media.min_rate.as_bps(),
            start_ms: 0,
            stop_ms: None,
            count: 1,
            back,
        };
        terms.start_bps = terms.start_bps.min(terms.max().as_bps());
        let id = &flow.id;
        match terms.problem() {
            None => Ok(terms),
            Some(problem) => {
                let keys = ["min_rate", "start_rate", "encoder.max", "config"];
                self.refuse(
                    flow,
                    &keys,
                    format!("`{id}`: {problem}"),
                    "change `min_rate`, `start_rate` or `encoder.max`",
                )
            }
        }
    }

    /// Returns the terms of a stream. Only the host that sends it needs the parameters and the files of its source.
    fn stream_terms(&self, flow: &FlowPlan, stream: &StreamPlan, back: bool) -> Result<StreamTerms, ScenarioError> {
        let (id, source) = (&flow.id, &stream.source);
        let mut config = BTreeMap::new();
        if back && !host_session::needs_no_files(source.entry.name) {
            let message = format!("the source `{}` of `{id}` does not work at the other host", source.entry.name);
            let help = format!("the receiver sends `{id}`: use a source that needs no files, such as encoder");
            return self.refuse(flow, &["encoder.source", "encoder", "stream"], message, &help);
        }
        let max = host_session::rate_key(source.entry.name);
        for parameter in source.entry.parameters.iter().filter(|parameter| back && parameter.name != max) {
            let Some(value) = source.values.get(parameter.name).filter(|value| Some(*value) != parameter.default)
            else {
                continue;
            };
            let number = host_session::source_number(value);
            let Some(number) = number.filter(|number| host_session::source_text(parameter.kind, *number).is_some())
            else {
                let message = format!("`{}` of `{id}` is too large for the other host", parameter.name);
                let help = "a receiver accepts rates up to 10 Gbit/s, numbers up to 1000 and whole ones up to 10000";
                return self.refuse(flow, &[&format!("encoder.{}", parameter.name)], message, help);
            };
            config.insert(parameter.name.to_owned(), number);
        }
        let terms = StreamTerms::new(source.entry.name, source.range().1.as_bps());
        Ok(if back {
            StreamTerms { config, priority: stream.priority, suspends: stream.suspends, ..terms }
        } else {
            terms
        })
    }

    /// Checks that this host is never silent for so long that an end would leave the session.
    fn check_pauses(&self, session: &Scenario) -> Result<(), ScenarioError> {
        let end = Time::ZERO + self.scenario.plan.duration;
        // The session has the start times that the seed draws.
        let flows = || self.media_flows(false).zip(&session.plan.flows).map(|((.., media), flow)| (flow, media));
        let changes = |(flow, media): (&FlowPlan, &MediaPlan)| {
            let streams = media.streams.iter().flat_map(StreamPlan::changes);
            let times = streams.chain(media.changes.iter().map(|(at, _)| *at)).chain([flow.start, flow.stop]);
            times.collect::<Vec<_>>()
        };
        let mut times: BTreeSet<Time> = flows().flat_map(changes).filter(|at| *at < end).collect();
        times.extend([Time::ZERO, end]);
        let mut since = Time::ZERO;
        for (from, to) in times.iter().zip(times.iter().skip(1)) {
            if flows().any(|(flow, media)| sends_at(flow, media, *from)) {
                since = *to;
            } else if *to - since > PAUSE_MAX {
                let (_, flow, _) = self.media_flows(false).next().expect("this host sends");
                let message = format!("this host sends nothing for more than {PAUSE_MAX} from {} on", since);
                let help = "both ends would take it for a failure; let another stream send, such as audio";
                return self.refuse(flow, &["stream", "available"], message, help);
            }
        }
        Ok(())
    }

    /// Compares the flows of one direction with those that the receiver builds from the terms.
    fn check(&self, back: bool, session: &Scenario) -> Result<(), ScenarioError> {
        for ((_, flow, media), there) in self.media_flows(back).zip(&session.plan.flows) {
            let there = there.media().expect("a session has media flows");
            if let Some((keys, help)) = difference(flow, media, there, back) {
                let message = format!("`{}` of `{}` does not work between two hosts", keys.join("` or `"), flow.id);
                return self.refuse(flow, keys, message, help);
            }
        }
        Ok(())
    }

    /// Gives a session the flows, the names and the bounds of the scenario. Returns those bounds that a sender cannot measure.
    fn describe(&self, session: &mut Scenario, tcp: bool) -> Vec<Unmeasured> {
        let Scenario { plan, asserts, measure, constants, .. } = &self.scenario;
        session.plan.id.clone_from(&plan.id);
        session.plan.case.clone_from(&plan.case);
        session.plan.title.clone_from(&plan.title);
        session.plan.source.clone_from(&plan.source);
        (session.measure, session.constants) = (*measure, constants.clone());
        let sent: Vec<usize> = self.media_flows(false).map(|(index, ..)| index).collect();
        for (flow, (_, own, media)) in session.plan.flows.iter_mut().zip(self.media_flows(false)) {
            flow.id.clone_from(&own.id);
            flow.kind = FlowKind::Media(media.clone());
        }
        let known = Known { scenario: &self.scenario, sent: &sent, tcp };
        let mut unmeasured = Vec::new();
        for assert in asserts {
            match known.bound(assert) {
                Some(assert) => session.asserts.push(assert),
                None => unmeasured.push(Unmeasured::of(assert, plan)),
            }
        }
        unmeasured
    }
}

/// Returns the name of a value that is not the default.
fn name_of<T: PartialEq + Default>(names: &[(&str, T)], value: T) -> Option<String> {
    let name = names.iter().find(|(_, other)| *other == value && value != T::default());
    name.map(|(name, _)| (*name).to_owned())
}

/// Returns whether a flow has media to send at this time.
fn sends_at(flow: &FlowPlan, media: &MediaPlan, at: Time) -> bool {
    let availability = media.changes.iter().filter_map(|(from, change)| match change {
        FlowChange::Availability(available) => Some((*from, *available)),
        _ => None,
    });
    let is_available = availability.take_while(|(from, _)| *from <= at).last().is_none_or(|(_, available)| available);
    (flow.start..flow.stop).contains(&at)
        && is_available
        && media.streams.iter().any(|stream| !stream.max_at(at).is_zero())
}

/// Returns the keys in which a flow differs from the one that the receiver builds, and a hint. What the sender alone must know counts only
/// if the receiver is the one that sends.
fn difference(
    flow: &FlowPlan,
    here: &MediaPlan,
    there: &MediaPlan,
    back: bool,
) -> Option<(&'static [&'static str], &'static str)> {
    // Terms have these, or the real path, hosts and clocks take their place.
    let MediaPlan {
        media_use,
        is_cross_traffic: _,
        controller: _,
        start_rate: _,
        min_rate: _,
        retransmit: _,
        protection: _,
        clock: _,
        coupling,
        streams,
        packet_size,
        rtcp_interval,
        feedback_interval,
        pacer_limit,
        changes,
    } = here;
    const DEFAULT: &str = "leave it out";
    let is_refused =
        |(_, change): &&(Time, FlowChange)| back || matches!(change, FlowChange::Bounds(_) | FlowChange::Route(_));
    let changed: &[&str] = match changes.iter().find(is_refused) {
        None => &[],
        Some((_, FlowChange::Bounds(_))) => &["max_rate", "min_rate"],
        Some((_, FlowChange::Route(_))) => &["route_change_at"],
        Some((_, FlowChange::Availability(_))) => &["available"],
        Some((_, FlowChange::Remb(_))) => &["remb"],
        Some((_, FlowChange::StreamMax(..) | FlowChange::StreamMuted(..) | FlowChange::StreamEnd(_))) => &["stream"],
    };
    let limits =
        "`max` of the encoder limits the rate, and limits stay as they are at the start; leave out what changes";
    let is_steady = |stream: &StreamPlan| !StreamPlan { suspends: false, ..stream.clone() }.changes_during_run();
    [
        (
            flow.dscp != Dscp::DEFAULT,
            &["dscp"][..],
            "packets between two hosts have the default codepoint; leave it out",
        ),
        (coupling.is_some(), &["coupling"], "flows between two hosts are not coupled; leave it out"),
        (
            back && !streams.iter().all(is_steady),
            &["stream"],
            "a stream that the receiver sends stays as it is at the start",
        ),
        (*media_use != there.media_use, &["use"], "media between two hosts are those of a conversation; leave it out"),
        (*packet_size != there.packet_size, &["packet_size"], DEFAULT),
        (*rtcp_interval != there.rtcp_interval, &["rtcp_interval"], DEFAULT),
        (*feedback_interval != there.feedback_interval, &["feedback_interval"], DEFAULT),
        (back && *pacer_limit != there.pacer_limit, &["pacer_limit"], DEFAULT),
        (!changed.is_empty(), changed, limits),
    ]
    .into_iter()
    .find_map(|(differs, keys, help)| differs.then_some((keys, help)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_live::hosts::message::SessionId;
    use paceline_live::hosts::session_flow::Flows;

    #[test]
    fn shipped_scenarios_become_terms_or_are_refused_with_a_hint() {
        let registry = Registry::standard();
        let (mut loaded, mut refused) = (0, 0);
        for id in Catalogue.ids() {
            match load(id, Changes::default(), (1, false), &registry) {
                Ok(Planned { terms, scenario, .. }) => {
                    assert_eq!(Terms::from_bytes(&terms.to_bytes()).as_ref(), Some(&terms), "{id}");
                    let (session, plan) = (SessionId([1; 8]), &scenario.plan);
                    let back = host_session::back_plans(&terms, &registry).unwrap();
                    let here = Flows::build(session, &terms, [&plan.flows, &back], [false; 2], &registry).unwrap();
                    let back = match terms.count(true) {
                        0 => Vec::new(),
                        _ => host_session::scenario(&terms, true, &registry).unwrap().0.plan.flows,
                    };
                    let there = host_session::receiver_flows(session, &terms, &back, &registry, false).unwrap();
                    for flows in [here, there] {
                        assert_eq!(
                            (flows.forward.len(), flows.back.len()),
                            (plan.flows.len(), terms.count(true)),
                            "{id}"
                        );
                    }
                    assert_eq!(plan.id.as_str(), id);
                    loaded += 1;
                }
                Err(error) => {
                    assert!(error.help().is_some_and(|help| !help.to_string().is_empty()), "{id}: {error}");
                    assert!(error.labels().is_some_and(|labels| labels.count() == 1), "{id}: {error}");
                    refused += 1;
                }
            }
        }
        assert!(loaded > 80 && refused > 40, "{loaded} loaded, {refused} refused");
    }

    #[test]
    fn bounds_of_all_flows_are_known_only_if_this_host_sends_all() {
        let registry = Registry::standard();
        let flow = |id: &str, more: &str| format!("[[flow]]\nid = \"{id}\"\ncontroller = \"googcc\"\n{more}\n");
        let bound = |metric: &str| format!("[[assert]]\nid = \"x\"\nmetric = \"{metric}\"\nbounds = [0, 9]\n");
        let (two, back) = (flow("a", "") + &flow("b", ""), flow("c", "direction = \"reverse\""));
        let tcp = "[[flow]]\nid = \"d\"\nkind = \"tcp\"\n".to_owned();
        for (flows, metric, more, known) in [
            (two.clone(), "media_jain", "", true),
            (two.clone(), "jain", "", true),
            (two.clone() + &tcp, "media_jain", "", true),
            (two.clone() + &tcp, "jain", "", false),
            (two.clone() + &back, "media_jain", "", false),
            (two.clone() + &back, "rate_cv", "flow = \"b\"", true),
            (two.clone() + &back, "rate_cv", "flow = \"c\"", false),
            (two.clone(), "rate_cv", "flow = \"a\"\nrelative_to = { flow = \"b\" }", true),
            (two.clone() + &back, "rate_cv", "flow = \"a\"\nrelative_to = { flow = \"c\" }", false),
            (two.clone(), "target_bps", "each = \"2 s\"", true),
            (two.clone(), "target_bps", "each = \"change\"", false),
            (two.clone(), "queue_p95_ms", "", true),
            (two.clone(), "freeze_ratio", "", true),
            (two.clone(), "freeze_ratio", "flow = \"b\"\nstream = \"video\"", true),
            (two.clone(), "frame_delay_p95_ms", "flow = \"b\"", false),
            (two.clone() + &back, "freeze_ratio", "", false),
            (two.clone(), "queue_p95_ms", "[measure]\nqueue = \"one-way\"", false),
            (two.clone(), "queue_p95_ms", "[measure]\nqueue = \"rtcp\"", false),
            (two.clone(), "share", "flow = \"a\"", true),
            (two.clone() + &tcp, "share", "flow = \"a\"", false),
            (two.clone() + &back, "share", "flow = \"a\"", false),
            (two, "utilization", "", false),
        ] {
            let text = format!(
                "id = \"x\"\ntitle = \"\"\nduration = \"9 s\"\n[path]\nrtt = \"9 ms\"\n{flows}{}{more}\n",
                bound(metric)
            );
            let origin = Origin::from_text("x.toml", text);
            let registries = paceline_lab::registries(&registry);
            let scenario = paceline_scenario::load(&origin, &Changes::default(), registries).unwrap();
            let loaded = Loaded { origin, changes: Changes::default(), registry: &registry, scenario };
            let terms = loaded.terms(1, loaded.has_tcp().unwrap()).unwrap();
            let mut session = host_session::received_scenario(&terms, false, &registry).unwrap();
            let unmeasured = loaded.describe(&mut session, terms.tcp);
            assert_eq!(
                (session.asserts.len(), unmeasured.len()),
                if known { (1, 0) } else { (0, 1) },
                "{metric} {more}"
            );
        }
    }
}
