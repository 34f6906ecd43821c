// SPDX-License-Identifier: MIT OR Apache-2.0
//! A local endpoint of a call: the simulator's media sender or receiver behind a WebRTC session, over a UDP socket.
//!
//! ```text
//!            encoder ─▶ FrameCache
//!               │          │ payload
//!  MediaSender ─┴─ packets ┴▶ ┌────────┐ ┌─────────┐
//!  MediaReceiver ── RTCP ───▶ │ Bridge │─│ Session │── SRTP, DTLS, STUN ── Socket
//!  both ◀── packets as bytes ─└────────┘ └─────────┘
//! ```
//!
//! The media flow starts when the session is connected. Packets sent before would be lost and would mislead the
//! controller.
//!
//! Sizes count the same bytes as in the simulator: IP and UDP headers, RTP, and payload. The 10-byte SRTP tag of a
//! packet is not counted, so the rate of full packets is 0.8 % below the rate that the link carries.

mod bridge;
mod error;
mod frame_cache;
mod packets;
mod remb_cap;
mod session;
#[cfg(feature = "video")]
pub mod video;
mod video_section;

pub use error::EndpointError;
pub use frame_cache::FrameCache;
pub use video_section::VideoSection;

use crate::call::call_roles::feedback_format;
use crate::call::stats::SRTP_TAG;
use paceline::{Controller, FecScheme, MediaKind, Registry};
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::device::MTU;
use paceline_live::testbed::socket::{ReceiveBuffers, Socket};
use paceline_netsim::ControllerFailure;
use paceline_netsim::flow::source::Source;
use paceline_netsim::flow::{
    Datagram, DatagramKind, FeedbackFormat, IP_UDP_HEADERS, PACKET_SIZE_DEFAULT, StreamInfo, rtp_timestamp,
};
use paceline_netsim::media_flow::{MediaFlow, PreparedFlow, RECEIVER_SSRC, Terms, controller};
use paceline_netsim::network::FlowEnd;
use paceline_netsim::plan::{FlowChange, FlowPlan, MediaPlan};
use paceline_netsim::records::EventRecord;
use paceline_netsim::world::WorldError;
use paceline_units::{DataSize, Ecn, RandomStreams, Rate, Time, TimeDelta};
use paceline_wire::{ExtensionIds, Rtcp, RtpHeader, is_rtcp, parse_compound};
use remb_cap::RembCap;
use session::{Session, SessionState};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Creates the media source of a sender when the session is connected.
pub trait MakeSource: Send {
    /// Creates a source that starts at `start` and accepts targets within `range`. Its RTP timestamps count from
    /// `timestamp_of_zero` at run time zero. The source stores each frame in `cache` before it returns the frame.
    fn make(
        self: Box<Self>,
        start: Time,
        range: (Rate, Rate),
        timestamp_of_zero: u32,
        cache: FrameCache,
    ) -> Result<Box<dyn Source>, WorldError>;
}

enum State {
    /// The session is not connected.
    Connecting(Box<PreparedFlow>, Option<Terms>),
    /// Media is sent or received.
    Running(Box<MediaFlow>),
    /// The flow could not be created, or the call has ended.
    Closed,
}

/// A local endpoint of a call.
pub struct Endpoint {
    end: FlowEnd,
    state: State,
    session: Session,
    socket: Socket,
    room: ReceiveBuffers,
    /// ECN codepoint of media packets, as the controller requires.
    ecn: Ecn,
    /// Lowest and highest rate of the source, without headers.
    range: (Rate, Rate),
    source: Option<Box<dyn MakeSource>>,
    /// Encoded frames; without a cache, the payload is zeros.
    cache: Option<FrameCache>,
    /// The negotiated stream.
    stream: Option<StreamInfo>,
    /// Caps of a middlebox on the REMB of a receiver.
    remb_cap: RembCap,
    /// Next timeout of the session.
    session_due: Time,
    capture_clock: CaptureClock,
    /// Time of the last input. Later inputs are never handled at an earlier time.
    last: Time,
    /// The cause, if the media flow could not be created.
    failed: Option<WorldError>,
}

