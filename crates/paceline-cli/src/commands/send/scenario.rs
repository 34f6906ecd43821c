// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenario of a session: that of `--scenario`, or one made from the other options.

use super::bounds::{Known, Unmeasured};
use super::{Arguments, Beside, CONTROLLER, NAMED};
use crate::environment::environment;
use crate::external::is_external;
use miette::{Result, miette};
use paceline::Registry;
use paceline_lab::storage::Inputs;
use paceline_live::hosts::session_plan::{SOURCES, sent_plan};
use paceline_live::hosts::terms::Terms;
use paceline_scenario::{Catalogue, Changes, Origin, Scenario, ScenarioError};
use paceline_units::TimeDelta;

/// Duration of a session, and of a turn of a comparison.
const DURATION: TimeDelta = TimeDelta::from_secs(20);
const TURN: TimeDelta = TimeDelta::from_secs(10);

/// What a session sends, and how its result is judged.
pub(super) struct Planned {
    pub(super) terms: Terms,
    /// The flows that this host sends, over a path of which nothing is known, and the bounds that it can measure.
    pub(super) scenario: Scenario,
    pub(super) inputs: Inputs,
    /// Bounds that it cannot measure.
    pub(super) unmeasured: Vec<Unmeasured>,
    /// What the user should know about the scenario.
    pub(super) notes: Vec<String>,
}

/// Returns what a session under a controller sends; under those of the scenario, or the default, if `None`.
pub(super) fn plan(arguments: &Arguments, controller: Option<&str>, seed: u64, registry: &Registry) -> Result<Planned> {
    let Arguments { scenario, variation, duration, with, .. } = arguments;
    let (mut changes, tcp) = (variation.changes(controller), *with == Some(Beside::Tcp));
    if let Some(name) = scenario {
        let duration =
            duration.map(|duration| format!("duration={duration}").parse().expect("it is a key and a value"));
        changes.settings.extend(duration);
        return Ok(load(Catalogue.find(name)?, changes, (seed, tcp), registry)?);
    }
    if !changes.settings.is_empty() || !changes.case.is_empty() {
        return Err(miette!(help = "add --scenario", "--set and --case change a scenario, and there is none"));
    }
    let source = &arguments.source;
    if !SOURCES.contains(&source.as_str()) {
        let help = paceline_scenario::suggestion(source, &SOURCES);
        return Err(miette!(help = help, "no source `{source}` for two hosts"));
    }
    let origin = Origin::from_text("hosts", text(arguments, controller.unwrap_or(CONTROLLER)));
    let planned = load(origin, Changes::default(), (seed, tcp), registry).map_err(|error| {
        miette!(help = "see --max-rate, --start-rate, --min-rate, --flows and --duration", "{error}")
    })?;
    Ok(Planned { notes: Vec::new(), ..planned })
}

/// Returns the scenario of a session without one.
fn text(arguments: &Arguments, controller: &str) -> String {
    let Arguments { source, max_rate, start_rate, min_rate, flows, both, compare, duration, .. } = arguments;
    let duration = duration.unwrap_or(if compare.is_empty() { DURATION } else { TURN });
    let start_rate = start_rate.min(max_rate);
    let count = if *flows == 1 { String::new() } else { format!("count = {flows}\n") };
    let flow = |id: &str, more: &str| {
        format!(
            "[[flow]]\nid = \"{id}\"\n{more}{count}controller = \"{controller}\"\nstart_rate = \"{start_rate}\"\n\
             min_rate = \"{min_rate}\"\n[[flow.stream]]\nid = \"stream-1\"\nencoder = {{ source = \"{source}\", max = \
             \"{max_rate}\" }}\n"
        )
    };
    let back = if *both { flow("back", "direction = \"reverse\"\n") } else { String::new() };
    format!(
        "id = \"hosts\"\ntitle = \"Media between two hosts\"\nduration = \"{duration}\"\n[path.forward]\n[path.reverse]\n{}{back}",
        flow("media", "")
    )
}

