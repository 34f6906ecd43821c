//! The receiver of a flow of RTP packets: reports as RTCP.

use super::feedback::FeedbackBuilder;
use super::{FeedbackFormats, Receiver, SendTimeUnwrapper};
use crate::{Arrival, Controller, MediaKind, PacketKind, Signals, rtcp_message};
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Ecn, RemoteTime, StreamId};
use paceline_wire::{CompoundWriter, RtpHeader, WriteError};

/// The most SSRCs in RFC 8888 reports: those of media, retransmissions and padding, and some that a flow changes to.
const SSRCS_MAX: usize = 8;

/// What RTCP refers to.
#[derive(Clone, Debug)]
pub(super) struct RtpReports {
    feedback: Option<FeedbackBuilder>,
    /// The SSRCs in RFC 8888 reports, the oldest first.
    ssrcs: VecDeque<u32>,
    own_ssrc: u32,
    media_ssrc: u32,
    send_times: SendTimeUnwrapper,
}

impl RtpReports {
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        self.feedback.as_ref().and_then(FeedbackBuilder::poll_timeout)
    }
}

/// What an RTP packet is, besides its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RtpArrival {
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

impl RtpArrival {
    /// Returns a video packet of the first stream.
    pub fn new(kind: PacketKind, size: DataSize, ecn: Ecn) -> Self {
        Self { stream: StreamId(0), media: MediaKind::Video, kind, size, ecn }
    }
    /// Returns the packet as one of another stream.
    pub fn with_stream(self, stream: StreamId, media: MediaKind) -> Self {
        Self { stream, media, ..self }
    }
}

impl Receiver {
    /// Creates a receiver of RTP packets, which takes the receive half out of `controller`. `own_ssrc` is written into its RTCP as the
    /// sender of the packets, `media_ssrc` as the stream. Reports on packets have the format among `formats` that suits the controller.
    pub fn for_rtp(
        controller: &mut Controller,
        [own_ssrc, media_ssrc]: [u32; 2],
        formats: FeedbackFormats,
        signals: Signals,
    ) -> Self {
        let feedback = controller
            .feedback
            .and_then(|wanted| Some(FeedbackBuilder::new(formats.choose(&wanted)?, &wanted, [media_ssrc].into_iter())));
        let (ssrcs, send_times) = (VecDeque::from([media_ssrc]), SendTimeUnwrapper::default());
        let rtp = RtpReports { feedback, ssrcs, own_ssrc, media_ssrc, send_times };
        Self { log: None, rtp: Some(rtp), ..Self::new(controller, signals) }
    }

    /// Handles an RTP packet that arrived.
    pub fn handle_rtp(&mut self, now: RemoteTime, header: &RtpHeader, packet: &RtpArrival) {
        let now = self.advance(now);
        let &RtpArrival { stream, media, kind, size, ecn } = packet;
        let Some(rtp) = &mut self.rtp else { return };
        let sent = header.abs_send_time.map(|stamp| rtp.send_times.unwrap(now, stamp));
        if let Some(feedback) = &mut rtp.feedback {
            if !rtp.ssrcs.contains(&header.ssrc) {
                if rtp.ssrcs.len() == SSRCS_MAX {
                    feedback.remove_ssrcs(rtp.ssrcs.pop_front().as_slice());
                }
                rtp.ssrcs.push_back(header.ssrc);
                feedback.add_ssrcs(&[header.ssrc]);
            }
            feedback.handle_packet(now, header, ecn, size);
        }
        if let Some(half) = &mut self.half {
            let (timestamp, sequence) = (header.timestamp, header.sequence);
            let arrival = Arrival { sent, timestamp, sequence, stream, media, kind, size, ecn };
            half.handle_arrival(now, &arrival, &mut self.signals);
        }
        self.collect(now);
    }

    /// Writes the next RTCP compound that is due: messages of the receive half, or a report on packets if no message waits. It begins
    /// with a receiver report without blocks (RFC 3550, section 6.1). Returns its length, or `None` if nothing is due.
    ///
    /// # Errors
    /// The buffer is too small; 1200 bytes are enough.
    pub fn poll_rtcp(&mut self, now: RemoteTime, buffer: &mut [u8]) -> Result<Option<usize>, WriteError> {
        let now = self.advance(now);
        let Some(rtp) = &mut self.rtp else { return Ok(None) };
        let mut writer = CompoundWriter::new(buffer);
        writer.receiver_report(rtp.own_ssrc, &[])?;
        let empty = writer.len();
        // What does not fit follows in the next compound. A report on packets gets a compound of its own, because it needs room.
        let mut written = 0;
        while let Some(message) = self.messages.get(written)
            && rtcp_message::write(message, rtp.own_ssrc, &[rtp.media_ssrc], &mut writer).is_ok()
        {
            written += 1;
        }
        self.messages.drain(..written);
        if writer.len() == empty
            && let Some(feedback) = &mut rtp.feedback
        {
            feedback.write(now, rtp.own_ssrc, rtp.media_ssrc, &mut writer);
        }
        Ok((writer.len() > empty).then(|| writer.finish()))
    }

    /// Returns the SSRC of the stream.
    pub fn media_ssrc(&self) -> Option<u32> {
        self.rtp.as_ref().map(|rtp| rtp.media_ssrc)
    }
}
