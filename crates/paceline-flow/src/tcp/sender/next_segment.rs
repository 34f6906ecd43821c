//! Selection of the next segment to send.

use super::{RecoveryPhase, TcpSender};
use paceline_units::Time;

impl TcpSender {
    /// Returns the number of the segment that may be sent now (RFC 6675, section 5, step C, and `NextSeg`).
    pub(super) fn next_segment(&mut self, now: Time) -> Option<u64> {
        if core::mem::take(&mut self.fast_retransmit)
            && let Some(number) = self.scoreboard.first_unsacked()
        {
            if let RecoveryPhase::Recovery(recovery) = &mut self.phase {
                recovery.rescue = number + 1;
            }
            return self.retransmit(now, number, false);
        }
        if !self.window_is_open() {
            return None;
        }
        if self.phase.is_lossless() {
            return self.next_new(now);
        }
        if let Some(number) = self.scoreboard.next_lost() {
            return self.retransmit(now, number, false);
        }
        if let Some(number) = self.next_new(now) {
            return Some(number);
        }
        let RecoveryPhase::Recovery(recovery) = &mut self.phase else { return None };
        if let Some(number) = self.scoreboard.next_unsacked() {
            return self.retransmit(now, number, false);
        }
        if self.scoreboard.base() > recovery.rescue
            && let Some(number) = self.scoreboard.last_unsacked()
        {
            recovery.rescue = recovery.point;
            return self.retransmit(now, number, true);
        }
        None
    }

    /// Returns whether the congestion window has room for a full segment.
    #[inline]
    pub(super) fn window_is_open(&self) -> bool {
        self.scoreboard.pipe() + self.segment <= self.window.cwnd.as_bytes()
    }

    fn retransmit(&mut self, now: Time, number: u64, rescue: bool) -> Option<u64> {
        self.scoreboard.handle_retransmitted(now, number, rescue);
        if self.config.profile.restart_timer && number == self.scoreboard.base() {
            self.deadline = now + self.rtt.rto();
        }
        Some(number)
    }

    /// Returns the next segment of new data, if there is data and the receive window allows it.
    #[inline]
    fn next_new(&self, now: Time) -> Option<u64> {
        let number = self.scoreboard.next_new().filter(|_| now < self.stop)?;
        let flight = self.scoreboard.flight() + self.scoreboard.size(number);
        (flight <= self.config.window().as_bytes()).then_some(number)
    }
}
