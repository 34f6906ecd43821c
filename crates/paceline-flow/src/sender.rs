//! The sending endpoint: sources, packets, pacer, padding, retransmissions, sender reports, and the send half that
//! steers them.

use crate::allocation::{self, Claim};
use crate::datagram::{Datagram, IP_UDP_HEADERS, MAX_RTP_PACKET, MEDIA_HEADERS};
use crate::padding::{PADDING_PAYLOAD, Padding};
use crate::resend::{MediaPacket, ResendStore};
use crate::rtcp_timer::{RtcpTimer, RtcpTiming};
use crate::source::{Frame, Source};
use crate::streams::{MediaKind, StreamNames};
use paceline::{
    Class, Controller, Decision, Feedback, FeedbackKind, History, Pacer, PacketKind, PacketReport, ReceiverReport,
    ResendBudget, SendHalf, SentPacket, Signals, StreamState, Window,
};
use paceline_units::{DataSize, Ecn, Fraction, RandomStream, Rate, RemoteTime, StreamId, Time, TimeDelta};
use paceline_wire::{
    AbsSendTime, CompoundWriter, ExtensionIds, ReportBlock, Rtcp, RtpHeader, TICK, TransportFeedback, Vp8Descriptor,
    WireError, ntp, parse_compound, rtx, unwrap_ticks,
};
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
    resend: bool,
    packet: MediaPacket,
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
    store: ResendStore,
    /// Of the media packets sent, how many had been when the highest that a report named was.
    reported: u64,
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
    pacer_limit: TimeDelta,
    padding: Padding,
    history: Option<History>,
    reports: Vec<PacketReport>,
    remote: Option<i64>,
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
    /// Packets that reports have covered since the half was told of loss, and how many of them were lost, in 256ths.
    untold: (u64, u64),
    signals: Signals,
    events: VecDeque<SenderEvent>,
    malformed: [u32; WireError::COUNT],
    ignored: u32,
    claims: Vec<Claim>,
    shares: Vec<Rate>,
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
        let stream = |config: StreamConfig| Stream {
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
            store: ResendStore::new(),
            reported: 0,
            config,
        };
        let per_packet = !matches!(controller.feedback, FeedbackKind::None);
        let mut sender = Self {
            extensions: config.extensions,
            streams: config.streams.into_iter().map(stream).collect(),
            half,
            ecn: controller.ecn,
            decision,
            pacer: Pacer::new(decision.pacing, config.pacer_limit),
            pacer_limit: config.pacer_limit,
            padding: Padding::new(start),
            history: per_packet.then(History::new),
            reports: Vec::new(),
            remote: None,
            sent: 0,
            rtcp,
            next_report,
            rtt: None,
            retransmit: config.retransmit,
            ntp_origin: config.ntp_origin,
            resent: (start, DataSize::ZERO),
            resend_rate: Rate::ZERO,
            budget: ResendBudget::new(start),
            untold: (0, 0),
            signals,
            // The first decision is told like every other: a constant controller makes no second.
            events: VecDeque::from([SenderEvent::Decision(decision)]),
            malformed: [0; WireError::COUNT],
            ignored: 0,
            claims: Vec::new(),
            shares: Vec::new(),
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
            Ok(compound) => {
                for packet in compound {
                    self.handle_rtcp(now, packet);
                }
            }
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
        if self.window_is_open() {
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

    // ---- frames to packets

    fn handle_frame_due(&mut self, now: Time, index: usize) {
        let stream = &mut self.streams[index];
        let frame = stream.config.source.poll_frame(now);
        stream.next_frame = stream.config.source.poll_timeout();
        let Some(frame) = frame else { return };
        let state = StreamState {
            stream: stream.config.names.id,
            queued: stream.queued,
            unused: stream.allotted.saturating_sub(stream.config.source.range().1),
        };
        if let Some(half) = &mut self.half {
            half.handle_stream(now, &state);
            self.ask(now);
        }
        self.packetise(now, index, &frame);
        self.direct_sources(now); // the overhead moved a little
    }

    /// Cuts a frame into packets of equal size and queues them, all or none.
    fn packetise(&mut self, now: Time, index: usize, frame: &Frame) {
        let stream = &mut self.streams[index];
        let names = stream.config.names;
        let bytes = frame.size.as_bytes().max(1);
        let count = bytes.div_ceil(PAYLOAD_MAX);
        let total = DataSize::from_bytes(bytes + count * HEADERS);
        stream.overhead = OVERHEAD_MEMORY * stream.overhead
            + (1.0 - OVERHEAD_MEMORY) * (count * HEADERS) as f64 / total.as_bytes() as f64;
        // After a leap of the clock a source hands out what it missed: too old before it is queued.
        if now - frame.captured > self.pacer_limit || !self.pacer.has_room(total) {
            // The picture number is spent: the receiver sees that a frame is missing.
            stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
            stream.config.source.request_key_frame(frame.captured);
            self.events.push_back(SenderEvent::FrameDropped(names.id));
            return;
        }
        let timestamp = rtp_timestamp(frame.captured, names.clock_rate).wrapping_add(stream.config.timestamp_offset);
        stream.last_timestamp = timestamp;
        let class = match names.kind {
            MediaKind::Audio => Class::Audio,
            MediaKind::Video => Class::Video,
        };
        for i in 0..count {
            let payload = bytes / count + u64::from(i < bytes % count);
            let packet = MediaPacket {
                sequence: stream.sequence,
                timestamp,
                payload: payload as u16,
                picture: stream.picture,
                start: i == 0,
                marker: i + 1 == count,
                key: frame.key,
            };
            stream.sequence = stream.sequence.wrapping_add(1);
            let size = DataSize::from_bytes(payload + HEADERS);
            stream.queued += size;
            self.pacer.push(class, Queued { stream: index as u8, resend: false, packet }, size);
        }
        stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
    }

    // ---- packets to bytes

    fn write_next(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        if now >= self.next_report {
            self.write_report(now, out);
            return Some(Sent::Control);
        }
        if !self.window_is_open() {
            return None;
        }
        if let Some(queued) = self.pacer.pop(now) {
            return Some(self.write_media(now, queued, out));
        }
        if self.pacer.queued() == DataSize::ZERO && now >= self.padding_due() {
            return Some(self.write_padding(now, out));
        }
        None
    }

    fn write_media(&mut self, now: Time, queued: Queued, out: &mut Datagram) -> Sent {
        let Queued { stream: index, resend, packet } = queued;
        let stream = &mut self.streams[index as usize];
        let names = stream.config.names;
        let (payload_type, sequence, ssrc) = match resend {
            false => (names.payload_type(), packet.sequence, names.ssrc),
            true => (names.rtx_payload_type(), stream.rtx_sequence, names.rtx_ssrc),
        };
        let header = RtpHeader {
            marker: packet.marker,
            payload_type,
            sequence,
            timestamp: packet.timestamp,
            ssrc,
            abs_send_time: Some(AbsSendTime::from_time(now)),
            transport_sequence: Some(self.sent as u16),
            padding: false,
        };
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        let kind = if resend {
            stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
            len += rtx::write(packet.sequence, &mut buffer[len..]);
            PacketKind::Retransmission
        } else {
            stream.queued = stream.queued.saturating_sub(DataSize::from_bytes(packet.payload as u64 + HEADERS));
            stream.packets += 1;
            stream.octets = stream.octets.wrapping_add(packet.payload as u32);
            if self.retransmit && names.kind == MediaKind::Video {
                stream.store.remember(packet);
            }
            PacketKind::Media
        };
        if names.kind == MediaKind::Video {
            let vp8 = Vp8Descriptor { start: packet.start, picture_id: packet.picture, key: packet.key };
            len += vp8.write(&mut buffer[len..]);
        }
        out.set_len(len, packet.payload as u64, self.ecn);
        self.count_sent(now, out.size(), names.id, kind)
    }

    fn write_padding(&mut self, now: Time, out: &mut Datagram) -> Sent {
        let stream = self.streams.iter_mut().find(|s| s.config.names.kind == MediaKind::Video);
        let stream = stream.expect("only video pads: without it the padding rate is zero");
        let names = stream.config.names;
        let header = RtpHeader {
            marker: false,
            payload_type: names.rtx_payload_type(),
            sequence: stream.rtx_sequence,
            timestamp: stream.last_timestamp,
            ssrc: names.rtx_ssrc,
            abs_send_time: Some(AbsSendTime::from_time(now)),
            transport_sequence: Some(self.sent as u16),
            padding: true,
        };
        stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
        let len = header.write(&self.extensions, out.buffer());
        out.set_len(len, PADDING_PAYLOAD, self.ecn);
        self.pacer.spend(now, out.size());
        self.count_sent(now, out.size(), names.id, PacketKind::Padding)
    }

    fn count_sent(&mut self, now: Time, size: DataSize, stream: StreamId, kind: PacketKind) -> Sent {
        self.padding.handle_sent(now, size);
        if kind == PacketKind::Retransmission {
            self.resent.1 += size;
        }
        let packet = SentPacket { sequence: self.sent, size, stream, kind };
        self.sent += 1;
        if let Some(history) = &mut self.history {
            history.handle_sent(now, &packet);
        }
        if let Some(half) = &mut self.half {
            half.handle_sent(now, &packet);
            self.ask(now);
        }
        Sent::Media { stream, kind }
    }

    /// SR for every stream that has sent, and the name that RFC 3550 wants in every compound.
    fn write_report(&mut self, now: Time, out: &mut Datagram) {
        let stamp = self.ntp(now);
        let mut writer = CompoundWriter::new(out.buffer());
        for s in self.streams.iter() {
            let names = s.config.names;
            let timestamp = rtp_timestamp(now, names.clock_rate).wrapping_add(s.config.timestamp_offset);
            // More streams than fit report in later compounds, never: flows have a handful.
            let _ = writer.sender_report(names.ssrc, stamp, timestamp, s.packets as u32, s.octets, &[]);
        }
        let _ = writer.sdes_cname(self.streams[0].config.names.ssrc, "paceline");
        let len = writer.finish();
        out.set_len(len, 0, Ecn::NotEct);
        self.next_report = now + self.rtcp.next(Some(out.size()));
        self.reckon_resends(now);
    }

    fn reckon_resends(&mut self, now: Time) {
        let (since, bytes) = self.resent;
        if now - since >= TimeDelta::from_secs(1) {
            self.resend_rate = Rate::of(bytes, now - since);
            self.resent = (now, DataSize::ZERO);
        }
    }

    fn ntp(&self, now: Time) -> u64 {
        ntp::from_nanos(self.ntp_origin.wrapping_add(now.as_nanos() as u64))
    }

    // ---- RTCP

    fn handle_rtcp(&mut self, now: Time, packet: Rtcp<'_>) {
        match packet {
            Rtcp::ReceiverReport { blocks, .. } | Rtcp::SenderReport { blocks, .. } => self.handle_blocks(now, blocks),
            Rtcp::Remb { rate, mut ssrcs, .. } => {
                let ours = ssrcs.any(|ssrc| self.streams.iter().any(|s| s.config.names.ssrc == ssrc));
                match (&mut self.half, ours) {
                    (Some(half), true) => half.handle_remb(now, rate, &mut self.signals),
                    _ => self.ignored += 1,
                }
            }
            Rtcp::Nack { media_ssrc, lost, .. } => self.handle_nack(now, media_ssrc, lost),
            Rtcp::Pli { media_ssrc, .. } => match self.streams.iter_mut().find(|s| s.config.names.ssrc == media_ssrc) {
                Some(stream) => stream.config.source.request_key_frame(now),
                None => self.ignored += 1,
            },
            Rtcp::TransportFeedback(feedback) => self.handle_feedback(now, &feedback),
            _ => {}
        }
    }

    /// One report on the flow: losses of its streams' media, weighted by the packets that each block covers.
    fn handle_blocks(&mut self, now: Time, blocks: impl Iterator<Item = ReportBlock>) {
        let (mut expected, mut lost, mut rtt) = (0u64, 0u64, None);
        let stamp = ntp::middle(self.ntp(now));
        for block in blocks {
            let Some(stream) = self.streams.iter_mut().find(|s| s.config.names.ssrc == block.ssrc) else {
                let known = self.streams.iter().any(|s| s.config.names.rtx_ssrc == block.ssrc);
                self.ignored += u32::from(!known);
                continue;
            };
            let Some(count) = stream.sent_up_to(block.highest_sequence).filter(|count| *count >= stream.reported)
            else {
                self.ignored += 1;
                continue;
            };
            let news = count - stream.reported;
            stream.reported = count;
            expected += news;
            lost += news * block.fraction_lost as u64;
            let sample = ntp::round_trip(stamp, block.last_sr, block.delay_since_last_sr);
            rtt = rtt.or(sample);
        }
        if let Some(rtt) = rtt.filter(|_| expected > 0) {
            self.rtt = Some(rtt);
            self.events.push_back(SenderEvent::RoundTrip(rtt));
        }
        self.untold.0 += expected;
        self.untold.1 += lost;
        if self.untold.0 < REPORT_PACKETS_MIN {
            return;
        }
        let (expected, lost) = core::mem::take(&mut self.untold);
        let fraction_lost = Fraction::from_q8((lost / expected).min(255) as u8);
        self.events.push_back(SenderEvent::FractionLost(fraction_lost));
        if let Some(half) = &mut self.half {
            half.handle_report(now, &ReceiverReport { fraction_lost, rtt }, &mut self.signals);
        }
    }

    fn handle_nack(&mut self, now: Time, media_ssrc: u32, lost: impl Iterator<Item = u16>) {
        let Some(index) = self.streams.iter().position(|s| s.config.names.ssrc == media_ssrc) else {
            self.ignored += 1;
            return;
        };
        if !self.retransmit {
            return;
        }
        let rtt = self.rtt.unwrap_or(RTT_DEFAULT);
        for sequence in lost {
            let store = &mut self.streams[index].store;
            let Some(packet) = store.find(now, sequence, rtt) else { continue };
            let size = DataSize::from_bytes(packet.payload as u64 + HEADERS + rtx::LEN as u64);
            if self.pacer.has_room(size) && self.budget.spend(now, size, self.decision.target, rtt) {
                store.mark_resent(now, sequence);
                self.pacer.push(Class::Retransmission, Queued { stream: index as u8, resend: true, packet }, size);
            }
        }
    }

    fn handle_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        let Some(history) = &mut self.history else {
            self.ignored += 1;
            return;
        };
        if let Some(base) = history.unwrap(feedback.base_sequence) {
            history.abandon_below(base);
        }
        self.reports.clear();
        for (number, ticks) in feedback.packets() {
            let Some(sequence) = history.unwrap(number) else {
                self.ignored += 1;
                continue;
            };
            let arrival = ticks.map(|ticks| {
                let ticks = unwrap_ticks(self.remote.unwrap_or(ticks), ticks);
                self.remote = Some(ticks);
                RemoteTime::from_nanos(ticks * TICK.as_nanos())
            });
            self.reports.extend(history.settle(sequence, arrival, Ecn::NotEct));
        }
        let flight = history.flight();
        if let (Some(half), false) = (&mut self.half, self.reports.is_empty()) {
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let joined = Feedback { packets: &self.reports, outstanding, after_highest };
            half.handle_feedback(now, &joined, &mut self.signals);
        }
    }

    // ---- decisions

    /// Asks the half what to do, and does it if it is new.
    fn ask(&mut self, now: Time) {
        let Some(half) = &self.half else { return };
        let decision = half.decision();
        if decision != self.decision {
            self.decision = decision;
            self.events.push_back(SenderEvent::Decision(decision));
            self.obey(now);
        }
    }

    fn obey(&mut self, now: Time) {
        self.pacer.set_rate(self.decision.pacing.max(Rate::from_bps(1)));
        self.direct_sources(now);
    }

    /// Tells each source its share of what the target leaves after retransmissions. Shares are divided as they are on
    /// the network: a stream pays for its own headers, which are half of an audio stream and a twentieth of video.
    fn direct_sources(&mut self, now: Time) {
        let media = self.decision.target.saturating_sub(self.resend_rate);
        self.claims.clear();
        self.claims.extend(self.streams.iter().map(|s| {
            let (min, max) = s.config.source.range();
            Claim { priority: s.config.priority, min: s.with_headers(min), max: s.with_headers(max) }
        }));
        let pads = self.streams.iter().any(|s| s.config.names.kind == MediaKind::Video);
        let most = self.claims.iter().map(|c| c.max).sum();
        self.padding.set_rate(if pads { self.decision.padding.min(most) } else { Rate::ZERO });
        self.shares.clear();
        self.shares.resize(self.streams.len(), Rate::ZERO);
        allocation::divide(media, &self.claims, &mut self.shares);
        for (stream, share) in self.streams.iter_mut().zip(&self.shares) {
            let half = self.half.as_ref().and_then(|h| h.stream_rate(stream.config.names.id));
            stream.allotted = half.unwrap_or(*share).scale(1.0 - stream.overhead);
            stream.config.source.set_target(now, stream.allotted);
        }
    }
}

/// A time in units of an RTP clock, modulo 2^32.
pub(crate) fn rtp_timestamp(at: Time, clock_rate: u32) -> u32 {
    (at.as_nanos() as i128 * clock_rate as i128 / 1_000_000_000) as u32
}
