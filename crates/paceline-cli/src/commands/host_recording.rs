// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--out` of `recv` stores: the events of the flows that it sends, and the result of the session.

use crate::environment::environment;
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::metrics::{Collector, WindowResult};
use paceline_lab::results::{RunStore, Store};
use paceline_lab::run_identity::whole_values;
use paceline_lab::storage::Inputs;
use paceline_live::hosts::report::ReceiveReport;
use paceline_live::hosts::world::TwoHosts;
use paceline_netsim::plan::Plan;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::Scenario;
use paceline_units::Time;

/// Removes the results of streams and the scores: if the rendered frames are not known, all time without frames would count as a freeze.
pub fn forget_frames(result: &mut WindowResult) {
    for flow in &mut result.flows {
        flow.streams.clear();
        flow.score = None;
    }
}

/// A session while its receiver stores the flows that it sends.
pub struct Recording {
    events: RunStore,
    collector: Collector<'static>,
    seed: u64,
    scenario: &'static Scenario,
}

impl Recording {
    /// Starts to record the flows of this plan.
    pub fn start(store: &Store, plan: Plan, seed: u64, registry: &Registry) -> Result<Self> {
        // The command ends after one session, so plans live as long as the command.
        let scenario: &Scenario = Box::leak(Box::new(Scenario::of_plan(plan)));
        let header = scenario.plan.header(registry, TwoHosts::NAME, seed);
        let inputs = Inputs { environment: environment().clone(), ..Inputs::default() };
        let events = store.run(&header, inputs.manifest(scenario, registry)).into_diagnostic()?.in_parts(true);
        Ok(Self { events, collector: Collector::new(scenario, &[], &|| ()), seed, scenario })
    }

    /// Records an event.
    pub fn push(&mut self, event: &EventRecord) {
        self.events.on_event(event);
        self.collector.on_event(event);
    }

    /// Stores the session.
    pub fn finish(self, session: &ReceiveReport) -> Result<()> {
        let ReceiveReport { media: lasted, knows_frames, .. } = *session;
        let Self { events, collector, seed, scenario } = self;
        let mut whole = collector.finish_at(Time::ZERO + lasted).0.swap_remove(0);
        if !knows_frames {
            forget_frames(&mut whole);
        }
        let mut document = serde_json::to_value(&whole).into_diagnostic()?;
        document["world"] = TwoHosts::NAME.into();
        document["seed"] = seed.into();
        document["duration_s"] = lasted.as_secs_f64().into();
        document["session"] = serde_json::to_value(session).into_diagnostic()?;
        events.finish(&document, whole_values(scenario, &whole)).map(drop).into_diagnostic()
    }
}
