//! RTCP: a compound is split into packets, each packet becomes a typed report that borrows its bytes.
//!
//! RFC 3550, section 6 (common header, compounds, SR, RR, SDES, BYE, APP); RFC 4585, section 6.1 (feedback);
//! RFC 5506 (reduced size: a compound may begin with any packet). The layout of each report is in its own file.
//!
//! Written by hand, not with `rtcp-types`: that crate counts padding as content (a report block or a NACK may lie in
//! it), finds a bad transport feedback only while it is read, and allocates to read an SDES and to write reports.
//! It serves as a second opinion in the tests, beside `rtc-rtcp`.

use crate::app::{GroupStep, NadaFeedback};
use crate::bytes::{be16, be32, put, records};
use crate::ccfb::CongestionFeedback;
use crate::keyframe::FirEntries;
use crate::nack::Lost;
use crate::report::Blocks;
use crate::sdes::SdesChunks;
use crate::twcc::TransportFeedback;
use crate::xr::XrBlocks;
use crate::{WireError, WriteError, app, keyframe, nack, remb, report, sdes, xr};
use paceline_units::Rate;

pub(crate) const SENDER_REPORT: u8 = 200;
pub(crate) const RECEIVER_REPORT: u8 = 201;
pub(crate) const SOURCE_DESCRIPTION: u8 = 202;
/// The P bit beside the format in the first byte.
pub(crate) const PADDED: u8 = 0x20;
const GOODBYE: u8 = 203;
pub(crate) const APPLICATION: u8 = 204;
pub(crate) const TRANSPORT_FEEDBACK: u8 = 205;
pub(crate) const PAYLOAD_FEEDBACK: u8 = 206;
pub(crate) const EXTENDED_REPORT: u8 = 207;

/// One packet of a compound. Iterators in it borrow the packet's bytes and are cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rtcp<'a> {
    /// SR: what a sender has sent, and what it has received.
    SenderReport {
        /// The sender.
        ssrc: u32,
        /// When the report was sent, 32.32 fixed point seconds of the sender's NTP clock; see [`ntp`](crate::ntp).
        ntp: u64,
        /// The same moment in units of the stream's RTP clock.
        rtp_timestamp: u32,
        /// Packets sent since the start.
        packets: u32,
        /// Payload bytes sent since the start.
        octets: u32,
        /// What the sender itself has received.
        blocks: Blocks<'a>,
    },
    /// RR: what a receiver has received.
    ReceiverReport {
        /// The receiver.
        ssrc: u32,
        /// One block for each source.
        blocks: Blocks<'a>,
    },
    /// Names of sources.
    Sdes {
        /// One chunk for each source.
        chunks: SdesChunks<'a>,
    },
    /// Sources that leave.
    Bye {
        /// Who leaves.
        ssrcs: Ssrcs<'a>,
        /// Why, if they say.
        reason: Option<&'a [u8]>,
    },
    /// An application's own packet of a name that this crate does not read.
    App {
        /// The sender.
        ssrc: u32,
        /// Five bits that the application may use.
        subtype: u8,
        /// The application's name for the packet.
        name: [u8; 4],
        /// Whole words of the application's own.
        data: &'a [u8],
    },
    /// NADA's feedback (RFC 8698), in an application's packet.
    Nada {
        /// The receiver that reports.
        ssrc: u32,
        /// What it reports.
        feedback: NadaFeedback,
    },
    /// The step between two groups of packets, in an application's packet.
    GroupStep {
        /// The receiver that reports.
        ssrc: u32,
        /// What it reports.
        step: GroupStep,
    },
    /// Extended report: round-trip times for endpoints that do not send, and more.
    Xr {
        /// The sender of the report.
        ssrc: u32,
        /// Its blocks.
        blocks: XrBlocks<'a>,
    },
    /// Receiver estimated maximum bitrate: an upper bound on all media of the transport.
    Remb {
        /// The receiver that estimates.
        sender_ssrc: u32,
        /// The bound.
        rate: Rate,
        /// The streams it bounds together.
        ssrcs: Ssrcs<'a>,
    },
    /// Generic NACK: packets to send again.
    Nack {
        /// Who asks.
        sender_ssrc: u32,
        /// The stream that lost packets.
        media_ssrc: u32,
        /// Sequence numbers of the lost packets, in the order of the packet.
        lost: Lost<'a>,
    },
    /// Picture loss indication: please send a key frame.
    Pli {
        /// Who asks.
        sender_ssrc: u32,
        /// The stream whose picture is lost.
        media_ssrc: u32,
    },
    /// Full intra request: a key frame is required.
    Fir {
        /// Who asks.
        sender_ssrc: u32,
        /// Streams and request numbers.
        entries: FirEntries<'a>,
    },
    /// Transport-wide feedback: which packets arrived, and when.
    TransportFeedback(TransportFeedback<'a>),
    /// Congestion control feedback: which packets of each stream arrived, when, and how they were marked.
    CongestionFeedback(CongestionFeedback<'a>),
    /// A packet that this crate does not read.
    Other {
        /// Packet type, 192 to 223.
        packet_type: u8,
        /// The five bits after version and padding: a count or a feedback message type.
        format: u8,
    },
}

records! {
    /// An iterator over SSRCs.
    Ssrcs, u32, 4, |b| u32::from_be_bytes(*b)
}

/// A compound whose every packet has been found valid.
#[derive(Clone, Copy, Debug)]
pub struct Compound<'a>(&'a [u8]);

