// SPDX-License-Identifier: MIT OR Apache-2.0
//! One end of the call: a peer connection of `rtc`, driven by datagrams and times.

use crate::controller::SharedController;
use crate::departures::Departures;
use bytes::{Bytes, BytesMut};
use rtc::interceptor::{PacerBuilder, Registry, Slot, TwccReceiverBuilder};
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::interceptor_registry::{
    CongestionFeedback, configure_congestion_control, configure_rtcp_reports, configure_twcc_receiver_only,
};
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_VP8, MediaEngine};
use rtc::peer_connection::configuration::setting_engine::SettingEngineBuilder;
use rtc::peer_connection::event::RTCPeerConnectionEvent;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate, RTCIceCandidateInit};
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtp::{Header, Packet};
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpSenderId, RTCRtpTransceiverDirection, RTCRtpTransceiverInit};
use rtc::sansio::Protocol;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The payload type of the video.
const VP8: u8 = 96;
const SSRC: u32 = 1;
/// The smallest burst that the pacer of `rtc` takes: one packet. By default it takes 100 ms, which is three frames at once.
const BURST_BITS: f64 = 12_000.0;
/// The number of packets that wait in the pacer.
const PACER_PACKETS: usize = 1000;

/// One end of the call.
pub struct Peer {
    connection: RTCPeerConnection,
    address: SocketAddr,
    sender: Option<RTCRtpSenderId>,
    /// The number of the next packet.
    sequence: u16,
    is_connected: bool,
}

impl Peer {
    /// Creates the sender of video, whose rate is that of the controller.
    ///
    /// # Errors
    /// Returns an error of `rtc`.
    pub fn sender(now: Instant, address: SocketAddr, controller: &SharedController) -> Result<Self, Box<dyn Error>> {
        let mut engine = media_engine()?;
        let registry = configure_rtcp_reports(Registry::new());
        let estimator = controller.clone();
        let registry = configure_congestion_control(registry, estimator, CongestionFeedback::Twcc, &mut engine)?;
        let pacer = PacerBuilder::new().with_burst_bits(BURST_BITS).with_queue_limit(PACER_PACKETS);
        let pacer = pacer.with_target_bitrate(controller.decision().pacing.as_bps_f64());
        let registry = registry.with(Slot::Pacer, pacer.build());
        let registry = registry.with(Departures::slot(), Departures::new(controller.clone()));
        let mut peer = Self::new(now, address, engine, registry)?;
        let direction = RTCRtpTransceiverDirection::Sendonly;
        let init = RTCRtpTransceiverInit { direction, streams: Vec::new(), send_encodings: Vec::new() };
        peer.connection.add_transceiver_from_track(track(), Some(init))?;
        peer.sender = peer.connection.get_senders().next();
        Ok(peer)
    }

    /// Creates the receiver. It sends feedback at this interval.
    ///
    /// # Errors
    /// Returns an error of `rtc`.
    pub fn receiver(now: Instant, address: SocketAddr, interval: Duration) -> Result<Self, Box<dyn Error>> {
        let mut engine = media_engine()?;
        let registry = configure_rtcp_reports(Registry::new());
        let registry = configure_twcc_receiver_only(registry, &mut engine)?;
        let feedback = TwccReceiverBuilder::new().with_interval(interval).build();
        Self::new(now, address, engine, registry.with(Slot::TwccReceiver, feedback))
    }

    fn new(now: Instant, address: SocketAddr, engine: MediaEngine, registry: Registry) -> Result<Self, Box<dyn Error>> {
        let settings = SettingEngineBuilder::new()
            .with_srtp_protection_profiles(vec![
                rtc::dtls::extension::extension_use_srtp::SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80,
            ])
            .build();
        let builder = RTCPeerConnectionBuilder::new().with_setting_engine(settings).with_media_engine(engine);
        let connection = builder.with_interceptor_registry(registry).build(now)?;
        Ok(Self { connection, address, sender: None, sequence: 0, is_connected: false })
    }

