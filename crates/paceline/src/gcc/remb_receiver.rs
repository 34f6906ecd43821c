// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receive half of the generations that send REMBs from packet arrivals:
//!
//! ```text
//! packets -> groups -> estimator: arrival filter -> over-use detector -> rate controller -> REMB
//!               '----> R -------------------------------------------------^
//! ```
//!
//! The config of a generation supplies the way to form groups, the estimator, and the REMB interval and rule.

use super::arrivals::{Arrivals, Grouping};
use super::{RembRule, RembTimer};
use crate::blocks::{GroupDelta, RateState, Usage};
use crate::{Arrival, Bounds, Message, ReceiveHalf, Setup, Signals};
use core::fmt::Debug;
use paceline_units::{Rate, RemoteTime};

/// Derives a rate from groups of packets.
pub(super) trait Estimator: Clone + Debug + Send + 'static {
    /// Restarts after a pause.
    fn restart(&mut self);
    /// Sets the lowest rate, which applies at once.
    fn set_min(&mut self, min: Rate);
    fn usage(&self) -> Usage;
    fn state(&self) -> RateState;
    /// Handles a complete group.
    fn handle_group(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals);
    /// Returns whether the rate is to be updated now. `before` is the state of the detector before the current packet.
    fn is_due(&self, now: RemoteTime, before: Usage, incoming: impl FnOnce() -> Option<Rate>) -> bool;
    /// Updates the rate. Returns `A_r`, if there is an estimate.
    fn update(&mut self, now: RemoteTime, incoming: Option<Rate>, signals: &mut Signals) -> Option<Rate>;
}

/// The parts of a receiver before its first packet.
pub(super) trait RembParts: Clone + Debug + Send + 'static {
    type Groups: Grouping;
    type Estimator: Estimator;
    fn arrivals(&self) -> Arrivals<Self::Groups>;
    fn estimator(&self, setup: &Setup) -> Self::Estimator;
    fn timer(&self) -> RembTimer;
    fn rule(&self) -> RembRule {
        RembRule::Always
    }
}

#[derive(Clone, Debug)]
pub(super) struct RembReceiver<C: RembParts> {
    config: C,
    arrivals: Arrivals<C::Groups>,
    estimator: C::Estimator,
    timer: RembTimer,
    rule: RembRule,
    pending: Option<Rate>,
}

impl<C: RembParts> RembReceiver<C> {
    pub fn new(config: &C, setup: &Setup) -> Self {
        let (arrivals, estimator) = (config.arrivals(), config.estimator(setup));
        let (timer, rule) = (config.timer(), config.rule());
        Self { config: config.clone(), arrivals, estimator, timer, rule, pending: None }
    }
}

impl<C: RembParts> ReceiveHalf for RembReceiver<C> {
    fn handle_bounds(&mut self, _: RemoteTime, bounds: &Bounds) {
        self.estimator.set_min(bounds.min);
    }

    fn handle_route_change(&mut self, _: RemoteTime, setup: &Setup) {
        *self = Self::new(&self.config, setup);
    }

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
    fn message_kind(&self) -> crate::MessageKind {
        crate::MessageKind::Remb
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Remb)
    }
}
