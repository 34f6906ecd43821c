//! The sending endpoint: sources, packets, pacer, padding, retransmissions, forward error correction, sender reports,
//! and the send half that steers them.

mod hear;
mod numbers;
mod obey;
mod protect;
mod send;

use crate::allocation::Claim;
use crate::datagram::{Datagram, IP_UDP_HEADERS, MAX_RTP_PACKET, MEDIA_HEADERS};
use crate::padding::{PADDING_PAYLOAD, Padding};
use crate::resend::{MediaPacket, ResendStore};
use crate::rtcp_timer::{RtcpTimer, RtcpTiming};
use crate::source::Source;
use crate::streams::{MediaKind, StreamNames};
use numbers::Numbers;
use paceline::{
    Controller, Decision, FecDemand, FecScheme, FeedbackKind, History, Pacer, PacketKind, PacketReport, Protection,
    ResendBudget, SendHalf, Signals, Window,
};
use paceline_units::{DataSize, Ecn, Fraction, RandomStream, Rate, StreamId, Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, Vp8Descriptor, WireError, parse_compound, red};
use protect::{FEC_HEADERS, StreamFec};
use std::collections::VecDeque;

/// A stream as the sender makes it.
pub struct StreamConfig {
    /// Its names.
    pub names: StreamNames,
    /// What it sends.
    pub source: Box<dyn Source>,
    /// Its weight when streams share the target.
    pub priority: f64,
    /// Sequence number of its first packet.
    pub first_sequence: u16,
    /// RTP timestamp of time zero.
    pub timestamp_offset: u32,
}

/// What a sender is made of.
pub struct SenderConfig {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// The streams, at least one.
    pub streams: Vec<StreamConfig>,
    /// When the first report and frame may go out.
    pub start: Time,
    /// Timing of sender reports.
    pub rtcp: RtcpTiming,
    /// Longest time that the pacer's queue may take to drain; frames that do not fit are dropped.
    pub pacer_limit: TimeDelta,
    /// Answer NACKs.
    pub retransmit: bool,
    /// Forward error correction, and what bounds the answers to NACKs.
    pub protection: Protection,
    /// NTP time of the world's time zero, nanoseconds since 1900.
    pub ntp_origin: u64,
}

/// What the sender wants known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SenderEvent {
    /// The controller decided anew.
    Decision(Decision),
    /// A receiver report gave a round-trip time.
    RoundTrip(TimeDelta),
    /// A receiver report came.
    FractionLost(Fraction),
    /// A frame did not fit the pacer's queue.
    FrameDropped(StreamId),
    /// The send half emitted this signal of its table.
    Signal(u8, f64),
}

/// What a transmitted datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// An RTP packet.
    Media {
        /// Its stream.
        stream: StreamId,
        /// What kind of packet.
        kind: PacketKind,
    },
    /// RTCP.
    Control,
}

/// A packet in the pacer.
#[derive(Clone, Copy, Debug)]
struct Queued {
    stream: u8,
    kind: QueuedKind,
    packet: MediaPacket,
}

/// What a packet in the pacer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueuedKind {
    Media,
    Retransmission,
    /// The next of its stream's FEC packets; of `packet` only sequence and timestamp mean anything.
    Fec,
}

struct Stream {
    config: StreamConfig,
    next_frame: Time,
    sequence: u16,
    rtx_sequence: u16,
    picture: u16,
    last_timestamp: u32,
    packets: u64,
    octets: u32,
    /// Bytes of this stream in the pacer.
    queued: DataSize,
    /// Share of what it sends that is headers, smoothed over frames.
    overhead: f64,
    allotted: Rate,
    /// Bytes of headers on a media packet, IP and UDP included, and most bytes of media behind them.
    headers: u64,
    payload_max: u64,
    /// Whether media and FEC travel in envelopes.
    red: bool,
    fec: StreamFec,
    store: ResendStore,
    /// When the last report that counted was written.
    reported: hear::Written,
}

impl Stream {
    /// How many media packets had been sent with the one that a report calls its highest; `None` if that is none of
    /// ours. Its low 16 bits say which: the cycles above them count from the first packet that the receiver saw, and
    /// begin anew after an outage, so they may fall behind ours but never run ahead.
    fn sent_up_to(&self, highest: u32) -> Option<u64> {
        let last = (self.config.first_sequence as u64 + self.packets).checked_sub(1)?;
        let behind = (last as u16).wrapping_sub(highest as u16) as u64;
        (highest as u64 <= last).then(|| self.packets.checked_sub(behind)).flatten().filter(|count| *count > 0)
    }