/// The source of a receiver's mapping from RTP timestamps to capture times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CaptureClock {
    /// No mapping yet.
    Unknown,
    /// Estimated from the first packet, as if it had no delay.
    Estimated,
    /// From a sender report (RFC 3550).
    Reported,
}

impl Endpoint {
    /// Creates an end of this flow, with its number, at this address. The calling thread must be in the network namespace that has the
    /// address. The controller comes from the registry, with these random streams, and emits signals or not. Without `source` a sender
    /// sends packets of the plan's source with zeros as payload.
    ///
    /// # Errors
    /// A call cannot carry the flow, or the socket cannot be opened.
    ///
    /// # Panics
    /// It is no media flow.
    pub fn new(
        end: FlowEnd,
        (flow, plan): (usize, &FlowPlan),
        (registry, streams, signals): (&Registry, &RandomStreams, bool),
        at: SocketAddrV4,
        source: Option<Box<dyn MakeSource>>,
    ) -> Result<Self, EndpointError> {
        let media = plan.media().expect("calls are media flows");
        check_supported(plan, media, Some(end))?;
        let prepared = PreparedFlow::new(flow, plan, media, controller(plan, media, registry)?, streams, signals)?;
        let socket = Socket::bind(at)?;
        let sends = prepared.stream_infos().first().filter(|_| end == FlowEnd::Sender);
        let session =
            Session::new(instant(), socket.address()?, feedback_format(prepared.controller().feedback), sends)?;
        Ok(Self {
            end,
            state: State::Connecting(Box::new(prepared), None),
            session,
            socket,
            room: ReceiveBuffers::default(),
            ecn: Ecn::NotEct,
            range: media.streams[0].source.range(),
            cache: source.is_some().then(FrameCache::default),
            source,
            stream: None,
            remb_cap: RembCap::new(media),
            session_due: Time::MAX,
            capture_clock: CaptureClock::Unknown,
            last: Time::ZERO,
            failed: None,
        })
    }

    /// Returns the sender's offer with its candidate.
    pub fn offer(&mut self) -> Result<String, EndpointError> {
        let offer = self.session.offer(instant())?;
        self.negotiate(&offer, &VideoSection::read(&offer)?)?;
        Ok(offer)
    }

    /// Returns the receiver's answer with its candidate.
    ///
    /// # Errors
    /// The offer is not one VP8 video with retransmissions, or lacks the feedback that the controller needs.
    pub fn answer(&mut self, offer: &str) -> Result<String, EndpointError> {
        let offered = VideoSection::read(offer)?;
        let answer = self.session.answer(instant(), offer)?;
        self.negotiate(&answer, &offered)?;
        Ok(answer)
    }

    /// Applies the remote answer.
    ///
    /// # Errors
    /// The answer does not accept the offered feedback or header extensions.
    pub fn accept(&mut self, answer: &str) -> Result<(), EndpointError> {
        let answered = VideoSection::read(answer)?;
        if let State::Connecting(prepared, Some(terms)) = &self.state {
            check_feedback(prepared.controller(), &answered)?;
            if answered.extensions != terms.extensions {
                let found = answered.extensions;
                let what = format!("{found:?} in place of {:?}, which was offered", terms.extensions);
                return Err(EndpointError::Disagreement(what));
            }
        }
        self.session.accept(instant(), answer)
    }

    /// Stores the negotiated terms: extension ids of the local description, streams of the sender's description.
    fn negotiate(&mut self, own: &str, sending: &VideoSection) -> Result<(), EndpointError> {
        let own = VideoSection::read(own)?;
        if let State::Connecting(prepared, terms) = &mut self.state {
            check_feedback(prepared.controller(), &own)?;
            let stream = sending.stream()?;
            self.stream = Some(stream);
            let (extensions, streams) = (own.extensions, vec![stream]);
            let (source, receiver_ssrc) = (None, RECEIVER_SSRC);
            *terms = Some(Terms { extensions, streams, source, wall_clock: Duration::ZERO, receiver_ssrc });
        }
        Ok(())
    }

