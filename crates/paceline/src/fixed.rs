//! `fixed`: a constant rate without congestion control, as a reference for the other controllers.

use crate::{Config, Controller, Decision, Entry, FieldVisitor, SendHalf, Setup};
use paceline_units::Rate;

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
        let target = if self.rate_bps == 0.0 { setup.max } else { Rate::from_bps_f64(self.rate_bps) };
        let pacing = target.scale(self.pacing_factor);
        Controller::from_sender(Fixed(Decision { pacing, padding: target, ..Decision::new(target) }))
    }
}

struct Fixed(Decision);

impl SendHalf for Fixed {
    fn decision(&self) -> Decision {
        self.0
    }
}
