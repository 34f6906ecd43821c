//! One end of a call, ours: the simulator's sender or receiver behind a WebRTC session, over a UDP socket.
//!
//! ```text
//!            encoder ─▶ Shelf (frames)
//!               │          │ payload
//!  MediaSender ─┴─ packets ┴▶ ┌────────┐ ┌──────┐
//!  MediaReceiver ── RTCP ───▶ │ Bridge │─│ Peer │── SRTP, DTLS, STUN ── Socket
//!  both ◀── packets as bytes ─└────────┘ └──────┘
//! ```
//!
//! The ends begin when the session is up: what they sent before would be lost, and their controllers would see that.
//!
//! Sizes count what they count in the simulator: IP and UDP headers, RTP, payload. The tag of 10 bytes that SRTP adds to a
//! packet is not counted, so a rate of full packets is 0.8 % below what a link carries.

mod bridge;
mod error;
mod packets;
mod peer;
mod shelf;
mod terms;
#[cfg(feature = "video")]
pub mod video;

pub use error::EndpointError;
pub use shelf::Shelf;
pub use terms::VideoSection;

use crate::stats::SRTP_TAG;
use paceline::{Controller, FecScheme, FeedbackKind, MediaKind, Registry};
use paceline_flow::source::Source;
use paceline_flow::{Datagram, IP_UDP_HEADERS, Sent, StreamNames, rtp_timestamp};
use paceline_lab::media::{MediaFlow, PreparedFlow, Terms, controller};
use paceline_lab::network::End;
use paceline_lab::plan::{FlowPlan, MediaPlan};
use paceline_lab::rows::Row;
use paceline_lab::world::WorldError;
use paceline_live::clock::Monotonic;
use paceline_live::socket::{Room, Socket};
use paceline_units::{DataSize, Ecn, Rate, Streams, Time, TimeDelta};
use paceline_wire::{ExtensionIds, Rtcp, RtpHeader, is_rtcp, parse_compound};
use peer::{Peer, Stage};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Makes what a sender sends, once the session is up.
pub trait MakeSource: Send {
    /// A source that begins at `start`, for frames from the first to the second rate, whose RTP timestamps count from
    /// `timestamp_of_zero` at the world's time zero. It puts each frame on the shelf before it hands it out.
    ///
    /// # Errors
    /// The encoder cannot be had.
    fn make(
        self: Box<Self>,
        start: Time,
        range: (Rate, Rate),
        timestamp_of_zero: u32,
        shelf: Shelf,
    ) -> Result<Box<dyn Source>, WorldError>;
}

/// Whether the ends run yet.
enum Ends {
    /// The session is not up.
    Waiting(Box<PreparedFlow>, Option<Terms>),
    /// They run.
    Running(Box<MediaFlow>),
    /// They could not be made, or the call is over.
    Over,
}

/// One end of a call, ours.
pub struct Endpoint {
    end: End,
    ends: Ends,
    peer: Peer,
    socket: Socket,
    room: Room,
    /// The controller's codepoint, for packets of media.
    ecn: Ecn,
    /// The most and the least that the plan's source makes, headers not included.
    range: (Rate, Rate),
    source: Option<Box<dyn MakeSource>>,
    /// The frames; none: zeros stand for them.
    shelf: Option<Shelf>,
    /// The stream, once it is agreed on.
    stream: Option<StreamNames>,
    /// When the session wants to be served.
    session_due: Time,
    /// How well a receiver knows when frames were captured.
    captured: Captured,
    /// Its time never goes back, even if two packets' stamps do.
    last: Time,
    /// Why the ends could not be made.
    failed: Option<WorldError>,
}

/// How well a receiver knows when frames were captured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Captured {
    /// Not at all.
    Unknown,
    /// As if the first packet had taken no time.
    Guessed,
    /// By a sender report.
    Reported,
}

impl Endpoint {
    /// The end that receives the flow of this number, at this address; made in the namespace that has the address.
    ///
    /// # Errors
    /// The flow is none that a call can carry, or the system has no socket for it.
    pub fn receiver(
        flow: usize,
        plan: &FlowPlan,
        media: &MediaPlan,
        registry: &Registry,
        streams: &Streams,
        signals: bool,
        at: SocketAddrV4,
    ) -> Result<Self, EndpointError> {
        carries(plan, media, Some(End::Receiver))?;
        let prepared = PreparedFlow::new(flow, plan, media, controller(plan, media, registry)?, streams, signals)?;
        Self::new(End::Receiver, prepared, media, None, at)
    }

