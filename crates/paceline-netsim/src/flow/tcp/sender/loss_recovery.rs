// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss recovery: which segments are lost, and which segment is sent next (RFC 6675, RFC 6937).
//!
//! Owns the scoreboard, the phase of the recovery, and the count of duplicate ACKs. The sender passes in the congestion window
//! and sets the window that is returned.

use crate::flow::tcp::TcpConfig;
use crate::flow::tcp::congestion::LossState;
use crate::flow::tcp::recovery::{Progress, Recovery};
use crate::flow::tcp::scoreboard::{AckSummary, DUP_THRESH, Scoreboard};
use crate::flow::tcp::segment::Segment;
use paceline_units::{DataSize, Time};

#[derive(Clone, Copy, Debug)]
enum RecoveryPhase {
    /// No loss is known.
    Open,
    /// The window falls after a mark, with [`WindowReduction::Proportional`](crate::flow::tcp::WindowReduction::Proportional); no
    /// loss is known (Linux: `TCP_CA_CWR`).
    Reduction(Recovery),
    /// Loss recovery (RFC 6675).
    Recovery(Recovery),
    /// After a timeout, until all segments below `point` are acknowledged.
    Loss { point: u64 },
}

impl RecoveryPhase {
    /// Returns whether no loss is known.
    fn is_lossless(&self) -> bool {
        matches!(self, Self::Open | Self::Reduction(_))
    }
}

#[derive(Debug)]
pub(super) struct AckEffect {
    pub summary: AckSummary,
    /// The ACK ended a recovery, or the reduction after a mark. The window becomes the threshold.
    pub ends_reduction: bool,
    /// A loss was detected, and recovery must [begin](LossRecovery::begin_recovery).
    pub shows_loss: bool,
}

#[derive(Debug)]
pub(super) struct LossRecovery {
    config: TcpConfig,
    scoreboard: Scoreboard,
    phase: RecoveryPhase,
    /// The first missing segment is sent even if the window is full.
    fast_retransmit: bool,
    dup_acks: usize,
    /// Bytes sent on duplicate ACKs, which are excluded from FlightSize (RFC 5681, section 3.2).
    limited_transmit: u64,
}

impl LossRecovery {
    pub fn new(config: TcpConfig) -> Self {
        let detect = config.profile.detect_lost_retransmissions;
        Self {
            config,
            scoreboard: Scoreboard::new(config.segment.as_bytes(), u64::MAX, detect),
            phase: RecoveryPhase::Open,
            fast_retransmit: false,
            dup_acks: 0,
            limited_transmit: 0,
        }
    }

    /// Resets the state for a new connection with `total` bytes of data.
    pub fn reset(&mut self, total: u64) {
        self.scoreboard.reset(total);
        self.begin_phase(RecoveryPhase::Open);
    }

    /// Begins a phase in which nothing is counted yet.
    fn begin_phase(&mut self, phase: RecoveryPhase) {
        self.phase = phase;
        self.fast_retransmit = false;
        self.dup_acks = 0;
        self.limited_transmit = 0;
    }

    pub fn scoreboard(&self) -> &Scoreboard {
        &self.scoreboard
    }

    /// Returns FlightSize for the new threshold, without the bytes of limited transmit.
    pub fn flight_without_limited_transmit(&self) -> DataSize {
        let flight = self.scoreboard.flight();
        DataSize::from_bytes(flight - self.limited_transmit.min(flight))
    }

