//! The sending endpoint: sources, packetization, pacer, padding, retransmissions, forward error correction, sender
//! reports, and the send half of the controller.

mod apply_decision;
mod config;
mod coupling;
mod fec_encoder;
mod feedback_reader;
mod frame_waits;
mod network;
mod packet_feedback;
mod packetize;
mod prober;
mod report_order;
mod rtcp_in;
mod sequence_map;
mod stream;
mod stream_changes;
mod transmit;
mod unused_rate;

use crate::allocation::RateRequest;
use crate::datagram::{Datagram, PACKET_SIZE_RANGE};
use crate::event_queue;
use crate::feedback::FeedbackFormat;
use crate::padding::Padding;
use crate::retransmission_store::MediaPacket;
use crate::rtcp_timer::RtcpTimer;
use paceline::blocks::ApplicationLimit;
use paceline::{
    Controller, Decision, Event, Failure, FecDemand, FecScheme, History, Pacer, ProbeId, ResendBudget, RoundTrip,
    SendHalf, Signals, Window,
};
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};
use paceline_wire::{ExtensionIds, WireError, parse_compound};
use std::collections::VecDeque;
use stream::SenderStream;

pub use config::{DatagramKind, SenderConfig, SenderEvent, StreamConfig};
pub use feedback_reader::FeedbackReader;
pub use prober::Prober;
pub use sequence_map::SequenceMap;

#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    stream: u8,
    kind: QueuedKind,
    packet: MediaPacket,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueuedKind {
    Media,
    Retransmission,
    /// A packet of the past that fills a probe.
    Filler,
    /// The next FEC packet of the stream's encoder. Only `sequence` and `timestamp` of `packet` are valid.
    Fec,
}

/// The sending endpoint of a media flow.
pub struct MediaSender {
    extensions: ExtensionIds,
    packet_size: DataSize,
    streams: Vec<SenderStream>,
    half: Option<Box<dyn SendHalf>>,
    /// Why the half failed, until it is taken.
    failure: Option<Failure>,
    /// Whether the half may change its decision when a packet is sent.
    decides_on_sent: bool,
    decision: Decision,
    /// The calculated rate of the half at the last share; `None` if the flow is not coupled.
    coupled: Option<Rate>,
    /// Whether there is a network to send to.
    available: bool,
    /// The window of the decision, or a closed one without a network.
    window: Option<Window>,
    pacer: Pacer<QueuedPacket>,
    /// The controller's window has been full since the last packet was sent.
    window_was_full: bool,
    pacer_limit: TimeDelta,
    padding: Padding,
    prober: Prober,
    /// The probe cluster of the packet that is being written.
    probe: Option<ProbeId>,
    /// Sent packets, when the controller uses per-packet feedback.
    history: Option<History>,
    reader: FeedbackReader,
    /// Whether feedback names packets by SSRC (RFC 8888).
    by_ssrc: bool,
    /// With RFC 8888 feedback: the packets of each SSRC.
    sequence_maps: Vec<SequenceMap>,
    /// Bytes sent since the application limit was last checked.
    sent_since: DataSize,
    application_limit: ApplicationLimit,
    application_limited: bool,
    /// The time from which the application limit is checked again.
    limit_check_due: Time,
    /// Packets sent. The low 16 bits are the next transport-wide sequence number.
    sent: u64,
    rtcp: RtcpTimer,
    next_report: Time,
    /// The first stream of the next datagram of an unfinished sender report; 0 if there is none.
    next_reported: usize,
    /// The number of the receiver's last report.
    report: u32,
    /// The size of the datagrams of an unfinished sender report.
    reported: DataSize,
    rtt: Option<RoundTrip>,
    /// The time at which the network route last changed, or the flow began.
    route_began: Time,
    retransmit: bool,
    ntp_origin: u64,
    /// Start of the current measuring interval, and the bytes retransmitted since.
    resent: (Time, DataSize),
    /// Retransmission rate of the previous interval.
    resend_rate: Rate,
    budget: ResendBudget,
    /// The FEC share that the losses call for; `None` without FEC.
    fec: Option<FecDemand>,
    /// Packets covered by reports since the last fraction lost was reported to the send half, and how many of them were
    /// lost; late ones can make that negative.
    unreported_loss: (u64, i64),
    signals: Signals,
    events: VecDeque<SenderEvent>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
    /// The rates that each stream requested in the last allocation.
    requests: Vec<RateRequest>,
    /// Scratch space of the rate allocation.
    shares: Vec<Rate>,
    /// Target, padding and retransmission rate of the last allocation.
    allocated_for: Option<[Rate; 3]>,
    /// The earliest time at which a call does something.
    wake: Time,
}