    /// Receives datagrams, handles due timeouts, and sends. Events of the flow go to `events`.
    ///
    /// # Errors
    /// The socket fails, the source cannot be created, or the session is lost: no packet arrived for half a minute, or
    /// the remote endpoint failed authentication.
    pub fn serve(&mut self, now: Time, clock: &Monotonic, events: &Sender<EventRecord>) -> io::Result<()> {
        self.receive(clock, events)?;
        let now = now.max(self.last);
        self.last = now;
        if self.session_due <= now {
            self.session.handle_timeout(instant());
            self.begin(now, clock);
        }
        if self.flow_timeout() <= now {
            if let State::Running(flow) = &mut self.state {
                flow.handle_timeout(now, self.end);
            }
            self.drain(now, clock, events);
        }
        self.transmit();
        self.session_due = match self.session.poll_timeout() {
            Some(due) => clock.now() + until(due),
            None => Time::MAX,
        };
        match (self.failed.take(), self.session.state()) {
            (Some(error), _) => Err(io::Error::other(error)),
            (None, SessionState::Failed) => Err(io::Error::other("the WebRTC session is lost")),
            (None, _) => Ok(()),
        }
    }

    /// Checks that the half of the controller has not failed.
    pub fn check_controller(&mut self) -> Result<(), ControllerFailure> {
        match &mut self.state {
            State::Running(flow) => flow.check_controller(self.last, self.end),
            State::Connecting(..) | State::Closed => Ok(()),
        }
    }

    /// Returns the time of the next timeout.
    pub fn timeout(&self) -> Time {
        self.session_due.min(self.flow_timeout())
    }

    /// Returns the UDP socket, which is readable when a datagram has arrived.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Returns the local address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Returns whether the session is connected.
    pub fn is_connected(&self) -> bool {
        self.session.state() == SessionState::Connected
    }

    /// Stops the flow, closes the session and notifies the remote endpoint.
    pub fn close(&mut self) {
        self.session.close();
        self.state = State::Closed;
        self.transmit();
    }

    fn flow_timeout(&self) -> Time {
        match &self.state {
            State::Running(flow) => flow.poll_timeout(self.last, self.end).unwrap_or(Time::MAX),
            _ => Time::MAX,
        }
    }

    fn receive(&mut self, clock: &Monotonic, events: &Sender<EventRecord>) -> io::Result<()> {
        // The socket is borrowed during `receive`, so the datagrams are handled afterwards.
        let mut received = Vec::new();
        self.socket
            .receive(clock, &mut self.room, |at, from, bytes, ecn| received.push((at, from, bytes.to_vec(), ecn)))?;
        for (at, from, bytes, ecn) in received {
            self.handle_datagram(at, from, &bytes, ecn, clock, events);
        }
        Ok(())
    }

    fn handle_datagram(
        &mut self,
        at: Time,
        from: SocketAddr,
        bytes: &[u8],
        ecn: Ecn,
        clock: &Monotonic,
        events: &Sender<EventRecord>,
    ) {
        let at = at.max(self.last);
        self.last = at;
        self.session.handle_datagram(instant(), from, bytes);
        self.begin(at, clock);
        while let Some(packet) = self.session.poll_packet() {
            let Ok(plain) = packets::bytes(&packet) else { continue };
            self.update_capture_clock(at, &plain, clock);
            let State::Running(flow) = &mut self.state else { continue };
            // The library drops the padding length, so the size is taken from the datagram.
            let tag = if is_rtcp(&plain) { 0 } else { SRTP_TAG };
            let size = DataSize::from_bytes(bytes.len().saturating_sub(tag) as u64) + IP_UDP_HEADERS;
            flow.handle_packet(at, self.end, at, &plain, size, ecn);
            self.drain(at, clock, events);
        }
    }

