//! Our side of the WebRTC session: what the library does, driven by datagrams and times.

use super::bridge::Bridge;
use super::error::EndpointError;
use super::terms::{ABS_SEND_TIME, RTX, TRANSPORT_SEQUENCE, VP8};
use bytes::BytesMut;
use paceline::FeedbackKind;
use paceline_flow::StreamNames;
use rtc::dtls::extension::extension_use_srtp::SrtpProtectionProfile;
use rtc::interceptor::{Packet, Registry, Slot};
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_RTX, MIME_TYPE_VP8, MediaEngine};
use rtc::peer_connection::configuration::setting_engine::SettingEngineBuilder;
use rtc::peer_connection::event::RTCPeerConnectionEvent;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit};
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtp_transceiver::rtp_sender::{
    RTCPFeedback, RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RTCRtpHeaderExtensionCapability, RTCRtpRtxParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpTransceiverDirection, RTCRtpTransceiverInit};
use rtc::sansio::Protocol;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};
use std::net::SocketAddr;
use std::time::Instant;

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing can be sent yet.
    Connecting,
    /// Packets come and go.
    Connected,
    /// One of the ends has closed it.
    Closed,
    /// It is lost: the other end could not be reached, or was not who it said.
    Failed,
}

/// The session.
pub(super) struct Peer {
    connection: RTCPeerConnection,
    bridge: Bridge,
    at: SocketAddr,
    stage: Stage,
}

impl Peer {
    /// A session at this address that receives video, and asks for such reports, or that sends the stream of `names`.
    pub fn new(
        now: Instant,
        at: SocketAddr,
        feedback: FeedbackKind,
        sends: Option<&StreamNames>,
    ) -> Result<Self, EndpointError> {
        let bridge = Bridge::default();
        // One profile, which everybody has: its tag has 10 bytes.
        let settings = SettingEngineBuilder::new()
            .with_srtp_protection_profiles(vec![SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80])
            .build();
        let mut connection = RTCPeerConnectionBuilder::new()
            .with_setting_engine(settings)
            .with_media_engine(media_engine(feedback)?)
            .with_interceptor_registry(Registry::new().with(Slot::CongestionControl, bridge.clone()))
            .build(now)?;
        if let Some(names) = sends {
            let direction = RTCRtpTransceiverDirection::Sendonly;
            let init = RTCRtpTransceiverInit { direction, streams: Vec::new(), send_encodings: Vec::new() };
            connection.add_transceiver_from_track(track(names), Some(init))?;
        }
        Ok(Self { connection, bridge, at, stage: Stage::Connecting })
    }

    /// The whole offer, candidate included.
    pub fn offer(&mut self, now: Instant) -> Result<String, EndpointError> {
        self.add_candidate()?;
        let offer = self.connection.create_offer(None)?;
        self.connection.set_local_description(now, offer)?;
        self.local_description()
    }

    /// The whole answer to an offer.
    pub fn answer(&mut self, now: Instant, offer: &str) -> Result<String, EndpointError> {
        self.connection.set_remote_description(now, RTCSessionDescription::offer(offer.to_owned())?)?;
        self.add_candidate()?;
        let answer = self.connection.create_answer(None)?;
        self.connection.set_local_description(now, answer)?;
        self.local_description()
    }

    /// The other end's answer.
    pub fn accept(&mut self, now: Instant, answer: &str) -> Result<(), EndpointError> {
        Ok(self.connection.set_remote_description(now, RTCSessionDescription::answer(answer.to_owned())?)?)
    }