/// An iterator over the packets of a [`Compound`].
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a>(&'a [u8]);

/// Reads a compound packet (RFC 3550) or a reduced-size one (RFC 5506).
///
/// Every packet is validated before any is handed out, so that a compound with a bad tail has no effect at all.
pub fn parse_compound(bytes: &[u8]) -> Result<Compound<'_>, WireError> {
    let mut rest = bytes;
    loop {
        let packet;
        (packet, rest) = RawPacket::split(rest)?;
        packet.read()?;
        if rest.is_empty() {
            return Ok(Compound(bytes));
        }
        if packet.padded && !packet.is_transport_feedback() {
            return Err(WireError::PaddingNotLast);
        }
    }
}

impl<'a> IntoIterator for Compound<'a> {
    type Item = Rtcp<'a>;
    type IntoIter = Packets<'a>;
    fn into_iter(self) -> Packets<'a> {
        Packets(self.0)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Rtcp<'a>;
    fn next(&mut self) -> Option<Rtcp<'a>> {
        // Validated before: an error here can only mean the end.
        let (packet, rest) = RawPacket::split(self.0).ok()?;
        self.0 = rest;
        packet.read().ok()
    }
}

/// A packet by its common header.
#[derive(Clone, Copy)]
struct RawPacket<'a> {
    packet_type: u8,
    format: u8,
    padded: bool,
    /// What follows the 4 bytes of the header, without padding.
    body: &'a [u8],
}

