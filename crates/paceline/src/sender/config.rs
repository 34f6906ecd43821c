// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a [`Sender`](super::Sender), and what programs pass to it.

use crate::{Bounds, MediaKind, PacketKind, ProbeId, Setup};
use paceline_units::{DataSize, Ecn, Rate, StreamId, Time, TimeDelta};

/// The longest time that packets may wait in the pacer (libwebrtc's `kMaxExpectedQueueLength`).
const QUEUE_LIMIT: TimeDelta = TimeDelta::from_secs(2);
/// The size of a padding packet on the network: the 224 bytes of libwebrtc's `kMaxPaddingLength`, 20 bytes of RTP header
/// with the transport-wide number, and UDP and IP headers.
const PADDING_SIZE: DataSize = DataSize::from_bytes(224 + 20 + 28);

/// The configuration of a [`Sender`](super::Sender).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SenderConfig {
    /// The limits of the target, which hold from the first decision on. `None`: those of the controller itself, whose
    /// target may exceed the maximum of its setup.
    pub bounds: Option<Bounds>,
    /// The target if the controller has no send half.
    pub uncontrolled: Rate,
    /// The time from which the sender counts, not after that of the first call; zero by default. Any later origin will do, too.
    pub start: Time,
    /// The longest time that the pacer's queue may need to drain, at the pacing rate and at the rate at which packets leave.
    /// A frame that would exceed it is dropped. 2 s by default, as in libwebrtc.
    pub queue_limit: TimeDelta,
    /// The size of a padding packet on the network, IP and UDP headers included; 272 bytes by default.
    pub padding_size: DataSize,
    /// Whether the controller gets reports on each packet, so that bytes in flight are known. The default is what the
    /// controller needs.
    pub per_packet: Option<bool>,
}

impl SenderConfig {
    /// Returns a configuration whose target has the limits of `setup`.
    #[inline]
    pub fn new(setup: &Setup) -> Self {
        Self {
            bounds: Some(setup.bounds()),
            uncontrolled: setup.max,
            start: Time::ZERO,
            queue_limit: QUEUE_LIMIT,
            padding_size: PADDING_SIZE,
            per_packet: None,
        }
    }
}

/// What a stream is, and which part of the target it gets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamConfig {
    /// The number of the stream in its flow.
    pub id: StreamId,
    /// Video waits in one queue by weight, and its stream may carry padding. Audio leaves first.
    pub kind: MediaKind,
    /// The weight when streams share the target; above zero.
    pub priority: f64,
    /// The lowest rate of the source, IP and UDP headers included.
    pub min: Rate,
    /// The highest rate of the source, IP and UDP headers included. Zero: the stream pauses. [`Rate::MAX`]: the highest maximum of
    /// the target so far.
    pub max: Rate,
    /// Whether the stream pauses while the target does not cover its lowest rate after the highest rates of the streams
    /// before it, as the layers of simulcast.
    pub suspends: bool,
    /// The ticks of its media clock per second.
    pub clock_rate: u32,
    /// The media timestamp at time zero.
    pub timestamp_offset: u32,
}

impl StreamConfig {
    /// Returns a video stream of weight 1 whose source makes a rate between `min` and `max`, IP and UDP headers included.
    pub fn video(id: StreamId, min: Rate, max: Rate) -> Self {
        let (kind, clock_rate) = (MediaKind::Video, 90_000);
        Self { id, kind, priority: 1.0, min, max, suspends: false, clock_rate, timestamp_offset: 0 }
    }

    /// Returns an audio stream of weight 1 and of this rate, IP and UDP headers included.
    pub fn audio(id: StreamId, rate: Rate) -> Self {
        Self { kind: MediaKind::Audio, clock_rate: 48_000, ..Self::video(id, rate, rate) }
    }
}

