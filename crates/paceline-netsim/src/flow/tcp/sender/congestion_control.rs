// SPDX-License-Identifier: MIT OR Apache-2.0
//! The congestion window and the events that change it.
//!
//! Owns the window, the congestion control algorithm, which sets the threshold, and the reaction to ECN marks. A window of data
//! reduces the window once, whether it has losses or marks.

use super::loss_recovery::LossRecovery;
use crate::flow::tcp::congestion::{
    Ack, Congestion, CongestionWindow, LossState, MarkSample, NO_THRESHOLD, RateSample, build_congestion,
};
use crate::flow::tcp::ecn::MarkReaction;
use crate::flow::tcp::profile::WindowReduction;
use crate::flow::tcp::segment::Segment;
use crate::flow::tcp::{TcpConfig, TcpEcn};
use paceline_units::{DataSize, RandomStream, Time, TimeDelta};

/// Initial window (RFC 6928, equation 1): ten segments, but at most 14600 bytes or two large segments.
fn initial_window(segment: u64) -> u64 {
    (10 * segment).min(14_600.max(2 * segment))
}

#[derive(Debug)]
pub(super) struct CongestionControl {
    config: TcpConfig,
    /// Seeds of the algorithms, so that they draw nothing from the workload's stream.
    seeds: RandomStream,
    algorithm: Box<dyn Congestion>,
    window: CongestionWindow,
    marks: MarkReaction,
}

impl CongestionControl {
    /// Creates the state before the first connection, with a window of zero.
    pub fn new(config: TcpConfig, seeds: RandomStream) -> Self {
        Self {
            config,
            seeds,
            algorithm: build_congestion(&config, 0),
            window: CongestionWindow { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD },
            marks: MarkReaction::default(),
        }
    }

    /// Begins a new connection with the initial window.
    pub fn reset(&mut self) {
        self.window.cwnd = DataSize::from_bytes(initial_window(self.config.segment.as_bytes()));
        self.window.ssthresh = NO_THRESHOLD;
        self.algorithm = build_congestion(&self.config, self.seeds.bits());
        self.marks = MarkReaction::default();
    }

    pub fn window(&self) -> CongestionWindow {
        self.window
    }

    pub fn algorithm(&self) -> &dyn Congestion {
        &*self.algorithm
    }

    /// Sets the window during and after a reduction.
    pub fn set_window(&mut self, cwnd: DataSize) {
        self.window.cwnd = cwnd;
    }

    /// Handles the opening of a connection, with pacing.
    pub fn handle_open(&mut self, now: Time, round_trip: Option<TimeDelta>) {
        self.algorithm.handle_open(now, round_trip, &self.window);
    }

    /// Handles an ACK that may grow the window.
    #[inline]
    pub fn handle_ack(&mut self, ack: &Ack) {
        self.algorithm.handle_ack(ack, &mut self.window);
    }

    /// Handles the measurements of an ACK, with pacing.
    pub fn handle_sample(&mut self, sample: &RateSample) {
        self.algorithm.handle_sample(sample, &mut self.window);
    }

    /// Returns whether the packet with new data has CWR.
    pub fn take_cwr(&mut self) -> bool {
        self.config.ecn.is_classic() && self.marks.take_cwr()
    }

    /// Handles the classic ECN echo of an ACK: reduces the window to the threshold at once, or returns the window that is to be
    /// reduced over the next round trip (Linux: `tcp_enter_cwr`).
    pub fn handle_echo(&mut self, ece: bool, recovery: &LossRecovery) -> Option<DataSize> {
        if !recovery.is_open() || !self.marks.reacts(ece, recovery.scoreboard().base()) {
            return None;
        }
        let (cwnd, flight) = (self.window.cwnd, recovery.flight_without_limited_transmit());
        self.algorithm.handle_mark(flight, &mut self.window, self.config.ecn == TcpEcn::Alternative);
        self.marks.handle_reduction(recovery.scoreboard().end());
        if self.config.profile.reduction == WindowReduction::Proportional {
            return Some(cwnd);
        }
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        None
    }

    /// Handles the accurate ECN echo of an ACK that delivered this many bytes. Returns whether it reports new marks.
    pub fn handle_marks(&mut self, now: Time, ack: &Segment, delivered: u64, recovery: &LossRecovery) -> bool {
        let (bytes, scoreboard) = (DataSize::from_bytes, recovery.scoreboard());
        let marked = self.marks.newly_marked(ack);
        let sample = MarkSample {
            now,
            acked: bytes(delivered),
            marked,
            acknowledged: bytes(scoreboard.acknowledged()),
            sent: bytes(scoreboard.sent()),
            open: recovery.is_open(),
        };
        self.algorithm.handle_marks(&sample, &mut self.window);
        marked > DataSize::ZERO
    }

    /// Handles a detected loss. Returns whether the window was reduced before for this window of data.
    pub fn handle_loss(&mut self, recovery: &LossRecovery) -> bool {
        let is_covered = self.marks.covers_loss(recovery.scoreboard().base());
        if !is_covered {
            self.algorithm.handle_loss(recovery.flight_without_limited_transmit(), &mut self.window);
            self.marks.handle_reduction(recovery.scoreboard().end());
        }
        is_covered
    }

    /// Handles a retransmission timeout, the `first` since the last new ACK or a later one.
    pub fn handle_timeout(&mut self, first: bool, recovery: &LossRecovery) {
        if first {
            let threshold = self.window.ssthresh;
            self.algorithm.handle_timeout(recovery.flight_without_limited_transmit(), &mut self.window);
            let lossless = recovery.loss_state() == LossState::Open;
            if lossless && self.marks.covers_loss(recovery.scoreboard().base()) {
                self.window.ssthresh = threshold; // a mark has lowered it for this window of data
            }
        }
        self.marks.handle_reduction(recovery.scoreboard().end());
        self.window.cwnd = self.config.segment; // the loss window (RFC 5681, section 3.1)
    }
}
