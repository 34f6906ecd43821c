// SPDX-License-Identifier: MIT OR Apache-2.0
//! Halves that fail during a run, for simulations and for runs in real time.

use paceline::{Arrival, Decision, Event, Failure, Message, ReceiveHalf, SendHalf, Signals};
use paceline_units::{Rate, RemoteTime, Time};

#[derive(Clone, Debug)]
pub struct FailingSender {
    pub rate: Rate,
    pub due: Option<Time>,
    pub failure: Option<Failure>,
}

impl SendHalf for FailingSender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, _: &mut Signals) {
        if matches!(event, Event::Timeout) && self.due.take_if(|due| *due <= now).is_some() {
            self.failure = Some(Failure::new("ran out of ideas").with_source(std::fmt::Error));
        }
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }
    fn decision(&self) -> Decision {
        Decision::new(self.rate)
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

/// A receive half that fails after some packets.
#[derive(Clone, Debug)]
pub struct FailingReceiver {
    /// Packets up to the failure.
    pub arrivals: u32,
    pub failure: Option<Failure>,
}

impl ReceiveHalf for FailingReceiver {
    fn handle_arrival(&mut self, _: RemoteTime, _: &Arrival, _: &mut Signals) {
        // In real time packets may follow before the run ends.
        self.arrivals = self.arrivals.saturating_sub(1);
        if self.arrivals == 0 {
            self.failure.get_or_insert_with(|| Failure::new("lost count"));
        }
    }
    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.failure.as_ref().map(|_| RemoteTime::ZERO)
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        None
    }
    fn poll_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}
