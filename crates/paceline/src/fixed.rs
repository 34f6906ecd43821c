//! `fixed`: a constant rate without congestion control, as a reference for the other controllers.

use crate::{Config, Controller, Decision, Entry, Event, FieldVisitor, SendHalf, Setup, Signals};
use paceline_units::{Rate, Time};

#[derive(Clone, Debug)]
struct FixedConfig {
    /// bit/s; 0: the highest rate that the sources can use.
    rate_bps: f64,
    /// Pacing rate over target.
    pacing_factor: f64,
}

pub(crate) fn entry() -> Entry {
    let config = FixedConfig { rate_bps: 0.0, pacing_factor: 1.5 };
    Entry::new("fixed", "constant rate, no congestion control", "a yardstick, from no paper", config)
}

impl FixedConfig {
    /// Returns the configured rate, or the maximum of the sources.
    fn rate(&self, max: Rate) -> Rate {
        if self.rate_bps == 0.0 { max } else { Rate::from_bps_f64(self.rate_bps) }
    }

    fn decision(&self, target: Rate) -> Decision {
        Decision { pacing: target.scale(self.pacing_factor), padding: target, ..Decision::new(target) }
    }
}

impl Config for FixedConfig {
    const CONTROLS: bool = false;

    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        fields
            .number("rate_bps", "bit/s", (0.0, 1e12), &mut self.rate_bps)
            .describe("the rate, headers included; 0: the maximum of the sources");
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .describe("pacing over target, as mmsys16 section 3.5");
    }

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_sender(Fixed::new(self, setup))
    }
}

#[derive(Clone, Debug)]
struct Fixed {
    config: FixedConfig,
    decision: Decision,
}

impl Fixed {
    fn new(config: &FixedConfig, setup: &Setup) -> Self {
        Self { config: config.clone(), decision: config.decision(config.rate(setup.max)) }
    }
}

impl SendHalf for Fixed {
    fn handle_event(&mut self, _: Time, event: &Event<'_>, _: &mut Signals) {
        match *event {
            Event::Bounds(bounds) => self.decision = self.config.decision(bounds.clamp(self.config.rate(bounds.max))),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    fn decision(&self) -> Decision {
        self.decision
    }
}
