// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rates for the encoder of one connection, shared between quinn and the program.

use crate::PacelineController;
use paceline_units::{Rate, TimeDelta};
use quinn_proto::congestion::Controller;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The rates that a connection allows. All of them include QUIC, UDP and IP headers, 28 bytes for the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The rate that the connection should send in total: all streams, datagrams and retransmissions.
    pub rate: Rate,
    /// A rate up to `rate` that changes more slowly, for choices that are costly to revert, such as a resolution.
    pub stable_rate: Rate,
    /// The pacing rate that the controller would use. quinn has its own pacer, whose rate follows from the window.
    pub pacing: Rate,
    /// Whether the application limits the connection: it has sent less than 80 % of `rate` for some time. `rate` then grows slowly
    /// or not at all.
    pub application_limited: bool,
    /// The smoothed round-trip time of quinn; 333 ms before the first sample, by quinn's default.
    pub rtt: TimeDelta,
    /// When these values were last computed. Without ACKs they become old. A program should not raise a rate on old values.
    pub updated: Instant,
}

/// A handle with the [`Target`] of one connection. It is cheap to clone, and any thread may read it.
#[derive(Clone, Debug)]
pub struct Encoder {
    target: Arc<Mutex<Target>>,
}

impl Encoder {
    /// Returns the handle of a connection by a copy of its controller (`congestion_state` of `quinn::Connection`, which copies
    /// the controller; call it once). `None` if the connection has another controller.
    pub fn of(state: Box<dyn Controller>) -> Option<Self> {
        let controller = state.into_any().downcast::<PacelineController>().ok()?;
        Some(controller.encoder())
    }

    /// Returns the current rates. It locks for the time of a copy.
    pub fn target(&self) -> Target {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(target: Target) -> Self {
        Self { target: Arc::new(Mutex::new(target)) }
    }

    pub(crate) fn publish(&self, target: Target) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }
}
