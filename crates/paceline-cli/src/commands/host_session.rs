//! What `send` and `recv` share: from the terms of a session to the flows that both ends build.

use miette::{IntoDiagnostic, Result, miette};
use paceline::Registry;
use paceline_lab::registries;
use paceline_live::hosts::message::SessionId;
use paceline_live::hosts::seal::{SECRET_MIN, Secret};
use paceline_live::hosts::session_flow::Flows;
use paceline_live::hosts::terms::{FlowTerms, StreamTerms, Terms};
use paceline_netsim::parameter::{ParameterKind, Value};
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::source;
use paceline_scenario::{Changes, Origin, Scenario};
use paceline_units::{Rate, TimeDelta};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The UDP port, if no other is given. It is below the range from which systems choose ports of clients.
pub const PORT: u16 = 9777;

/// Sources of video that need no files.
pub const SOURCES: [&str; 3] = ["encoder", "ideal", "screen"];

/// The side of a flow that an end has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Sends,
    /// It needs no more of a stream than its kind and its highest rate.
    Receives,
}

/// The scenario of the flows of one direction, over a path of which nothing is known; `None` if a parameter of a source is not
/// acceptable.
fn scenario_text(terms: &Terms, back: bool, role: Role) -> Option<String> {
    let mut text = format!(
        "id = \"hosts\"\ntitle = \"Media between two hosts\"\nduration = \"{} ms\"\n[path.forward]\n[path.reverse]\n",
        terms.duration_ms
    );
    let each = terms.direction(back).flat_map(|flow| (0..flow.count).map(move |_| flow));
    for (index, flow) in each.enumerate() {
        let id = if terms.count(back) == 1 { "media".to_owned() } else { format!("media-{}", index + 1) };
        text += &flow_text(&id, flow, role)?;
    }
    Some(text)
}

fn flow_text(id: &str, terms: &FlowTerms, role: Role) -> Option<String> {
    let rate = |bps| Rate::from_bps(bps).to_string();
    let FlowTerms { controller, config, streams, start_bps, min_bps, .. } = terms;
    let FlowTerms { retransmit, fec, resend_budget, start_ms, stop_ms, count: _, back: _, .. } = terms;
    let named = |key: &str, name: &Option<String>| name.as_ref().map(|name| format!("{key} = \"{name}\""));
    let protection: Vec<String> = named("fec", fec).into_iter().chain(named("resend_budget", resend_budget)).collect();
    let stop = stop_ms.map_or(String::new(), |ms| format!("stop = \"{ms} ms\"\n"));
    let config: Vec<String> = config.iter().map(|(name, number)| format!("\"{name}\" = {number:?}")).collect();
    let mut text = format!(
        r#"[[flow]]
id = "{id}"
controller = "{controller}"
config = {{ {} }}
start = "{start_ms} ms"
{stop}start_rate = "{}"
min_rate = "{}"
retransmit = {retransmit}
protection = {{ {} }}
"#,
        config.join(", "),
        rate(*start_bps),
        rate(*min_bps),
        protection.join(", "),
    );
    for (number, stream) in streams.iter().enumerate() {
        let StreamTerms { priority, suspends, .. } = stream;
        let keys = match role {
            Role::Sends => {
                format!("priority = {priority:?}\nsuspend = {suspends}\nencoder = {{ {} }}", source_table(stream)?)
            }
            Role::Receives => format!("encoder = {{ {} }}", kind_table(stream)),
        };
        text += &format!("[[flow.stream]]\nid = \"stream-{}\"\n{keys}\n", number + 1);
    }
    Some(text)
}

/// Returns the source of a stream that this end sends, without braces; `None` if it needs files or has other parameters.
fn source_table(stream: &StreamTerms) -> Option<String> {
    let StreamTerms { source, config, max_bps, .. } = stream;
    let entry = source::SOURCES.iter().find(|entry| entry.name == source && needs_no_files(source))?;
    let parameter = |(name, number): (&String, &f64)| {
        let parameter = entry.parameters.iter().find(|parameter| parameter.name == name)?;
        Some(format!(", {name} = {}", source_text(parameter.kind, *number)?))
    };
    let parameters = config.iter().map(parameter).collect::<Option<String>>()?;
    Some(format!("source = \"{source}\", {} = \"{}\"{parameters}", rate_key(source), Rate::from_bps(*max_bps)))
}

/// Returns a source of the kind and the highest rate of a stream that this end receives.
fn kind_table(stream: &StreamTerms) -> String {
    let max = Rate::from_bps(stream.max_bps);
    if stream.source == AUDIO {
        format!("source = \"{AUDIO}\", rate = \"{max}\"")
    } else {
        format!("source = \"ideal\", min = \"{max}\", max = \"{max}\"")
    }
}

/// The source of audio.
const AUDIO: &str = "audio";

/// Returns whether this source needs no files, which the other host would not have.
pub fn needs_no_files(source: &str) -> bool {
    source == AUDIO || SOURCES.contains(&source)
}