/// The assumed round-trip time before the first measurement (libwebrtc's default).
const RTT_DEFAULT: TimeDelta = TimeDelta::from_millis(100);

impl MediaSender {
    /// Creates a sender that takes the send half out of `controller`. The receive half stays there for the receiver.
    ///
    /// # Panics
    /// `packet_size` is outside [`PACKET_SIZE_RANGE`].
    pub fn new(config: SenderConfig, controller: &mut Controller, random: RandomStream, signals: Signals) -> Self {
        assert!(PACKET_SIZE_RANGE.contains(&config.packet_size), "packet size {}", config.packet_size);
        let mut half = controller.send.take();
        let start = config.start;
        let most = config.streams.iter().map(|s| s.source.range().1).sum::<Rate>();
        let unlimited = Decision::new(most);
        let decision = half.as_ref().map_or(unlimited, |h| h.decision());
        let failure = half.as_mut().and_then(|half| half.poll_failure());
        let half = half.filter(|_| failure.is_none());
        let mut rtcp = RtcpTimer::new(config.rtcp, random);
        let next_report = start + rtcp.next_interval(None);
        let fec = config.protection.fec == FecScheme::Ulpfec;
        let format = controller.feedback.and_then(|wanted| config.feedback_formats.choose(&wanted));
        let (per_packet, by_ssrc) = (format.is_some(), format == Some(FeedbackFormat::Rfc8888));
        let ssrcs = config.streams.iter().flat_map(|s| [s.info.ssrc, s.info.rtx_ssrc]);
        let sequence_maps = ssrcs.filter(|_| by_ssrc).map(SequenceMap::new).collect();
        let weights = config.streams.iter().map(|s| s.priority).collect::<Vec<_>>();
        let streams = config.streams.into_iter().map(|stream| SenderStream::new(stream, fec, config.packet_size));
        let mut sender = Self {
            extensions: config.extensions,
            packet_size: config.packet_size,
            streams: streams.collect(),
            decides_on_sent: half.as_ref().is_some_and(|half| half.decides_on_sent()),
            half,
            failure,
            decision,
            coupled: None,
            available: true,
            window: decision.window,
            pacer: Pacer::new(decision.pacing, config.pacer_limit, weights),
            window_was_full: false,
            pacer_limit: config.pacer_limit,
            padding: Padding::new(start),
            prober: Prober::default(),
            probe: None,
            history: per_packet.then(History::new),
            reader: FeedbackReader::default(),
            by_ssrc,
            sequence_maps,
            sent_since: DataSize::ZERO,
            application_limit: ApplicationLimit::default(),
            application_limited: false,
            limit_check_due: start,
            sent: 0,
            rtcp,
            next_report,
            next_reported: 0,
            report: 0,
            reported: DataSize::ZERO,
            rtt: None,
            route_began: start,
            retransmit: config.retransmit,
            ntp_origin: config.ntp_origin,
            resent: (start, DataSize::ZERO),
            resend_rate: Rate::ZERO,
            budget: ResendBudget::new(config.protection.resend, start),
            fec: fec.then(FecDemand::new),
            unreported_loss: (0, 0),
            signals,
            // The first decision is an event too, because a constant controller never makes a second one.
            events: VecDeque::from([SenderEvent::Decision(decision)]),
            malformed: [0; WireError::COUNT],
            ignored: 0,
            requests: Vec::new(),
            shares: Vec::new(),
            allocated_for: None,
            wake: start,
        };
        sender.apply_decision(start);
        sender.update_wake();
        sender
    }

