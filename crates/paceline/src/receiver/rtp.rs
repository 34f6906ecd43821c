// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver of a flow of RTP packets: reports as RTCP.

use super::feedback::FeedbackBuilder;
use super::reception::{BLOCKS_MAX, Receptions};
use super::send_time::SendTimeUnwrapper;
use super::{FeedbackFormats, Receiver};
use crate::{Arrival, Controller, MediaKind, Message, PacketKind, Signals, rtcp_message};
use alloc::vec::Vec;
use paceline_units::{DataSize, Ecn, RemoteTime, StreamId, TimeDelta};
use paceline_wire::{CompoundWriter, ReportBlock, RtpHeader, WireError, WriteError, parse_compound};

/// The most SSRCs in RFC 8888 reports that were not added: those of retransmissions and padding, and some that a flow changes to.
const LEARNED_MAX: usize = 7;

/// The least size of a buffer for RTCP, bytes: a receiver report with all its blocks (RFC 3550, section 6.4.2).
const BUFFER_MIN: usize = 8 + 24 * BLOCKS_MAX;

/// What RTCP refers to.
#[derive(Clone, Debug)]
pub(super) struct RtpReports {
    feedback: Option<FeedbackBuilder>,
    /// The SSRCs in RFC 8888 reports: those that were added, and those that were learned from packets, the oldest first.
    ssrcs: Vec<u32>,
    learned: Vec<u32>,
    own_ssrc: u32,
    media_ssrc: u32,
    send_times: SendTimeUnwrapper,
    /// `None` if the program writes receiver reports itself.
    receptions: Option<Receptions>,
}

impl RtpReports {
    #[inline]
    pub fn poll_timeout(&self) -> Option<RemoteTime> {
        let feedback = self.feedback.as_ref().and_then(FeedbackBuilder::poll_timeout);
        let blocks = self.receptions.as_ref().and_then(|receptions| receptions.due);
        feedback.into_iter().chain(blocks).min()
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
    /// The number of the packet of which this is a retransmission (RFC 4588); `None`: that of the header.
    pub original: Option<u16>,
    /// The size on the network, IP and UDP headers included.
    pub size: DataSize,
    /// The ECN field.
    pub ecn: Ecn,
}

impl RtpArrival {
    /// Returns a video packet of the first stream.
    #[inline]
    pub fn new(kind: PacketKind, size: DataSize, ecn: Ecn) -> Self {
        Self { stream: StreamId(0), media: MediaKind::Video, kind, original: None, size, ecn }
    }
    /// Returns the packet as one of another stream.
    #[inline]
    pub fn with_stream(self, stream: StreamId, media: MediaKind) -> Self {
        Self { stream, media, ..self }
    }
    /// Returns the packet as a retransmission of another one.
    #[inline]
    pub fn with_original(self, original: Option<u16>) -> Self {
        Self { original, ..self }
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
        let feedback = (formats, None);
        let mut receiver =
            Self::for_ssrcs(controller, [own_ssrc, media_ssrc], Vec::from([media_ssrc]), feedback, signals);
        receiver.rtp.iter_mut().for_each(|rtp| rtp.receptions = Some(Receptions::default()));
        receiver
    }

    /// Creates a receiver of RTP packets with these SSRCs, for a program that writes receiver reports itself; see
    /// [`for_rtp`](Self::for_rtp). With an interval, reports on packets follow each other after exactly this time.
    #[doc(hidden)]
    pub fn for_ssrcs(
        controller: &mut Controller,
        [own_ssrc, media_ssrc]: [u32; 2],
        ssrcs: Vec<u32>,
        (formats, interval): (FeedbackFormats, Option<TimeDelta>),
        signals: Signals,
    ) -> Self {
        let feedback = controller.feedback.and_then(|mut wanted| {
            let format = formats.choose(&wanted)?;
            if let Some(interval) = interval {
                (wanted.interval, wanted.longest) = (interval, interval);
            }
            let mut builder = FeedbackBuilder::new(format, &wanted, ssrcs.iter().copied());
            if interval.is_some() {
                builder.never_send_early();
            }
            Some(builder)
        });
        let (learned, send_times) = (Vec::new(), SendTimeUnwrapper::default());
        let rtp = RtpReports { feedback, ssrcs, learned, own_ssrc, media_ssrc, send_times, receptions: None };
        Self { log: None, rtp: Some(rtp), ..Self::new(controller, signals) }
    }

