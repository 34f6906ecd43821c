// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration and the outputs of a [`MediaSender`](super::MediaSender).

use crate::flow::rtcp_timer::RtcpTiming;
use crate::flow::source::Source;
use crate::flow::stream_info::StreamInfo;
use paceline::{FeedbackFormats, PacketKind, Protection};
use paceline_units::{DataSize, StreamId, Time, TimeDelta};
use paceline_wire::ExtensionIds;

/// The sender's configuration of one stream.
pub struct StreamConfig {
    /// SSRCs, kind and clock rate, as negotiated.
    pub info: StreamInfo,
    /// Produces the frames.
    pub source: Box<dyn Source>,
    /// The stream's weight when streams share the target rate.
    pub priority: f64,
    /// Whether the stream pauses while the target does not cover its lowest rate after the highest rates of the streams
    /// before it, as the layers of simulcast.
    pub suspends: bool,
    /// Sequence number of the first packet.
    pub first_sequence: u16,
    /// RTP timestamp at time zero.
    pub timestamp_offset: u32,
}

/// The configuration of a [`MediaSender`](super::MediaSender).
pub struct SenderConfig {
    /// Header extension ids.
    pub extensions: ExtensionIds,
    /// The streams, at least one.
    pub streams: Vec<StreamConfig>,
    /// The earliest time of the first report and the first frame.
    pub start: Time,
    /// Size of the largest RTP packet, in [`PACKET_SIZE_RANGE`](crate::flow::PACKET_SIZE_RANGE): RTP header and extensions, RTX,
    /// RED and FEC headers included, IP and UDP headers not. Media, retransmissions, FEC, padding and probes keep to it.
    pub packet_size: DataSize,
    /// The time that the host takes to send a packet; the next one leaves no earlier. Zero in real time.
    pub packet_time: TimeDelta,
    /// Timing of sender reports.
    pub rtcp: RtcpTiming,
    /// The longest time that the pacer queue may need to drain, at the pacing rate and at the rate at which packets leave.
    /// Frames that would exceed it are dropped (RFC 8298, section 4.1.3: packets that are excessively delayed).
    pub pacer_limit: TimeDelta,
    /// Whether NACKs are answered with retransmissions.
    pub retransmit: bool,
    /// Forward error correction, and the limit on retransmissions.
    pub protection: Protection,
    /// The formats of per-packet feedback that both ends support.
    pub feedback_formats: FeedbackFormats,
    /// NTP time of time zero, in nanoseconds since 1900.
    pub ntp_origin: u64,
}

/// The kind of a transmitted datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// An RTP packet.
    Rtp { stream: StreamId, kind: PacketKind },
    /// An RTCP compound.
    Rtcp,
}
