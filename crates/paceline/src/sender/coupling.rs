// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coupled congestion control (RFC 8699): a new rate of the controller waits for the flow's share of the rate of its group.

use super::Sender;
use crate::{Event, SendHalf};
use paceline_units::{Rate, Time};

impl<T> Sender<T> {
    /// Couples the flow, if its controller supports it. From now on, after each call that may change the decision, the program
    /// must pass on a [`calculated_rate`](Self::calculated_rate). Returns the present rate of the controller.
    pub fn couple(&mut self) -> Option<Rate> {
        self.coupled = self.half.get().and_then(|half| half.calculated_rate());
        self.coupled
    }

    /// Ends the coupling. The controller keeps its rate.
    pub fn uncouple(&mut self, now: Time) {
        let now = self.advance(now);
        self.coupled = None;
        self.follow(now);
        self.update_wake();
    }

    /// Returns the rate that the controller of a coupled flow has calculated since its last share, if there is one. The
    /// decision of the controller waits for [`set_coupled_rate`](Self::set_coupled_rate).
    pub fn calculated_rate(&self) -> Option<Rate> {
        let before = self.coupled?;
        self.half.get()?.calculated_rate().filter(|rate| *rate != before)
    }

    /// Sets the flow's share. Returns the rate that the controller uses: the share within its limits.
    pub fn set_coupled_rate(&mut self, now: Time, share: Rate) -> Rate {
        let now = self.advance(now);
        if self.half.get().is_some_and(|half| half.calculated_rate() != Some(share)) {
            self.half.handle(now, &Event::CoupledRate(share));
        }
        let used = self.couple().unwrap_or(share);
        self.follow(now);
        self.update_wake();
        used
    }

    /// Returns the highest rate that the streams can use now, headers included; zero while all pause.
    pub fn desired_rate(&self) -> Rate {
        self.streams.desired_rate()
    }
}
