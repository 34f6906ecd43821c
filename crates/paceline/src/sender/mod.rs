// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender of a flow: everything between an encoder, a socket and the send half of a controller.
//!
//! ```text
//!  frames ─▶ Streams ─▶ Outbox: pacer, probes, padding, window ─▶ packets
//!               ▲          ▲                                        │
//!               └─ Decision ┘                                       ▼
//!                     ▲                                          History
//!                 SendHalf ◀── FeedbackReader, report checks ◀──────┤
//!                                      ▲                            │
//!                                   reports                     numbers
//! ```
//!
//! `mod.rs` has the calls of a program and the decision; each part owns its state and has a file of its own.

mod allocation;
mod clock;
mod config;
mod coupling;
mod event;
mod feedback_reader;
mod frame_waits;
mod frames;
mod half;
mod limit;
mod network;
mod outbox;
mod padding;
mod prober;
mod report_in;
#[cfg(feature = "rtp")]
mod report_order;
#[cfg(feature = "rtp")]
mod rtcp_in;
#[cfg(feature = "rtp")]
mod sequence_map;
mod streams;

use crate::blocks::{ApplicationLimit, EcnValidation, ProbeEstimator};
use crate::guard::FEEDBACK_TIMEOUT;
use crate::{
    Controller, Decision, Event, Failure, Flight, History, PacketKind, ProbeCluster, ProbeId, RoundTrip, SendHalf,
    SentPacket, Signals,
};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use feedback_reader::FeedbackReader;
use half::Half;
use limit::LimitCheck;
use outbox::Outbox;
use paceline_units::{DataSize, Rate, StreamId, Time, TimeDelta};
use report_in::LossCount;
#[cfg(feature = "rtp")]
use rtcp_in::RtpReports;
use streams::Streams;

pub(crate) use clock::SteadyClock;
pub use config::{FrameDropped, Outgoing, PacketHead, Release, SenderConfig, StreamConfig, Transmit};
pub use event::SenderEvent;
pub use frames::{Admission, NewFrame};
#[cfg(feature = "rtp")]
pub use report_order::ReportStatus;

/// The most events that wait.
const EVENTS_MAX: usize = 1024;

/// The assumed round-trip time before the first measurement (libwebrtc's default).
pub(crate) const RTT_DEFAULT: TimeDelta = TimeDelta::from_millis(100);

/// The sender of one flow. `T` is what the program attaches to each packet of a frame: its bytes, or a number by which it finds
/// them.
///
/// # How to drive it
///
/// The sender performs no I/O and reads no clock: each call gets the time. After one or more calls, before it waits, a program
///
/// 1. calls [`poll_transmit`](Self::poll_transmit) until it returns `None`, and sends what it returns,
/// 2. calls [`poll_event`](Self::poll_event) until it returns `None`, and sets its encoders to the new rates,
/// 3. calls [`poll_timeout`](Self::poll_timeout), and [`handle_timeout`](Self::handle_timeout) at that time if nothing else
///    happens before.
///
/// Every call that takes `&mut self` may change `poll_timeout`, except `poll_event`, `poll_probe`, `poll_discarded` and
/// `enable_signals`. All calls may come in any order. A time before an earlier one is read as that one, and [`SenderEvent::ClockSteppedBack`] reports a step of
/// more than 100 ms.
///
/// # Who paces
///
/// By default this sender paces: [`push_frame`](Self::push_frame) takes the packets of a frame, and `poll_transmit` returns them
/// when they may leave, with packets of probes and padding. A program with a pacer of its own calls
/// [`set_paces`](Self::set_paces) with `false` once and [`handle_sent`](Self::handle_sent) for each packet that leaves, and reads
/// [`decision`](Self::decision) (pacing rate, window, padding, longest queue) and [`poll_probe`](Self::poll_probe).
///
/// # Feedback
///
/// Reports come as values of the program's own format ([`handle_report`](Self::handle_report) for those of a
/// [`Receiver`](crate::Receiver), [`handle_reports`](Self::handle_reports) for others), or, with the feature `rtp`, as RTCP
/// (`handle_rtcp`). The sender joins them with the packets that it sent. Reports that are forged, duplicate or older than known
/// ones change nothing.
///
/// # Failure
///
/// A controller whose decisions other code makes may [fail](Self::failure). The sender then drops it and keeps its last decision,
/// which no feedback lowers any more, so the program ends the flow or replaces the sender and its receiver.
#[derive(Clone, Debug)]
pub struct Sender<T = Vec<u8>> {
    clock: SteadyClock,
    half: Half,
    failure: Option<Failure>,
    /// Whether the half may change its decision when a packet is sent.
    decides_on_sent: bool,
    decision: Decision,
    /// Whether the decision changed since [`take_decision_changed`](Self::take_decision_changed).
    decision_changed: bool,
    /// The calculated rate of the half at the last share; `None` if the flow is not coupled.
    coupled: Option<Rate>,
    streams: Streams,
    /// The part of the target that repair takes.
    reserved: Rate,
    outbox: Outbox<T>,
    queue_limit: TimeDelta,
    /// Sent packets, with per-packet feedback.
    history: Option<History>,
    reader: FeedbackReader,
    /// Whether ECN works on the path, which only reports on packets show.
    ecn: EcnValidation,
    probes: ProbeEstimator,
    loss: LossCount,
    rtt: Option<RoundTrip>,
    #[cfg(feature = "rtp")]
    rtp: RtpReports,
    limit: LimitCheck,
    /// Packets sent: the number of the next one.
    sent: u64,
    /// The time of the first media packet since the last feedback; [`Time::MAX`] without one.
    unanswered: Time,
    feedback_lost: bool,
    /// Packets that were reported as arrived, and as lost.
    reported: (u64, u64),
    /// Packets that were removed from the queue by the last [`push_frame`](Self::push_frame).
    discarded: VecDeque<T>,
    events: VecDeque<SenderEvent>,
    /// The earliest time at which a call does something.
    wake: Time,
}

