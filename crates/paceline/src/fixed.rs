//! `fixed`: a constant rate and no congestion control, the yardstick for everything else.

use crate::{Config, Controller, Decision, Entry, FeedbackKind, Field, SendHalf, Setup, SignalSpec};
use paceline_units::{Ecn, Rate};

/// Numbers of `fixed`.
#[derive(Clone, Debug)]
struct FixedConfig {
    /// bit/s; 0: the most that the sources can use.
    rate_bps: f64,
    pacing_factor: f64,
}

/// The registry's line.
pub(crate) fn entry() -> Entry {
    let config = FixedConfig { rate_bps: 0.0, pacing_factor: 1.5 };
    Entry::new("fixed", "constant rate, no congestion control", "a yardstick, from no paper", config)
}

impl Config for FixedConfig {
    const FIELDS: &'static [Field<Self>] = &[
        Field {
            name: "rate_bps",
            unit: "bit/s",
            source: "the rate, headers included; 0 asks for the most that the sources can use",
            range: (0.0, 1e12),
            get: |c| c.rate_bps,
            set: |c, v| c.rate_bps = v,
        },
        Field {
            name: "pacing_factor",
            unit: "",
            source: "pacing over target, as mmsys16 section 3.5",
            range: (1.0, 10.0),
            get: |c| c.pacing_factor,
            set: |c, v| c.pacing_factor = v,
        },
    ];
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (&[], &[]);
    const CONTROLS: bool = false;

    fn build(&self, setup: &Setup) -> Controller {
        let target = if self.rate_bps == 0.0 { setup.max } else { Rate::from_bps_f64(self.rate_bps) };
        let pacing = target.scale(self.pacing_factor);
        let decision = Decision { target, pacing, window: None, padding: target };
        Controller {
            send: Some(Box::new(Fixed(decision))),
            receive: None,
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

struct Fixed(Decision);

impl SendHalf for Fixed {
    fn decision(&self) -> Decision {
        self.0
    }
}
