//! The sending endpoint: consecutive connections, transmission, and the handling of ACKs and timers.

mod ack_in;
mod emitted_signals;
mod next_segment;
mod pacing;

use super::TcpConfig;
use super::congestion::{Congestion, CongestionConfig, CongestionWindow, NO_THRESHOLD, build_congestion};
use super::ecn::MarkReaction;
use super::recovery::Recovery;
use super::rtt_estimator::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{Flags, Segment};
use super::workload::{Bursts, Workload, draw_pause, draw_transfer_size};
use crate::event_queue;
use emitted_signals::{EmittedSignals, TcpSignal};
use paceline::{SignalName, SignalSpec, Signals};
use paceline_units::{DataSize, Ecn, RandomStream, RandomStreams, Time, TimeDelta};
use pacing::PacingState;
use std::collections::VecDeque;

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

/// Initial window (RFC 6928, equation 1): ten segments, but at most 14600 bytes or two large segments.
fn initial_window(segment: u64) -> u64 {
    (10 * segment).min(14_600.max(2 * segment))
}

/// With more transmissions of the SYN, the initial window is one segment (RFC 6928, section 2).
const SYN_TRIES_MAX: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Closed,
    SynSent,
    Established,
}

#[derive(Clone, Copy, Debug)]
enum RecoveryPhase {
    /// No loss is known.
    Open,
    /// The window falls after a mark, with [`WindowReduction::Proportional`]; no loss is known (Linux: `TCP_CA_CWR`).
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

/// The sending endpoint of a flow. It opens one connection after the other.
#[derive(Debug)]
pub struct TcpSender {
    config: TcpConfig,
    workload: Workload,
    /// The times of [`Workload::Bursts`].
    bursts: Option<Bursts>,
    random: RandomStream,
    /// Seeds of the congestion control algorithms, so that they draw nothing from the workload's stream.
    seeds: RandomStream,
    /// Bytes in a full segment.
    segment: u64,
    /// The time at which the next connection begins; [`Time::MAX`] if never.
    next_start: Time,
    /// The time at which the workload stops sending new data.
    stop: Time,
    connection: u32,
    state: ConnectionState,
    /// The time at which the connection began, and its bytes of data.
    began: Time,
    total: u64,
    syn_sent: Time,
    syn_tries: u32,
    /// A SYN or the ACK of the handshake is ready to be sent.
    control: bool,
    scoreboard: Scoreboard,
    window: CongestionWindow,
    congestion: Box<dyn Congestion>,
    pacing: Option<PacingState>,
    rtt: RttEstimator,
    phase: RecoveryPhase,
    /// The first missing segment is sent even if the window is full.
    fast_retransmit: bool,
    dup_acks: usize,
    /// Bytes sent on duplicate ACKs, which are excluded from FlightSize (RFC 5681, section 3.2).
    limited_transmit: u64,
    /// The time at which the retransmission timer expires; [`Time::MAX`] if it is off.
    deadline: Time,
    /// The time at which pacing allows the next segment; [`Time::MAX`] if none waits for pacing.
    release: Time,
    /// Expiries of the retransmission timer since the last new ACK.
    timeouts: u32,
    marks: MarkReaction,
    signals: Signals,
    signals_enabled: bool,
    emitted: EmittedSignals,
    events: VecDeque<TcpSenderEvent>,
}

impl TcpSender {
    /// The signals that a sender emits.
    pub const SIGNALS: &'static [SignalSpec] = TcpSignal::TABLE;

    /// Returns the sender with the times of [`Workload::Bursts`]. Without them it makes one transfer.
    #[must_use]
    pub fn with_bursts(self, bursts: Bursts) -> Self {
        Self { bursts: Some(bursts), ..self }
    }

    /// Creates a sender whose first connection begins at `start`.
    ///
    /// # Panics
    ///
    /// Panics if the configuration names no algorithm of [`CONGESTION`](super::CONGESTION).
    pub fn new(config: TcpConfig, workload: Workload, start: Time, mut random: RandomStream, signals: Signals) -> Self {
        let segment = config.segment.as_bytes();
        let signals_enabled = signals.is_enabled();
        let congestion = build_congestion(config.congestion, congestion_config(&config, 0));
        let pacing = congestion.pacing().map(|_| PacingState::new());
        let seeds = RandomStreams::new(random.clone().bits()).stream("congestion");
        let first = workload.first_connection(start, &mut random);
        Self {
            config,
            workload,
            bursts: None,
            seeds,
            random,
            segment,
            next_start: first,
            stop: Time::MAX,
            connection: 0,
            state: ConnectionState::Closed,
            began: start,
            total: 0,
            syn_sent: start,
            syn_tries: 0,
            control: false,
            scoreboard: Scoreboard::new(segment, u64::MAX, config.profile.detect_lost_retransmissions),
            window: CongestionWindow { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD },
            congestion,
            pacing,
            rtt: RttEstimator::new(config.profile.rto, config.profile.rto_max),
            phase: RecoveryPhase::Open,
            fast_retransmit: false,
            dup_acks: 0,
            limited_transmit: 0,
            deadline: Time::MAX,
            release: Time::MAX,
            timeouts: 0,
            marks: MarkReaction::default(),
            signals,
            signals_enabled,
            emitted: EmittedSignals::NONE,
            events: VecDeque::new(),
        }
    }

