// SPDX-License-Identifier: MIT OR Apache-2.0
//! The identity of a run in stored results: hashes of its inputs, and the names of its quantities.

use crate::metrics::{METRICS, WindowResult};
use crate::results::database::{MeasuredRun, QuantityKey, code, run_inputs};
use crate::run::RunResult;
use paceline_netsim::plan::{ControllerPlan, FlowKind, Plan};
use paceline_netsim::records::Label;
use paceline_scenario::{Quantity, Scenario};
use std::fmt::{self, Write};

/// Version of the program. The identity of a run depends on it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hashes of a resolved scenario, 16 hexadecimal digits each. Ids, titles and sources do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioHashes {
    /// With the controllers.
    pub plan: String,
    /// Without the controllers: runs with the same hash differ in controller, seed, world or version alone.
    pub scenario: String,
}

impl ScenarioHashes {
    pub fn of(scenario: &Scenario) -> Self {
        let mut plan = scenario.plan.clone();
        let with = hash(scenario, &plan);
        for flow in &mut plan.flows {
            if let FlowKind::Media(media) = &mut flow.kind {
                media.controller =
                    ControllerPlan { name: String::new(), config: Vec::new(), overuse: None, limits: Vec::new() };
            }
        }
        Self { plan: with, scenario: hash(scenario, &plan) }
    }

    /// Returns the hash of everything that determines a run.
    pub fn inputs(&self, world: &str, seed: u64) -> String {
        run_inputs(&self.plan, world, seed, VERSION)
    }
}

fn hash(scenario: &Scenario, plan: &Plan) -> String {
    let Plan { duration, hops, forward_hops, bottleneck, flows, .. } = plan;
    let mut hash = Hash(blake3::Hasher::new_derive_key("paceline 2026 scenario"));
    let inputs = (duration, hops, forward_hops, bottleneck, flows, &scenario.measure);
    write!(hash, "{inputs:?}").expect("a hash accepts any text");
    hash.0.finalize().to_hex()[..16].to_owned()
}

struct Hash(blake3::Hasher);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// Returns the name of a quantity of this scenario in the table of results.
pub fn quantity_key(scenario: &Scenario, quantity: &Quantity) -> QuantityKey {
    let flows = &scenario.plan.flows;
    let flow = quantity.flow.map(|flow| &flows[flow]);
    let stream = flow.zip(quantity.stream).and_then(|(flow, stream)| Some(flow.media()?.streams[stream].id.clone()));
    let each = quantity.each.as_ref().map(|each| {
        let over = each.relative_to.as_ref().map_or(String::new(), |over| {
            let over = quantity_key(scenario, over);
            format!(" over {} {} {}", over.metric, over.flow, over.stream)
        });
        format!("{}{over} in {} to {}", each.of, each.bounds.0, each.bounds.1)
    });
    QuantityKey {
        metric: quantity.metric.clone(),
        flow: flow.map(|flow| flow.id.clone()).unwrap_or_default(),
        stream: stream.unwrap_or_default(),
        window_s: (quantity.window.from.as_secs_f64(), quantity.window.to.as_secs_f64()),
        each: each.unwrap_or_default(),
    }
}

/// Returns the controller of each media flow, and the congestion control of each TCP flow.
pub(crate) fn controllers(scenario: &Scenario) -> Vec<Option<String>> {
    scenario.plan.flows.iter().map(|flow| Some(flow.control().to_owned())).collect()
}

/// Returns the changes of a case and of settings, as runs are listed with them.
pub(crate) fn changes(case: &Label, settings: impl IntoIterator<Item = String>) -> Vec<String> {
    let case = case.pairs().map(|(key, value)| format!("case.{key}={value}"));
    case.chain(settings).collect()
}

/// Returns a run of this scenario with its values of [`Scenario::quantities`].
pub(crate) fn measured_run(
    scenario: &Scenario,
    run: (&str, u64),
    trace_hash: &str,
    values: &[Option<f64>],
) -> MeasuredRun {
    let keys = scenario.quantities().map(|quantity| quantity_key(scenario, quantity));
    let values = keys.zip(values.iter().copied()).collect();
    measured(scenario, &ScenarioHashes::of(scenario), run, (trace_hash, values))
}

/// Returns runs of this scenario with every metric of the whole run. `settings` are the changes by `--set`, `code` is the program.
pub fn whole_runs<'a>(
    scenario: &'a Scenario,
    (settings, code): (&'a [String], &'a str),
    runs: &'a [RunResult],
) -> impl Iterator<Item = MeasuredRun> + 'a {
    let hashes = ScenarioHashes::of(scenario);
    runs.iter().map(move |run| {
        let values = whole_values(scenario, &run.whole);
        let measured = measured(scenario, &hashes, (&run.world, run.seed), (&run.trace_hash, values));
        let changes = changes(&scenario.plan.case, settings.iter().cloned());
        MeasuredRun { changes, code: code.to_owned(), ..measured }
    })
}

fn measured(
    scenario: &Scenario,
    hashes: &ScenarioHashes,
    (world, seed): (&str, u64),
    (trace_hash, values): (&str, Vec<(QuantityKey, Option<f64>)>),
) -> MeasuredRun {
    MeasuredRun {
        inputs: hashes.inputs(world, seed),
        scenario: scenario.plan.id.clone(),
        scenario_hash: hashes.scenario.clone(),
        controllers: controllers(scenario),
        changes: changes(&scenario.plan.case, []),
        world: world.to_owned(),
        seed,
        code: code(VERSION, None),
        trace_hash: trace_hash.to_owned(),
        duration_s: scenario.plan.duration.as_secs_f64(),
        values,
    }
}

/// Returns every metric of a whole run, of the run and of each flow and stream.
pub fn whole_values(scenario: &Scenario, whole: &WindowResult) -> Vec<(QuantityKey, Option<f64>)> {
    let window_s = (0.0, scenario.plan.duration.as_secs_f64());
    let mut values = Vec::new();
    let mut add = |metric: &str, flow: &str, stream: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let [metric, flow, stream] = [metric, flow, stream].map(str::to_owned);
            values.push((QuantityKey { metric, flow, stream, window_s, each: String::new() }, Some(value)));
        }
    };
    for metric in METRICS {
        add(metric.id, "", "", (metric.value)(whole, None, &scenario.measure));
        for (index, flow) in scenario.plan.flows.iter().enumerate() {
            add(metric.id, &flow.id, "", (metric.value)(whole, Some(index), &scenario.measure));
            let streams = flow.media().map_or(&[][..], |media| &media.streams);
            let results = whole.flows.get(index).map_or(&[][..], |flow| &flow.streams);
            for (stream, result) in streams.iter().zip(results) {
                add(metric.id, &flow.id, &stream.id, metric.of_stream.and_then(|of_stream| of_stream(result)));
            }
        }
    }
    values
}