impl<T> Sender<T> {
    /// Creates a sender that takes the send half out of `controller`; the receive half stays there for the
    /// [`Receiver`](crate::Receiver). Without a send half the target is the highest rate of the streams.
    pub fn new(config: &SenderConfig, controller: &mut Controller, signals: Signals) -> Self {
        let half = Half::new(controller.send.take(), signals);
        let decision = half.get().map_or(Decision::new(config.uncontrolled), |half| half.decision());
        let per_packet = config.per_packet.unwrap_or(controller.feedback.is_some());
        let mut sender = Self {
            clock: SteadyClock::new(config.start),
            decides_on_sent: half.get().is_some_and(|half| half.decides_on_sent()),
            half,
            failure: None,
            decision,
            decision_changed: false,
            coupled: None,
            streams: Streams::new(),
            reserved: Rate::ZERO,
            outbox: Outbox::new(&decision, config.start, config.queue_limit, config.padding_size),
            queue_limit: config.queue_limit,
            history: per_packet.then(History::new),
            reader: FeedbackReader::default(),
            ecn: EcnValidation::new(decision.ecn, 0),
            probes: ProbeEstimator::default(),
            loss: LossCount::default(),
            rtt: None,
            #[cfg(feature = "rtp")]
            rtp: RtpReports::new(config.start),
            limit: LimitCheck::new(config.start),
            sent: 0,
            unanswered: Time::MAX,
            feedback_lost: false,
            reported: (0, 0),
            discarded: VecDeque::new(),
            events: VecDeque::new(),
            wake: config.start,
        };
        sender.check_half();
        if let Some(bounds) = &config.bounds {
            sender.apply_bounds(config.start, bounds);
            sender.check_half();
        }
        // The first decision is an event too, because a constant controller never makes a second one.
        sender.decision = sender.half.get().map_or(decision, |half| half.decision());
        sender.emit(SenderEvent::Decision(sender.decision));
        sender.apply_decision();
        sender.update_wake();
        sender
    }

    /// Sets whether this sender paces. If not, the program paces: [`poll_transmit`](Self::poll_transmit) returns nothing, and
    /// [`push_frame`](Self::push_frame) takes no frame.
    pub fn set_paces(&mut self, paces: bool) {
        self.outbox.set_paces(self.clock.last(), paces);
        self.update_wake();
    }

    /// Handles the passing of time: call it at the time of [`poll_timeout`](Self::poll_timeout). Calls at other times do no harm.
    /// Returns whether the controller's own timeout was due.
    pub fn handle_timeout(&mut self, now: Time) -> bool {
        let now = self.advance(now);
        if self.unanswered != Time::MAX && now - self.unanswered >= FEEDBACK_TIMEOUT && !self.feedback_lost {
            self.feedback_lost = true;
            self.emit(SenderEvent::FeedbackLost);
        }
        // Mostly the next packet of the pacer is due, and not the half.
        let is_due = self.run_half_timeout(now, TimeDelta::ZERO);
        if is_due {
            self.update_wake();
        }
        is_due
    }

