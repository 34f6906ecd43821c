// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half and its signals.

use crate::{Event, Failure, Guard, ProbeCluster, SendHalf, Signals};
use paceline_units::{Time, TimeDelta};

#[derive(Clone, Debug)]
pub(super) struct Half {
    /// `None` without a send half, and after its failure.
    half: Option<Guard>,
    pub signals: Signals,
}

impl Half {
    pub fn new(half: Option<Guard>, signals: Signals) -> Self {
        Self { half, signals }
    }

    #[inline]
    pub fn get(&self) -> Option<&Guard> {
        self.half.as_ref()
    }

    /// Returns the time at which the half gets [`Event::Timeout`]; [`Time::MAX`] for never.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.half.as_ref().and_then(|half| half.poll_timeout()).unwrap_or(Time::MAX)
    }

    /// Returns whether the half has been due for `late`.
    #[inline]
    pub fn is_due(&self, now: Time, late: TimeDelta) -> bool {
        self.half.as_ref().and_then(|half| half.poll_timeout()).is_some_and(|due| due + late <= now)
    }

    /// Passes an event to the half.
    #[inline]
    pub fn handle(&mut self, now: Time, event: &Event<'_>) {
        if let Some(half) = &mut self.half {
            half.handle_event(now, event, &mut self.signals);
        }
    }

    pub fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        self.half.as_mut()?.poll_probe(now)
    }

    /// Drops the half if it failed, and returns why.
    #[inline]
    pub fn poll_failure(&mut self) -> Option<Failure> {
        let failure = self.half.as_mut()?.poll_failure()?;
        self.half = None;
        Some(failure)
    }
}
