// SPDX-License-Identifier: MIT OR Apache-2.0
//! `fixed`: a constant rate without congestion control, as a reference for the other controllers.

use crate::{Config, Controller, Decision, Entry, Event, SendHalf, Setup, Signals, params};
use paceline_units::{Rate, Time};

params! {
    #[derive(Clone, Debug)]
    struct FixedConfig {
        /// The default values.
        default const DEFAULT;

        /// Rate, headers included; 0: the highest rate that the sources can use.
        rate_bps: f64 = 0.0, unit "bit/s", in 0.0..=1e12;
        /// Pacing rate over target.
        pacing_factor: f64 = 1.5, in 1.0..=10.0, from "mmsys16 section 3.5";
    }
}

pub(crate) fn entry() -> Entry {
    let config = FixedConfig::default();
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
