// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of a plan as the terms of a session, and the plans from which both ends build the flows of terms.
//!
//! The real path, hosts and clocks take the place of those of the plan. Anything else that a session cannot have is an error.

use crate::hosts::terms::{FLOWS_MAX, FlowTerms, StreamTerms, Terms};
use crate::hosts::unsuitable::{Unsuitable, check_flow, check_tcp, keys_and_help, unsuitable};
use paceline::{FecScheme, Protection, Registry, ResendRule};
use paceline_netsim::flow::PACKET_SIZE_DEFAULT;
use paceline_netsim::flow::source::{Configured, SOURCES as ALL_SOURCES, SourceSetup};
use paceline_netsim::link::queue::QueueLimit;
use paceline_netsim::link::{HopPlan, Schedule};
use paceline_netsim::parameter::{Parameter, ParameterKind, Value, Values};
use paceline_netsim::plan::{
    ClockPlan, ControllerPlan, Direction, FlowChange, FlowKind, FlowPlan, MediaPlan, MediaUse, Plan, SourcePlan,
    StreamPlan, Transport,
};
use paceline_netsim::sim;
use paceline_units::{DataSize, Dscp, RandomStreams, Rate, Time, TimeDelta};
use std::collections::{BTreeMap, BTreeSet};

/// Sources of video that need no files.
pub const SOURCES: [&str; 3] = ["encoder", "ideal", "screen"];

/// The source of audio.
const AUDIO: &str = "audio";

/// Longest pause of all flows of a sender: an end that hears nothing for twice as long leaves the session.
const PAUSE_MAX: TimeDelta = TimeDelta::from_secs(5);

/// Returns the media flows of one direction, with their numbers.
fn media_flows(plan: &Plan, back: bool) -> impl Iterator<Item = (usize, &FlowPlan, &MediaPlan)> {
    let flows = plan.flows.iter().enumerate();
    flows
        .filter(move |(_, flow)| (flow.direction == Direction::Reverse) == back)
        .filter_map(|(index, flow)| Some((index, flow, flow.media()?)))
}

/// Returns the numbers of the flows that the sender of a session sends.
pub fn sent_flows(plan: &Plan) -> impl Iterator<Item = usize> {
    media_flows(plan, false).map(|(index, ..)| index)
}

/// Returns the hops of both ways of a path of which nothing is known.
fn unknown_path() -> Vec<HopPlan> {
    ["forward", "reverse"].map(|id| HopPlan::new(id, QueueLimit::DrainTime(TimeDelta::from_millis(300)))).to_vec()
}

/// Returns the plan of the flows that the sender of a session sends, over a path of which nothing is known.
pub fn sent_plan(plan: &Plan, seed: u64) -> Plan {
    let flow = |(_, flow, _): (usize, &FlowPlan, &MediaPlan)| FlowPlan {
        group: None,
        start: start(flow, seed),
        start_spread: TimeDelta::ZERO,
        route: vec![0],
        return_route: vec![1],
        access_delay: TimeDelta::ZERO,
        host: None,
        ..flow.clone()
    };
    let flows = media_flows(plan, false).map(flow).collect();
    Plan { hops: unknown_path(), forward_hops: 1, bottleneck: 0, flows, ..plan.clone() }
}

fn milliseconds(time: Time) -> u64 {
    ((time - Time::ZERO).as_nanos() / 1_000_000) as u64
}

/// Returns the start of a flow, with the resolution of terms.
fn start(flow: &FlowPlan, seed: u64) -> Time {
    Time::from_millis(milliseconds(sim::start_time(flow, &RandomStreams::new(seed))) as i64)
}

