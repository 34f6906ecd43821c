//! The receive half of the generations that send REMBs from packet arrivals:
//!
//! ```text
//! packets -> groups -> estimator: arrival filter -> over-use detector -> rate controller -> REMB
//!               '----> R -------------------------------------------------^
//! ```
//!
//! A generation supplies the way to form groups, the estimator, and the REMB interval and rule.

use super::arrivals::{Arrivals, Grouping};
use super::{RateState, RembRule, RembTimer};
use crate::blocks::{GroupDelta, Usage};
use crate::{Arrival, Message, ReceiveHalf, Signals};
use paceline_units::{Rate, RemoteTime};

/// Derives a rate from groups of packets.
pub(super) trait Estimator: Send {
    /// Restarts after a pause.
    fn restart(&mut self);
    fn usage(&self) -> Usage;
    fn state(&self) -> RateState;
    /// Handles a complete group.
    fn handle_group(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals);
    /// Returns whether the rate is to be updated now. `before` is the state of the detector before the current packet.
    fn is_due(&self, now: RemoteTime, before: Usage, incoming: impl FnOnce() -> Option<Rate>) -> bool;
    /// Updates the rate. Returns `A_r`, if there is an estimate.
    fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate>;
}

pub(super) struct RembReceiver<G, E> {
    arrivals: Arrivals<G>,
    estimator: E,
    timer: RembTimer,
    rule: RembRule,
    pending: Option<Rate>,
}

impl<G: Grouping, E: Estimator> RembReceiver<G, E> {
    pub fn new(arrivals: Arrivals<G>, estimator: E, timer: RembTimer, rule: RembRule) -> Self {
        Self { arrivals, estimator, timer, rule, pending: None }
    }
}

impl<G: Grouping, E: Estimator> ReceiveHalf for RembReceiver<G, E> {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        let Some(step) = self.arrivals.handle_arrival(now, arrival) else { return };
        if step.after_pause {
            self.estimator.restart();
        }
        let before = self.estimator.usage();
        if let Some(delta) = step.delta {
            self.estimator.handle_group(now, &delta, signals);
        }
        let arrivals = &mut self.arrivals;
        if self.estimator.is_due(now, before, || arrivals.incoming(now))
            && let Some(rate) = self.estimator.update(now, arrivals.incoming(now), signals)
            && let Some(before) = self.timer.take_due(now, rate)
            && self.rule.sends(before, rate, self.estimator.state())
        {
            self.pending = Some(rate);
        }
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Remb)
    }
}
