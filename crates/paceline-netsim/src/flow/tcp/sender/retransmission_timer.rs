// SPDX-License-Identifier: MIT OR Apache-2.0
//! The retransmission timer (RFC 6298).
//!
//! Owns the round-trip time estimate, the time at which the timer expires, and the count of its expiries.

use crate::flow::tcp::profile::Profile;
use crate::flow::tcp::rtt_estimator::RttEstimator;
use crate::flow::tcp::scoreboard::{AckSummary, Scoreboard};
use paceline_units::{Time, TimeDelta};

#[derive(Debug)]
pub(super) struct RetransmissionTimer {
    profile: Profile,
    rtt: RttEstimator,
    /// The time at which the retransmission timer expires; [`Time::MAX`] if it is off.
    deadline: Time,
    /// Expiries of the retransmission timer since the last new ACK.
    timeouts: u32,
}

impl RetransmissionTimer {
    pub fn new(profile: Profile) -> Self {
        Self { profile, rtt: RttEstimator::new(profile.rto, profile.rto_max), deadline: Time::MAX, timeouts: 0 }
    }

    /// Resets timer and estimate for a new connection.
    pub fn reset(&mut self) {
        *self = Self::new(self.profile);
    }

    pub fn deadline(&self) -> Time {
        self.deadline
    }

    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub fn start(&mut self, now: Time) {
        self.deadline = now + self.rtt.rto();
    }

    pub fn stop(&mut self) {
        self.deadline = Time::MAX;
    }

    /// Handles the opening of the connection. `round_trip` is that of the SYN, if it is unambiguous.
    pub fn handle_open(&mut self, round_trip: Option<TimeDelta>) {
        self.stop();
        if let Some(sample) = round_trip {
            self.rtt.handle_sample(sample, 0, 0);
        } else {
            self.rtt.handle_lost_syn();
        }
    }

    /// Handles a sent segment. `repeats_first`: it repeats the first unacknowledged segment.
    #[inline]
    pub fn handle_sent(&mut self, now: Time, repeats_first: bool) {
        if repeats_first && self.profile.restart_timer {
            self.start(now);
        }
        if self.deadline == Time::MAX {
            self.start(now); // RFC 6298, rule 5.1
        }
    }

    /// Handles an ACK. Returns the round-trip time of the newest acknowledged segment.
    #[inline]
    pub fn handle_ack(&mut self, now: Time, summary: &AckSummary, scoreboard: &Scoreboard) -> Option<TimeDelta> {
        let round_trip = self.update_rtt(now, summary, scoreboard);
        if summary.acked > 0 {
            self.timeouts = 0;
            // RFC 6298, rules 5.2 and 5.3.
            self.deadline = if scoreboard.flight() == 0 { Time::MAX } else { now + self.rtt.rto() };
        }
        round_trip
    }

    /// Updates the round-trip time estimate and returns the round-trip time of the newest acknowledged segment.
    /// Segments that were sent twice give no sample (Karn's algorithm). The estimate uses the oldest segment, as
    /// timestamps would (RFC 7323, section 4.3), and thus includes the delay of the ACK.
    #[inline]
    fn update_rtt(&mut self, now: Time, summary: &AckSummary, scoreboard: &Scoreboard) -> Option<TimeDelta> {
        let selective = summary.sacked_sent.filter(|_| self.profile.sack_samples);
        let (oldest, newest) = summary.acked_sent.or(selective)?;
        self.rtt.handle_sample(now - oldest, scoreboard.acknowledged(), scoreboard.sent());
        Some(now - newest)
    }

    /// Doubles the timeout after the timer expired.
    pub fn back_off(&mut self) {
        self.rtt.back_off();
    }

    /// Restarts the timer after it expired. Returns whether this was the first time since the last new ACK.
    pub fn restart(&mut self, now: Time) -> bool {
        self.timeouts += 1;
        self.start(now);
        self.timeouts == 1
    }
}