impl<'a> RawPacket<'a> {
    /// Takes the first packet off a compound.
    fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), WireError> {
        let (header, rest) = bytes.split_first_chunk::<4>().ok_or(WireError::RtcpTruncated)?;
        if header[0] >> 6 != 2 {
            return Err(WireError::BadVersion);
        }
        if !(192..=223).contains(&header[1]) {
            return Err(WireError::NotRtcp);
        }
        let (body, rest) = rest.split_at_checked(4 * usize::from(be16(header, 2))).ok_or(WireError::RtcpTruncated)?;
        let mut packet =
            Self { packet_type: header[1], format: header[0] & 0x1F, padded: header[0] & PADDED != 0, body };
        if packet.padded {
            let count = usize::from(*body.last().ok_or(WireError::RtcpPadding)?);
            // RFC 3550, section 6.4.1: a multiple of 4, but senders of transport feedback count its 1 to 3 fill bytes.
            let aligned = count % 4 == 0 || packet.is_transport_feedback();
            if count == 0 || count > body.len() || !aligned {
                return Err(WireError::RtcpPadding);
            }
            packet.body = &body[..body.len() - count];
        }
        Ok((packet, rest))
    }

    fn is_transport_feedback(&self) -> bool {
        (self.packet_type, self.format) == (TRANSPORT_FEEDBACK, TransportFeedback::FORMAT)
    }

    fn read(&self) -> Result<Rtcp<'a>, WireError> {
        let body = self.body;
        match self.packet_type {
            SENDER_REPORT => report::read_sender(self.format, body),
            RECEIVER_REPORT => report::read_receiver(self.format, body),
            SOURCE_DESCRIPTION => sdes::read(self.format, body),
            GOODBYE => read_bye(self.format, body),
            APPLICATION => app::read(self.format, body),
            EXTENDED_REPORT => xr::read(body),
            TRANSPORT_FEEDBACK | PAYLOAD_FEEDBACK => self.read_feedback(),
            _ => Ok(self.other()),
        }
    }

    fn read_feedback(&self) -> Result<Rtcp<'a>, WireError> {
        if (self.packet_type, self.format) == (TRANSPORT_FEEDBACK, CongestionFeedback::FORMAT) {
            return CongestionFeedback::read(self.body).map(Rtcp::CongestionFeedback);
        }
        let (ssrcs, fci) = self.body.split_first_chunk::<8>().ok_or(WireError::FeedbackTruncated)?;
        let (sender, media) = (be32(ssrcs, 0), be32(ssrcs, 4));
        match (self.packet_type, self.format) {
            (TRANSPORT_FEEDBACK, nack::FORMAT) => nack::read(sender, media, fci),
            (TRANSPORT_FEEDBACK, TransportFeedback::FORMAT) => {
                TransportFeedback::read(sender, media, fci).map(Rtcp::TransportFeedback)
            }
            (PAYLOAD_FEEDBACK, keyframe::PLI_FORMAT) => keyframe::read_pli(sender, media, fci),
            (PAYLOAD_FEEDBACK, keyframe::FIR_FORMAT) => keyframe::read_fir(sender, fci),
            (PAYLOAD_FEEDBACK, remb::FORMAT) if remb::is_remb(fci) => remb::read(sender, fci),
            _ => Ok(self.other()),
        }
    }

    fn other(&self) -> Rtcp<'a> {
        Rtcp::Other { packet_type: self.packet_type, format: self.format }
    }
}

fn read_bye(count: u8, body: &[u8]) -> Result<Rtcp<'_>, WireError> {
    let (ssrcs, rest) = body.split_at_checked(4 * usize::from(count)).ok_or(WireError::ByeMalformed)?;
    let reason = match rest.split_first() {
        Some((&len, text)) => Some(text.get(..usize::from(len)).ok_or(WireError::ByeMalformed)?),
        None => None,
    };
    Ok(Rtcp::Bye { ssrcs: Ssrcs(ssrcs), reason })
}

/// Writes a compound into a caller's buffer, packet after packet.
///
/// A packet that does not fit leaves the writer as it was, so that the caller can send what it has and try again. The
/// method of each packet stands in the file of its layout.
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> CompoundWriter<'a> {
    /// An empty compound at the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// The bytes written so far.
    pub fn finish(self) -> usize {
        self.len
    }

    /// The bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True before the first packet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes that are left in the buffer.
    pub(crate) fn free(&self) -> usize {
        self.out.len() - self.len
    }

    /// Writes a common header and returns the body, a multiple of 4 bytes with old content, for the caller to fill.
    /// `format` may include [`PADDED`].
    pub(crate) fn packet(&mut self, packet_type: u8, format: u8, body_len: usize) -> Result<&mut [u8], WriteError> {
        debug_assert!(body_len.is_multiple_of(4) && format < 64);
        let words = u16::try_from(body_len / 4).map_err(|_| WriteError::TooMany)?;
        let packet = self.out[self.len..].get_mut(..4 + body_len).ok_or(WriteError::BufferFull)?;
        self.len += packet.len();
        let (header, body) = packet.split_at_mut(4);
        header[0] = 0x80 | format;
        header[1] = packet_type;
        put(header, 2, words.to_be_bytes());
        Ok(body)
    }

    /// The same for a feedback packet, whose two SSRCs are filled in: returns the FCI.
    pub(crate) fn feedback(
        &mut self,
        packet_type: u8,
        format: u8,
        ssrcs: (u32, u32),
        fci_len: usize,
    ) -> Result<&mut [u8], WriteError> {
        let (head, fci) = self.packet(packet_type, format, 8 + fci_len)?.split_at_mut(8);
        put(head, 0, ssrcs.0.to_be_bytes());
        put(head, 4, ssrcs.1.to_be_bytes());
        Ok(fci)
    }
}