impl Terms {
    /// Returns the terms of a session with the flows of a plan. `tcp` adds a TCP flow if the plan has none.
    ///
    /// # Errors
    /// The plan has something that a session cannot have.
    pub fn of_plan(plan: &Plan, seed: u64, tcp: bool) -> Result<Self, Unsuitable> {
        let tcp = check_tcp(plan)? || tcp;
        let end = Time::ZERO + plan.duration;
        let mut flows: Vec<FlowTerms> = Vec::new();
        for back in [false, true] {
            for (index, flow, media) in media_flows(plan, back) {
                check_flow(index, flow, media, back)?;
                let streams = media.streams.iter().map(|stream| stream_terms(index, flow, stream, back));
                let mut terms = FlowTerms {
                    controller: media.controller.name.clone(),
                    config: media.controller.config.iter().cloned().collect(),
                    streams: streams.collect::<Result<_, _>>()?,
                    retransmit: media.retransmit,
                    fec: name_of(&FecScheme::NAMES, media.protection.fec),
                    resend_budget: name_of(&ResendRule::NAMES, media.protection.resend),
                    start_bps: media.start_rate.as_bps(),
                    min_bps: media.min_rate.as_bps(),
                    start_ms: milliseconds(start(flow, seed)),
                    stop_ms: Some(flow.stop).filter(|stop| *stop < end).map(milliseconds),
                    count: 1,
                    back,
                };
                terms.start_bps = terms.start_bps.min(terms.max().as_bps());
                if let Some((rule, key)) = terms.problem() {
                    let (keys, help) = keys_and_help(key);
                    return unsuitable(index, keys, format!("`{}`: {rule}", flow.id), help);
                }
                match flows.last_mut() {
                    Some(last) if last.count < FLOWS_MAX && FlowTerms { count: 1, ..last.clone() } == terms => {
                        last.count += 1
                    }
                    _ => flows.push(terms),
                }
            }
        }
        let terms = Self { flows, duration_ms: milliseconds(end), seed, tcp };
        if let Some((rule, key)) = terms.problem() {
            let largest = || plan.flows.iter().enumerate().max_by_key(|(_, flow)| flow.max_rate());
            let flow = match key {
                "duration" => None,
                "direction" => Some(0),
                "count" | "stream" => plan.flows.iter().position(|flow| flow.group.is_some()).or(Some(0)),
                "encoder.max" => largest().map(|(index, _)| index),
                _ => plan.flows.len().checked_sub(1),
            };
            let (keys, help) = keys_and_help(key);
            return unsuitable(0, keys, rule.to_owned(), help).map_err(|error| Unsuitable { flow, ..error });
        }
        check_pauses(plan, seed)?;
        Ok(terms)
    }

    /// Returns the plans of the flows of one direction, for the end that sends them or for the other one, which needs no more of a stream than
    /// its kind and its highest rate. `None` if that end lacks a controller or a source, or if a source does not accept its parameters.
    pub fn plans(&self, back: bool, sends: bool, registry: &Registry) -> Option<Vec<FlowPlan>> {
        let each = self.direction(back).flat_map(|flow| std::iter::repeat_n(flow, flow.count.into()));
        let plan = |(index, flow): (usize, &FlowTerms)| {
            let id = if self.count(back) == 1 { "media".to_owned() } else { format!("media-{}", index + 1) };
            let stop = flow.stop_ms.unwrap_or(self.duration_ms).min(self.duration_ms);
            Some(FlowPlan {
                id,
                group: None,
                direction: Direction::Forward,
                start: Time::from_millis(flow.start_ms as i64),
                start_spread: TimeDelta::ZERO,
                stop: Time::from_millis(stop as i64),
                route: vec![0],
                return_route: vec![1],
                access_delay: TimeDelta::ZERO,
                host: None,
                dscp: Dscp::DEFAULT,
                kind: FlowKind::Media(flow.media(sends, registry)?),
            })
        };
        each.enumerate().map(plan).collect()
    }

