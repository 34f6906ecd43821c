// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP datagram whose media payload is only counted.

pub(crate) use paceline::IP_UDP_HEADERS;
use paceline_units::{DataSize, Ecn, StreamId};
use paceline_wire::{RtpHeader, Vp8Descriptor, rtx};
use std::ops::RangeInclusive;

/// The default of [`SenderConfig::packet_size`](crate::flow::SenderConfig::packet_size).
pub const PACKET_SIZE_DEFAULT: DataSize = paceline::Setup::PACKET_SIZE;

/// The range of [`SenderConfig::packet_size`](crate::flow::SenderConfig::packet_size): from a padding packet, rounded up, to the
/// payload of the largest UDP datagram over IPv4, of 65,535 bytes with its headers.
pub const PACKET_SIZE_RANGE: RangeInclusive<DataSize> = DataSize::from_bytes(300)..=DataSize::from_bytes(65_507);

/// The largest size of the headers before the media in an RTP packet: RTP header with extensions, original sequence
/// number of a retransmission, and VP8 descriptor.
pub const MEDIA_HEADERS: DataSize =
    DataSize::from_bytes((RtpHeader::MAX_LEN + rtx::LEN + Vp8Descriptor::MAX_LEN) as u64);

/// Bytes of headers on a media packet that is not a retransmission, IP and UDP included.
pub(crate) const PACKET_HEADERS: u64 = IP_UDP_HEADERS.as_bytes() + (RtpHeader::MAX_LEN + Vp8Descriptor::MAX_LEN) as u64;

/// The most real bytes: a whole RTCP compound, or the headers of an RTP packet.
const CAPACITY: usize = 256;

/// The piece of a frame that the tail of a datagram stands for. A caller that has the frame's bytes can fill them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePiece {
    /// The stream of the frame.
    pub stream: StreamId,
    /// The RTP timestamp of the frame, which identifies it within the stream.
    pub timestamp: u32,
    /// Offset of the piece in the frame, in bytes.
    pub offset: u32,
}

/// A datagram: its real leading bytes, and a tail of bytes that are only counted.
#[derive(Clone, Debug)]
pub struct Datagram {
    bytes: [u8; CAPACITY],
    len: u16,
    tail: u16,
    piece: Option<FramePiece>,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

impl Datagram {
    /// Creates an empty datagram. It can be written repeatedly.
    pub const fn new() -> Self {
        Self { bytes: [0; CAPACITY], len: 0, tail: 0, piece: None, ecn: Ecn::NotEct }
    }

    /// Returns a datagram of these bytes; those above the most real bytes are only counted.
    pub fn from_bytes(bytes: &[u8], ecn: Ecn) -> Self {
        let mut datagram = Self::new();
        let len = bytes.len().min(CAPACITY);
        datagram.bytes[..len].copy_from_slice(&bytes[..len]);
        datagram.set_len(len, (bytes.len() - len) as u64, ecn);
        datagram
    }

    /// Returns the real bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// Returns the number of bytes after the real ones that are only counted.
    pub fn tail(&self) -> usize {
        self.tail as usize
    }

    /// Returns the piece of a frame that the tail stands for; `None` for padding and parity.
    pub fn piece(&self) -> Option<&FramePiece> {
        self.piece.as_ref()
    }

    /// Returns the size on the network, IP and UDP headers included.
    #[inline]
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.len as u64 + self.tail as u64) + IP_UDP_HEADERS
    }

    /// Returns the whole buffer, to be written before [`set_len`](Self::set_len).
    pub(crate) fn buffer(&mut self) -> &mut [u8; CAPACITY] {
        &mut self.bytes
    }

    /// Sets the number of real bytes and of bytes that are only counted.
    pub(crate) fn set_len(&mut self, len: usize, tail: u64, ecn: Ecn) {
        (self.len, self.tail, self.piece, self.ecn) = (len as u16, tail as u16, None, ecn);
    }

    /// Like [`set_len`](Self::set_len), with a tail that stands for a piece of a frame.
    pub(crate) fn set_media(&mut self, len: usize, tail: u64, piece: FramePiece, ecn: Ecn) {
        (self.len, self.tail, self.piece, self.ecn) = (len as u16, tail as u16, Some(piece), ecn);
    }
}

impl Default for Datagram {
    fn default() -> Self {
        Self::new()
    }
}
