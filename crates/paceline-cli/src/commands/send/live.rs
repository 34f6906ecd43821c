// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line that a terminal shows during a session.

use paceline_live::hosts::sender::Progress;
use paceline_netsim::records::{EventObserver, EventRecord, HalfName, RunDescription, SignalDescription};
use paceline_units::{FlowId, Rate, TimeDelta};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Width of a terminal.
const COLUMNS: usize = 80;

/// The state of the first flow's controller, as far as its send half has one.
pub(super) struct ControllerState {
    signal: Option<usize>,
    names: Vec<String>,
    latest: Mutex<Option<usize>>,
}

impl ControllerState {
    /// Chooses the signal: that of the over-use detector, or else the first one that is a state.
    pub(super) fn new(description: &RunDescription) -> Self {
        let signals: &[SignalDescription] = description.flows.first().map_or(&[], |flow| &flow.signals[0]);
        let states = || signals.iter().enumerate().filter(|(_, signal)| !signal.states.is_empty());
        let chosen = states().find(|(_, signal)| signal.name == "usage").or_else(|| states().next());
        let names = chosen.map_or(Vec::new(), |(_, signal)| signal.states.clone());
        Self { signal: chosen.map(|(index, _)| index), names, latest: Mutex::default() }
    }

    fn latest(&self) -> MutexGuard<'_, Option<usize>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the latest state; empty if it is not known.
    pub(super) fn name(&self) -> &str {
        self.latest().and_then(|state| self.names.get(state)).map_or("", String::as_str)
    }
}

impl EventObserver for &ControllerState {
    fn on_event(&mut self, event: &EventRecord) {
        if let EventRecord::Signal { flow: FlowId(0), half: HalfName::Send, signal, value, .. } = *event
            && self.signal == Some(signal.into())
        {
            *self.latest() = Some(value as usize);
        }
    }
    fn wants_signals(&self) -> bool {
        io::stderr().is_terminal()
    }
}

/// Returns the state of a session as a line of at most 80 columns.
pub(super) fn live_text(now: &Progress, freezes: u64, state: &str) -> String {
    let mega = |rate: Rate| format!("{:.2}", rate.as_bps_f64() / 1e6);
    let ms = |time: Option<TimeDelta>| time.map_or("–".to_owned(), |time| format!("{:.0}", time.as_millis_f64()));
    let some = |count: u64, text: String| if count > 0 { text } else { String::new() };
    let marked = some(now.marked, format!("  CE {}", now.marked));
    let frozen = some(freezes, format!("  frozen {freezes}x"));
    let text = format!(
        "{:4.0}s {:>6}/{:>6} Mbit/s  +{:>4} ms  rtt {:>4} ms  loss {:>4.1}%{marked}{frozen}  {state}",
        now.elapsed.as_secs_f64(),
        mega(now.received),
        mega(now.target),
        ms(now.variation),
        ms(now.rtt),
        now.loss * 100.0,
    );
    text.trim_end().chars().take(COLUMNS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline::Registry;
    use paceline_units::Time;

    fn progress(rate: Rate, time: TimeDelta, loss: f64) -> Progress {
        Progress {
            elapsed: TimeDelta::from_secs(3600),
            received: rate,
            target: rate,
            variation: Some(time),
            rtt: Some(time),
            loss,
            marked: 120,
        }
    }

    #[test]
    fn the_line_fits_a_terminal() {
        let now = progress(Rate::from_kbps(1930), TimeDelta::from_millis(12), 0.021);
        let usual = live_text(&Progress { marked: 0, ..now }, 3, "hold");
        assert!(usual.contains("+  12 ms") && usual.ends_with("loss  2.1%  frozen 3x  hold"), "{usual}");
        let marked = live_text(&now, 0, "underuse");
        assert!(marked.chars().count() <= COLUMNS && marked.ends_with("loss  2.1%  CE 120  underuse"), "{marked}");
        let most = live_text(&progress(Rate::from_kbps(9_999_990), TimeDelta::from_secs(99), 1.0), 10, "fast increase");
        assert_eq!(most.chars().count(), COLUMNS, "{most}");
    }

    #[test]
    fn the_state_is_that_of_the_first_flow() {
        let registry = Registry::standard();
        let text = "id = \"x\"\ntitle = \"\"\nduration = \"9 s\"\n[path]\n[[flow]]\nid = \"a\"\ncontroller = \"googcc\"\ncount = 2\n";
        let origin = paceline_scenario::Origin::from_text("x", text);
        let scenario = paceline_scenario::load(&origin, &Default::default(), &registry).unwrap();
        let description = scenario.plan.describe(&registry);
        let signals = &description.flows[0].signals[0];
        let usage = signals.iter().position(|signal| signal.name == "usage").unwrap();
        let overuse = signals[usage].states.iter().position(|state| state == "overuse").unwrap();
        let state = ControllerState::new(&description);
        for (flow, signal, expected) in
            [(1, usage, ""), (0, usage + 1, ""), (0, usage, "overuse"), (1, usage, "overuse")]
        {
            let (flow, signal, value) = (FlowId(flow), signal as u8, overuse as f64);
            (&state).on_event(&EventRecord::Signal { at: Time::ZERO, flow, half: HalfName::Send, signal, value });
            assert_eq!(state.name(), expected);
        }
    }
}
