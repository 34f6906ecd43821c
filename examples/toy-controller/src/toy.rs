// SPDX-License-Identifier: MIT OR Apache-2.0
//! A complete example controller. It keeps the queuing delay, as seen in transport-wide feedback, below 30 ms.
//!
//! The queuing delay is the one-way delay minus its minimum so far. The clocks of sender and receiver need not agree, because
//! their constant offset cancels.

use paceline::{
    Bounds, Config, Controller, Decision, Entry, Event, Feedback, FeedbackRequirement, SendHalf, Setup, SignalName,
    SignalTables, Signals, params, signal_names,
};
use paceline_units::{Rate, Time, TimeDelta};

params! {
    /// Parameters of the controller.
    #[derive(Clone, Debug)]
    pub struct Toy {
        /// The default values.
        default const DEFAULT;

        /// Upper limit of the queuing delay.
        target_ms: f64 = 30.0, unit "ms", in 1.0..=1000.0, from "a round number";
    }
}

/// Returns the entry for the registry.
pub fn entry() -> Entry {
    Entry::new("toy", "keeps the queue below a target", "an example, from no paper", Toy::default())
}

signal_names! {
    enum ToySignal {
        Queue = series("queue", "ms"),
    }
}

impl Config for Toy {
    const SIGNALS: SignalTables = (ToySignal::TABLE, &[]);

    fn halves(&self, setup: &Setup) -> Controller {
        let half = Half::new(self.clone(), setup);
        let feedback = FeedbackRequirement::new(INTERVAL, INTERVAL);
        Controller::from_sender(half).with_feedback(Some(feedback))
    }
}

/// Interval of the feedback.
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);

#[derive(Clone, Debug)]
struct Half {
    config: Toy,
    bounds: Bounds,
    rate: Rate,
    /// Minimum one-way delay so far, including the offset between the clocks, ns.
    base: Option<i64>,
    /// Time of the last rate decrease.
    last_decrease: Time,
}

impl Half {
    fn new(config: Toy, setup: &Setup) -> Self {
        Self { config, bounds: setup.bounds(), rate: setup.start, base: None, last_decrease: Time::ZERO }
    }
}

impl SendHalf for Half {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::Feedback(feedback) => self.handle_feedback(now, feedback, signals),
            Event::Bounds(bounds) => self.handle_bounds(bounds),
            Event::RouteChange(setup) => self.handle_route_change(setup),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision::new(self.rate).with_pacing(self.rate.scale(1.5)).with_padding(self.rate)
    }
}

impl Half {
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let delays =
            feedback.packets.iter().filter_map(|p| Some(p.arrival?.as_nanos().saturating_sub(p.sent.as_nanos())));
        let Some(delay) = delays.min() else { return };
        let base = *self.base.insert(self.base.map_or(delay, |b| b.min(delay)));
        let queue_ms = delay.saturating_sub(base) as f64 / 1e6;
        signals.emit(ToySignal::Queue, queue_ms);
        let rate = if queue_ms < self.config.target_ms {
            self.rate.scale(1.004) // 8 % a second at 20 messages a second
        } else if now - self.last_decrease > TimeDelta::from_millis(500) {
            self.last_decrease = now;
            self.rate.scale(0.8)
        } else {
            self.rate
        };
        self.rate = self.bounds.clamp(rate);
    }

    fn handle_bounds(&mut self, bounds: &Bounds) {
        self.bounds = *bounds;
        self.rate = bounds.clamp(self.rate);
    }

    /// Starts again: nothing is known about the new route.
    fn handle_route_change(&mut self, setup: &Setup) {
        *self = Self::new(self.config.clone(), setup);
    }
}