    /// Adds SSRCs to the reports, such as those of a new stream.
    pub fn add_ssrcs(&mut self, ssrcs: &[u32]) {
        let Some(rtp) = &mut self.rtp else { return };
        for &ssrc in ssrcs {
            if rtp.ssrcs.contains(&ssrc) {
                continue;
            }
            rtp.ssrcs.push(ssrc);
            if let Some(place) = rtp.learned.iter().position(|learned| *learned == ssrc) {
                rtp.learned.remove(place);
            } else if let Some(feedback) = &mut rtp.feedback {
                feedback.add_ssrcs(&[ssrc]);
            }
        }
    }

    /// Removes SSRCs from the reports.
    pub fn remove_ssrcs(&mut self, ssrcs: &[u32]) {
        let Some(rtp) = &mut self.rtp else { return };
        rtp.receptions.iter_mut().for_each(|receptions| receptions.remove(ssrcs));
        rtp.ssrcs.retain(|ssrc| !ssrcs.contains(ssrc));
        rtp.learned.retain(|ssrc| !ssrcs.contains(ssrc));
        if let Some(feedback) = &mut rtp.feedback {
            feedback.remove_ssrcs(ssrcs);
        }
    }

    /// Handles an RTP packet that arrived.
    #[inline]
    pub fn handle_rtp(&mut self, now: RemoteTime, header: &RtpHeader, packet: &RtpArrival) {
        let now = self.advance(now);
        let &RtpArrival { stream, media, kind, original, size, ecn } = packet;
        let Some(rtp) = &mut self.rtp else { return };
        if let Some(receptions) = &mut rtp.receptions
            && rtp.ssrcs.contains(&header.ssrc)
        {
            receptions.handle_packet(now, header, media);
        }
        if let Some(feedback) = &mut rtp.feedback {
            if !rtp.ssrcs.contains(&header.ssrc) && !rtp.learned.contains(&header.ssrc) {
                if rtp.learned.len() == LEARNED_MAX {
                    feedback.remove_ssrcs(&[rtp.learned.remove(0)]);
                }
                rtp.learned.push(header.ssrc);
                feedback.add_ssrcs(&[header.ssrc]);
            }
            feedback.handle_packet(now, header, ecn, size);
        }
        if let Some(half) = &mut self.half {
            let sent = header.abs_send_time.map(|stamp| rtp.send_times.unwrap(now, stamp));
            let (timestamp, sequence) = (header.timestamp, original.unwrap_or(header.sequence));
            let arrival = Arrival { sent, timestamp, sequence, stream, media, kind, size, ecn };
            half.handle_arrival(now, &arrival, &mut self.signals);
        }
        self.collect(now);
    }

    /// Handles an RTCP datagram of the sender. Its sender reports are named in the next receiver reports, which then give it the
    /// round-trip time; the rest is skipped.
    ///
    /// # Errors
    /// The datagram is malformed. Nothing of it has an effect.
    pub fn handle_rtcp(&mut self, now: RemoteTime, datagram: &[u8]) -> Result<(), WireError> {
        let now = self.advance(now);
        let Some(RtpReports { receptions: Some(receptions), ssrcs, .. }) = &mut self.rtp else { return Ok(()) };
        for packet in parse_compound(datagram)? {
            receptions.handle_rtcp(now, &packet, ssrcs);
        }
        Ok(())
    }