    /// The end that sends the flow of this number. Without `source` it sends what the plan says, of which bytes are zeros:
    /// no picture, but the same packets.
    ///
    /// # Errors
    /// The flow is none that a call can carry, or the system has no socket for it.
    #[expect(clippy::too_many_arguments, reason = "a flow, and where it is")]
    pub fn sender(
        flow: usize,
        plan: &FlowPlan,
        media: &MediaPlan,
        registry: &Registry,
        streams: &Streams,
        signals: bool,
        at: SocketAddrV4,
        source: Option<Box<dyn MakeSource>>,
    ) -> Result<Self, EndpointError> {
        carries(plan, media, Some(End::Sender))?;
        let prepared = PreparedFlow::new(flow, plan, media, controller(plan, media, registry)?, streams, signals)?;
        Self::new(End::Sender, prepared, media, source, at)
    }

    fn new(
        end: End,
        prepared: PreparedFlow,
        media: &MediaPlan,
        source: Option<Box<dyn MakeSource>>,
        at: SocketAddrV4,
    ) -> Result<Self, EndpointError> {
        let socket = Socket::bind(at)?;
        let ecn = prepared.controller().ecn;
        let sends = prepared.names().first().filter(|_| end == End::Sender);
        let peer = Peer::new(instant(), socket.address()?, prepared.controller().feedback, sends)?;
        Ok(Self {
            end,
            ends: Ends::Waiting(Box::new(prepared), None),
            peer,
            socket,
            room: Room::default(),
            ecn,
            range: media.streams[0].source.range(),
            shelf: source.is_some().then(Shelf::default),
            source,
            stream: None,
            session_due: Time::MAX,
            captured: Captured::Unknown,
            last: Time::ZERO,
            failed: None,
        })
    }

    /// The whole offer of the end that sends, its candidate included.
    ///
    /// # Errors
    /// The library refuses.
    pub fn offer(&mut self) -> Result<String, EndpointError> {
        let offer = self.peer.offer(instant())?;
        self.agree(&offer, &VideoSection::read(&offer)?)?;
        Ok(offer)
    }

    /// The whole answer of the end that receives.
    ///
    /// # Errors
    /// The offer is not of one VP8 video with retransmissions, or lacks the reports that the controller is fed by.
    pub fn answer(&mut self, offer: &str) -> Result<String, EndpointError> {
        let offered = VideoSection::read(offer)?;
        let answer = self.peer.answer(instant(), offer)?;
        self.agree(&answer, &offered)?;
        Ok(answer)
    }

    /// What the other end answered.
    ///
    /// # Errors
    /// It does not take what was offered.
    pub fn accept(&mut self, answer: &str) -> Result<(), EndpointError> {
        let answered = VideoSection::read(answer)?;
        if let Ends::Waiting(prepared, Some(terms)) = &self.ends {
            check_reports(prepared.controller(), &answered)?;
            if answered.extensions != terms.extensions {
                let found = answered.extensions;
                let what = format!("{found:?} in place of {:?}, which was offered", terms.extensions);
                return Err(EndpointError::Disagreement(what));
            }
        }
        self.peer.accept(instant(), answer)
    }

    /// Keeps what our own description and the sending end's say: extension ids of the first, streams of the second.
    fn agree(&mut self, own: &str, sending: &VideoSection) -> Result<(), EndpointError> {
        let own = VideoSection::read(own)?;
        if let Ends::Waiting(prepared, terms) = &mut self.ends {
            check_reports(prepared.controller(), &own)?;
            let stream = sending.stream()?;
            self.stream = Some(stream);
            let (extensions, streams) = (own.extensions, vec![stream]);
            *terms = Some(Terms { extensions, streams, source: None, calendar: Duration::ZERO });
        }
        Ok(())
    }

