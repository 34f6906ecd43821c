//! The sending end: connections one after the other, what may leave, and what ACKs and timers mean.

mod paced;

use super::TcpConfig;
use super::congestion::{Ack, Congestion, NO_THRESHOLD, Settings, Window, build};
use super::recovery::{Progress, Recovery};
use super::rto::RoundTrip;
use super::scoreboard::{DUP_THRESH, Heard, Scoreboard};
use super::segment::{Flags, Segment};
use super::workload::{Workload, pause, transfer_size};
use paced::Paced;
use paceline::{SignalSpec, Signals};
use paceline_units::{DataSize, RandomStream, Streams, Time, TimeDelta};
use std::collections::VecDeque;

/// What a transmitted segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpSent {
    /// Data, for the first time.
    Data,
    /// Data that was sent before.
    Retransmission,
    /// A SYN, or the ACK that ends the handshake.
    Control,
}

/// What the sender wants known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TcpSenderEvent {
    /// A signal of [`TcpSender::SIGNALS`] has this value now.
    Signal(u8, f64),
    /// A transfer of [`Workload::Short`] is acknowledged to its last byte.
    TransferDone {
        /// Bytes of data.
        size: DataSize,
        /// Time since its SYN.
        took: TimeDelta,
    },
}

/// Initial window (RFC 6928, equation 1): ten segments, but no more than 14600 bytes, or two large ones.
fn initial_window(segment: u64) -> u64 {
    (10 * segment).min(14_600.max(2 * segment))
}

/// More transmissions of the SYN than this make the initial window one segment (RFC 6928, section 2).
const SYN_TRIES_MAX: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Closed,
    SynSent,
    Established,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is known to be lost.
    Open,
    /// Losses are repaired (RFC 6675).
    Recovery(Recovery),
    /// After a timeout, until all segments below `point` are acknowledged.
    Loss { point: u64 },
}

/// Values of the signals as last emitted.
#[derive(Debug)]
struct Told {
    window: Window,
    srtt: Option<TimeDelta>,
    state: u8,
    target: Option<DataSize>,
}

const NOTHING_TOLD: Told =
    Told { window: Window { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD }, srtt: None, state: u8::MAX, target: None };

/// The sending end of a flow's connections.
#[derive(Debug)]
pub struct TcpSender {
    config: TcpConfig,
    workload: Workload,
    random: RandomStream,
    /// The algorithms' own, so that they draw nothing of the workload's.
    seeds: RandomStream,
    /// Bytes in a full segment.
    segment: u64,
    /// When the next connection begins.
    next_start: Time,
    /// No new data from then on.
    stop: Time,
    connection: u32,
    stage: Stage,
    /// When the connection began, and its bytes.
    began: Time,
    total: u64,
    syn_sent: Time,
    syn_tries: u32,
    /// A SYN or the ACK of the handshake waits to leave.
    control: bool,
    board: Scoreboard,
    window: Window,
    congestion: Box<dyn Congestion>,
    paced: Option<Paced>,
    round_trip: RoundTrip,
    phase: Phase,
    /// The first segment that is missing leaves whatever the window says (fast retransmit).
    forced: bool,
    dup_acks: usize,
    /// Bytes sent on duplicate ACKs, which do not count as flight (RFC 5681, section 3.2).
    limited_transmit: u64,
    /// When the retransmission timer fires.
    deadline: Time,
    /// When pacing lets a segment go that waits.
    release: Time,
    /// How often it fired since the last new ACK.
    timeouts: u32,
    signals: Signals,
    /// Somebody listens to them.
    heard: bool,
    told: Told,
    events: VecDeque<TcpSenderEvent>,
}