    /// Returns the plan of flows that an end sends, over a path of which nothing is known.
    pub fn own_plan(&self, flows: Vec<FlowPlan>) -> Plan {
        Plan {
            id: "hosts".to_owned(),
            title: "Media between two hosts".to_owned(),
            source: String::new(),
            case: Default::default(),
            duration: self.duration(),
            hops: unknown_path(),
            forward_hops: 1,
            bottleneck: 0,
            flows,
        }
    }
}

impl FlowTerms {
    fn media(&self, sends: bool, registry: &Registry) -> Option<MediaPlan> {
        let config = self.config.iter().map(|(name, number)| (name.clone(), *number)).collect();
        let streams = self.streams.iter().enumerate().map(|(index, stream)| stream.plan(index, sends));
        Some(MediaPlan {
            media_use: MediaUse::default(),
            is_cross_traffic: false,
            controller: ControllerPlan::new(registry.get(&self.controller)?, config),
            coupling: None,
            start_rate: Rate::from_bps(self.start_bps),
            min_rate: Rate::from_bps(self.min_bps),
            clock: ClockPlan { offset: None, drift_ppb: 0 },
            streams: streams.collect::<Option<_>>()?,
            packet_size: PACKET_SIZE_DEFAULT,
            rtcp_interval: MediaPlan::RTCP_INTERVAL,
            feedback_interval: None,
            pacer_limit: MediaPlan::PACER_LIMIT,
            retransmit: self.retransmit,
            protection: Protection {
                fec: named(&FecScheme::NAMES, self.fec.as_deref())?,
                resend: named(&ResendRule::NAMES, self.resend_budget.as_deref())?,
            },
            transport: Transport::Udp,
            changes: Vec::new(),
        })
    }
}

impl StreamTerms {
    fn plan(&self, index: usize, sends: bool) -> Option<StreamPlan> {
        let max = Value::Rate(Rate::from_bps(self.max_bps));
        let mut given: Vec<(&str, Value)> = vec![(rate_key(&self.source), max)];
        let name = match &*self.source {
            source if sends => Some(source).filter(|source| needs_no_files(source))?,
            AUDIO => AUDIO,
            _ => {
                given = vec![("min", max), ("max", max)];
                "ideal"
            }
        };
        let entry = ALL_SOURCES.iter().find(|entry| entry.name == name)?;
        for (name, number) in self.config.iter().filter(|_| sends) {
            let is_it = |parameter: &&Parameter| parameter.name == name && name != rate_key(&self.source);
            let parameter = entry.parameters.iter().find(is_it)?;
            given.push((parameter.name, value(parameter.kind, *number)?));
        }
        let values = Values::new(entry.parameters, &given);
        let read_folder = |_: &str| Err("the other host has no files".to_owned());
        let mut setup = SourceSetup { values: &values, read_folder: &read_folder, notes: &mut Vec::new() };
        let Configured { config, lines } = (entry.configure)(&mut setup).ok()?;
        Some(StreamPlan {
            id: format!("stream-{}", index + 1),
            kind: entry.kind,
            priority: self.priority,
            source: SourcePlan { entry, values, config, lines },
            max: Schedule::constant(Rate::MAX),
            muted: Schedule::constant(false),
            stop: Time::MAX,
            suspends: self.suspends,
        })
    }
}