    /// What it asks for, on the network.
    fn claim(&self) -> Claim {
        let (min, max) = self.config.source.range();
        Claim { priority: self.config.priority, min: self.with_headers(min), max: self.with_headers(max) }
    }

    /// A rate of frames as it is on the network.
    fn with_headers(&self, payload: Rate) -> Rate {
        payload.scale(1.0 / (1.0 - self.overhead))
    }
}

/// The sending endpoint.
pub struct MediaSender {
    extensions: ExtensionIds,
    streams: Vec<Stream>,
    half: Option<Box<dyn SendHalf>>,
    ecn: Ecn,
    decision: Decision,
    pacer: Pacer<Queued>,
    /// The controller's window has been closed since the last packet left.
    window_was_closed: bool,
    pacer_limit: TimeDelta,
    padding: Padding,
    history: Option<History>,
    reports: Vec<PacketReport>,
    remote: Option<i64>,
    /// With feedback by stream: the packets of each SSRC, and what the last report's clock showed when it came.
    numbers: Vec<Numbers>,
    remote_clock: Option<(i64, Time)>,
    /// Packets sent; its low 16 bits are the next transport-wide number.
    sent: u64,
    rtcp: RtcpTimer,
    next_report: Time,
    rtt: Option<TimeDelta>,
    retransmit: bool,
    ntp_origin: u64,
    /// Bytes resent in the current second, and rate of the one before.
    resent: (Time, DataSize),
    resend_rate: Rate,
    budget: ResendBudget,
    /// What FEC is wanted; none without.
    fec: Option<FecDemand>,
    /// Packets that reports have covered since the half was told of loss, and how many of them were lost, in 256ths.
    untold: (u64, u64),
    signals: Signals,
    events: VecDeque<SenderEvent>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
    claims: Vec<Claim>,
    shares: Vec<Rate>,
    /// What sources were last directed by.
    directed: Option<[Rate; 3]>,
    wake: Time,
}

/// Memory of the overhead estimate, per frame.
const OVERHEAD_MEMORY: f64 = 0.9;
/// A fraction lost is told once reports have covered this many packets (libwebrtc of 2013): of three packets one lost
/// would be a third.
const REPORT_PACKETS_MIN: u64 = 20;
/// Assumed before a report gave one (libwebrtc's default).
const RTT_DEFAULT: TimeDelta = TimeDelta::from_millis(100);
/// Media bytes in a full packet.
const PAYLOAD_MAX: u64 = MAX_RTP_PACKET - MEDIA_HEADERS.as_bytes();
/// Bytes of headers on a media packet, IP and UDP included.
const HEADERS: u64 = IP_UDP_HEADERS.as_bytes() + (RtpHeader::MAX_LEN + Vp8Descriptor::MAX_LEN) as u64;
/// A padding packet on the network.
const PADDING_SIZE: DataSize =
    DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + RtpHeader::MAX_LEN as u64 + PADDING_PAYLOAD);