/// Loads a scenario for a session, with changes. `tcp` adds a TCP flow. The notes say what does not apply.
///
/// # Errors
/// The scenario has an error, or something that a session cannot have.
fn load(
    origin: Origin,
    changes: Changes,
    (seed, tcp): (u64, bool),
    registry: &Registry,
) -> Result<Planned, ScenarioError> {
    let scenario = paceline_scenario::load(&origin, &changes, paceline_lab::registries(registry));
    let mut scenario = scenario.map_err(|error| match error.offending() {
        Some(name) if is_external(name.trim_matches('"')) => error.help(NAMED),
        _ => error,
    })?;
    let plan = &scenario.plan;
    let terms = Terms::of_plan(plan, seed, tcp).map_err(|error| {
        let flow = error.flow.map(|index| &plan.flows[index]);
        let table = flow.map(|flow| flow.group.as_deref().unwrap_or(&flow.id));
        let keys: Vec<&str> = error.keys.iter().map(String::as_str).collect();
        paceline_scenario::error_at_key(&origin, &changes, registry, (table, &keys), error.message).help(error.help)
    })?;
    let has_tcp = plan.flows.iter().any(|flow| flow.media().is_none());
    let beside = if has_tcp { ", and the TCP of this system that of its TCP flow" } else { "" };
    let mut notes = vec![format!("the real path, hosts and clocks take the place of those of the scenario{beside}")];
    notes.append(&mut scenario.notes);
    let inputs = Inputs {
        environment: environment().clone(),
        scenario_text: origin.text,
        changes: changes.settings.iter().map(ToString::to_string).collect(),
        ..Inputs::default()
    };
    let (scenario, unmeasured) = sent(scenario, &terms);
    Ok(Planned { terms, scenario, inputs, unmeasured, notes })
}

/// Returns the flows of a scenario that this host sends, with the bounds that it can measure, and the other bounds.
fn sent(scenario: Scenario, terms: &Terms) -> (Scenario, Vec<Unmeasured>) {
    let known = Known::new(&scenario, terms.tcp);
    let (mut asserts, mut unmeasured) = (Vec::new(), Vec::new());
    for assert in &scenario.asserts {
        match known.bound(assert) {
            Some(assert) => asserts.push(assert),
            None => unmeasured.push(Unmeasured::of(assert, &scenario.plan)),
        }
    }
    let plan = sent_plan(&scenario.plan, terms.seed);
    let Scenario { measure, constants, .. } = scenario;
    (Scenario { measure, constants, asserts, ..Scenario::of_plan(plan) }, unmeasured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::Diagnostic;
    use paceline_live::hosts::message::SessionId;
    use paceline_live::hosts::session_flow::Flows;

    #[test]
    fn shipped_scenarios_become_terms_or_are_refused_with_a_hint() {
        let registry = Registry::standard();
        let (mut loaded, mut refused) = (0, 0);
        for id in Catalogue.ids() {
            match load(Catalogue.find(id).unwrap(), Changes::default(), (1, false), &registry) {
                Ok(Planned { terms, scenario, .. }) => {
                    assert_eq!(Terms::from_bytes(&terms.to_bytes()).as_ref(), Some(&terms), "{id}");
                    let plan = &scenario.plan;
                    let back = terms.plans(true, true, &registry).unwrap();
                    for (is_sender, own) in [(true, &plan.flows), (false, &back)] {
                        let flows =
                            Flows::build(SessionId([1; 8]), &terms, is_sender, (own, false), &registry).unwrap();
                        let (sent, received) = (flows.sent.len(), flows.received.len());
                        let counts = if is_sender { (sent, received) } else { (received, sent) };
                        assert_eq!(counts, (plan.flows.len(), terms.count(true)), "{id}");
                    }
                    assert_eq!(plan.id.as_str(), id);
                    loaded += 1;
                }
                Err(error) => {
                    assert!(Diagnostic::help(&error).is_some_and(|help| !help.to_string().is_empty()), "{id}: {error}");
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
            let planned = load(origin, Changes::default(), (1, false), &registry).unwrap();
            let bounds = (planned.scenario.asserts.len(), planned.unmeasured.len());
            assert_eq!(bounds, if known { (1, 0) } else { (0, 1) }, "{metric} {more}");
        }
    }
}
