// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local side of the WebRTC session: the library, driven by datagrams and timeouts.

use super::bridge::Bridge;
use super::error::EndpointError;
use super::video_section::{ABS_SEND_TIME, RTX, TRANSPORT_SEQUENCE, VP8};
use bytes::BytesMut;
use paceline_netsim::flow::FeedbackFormat;
use paceline_netsim::flow::StreamInfo;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// No media can be sent yet.
    Connecting,
    /// Media can be sent and received.
    Connected,
    /// One of the endpoints closed it.
    Closed,
    /// The remote endpoint cannot be reached or failed the DTLS authentication.
    Failed,
}

/// A WebRTC session with one video stream.
pub(super) struct Session {
    connection: RTCPeerConnection,
    bridge: Bridge,
    at: SocketAddr,
    state: SessionState,
}

impl Session {
    /// Creates a session at this address with this feedback. It sends the stream `sends`, or receives video without one.
    pub fn new(
        now: Instant,
        at: SocketAddr,
        feedback: Option<FeedbackFormat>,
        sends: Option<&StreamInfo>,
    ) -> Result<Self, EndpointError> {
        let bridge = Bridge::default();
        // Every endpoint supports this profile. Its tag has 10 bytes.
        let settings = SettingEngineBuilder::new()
            .with_srtp_protection_profiles(vec![SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80])
            .build();
        let mut connection = RTCPeerConnectionBuilder::new()
            .with_setting_engine(settings)
            .with_media_engine(media_engine(feedback)?)
            .with_interceptor_registry(Registry::new().with(Slot::CongestionControl, bridge.clone()))
            .build(now)?;
        if let Some(stream) = sends {
            let direction = RTCRtpTransceiverDirection::Sendonly;
            let init = RTCRtpTransceiverInit { direction, streams: Vec::new(), send_encodings: Vec::new() };
            connection.add_transceiver_from_track(track(stream), Some(init))?;
        }
        Ok(Self { connection, bridge, at, state: SessionState::Connecting })
    }

    /// Creates the offer with its candidate.
    pub fn offer(&mut self, now: Instant) -> Result<String, EndpointError> {
        self.add_candidate()?;
        let offer = self.connection.create_offer(None)?;
        self.connection.set_local_description(now, offer)?;
        self.local_description()
    }

    /// Creates the answer to an offer, with its candidate.
    pub fn answer(&mut self, now: Instant, offer: &str) -> Result<String, EndpointError> {
        self.connection.set_remote_description(now, RTCSessionDescription::offer(offer.to_owned())?)?;
        self.add_candidate()?;
        let answer = self.connection.create_answer(None)?;
        self.connection.set_local_description(now, answer)?;
        self.local_description()
    }

    /// Applies the remote answer.
    pub fn accept(&mut self, now: Instant, answer: &str) -> Result<(), EndpointError> {
        Ok(self.connection.set_remote_description(now, RTCSessionDescription::answer(answer.to_owned())?)?)
    }

    /// Handles a received datagram. Invalid or foreign datagrams are dropped.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let transport = TransportContext {
            local_addr: self.at,
            peer_addr: from,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        // An error means that the datagram is invalid.
        let _ = self.connection.handle_read(TaggedBytesMut { now, transport, message: BytesMut::from(bytes) });
        self.process_events();
    }

    /// Handles the timeout that [`poll_timeout`](Self::poll_timeout) returned.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = self.connection.handle_timeout(now);
        self.process_events();
    }

    /// Returns the next timeout.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Returns the next received RTP packet or RTCP compound, decrypted.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.bridge.pop_received()
    }

    /// Queues an RTP packet or RTCP compound. It is lost if the session is not connected.
    pub fn send(&mut self, now: Instant, packet: Packet) {
        self.bridge.push_outgoing(now, packet);
    }

    /// Returns the next datagram to send and its destination.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, BytesMut)> {
        let datagram = self.connection.poll_write()?;
        Some((datagram.transport.peer_addr, datagram.message))
    }

    /// Returns the state of the session.
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Closes the session. The remaining datagrams notify the remote endpoint.
    pub fn close(&mut self) {
        let _ = self.connection.close();
        self.state = SessionState::Closed;
    }

    fn process_events(&mut self) {
        while self.connection.poll_read().is_some() {}
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                self.state = match state {
                    RTCPeerConnectionState::Connected => SessionState::Connected,
                    RTCPeerConnectionState::Failed => SessionState::Failed,
                    RTCPeerConnectionState::Closed => SessionState::Closed,
                    // Disconnected means that no packet arrived for a while, as in an outage. The session continues.
                    _ => self.state,
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
        // The empty candidate marks the end of candidates.
        self.connection.add_local_candidate(RTCIceCandidateInit::default())?;
        Ok(())
    }

    fn local_description(&self) -> Result<String, EndpointError> {
        let description = self.connection.local_description();
        Ok(description.ok_or(rtc::shared::error::Error::ErrPeerConnLocalDescriptionNil)?.sdp)
    }
}

/// RFC 8888 congestion control feedback.
const CCFB: (&str, &str) = ("ack", "ccfb");

/// Configures VP8 with retransmissions, absolute send time, and the feedback that the controller needs. A controller
/// without per-packet feedback uses REMB. Transport-wide feedback is then not negotiated, because a sender that negotiated it
/// and receives none falls to its minimum rate.
fn media_engine(feedback: Option<FeedbackFormat>) -> Result<MediaEngine, EndpointError> {
    let mut engine = MediaEngine::default();
    let mut extensions = vec![ABS_SEND_TIME];
    let (mut vp8_feedback, mut rtx_feedback) = (vec![("nack", ""), ("nack", "pli")], Vec::new());
    match feedback {
        None => vp8_feedback.push(("goog-remb", "")),
        Some(FeedbackFormat::TransportWide) => {
            vp8_feedback.push(("transport-cc", ""));
            extensions.push(TRANSPORT_SEQUENCE);
        }
        Some(FeedbackFormat::Rfc8888) => {
            // Chromium accepts it only if every codec of the section has it.
            vp8_feedback.push(CCFB);
            rtx_feedback.push(CCFB);
        }
    }
    let feedback =
        |(typ, parameter): (&str, &str)| RTCPFeedback { typ: typ.to_owned(), parameter: parameter.to_owned() };
    let vp8 = codec(MIME_TYPE_VP8, "", vp8_feedback.into_iter().map(feedback).collect());
    let rtx = codec(MIME_TYPE_RTX, &format!("apt={VP8}"), rtx_feedback.into_iter().map(feedback).collect());
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

fn track(stream: &StreamInfo) -> MediaStreamTrack {
    let rtp_coding_parameters = RTCRtpCodingParameters {
        ssrc: Some(stream.ssrc),
        rtx: Some(RTCRtpRtxParameters { ssrc: stream.rtx_ssrc }),
        ..Default::default()
    };
    let codec = codec(MIME_TYPE_VP8, "", Vec::new());
    let coding = RTCRtpEncodingParameters { rtp_coding_parameters, codec, ..Default::default() };
    let name = || "paceline".to_owned();
    MediaStreamTrack::new(name(), name(), name(), RtpCodecKind::Video, vec![coding])
}
