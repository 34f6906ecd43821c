// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending endpoint: consecutive connections, transmission, and the handling of ACKs and timers.
//!
//! [`TcpSender`] consists of parts that own their state, and passes values between them. A part may read another one, but only
//! the sender calls methods that change a part.

mod congestion_control;
mod events;
mod handshake;
mod loss_recovery;
mod pacing;
mod retransmission_timer;
mod transfers;

use super::congestion::{Ack, CongestionWindow, NO_THRESHOLD};
use super::segment::{Flags, Segment};
use super::workload::{Bursts, Workload};
use super::{TcpConfig, TcpEcn};
use congestion_control::CongestionControl;
use events::{Events, TcpSignal};
use handshake::{ConnectionState, Handshake};
use loss_recovery::{AckEffect, LossRecovery};
use paceline::{SignalName, SignalSpec, Signals};
use paceline_units::{DataSize, Ecn, RandomStream, RandomStreams, Time, TimeDelta};
use pacing::Pacing;
use retransmission_timer::RetransmissionTimer;
use transfers::Transfers;

/// The kind of a transmitted segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// New data.
    Data,
    /// Retransmitted data.
    Retransmission,
    /// A SYN, or the ACK that completes the handshake.
    Control,
}

/// An event of a [`TcpSender`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TcpSenderEvent {
    /// A signal of [`TcpSender::SIGNALS`] has a new value.
    Signal(u8, f64),
    /// A transfer of [`Workload::Short`] is completely acknowledged.
    TransferDone {
        /// Bytes of data.
        size: DataSize,
        /// Time since its SYN.
        took: TimeDelta,
    },
}

/// The sending endpoint of a flow. It opens one connection after the other.
#[derive(Debug)]
pub struct TcpSender {
    config: TcpConfig,
    transfers: Transfers,
    handshake: Handshake,
    timer: RetransmissionTimer,
    recovery: LossRecovery,
    congestion: CongestionControl,
    /// `None` if the congestion control does not pace.
    pacing: Option<Pacing>,
    events: Events,
}

impl TcpSender {
    /// The signals that a sender emits.
    pub const SIGNALS: &'static [SignalSpec] = TcpSignal::TABLE;

    /// Returns the sender with the times of [`Workload::Bursts`]. Without them it makes one transfer.
    #[must_use]
    pub fn with_bursts(mut self, bursts: Bursts) -> Self {
        self.transfers.set_bursts(bursts);
        self
    }

    /// Returns the sender with the data that the program [writes](Self::write_segment) in place of endless data.
    #[must_use]
    pub fn with_written_data(mut self) -> Self {
        self.transfers.write(0);
        self
    }

    /// Adds the data of a full segment.
    pub fn write_segment(&mut self) {
        self.transfers.write(self.config.segment.as_bytes());
    }

    /// Creates a sender whose first connection begins at `start`.
    ///
    /// # Panics
    ///
    /// Panics if the configuration names no algorithm of [`CONGESTION`](super::CONGESTION).
    pub fn new(config: TcpConfig, workload: Workload, start: Time, random: RandomStream, signals: Signals) -> Self {
        let seeds = RandomStreams::new(random.clone().bits()).stream("congestion");
        let congestion = CongestionControl::new(config, seeds);
        Self {
            config,
            transfers: Transfers::new(workload, start, random),
            handshake: Handshake::default(),
            timer: RetransmissionTimer::new(config.profile),
            recovery: LossRecovery::new(config),
            pacing: congestion.algorithm().pacing().map(|_| Pacing::new()),
            congestion,
            events: Events::new(signals),
        }
    }