/// Returns the parameter of a source that is its highest rate.
pub fn rate_key(source: &str) -> &'static str {
    if source == AUDIO { "rate" } else { "max" }
}

/// Returns the number of a parameter's value in terms; `None` if terms cannot have it.
pub fn source_number(value: Value) -> Option<f64> {
    match value {
        Value::Time(time) => Some(time.as_secs_f64()),
        Value::Number(number) => Some(number),
        Value::Count(count) => Some(count.into()),
        Value::Size(size) => Some(size.as_bytes() as f64),
        Value::Rate(rate) => Some(rate.as_bps_f64()),
        Value::Fraction(_) | Value::Flag(_) | Value::Level(_) => None,
    }
}

/// Returns the text of a parameter's number in scenarios; `None` if it is outside the bounds between two hosts, or text, which could name a
/// file. The scenario checks it further.
pub fn source_text(kind: ParameterKind, number: f64) -> Option<String> {
    let most = match kind {
        ParameterKind::Time(..) => 86_400.0,
        ParameterKind::Number(..) => 1000.0,
        ParameterKind::Count(..) => 10_000.0,
        ParameterKind::Size(..) => 100e6,
        ParameterKind::Rate => 10e9,
        ParameterKind::Fraction | ParameterKind::Text | ParameterKind::Flag | ParameterKind::Level => return None,
    };
    if !(0.0..=most).contains(&number) {
        return None;
    }
    Some(match kind {
        ParameterKind::Time(..) => format!("\"{}\"", TimeDelta::from_secs_f64(number)),
        ParameterKind::Size(..) => format!("\"{number:.0} B\""),
        ParameterKind::Rate => format!("\"{}\"", Rate::from_bps_f64(number)),
        ParameterKind::Count(..) => format!("{number:.0}"),
        _ => format!("{number:?}"),
    })
}

/// Loads the scenario of the flows of one direction that this end sends; its text is in the second place.
///
/// # Errors
/// The controller or the source does not accept the terms.
pub fn scenario(terms: &Terms, back: bool, registry: &Registry) -> Result<(Scenario, String)> {
    load(terms, back, Role::Sends, registry)
}

/// Loads the scenario of the flows of one direction that this end receives.
///
/// # Errors
/// The controller does not accept the terms.
pub fn received_scenario(terms: &Terms, back: bool, registry: &Registry) -> Result<Scenario> {
    load(terms, back, Role::Receives, registry).map(|(scenario, _)| scenario)
}

/// Loads the scenario of the flows that the receiver sends, and its text; `None` if there are none.
///
/// # Errors
/// The receiver does not have a controller, or a controller or a source does not accept the terms.
pub fn receiver_scenario(terms: &Terms, registry: &Registry) -> Result<Option<(Scenario, String)>> {
    if terms.flows.iter().any(|flow| registry.get(&flow.controller).is_none()) {
        return Err(miette!("a controller is not known"));
    }
    (terms.count(true) > 0).then(|| scenario(terms, true, registry)).transpose()
}

fn load(terms: &Terms, back: bool, role: Role, registry: &Registry) -> Result<(Scenario, String)> {
    let text = scenario_text(terms, back, role).ok_or_else(|| miette!("a source does not accept its parameters"))?;
    let origin = Origin::from_text("hosts", text);
    let scenario = paceline_scenario::load(&origin, &Changes::default(), registries(registry))?;
    Ok((scenario, origin.text))
}

/// Returns the plans of the flows that the sender of a session receives.
///
/// # Errors
/// A controller does not accept the terms.
pub fn back_plans(terms: &Terms, registry: &Registry) -> Result<Vec<FlowPlan>> {
    match terms.count(true) {
        0 => Ok(Vec::new()),
        _ => Ok(received_scenario(terms, true, registry)?.plan.flows),
    }
}

/// Builds the flows that the receiver of a session receives, and those that it sends, with these plans.
///
/// # Errors
/// The controller or the source cannot be built.
pub fn receiver_flows(
    id: SessionId,
    terms: &Terms,
    plans: &[FlowPlan],
    registry: &Registry,
    signals: bool,
) -> Result<Flows> {
    let forward = received_scenario(terms, false, registry)?.plan.flows;
    Flows::build(id, terms, [&forward, plans], [false, signals], registry).into_diagnostic()
}

/// The environment variable with the secret, if no file is given.
const SECRET: &str = "PACELINE_SECRET";

/// Returns the secret of the file, or of the environment variable; `None` if there is neither. Arguments would show in lists of
/// processes.
///
/// # Errors
/// The file cannot be read, or the secret is too short.
pub fn secret(file: Option<&Path>) -> Result<Option<Secret>> {
    let (text, place) = match file {
        Some(file) => {
            let text = std::fs::read(file).map_err(|error| miette!("cannot read {}: {error}", file.display()))?;
            (text, file.display().to_string())
        }
        None => match std::env::var_os(SECRET) {
            Some(text) => (text.into_encoded_bytes(), SECRET.to_owned()),
            None => return Ok(None),
        },
    };
    let help = "write a random one with: head -c 32 /dev/urandom | base64 > secret";
    let secret = Secret::new(&text);
    secret.map(Some).ok_or_else(|| miette!(help = help, "the secret in {place} is shorter than {SECRET_MIN} bytes"))
}