impl TcpSender {
    /// What it lets one see.
    pub const SIGNALS: &'static [SignalSpec] = &[
        SignalSpec::series("cwnd", "B"),
        SignalSpec::series("ssthresh", "B"),
        SignalSpec::series("srtt", "ms"),
        SignalSpec::state("state", &["open", "disorder", "recovery", "loss"]),
        SignalSpec::series("W_max", "B"),
    ];

    /// A sender whose first connection begins at `start`. Panics when the configuration names no algorithm of
    /// [`CONGESTION`](super::CONGESTION).
    pub fn new(config: TcpConfig, workload: Workload, start: Time, random: RandomStream, mut signals: Signals) -> Self {
        let segment = config.segment.as_bytes();
        signals.emit(0, 0.0); // a trial tells whether they are heard
        let heard = signals.drain().count() > 0;
        let congestion = build(config.congestion, settings(&config, 0));
        let paced = congestion.pacing().map(|_| Paced::new());
        Self {
            config,
            workload,
            seeds: Streams::new(random.clone().bits()).stream("congestion"),
            random,
            segment,
            next_start: start,
            stop: Time::MAX,
            connection: 0,
            stage: Stage::Closed,
            began: start,
            total: 0,
            syn_sent: start,
            syn_tries: 0,
            control: false,
            board: Scoreboard::new(segment, u64::MAX, config.profile.watches_resent),
            window: Window { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD },
            congestion,
            paced,
            round_trip: RoundTrip::new(config.profile.rto, config.profile.rto_max),
            phase: Phase::Open,
            forced: false,
            dup_acks: 0,
            limited_transmit: 0,
            deadline: Time::MAX,
            release: Time::MAX,
            timeouts: 0,
            signals,
            heard,
            told: NOTHING_TOLD,
            events: VecDeque::new(),
        }
    }

    /// A segment came. One of another connection is ignored.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.connection != self.connection || !segment.flags.ack {
            return;
        }
        match self.stage {
            Stage::SynSent if segment.flags.syn => self.handle_syn_ack(now),
            Stage::Established => self.handle_ack(now, segment),
            _ => return,
        }
        self.tell();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        let released = now >= self.release;
        if released {
            self.release = Time::MAX;
        }
        if now >= self.next_start {
            self.connect(now);
        } else if now >= self.deadline {
            self.handle_timer(now);
        } else if !released {
            return;
        }
        self.tell();
    }

    /// The next segment that leaves at `now`; call until `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Segment, TcpSent)> {
        if self.control {
            self.control = false;
            return Some((self.handshake(now), TcpSent::Control));
        }
        if self.stage != Stage::Established || self.waits(now) {
            return None;
        }
        let Some(number) = self.next_segment(now) else {
            self.handle_pause(now);
            return None;
        };
        let new = number == self.board.end();
        let payload = self.board.size(number);
        if let (Some(paced), Some(rate)) = (&mut self.paced, self.congestion.pacing()) {
            let pace = (rate, self.congestion.burst());
            paced.handle_sent(now, number, payload, self.board.flight() == 0, pace);
        }
        if new {
            self.board.handle_sent(now);
            if self.dup_acks > 0 && matches!(self.phase, Phase::Open) {
                self.limited_transmit += payload;
            }
        }
        if let Phase::Recovery(recovery) = &mut self.phase {
            recovery.handle_sent(payload);
        }
        if self.deadline == Time::MAX {
            self.deadline = now + self.round_trip.rto(); // RFC 6298, rule 5.1
        }
        let segment = Segment {
            payload: payload as u32,
            sequence: 1 + self.board.offset(number),
            acknowledgment: 1,
            flags: Flags { syn: false, ack: true },
            connection: self.connection,
            ..Segment::default()
        };
        Some((segment, if new { TcpSent::Data } else { TcpSent::Retransmission }))
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<TcpSenderEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.signals.is_empty() {
            let events = self.signals.drain().map(|(index, value)| TcpSenderEvent::Signal(index, value));
            self.events.extend(events);
        }
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is wanted next. Only a call of this sender changes it.
    pub fn poll_timeout(&self) -> Time {
        self.next_start.min(self.deadline).min(self.release)
    }

    /// Congestion window and slow-start threshold.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Bytes thought to be in the network (RFC 6675).
    pub fn pipe(&self) -> DataSize {
        DataSize::from_bytes(self.board.pipe())
    }

    /// Bytes sent and not acknowledged in order (RFC 5681).
    pub fn flight(&self) -> DataSize {
        DataSize::from_bytes(self.board.flight())
    }

    /// Panics when the scoreboard contradicts itself. Walks over the window: for tests.
    #[doc(hidden)]
    pub fn check(&self) {
        self.board.check();
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
            Workload::Short { size, .. } => self.total = transfer_size(&mut self.random, size).as_bytes(),
        }
        self.connection += 1;
        self.stage = Stage::SynSent;
        self.began = now;
        self.syn_tries = 0;
        self.control = true;
        self.board.reset(self.total);
        self.window = Window { cwnd: DataSize::from_bytes(initial_window(self.segment)), ssthresh: NO_THRESHOLD };
        self.congestion = build(self.config.congestion, settings(&self.config, self.seeds.bits()));
        if let Some(paced) = &mut self.paced {
            paced.reset();
        }
        self.round_trip = RoundTrip::new(self.config.profile.rto, self.config.profile.rto_max);
        self.phase = Phase::Open;
        self.forced = false;
        self.dup_acks = 0;
        self.limited_transmit = 0;
        self.deadline = Time::MAX;
        self.release = Time::MAX;
        self.timeouts = 0;
    }

    fn handshake(&mut self, now: Time) -> Segment {
        let segment = Segment { connection: self.connection, ..Segment::default() };
        if self.stage == Stage::SynSent {
            self.syn_sent = now;
            self.syn_tries += 1;
            self.deadline = now + self.round_trip.rto();
            return Segment { flags: Flags { syn: true, ack: false }, ..segment };
        }
        Segment { flags: Flags { syn: false, ack: true }, sequence: 1, acknowledgment: 1, ..segment }
    }

    fn handle_syn_ack(&mut self, now: Time) {
        self.stage = Stage::Established;
        self.control = true;
        self.deadline = Time::MAX;
        let round_trip = (self.syn_tries == 1).then_some(now - self.syn_sent);
        if let Some(sample) = round_trip {
            self.round_trip.handle_sample(sample, 0, 0);
        } else {
            self.round_trip.handle_lost_syn();
        }
        if self.syn_tries > SYN_TRIES_MAX {
            self.window.cwnd = self.config.segment;
        }
        self.open(now, round_trip);
    }

    fn handle_ack(&mut self, now: Time, segment: &Segment) {
        let pipe_before = self.board.pipe();
        let limited = pipe_before + self.segment > self.window.cwnd.as_bytes();
        let acknowledged = segment.acknowledgment.saturating_sub(1);
        let heard = self.board.handle_ack(
            acknowledged,
            segment.sack.iter().map(|(start, end)| (start.saturating_sub(1), end.saturating_sub(1))),
        );
        let newest = self.measure(now, &heard);
        if heard.acked > 0 {
            self.dup_acks = 0;
            self.limited_transmit = 0;
            self.timeouts = 0;
            // RFC 6298, rules 5.2 and 5.3.
            self.deadline = if self.board.flight() == 0 { Time::MAX } else { now + self.round_trip.rto() };
        }
        let mut grows = heard.acked > 0;
        match self.phase {
            Phase::Recovery(recovery) if self.board.base() >= recovery.point => {
                if self.paced.is_none() {
                    self.window.cwnd = self.window.ssthresh;
                }
                self.phase = Phase::Open;
                grows = false;
            }
            Phase::Loss { point } if self.board.base() >= point => self.phase = Phase::Open,
            _ => {}
        }
        if heard.sacked > 0 && matches!(self.phase, Phase::Open) {
            // A duplicate ACK (RFC 6675, section 2).
            self.dup_acks += 1;
            if self.dup_acks >= DUP_THRESH || self.board.first_is_lost() {
                self.recover();
            }
        }
        if self.paced.is_some() {
            self.sample(now, &heard, newest, pipe_before);
        } else if let Phase::Recovery(recovery) = &mut self.phase {
            let progress = Progress {
                delivered: heard.delivered,
                good: heard.acked > 0 && heard.lost == 0,
                pipe: self.board.pipe(),
                ssthresh: self.window.ssthresh.as_bytes(),
            };
            self.window.cwnd = DataSize::from_bytes(recovery.window(progress));
        } else if grows {
            let bytes = DataSize::from_bytes;
            let ack = Ack {
                now,
                acked: bytes(heard.delivered),
                acknowledged: bytes(self.board.offset(self.board.base())),
                sent: bytes(self.board.offset(self.board.end())),
                round_trip: newest,
                srtt: self.round_trip.srtt().unwrap_or(self.round_trip.rto()),
                limited,
            };
            self.congestion.handle_ack(&ack, &mut self.window);
        }
        if self.board.is_done() {
            self.finish(now);
        }
    }

    /// Takes the round-trip times of an ACK (Karn: none of segments sent twice); answers the one of the newest segment.
    /// The estimate takes the oldest, as timestamps would (RFC 7323, section 4.3): it includes the delay of the ACK.
    fn measure(&mut self, now: Time, heard: &Heard) -> Option<TimeDelta> {
        let selective = heard.sacked_sent.filter(|_| self.config.profile.sack_samples);
        let (oldest, newest) = heard.acked_sent.or(selective)?;
        let next = self.board.offset(self.board.end());
        self.round_trip.handle_sample(now - oldest, self.board.offset(self.board.base()), next);
        Some(now - newest)
    }

    /// RFC 6675, section 5, step 4.
    fn recover(&mut self) {
        let flight = self.board.flight();
        let counted = DataSize::from_bytes(flight - self.limited_transmit.min(flight));
        self.congestion.handle_loss(counted, &mut self.window);
        self.board.begin_recovery();
        self.phase =
            Phase::Recovery(Recovery::new(self.config.profile.reduction, self.segment, self.board.end(), flight));
        self.forced = true;
    }

    fn handle_timer(&mut self, now: Time) {
        self.round_trip.back_off();
        if self.stage == Stage::SynSent {
            self.control = true;
            self.deadline = Time::MAX;
            return;
        }
        if self.timeouts == 0 {
            let flight = self.board.flight();
            let counted = DataSize::from_bytes(flight - self.limited_transmit.min(flight));
            self.congestion.handle_timeout(counted, &mut self.window);
        }
        self.timeouts += 1;
        self.window.cwnd = self.config.segment; // the loss window (RFC 5681, section 3.1)
        self.phase = Phase::Loss { point: self.board.end() };
        self.forced = false;
        self.dup_acks = 0;
        self.limited_transmit = 0;
        self.board.handle_timeout(!self.config.profile.keep_sack_on_timeout);
        self.deadline = now + self.round_trip.rto();
    }

    /// The last byte is acknowledged.
    fn finish(&mut self, now: Time) {
        self.stage = Stage::Closed;
        self.deadline = Time::MAX;
        self.release = Time::MAX;
        if let Workload::Short { pause: mean, .. } = self.workload {
            self.next_start = now + pause(&mut self.random, mean);
        }
        self.events
            .push_back(TcpSenderEvent::TransferDone { size: DataSize::from_bytes(self.total), took: now - self.began });
    }

    /// Number of the segment that may leave now (RFC 6675, section 5, step C, and `NextSeg`).
    fn next_segment(&mut self, now: Time) -> Option<u64> {
        if core::mem::take(&mut self.forced)
            && let Some(number) = self.board.first_unsacked()
        {
            if let Phase::Recovery(recovery) = &mut self.phase {
                recovery.rescue = number + 1;
            }
            return self.resend(now, number, false);
        }
        if self.board.pipe() + self.segment > self.window.cwnd.as_bytes() {
            return None;
        }
        if let Phase::Open = self.phase {
            return self.next_new(now);
        }
        if let Some(number) = self.board.next_lost() {
            return self.resend(now, number, false);
        }
        if let Some(number) = self.next_new(now) {
            return Some(number);
        }
        let Phase::Recovery(recovery) = &mut self.phase else { return None };
        if let Some(number) = self.board.next_doubtful() {
            return self.resend(now, number, false);
        }
        if self.board.base() > recovery.rescue
            && let Some(number) = self.board.last_unsacked()
        {
            recovery.rescue = recovery.point;
            return self.resend(now, number, true);
        }
        None
    }

    fn resend(&mut self, now: Time, number: u64, rescue: bool) -> Option<u64> {
        self.board.handle_resent(now, number, rescue);
        if self.config.profile.restart_timer && number == self.board.base() {
            self.deadline = now + self.round_trip.rto();
        }
        Some(number)
    }

    /// New data, if there is some and the receiver allows it.
    #[inline]
    fn next_new(&self, now: Time) -> Option<u64> {
        let number = self.board.next_new().filter(|_| now < self.stop)?;
        let flight = self.board.flight() + self.board.size(number);
        let allowed = self.config.receive_window.is_none_or(|window| flight <= window.as_bytes());
        allowed.then_some(number)
    }

    fn state(&self) -> u8 {
        match self.phase {
            Phase::Open => self.board.has_holes() as u8,
            Phase::Recovery(_) => 2,
            Phase::Loss { .. } => 3,
        }
    }

    /// Emits the signals that changed.
    #[inline]
    fn tell(&mut self) {
        if !self.heard {
            return;
        }
        let bytes = |size: DataSize| size.as_bytes() as f64;
        if self.window.cwnd != self.told.window.cwnd {
            self.signals.emit(0, bytes(self.window.cwnd));
        }
        if self.window.ssthresh != self.told.window.ssthresh && self.window.ssthresh != NO_THRESHOLD {
            self.signals.emit(1, bytes(self.window.ssthresh));
        }
        self.told.window = self.window;
        let srtt = self.round_trip.srtt();
        if let Some(srtt) = srtt
            && self.told.srtt != Some(srtt)
        {
            self.signals.emit(2, srtt.as_millis_f64());
        }
        self.told.srtt = srtt;
        let state = self.state();
        if state != self.told.state {
            self.signals.emit(3, state as f64);
            self.told.state = state;
        }
        let target = self.congestion.target();
        if let Some(target) = target
            && self.told.target != Some(target)
        {
            self.signals.emit(4, bytes(target));
        }
        self.told.target = target;
    }
}

fn settings(config: &TcpConfig, seed: u64) -> Settings {
    let limit = config.profile.slow_start_limit;
    Settings {
        segment: config.segment,
        slow_start_limit: limit.map(|n| DataSize::from_bytes(n as u64 * config.segment.as_bytes())),
        hystart: config.profile.hystart,
        kernel_windows: config.profile.kernel_windows,
        seed,
    }
}
