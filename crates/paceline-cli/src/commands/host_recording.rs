//! What `--out` of `send` and `recv` stores: the events of the flows that an end sends, and the result of the session.

use super::host_session::WORLD;
use crate::environment::environment;
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::metrics::{Collector, WindowResult};
use paceline_lab::results::{RunStore, Store};
use paceline_lab::run_identity::whole_values;
use paceline_lab::storage::Inputs;
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::Scenario;
use paceline_units::{Time, TimeDelta};
use serde::Serialize;

/// The fields of every run, as far as the end that sends knows them, and the result of the session.
#[derive(Serialize)]
pub struct Stored<'a, D> {
    pub world: &'static str,
    pub seed: u64,
    pub duration_s: f64,
    pub session: &'a D,
    #[serde(flatten)]
    pub whole: &'a WindowResult,
}

/// What a collector measured of a session.
pub struct Measures {
    pub whole: WindowResult,
    /// Those of the windows of bounds.
    pub windows: Vec<WindowResult>,
    /// Received bytes of each flow in each second.
    pub seconds: Vec<Vec<u64>>,
}

impl Measures {
    /// Returns those of a session that lasted so long. If the rendered frames are not known, results have no streams, because all time
    /// without frames would count as a freeze.
    pub fn of(collector: Collector<'_>, lasted: TimeDelta, knows_frames: bool) -> Self {
        let (mut results, seconds) = collector.finish_at(Time::ZERO + lasted);
        if !knows_frames {
            results.iter_mut().flat_map(|result| &mut result.flows).for_each(|flow| flow.streams.clear());
        }
        let mut results = results.into_iter();
        let whole = results.next().expect("the whole run is always measured");
        Self { whole, windows: results.collect(), seconds }
    }
}

/// A session while its receiver stores the flows that it sends.
pub struct Recording<'a> {
    events: RunStore,
    collector: Collector<'a>,
    seed: u64,
    scenario: &'a Scenario,
}

impl<'a> Recording<'a> {
    /// Starts to record the flows of this scenario, which has this text.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn start(
        store: &Store,
        (scenario, text): (&'a Scenario, String),
        seed: u64,
        registry: &Registry,
    ) -> Result<Self> {
        let header = scenario.plan.header(registry, WORLD, seed);
        let inputs = Inputs { environment: environment().clone(), scenario_text: text, ..Inputs::default() };
        let events = store.run(&header, inputs.manifest(scenario, registry)).into_diagnostic()?.in_parts(true);
        Ok(Self { events, collector: Collector::new(scenario, &[], &|| ()), seed, scenario })
    }

    /// Records an event.
    pub fn push(&mut self, event: &EventRecord) {
        self.events.on_event(event);
        self.collector.on_event(event);
    }

    /// Stores the session, whose media lasted so long.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self, lasted: TimeDelta, knows_frames: bool, session: &impl Serialize) -> Result<()> {
        let Self { events, collector, seed, scenario } = self;
        let Measures { whole, .. } = Measures::of(collector, lasted, knows_frames);
        let stored = Stored { world: WORLD, seed, duration_s: lasted.as_secs_f64(), session, whole: &whole };
        let document = serde_json::to_value(&stored).into_diagnostic()?;
        events.finish(&document, whole_values(scenario, &whole)).map(drop).into_diagnostic()
    }
}