    /// Writes the next RTCP compound that is due: messages of the receive half, or a report on packets if nothing else is due. It
    /// begins with a receiver report (RFC 3550, section 6.1). Once a second, and with each message of NADA or of an application,
    /// this report has blocks on the SSRCs that were added. Returns the length, or `None` if nothing is due.
    ///
    /// # Errors
    /// The buffer has fewer than 200 bytes. Nothing is lost: the next call writes the compound. 1200 bytes are enough for any; of
    /// shorter buffers a report on packets that does not fit is lost.
    pub fn poll_rtcp(&mut self, now: RemoteTime, buffer: &mut [u8]) -> Result<Option<usize>, WriteError> {
        let now = self.advance(now);
        let Some(rtp) = &mut self.rtp else { return Ok(None) };
        // Blocks that are taken must fit.
        if buffer.len() < BUFFER_MIN {
            return Err(WriteError::BufferFull);
        }
        let mut writer = CompoundWriter::new(buffer);
        let mut blocks = [ReportBlock::default(); BLOCKS_MAX];
        // These messages have no order of their own: the sender takes those that come with a new report block.
        let is_ordered = self.messages.iter().any(|message| !matches!(message, Message::Remb(_)));
        let count = rtp.receptions.as_mut().map_or(0, |receptions| receptions.write(now, is_ordered, &mut blocks));
        writer.receiver_report(rtp.own_ssrc, &blocks[..count])?;
        let empty = writer.len();
        // What does not fit follows in the next compound. A report on packets gets a compound of its own, because it needs room.
        let mut written = 0;
        while let Some(message) = self.messages.get(written)
            && rtcp_message::write(message, rtp.own_ssrc, &[rtp.media_ssrc], &mut writer).is_ok()
        {
            written += 1;
        }
        self.messages.drain(..written);
        if count == 0
            && writer.len() == empty
            && let Some(feedback) = &mut rtp.feedback
        {
            feedback.write(now, rtp.own_ssrc, rtp.media_ssrc, &mut writer);
        }
        Ok((count > 0 || writer.len() > empty).then(|| writer.finish()))
    }

    /// Returns the messages of the receive half that wait.
    #[doc(hidden)]
    #[inline]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Removes the first message that waits.
    #[doc(hidden)]
    pub fn take_message(&mut self) -> Option<Message> {
        if self.messages.is_empty() { None } else { Some(self.messages.remove(0)) }
    }

    /// Writes the report on packets that is due, of the flow with this media SSRC. Returns whether there was one.
    #[doc(hidden)]
    pub fn write_feedback(&mut self, now: RemoteTime, media_ssrc: u32, writer: &mut CompoundWriter<'_>) -> bool {
        let now = self.advance(now);
        let Some(RtpReports { feedback: Some(feedback), own_ssrc, .. }) = &mut self.rtp else { return false };
        feedback.write(now, *own_ssrc, media_ssrc, writer)
    }

    /// Returns the SSRC of the stream.
    pub fn media_ssrc(&self) -> Option<u32> {
        self.rtp.as_ref().map(|rtp| rtp.media_ssrc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Registry, Setup};
    use paceline_units::Rate;
    use paceline_wire::{Rtcp, parse_compound};

    /// SSRC 7 is learned from a packet and added later; packets of eight others follow.
    #[test]
    fn added_ssrcs_are_always_reported_and_removed_ones_never() {
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
        let mut controller = Registry::standard().build("drc", &setup).unwrap();
        let formats = FeedbackFormats { transport_wide: false, rfc8888: true };
        let mut receiver = Receiver::for_rtp(&mut controller, [1, 2], formats, Signals::disabled());
        let reported = |receiver: &mut Receiver, ssrcs: &[u32], ms: i64| {
            let now = RemoteTime::from_millis(ms);
            for ssrc in ssrcs {
                let header = RtpHeader { ssrc: *ssrc, sequence: ms as u16, ..RtpHeader::default() };
                let packet = RtpArrival::new(PacketKind::Media, DataSize::from_bytes(500), Ecn::NotEct);
                receiver.handle_rtp(now, &header, &packet);
            }
            let (mut found, mut buffer) = (Vec::new(), [0; 1200]);
            let later = now + TimeDelta::from_millis(500);
            while let Some(len) = receiver.poll_rtcp(later, &mut buffer).unwrap() {
                for packet in parse_compound(&buffer[..len]).unwrap() {
                    if let Rtcp::CongestionFeedback(feedback) = packet {
                        found.extend(feedback.blocks().map(|block| block.ssrc));
                    }
                }
            }
            found.sort_unstable();
            found.dedup();
            found
        };
        assert_eq!(reported(&mut receiver, &[2, 7], 0), [2, 7]);
        receiver.add_ssrcs(&[7, 2]);
        reported(&mut receiver, &[100, 101, 102, 103, 104, 105, 106, 107], 1000);
        let found = reported(&mut receiver, &[2, 7], 2000);
        assert_eq!(
            found,
            [2, 7, 101, 102, 103, 104, 105, 106, 107],
            "the oldest of those that were learned is left out"
        );
        receiver.remove_ssrcs(&[7, 107]);
        assert_eq!(reported(&mut receiver, &[2], 3000), [2]);
        let found = reported(&mut receiver, &[2, 107], 4000);
        assert_eq!(found, [2, 107], "learned again");
    }
}