/// Returns a flag that SIGINT and SIGTERM set.
pub fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::MediaKind;
    use paceline_live::hosts::flow_number::Ssrcs;
    use paceline_live::hosts::send_side::SendSide;
    use paceline_live::hosts::terms::RATE_MAX;
    use paceline_units::{RandomStreams, Time};
    use std::collections::BTreeMap;

    fn terms(controller: &str, source: &str) -> Terms {
        let flow = FlowTerms {
            controller: controller.to_owned(),
            config: BTreeMap::new(),
            streams: vec![StreamTerms::new(source, 1_234_567)],
            retransmit: true,
            fec: None,
            resend_budget: None,
            start_bps: 300_000,
            min_bps: 30_000,
            start_ms: 0,
            stop_ms: None,
            count: 2,
            back: false,
        };
        let back = FlowTerms { back: true, count: 1, ..flow.clone() };
        Terms { flows: vec![flow, back], duration_ms: 1500, seed: 3, tcp: false }
    }

    #[test]
    fn every_source_and_controller_makes_a_flow() {
        let registry = Registry::standard();
        let all = registry.iter().map(|entry| terms(entry.name(), SOURCES[0]));
        for terms in all.chain(SOURCES.into_iter().chain([AUDIO]).map(|source| terms("fixed", source))) {
            let (scenario, _) = scenario(&terms, false, &registry).unwrap();
            let id = SessionId([1; 8]);
            let back = back_plans(&terms, &registry).unwrap();
            let sender = Flows::build(id, &terms, [&scenario.plan.flows, &back], [false; 2], &registry).unwrap();
            let (there, _) = super::scenario(&terms, true, &registry).unwrap();
            let receiver = receiver_flows(id, &terms, &there.plan.flows, &registry, false).unwrap();
            for flows in [sender, receiver] {
                assert_eq!((flows.forward.len(), flows.back.len()), (2, 1), "{terms:?}");
            }
            assert_eq!(scenario.plan.duration, terms.duration());
            let received = received_scenario(&terms, false, &registry).unwrap();
            for scenario in [scenario, received] {
                let media = scenario.plan.flows[0].media().unwrap();
                assert_eq!(media.streams[0].source.range().1, terms.flows[0].max(), "text keeps the rate exactly");
                assert_eq!(media.streams[0].kind == MediaKind::Audio, terms.flows[0].streams[0].source == AUDIO);
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
            let parameters = source::SOURCES.iter().find(|entry| entry.name == source).unwrap().parameters;
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
            let id = SessionId([1; 8]);
            let own = receiver_scenario(&terms, &registry).ok().flatten();
            let flows = own.and_then(|(own, _)| receiver_flows(id, &terms, &own.plan.flows, &registry, false).ok());
            let Some(Flows { forward, back }) = flows else {
                refused += 1;
                continue;
            };
            built += 1;
            let mut side = SendSide::new(
                Ssrcs::of_session(id, &terms),
                back,
                forward.len(),
                Time::ZERO,
                terms.duration(),
                TimeDelta::ZERO,
            );
            for _ in 0..50 {
                let Some(due) = side.poll_timeout() else { break };
                side.handle_timeout(due, &mut |_, _| (sent += 1, true).1);
            }
        }
        assert!(built > 40 && refused > 40 && sent > 1000, "{built} built, {refused} refused, {sent} sent");
    }

    #[test]
    fn an_unknown_controller_of_either_direction_is_refused() {
        let registry = Registry::standard();
        assert!(receiver_scenario(&terms("googcc", SOURCES[0]), &registry).unwrap().is_some());
        for flow in [0, 1] {
            let mut terms = terms("googcc", SOURCES[0]);
            terms.flows[flow].controller = "unknown".to_owned();
            assert!(receiver_scenario(&terms, &registry).is_err(), "{flow}");
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
            scenario(&terms, false, &registry).map(|(scenario, _)| scenario)
        };
        for (name, number) in
            [("fps", 12.5), ("min", 100_001.0), ("reaction_delay", 0.123_456_789), ("key_frames", 9.0)]
        {
            let scenario = with("", name, number).unwrap();
            let value = scenario.plan.flows[1].media().unwrap().streams[0].source.values.get(name);
            assert_eq!(value.and_then(source_number), Some(number), "{name}");
        }
        let (controller, field) =
            registry.iter().find_map(|entry| Some((entry.name(), entry.fields().into_iter().next()?))).unwrap();
        let scenario = with(controller, field.name, field.default).unwrap();
        let config = &scenario.plan.flows[0].media().unwrap().controller.config;
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
            assert!(with(controller, name, number).is_err(), "{controller} {name} {number}");
        }
    }
}