    /// Handles an incoming RTCP datagram. Malformed datagrams, and reports on packets that were never sent, are counted
    /// and ignored.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        match parse_compound(bytes) {
            Err(error) => self.malformed[error.index()] += 1,
            Ok(compound) => self.handle_compound(now, compound.into_iter()),
        }
        self.update_decision(now);
        self.poll_probes(now);
        self.update_wake();
    }

    /// Handles the expiry of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        let mut is_changed = false;
        if let Some(half) = &mut self.half
            && half.poll_timeout().is_some_and(|due| due <= now)
        {
            half.handle_event(now, &Event::Timeout, &mut self.signals);
            self.update_decision(now);
            self.poll_probes(now);
            is_changed = true;
            if self.calculated_rate().is_some() {
                // Frames that are due now get the flow's share of this rate.
                self.update_wake();
                return;
            }
        }
        for index in 0..self.streams.len() {
            while self.streams[index].next_frame <= now {
                self.handle_frame_due(now, index);
                is_changed = true;
            }
        }
        // Mostly the next packet of the pacer is due, which is none of these.
        if is_changed {
            self.update_wake();
        }
    }

    /// Writes the next datagram that may be sent at `now` into `out` and returns its kind. Call until it returns
    /// `None`.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> Option<DatagramKind> {
        if now < self.wake {
            return None;
        }
        let sent = self.write_next(now, out);
        self.update_wake();
        sent
    }

    /// Returns the next event, in order.
    #[inline]
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        event_queue::poll_event(&mut self.events, &mut self.signals, SenderEvent::Signal)
    }

    /// Returns why the send half failed, once. The flow has no controller from then on, so the program ends it.
    #[inline]
    pub fn poll_failure(&mut self) -> Option<Failure> {
        if self.failure.is_none() { None } else { self.failure.take() }
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) must be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        (self.wake != Time::MAX).then_some(self.wake)
    }

    /// Returns the decision in force.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns whether the application limits the flow: it has no backlog and sends less than the target allows.
    pub fn is_application_limited(&self) -> bool {
        self.application_limited
    }

    /// Returns the numbers of malformed packets that arrived, by kind of error, and of well-formed ones that were ignored
    /// because they refer to nothing that this sender sent.
    pub fn rejected_packets(&self) -> (&[u32; WireError::COUNT], u32) {
        (&self.malformed, self.ignored)
    }

    fn update_wake(&mut self) {
        let mut wake = if self.next_reported > 0 { Time::ZERO } else { self.next_report };
        for stream in &self.streams {
            wake = wake.min(stream.next_frame);
        }
        if !self.window_is_open() {
            self.window_was_full = true;
        } else if self.prober.is_active() {
            wake = wake.min(self.probe_due());
        } else {
            let padding = if self.pacer.queued() == DataSize::ZERO { self.padding_due() } else { Time::MAX };
            wake = wake.min(self.pacer.poll_timeout().unwrap_or(Time::MAX)).min(padding).min(self.probe_due());
        }
        if let Some(half) = &self.half {
            wake = wake.min(half.poll_timeout().unwrap_or(Time::MAX));
        }
        self.wake = wake;
    }

    fn window_is_open(&self) -> bool {
        let flight = self.history.as_ref().map(History::flight).unwrap_or_default();
        match self.window {
            None => true,
            Some(Window::Outstanding(window)) => flight.outstanding < window,
            Some(Window::AfterHighest(window)) => flight.after_highest < window,
        }
    }
}

/// Converts a time to units of an RTP clock, modulo 2^32. Exact for times from zero on.
pub fn rtp_timestamp(at: Time, clock_rate: u32) -> u32 {
    const SECOND: i64 = 1_000_000_000;
    let (seconds, nanos) = (at.as_nanos() / SECOND, at.as_nanos() % SECOND);
    (seconds.wrapping_mul(clock_rate as i64) + nanos * clock_rate as i64 / SECOND) as u32
}
