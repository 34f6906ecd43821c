// SPDX-License-Identifier: MIT OR Apache-2.0
//! RTCP compounds and their packets. Each packet is parsed into a variant of [`Rtcp`] that borrows the bytes.
//!
//! RFC 3550, section 6 (common header, compounds, SR, RR, SDES, BYE, APP); RFC 4585, section 6.1 (feedback); RFC 5506
//! (reduced size: a compound may begin with any packet). The format of each packet type is in a file of its own.
//!
//! The crate `rtcp-types` is used only in tests, with `rtc-rtcp`. It reads padding as content, finds a malformed transport
//! feedback only while iterating, and allocates to read an SDES and to write reports.

use crate::app::NadaFeedback;
use crate::bytes::{be16, be32, be64, records};
use crate::ccfb::CongestionFeedback;
use crate::compound_writer::{
    APPLICATION, EXTENDED_REPORT, GOODBYE, PADDED, PAYLOAD_FEEDBACK, RECEIVER_REPORT, SENDER_REPORT,
    SOURCE_DESCRIPTION, TRANSPORT_FEEDBACK,
};
use crate::keyframe::FirEntries;
use crate::nack::LostPackets;
use crate::report::ReportBlocks;
use crate::sdes::SdesChunks;
use crate::twcc::TransportFeedback;
use crate::xr::XrBlocks;
use crate::{WireError, app, keyframe, nack, remb, report, sdes, xr};
use paceline_units::Rate;

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
            SENDER_REPORT => {
                let (fixed, rest) = body.split_first_chunk::<24>().ok_or(WireError::ReportTruncated)?;
                Ok(Rtcp::SenderReport {
                    ssrc: be32(fixed, 0),
                    ntp: be64(fixed, 4),
                    rtp_timestamp: be32(fixed, 12),
                    packets: be32(fixed, 16),
                    octets: be32(fixed, 20),
                    blocks: report::read(self.format, rest)?,
                })
            }
            RECEIVER_REPORT => {
                let (fixed, rest) = body.split_first_chunk::<4>().ok_or(WireError::ReportTruncated)?;
                Ok(Rtcp::ReceiverReport { ssrc: be32(fixed, 0), blocks: report::read(self.format, rest)? })
            }
            SOURCE_DESCRIPTION => Ok(Rtcp::Sdes { chunks: sdes::read(self.format, body)? }),
            GOODBYE => read_bye(self.format, body),
            APPLICATION => {
                let (fixed, data) = body.split_first_chunk::<8>().ok_or(WireError::AppTruncated)?;
                let (ssrc, subtype, name) = (be32(fixed, 0), self.format, [fixed[4], fixed[5], fixed[6], fixed[7]]);
                Ok(match app::read(subtype, name, data)? {
                    Some(feedback) => Rtcp::Nada { ssrc, feedback },
                    None => Rtcp::App { ssrc, subtype, name, data },
                })
            }
            EXTENDED_REPORT => {
                let (fixed, rest) = body.split_first_chunk::<4>().ok_or(WireError::XrMalformed)?;
                Ok(Rtcp::Xr { ssrc: be32(fixed, 0), blocks: xr::read(rest)? })
            }
            TRANSPORT_FEEDBACK | PAYLOAD_FEEDBACK => self.read_feedback(),
            _ => Ok(self.other()),
        }
    }

    fn read_feedback(&self) -> Result<Rtcp<'a>, WireError> {
        if (self.packet_type, self.format) == (TRANSPORT_FEEDBACK, CongestionFeedback::FORMAT) {
            return CongestionFeedback::read(self.body).map(Rtcp::CongestionFeedback);
        }
        let (ssrcs, fci) = self.body.split_first_chunk::<8>().ok_or(WireError::FeedbackTruncated)?;
        let (sender_ssrc, media_ssrc) = (be32(ssrcs, 0), be32(ssrcs, 4));
        match (self.packet_type, self.format) {
            (TRANSPORT_FEEDBACK, nack::FORMAT) => Ok(Rtcp::Nack { sender_ssrc, media_ssrc, lost: nack::read(fci)? }),
            (TRANSPORT_FEEDBACK, TransportFeedback::FORMAT) => {
                TransportFeedback::read(sender_ssrc, media_ssrc, fci).map(Rtcp::TransportFeedback)
            }
            (PAYLOAD_FEEDBACK, keyframe::PLI_FORMAT) if fci.is_empty() => Ok(Rtcp::Pli { sender_ssrc, media_ssrc }),
            (PAYLOAD_FEEDBACK, keyframe::PLI_FORMAT) => Err(WireError::PliLength),
            (PAYLOAD_FEEDBACK, keyframe::FIR_FORMAT) => {
                Ok(Rtcp::Fir { sender_ssrc, entries: keyframe::read_fir(fci)? })
            }
            (PAYLOAD_FEEDBACK, remb::FORMAT) if remb::is_remb(fci) => {
                let (rate, ssrcs) = remb::read(fci)?;
                Ok(Rtcp::Remb { sender_ssrc, rate, ssrcs: Ssrcs(ssrcs) })
            }
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
