//! RTCP compounds and their packets. Each packet is parsed into a variant of [`Rtcp`] that borrows the bytes.
//!
//! RFC 3550, section 6 (common header, compounds, SR, RR, SDES, BYE, APP); RFC 4585, section 6.1 (feedback); RFC 5506
//! (reduced size: a compound may begin with any packet). The format of each packet type is in a file of its own.
//!
//! The crate `rtcp-types` is used only in tests, with `rtc-rtcp`. It reads padding as content, finds a malformed transport
//! feedback only while iterating, and allocates to read an SDES and to write reports.

use crate::app::{GroupStep, NadaFeedback};
use crate::bytes::{be16, be32, put, records};
use crate::ccfb::CongestionFeedback;
use crate::keyframe::FirEntries;
use crate::nack::LostPackets;
use crate::report::ReportBlocks;
use crate::sdes::SdesChunks;
use crate::twcc::TransportFeedback;
use crate::xr::XrBlocks;
use crate::{WireError, WriteError, app, keyframe, nack, remb, report, sdes, xr};
use paceline_units::Rate;

pub(crate) const SENDER_REPORT: u8 = 200;
pub(crate) const RECEIVER_REPORT: u8 = 201;
pub(crate) const SOURCE_DESCRIPTION: u8 = 202;
/// The P bit, next to the format in the first byte.
pub(crate) const PADDED: u8 = 0x20;
const GOODBYE: u8 = 203;
pub(crate) const APPLICATION: u8 = 204;
pub(crate) const TRANSPORT_FEEDBACK: u8 = 205;
pub(crate) const PAYLOAD_FEEDBACK: u8 = 206;
pub(crate) const EXTENDED_REPORT: u8 = 207;

/// One packet of a compound. The iterators in it borrow the bytes of the packet and are cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rtcp<'a> {
    /// SR: the statistics of a sender.
    SenderReport {
        /// The SSRC of the sender.
        ssrc: u32,
        /// The send time, in 32.32 fixed-point seconds of the sender's NTP clock; see [`ntp`](crate::ntp).
        ntp: u64,
        /// The same time in units of the RTP clock of the stream.
        rtp_timestamp: u32,
        /// Packets sent since the start.
        packets: u32,
        /// Payload bytes sent since the start.
        octets: u32,
        /// Reception reports of the sender.
        blocks: ReportBlocks<'a>,
    },
    /// RR: the statistics of a receiver.
    ReceiverReport {
        /// The SSRC of the receiver.
        ssrc: u32,
        /// One block for each source.
        blocks: ReportBlocks<'a>,
    },
    /// SDES: descriptions of sources.
    Sdes {
        /// One chunk for each source.
        chunks: SdesChunks<'a>,
    },
    /// BYE: sources that leave.
    Bye {
        /// The sources.
        ssrcs: Ssrcs<'a>,
        /// The reason, if there is one.
        reason: Option<&'a [u8]>,
    },
    /// APP: an application-defined packet with an unknown name.
    App {
        /// The SSRC of the sender.
        ssrc: u32,
        /// The subtype, five bits.
        subtype: u8,
        /// The name.
        name: [u8; 4],
        /// The data, a multiple of 4 bytes.
        data: &'a [u8],
    },
    /// NADA feedback (RFC 8698), in an APP packet.
    Nada {
        /// The SSRC of the receiver.
        ssrc: u32,
        /// The feedback.
        feedback: NadaFeedback,
    },
    /// The difference between two groups of packets, in an APP packet.
    GroupStep {
        /// The SSRC of the receiver.
        ssrc: u32,
        /// The difference.
        step: GroupStep,
    },
    /// XR: an extended report.
    Xr {
        /// The SSRC of the sender of the report.
        ssrc: u32,
        /// The blocks.
        blocks: XrBlocks<'a>,
    },
    /// REMB: the upper limit of the rate that the receiver estimates.
    Remb {
        /// The SSRC of the receiver.
        sender_ssrc: u32,
        /// The limit of the total rate.
        rate: Rate,
        /// The streams in the total.
        ssrcs: Ssrcs<'a>,
    },
    /// Generic NACK: a request to resend packets.
    Nack {
        /// The SSRC of the requesting receiver.
        sender_ssrc: u32,
        /// The stream that lost packets.
        media_ssrc: u32,
        /// The sequence numbers of the lost packets.
        lost: LostPackets<'a>,
    },
    /// PLI, picture loss indication: a request for a key frame after loss.
    Pli {
        /// The SSRC of the requesting receiver.
        sender_ssrc: u32,
        /// The stream whose picture is lost.
        media_ssrc: u32,
    },
    /// FIR, full intra request: a request for a key frame.
    Fir {
        /// The SSRC of the requesting receiver.
        sender_ssrc: u32,
        /// The streams and the sequence numbers of the requests.
        entries: FirEntries<'a>,
    },
    /// Transport-wide feedback: the arrival times of packets.
    TransportFeedback(TransportFeedback<'a>),
    /// Congestion control feedback (RFC 8888): the arrival times and ECN marks of packets.
    CongestionFeedback(CongestionFeedback<'a>),
    /// Another packet type.
    Other {
        /// The packet type, 192 to 223.
        packet_type: u8,
        /// The five bits after version and padding: a count or a feedback message type.
        format: u8,
    },
}

records! {
    /// An iterator over SSRCs.
    Ssrcs, u32, 4, |b| u32::from_be_bytes(*b)
}

/// A validated compound.
#[derive(Clone, Copy, Debug)]
pub struct Compound<'a>(&'a [u8]);

/// An iterator over the packets of a [`Compound`].
#[derive(Clone, Copy, Debug)]
pub struct RtcpPackets<'a>(&'a [u8]);

/// Parses a compound packet (RFC 3550) or a reduced-size one (RFC 5506).
///
/// All packets are validated first, so that a compound with one malformed packet has no effect.
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
    type IntoIter = RtcpPackets<'a>;
    fn into_iter(self) -> RtcpPackets<'a> {
        RtcpPackets(self.0)
    }
}

impl<'a> Iterator for RtcpPackets<'a> {
    type Item = Rtcp<'a>;
    fn next(&mut self) -> Option<Rtcp<'a>> {
        // Validated before: an error is the end.
        let (packet, rest) = RawPacket::split(self.0).ok()?;
        self.0 = rest;
        packet.read().ok()
    }
}

/// A packet with its common header parsed.
#[derive(Clone, Copy)]
struct RawPacket<'a> {
    packet_type: u8,
    format: u8,
    padded: bool,
    /// The bytes after the header, without padding.
    body: &'a [u8],
}

impl<'a> RawPacket<'a> {
    /// Splits off the first packet of a compound.
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
            // A multiple of 4 (RFC 3550, section 6.4.1), except in transport feedback, which has 1 to 3 padding bytes.
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

/// Writes a compound into a buffer.
///
/// If a packet does not fit, the writer is unchanged, so that the caller can send the compound and write the packet to the
/// next one.
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> CompoundWriter<'a> {
    /// Returns a writer of an empty compound at the start of `out`.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// Returns the length of the compound in bytes.
    pub fn finish(self) -> usize {
        self.len
    }

    /// Returns the bytes written so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no packet has been written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes left in the buffer.
    pub(crate) fn free(&self) -> usize {
        self.out.len() - self.len
    }

    /// Writes a common header. Returns the body, whose length is a multiple of 4 and whose old content the caller overwrites.
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

    /// Writes the header of a feedback packet and its two SSRCs. Returns the feedback control information (FCI).
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
