// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's state of one stream.

use super::StreamConfig;
use super::fec_encoder::{FEC_HEADERS, FecEncoder};
use crate::flow::datagram::{MEDIA_HEADERS, PACKET_HEADERS};
use crate::flow::retransmission_store::{MediaPacket, RetransmissionStore};
use crate::flow::stream_info::MediaKind;
use paceline::internals::blocks::UnusedRate;
use paceline_units::{DataSize, Rate, Time};
use paceline_wire::red;

/// Weight of the old value in the smoothed header overhead, per frame.
const OVERHEAD_SMOOTHING: f64 = 0.9;

pub(super) struct SenderStream {
    pub config: StreamConfig,
    /// Whether the stream ended. Its packets in the pacer still leave.
    pub removed: bool,
    /// The highest rate of encoded media, in addition to that of the source; zero: the stream pauses.
    pub max: Rate,
    /// Whether the source makes its lowest rate whatever its share is.
    pub muted: bool,
    /// Whether the target leaves too little for the stream, so that it pauses.
    pub suspended: bool,
    /// The time at which the next frame is due; [`Time::MAX`] if never.
    pub next_frame: Time,
    pub sequence: u16,
    pub rtx_sequence: u16,
    pub picture: u16,
    /// Packets and payload bytes sent on the media SSRC.
    pub packets: u64,
    pub octets: u32,
    /// Share of the sent bytes that are headers, smoothed over frames.
    pub overhead: f64,
    /// The encoder's target.
    pub allotted: Rate,
    /// The part of it that the encoder did not use.
    pub unused: UnusedRate,
    /// Bytes of headers on a media packet, IP and UDP included.
    pub headers: u64,
    /// The most bytes of media after these headers.
    pub payload_max: u64,
    /// Whether media and FEC are sent in RED packets.
    pub red: bool,
    pub fec: FecEncoder,
    pub store: RetransmissionStore,
    /// The packet that fills probes: the largest one of the last frame, if packets are retransmitted.
    pub filler: Option<MediaPacket>,
}

impl SenderStream {
    /// A stream before its first packet. `fec`: forward error correction is on. `packet_size`: the largest RTP packet.
    pub fn new(config: StreamConfig, fec: bool, packet_size: DataSize) -> Self {
        let red = fec && config.info.kind == MediaKind::Video;
        let packet_size = packet_size.as_bytes();
        let (headers, payload_max) = match red {
            // A FEC packet must fit too: its own headers and the parity of a full media payload.
            true => (PACKET_HEADERS + red::LEN as u64, packet_size - FEC_HEADERS),
            false => (PACKET_HEADERS, packet_size - MEDIA_HEADERS.as_bytes()),
        };
        Self {
            removed: false,
            max: Rate::MAX,
            muted: false,
            suspended: false,
            next_frame: config.source.poll_timeout().unwrap_or(Time::MAX),
            sequence: config.first_sequence,
            rtx_sequence: config.first_sequence ^ 0x5555,
            picture: config.first_sequence & 0x7FFF,
            packets: 0,
            octets: 0,
            overhead: PACKET_HEADERS as f64 / packet_size as f64,
            allotted: Rate::ZERO,
            unused: UnusedRate::default(),
            headers,
            payload_max,
            red,
            fec: FecEncoder::new(),
            store: RetransmissionStore::new(),
            filler: None,
            config,
        }
    }

    /// Returns whether the stream ended, or pauses until it is resumed.
    pub fn is_inactive(&self) -> bool {
        self.removed || self.max.is_zero()
    }

    /// Returns the lowest and the highest rate that the stream requests, headers included. A suspended stream requests them as
    /// well.
    pub fn limits(&self) -> (Rate, Rate) {
        let (min, max) = if self.is_inactive() { (Rate::ZERO, Rate::ZERO) } else { self.config.source.range() };
        (self.with_headers(min), self.with_headers(max.min(self.max).max(min)))
    }

    /// Handles a media packet that was sent (libwebrtc's `PaddingMode::kRecentLargePacket`, `rtp_packet_history.cc`).
    pub fn update_filler(&mut self, packet: MediaPacket) {
        let is_larger = |last: MediaPacket| packet.timestamp != last.timestamp || packet.payload >= last.payload;
        if self.filler.is_none_or(is_larger) {
            self.filler = Some(packet);
        }
    }

    /// Counts a packet on the media SSRC.
    pub fn count_media(&mut self, octets: u32) {
        self.packets += 1;
        self.octets = self.octets.wrapping_add(octets);
    }

    /// Returns whether padding may be sent on this stream's retransmission SSRC.
    pub fn carries_padding(&self) -> bool {
        self.config.info.kind == MediaKind::Video && !self.is_inactive()
    }

    /// Returns the allocated rate that the source did not use, headers included.
    pub fn unused_rate(&self) -> Rate {
        let unused = self.unused.get();
        if unused.is_zero() { unused } else { self.with_headers(unused) }
    }

    /// Converts an encoder rate to the rate on the network.
    fn with_headers(&self, payload: Rate) -> Rate {
        payload.scale(1.0 / (1.0 - self.overhead))
    }

    /// Updates the smoothed overhead with a frame of `media` bytes, of which `headers` are headers.
    pub fn update_overhead(&mut self, headers: u64, media: DataSize) {
        self.overhead =
            OVERHEAD_SMOOTHING * self.overhead + (1.0 - OVERHEAD_SMOOTHING) * headers as f64 / media.as_bytes() as f64;
    }
}
