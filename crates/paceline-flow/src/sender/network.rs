//! Changes of the network and of the limits during a call.

use super::MediaSender;
use super::prober::Prober;
use paceline::{Bounds, Event, FecDemand, Setup, Window};
use paceline_units::{DataSize, Rate, Time};
use paceline_wire::ntp;

impl MediaSender {
    /// Sets the limits of the target, which apply at once. Probe clusters above the new maximum are given up.
    pub fn set_bounds(&mut self, now: Time, bounds: &Bounds) {
        self.prober.drop_above(bounds.max);
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::Bounds(bounds), &mut self.signals);
        }
        self.follow_half(now);
    }

    /// Handles a change of the network route. The controller starts again with this setup, whose limits also bound the
    /// target. Reports on packets that were sent before are ignored, also by REMB and other messages behind them, and so are
    /// round-trip times of sender reports that were sent before. A REMB without a report has no time, so it counts. The
    /// round-trip time is unknown, and there is no loss, FEC or retransmission rate. Packets in the pacer, sequence numbers
    /// and streams stay.
    pub fn handle_route_change(&mut self, now: Time, setup: &Setup) {
        if let Some(history) = &mut self.history {
            history.restart();
        }
        (self.prober, self.rtt, self.unreported_loss) = (Prober::default(), None, (0, 0));
        self.reader.restart();
        self.route_began = now;
        let last_sr = ntp::middle(self.ntp(now));
        self.streams.iter_mut().for_each(|stream| stream.ignore_earlier_reports(last_sr));
        (self.resent, self.resend_rate) = ((now, DataSize::ZERO), Rate::ZERO);
        self.budget.restart(now);
        self.fec = self.fec.as_ref().map(|_| FecDemand::new());
        self.restart_application_limit(now);
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::RouteChange(setup), &mut self.signals);
            half.handle_event(now, &Event::Bounds(&setup.bounds()), &mut self.signals);
            if !self.available {
                half.handle_event(now, &Event::Availability(false), &mut self.signals);
            }
        }
        self.follow_half(now);
        self.allocate_rates(now);
    }

    /// Sets whether there is a network. While there is none, nothing is sent: packets in the pacer wait, at most for the limit
    /// of the pacer, and new frames are dropped, because they would be too old afterwards.
    pub fn set_available(&mut self, now: Time, available: bool) {
        if self.available == available {
            return;
        }
        self.available = available;
        self.update_window();
        self.restart_application_limit(now);
        (self.next_report, self.next_reported) = (if available { now } else { Time::MAX }, 0);
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::Availability(available), &mut self.signals);
        }
        self.follow_half(now);
    }

    /// Sets the window in force. Without a network it is closed.
    pub(super) fn update_window(&mut self) {
        let closed = Some(Window::Outstanding(DataSize::ZERO));
        self.window = if self.available { self.decision.window } else { closed };
    }

    /// Follows the send half after a call outside the packet path.
    pub(super) fn follow_half(&mut self, now: Time) {
        self.update_decision(now);
        self.poll_probes(now);
        self.update_wake();
    }
}
