// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of a stream that both endpoints know before the first packet (on a real call, from SDP).

pub use paceline::MediaKind;
use paceline_units::StreamId;

/// The identifiers of a stream: SSRCs, clock rate and payload types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// The stream's number within the flow.
    pub id: StreamId,
    /// Audio or video.
    pub kind: MediaKind,
    /// SSRC of the media packets.
    pub ssrc: u32,
    /// SSRC of retransmissions and padding (RFC 4588).
    pub rtx_ssrc: u32,
    /// RTP timestamp units per second.
    pub clock_rate: u32,
}

impl StreamInfo {
    /// Returns the payload type of media packets, as Chromium offers it: VP8 96, Opus 111.
    pub fn payload_type(&self) -> u8 {
        match self.kind {
            MediaKind::Video => 96,
            MediaKind::Audio => 111,
        }
    }
    /// Returns the payload type of retransmissions and padding.
    pub fn rtx_payload_type(&self) -> u8 {
        97
    }
    /// Returns the payload type of RED (RFC 2198), which carries media and FEC of a video stream with FEC.
    pub fn red_payload_type(&self) -> u8 {
        118
    }
    /// Returns the payload type of retransmissions of RED packets.
    pub fn red_rtx_payload_type(&self) -> u8 {
        119
    }
    /// Returns the payload type of ULPFEC (RFC 5109) inside RED.
    pub fn ulpfec_payload_type(&self) -> u8 {
        120
    }
}