    /// Handles an incoming segment. Segments of other connections are ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.connection != self.handshake.connection() || !segment.flags.ack {
            return;
        }
        match self.handshake.state() {
            ConnectionState::SynSent if segment.flags.syn => self.handle_syn_ack(now),
            ConnectionState::Established => self.handle_ack(now, segment),
            _ => return,
        }
        self.emit_signals();
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        let mut released = false;
        if let Some(pacing) = &mut self.pacing
            && now >= pacing.release()
        {
            pacing.clear_release();
            released = true;
        }
        if now >= self.transfers.next_start() {
            self.connect(now);
        } else if now >= self.timer.deadline() {
            self.handle_retransmission_timeout(now);
        } else if !released {
            return;
        }
        self.emit_signals();
    }

    /// Returns the next segment that may be sent at `now`, and its kind. Call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, SegmentKind)> {
        if let Some(segment) = self.handshake.poll_transmit(now) {
            if segment.flags.syn {
                self.timer.start(now);
            }
            return Some((segment, SegmentKind::Control));
        }
        let cwnd = self.congestion.window().cwnd;
        if self.handshake.state() != ConnectionState::Established
            || self.pacing.as_mut().is_some_and(|pacing| pacing.must_wait(now, self.recovery.may_send(cwnd)))
        {
            return None;
        }
        let new_data = self.transfers.allows_new_data(now, self.recovery.scoreboard().sent());
        let Some((number, is_new)) = self.recovery.send(now, cwnd, new_data) else {
            if let Some(pacing) = &mut self.pacing
                && self.recovery.lacks_data(cwnd, new_data)
            {
                pacing.mark_app_limited(self.recovery.scoreboard().pipe());
            }
            return None;
        };
        let scoreboard = self.recovery.scoreboard();
        let (payload, is_first) = (scoreboard.size(number), number == scoreboard.base());
        let algorithm = self.congestion.algorithm();
        if let Some(pacing) = &mut self.pacing
            && let Some(rate) = algorithm.pacing()
        {
            let idle = is_new && is_first;
            pacing.handle_sent(now, (number, payload), scoreboard.pipe(), idle, (rate, algorithm.burst()));
        }
        self.timer.handle_sent(now, !is_new && is_first);
        let segment = Segment {
            payload: payload as u32,
            sequence: 1 + scoreboard.offset(number),
            acknowledgment: 1,
            flags: Flags { syn: false, ack: true },
            connection: self.handshake.connection(),
            cwr: is_new && self.congestion.take_cwr(),
            ..Segment::default()
        };
        Some((segment, if is_new { SegmentKind::Data } else { SegmentKind::Retransmission }))
    }

    /// Returns the ECN field of a packet: only new data is ECN-capable (RFC 3168, sections 6.1.1, 6.1.4 and 6.1.5).
    pub fn codepoint(&self, kind: SegmentKind) -> Ecn {
        match kind {
            SegmentKind::Data => self.config.ecn.codepoint(),
            SegmentKind::Retransmission | SegmentKind::Control => Ecn::NotEct,
        }
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<TcpSenderEvent> {
        self.events.poll()
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called; `None` if there is none.
    /// Only calls of this sender change it.
    pub fn poll_timeout(&self) -> Option<Time> {
        let release = self.pacing.as_ref().map_or(Time::MAX, Pacing::release);
        let due = self.transfers.next_start().min(self.timer.deadline()).min(release);
        (due != Time::MAX).then_some(due)
    }

    /// Returns the congestion window and the slow-start threshold.
    pub fn window(&self) -> CongestionWindow {
        self.congestion.window()
    }

    /// Returns the estimated bytes in the network (`pipe` of RFC 6675).
    pub fn pipe(&self) -> DataSize {
        DataSize::from_bytes(self.recovery.scoreboard().pipe())
    }

    /// Returns the bytes sent and not cumulatively acknowledged (FlightSize of RFC 5681).
    pub fn flight(&self) -> DataSize {
        DataSize::from_bytes(self.recovery.scoreboard().flight())
    }

    /// Panics if the scoreboard is inconsistent. Visits the whole window; intended for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        self.recovery.scoreboard().check();
    }

    fn connect(&mut self, now: Time) {
        let total = self.transfers.begin(now);
        self.handshake.begin();
        self.recovery.reset(total);
        self.congestion.reset();
        if let Some(pacing) = &mut self.pacing {
            pacing.reset();
        }
        self.timer.reset();
    }

    fn handle_syn_ack(&mut self, now: Time) {
        let round_trip = self.handshake.handle_syn_ack(now);
        self.timer.handle_open(round_trip);
        if self.handshake.reduces_initial_window() {
            self.congestion.set_window(self.config.segment);
        }
        if let Some(pacing) = &mut self.pacing {
            pacing.handle_round_trip(round_trip);
            self.congestion.handle_open(now, round_trip);
        }
    }

    fn handle_retransmission_timeout(&mut self, now: Time) {
        self.timer.back_off();
        if self.handshake.state() == ConnectionState::SynSent {
            self.handshake.retry();
            self.timer.stop();
            return;
        }
        let first = self.timer.restart(now);
        self.congestion.handle_timeout(first, &self.recovery);
        self.recovery.handle_timeout();
    }

    fn handle_ack(&mut self, now: Time, segment: &Segment) {
        let pipe_before = self.recovery.scoreboard().pipe();
        let cwnd_limited = !self.recovery.window_is_open(self.congestion.window().cwnd);
        let AckEffect { summary, ends_reduction, shows_loss } = self.recovery.handle_ack(segment);
        let round_trip = self.timer.handle_ack(now, &summary, self.recovery.scoreboard());
        let (srtt, bytes) = (self.timer.rtt().srtt(), DataSize::from_bytes);
        if ends_reduction && self.pacing.is_none() {
            self.congestion.set_window(self.congestion.window().ssthresh);
        }
        if shows_loss {
            let is_covered = self.congestion.handle_loss(&self.recovery);
            self.recovery.begin_recovery(is_covered);
        }
        let is_marked = self.handle_echo(now, segment, summary.delivered);
        if let Some(pacing) = &mut self.pacing {
            let before = (pipe_before, cwnd_limited);
            let sample = pacing.handle_ack(now, &summary, round_trip, srtt, before, &self.recovery);
            self.congestion.handle_sample(&sample);
            if self.congestion.algorithm().is_self_limited() {
                pacing.mark_app_limited(self.recovery.scoreboard().pipe());
            }
        } else if let Some(cwnd) = self.recovery.reduced_window(&summary, self.congestion.window().ssthresh) {
            self.congestion.set_window(cwnd);
        } else if summary.acked > 0 && !ends_reduction && !is_marked {
            self.congestion.handle_ack(&Ack {
                now,
                acked: bytes(summary.delivered),
                acknowledged: bytes(self.recovery.scoreboard().acknowledged()),
                sent: bytes(self.recovery.scoreboard().sent()),
                round_trip,
                srtt: srtt.unwrap_or(self.timer.rtt().rto()),
                cwnd_limited,
            });
        }
        if self.recovery.scoreboard().is_done() {
            self.close(now);
        }
    }

    /// Handles the ECN echo of an ACK that delivered this many bytes. Returns whether the window must not grow.
    fn handle_echo(&mut self, now: Time, segment: &Segment, delivered: u64) -> bool {
        match self.config.ecn {
            TcpEcn::Off => false,
            TcpEcn::Classic | TcpEcn::Alternative => {
                if let Some(cwnd) = self.congestion.handle_echo(segment.ece, &self.recovery) {
                    self.recovery.begin_reduction(cwnd);
                }
                segment.ece
            }
            TcpEcn::Accurate | TcpEcn::L4s => self.congestion.handle_marks(now, segment, delivered, &self.recovery),
        }
    }

    /// Closes the connection after its last byte is acknowledged.
    fn close(&mut self, now: Time) {
        self.handshake.close();
        self.recovery.close();
        self.timer.stop();
        if let Some(pacing) = &mut self.pacing {
            pacing.clear_release();
        }
        self.events.push(self.transfers.finish(now));
    }

    #[inline]
    fn emit_signals(&mut self) {
        self.events.emit_signals(|| {
            let (window, bytes) = (self.congestion.window(), |size: DataSize| size.as_bytes() as f64);
            [
                Some(bytes(window.cwnd)),
                Some(window.ssthresh).filter(|threshold| *threshold != NO_THRESHOLD).map(bytes),
                self.timer.rtt().srtt().map(TimeDelta::as_millis_f64),
                Some(f64::from(self.recovery.signal_state())),
                self.congestion.algorithm().target().map(bytes),
            ]
        });
    }
}