    /// Starts the media flow once the session is connected.
    fn begin(&mut self, now: Time, clock: &Monotonic) {
        let ready =
            matches!(self.state, State::Connecting(_, Some(_))) && self.session.state() == SessionState::Connected;
        if !ready {
            return;
        }
        let State::Connecting(prepared, Some(terms)) = std::mem::replace(&mut self.state, State::Closed) else {
            return;
        };
        let source = match (self.source.take(), &self.cache) {
            (Some(source), Some(cache)) => {
                let first = prepared.first_timestamps().next().unwrap_or_default();
                source.make(now, self.range, first, cache.clone()).map(Some)
            }
            _ => Ok(None),
        };
        let flow = source
            .and_then(|source| prepared.begin(now, Terms { source, wall_clock: clock.wall_clock_at_zero(), ..terms }));
        match flow {
            Ok(flow) => self.state = State::Running(Box::new(flow)),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Updates a receiver's mapping from RTP timestamps to capture times: from the first packet until the first sender
    /// report arrives.
    fn update_capture_clock(&mut self, at: Time, bytes: &[u8], clock: &Monotonic) {
        let (FlowEnd::Receiver, State::Running(flow), Some(stream)) = (self.end, &mut self.state, self.stream) else {
            return;
        };
        let sample = match (self.capture_clock, is_rtcp(bytes)) {
            (CaptureClock::Reported, _) | (CaptureClock::Estimated, false) => None,
            (_, true) => sender_report(bytes, stream.ssrc)
                .map(|(ntp, timestamp)| (CaptureClock::Reported, clock.from_wall_clock(ntp), timestamp)),
            (CaptureClock::Unknown, false) => RtpHeader::parse(bytes, &ExtensionIds::default())
                .ok()
                .filter(|(header, _)| header.ssrc == stream.ssrc)
                .map(|(header, _)| (CaptureClock::Estimated, at, header.timestamp)),
        };
        if let Some((clock, at, timestamp)) = sample {
            self.capture_clock = clock;
            flow.set_timestamp_of_zero(stream.id, timestamp.wrapping_sub(rtp_timestamp(at, stream.clock_rate)));
        }
    }

    fn drain(&mut self, now: Time, clock: &Monotonic, events: &Sender<EventRecord>) {
        let mut datagram = Datagram::new();
        let emit = |event| events.send(event).is_ok();
        let State::Running(flow) = &mut self.state else { return };
        match self.end {
            FlowEnd::Sender => {
                let mut now = now;
                while let Some(sent) = flow.sender.poll_transmit(now, &mut datagram) {
                    let packet = match sent {
                        DatagramKind::Rtcp => Some(packets::rtcp(datagram.bytes().to_vec())),
                        DatagramKind::Rtp { .. } => {
                            self.ecn = datagram.ecn;
                            packets::rtp(&datagram, self.cache.as_ref())
                        }
                    };
                    packet.into_iter().for_each(|packet| self.session.send(instant(), packet));
                    transmit(&mut self.session, &self.socket, self.ecn);
                    // The packets of a burst leave one after the other, and each has its own send time. With one time for all
                    // of them libwebrtc's groups of packets are longer than Chromium's, and over-use is detected later.
                    now = now.max(clock.now());
                }
                self.last = now;
                while let Some(event) = flow.sender.poll_event() {
                    if let Some(event) = flow.sender_event(now, event) {
                        emit(event);
                    }
                }
            }
            FlowEnd::Receiver => {
                let reading = flow.clock.at(now);
                if flow.receiver.poll_timeout().is_some_and(|due| due <= reading) {
                    while flow.receiver.poll_transmit(reading, &mut datagram) {
                        let mut compound = datagram.bytes().to_vec();
                        self.remb_cap.apply(now, &mut compound);
                        self.session.send(instant(), packets::rtcp(compound));
                    }
                }
                while let Some(event) = flow.receiver.poll_event() {
                    emit(flow.receiver_event(now, event));
                }
            }
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        transmit(&mut self.session, &self.socket, self.ecn);
    }
}

/// Sends the datagrams of the session. Media carries this codepoint.
fn transmit(session: &mut Session, socket: &Socket, ecn: Ecn) {
    while let Some((to, bytes)) = session.poll_transmit() {
        // RFC 7983: first bytes 128 to 191 are RTP or RTCP. Only RTP carries the controller's codepoint.
        let is_media = matches!(bytes.first(), Some(128..=191)) && !is_rtcp(&bytes);
        socket.send(to, &bytes, if is_media { ecn } else { Ecn::NotEct });
    }
}

/// Checks that a call can carry the flow with `local` as the local endpoint. Forward error correction is only checked
/// for a local sender: a Chromium sender ignores the scenario's setting.
///
/// # Errors
/// The flow has an unsupported feature; the error contains a hint.
pub(crate) fn check_supported(plan: &FlowPlan, media: &MediaPlan, local: Option<FlowEnd>) -> Result<(), WorldError> {
    let refuse = |what: &str, hint: &str| {
        let cause = format!("flow `{}` has {what}, which a call does not support", plan.id);
        Err(WorldError::Unavailable { cause, hint: hint.to_owned() })
    };
    match media.streams.as_slice() {
        [stream] if stream.kind == MediaKind::Video => {}
        _ => {
            return refuse(
                "streams other than one video stream",
                "use exactly one video stream; the worlds `sim` and `testbed` support others",
            );
        }
    }
    // A Chromium that sends can mute its camera.
    let stream = &media.streams[0];
    if stream.limits_change() || local == Some(FlowEnd::Sender) && stream.changes_during_run() {
        let hint =
            "leave out `max_rate`, `stop` and `suspend` of the stream; only a Chromium that sends can be `muted`";
        return refuse("a stream that changes", hint);
    }
    if local != Some(FlowEnd::Receiver) && media.changes.iter().any(|(_, change)| matches!(change, FlowChange::Remb(_)))
    {
        return refuse("a REMB of a middlebox", "use a controller whose receive half sends REMB, such as gcc-2016");
    }
    if local == Some(FlowEnd::Sender) && media.protection.fec != FecScheme::None {
        return refuse("forward error correction", "--set flow.ID.protection.fec=\"none\"");
    }
    if local != Some(FlowEnd::Sender) && media.packet_size != PACKET_SIZE_DEFAULT {
        let hint = "leave it out: Chromium chooses the size of its packets; a controller at a local sender can set it";
        return refuse("a `packet_size` for packets of Chromium", hint);
    }
    if media.packet_size > SRTP_PACKET_MAX {
        let most = SRTP_PACKET_MAX.as_bytes();
        let hint = format!("write at most \"{most} B\": SRTP adds a tag of {SRTP_TAG} bytes");
        return refuse(&format!("a `packet_size` of {} B", media.packet_size.as_bytes()), &hint);
    }
    Ok(())
}

/// The largest RTP packet that fits the MTU of the devices with its SRTP tag.
const SRTP_PACKET_MAX: DataSize = DataSize::from_bytes(MTU as u64 - IP_UDP_HEADERS.as_bytes() - SRTP_TAG as u64);

/// Checks that the negotiated section has the feedback that a controller needs.
fn check_feedback(controller: &Controller, agreed: &VideoSection) -> Result<(), EndpointError> {
    let wanted = match feedback_format(controller.feedback) {
        None if controller.receive.is_none() => return Ok(()),
        None => "goog-remb",
        Some(FeedbackFormat::TransportWide) => "transport-cc",
        Some(FeedbackFormat::Rfc8888) => "ack ccfb",
    };
    let is_numbered = wanted != "transport-cc" || agreed.extensions.transport_sequence != 0;
    match agreed.has(wanted) && is_numbered {
        true => Ok(()),
        false => Err(EndpointError::Disagreement(format!("no `{wanted}`, which the controller needs"))),
    }
}

/// Returns the wall-clock time since 1970 and the RTP timestamp in a stream's sender report.
fn sender_report(bytes: &[u8], of: u32) -> Option<(Duration, u32)> {
    const NTP_TO_1970: Duration = Duration::from_secs(2_208_988_800);
    parse_compound(bytes).ok()?.into_iter().find_map(|packet| match packet {
        Rtcp::SenderReport { ssrc, ntp, rtp_timestamp, .. } if ssrc == of => {
            let fraction = Duration::from_nanos(((ntp & 0xFFFF_FFFF) * 1_000_000_000) >> 32);
            let since_1900 = Duration::from_secs(ntp >> 32) + fraction;
            Some((since_1900.checked_sub(NTP_TO_1970)?, rtp_timestamp))
        }
        _ => None,
    })
}

/// Reads the clock of the WebRTC library. The library uses only differences of its times.
fn instant() -> Instant {
    Instant::now()
}

/// Returns the time until an instant of the library's clock.
fn until(due: Instant) -> TimeDelta {
    TimeDelta::from_nanos(due.saturating_duration_since(instant()).as_nanos().min(i64::MAX as u128 / 4) as i64)
}
