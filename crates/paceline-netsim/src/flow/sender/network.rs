// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the network and of the limits during a call.

use super::MediaSender;
use paceline::{Bounds, Setup};
use paceline_units::{Rate, Time, TimeDelta};

impl MediaSender {
    /// Sets the limits of the target, which apply at once. Probe clusters above the new maximum are given up.
    pub fn set_bounds(&mut self, now: Time, bounds: &Bounds) {
        self.core.set_bounds(now, bounds);
        self.finish(now);
    }

    /// Handles a change of the network route. The controller starts again with this setup, whose limits also bound the
    /// target. Reports on packets that were sent before are ignored, also by REMB and other messages behind them, and so are
    /// round-trip times of sender reports that were sent before. A REMB without a report has no time, so it counts. The
    /// round-trip time is unknown, and there is no loss, FEC or retransmission rate. Packets in the pacer, sequence numbers
    /// and streams stay.
    pub fn handle_route_change(&mut self, now: Time, setup: &Setup) {
        self.repair.restart(now);
        self.core.handle_route_change(now, setup);
        self.follow_core(now);
        self.allocate_rates(now);
        self.update_wake();
    }

    /// Sets whether there is a network. While there is none, nothing is sent: packets in the pacer wait, at most for the limit
    /// of the pacer, and new frames are dropped, because they would be too old afterwards.
    pub fn set_available(&mut self, now: Time, available: bool) {
        if self.core.is_available() == available {
            return;
        }
        self.reports.set_available(now, available);
        self.core.set_available(now, available);
        self.finish(now);
    }

    /// Couples the flow with others (RFC 8699), if its controller supports it. From now on, after each call of a `handle_*` or
    /// `set_*` function and after [`poll_transmit`](Self::poll_transmit), the program must pass on a
    /// [`calculated_rate`](Self::calculated_rate). Returns the present rate of the controller.
    pub fn couple(&mut self) -> Option<Rate> {
        self.core.couple()
    }

    /// Ends the coupling. The controller keeps its rate.
    pub fn uncouple(&mut self, now: Time) {
        self.core.uncouple(now);
        self.finish(now);
    }

    /// Returns the rate that the controller of a coupled flow has calculated since its last share, if there is one. The
    /// decision of the controller waits for [`set_coupled_rate`](Self::set_coupled_rate).
    pub fn calculated_rate(&self) -> Option<Rate> {
        self.core.calculated_rate()
    }

    /// Sets the flow's share. Returns the rate that the controller uses: the share within its limits.
    pub fn set_coupled_rate(&mut self, now: Time, share: Rate) -> Rate {
        let used = self.core.set_coupled_rate(now, share);
        self.finish(now);
        used
    }

    /// Returns the highest rate that the streams can use now, headers included; zero while all pause.
    pub fn desired_rate(&self) -> Rate {
        self.streams.iter().map(|stream| stream.limits().1).sum()
    }

    /// Returns the last round-trip time, or the default before the first one.
    pub fn round_trip_time(&self) -> TimeDelta {
        self.core.round_trip_time()
    }
}