    /// Returns whether no loss is known and the window does not fall after a mark.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, RecoveryPhase::Open)
    }

    pub fn loss_state(&self) -> LossState {
        match self.phase {
            RecoveryPhase::Open | RecoveryPhase::Reduction(_) => LossState::Open,
            RecoveryPhase::Recovery(_) => LossState::Recovery,
            RecoveryPhase::Loss { .. } => LossState::Loss,
        }
    }

    /// Returns the index of the state in the signal `state`.
    pub fn signal_state(&self) -> u8 {
        match self.phase {
            RecoveryPhase::Open => self.scoreboard.has_holes() as u8,
            RecoveryPhase::Recovery(_) => 2,
            RecoveryPhase::Loss { .. } => 3,
            RecoveryPhase::Reduction(_) => 4,
        }
    }

    /// Returns whether the congestion window has room for a full segment.
    #[inline]
    pub fn window_is_open(&self, cwnd: DataSize) -> bool {
        self.scoreboard.pipe() + self.config.segment.as_bytes() <= cwnd.as_bytes()
    }

    /// Returns whether a segment may be sent, if there is one.
    pub fn may_send(&self, cwnd: DataSize) -> bool {
        self.fast_retransmit || self.window_is_open(cwnd)
    }

    /// Returns whether nothing is sent for lack of data. `new_data`: new data may be sent.
    pub fn lacks_data(&mut self, cwnd: DataSize, new_data: bool) -> bool {
        let no_data = self.scoreboard.next_new().is_none() || !new_data;
        no_data && self.window_is_open(cwnd) && self.scoreboard.next_lost().is_none()
    }

    /// Handles an ACK: updates the scoreboard, ends the phase if it is complete, and detects losses.
    #[inline]
    pub fn handle_ack(&mut self, segment: &Segment) -> AckEffect {
        let acknowledged = segment.acknowledgment.saturating_sub(1);
        let summary = self.scoreboard.handle_ack(
            acknowledged,
            segment.sack.iter().map(|(start, end)| (start.saturating_sub(1), end.saturating_sub(1))),
        );
        if summary.acked > 0 {
            self.dup_acks = 0;
            self.limited_transmit = 0;
        }
        let base = self.scoreboard.base();
        let (is_complete, ends_reduction) = match self.phase {
            RecoveryPhase::Open => (false, false),
            // Not before the segment with CWR is acknowledged, if there is one (Linux: `tcp_fastretrans_alert`).
            RecoveryPhase::Reduction(reduction) => (base > reduction.point || self.scoreboard.flight() == 0, true),
            RecoveryPhase::Recovery(recovery) => (base >= recovery.point, true),
            RecoveryPhase::Loss { point } => (base >= point, false),
        };
        if is_complete {
            self.phase = RecoveryPhase::Open;
        }
        let mut shows_loss = false;
        if summary.sacked > 0 && self.phase.is_lossless() {
            // A duplicate ACK (RFC 6675, section 2).
            self.dup_acks += 1;
            shows_loss = self.dup_acks >= DUP_THRESH || self.scoreboard.first_is_lost();
        }
        AckEffect { summary, ends_reduction: is_complete && ends_reduction, shows_loss }
    }

    /// Returns the window after an ACK in recovery, or while the window falls after a mark; `None` in other phases.
    #[inline]
    pub fn reduced_window(&mut self, summary: &AckSummary, ssthresh: DataSize) -> Option<DataSize> {
        let progress = || Progress {
            delivered: summary.delivered,
            good: summary.acked > 0 && summary.lost == 0,
            pipe: self.scoreboard.pipe(),
            ssthresh: ssthresh.as_bytes(),
        };
        let bytes = match &mut self.phase {
            RecoveryPhase::Recovery(recovery) => recovery.window(progress()),
            RecoveryPhase::Reduction(reduction) => reduction.window_after_mark(progress()),
            RecoveryPhase::Open | RecoveryPhase::Loss { .. } => return None,
        };
        Some(DataSize::from_bytes(bytes))
    }

    /// Begins to reduce the window `cwnd` after a mark, over the next round trip.
    pub fn begin_reduction(&mut self, cwnd: DataSize) {
        let (rule, segment) = (self.config.profile.reduction, self.config.segment.as_bytes());
        self.phase = RecoveryPhase::Reduction(Recovery::new(rule, segment, self.scoreboard.end(), cwnd.as_bytes()));
    }

    /// Enters loss recovery (RFC 6675, section 5, step 4). `is_covered`: the window was reduced before for this window of data.
    pub fn begin_recovery(&mut self, is_covered: bool) {
        self.scoreboard.begin_recovery();
        let (point, flight) = (self.scoreboard.end(), self.scoreboard.flight());
        let (rule, segment) = (self.config.profile.reduction, self.config.segment.as_bytes());
        self.phase = RecoveryPhase::Recovery(match self.phase {
            RecoveryPhase::Reduction(reduction) if is_covered => reduction.recover(point),
            _ => Recovery::new(rule, segment, point, flight),
        });
        self.fast_retransmit = true;
    }

    pub fn handle_timeout(&mut self) {
        self.begin_phase(RecoveryPhase::Loss { point: self.scoreboard.end() });
        self.scoreboard.handle_timeout(!self.config.profile.keep_sack_on_timeout);
    }

    /// Records that a segment is sent, and returns its number and whether it is new data. Returns `None` if no segment may be sent
    /// now. `new_data`: new data may be sent.
    #[inline]
    pub fn send(&mut self, now: Time, cwnd: DataSize, new_data: bool) -> Option<(u64, bool)> {
        let (number, rescue) = self.next_segment(cwnd, new_data)?;
        let (payload, is_new) = (self.scoreboard.size(number), number == self.scoreboard.end());
        if is_new {
            self.scoreboard.handle_sent(now);
            if self.dup_acks > 0 && self.phase.is_lossless() {
                self.limited_transmit += payload;
            }
        } else {
            self.scoreboard.handle_retransmitted(now, number, rescue);
        }
        if let RecoveryPhase::Reduction(recovery) | RecoveryPhase::Recovery(recovery) = &mut self.phase {
            recovery.handle_sent(payload);
        }
        Some((number, is_new))
    }

    /// Returns the number of the segment that may be sent now (RFC 6675, section 5, step C, and `NextSeg`), and whether it is a
    /// rescue retransmission.
    fn next_segment(&mut self, cwnd: DataSize, new_data: bool) -> Option<(u64, bool)> {
        if core::mem::take(&mut self.fast_retransmit)
            && let Some(number) = self.scoreboard.first_unsacked()
        {
            if let RecoveryPhase::Recovery(recovery) = &mut self.phase {
                recovery.rescue = number + 1;
            }
            return Some((number, false));
        }
        if !self.window_is_open(cwnd) {
            return None;
        }
        if self.phase.is_lossless() {
            return self.next_new(new_data).map(|number| (number, false));
        }
        if let Some(number) = self.scoreboard.next_lost() {
            return Some((number, false));
        }
        if let Some(number) = self.next_new(new_data) {
            return Some((number, false));
        }
        let RecoveryPhase::Recovery(recovery) = &mut self.phase else { return None };
        if let Some(number) = self.scoreboard.next_unsacked() {
            return Some((number, false));
        }
        if self.scoreboard.base() > recovery.rescue
            && let Some(number) = self.scoreboard.last_unsacked()
        {
            recovery.rescue = recovery.point;
            return Some((number, true));
        }
        None
    }

    /// Returns the next segment of new data, if there is data and the receive window allows it.
    #[inline]
    fn next_new(&self, new_data: bool) -> Option<u64> {
        let number = self.scoreboard.next_new().filter(|_| new_data)?;
        let flight = self.scoreboard.flight() + self.scoreboard.size(number);
        (flight <= self.config.window().as_bytes()).then_some(number)
    }

    /// Ends the phase when the connection closes.
    pub fn close(&mut self) {
        self.phase = RecoveryPhase::Open;
    }
}
