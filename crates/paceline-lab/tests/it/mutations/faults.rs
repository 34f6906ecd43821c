// SPDX-License-Identifier: MIT OR Apache-2.0
//! GoogCC with one plausible fault each, in the way of mutation tests: a suite must find each of them.
//!
//! Unlike the [yardsticks](paceline_lab::yardsticks), which fail at large, each of these breaks one mechanism. They exist in tests
//! alone. `table.toml` says which bounds must find which fault. A fault is a change of the numbers of GoogCC, of what it receives, or
//! of what it decides.

use paceline::GoogCcConfig;
use paceline::{
    Config, Controller, Entry, Event, Feedback, PacketReport, Parameters, Registry, SendHalf, Setup, SignalTables,
    Signals,
};
use paceline_lab::yardsticks::{Alteration, Altered, NoAlteration};
use paceline_units::{Time, TimeDelta};
use std::sync::Arc;

pub struct Fault {
    pub name: &'static str,
    pub text: &'static str,
    entry: fn(&Self) -> Entry,
}

pub const FAULTS: &[Fault] = &[
    Fault {
        name: "mutation-no-decrease-on-loss",
        text: "receiver reports count as without loss, and nothing else limits the rate by loss",
        entry: |fault| fault.with(&[("loss_model", 0.0), ("loss_low", 1.0), ("loss_high", 1.0)]),
    },
    Fault {
        name: "mutation-frozen-threshold",
        text: "the threshold of the over-use detector keeps its first value",
        entry: |fault| fault.with(&[("k_u", 0.0), ("k_d", 0.0)]),
    },
    Fault {
        name: "mutation-ignored-probes",
        text: "probes are sent, but their results are not used",
        entry: |fault| Entry::new(fault.name, fault.text, SOURCE, Altered::googcc(IgnoredProbes::default())),
    },
    Fault { name: "mutation-no-probes", text: "no probes are sent", entry: |fault| fault.with(&[("probes", 0.0)]) },
    Fault {
        name: "mutation-small-decrease",
        text: "a decrease keeps 99 % of the acknowledged rate in place of 85 %",
        entry: |fault| fault.with(&[("beta", 0.99), ("decrease_offset_bps", 0.0)]),
    },
    Fault {
        name: "mutation-no-back-off",
        text: "the rate does not fall without feedback: neither the back-off nor the guard exists",
        entry: |fault| {
            let mut config = GoogCcConfig::default();
            config.bandwidth.backoff.limit = TimeDelta::from_secs(1000);
            Entry::new(fault.name, fault.text, SOURCE, Unguarded(Arc::new(config)))
        },
    },
    Fault {
        name: "mutation-small-window",
        text: "the congestion window allows 5 ms of queue in place of 350 ms, and lowers the target",
        entry: |fault| fault.with(&[("window_ms", 5.0), ("window_drop_frames", 0.0)]),
    },
    Fault {
        name: "mutation-no-acknowledged-cap",
        text: "the rate grows without regard to the acknowledged rate",
        entry: |fault| fault.with(&[("headroom", 100.0)]),
    },
    Fault {
        name: "mutation-fast-growth",
        text: "the rate grows by 100 % per second in place of 8 %",
        entry: |fault| fault.with(&[("eta", 2.0)]),
    },
    Fault {
        name: "mutation-ignored-route",
        text: "a change of the route changes nothing",
        entry: |fault| Entry::new(fault.name, fault.text, SOURCE, Altered::googcc(IgnoredRoute)),
    },
    Fault {
        name: "mutation-fast-pacing",
        text: "packets leave at 10 times the target in place of 1.1",
        entry: |fault| fault.with(&[("pacing_factor", 10.0)]),
    },
    Fault {
        name: "mutation-late-over-use",
        text: "over-use must last for 500 ms in place of 10 ms",
        entry: |fault| fault.with(&[("overuse_ms", 500.0)]),
    },
    Fault {
        name: "mutation-endless-padding",
        text: "padding always fills the target",
        entry: |fault| fault.with(&[("padding_max_bps", 1e9)]),
    },
    Fault {
        name: "mutation-ignored-remb",
        text: "the cap of the receiver is ignored",
        entry: |fault| Entry::new(fault.name, fault.text, SOURCE, Altered::googcc(IgnoredRemb)),
    },
];

const SOURCE: &str = "googcc, with one fault";

impl Fault {
    /// Returns GoogCC with these numbers.
    fn with(&self, numbers: &[(&str, f64)]) -> Entry {
        let config = Altered::googcc(NoAlteration);
        let config = numbers.iter().fold(config, |config, (name, value)| config.with_number(name, *value));
        Entry::new(self.name, self.text, SOURCE, config)
    }
}

pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    FAULTS.iter().for_each(|fault| registry.add((fault.entry)(fault)));
    registry
}

#[derive(Clone, Debug, Default)]
struct IgnoredProbes {
    /// The packets of a message; empty between messages.
    packets: Vec<PacketReport>,
}

impl Alteration for IgnoredProbes {
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        let Event::Feedback(feedback) = *event else { return half.handle_event(now, event, signals) };
        self.packets.extend(feedback.packets.iter().map(|packet| packet.with_probe(None)));
        let feedback =
            Feedback::new(&self.packets, feedback.outstanding, feedback.after_highest).with_rtt(feedback.rtt);
        half.handle_event(now, &Event::Feedback(&feedback), signals);
        self.packets.clear();
    }
}

#[derive(Clone, Copy, Debug)]
struct IgnoredRoute;

impl Alteration for IgnoredRoute {
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        if !matches!(event, Event::RouteChange(_)) {
            half.handle_event(now, event, signals);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct IgnoredRemb;

impl Alteration for IgnoredRemb {
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        if !matches!(event, Event::Message(_)) {
            half.handle_event(now, event, signals);
        }
    }
}

/// A config whose send half has no guard against missing feedback.
#[derive(Clone, Debug)]
struct Unguarded(Arc<GoogCcConfig>);

impl Parameters for Unguarded {}

impl Config for Unguarded {
    const SIGNALS: SignalTables = <Arc<GoogCcConfig> as Config>::SIGNALS;

    fn halves(&self, setup: &Setup) -> Controller {
        self.0.halves(setup)
    }
    fn build(&self, setup: &Setup) -> Controller {
        self.halves(setup)
    }
}
