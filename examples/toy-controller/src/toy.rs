//! A controller of one's own, whole: it keeps the queue it sees in transport-wide feedback below 30 ms.
//!
//! The queue is the one-way delay over the smallest seen so far. Sender and receiver clocks need not agree: the
//! constant between them cancels.

use paceline::{
    Config, Controller, Decision, Entry, Feedback, FeedbackKind, Field, SendHalf, Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, Time, TimeDelta};

/// Its numbers.
#[derive(Clone, Debug)]
pub struct Toy {
    /// Queue to stay below, ms.
    target_ms: f64,
}

/// The registry's line.
pub fn entry() -> Entry {
    Entry::new("toy", "keeps the queue below a target", "an example, from no paper", Toy { target_ms: 30.0 })
}

impl Config for Toy {
    const FIELDS: &'static [Field<Self>] = &[Field {
        name: "target_ms",
        unit: "ms",
        source: "queue to stay below; a round number",
        range: (1.0, 1000.0),
        get: |c| c.target_ms,
        set: |c, v| c.target_ms = v,
    }];
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (&[SignalSpec::series("queue", "ms")], &[]);

    fn build(&self, setup: &Setup) -> Controller {
        let half = Half { config: self.clone(), setup: *setup, rate: setup.start, base: None, cut: Time::ZERO };
        Controller {
            send: Some(Box::new(half)),
            receive: None,
            feedback: FeedbackKind::TransportWide { interval: INTERVAL, longest: INTERVAL },
            ecn: Ecn::NotEct,
        }
    }
}

/// Of feedback.
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);

struct Half {
    config: Toy,
    setup: Setup,
    rate: Rate,
    /// Smallest one-way delay seen, between two clocks that do not agree: ns.
    base: Option<i64>,
    /// When the rate was cut last.
    cut: Time,
}

impl SendHalf for Half {
    fn handle_feedback(&mut self, now: Time, feedback: &Feedback<'_>, signals: &mut Signals) {
        let delays = feedback.packets.iter().filter_map(|p| Some(p.arrival?.as_nanos() - p.sent.as_nanos()));
        let Some(delay) = delays.min() else { return };
        let base = *self.base.insert(self.base.map_or(delay, |b| b.min(delay)));
        let queue_ms = (delay - base) as f64 / 1e6;
        signals.emit(0, queue_ms);
        let rate = if queue_ms < self.config.target_ms {
            self.rate.scale(1.004) // 8 % a second at 20 messages a second
        } else if now - self.cut > TimeDelta::from_millis(500) {
            self.cut = now;
            self.rate.scale(0.8)
        } else {
            self.rate
        };
        self.rate = rate.max(self.setup.min).min(self.setup.max);
    }

    fn decision(&self) -> Decision {
        Decision { target: self.rate, pacing: self.rate.scale(1.5), window: None, padding: self.rate }
    }
}