/// Returns the terms of a stream. Only the host that sends it needs the parameters and the files of its source.
fn stream_terms(index: usize, flow: &FlowPlan, stream: &StreamPlan, back: bool) -> Result<StreamTerms, Unsuitable> {
    let (id, source, name) = (&flow.id, &stream.source, stream.source.entry.name);
    let terms = StreamTerms::new(name, source.range().1.as_bps());
    if !back {
        return Ok(terms);
    }
    if !needs_no_files(name) {
        let message = format!("the source `{name}` of `{id}` does not work at the other host");
        let help = format!("the receiver sends `{id}`: use a source that needs no files, such as encoder");
        return unsuitable(index, &["encoder.source", "encoder", "stream"], message, help);
    }
    let mut config = BTreeMap::new();
    for parameter in source.entry.parameters.iter().filter(|parameter| parameter.name != rate_key(name)) {
        let Some(given) = source.values.get(parameter.name).filter(|given| Some(*given) != parameter.default()) else {
            continue;
        };
        let Some(number) = number(given).filter(|number| value(parameter.kind, *number).is_some()) else {
            let message = format!("`{}` of `{id}` is too large for the other host", parameter.name);
            let help = "a receiver accepts rates up to 10 Gbit/s, numbers up to 1000 and whole ones up to 10000";
            return unsuitable(index, &[&format!("encoder.{}", parameter.name)], message, help);
        };
        config.insert(parameter.name.to_owned(), number);
    }
    Ok(StreamTerms { config, priority: stream.priority, suspends: stream.suspends, ..terms })
}

/// Returns whether this source needs no files, which the other host would not have.
fn needs_no_files(source: &str) -> bool {
    source == AUDIO || SOURCES.contains(&source)
}

/// Returns the parameter of a source that is its highest rate.
fn rate_key(source: &str) -> &'static str {
    if source == AUDIO { "rate" } else { "max" }
}

/// Returns the number of a parameter's value in terms; `None` if terms cannot have it.
fn number(value: Value) -> Option<f64> {
    match value {
        Value::Time(time) => Some(time.as_secs_f64()),
        Value::Number(number) => Some(number),
        Value::Count(count) => Some(count.into()),
        Value::Size(size) => Some(size.as_bytes() as f64),
        Value::Rate(rate) => Some(rate.as_bps_f64()),
        Value::Fraction(_) | Value::Flag(_) | Value::Level(_) => None,
    }
}

/// Returns the value of a parameter's number; `None` if it is outside the bounds between two hosts, or text, which could name a file. The source
/// checks it further.
fn value(kind: ParameterKind, number: f64) -> Option<Value> {
    let up_to = |most: f64| (0.0..=most).contains(&number).then_some(number);
    Some(match kind {
        ParameterKind::Time(..) => Value::Time(TimeDelta::from_secs_f64(up_to(86_400.0)?)),
        ParameterKind::Number(..) => Value::Number(up_to(1000.0)?),
        ParameterKind::Count(..) => Value::Count(up_to(10_000.0)?.round() as u32),
        ParameterKind::Size(..) => Value::Size(DataSize::from_bytes(up_to(100e6)?.round() as u64)),
        ParameterKind::Rate => Value::Rate(Rate::from_bps_f64(up_to(10e9)?)),
        ParameterKind::Fraction | ParameterKind::Text | ParameterKind::Flag | ParameterKind::Level => return None,
    })
}

/// Returns the name of a value that is not the default.
fn name_of<T: PartialEq + Default>(names: &[(&str, T)], value: T) -> Option<String> {
    let name = names.iter().find(|(_, other)| *other == value && value != T::default());
    name.map(|(name, _)| (*name).to_owned())
}

/// Returns the value of a name, or the default without one; `None` if the name is not known.
fn named<T: Copy + Default>(names: &[(&str, T)], name: Option<&str>) -> Option<T> {
    let Some(name) = name else { return Some(T::default()) };
    names.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
}