    /// Connects two ends: the offer and the answer pass at once, as if the signalling took no time.
    ///
    /// # Errors
    /// Returns an error of `rtc`.
    pub fn signal(now: Instant, from: &mut Self, to: &mut Self) -> Result<(), Box<dyn Error>> {
        from.add_candidate()?;
        let offer = from.connection.create_offer(None)?;
        from.connection.set_local_description(now, offer)?;
        let offer = from.connection.local_description().ok_or("no local description")?.sdp;
        to.connection.set_remote_description(now, RTCSessionDescription::offer(offer)?)?;
        to.add_candidate()?;
        let answer = to.connection.create_answer(None)?;
        to.connection.set_local_description(now, answer)?;
        let answer = to.connection.local_description().ok_or("no local description")?.sdp;
        Ok(from.connection.set_remote_description(now, RTCSessionDescription::answer(answer)?)?)
    }

    fn add_candidate(&mut self) -> Result<(), Box<dyn Error>> {
        let (address, port) = (self.address.ip().to_string(), self.address.port());
        let base_config =
            CandidateConfig { network: "udp".to_owned(), address, port, component: 1, ..Default::default() };
        let candidate = CandidateHostConfig { base_config, ..Default::default() }.new_candidate_host()?;
        self.connection.add_local_candidate(RTCIceCandidate::from(&candidate).to_json()?)?;
        // The empty candidate marks the end of candidates.
        Ok(self.connection.add_local_candidate(RTCIceCandidateInit::default())?)
    }

    /// Returns whether media can be sent.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a frame as packets with these sizes of payload, of zeros.
    ///
    /// # Errors
    /// Returns an error of `rtc`.
    pub fn send_frame(&mut self, now: Instant, timestamp: u32, payloads: &[usize]) -> Result<(), Box<dyn Error>> {
        let id = self.sender.ok_or("this end receives")?;
        for (index, size) in payloads.iter().enumerate() {
            let header = Header {
                version: 2,
                marker: index + 1 == payloads.len(),
                payload_type: VP8,
                sequence_number: self.sequence,
                timestamp,
                ssrc: SSRC,
                ..Default::default()
            };
            self.sequence = self.sequence.wrapping_add(1);
            let mut sender = self.connection.rtp_sender(id).ok_or("the sender is gone")?;
            sender.write_rtp(now, Packet { header, payload: Bytes::from(vec![0; *size]) })?;
        }
        Ok(())
    }

    /// Handles a datagram.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        let transport = TransportContext {
            local_addr: self.address,
            peer_addr: from,
            transport_protocol: TransportProtocol::UDP,
            ecn: None,
        };
        // An error means that the datagram is invalid.
        let _ = self.connection.handle_read(TaggedBytesMut { now, transport, message: BytesMut::from(bytes) });
        self.process_events();
    }

    /// Handles the time of [`poll_timeout`](Self::poll_timeout).
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = self.connection.handle_timeout(now);
        self.process_events();
    }

    /// Returns the next time at which to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<BytesMut> {
        Some(self.connection.poll_write()?.message)
    }

    fn process_events(&mut self) {
        while self.connection.poll_read().is_some() {}
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                self.is_connected = state == RTCPeerConnectionState::Connected;
            }
        }
    }
}

fn codec() -> RTCRtpCodec {
    let (mime_type, sdp_fmtp_line) = (MIME_TYPE_VP8.to_owned(), String::new());
    RTCRtpCodec { mime_type, clock_rate: 90_000, channels: 0, sdp_fmtp_line, rtcp_feedback: Vec::new() }
}

fn media_engine() -> Result<MediaEngine, Box<dyn Error>> {
    let mut engine = MediaEngine::default();
    engine.register_codec(RTCRtpCodecParameters { rtp_codec: codec(), payload_type: VP8 }, RtpCodecKind::Video)?;
    Ok(engine)
}

fn track() -> MediaStreamTrack {
    let rtp_coding_parameters = RTCRtpCodingParameters { ssrc: Some(SSRC), ..Default::default() };
    let coding = RTCRtpEncodingParameters { rtp_coding_parameters, codec: codec(), ..Default::default() };
    let name = || "paceline".to_owned();
    MediaStreamTrack::new(name(), name(), name(), RtpCodecKind::Video, vec![coding])
}
