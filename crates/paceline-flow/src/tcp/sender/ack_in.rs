//! Incoming ACKs: round-trip times, loss detection and the congestion window.

use super::{RecoveryPhase, TcpSender};
use crate::tcp::TcpEcn;
use crate::tcp::congestion::{Ack, MarkSample};
use crate::tcp::profile::WindowReduction;
use crate::tcp::recovery::{Progress, Recovery};
use crate::tcp::scoreboard::{AckSummary, DUP_THRESH};
use crate::tcp::segment::Segment;
use paceline_units::{DataSize, Time, TimeDelta};

impl TcpSender {
    pub(super) fn handle_ack(&mut self, now: Time, segment: &Segment) {
        let pipe_before = self.scoreboard.pipe();
        let cwnd_limited = pipe_before + self.segment > self.window.cwnd.as_bytes();
        let acknowledged = segment.acknowledgment.saturating_sub(1);
        let summary = self.scoreboard.handle_ack(
            acknowledged,
            segment.sack.iter().map(|(start, end)| (start.saturating_sub(1), end.saturating_sub(1))),
        );
        let newest = self.update_rtt(now, &summary);
        if summary.acked > 0 {
            self.dup_acks = 0;
            self.limited_transmit = 0;
            self.timeouts = 0;
            // RFC 6298, rules 5.2 and 5.3.
            self.deadline = if self.scoreboard.flight() == 0 { Time::MAX } else { now + self.rtt.rto() };
        }
        let mut grows = summary.acked > 0;
        match self.phase {
            RecoveryPhase::Recovery(recovery) if self.scoreboard.base() >= recovery.point => {
                if self.pacing.is_none() {
                    self.window.cwnd = self.window.ssthresh;
                }
                self.phase = RecoveryPhase::Open;
                grows = false;
            }
            // Not before the segment with CWR is acknowledged, if there is one (Linux: `tcp_fastretrans_alert`).
            RecoveryPhase::Reduction(reduction)
                if self.scoreboard.base() > reduction.point || self.scoreboard.flight() == 0 =>
            {
                self.window.cwnd = self.window.ssthresh;
                self.phase = RecoveryPhase::Open;
                grows = false;
            }
            RecoveryPhase::Loss { point } if self.scoreboard.base() >= point => self.phase = RecoveryPhase::Open,
            _ => {}
        }
        if summary.sacked > 0 && self.phase.is_lossless() {
            // A duplicate ACK (RFC 6675, section 2).
            self.dup_acks += 1;
            if self.dup_acks >= DUP_THRESH || self.scoreboard.first_is_lost() {
                self.enter_recovery();
            }
        }
        grows &= !self.handle_echo(now, segment, summary.delivered);
        if self.pacing.is_some() {
            self.handle_rate_sample(now, &summary, newest, pipe_before);
        } else if let Some(cwnd) = self.reduced_window(&summary) {
            self.window.cwnd = cwnd;
        } else if grows {
            let bytes = DataSize::from_bytes;
            let ack = Ack {
                now,
                acked: bytes(summary.delivered),
                acknowledged: bytes(self.scoreboard.offset(self.scoreboard.base())),
                sent: bytes(self.scoreboard.offset(self.scoreboard.end())),
                round_trip: newest,
                srtt: self.rtt.srtt().unwrap_or(self.rtt.rto()),
                cwnd_limited,
            };
            self.congestion.handle_ack(&ack, &mut self.window);
        }
        if self.scoreboard.is_done() {
            self.close(now);
        }
    }

    /// Returns the window after an ACK in recovery, or while the window falls after a mark; `None` in other phases.
    #[inline]
    fn reduced_window(&mut self, summary: &AckSummary) -> Option<DataSize> {
        let progress = || Progress {
            delivered: summary.delivered,
            good: summary.acked > 0 && summary.lost == 0,
            pipe: self.scoreboard.pipe(),
            ssthresh: self.window.ssthresh.as_bytes(),
        };
        let bytes = match &mut self.phase {
            RecoveryPhase::Recovery(recovery) => recovery.window(progress()),
            RecoveryPhase::Reduction(reduction) => reduction.window_after_mark(progress()),
            RecoveryPhase::Open | RecoveryPhase::Loss { .. } => return None,
        };
        Some(DataSize::from_bytes(bytes))
    }