    /// A datagram came. One that is nothing, or not from the other end, is dropped.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let transport = TransportContext {
            local_addr: self.at,
            peer_addr: from,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        // What it complains of is the other end's packet.
        let _ = self.connection.handle_read(TaggedBytesMut { now, transport, message: BytesMut::from(bytes) });
        self.hear();
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = self.connection.handle_timeout(now);
        self.hear();
    }

    /// When the session wants to be served next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// The next media packet or compound that came, decrypted.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.bridge.take()
    }

    /// Sends a packet of media or a compound; one that goes before the session is up is lost.
    pub fn send(&mut self, now: Instant, packet: Packet) {
        self.bridge.put(now, packet);
    }

    /// The next datagram, and whom it is for.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, BytesMut)> {
        let datagram = self.connection.poll_write()?;
        Some((datagram.transport.peer_addr, datagram.message))
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Says farewell; what is left to send says so to the other end.
    pub fn close(&mut self) {
        let _ = self.connection.close();
        self.stage = Stage::Closed;
    }

    fn hear(&mut self) {
        while self.connection.poll_read().is_some() {}
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                self.stage = match state {
                    RTCPeerConnectionState::Connected => Stage::Connected,
                    RTCPeerConnectionState::Failed => Stage::Failed,
                    RTCPeerConnectionState::Closed => Stage::Closed,
                    // Disconnected: nothing came for a while, which an outage does. Packets go on.
                    _ => self.stage,
                };
            }
        }
    }

    fn add_candidate(&mut self) -> Result<(), EndpointError> {
        let (address, port) = (self.at.ip().to_string(), self.at.port());
        let base_config =
            CandidateConfig { network: "udp".to_owned(), address, port, component: 1, ..Default::default() };
        let candidate = CandidateHostConfig { base_config, ..Default::default() }.new_candidate_host()?;
        self.connection.add_local_candidate(RTCIceCandidate::from(&candidate).to_json()?)?;
        // And no more.
        self.connection.add_local_candidate(RTCIceCandidateInit::default())?;
        Ok(())
    }

    fn local_description(&self) -> Result<String, EndpointError> {
        let description = self.connection.local_description();
        Ok(description.ok_or(rtc::shared::error::Error::ErrPeerConnLocalDescriptionNil)?.sdp)
    }
}

/// What of media our ends speak: VP8 with retransmissions, send times, and the reports that the controller is fed by.
/// Without per-packet reports it is steered by REMB, and transport-wide feedback is left out: an end that was promised it
/// and gets none slows down to its least.
fn media_engine(feedback: FeedbackKind) -> Result<MediaEngine, EndpointError> {
    let mut engine = MediaEngine::default();
    let mut extensions = vec![ABS_SEND_TIME];
    let mut reports = vec![("nack", ""), ("nack", "pli")];
    match feedback {
        FeedbackKind::None => reports.push(("goog-remb", "")),
        FeedbackKind::TransportWide { .. } => {
            reports.push(("transport-cc", ""));
            extensions.push(TRANSPORT_SEQUENCE);
        }
        FeedbackKind::Rfc8888 { .. } => reports.push(("ack", "ccfb")),
    }
    let fed = |(typ, parameter): (&str, &str)| RTCPFeedback { typ: typ.to_owned(), parameter: parameter.to_owned() };
    let vp8 = codec(MIME_TYPE_VP8, "", reports.into_iter().map(fed).collect());
    let rtx = codec(MIME_TYPE_RTX, &format!("apt={VP8}"), Vec::new());
    for (payload_type, rtp_codec) in [(VP8, vp8), (RTX, rtx)] {
        engine.register_codec(RTCRtpCodecParameters { rtp_codec, payload_type }, RtpCodecKind::Video)?;
    }
    for uri in extensions {
        let extension = RTCRtpHeaderExtensionCapability { uri: uri.to_owned() };
        engine.register_header_extension(extension, RtpCodecKind::Video, None)?;
    }
    Ok(engine)
}

fn codec(mime_type: &str, format: &str, rtcp_feedback: Vec<RTCPFeedback>) -> RTCRtpCodec {
    let (mime_type, sdp_fmtp_line) = (mime_type.to_owned(), format.to_owned());
    RTCRtpCodec { mime_type, clock_rate: 90_000, channels: 0, sdp_fmtp_line, rtcp_feedback }
}

fn track(names: &StreamNames) -> MediaStreamTrack {
    let rtp_coding_parameters = RTCRtpCodingParameters {
        ssrc: Some(names.ssrc),
        rtx: Some(RTCRtpRtxParameters { ssrc: names.rtx_ssrc }),
        ..Default::default()
    };
    let codec = codec(MIME_TYPE_VP8, "", Vec::new());
    let coding = RTCRtpEncodingParameters { rtp_coding_parameters, codec, ..Default::default() };
    let name = || "paceline".to_owned();
    MediaStreamTrack::new(name(), name(), name(), RtpCodecKind::Video, vec![coding])
}
