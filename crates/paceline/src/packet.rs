// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets, as they are sent, reported and received.

use crate::ProbeId;
use crate::setters::setters;
use paceline_units::{DataSize, Ecn, RemoteTime, StreamId, Time};

/// The media type of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Frames of several packets, repaired by NACK and RTX; VP8 payload descriptors (RFC 7741).
    Video,
    /// Frames of one packet, never repaired.
    Audio,
}

impl MediaKind {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
        }
    }
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// The first transmission of media.
    Media,
    /// A retransmission.
    Retransmission,
    /// Forward error correction of media, in the sequence number space of the media.
    Fec,
    /// Padding alone.
    Padding,
}

/// A packet that left the pacer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// The number within the flow, from 0, without wraparound.
    pub sequence: u64,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The stream.
    pub stream: StreamId,
    /// The purpose.
    pub kind: PacketKind,
    /// The probe cluster that the packet belongs to.
    pub probe: Option<ProbeId>,
    /// The bytes that were neither acknowledged nor lost just before this packet left; `None` without per-packet
    /// feedback.
    pub in_flight: Option<DataSize>,
}

impl SentPacket {
    /// Returns a media packet of the first stream, of no probe, with unknown bytes in flight.
    #[inline]
    pub const fn new(sequence: u64, size: DataSize) -> Self {
        Self { sequence, size, stream: StreamId(0), kind: PacketKind::Media, probe: None, in_flight: None }
    }
    setters! {
        with_stream(stream: StreamId),
        with_kind(kind: PacketKind),
        with_probe(probe: Option<ProbeId>),
        with_in_flight(in_flight: Option<DataSize>),
    }
}

/// The receiver's report on one packet, joined with the sender's record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketReport {
    /// The number within the flow.
    pub sequence: u64,
    /// The time at which the packet left the pacer.
    pub sent: Time,
    /// The size on the network.
    pub size: DataSize,
    /// The stream.
    pub stream: StreamId,
    /// The purpose.
    pub kind: PacketKind,
    /// The probe cluster that the packet belongs to.
    pub probe: Option<ProbeId>,
    /// The bytes that were neither acknowledged nor lost just before this packet left.
    pub in_flight: DataSize,
    /// The time at which the packet arrived, on the receiver's clock; `None` if it is reported lost.
    pub arrival: Option<RemoteTime>,
    /// The ECN field on arrival; `None` if the feedback does not contain it, as transport-wide feedback.
    pub ecn: Option<Ecn>,
}

impl PacketReport {
    /// Returns the report on a media packet of the first stream, of no probe, sent with nothing else in flight, and
    /// without ECN.
    #[inline]
    pub const fn new(sequence: u64, sent: Time, size: DataSize, arrival: Option<RemoteTime>) -> Self {
        let (stream, kind, in_flight) = (StreamId(0), PacketKind::Media, DataSize::ZERO);
        Self { sequence, sent, size, stream, kind, probe: None, in_flight, arrival, ecn: None }
    }
    setters! {
        with_stream(stream: StreamId),
        with_kind(kind: PacketKind),
        with_probe(probe: Option<ProbeId>),
        with_in_flight(in_flight: DataSize),
        with_ecn(ecn: Option<Ecn>),
    }
}

/// A packet as it arrives at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// The send time in the abs-send-time extension: the sender's clock in steps of 2^-18 s, unwrapped by the endpoint.
    /// Its origin is unknown, so only differences are meaningful. `None` if the packet has no such extension.
    pub sent: Option<Time>,
    /// The RTP timestamp, which the packets of a frame share.
    pub timestamp: u32,
    /// The RTP sequence number.
    pub sequence: u16,
    /// The stream.
    pub stream: StreamId,
    /// The media type of the stream.
    pub media: MediaKind,
    /// The purpose.
    pub kind: PacketKind,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The ECN field.
    pub ecn: Ecn,
}

impl Arrival {
    /// Returns a media packet of the first stream, which is video, without a send time and not ECN-capable.
    #[inline]
    pub const fn new(timestamp: u32, sequence: u16, size: DataSize) -> Self {
        let (stream, media, kind) = (StreamId(0), MediaKind::Video, PacketKind::Media);
        Self { sent: None, timestamp, sequence, stream, media, kind, size, ecn: Ecn::NotEct }
    }
    setters! {
        with_sent(sent: Option<Time>),
        with_stream(stream: StreamId),
        with_media(media: MediaKind),
        with_kind(kind: PacketKind),
        with_ecn(ecn: Ecn),
    }
}