    /// Calls the half if its timeout has been due for `late`. Returns whether it was.
    fn run_half_timeout(&mut self, now: Time, late: TimeDelta) -> bool {
        let is_due = self.half.is_due(now, late);
        if is_due {
            self.half.handle(now, &Event::Timeout);
            self.follow(now);
        }
        is_due
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and then
    /// [`poll_transmit`](Self::poll_transmit) must be called; `None` if the sender only waits for input.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        Some(self.clock.program_time(self.wake)).filter(|due| *due != Time::MAX)
    }

    /// Returns the next packet that may leave at `now`, which counts as sent. Call it until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<T>> {
        let (released, size) = self.release(now)?;
        let now = self.clock.last();
        let (packet, place, kind, timestamp) = match released {
            Release::Packet(queued) => (Some(queued.packet), queued.stream, queued.kind, queued.timestamp),
            Release::Padding | Release::Probe { .. } => {
                let place = self.streams.list.iter().position(streams::SenderStream::carries_padding).unwrap_or(0);
                (None, place as u8, PacketKind::Padding, self.streams.list.get(place).map_or(0, |s| s.timestamp))
            }
        };
        let stream = self.streams.list.get(usize::from(place))?;
        let (id, media) = (stream.config.id, stream.config.kind);
        let (number, probe) = self.record_sent(now, &Outgoing::new(size, id, kind));
        self.update_wake();
        let head = PacketHead { number, sent: now, stream: id, media, kind, timestamp };
        Some(Transmit { packet, head, size, ecn: self.decision.ecn, probe })
    }

    /// Returns the next packet that may leave at `now`, for a program that knows the size of a packet only when it writes it.
    /// It must pass the packet to [`handle_sent`](Self::handle_sent) before it makes another call.
    #[inline]
    pub fn poll_release(&mut self, now: Time) -> Option<Release<T>> {
        Some(match self.release(now)?.0 {
            Release::Packet(queued) => Release::Packet(queued.packet),
            Release::Padding => Release::Padding,
            Release::Probe { burst } => Release::Probe { burst },
        })
    }

    #[inline]
    fn release(&mut self, now: Time) -> Option<(Release<outbox::Queued<T>>, DataSize)> {
        let now = self.advance(now);
        let released = self.outbox.release(now, self.flight());
        match &released {
            Some((Release::Packet(queued), size)) if queued.kind != PacketKind::Retransmission => {
                let stream = &mut self.streams.list[usize::from(queued.stream)];
                stream.queued = stream.queued.saturating_sub(*size);
            }
            Some(_) => {}
            None => self.update_wake(),
        }
        released
    }

    /// Records a packet that leaves: one of [`poll_release`](Self::poll_release), or any packet if the program paces. Returns its
    /// number.
    pub fn handle_sent(&mut self, now: Time, packet: &Outgoing) -> u64 {
        let now = self.advance(now);
        let (number, _) = self.record_sent(now, packet);
        self.update_wake();
        number
    }

    #[inline]
    fn record_sent(&mut self, now: Time, packet: &Outgoing) -> (u64, Option<ProbeId>) {
        let &Outgoing { size, stream, kind, probe } = packet;
        let probe = self.outbox.handle_sent(now, size).or(probe);
        let (sequence, in_flight) = (self.sent, self.history.as_ref().map(|history| history.flight().outstanding));
        let packet = SentPacket { sequence, size, stream, kind, probe, in_flight };
        self.sent += 1;
        self.limit.handle_sent(size);
        if kind == PacketKind::Media && self.unanswered == Time::MAX {
            self.unanswered = now;
        }
        let mut is_ecn_changed = false;
        if let Some(history) = &mut self.history {
            history.handle_sent(now, &packet);
            is_ecn_changed = self.ecn.handle_sent(now);
        }
        self.half.handle(now, &Event::Sent(&packet));
        let has_decided = self.decides_on_sent && self.half.get().is_some_and(|half| half.decides_on_sent());
        if has_decided || is_ecn_changed {
            self.update_decision();
        }
        (sequence, probe)
    }

    /// Returns the next probe cluster, for a program that paces: packets of any size at its rate, one after the other, until both its size and
    /// its number of packets are reached, while the [window is open](Self::window_is_open). Pass its id with each of these packets to
    /// [`handle_sent`](Self::handle_sent). Drop it if a new maximum is below its rate.
    #[inline]
    pub fn poll_probe(&mut self) -> Option<ProbeCluster> {
        if self.outbox.paces() { None } else { self.outbox.prober.take() }
    }

    /// Returns the next event, in order. When there is none, the signals follow that the controller has emitted.
    #[inline]
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        // Most calls find nothing.
        if self.events.is_empty() && self.half.signals.is_empty() { None } else { self.next_event() }
    }

    fn next_event(&mut self) -> Option<SenderEvent> {
        if self.events.is_empty() {
            self.events.extend(self.half.signals.drain().map(|(index, value)| SenderEvent::Signal(index, value)));
        }
        self.events.pop_front()
    }

    /// Adds an event. Of a program that reads none, the oldest are dropped.
    fn emit(&mut self, event: SenderEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Collects the signals of the controller from now on. [`poll_event`](Self::poll_event) returns them.
    pub fn enable_signals(&mut self) {
        if !self.half.signals.is_enabled() {
            self.half.signals = Signals::enabled();
        }
    }

    /// Returns a packet that the last [`push_frame`](Self::push_frame) removed from the queue, because its frame waited for too
    /// long.
    pub fn poll_discarded(&mut self) -> Option<T> {
        self.discarded.pop_front()
    }

    /// Returns why the controller failed; `None` if it has not. [`SenderEvent::ControllerFailed`] reports it once.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns the decision in force: target, pacing rate, window, padding, ECN.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the sending rate of the flow, IP and UDP headers included.
    pub fn target(&self) -> Rate {
        self.decision.target
    }

    /// Returns a stream's share of the target, IP and UDP headers included; `None` if there is no such stream.
    pub fn stream_rate(&self, id: StreamId) -> Option<Rate> {
        let stream = self.streams.find(id).map(|place| &self.streams.list[place])?;
        Some(if stream.suspended { Rate::ZERO } else { stream.share })
    }

    /// Returns the share of the target of the stream at a place, in the order in which streams were added, and whether it pauses
    /// because the target leaves too little for it.
    #[doc(hidden)]
    pub fn share_at(&self, place: usize) -> (Rate, bool) {
        self.streams.list.get(place).map_or((Rate::ZERO, false), |stream| (stream.share, stream.suspended))
    }

    /// Returns the size of the packets of the stream at a place that wait in the queue, without retransmissions.
    #[doc(hidden)]
    pub fn queued_at(&self, place: usize) -> DataSize {
        self.streams.list.get(place).map_or(DataSize::ZERO, |stream| stream.queued)
    }

    /// Returns the media timestamp of the last frame of the stream at a place.
    #[doc(hidden)]
    pub fn timestamp_at(&self, place: usize) -> u32 {
        self.streams.list.get(place).map_or(0, |stream| stream.timestamp)
    }

    /// Returns whether the controller divides the target among the streams itself.
    #[doc(hidden)]
    pub fn controller_divides(&self) -> bool {
        let first = self.half.get().zip(self.streams.list.first());
        first.is_some_and(|(half, stream)| half.stream_rate(stream.config.id).is_some())
    }

    /// Returns the bytes in flight; zero without per-packet feedback.
    #[inline]
    pub fn flight(&self) -> Flight {
        self.history.as_ref().map(History::flight).unwrap_or_default()
    }

    /// Returns whether the window of the decision leaves room for a packet, and there is a network. A program that paces sends
    /// nothing otherwise.
    pub fn window_is_open(&self) -> bool {
        self.outbox.window_is_open(self.flight())
    }

    /// Returns the size of all packets in the queue.
    pub fn queued(&self) -> DataSize {
        self.outbox.pacer.queued()
    }

    /// Returns the number of packets that were sent, which is the number of the next one.
    #[inline]
    pub fn packets_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of packets that were reported as arrived, and of those that were reported lost. A packet that arrives
    /// after all counts as both.
    pub fn packets_reported(&self) -> (u64, u64) {
        self.reported
    }

    /// Returns the time at which the controller itself is due, apart from packets.
    pub fn controller_timeout(&self) -> Option<Time> {
        let due = self.half.get()?.poll_timeout()?;
        Some(self.clock.program_time(due))
    }

    /// Returns the round-trip time of receiver reports, or the one that the program measured; `None` before the first.
    pub fn rtt(&self) -> Option<RoundTrip> {
        self.rtt
    }

    /// Returns the last round-trip time: of the reports on packets, or else of receiver reports, or else 100 ms.
    pub fn round_trip_time(&self) -> TimeDelta {
        self.reader.last_rtt().or(self.rtt).map_or(RTT_DEFAULT, |rtt| rtt.last)
    }

    /// Returns whether the application limits the flow: it has no backlog and sends less than the target allows.
    pub fn is_application_limited(&self) -> bool {
        self.limit.is_limited()
    }

    /// Returns the time of the sender for a time of the program.
    #[inline]
    fn advance(&mut self, now: Time) -> Time {
        let (now, step) = self.clock.advance(now);
        if let Some(step) = step {
            self.report_step(step);
        }
        now
    }

    #[cold]
    fn report_step(&mut self, step: TimeDelta) {
        self.emit(SenderEvent::ClockSteppedBack(step));
    }

    /// Reads the decision and the probe clusters of the controller, and its next timeout. A program calls it after
    /// `handle_rtcp_packet` (feature `rtp`) and [`handle_stream`](Self::handle_stream); the other calls do it themselves.
    #[doc(hidden)]
    pub fn settle(&mut self) {
        self.follow(self.clock.last());
        self.update_wake();
    }

    fn follow(&mut self, now: Time) {
        self.update_decision();
        self.poll_probes(now);
    }

    /// Reads the half's decision and applies it if it changed, unless the half failed.
    #[inline]
    fn update_decision(&mut self) {
        self.check_half();
        let Some(half) = self.half.get() else { return };
        if self.coupled.is_some() && self.calculated_rate().is_some() {
            return; // until the flow has its share
        }
        let decision = half.decision();
        let decision = Decision { ecn: self.ecn.allowed(self.sent, decision.ecn), ..decision };
        if decision != self.decision {
            self.decision = decision;
            self.emit(SenderEvent::Decision(decision));
            self.apply_decision();
        }
    }

    /// Drops the half if it failed.
    #[inline]
    fn check_half(&mut self) {
        if let Some(failure) = self.half.poll_failure() {
            self.handle_failure(failure);
        }
    }

    #[cold]
    fn handle_failure(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.emit(SenderEvent::ControllerFailed);
    }

    fn apply_decision(&mut self) {
        self.decision_changed = true;
        self.outbox.apply(self.clock.last(), &self.decision);
        self.divide();
    }

    /// Returns whether the decision changed since the last call.
    #[doc(hidden)]
    #[inline]
    pub fn take_decision_changed(&mut self) -> bool {
        core::mem::take(&mut self.decision_changed)
    }

    /// Collects the probe clusters of the half. A flow that has streams, but none that carries padding, sends none.
    fn poll_probes(&mut self, now: Time) {
        while let Some(cluster) = self.half.poll_probe(now) {
            if self.streams.carry_padding() || !self.outbox.paces() {
                self.probes.handle_cluster(cluster);
                self.outbox.prober.push(cluster);
            }
        }
    }

    /// Divides the target among the streams.
    fn divide(&mut self) {
        let Decision { target, padding, .. } = self.decision;
        let half = self.half.get();
        let division = self.streams.divide(target, self.reserved, padding, |id| half?.stream_rate(id));
        self.outbox.set_padding(division.padding);
        if division.is_changed {
            self.emit(SenderEvent::StreamRates);
        }
        while let Some(id) = self.streams.resumed.pop() {
            self.emit(SenderEvent::KeyFrameRequested(id));
        }
    }

    #[inline(always)]
    fn update_wake(&mut self) {
        self.wake = self.outbox.due(self.flight()).min(self.half.next_due());
    }
}

/// Returns a time in units of a media clock, modulo 2^32. Exact for times from zero on.
#[inline]
pub fn rtp_timestamp(at: Time, clock_rate: u32) -> u32 {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, nanos) = (at.as_nanos() / SECOND, at.as_nanos() % SECOND);
    (seconds.wrapping_mul(clock_rate as i64) + nanos * clock_rate as i64 / SECOND) as u32
}