    /// Handles an incoming segment. Segments of other connections are ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.connection != self.connection || !segment.flags.ack {
            return;
        }
        match self.state {
            ConnectionState::SynSent if segment.flags.syn => self.handle_syn_ack(now),
            ConnectionState::Established => self.handle_ack(now, segment),
            _ => return,
        }
        self.emit_signals();
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        let released = now >= self.release;
        if released {
            self.release = Time::MAX;
        }
        if now >= self.next_start {
            self.connect(now);
        } else if now >= self.deadline {
            self.handle_retransmission_timeout(now);
        } else if !released {
            return;
        }
        self.emit_signals();
    }

    /// Returns the next segment that may be sent at `now`, and its kind. Call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, SegmentKind)> {
        if self.control {
            self.control = false;
            return Some((self.handshake(now), SegmentKind::Control));
        }
        if self.state != ConnectionState::Established || self.waits_for_pacing(now) {
            return None;
        }
        let Some(number) = self.next_segment(now) else {
            self.handle_pause(now);
            return None;
        };
        let new = number == self.scoreboard.end();
        let payload = self.scoreboard.size(number);
        if let (Some(pacing), Some(rate)) = (&mut self.pacing, self.congestion.pacing()) {
            let rate = (rate, self.congestion.burst());
            pacing.handle_sent(now, number, payload, self.scoreboard.flight() == 0, rate);
        }
        if new {
            self.scoreboard.handle_sent(now);
            if self.dup_acks > 0 && self.phase.is_lossless() {
                self.limited_transmit += payload;
            }
        }
        if let RecoveryPhase::Reduction(recovery) | RecoveryPhase::Recovery(recovery) = &mut self.phase {
            recovery.handle_sent(payload);
        }
        if self.deadline == Time::MAX {
            self.deadline = now + self.rtt.rto(); // RFC 6298, rule 5.1
        }
        let segment = Segment {
            payload: payload as u32,
            sequence: 1 + self.scoreboard.offset(number),
            acknowledgment: 1,
            flags: Flags { syn: false, ack: true },
            connection: self.connection,
            cwr: new && self.config.ecn.is_classic() && self.marks.take_cwr(),
            ..Segment::default()
        };
        Some((segment, if new { SegmentKind::Data } else { SegmentKind::Retransmission }))
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
        event_queue::poll_event(&mut self.events, &mut self.signals, TcpSenderEvent::Signal)
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called; `None` if there is none.
    /// Only calls of this sender change it.
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = self.next_start.min(self.deadline).min(self.release);
        (due != Time::MAX).then_some(due)
    }

    /// Returns the congestion window and the slow-start threshold.
    pub fn window(&self) -> CongestionWindow {
        self.window
    }

    /// Returns the estimated bytes in the network (`pipe` of RFC 6675).
    pub fn pipe(&self) -> DataSize {
        DataSize::from_bytes(self.scoreboard.pipe())
    }

    /// Returns the bytes sent and not cumulatively acknowledged (FlightSize of RFC 5681).
    pub fn flight(&self) -> DataSize {
        DataSize::from_bytes(self.scoreboard.flight())
    }

    /// Panics if the scoreboard is inconsistent. Visits the whole window; intended for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        self.scoreboard.check();
    }

    fn connect(&mut self, now: Time) {
        self.next_start = Time::MAX;
        self.total = u64::MAX;
        match self.workload {
            Workload::Bulk => {}
            Workload::OnOff { on, off } => {
                self.stop = now + on;
                self.next_start = self.stop + off;
            }
            Workload::Short { size, .. } | Workload::Bursts { size, .. } => {
                self.total = draw_transfer_size(&mut self.random, size).as_bytes()
            }
        }
        self.connection += 1;
        self.state = ConnectionState::SynSent;
        self.began = now;
        self.syn_tries = 0;
        self.control = true;
        self.scoreboard.reset(self.total);
        self.window =
            CongestionWindow { cwnd: DataSize::from_bytes(initial_window(self.segment)), ssthresh: NO_THRESHOLD };
        let config = congestion_config(&self.config, self.seeds.bits());
        self.congestion = build_congestion(self.config.congestion, config);
        if let Some(pacing) = &mut self.pacing {
            pacing.reset();
        }
        self.rtt = RttEstimator::new(self.config.profile.rto, self.config.profile.rto_max);
        self.phase = RecoveryPhase::Open;
        self.fast_retransmit = false;
        self.dup_acks = 0;
        self.limited_transmit = 0;
        self.deadline = Time::MAX;
        self.release = Time::MAX;
        self.timeouts = 0;
        self.marks = MarkReaction::default();
    }

    /// Returns the SYN or the ACK that completes the handshake.
    fn handshake(&mut self, now: Time) -> Segment {
        let segment = Segment { connection: self.connection, ..Segment::default() };
        if self.state == ConnectionState::SynSent {
            self.syn_sent = now;
            self.syn_tries += 1;
            self.deadline = now + self.rtt.rto();
            return Segment { flags: Flags { syn: true, ack: false }, ..segment };
        }
        Segment { flags: Flags { syn: false, ack: true }, sequence: 1, acknowledgment: 1, ..segment }
    }

    fn handle_syn_ack(&mut self, now: Time) {
        self.state = ConnectionState::Established;
        self.control = true;
        self.deadline = Time::MAX;
        let round_trip = (self.syn_tries == 1).then_some(now - self.syn_sent);
        if let Some(sample) = round_trip {
            self.rtt.handle_sample(sample, 0, 0);
        } else {
            self.rtt.handle_lost_syn();
        }
        if self.syn_tries > SYN_TRIES_MAX {
            self.window.cwnd = self.config.segment;
        }
        self.start_pacing(now, round_trip);
    }

    fn handle_retransmission_timeout(&mut self, now: Time) {
        self.rtt.back_off();
        if self.state == ConnectionState::SynSent {
            self.control = true;
            self.deadline = Time::MAX;
            return;
        }
        if self.timeouts == 0 {
            let flight = self.flight_without_limited_transmit();
            let threshold = self.window.ssthresh;
            self.congestion.handle_timeout(flight, &mut self.window);
            if self.phase.is_lossless() && self.marks.covers_loss(self.scoreboard.base()) {
                self.window.ssthresh = threshold; // a mark has lowered it for this window of data
            }
        }
        self.timeouts += 1;
        self.marks.handle_reduction(self.scoreboard.end());
        self.window.cwnd = self.config.segment; // the loss window (RFC 5681, section 3.1)
        self.phase = RecoveryPhase::Loss { point: self.scoreboard.end() };
        self.fast_retransmit = false;
        self.dup_acks = 0;
        self.limited_transmit = 0;
        self.scoreboard.handle_timeout(!self.config.profile.keep_sack_on_timeout);
        self.deadline = now + self.rtt.rto();
    }

    /// Returns FlightSize for the new threshold, without the bytes of limited transmit.
    fn flight_without_limited_transmit(&self) -> DataSize {
        let flight = self.scoreboard.flight();
        DataSize::from_bytes(flight - self.limited_transmit.min(flight))
    }

    /// Closes the connection after its last byte is acknowledged.
    fn close(&mut self, now: Time) {
        self.state = ConnectionState::Closed;
        self.phase = RecoveryPhase::Open;
        self.deadline = Time::MAX;
        self.release = Time::MAX;
        match (self.workload, &mut self.bursts) {
            (Workload::Short { pause, .. }, _) => self.next_start = now + draw_pause(&mut self.random, pause),
            (Workload::Bursts { pause, .. }, Some(bursts)) => self.next_start = bursts.after(now, pause),
            _ => {}
        }
        self.events
            .push_back(TcpSenderEvent::TransferDone { size: DataSize::from_bytes(self.total), took: now - self.began });
    }
}

fn congestion_config(config: &TcpConfig, seed: u64) -> CongestionConfig {
    let limit = config.profile.slow_start_limit;
    CongestionConfig {
        segment: config.segment,
        slow_start_limit: limit.map(|n| DataSize::from_bytes(n as u64 * config.segment.as_bytes())),
        hystart: config.profile.hystart,
        kernel_windows: config.profile.kernel_windows,
        seed,
    }
}