    /// Handles the ECN echo of an ACK that delivered this many bytes. Returns whether the window must not grow.
    fn handle_echo(&mut self, now: Time, segment: &Segment, delivered: u64) -> bool {
        let (open, bytes) = (matches!(self.phase, RecoveryPhase::Open), DataSize::from_bytes);
        match self.config.ecn {
            TcpEcn::Off => false,
            TcpEcn::Classic | TcpEcn::Alternative => {
                if open && self.marks.reacts(segment.ece, self.scoreboard.base()) {
                    let flight = self.flight_without_limited_transmit();
                    let alternative = self.config.ecn == TcpEcn::Alternative;
                    let cwnd = self.window.cwnd.as_bytes();
                    self.congestion.handle_mark(flight, &mut self.window, alternative);
                    self.reduce_after_mark(cwnd);
                }
                segment.ece
            }
            TcpEcn::Accurate | TcpEcn::L4s => {
                let marked = self.marks.newly_marked(segment);
                let sample = MarkSample {
                    now,
                    acked: bytes(delivered),
                    marked,
                    acknowledged: bytes(self.scoreboard.offset(self.scoreboard.base())),
                    sent: bytes(self.scoreboard.offset(self.scoreboard.end())),
                    srtt: self.rtt.srtt().unwrap_or(self.rtt.rto()),
                    open,
                };
                self.congestion.handle_marks(&sample, &mut self.window);
                marked > DataSize::ZERO
            }
        }
    }

    /// Updates the round-trip time estimate and returns the round-trip time of the newest acknowledged segment.
    /// Segments that were sent twice give no sample (Karn's algorithm). The estimate uses the oldest segment, as
    /// timestamps would (RFC 7323, section 4.3), and thus includes the delay of the ACK.
    fn update_rtt(&mut self, now: Time, summary: &AckSummary) -> Option<TimeDelta> {
        let selective = summary.sacked_sent.filter(|_| self.config.profile.sack_samples);
        let (oldest, newest) = summary.acked_sent.or(selective)?;
        let next = self.scoreboard.offset(self.scoreboard.end());
        self.rtt.handle_sample(now - oldest, self.scoreboard.offset(self.scoreboard.base()), next);
        Some(now - newest)
    }

    /// Reduces the window `cwnd` to the threshold, at once or over the next round trip (Linux: `tcp_enter_cwr`).
    fn reduce_after_mark(&mut self, cwnd: u64) {
        let (rule, point) = (self.config.profile.reduction, self.scoreboard.end());
        self.marks.handle_reduction(point);
        match rule {
            WindowReduction::Immediate => self.window.cwnd = self.window.cwnd.min(self.window.ssthresh),
            WindowReduction::Proportional => {
                self.phase = RecoveryPhase::Reduction(Recovery::new(rule, self.segment, point, cwnd));
            }
        }
    }

    /// Enters loss recovery (RFC 6675, section 5, step 4).
    fn enter_recovery(&mut self) {
        let is_covered = self.marks.covers_loss(self.scoreboard.base());
        if !is_covered {
            let flight = self.flight_without_limited_transmit();
            self.congestion.handle_loss(flight, &mut self.window);
            self.marks.handle_reduction(self.scoreboard.end());
        }
        self.scoreboard.begin_recovery();
        let (point, flight) = (self.scoreboard.end(), self.scoreboard.flight());
        self.phase = RecoveryPhase::Recovery(match self.phase {
            RecoveryPhase::Reduction(reduction) if is_covered => reduction.recover(point),
            _ => Recovery::new(self.config.profile.reduction, self.segment, point, flight),
        });
        self.fast_retransmit = true;
    }
}