/// Checks that the sender is never silent for so long that an end would leave the session.
fn check_pauses(plan: &Plan, seed: u64) -> Result<(), Unsuitable> {
    let (sent, end) = (sent_plan(plan, seed).flows, Time::ZERO + plan.duration);
    let flows = || sent.iter().filter_map(|flow| Some((flow, flow.media()?)));
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
            let message = format!("this host sends nothing for more than {PAUSE_MAX} from {since} on");
            let help = "both ends would take it for a failure; let another stream send, such as audio";
            let first = sent_flows(plan).next().expect("a session has a flow of its sender");
            return unsuitable(first, &["stream", "available"], message, help);
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::flow_number::Ssrcs;
    use crate::hosts::message::SessionId;
    use crate::hosts::send_side::SendSide;
    use crate::hosts::session_flow::Flows;
    use crate::hosts::terms::RATE_MAX;
    use crate::hosts::terms::tests::{flow, terms as any_terms};
    use paceline::MediaKind;

    const ID: SessionId = SessionId([1; 8]);

    fn terms(controller: &str, source: &str) -> Terms {
        let streams = vec![StreamTerms::new(source, 1_234_567)];
        let flow = FlowTerms { controller: controller.to_owned(), streams, count: 2, ..flow() };
        let back = FlowTerms { back: true, count: 1, ..flow.clone() };
        Terms { flows: vec![flow, back], duration_ms: 1500, ..any_terms() }
    }

    #[test]
    fn every_source_and_controller_makes_a_flow() {
        let registry = Registry::standard();
        let all = registry.iter().map(|entry| terms(entry.name(), SOURCES[0]));
        for terms in all.chain(SOURCES.into_iter().chain([AUDIO]).map(|source| terms("fixed", source))) {
            for is_sender in [true, false] {
                let own = terms.plans(!is_sender, true, &registry).unwrap();
                let built = Flows::build(ID, &terms, is_sender, (&own, false), &registry).unwrap();
                let counts = (built.sent.len(), built.received.len());
                assert_eq!(counts, if is_sender { (2, 1) } else { (1, 2) }, "{terms:?}");
                let plans = [own, terms.plans(is_sender, false, &registry).unwrap()];
                for media in plans.iter().map(|plans| plans[0].media().unwrap()) {
                    assert_eq!(media.streams[0].source.range().1, terms.flows[0].max());
                    assert_eq!(media.streams[0].kind == MediaKind::Audio, terms.flows[0].streams[0].source == AUDIO);
                }
            }
        }
    }

    /// Builds flows from terms of a hostile sender and lets them send for a while.
    #[test]
    fn terms_with_any_numbers_are_refused_or_make_flows_that_send() {
        const NUMBERS: [f64; 13] =
            [0.0, -1.0, 1e-300, 1e-9, 0.1, 0.5, 1.0, 30.0, 1000.0, 10_000.0, 1e8, 1e10, f64::MAX];
        const RATES: [u64; 4] = [1, 30_000, 2_000_000, 10_000_000_000];
        let registry = Registry::standard();
        let controllers: Vec<_> = registry.iter().collect();
        let mut random = RandomStreams::new(1).stream("terms");
        let mut draw = |most: usize| (random.unit() * most as f64) as usize % most;
        let (mut built, mut refused, mut sent) = (0, 0, 0);
        for _ in 0..500 {
            let (entry, source) = (controllers[draw(controllers.len())], SOURCES[draw(SOURCES.len())]);
            let mut terms = terms(entry.name(), source);
            let parameters = ALL_SOURCES.iter().find(|entry| entry.name == source).unwrap().parameters;
            // The flow that the receiver sends.
            let flow = &mut terms.flows[1];
            for _ in 0..draw(4) {
                let name = parameters[draw(parameters.len())].name;
                flow.streams[0].config.insert(name.to_owned(), NUMBERS[draw(NUMBERS.len())]);
            }
            if draw(3) == 0 {
                let more = [AUDIO, SOURCES[0], "unknown"][draw(8) % 3 * usize::from(draw(2) == 0)];
                let priority = [1.0, 1e-9, 1000.0][draw(3)];
                flow.streams.push(StreamTerms { priority, suspends: draw(2) == 0, ..StreamTerms::new(more, 50_000) });
            }
            let fields = entry.fields();
            for _ in 0..draw(3).min(fields.len()) {
                flow.config.insert(fields[draw(fields.len())].name.to_owned(), NUMBERS[draw(NUMBERS.len())]);
            }
            let mut rates = [0; 3].map(|_| RATES[draw(RATES.len())]);
            rates.sort_unstable();
            [flow.min_bps, flow.start_bps, flow.streams[0].max_bps] = rates;
            // Both streams together are within the limit.
            let others: u64 = flow.streams[1..].iter().map(|stream| stream.max_bps).sum();
            flow.streams[0].max_bps = flow.streams[0].max_bps.min(RATE_MAX - others);
            flow.count = 1;
            if draw(2) == 0 {
                flow.fec = Some("ulpfec".to_owned());
            }
            assert_eq!(terms.problem(), None);
            let own = terms.plans(true, true, &registry);
            let flows = own.and_then(|own| Flows::build(ID, &terms, false, (&own, false), &registry).ok());
            let Some(Flows { sent: back, received }) = flows else {
                refused += 1;
                continue;
            };
            built += 1;
            let mut side = SendSide::new(
                Ssrcs::of_session(ID, &terms),
                back,
                received.len(),
                Time::ZERO,
                terms.duration(),
                TimeDelta::ZERO,
            );
            for _ in 0..50 {
                let Some(due) = side.poll_timeout() else { break };
                side.handle_timeout(due, &mut |_, _| sent += 1);
            }
        }
        assert!(built > 40 && refused > 40 && sent > 1000, "{built} built, {refused} refused, {sent} sent");
    }

    #[test]
    fn an_unknown_controller_of_either_direction_is_refused() {
        let registry = Registry::standard();
        for (unknown, is_refused) in [(None, false), (Some(0), true), (Some(1), true)] {
            let mut terms = terms("googcc", SOURCES[0]);
            unknown.iter().for_each(|flow: &usize| terms.flows[*flow].controller = "unknown".to_owned());
            let own = terms.plans(true, true, &registry);
            let built = own.and_then(|own| Flows::build(ID, &terms, false, (&own, false), &registry).ok());
            assert_eq!(built.is_none(), is_refused, "{unknown:?}");
        }
    }

    #[test]
    fn parameters_of_terms_are_those_of_the_flow_or_refused() {
        let registry = Registry::standard();
        let with = |controller: &str, name: &str, number: f64| {
            let mut terms = terms("googcc", "encoder");
            let flow = &mut terms.flows[0];
            let numbers = if controller.is_empty() { &mut flow.streams[0].config } else { &mut flow.config };
            numbers.insert(name.to_owned(), number);
            flow.controller = if controller.is_empty() { "googcc" } else { controller }.to_owned();
            let plans = terms.plans(false, true, &registry)?;
            Flows::build(ID, &terms, true, (&plans, false), &registry).ok()?;
            Some(plans)
        };
        for (name, value) in [("fps", 12.5), ("min", 100_001.0), ("reaction_delay", 0.123_456_789), ("key_frames", 9.0)]
        {
            let plans = with("", name, value).unwrap();
            let given = plans[1].media().unwrap().streams[0].source.values.get(name);
            assert_eq!(given.and_then(number), Some(value), "{name}");
        }
        let (controller, field) =
            registry.iter().find_map(|entry| Some((entry.name(), entry.fields().into_iter().next()?))).unwrap();
        let plans = with(controller, field.name, field.default).unwrap();
        let config = &plans[0].media().unwrap().controller.config;
        assert_eq!(*config, [(field.name.to_owned(), field.default)]);
        for (controller, name, number) in [
            ("", "max", 1e6),
            ("", "frames", 1.0),
            ("", "resolution", 720.0),
            ("", "source", 1.0),
            ("", "fps", -1.0),
            ("", "fps", 1e4),
            ("", "key_ratio", 1e9),
            ("", "key_frames", 1e9),
            ("", "min", 1e12),
            ("", "a.b", 1.0),
            (controller, field.name, 1e300),
            (controller, "a.b", 1.0),
        ] {
            assert!(with(controller, name, number).is_none(), "{controller} {name} {number}");
        }
    }
}