    /// Takes what has come, serves what is due, and sends what there is to send.
    ///
    /// # Errors
    /// The socket is gone, the source cannot be made, or the session is lost: nothing came from the other end for half a
    /// minute, or it is not who it said.
    pub fn serve(&mut self, now: Time, clock: &Monotonic, told: &Sender<Row>) -> io::Result<()> {
        self.receive(clock, told)?;
        let now = now.max(self.last);
        self.last = now;
        if self.session_due <= now {
            self.peer.handle_timeout(instant());
            self.begin(now, clock);
        }
        if self.flow_timeout() <= now {
            if let Ends::Running(flow) = &mut self.ends {
                match self.end {
                    End::Sender => flow.sender.handle_timeout(now),
                    End::Receiver => flow.receiver.handle_timeout(flow.clock.at(now)),
                }
            }
            self.drain(now, told);
        }
        self.transmit();
        self.session_due = match self.peer.poll_timeout() {
            Some(due) => clock.now() + until(due),
            None => Time::MAX,
        };
        match (self.failed.take(), self.peer.stage()) {
            (Some(error), _) => Err(io::Error::other(error)),
            (None, Stage::Failed) => Err(io::Error::other("the WebRTC session is lost")),
            (None, _) => Ok(()),
        }
    }

    /// When it wants to be served.
    pub fn timeout(&self) -> Time {
        self.session_due.min(self.flow_timeout())
    }

    /// Readable when something has come for it.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }

    /// Where it is.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.address()
    }

    /// Whether the session is up.
    pub fn is_connected(&self) -> bool {
        self.peer.stage() == Stage::Connected
    }

    /// Falls silent, and lets the other end know.
    pub fn close(&mut self) {
        self.peer.close();
        self.ends = Ends::Over;
        self.transmit();
    }

    fn flow_timeout(&self) -> Time {
        match (&self.ends, self.end) {
            (Ends::Running(flow), End::Sender) => flow.sender.poll_timeout(),
            (Ends::Running(flow), End::Receiver) => flow.clock.when(flow.receiver.poll_timeout(), self.last),
            _ => Time::MAX,
        }
    }

    fn receive(&mut self, clock: &Monotonic, told: &Sender<Row>) -> io::Result<()> {
        // What a datagram needs of us beside the socket is all else of us.
        let mut came = Vec::new();
        self.socket
            .receive(clock, &mut self.room, |at, from, bytes, ecn| came.push((at, from, bytes.to_vec(), ecn)))?;
        for (at, from, bytes, ecn) in came {
            self.handle_datagram(at, from, &bytes, ecn, clock, told);
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
        told: &Sender<Row>,
    ) {
        let at = at.max(self.last);
        self.last = at;
        self.peer.handle_datagram(instant(), from, bytes);
        self.begin(at, clock);
        while let Some(packet) = self.peer.poll_packet() {
            let Ok(plain) = packets::bytes(&packet) else { continue };
            self.reckon_captured(at, &plain, clock);
            let Ends::Running(flow) = &mut self.ends else { continue };
            match self.end {
                End::Sender => flow.sender.handle_packet(at, &plain),
                End::Receiver => {
                    // Of padding the library keeps the fact and not the length, so the size is the datagram's.
                    let tag = if is_rtcp(&plain) { 0 } else { SRTP_TAG };
                    let size = DataSize::from_bytes(bytes.len().saturating_sub(tag) as u64) + IP_UDP_HEADERS;
                    flow.receiver.handle_packet(flow.clock.at(at), &plain, size, ecn);
                }
            }
            self.drain(at, told);
        }
    }

    /// Makes the ends once the session is up.
    fn begin(&mut self, now: Time, clock: &Monotonic) {
        let ready = matches!(self.ends, Ends::Waiting(_, Some(_))) && self.peer.stage() == Stage::Connected;
        if !ready {
            return;
        }
        let Ends::Waiting(prepared, Some(terms)) = std::mem::replace(&mut self.ends, Ends::Over) else { return };
        let source = match (self.source.take(), &self.shelf) {
            (Some(source), Some(shelf)) => {
                let first = prepared.first_timestamps().next().unwrap_or_default();
                source.make(now, self.range, first, shelf.clone()).map(Some)
            }
            _ => Ok(None),
        };
        let flow = source
            .and_then(|source| prepared.begin(now, Terms { source, calendar: clock.calendar_at_zero(), ..terms }));
        match flow {
            Ok(flow) => self.ends = Ends::Running(Box::new(flow)),
            Err(error) => self.failed = Some(error),
        }
    }

    /// A receiver tells when frames were captured: by the other end's reports, and until one has come as if the first
    /// packet had taken no time.
    fn reckon_captured(&mut self, at: Time, bytes: &[u8], clock: &Monotonic) {
        let (End::Receiver, Ends::Running(flow), Some(names)) = (self.end, &mut self.ends, self.stream) else { return };
        let sample = match (self.captured, is_rtcp(bytes)) {
            (Captured::Reported, _) | (Captured::Guessed, false) => None,
            (_, true) => sender_report(bytes, names.ssrc)
                .map(|(shown, timestamp)| (Captured::Reported, clock.of_stamp(shown), timestamp)),
            (Captured::Unknown, false) => RtpHeader::parse(bytes, &ExtensionIds::default())
                .ok()
                .filter(|(header, _)| header.ssrc == names.ssrc)
                .map(|(header, _)| (Captured::Guessed, at, header.timestamp)),
        };
        if let Some((how, when, timestamp)) = sample {
            self.captured = how;
            flow.set_timestamp_of_zero(names.id, timestamp.wrapping_sub(rtp_timestamp(when, names.clock_rate)));
        }
    }

    fn drain(&mut self, now: Time, told: &Sender<Row>) {
        let mut datagram = Datagram::new();
        let tell = |row| told.send(row).is_ok();
        let Ends::Running(flow) = &mut self.ends else { return };
        match self.end {
            End::Sender => {
                while let Some(sent) = flow.sender.poll_transmit(now, &mut datagram) {
                    let packet = match sent {
                        Sent::Control => Some(packets::rtcp(&datagram)),
                        Sent::Media { .. } => packets::rtp(&datagram, self.shelf.as_ref()),
                    };
                    packet.into_iter().for_each(|packet| self.peer.send(instant(), packet));
                }
                while let Some(event) = flow.sender.poll_event() {
                    tell(flow.sender_row(now, event));
                }
            }
            End::Receiver => {
                let reading = flow.clock.at(now);
                if flow.receiver.poll_timeout() <= reading {
                    while flow.receiver.poll_transmit(reading, &mut datagram) {
                        self.peer.send(instant(), packets::rtcp(&datagram));
                    }
                }
                while let Some(event) = flow.receiver.poll_event() {
                    tell(flow.receiver_row(now, event));
                }
            }
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some((to, bytes)) = self.peer.poll_transmit() {
            // RFC 7983: 128 to 191 is RTP or RTCP, of which RTP is marked; below are STUN and DTLS.
            let is_media = matches!(bytes.first(), Some(128..=191)) && !is_rtcp(&bytes);
            self.socket.send(to, &bytes, if is_media { self.ecn } else { Ecn::NotEct });
        }
    }
}

/// Whether a call can carry the flow, of which `ours` is our end, if one is. What the scenario says of forward error correction
/// is asked of nobody where Chromium sends: it does as it does.
///
/// # Errors
/// It cannot: says what it has too much, and what to do about it.
pub(crate) fn carries(plan: &FlowPlan, media: &MediaPlan, ours: Option<End>) -> Result<(), WorldError> {
    let refuse = |what: &str, hint: &str| {
        let cause = format!("flow `{}` has {what}, which such a call does not carry", plan.id);
        Err(WorldError::Unavailable { cause, hint: hint.to_owned() })
    };
    match media.streams.as_slice() {
        [stream] if stream.kind == MediaKind::Video => {}
        _ => {
            return refuse(
                "other streams than one of video",
                "leave one stream of video in the scenario; the worlds `sim` and `testbed` carry others",
            );
        }
    }
    if ours == Some(End::Sender) && media.protection.fec != FecScheme::None {
        return refuse("forward error correction", "--set flow.ID.protection.fec=\"none\"");
    }
    Ok(())
}

/// Whether an agreement has the reports that a controller is fed by.
fn check_reports(controller: &Controller, agreed: &VideoSection) -> Result<(), EndpointError> {
    let wanted = match controller.feedback {
        FeedbackKind::None if controller.receive.is_none() => return Ok(()),
        FeedbackKind::None => "goog-remb",
        FeedbackKind::TransportWide { .. } => "transport-cc",
        FeedbackKind::Rfc8888 { .. } => "ack ccfb",
    };
    let is_numbered = wanted != "transport-cc" || agreed.extensions.transport_sequence != 0;
    match agreed.has(wanted) && is_numbered {
        true => Ok(()),
        false => Err(EndpointError::Disagreement(format!("no `{wanted}`, which feeds the controller"))),
    }
}

/// What the calendar showed and what RTP timestamp it was when a stream's sender report was written.
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

/// The library's clock. It reads none itself, and takes differences only.
fn instant() -> Instant {
    Instant::now()
}

/// How long until an instant of the library's clock.
fn until(due: Instant) -> TimeDelta {
    TimeDelta::from_nanos(due.saturating_duration_since(instant()).as_nanos().min(i64::MAX as u128 / 4) as i64)
}
