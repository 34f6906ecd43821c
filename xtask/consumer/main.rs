// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program outside the workspace that registers a controller of its own.

use paceline::{
    Config, ConfigError, Controller, Decision, Entry, Event, ReceiverReport, Registry, SendHalf, Setup, SignalName, SignalTables,
    Signals, params, signal_names,
};
use paceline_units::{Fraction, Rate, Time};

signal_names! { enum MySignal { Loss = series("loss", "") } }

params! {
    #[derive(Clone, Debug)]
    struct Halver {
        /// The default values.
        default const DEFAULT;

        /// Loss that halves the rate.
        limit: f64 = 0.1, in 0.0..=1.0, from "a round number";
    }
}

impl Config for Halver {
    const SIGNALS: SignalTables = (MySignal::TABLE, &[]);
    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_sender(Half { limit: self.limit, rate: setup.start })
    }
}

#[derive(Clone, Debug)]
struct Half {
    limit: f64,
    rate: Rate,
}

impl SendHalf for Half {
    fn handle_event(&mut self, _: Time, event: &Event<'_>, signals: &mut Signals) {
        let Event::Report(report) = event else { return };
        signals.emit(MySignal::Loss, report.fraction_lost.get());
        if report.fraction_lost.get() > self.limit {
            self.rate = self.rate.scale(0.5)
        }
    }
    fn decision(&self) -> Decision {
        Decision::new(self.rate)
    }
}

fn main() -> Result<(), ConfigError> {
    let mut registry = Registry::standard();
    registry.add(Entry::new("halver", "halves its rate on loss", "an example, from no paper", Halver::default()));
    let setup = Setup::new(Rate::from_kbps(400), Rate::from_kbps(50), Rate::from_kbps(1000));
    let mut half = registry.get("halver").expect("it was added").build(&setup, &[])?.send.expect("it has a send half");
    let (copy, mut signals) = (half.clone(), Signals::enabled());
    let report = ReceiverReport::new(Fraction::from_q8(64));
    half.handle_event(Time::from_secs(1), &Event::Report(&report), &mut signals);
    assert_eq!((copy.decision().target, half.decision().target), (setup.start, Rate::from_kbps(200)));
    assert_eq!(signals.drain().collect::<Vec<_>>(), [(MySignal::Loss.index(), 0.25)]);
    println!("{half:?}");
    Ok(())
}
