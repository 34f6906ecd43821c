// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-oscillates`: GoogCC whose target swings between a low and a high share of its estimate.
//!
//! The shares are 0.5 and 1.25 of the estimate, 2 s each. In the low half the flow leaves half of its rate unused. In the high half
//! it exceeds the estimate, and on a link that the estimate fills the queue grows by 250 ms each second.

use super::altered::{Alteration, Altered, scaled};
use paceline::{Bounds, Decision, Entry, Event, FieldVisitor, Parameters, SendHalf, Setup, Signals, params};
use paceline_units::{Rate, Time, TimeDelta};

pub(super) const NAME: &str = "faulty-oscillates";

pub(super) fn entry() -> Entry {
    let summary = "one fault: googcc whose target swings between 0.5 and 1.25 of its estimate, in periods of 4 s";
    Entry::new(NAME, summary, "googcc, with a square wave over its target", config())
}

fn config() -> Altered<Oscillates> {
    let bounds = Bounds::new(Rate::ZERO, Rate::MAX);
    Altered::googcc(Oscillates { wave: SquareWave::DESIGN, bounds, is_high: false, due: None })
}

params! {
    #[derive(Clone, Copy, Debug)]
    struct SquareWave {
        /// The values of this yardstick.
        const DESIGN;

        /// Low share of the estimate.
        low: f64 = 0.5, in 0.01..=1.0, from "by design";
        /// High share of the estimate.
        high: f64 = 1.25, in 1.0..=10.0, from "by design";
        /// Time between two swings.
        half_period as "half_period_ms": TimeDelta = TimeDelta::from_secs(2), in 100.0..=1e6, from "by design";
    }
}

#[derive(Clone, Debug)]
struct Oscillates {
    wave: SquareWave,
    bounds: Bounds,
    is_high: bool,
    /// The next swing; `None` before the first event.
    due: Option<Time>,
}

impl Alteration for Oscillates {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        self.wave.fields(fields);
    }

    fn started(&self, setup: &Setup) -> Self {
        Self { bounds: setup.bounds(), is_high: false, due: None, ..*self }
    }

    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        half.handle_event(now, event, signals);
        if let Event::Bounds(bounds) = event {
            self.bounds = **bounds;
        }
    }

    fn update(&mut self, now: Time, _: &Decision) {
        let due = *self.due.get_or_insert(now + self.wave.half_period);
        if due <= now {
            (self.is_high, self.due) = (!self.is_high, Some(now + self.wave.half_period));
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    fn decision(&self, decision: Decision) -> Decision {
        let mut scaled = scaled(decision, if self.is_high { self.wave.high } else { self.wave.low });
        scaled.target = self.bounds.clamp(scaled.target);
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::super::altered::tests::{SETUP, feed};
    use super::*;
    use paceline::Config;

    /// The estimate is at most the start rate here: all packets are lost, and nothing arrives from which it could grow. By hand: 0.5 and
    /// 1.25 of 1000 kbit/s, each for 2 s, from the first event on.
    #[test]
    fn target_swings_every_two_seconds() {
        let mut half = config().halves(&SETUP).send.unwrap();
        let targets = feed(&mut *half, (0, 2900), |_| None);
        let expected = |n: usize| if n < 40 { 500 } else { 1250 };
        (0..58).for_each(|n| assert_eq!(targets[n], expected(n), "message {n}"));
    }
}
