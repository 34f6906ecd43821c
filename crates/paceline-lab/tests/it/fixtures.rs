// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of whole runs share.

use paceline::Registry;
use paceline_lab::metrics::{WindowResult, find};
use paceline_lab::run::{RunResult, Runner};
use paceline_netsim::records::{EventObserver, EventRecord};
use paceline_scenario::{Changes, Origin, Scenario, ScenarioError, load};
use std::sync::LazyLock;

/// Returns the standard registry.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);
    &REGISTRY
}

pub fn simulator() -> Runner<'static> {
    Runner::simulator(registry())
}

pub fn load_from(origin: &Origin, controller: Option<&str>, settings: &[&str], registry: &Registry) -> Scenario {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { controller: controller.map(str::to_owned), settings, ..Changes::default() };
    load(origin, &changes, paceline_lab::registries(registry))
        .unwrap_or_else(|problem| panic!("{problem} {:?} {:?}", problem.offending(), problem.hint()))
}

/// Loads a scenario from its text, with `--set`.
pub fn scenario(text: &str, settings: &[&str]) -> Scenario {
    load_from(&Origin::from_text("test.toml", text), None, settings, registry())
}

/// Checks the errors of bad input. Each line of the table is a case: its name and the columns from which `error_of` makes an error
/// (`⏎` starts a new line), the underlined text, a part of the message, and a part of the hint.
pub fn check_errors(table: &str, error_of: impl Fn(&[String]) -> Option<ScenarioError>) {
    let mut wrong = String::new();
    for case in table.trim().lines() {
        let columns: Vec<String> = case.split('|').map(|column| column.trim().replace('⏎', "\n")).collect();
        let [given @ .., underlined, message, hint] = columns.as_slice() else { panic!("{case}") };
        let Some(error) = error_of(given) else {
            wrong += &format!("{case}\n  was accepted\n");
            continue;
        };
        let (got, help, offending) = (error.to_string(), error.hint().unwrap_or_default(), error.offending());
        let place = offending.unwrap_or_default().trim() == underlined.trim();
        if !place || !got.contains(message) || !help.contains(hint) || help.is_empty() || got.contains('\n') {
            wrong += &format!("{case}\n  underlined {offending:?}\n  message {got:?}\n  hint {help:?}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Calls a function with each event of a run.
pub struct Listener<F> {
    pub signals: bool,
    pub on_event: F,
}

impl<F: FnMut(&EventRecord)> EventObserver for Listener<F> {
    fn on_event(&mut self, event: &EventRecord) {
        (self.on_event)(event);
    }
    fn wants_signals(&self) -> bool {
        self.signals
    }
}

/// Runs a scenario and observes its events, except signals.
pub fn observe(scenario: &Scenario, seed: u64, on_event: impl FnMut(&EventRecord)) -> RunResult {
    let mut listener = Listener { signals: false, on_event };
    simulator().run(scenario, seed, Some(&mut listener)).unwrap()
}

pub fn run(text: &str, settings: &[&str]) -> RunResult {
    observe(&scenario(text, settings), 1, |_| ())
}

pub fn metric(result: &WindowResult, id: &str, flow: Option<usize>) -> Option<f64> {
    (find(id).expect("a metric").value)(result, flow, &Default::default())
}

#[track_caller]
pub fn within(what: &str, got: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&got), "{what} is {got}, expected {low} to {high}");
}
