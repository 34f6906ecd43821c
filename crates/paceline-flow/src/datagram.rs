//! A UDP datagram whose payload is only counted.

use paceline_units::{DataSize, Ecn, StreamId};
use paceline_wire::{RtpHeader, Vp8Descriptor, rtx};

/// Bytes of IPv4 and UDP headers that every datagram pays, and that every rate in Paceline counts.
pub const IP_UDP_HEADERS: DataSize = DataSize::from_bytes(20 + 8);

/// The largest RTP packet that a sender makes, RTP header included, IP and UDP headers not.
pub const MAX_RTP_PACKET: u64 = 1200;

/// Bytes of RTP header with its extensions, RTX number and VP8 descriptor: the most that a media packet spends before
/// its payload.
pub const MEDIA_HEADERS: DataSize =
    DataSize::from_bytes((RtpHeader::MAX_LEN + rtx::LEN + Vp8Descriptor::MAX_LEN) as u64);

/// Room for the bytes that exist: all of RTCP, and the headers of RTP.
const ROOM: usize = 256;

/// Which piece of a frame a datagram's tail is: for those who have the bytes that are only counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePiece {
    /// The frame's stream.
    pub stream: StreamId,
    /// The frame's RTP timestamp, which names it within the stream.
    pub timestamp: u32,
    /// Where in the frame the piece begins, bytes.
    pub offset: u32,
}

/// One datagram: its leading bytes, and how many more there would be.
#[derive(Clone, Debug)]
pub struct Datagram {
    bytes: [u8; ROOM],
    len: u16,
    tail: u16,
    piece: Option<FramePiece>,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

impl Datagram {
    /// An empty one, to be written into and used again and again.
    pub const fn new() -> Self {
        Self { bytes: [0; ROOM], len: 0, tail: 0, piece: None, ecn: Ecn::NotEct }
    }

    /// The bytes that exist.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// How many bytes follow that are only counted.
    pub fn tail(&self) -> usize {
        self.tail as usize
    }

    /// What these are: a piece of a frame, or padding and parity.
    pub fn piece(&self) -> Option<&FramePiece> {
        self.piece.as_ref()
    }

    /// Size on the network, IP and UDP headers included.
    #[inline]
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.len as u64 + self.tail as u64) + IP_UDP_HEADERS
    }

    /// The whole buffer, to write into before [`set_len`](Self::set_len).
    pub(crate) fn buffer(&mut self) -> &mut [u8; ROOM] {
        &mut self.bytes
    }

    /// `len` bytes exist, `tail` more are only counted.
    pub(crate) fn set_len(&mut self, len: usize, tail: u64, ecn: Ecn) {
        (self.len, self.tail, self.piece, self.ecn) = (len as u16, tail as u16, None, ecn);
    }

    /// The same, and the tail is a piece of a frame.
    pub(crate) fn set_media(&mut self, len: usize, tail: u64, piece: FramePiece, ecn: Ecn) {
        (self.len, self.tail, self.piece, self.ecn) = (len as u16, tail as u16, Some(piece), ecn);
    }
}

impl Default for Datagram {
    fn default() -> Self {
        Self::new()
    }
}