impl MediaSender {
    /// A sender under `controller`, whose receive half, if any, belongs to the receiver.
    pub fn new(config: SenderConfig, controller: &mut Controller, random: RandomStream, signals: Signals) -> Self {
        let half = controller.send.take();
        let start = config.start;
        let most = config.streams.iter().map(|s| s.source.range().1).sum::<Rate>();
        let free = Decision { target: most, pacing: most, window: None, padding: Rate::ZERO };
        let decision = half.as_ref().map_or(free, |h| h.decision());
        let mut rtcp = RtcpTimer::new(config.rtcp, random);
        let next_report = start + rtcp.next(None);
        let fec = config.protection.fec == FecScheme::Ulpfec;
        let stream = |config: StreamConfig| {
            let red = fec && config.names.kind == MediaKind::Video;
            let (headers, payload_max) = match red {
                // What a FEC packet has before the parity of the media must fit too.
                true => (HEADERS + red::LEN as u64, PAYLOAD_MAX + MEDIA_HEADERS.as_bytes() - FEC_HEADERS),
                false => (HEADERS, PAYLOAD_MAX),
            };
            Stream {
                next_frame: config.source.poll_timeout(),
                sequence: config.first_sequence,
                rtx_sequence: config.first_sequence ^ 0x5555,
                picture: config.first_sequence & 0x7FFF,
                last_timestamp: config.timestamp_offset,
                packets: 0,
                octets: 0,
                queued: DataSize::ZERO,
                overhead: HEADERS as f64 / MAX_RTP_PACKET as f64,
                allotted: Rate::ZERO,
                headers,
                payload_max,
                red,
                fec: StreamFec::new(),
                store: ResendStore::new(),
                reported: hear::Written::default(),
                config,
            }
        };
        let per_packet = !matches!(controller.feedback, FeedbackKind::None);
        let by_stream = matches!(controller.feedback, FeedbackKind::Rfc8888 { .. });
        let ssrcs = config.streams.iter().flat_map(|s| [s.names.ssrc, s.names.rtx_ssrc]);
        let numbers = ssrcs.filter(|_| by_stream).map(Numbers::new).collect();
        let weights = config.streams.iter().map(|s| s.priority).collect::<Vec<_>>();
        let mut sender = Self {
            extensions: config.extensions,
            streams: config.streams.into_iter().map(stream).collect(),
            half,
            ecn: controller.ecn,
            decision,
            pacer: Pacer::new(decision.pacing, config.pacer_limit, weights),
            window_was_closed: false,
            pacer_limit: config.pacer_limit,
            padding: Padding::new(start),
            history: per_packet.then(History::new),
            reports: Vec::new(),
            remote: None,
            numbers,
            remote_clock: None,
            sent: 0,
            rtcp,
            next_report,
            rtt: None,
            retransmit: config.retransmit,
            ntp_origin: config.ntp_origin,
            resent: (start, DataSize::ZERO),
            resend_rate: Rate::ZERO,
            budget: ResendBudget::new(config.protection.resend, start),
            fec: fec.then(FecDemand::new),
            untold: (0, 0),
            signals,
            // The first decision is told like every other: a constant controller makes no second.
            events: VecDeque::from([SenderEvent::Decision(decision)]),
            malformed: [0; WireError::COUNT],
            ignored: 0,
            claims: Vec::new(),
            shares: Vec::new(),
            directed: None,
            wake: start,
        };
        sender.obey(start);
        sender.reckon_timeout();
        sender
    }

    /// An RTCP datagram came. Malformed ones and those that speak of packets never sent are counted and ignored.
    pub fn handle_packet(&mut self, now: Time, bytes: &[u8]) {
        match parse_compound(bytes) {
            Err(error) => self.malformed[error.index()] += 1,
            Ok(compound) => self.handle_compound(now, compound.into_iter()),
        }
        self.ask(now);
        self.reckon_timeout();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(half) = &mut self.half
            && half.poll_timeout() <= now
        {
            half.handle_timeout(now, &mut self.signals);
            self.ask(now);
        }
        for index in 0..self.streams.len() {
            while self.streams[index].next_frame <= now {
                self.handle_frame_due(now, index);
            }
        }
        self.reckon_timeout();
    }

    /// Writes the next datagram that may leave at `now` into `out`; call until `None`.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        if now < self.wake {
            return None;
        }
        let sent = self.write_next(now, out);
        self.reckon_timeout();
        sent
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.signals.is_empty() {
            let events = self.signals.drain().map(|(index, value)| SenderEvent::Signal(index, value));
            self.events.extend(events);
        }
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) are wanted next.
    pub fn poll_timeout(&self) -> Time {
        self.wake
    }

    /// The decision in force.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Malformed packets by kind, and well-formed ones that were ignored because they speak of nothing we sent.
    pub fn refused(&self) -> (&[u32; WireError::COUNT], u32) {
        (&self.malformed, self.ignored)
    }

    fn reckon_timeout(&mut self) {
        let mut wake = self.next_report;
        for stream in &self.streams {
            wake = wake.min(stream.next_frame);
        }
        if !self.window_is_open() {
            self.window_was_closed = true;
        } else {
            let padding = if self.pacer.queued() == DataSize::ZERO { self.padding_due() } else { Time::MAX };
            wake = wake.min(self.pacer.poll_timeout()).min(padding);
        }
        if let Some(half) = &self.half {
            wake = wake.min(half.poll_timeout());
        }
        self.wake = wake;
    }

    /// Whether the controller's window lets another packet go.
    fn window_is_open(&self) -> bool {
        let flight = self.history.as_ref().map(History::flight).unwrap_or_default();
        match self.decision.window {
            None => true,
            Some(Window::Outstanding(window)) => flight.outstanding < window,
            Some(Window::AfterHighest(window)) => flight.after_highest < window,
        }
    }

    fn padding_due(&self) -> Time {
        self.padding.due(PADDING_SIZE).max(self.pacer.next_release())
    }
}

/// A time in units of an RTP clock, modulo 2^32.
pub fn rtp_timestamp(at: Time, clock_rate: u32) -> u32 {
    (at.as_nanos() as i128 * clock_rate as i128 / 1_000_000_000) as u32
}