/// The head of a packet: what the receiver must learn about it. A program writes it into its own format; RTP has an extension
/// for the number (transport-wide sequence number) and for the time (abs-send-time).
///
/// A [`Receiver`](crate::Receiver) needs the number and the time; the receive half of a controller ([`Needs`](crate::Needs)) and the order of
/// frames use the rest. Reserve room for it in each datagram, and count it in the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketHead {
    /// The number within the flow, from 0.
    pub number: u64,
    /// The time at which it left, on the sender's clock.
    pub sent: Time,
    /// The stream.
    pub stream: StreamId,
    /// The media type of the stream.
    pub media: MediaKind,
    /// The purpose.
    pub kind: PacketKind,
    /// The media timestamp, which the packets of a frame share.
    pub timestamp: u32,
}

impl PacketHead {
    /// Returns the head of a media packet of the first video stream.
    #[inline]
    pub fn new(number: u64, sent: Time, timestamp: u32) -> Self {
        let (stream, media, kind) = (StreamId(0), MediaKind::Video, PacketKind::Media);
        Self { number, sent, stream, media, kind, timestamp }
    }

    /// Returns the RTP header with this number and time in its extensions, and payload type 0.
    #[cfg(feature = "rtp")]
    #[inline]
    pub fn rtp_header(&self, ssrc: u32, sequence: u16) -> paceline_wire::RtpHeader {
        paceline_wire::RtpHeader {
            sequence,
            timestamp: self.timestamp,
            ssrc,
            abs_send_time: Some(paceline_wire::AbsSendTime::from_time(self.sent)),
            transport_sequence: Some(self.number as u16),
            ..paceline_wire::RtpHeader::default()
        }
    }
}

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmit<T> {
    /// What the program passed with the frame; `None` for padding: the program sends the head and fills the datagram up to
    /// `size`, less [`IP_UDP_HEADERS`](crate::IP_UDP_HEADERS).
    pub packet: Option<T>,
    /// The head.
    pub head: PacketHead,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The ECN codepoint. A program that cannot set it may ignore it.
    pub ecn: Ecn,
    /// The probe cluster that the packet belongs to.
    pub probe: Option<ProbeId>,
}

/// A packet that may leave now; see [`Sender::poll_release`](super::Sender::poll_release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release<T> {
    /// A packet from the queue.
    Packet(T),
    /// Padding up to the target, of the size of a padding packet.
    Padding,
    /// A packet of a probe for which no media waits: padding, or an earlier packet again. `burst` is the size of a burst of the
    /// cluster in libwebrtc, which sends one each 2 ms.
    Probe {
        /// The size of a burst.
        burst: DataSize,
    },
}

/// A packet that leaves, for [`Sender::handle_sent`](super::Sender::handle_sent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The stream.
    pub stream: StreamId,
    /// The purpose.
    pub kind: PacketKind,
    /// The probe cluster that the packet belongs to, if the program sends the clusters itself.
    pub probe: Option<ProbeId>,
}

impl Outgoing {
    /// Returns a packet of no probe.
    #[inline]
    pub fn new(size: DataSize, stream: StreamId, kind: PacketKind) -> Self {
        Self { size, stream, kind, probe: None }
    }
    /// Returns the packet as a part of a probe cluster.
    #[inline]
    pub fn with_probe(self, probe: Option<ProbeId>) -> Self {
        Self { probe, ..self }
    }
}

/// The reason why a frame was dropped. The encoder should begin again with a key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameDropped {
    /// There is no such stream, or it is paused or suspended.
    #[error("there is no such stream, or it pauses")]
    NoStream,
    /// The program paces ([`set_paces`](super::Sender::set_paces)), so that packets would never leave.
    #[error("the program paces")]
    ProgramPaces,
    /// There is no network.
    #[error("there is no network")]
    Unavailable,
    /// With this frame the queue would take longer than its limit to drain.
    #[error("the queue of the pacer would take longer than its limit")]
    QueueFull,
    /// The frame, or the first one that waits in front of it, is older than the controller or the limit allows, or this frame would be
    /// before it has left.
    #[error("frames of the stream wait too long")]
    TooLate,
}
