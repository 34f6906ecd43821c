//! What both ends agree on about a stream before the first packet (on a real call, by SDP).

pub use paceline::MediaKind;
use paceline_units::StreamId;

/// A stream's names on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamNames {
    /// Number within the flow.
    pub id: StreamId,
    /// What it carries.
    pub kind: MediaKind,
    /// SSRC of its media packets.
    pub ssrc: u32,
    /// SSRC of its retransmissions and padding (RFC 4588).
    pub rtx_ssrc: u32,
    /// RTP timestamp units per second.
    pub clock_rate: u32,
}

impl StreamNames {
    /// Payload type of media packets, as Chromium offers it: VP8 96, Opus 111.
    pub fn payload_type(&self) -> u8 {
        match self.kind {
            MediaKind::Video => 96,
            MediaKind::Audio => 111,
        }
    }
    /// Payload type of retransmissions and padding.
    pub fn rtx_payload_type(&self) -> u8 {
        97
    }
    /// Payload type of the envelope (RED, RFC 2198) around media and FEC of a video stream that is protected by FEC.
    pub fn red_payload_type(&self) -> u8 {
        118
    }
    /// Payload type of retransmissions of what was in an envelope.
    pub fn red_rtx_payload_type(&self) -> u8 {
        119
    }
    /// Payload type of FEC (ULPFEC, RFC 5109), inside the envelope.
    pub fn ulpfec_payload_type(&self) -> u8 {
        120
    }
}
