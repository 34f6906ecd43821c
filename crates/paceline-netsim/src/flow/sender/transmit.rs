// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transmission: writes the packets of the pacer, padding and sender reports as bytes.

use super::fec_encoder::write_payload_head;
use super::stream::SenderStream;
use super::{DatagramKind, MediaSender, QueuedKind, QueuedPacket};
use crate::flow::datagram::{Datagram, FramePiece, IP_UDP_HEADERS};
use crate::flow::retransmission_store::MediaPacket;
use paceline::{MediaKind, Outgoing, PacketHead, PacketKind, Release, rtp_timestamp};
use paceline_units::{DataSize, Ecn, StreamId, Time};
use paceline_wire::{CompoundWriter, RtpHeader, red, rtx};

/// Payload bytes of a padding packet: the most whole words that RTP's padding octet can count.
const PADDING_PAYLOAD: u64 = 252;
/// The size of a padding packet on the network.
pub(super) const PADDING_SIZE: DataSize =
    DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + RtpHeader::MAX_LEN as u64 + PADDING_PAYLOAD);

/// A burst of a probe of fewer bytes is not filled with earlier packets (libwebrtc's `kMinPayloadPaddingBytes`,
/// `rtp_sender.cc`).
const FILLED_MIN: DataSize = DataSize::from_bytes(50);
/// The largest payload of an earlier packet over the bytes of a burst (`max_padding_size_factor`).
const FILLER_MAX: u64 = 3;

impl MediaSender {
    /// Writes the next packet that may be sent at `now`: a sender report, or what the core releases.
    pub(super) fn write_next(&mut self, now: Time, out: &mut Datagram) -> Option<DatagramKind> {
        if self.reports.is_due(now) && self.write_report(now, out) {
            return Some(DatagramKind::Rtcp);
        }
        Some(match self.core.poll_release(now)? {
            Release::Packet(queued) => self.write_media(now, queued, out),
            Release::Probe { burst } => self.write_filler(now, burst, out),
            Release::Padding => self.write_padding(now, out),
        })
    }

    fn write_media(&mut self, now: Time, queued: QueuedPacket, out: &mut Datagram) -> DatagramKind {
        let QueuedPacket { stream: index, kind, packet } = queued;
        let stream = &mut self.streams[index as usize];
        let info = stream.config.info;
        let (payload_type, sequence, ssrc) = match (kind, stream.red) {
            (QueuedKind::Media, false) => (info.payload_type(), packet.sequence, info.ssrc),
            (QueuedKind::Media, true) => (info.red_payload_type(), packet.sequence, info.ssrc),
            (QueuedKind::Retransmission | QueuedKind::Filler, false) => {
                (info.rtx_payload_type(), stream.rtx_sequence, info.rtx_ssrc)
            }
            (QueuedKind::Retransmission | QueuedKind::Filler, true) => {
                (info.red_rtx_payload_type(), stream.rtx_sequence, info.rtx_ssrc)
            }
            (QueuedKind::Fec, _) => return self.write_fec(now, index, &packet, out),
        };
        let header = RtpHeader {
            marker: packet.marker,
            ..rtp_header(now, self.core.packets_sent(), payload_type, sequence, packet.timestamp, ssrc)
        };
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        let kind = if kind != QueuedKind::Media {
            stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
            len += rtx::write(packet.sequence, &mut buffer[len..]);
            if kind == QueuedKind::Filler { PacketKind::Padding } else { PacketKind::Retransmission }
        } else {
            stream.count_media(packet.payload as u32);
            if self.repair.retransmits && info.kind == MediaKind::Video {
                stream.store.insert(packet);
                stream.update_filler(packet);
            }
            PacketKind::Media
        };
        len += write_payload_head(&packet, &info, stream.red, &mut buffer[len..]);
        let piece = FramePiece { stream: info.id, timestamp: packet.timestamp, offset: packet.offset };
        out.set_media(len, packet.payload as u64, piece, self.core.decision().ecn);
        self.handle_sent(now, (header.ssrc, header.sequence), out.size(), info.id, kind)
    }

    /// Writes the stream's next FEC packet, with the sequence number that it got in the media's sequence.
    fn write_fec(&mut self, now: Time, index: u8, packet: &MediaPacket, out: &mut Datagram) -> DatagramKind {
        let stream = &mut self.streams[index as usize];
        let info = stream.config.info;
        let header = rtp_header(
            now,
            self.core.packets_sent(),
            info.red_payload_type(),
            packet.sequence,
            packet.timestamp,
            info.ssrc,
        );
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        len += red::write(info.ulpfec_payload_type(), &mut buffer[len..]);
        let (written, rest) = stream.fec.pop(&mut buffer[len..]);
        out.set_len(len + written, rest, self.core.decision().ecn);
        stream.count_media((red::LEN + written) as u32 + rest as u32);
        self.handle_sent(now, (header.ssrc, header.sequence), out.size(), info.id, PacketKind::Fec)
    }

    /// Writes a packet of a probe for which no media waits: an earlier packet again, which may repair a loss, or padding.
    fn write_filler(&mut self, now: Time, burst: DataSize, out: &mut Datagram) -> DatagramKind {
        let fits =
            |packet: &MediaPacket| burst >= FILLED_MIN && u64::from(packet.payload) <= FILLER_MAX * burst.as_bytes();
        let index = self.streams.iter().position(|s| s.carries_padding());
        let earlier =
            index.and_then(|index| self.streams[index].filler.filter(fits).map(|packet| (index as u8, packet)));
        match earlier {
            Some((stream, packet)) => {
                self.write_media(now, QueuedPacket { stream, kind: QueuedKind::Filler, packet }, out)
            }
            None => self.write_padding(now, out),
        }
    }

    fn write_padding(&mut self, now: Time, out: &mut Datagram) -> DatagramKind {
        let place = self.streams.iter().position(SenderStream::carries_padding);
        let place = place.expect("the padding rate is zero without video");
        let (stream, timestamp) = (&mut self.streams[place], self.core.timestamp_at(place));
        let info = stream.config.info;
        let sequence = stream.rtx_sequence;
        let header = RtpHeader {
            padding: true,
            ..rtp_header(now, self.core.packets_sent(), info.rtx_payload_type(), sequence, timestamp, info.rtx_ssrc)
        };
        stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
        let len = header.write(&self.extensions, out.buffer());
        out.set_len(len, PADDING_PAYLOAD, self.core.decision().ecn);
        self.handle_sent(now, (header.ssrc, header.sequence), out.size(), info.id, PacketKind::Padding)
    }

    /// Records that a packet with this SSRC and sequence number was sent.
    fn handle_sent(
        &mut self,
        now: Time,
        (ssrc, sequence): (u32, u16),
        size: DataSize,
        stream: StreamId,
        kind: PacketKind,
    ) -> DatagramKind {
        self.core.handle_rtp_sent(self.core.packets_sent(), ssrc, sequence);
        if kind == PacketKind::Retransmission {
            self.repair.handle_resent(size);
        }
        self.core.handle_sent(now, &Outgoing::new(size, stream, kind));
        self.follow_core(now);
        DatagramKind::Rtp { stream, kind }
    }

    /// Writes a sender report for every stream, and the CNAME that RFC 3550 requires in every compound. Reports that do
    /// not fit into one datagram continue in the next. Returns whether there is a datagram: not without a stream, and not if
    /// the streams that were left have ended.
    fn write_report(&mut self, now: Time, out: &mut Datagram) -> bool {
        while self.streams.get(self.reports.place).is_some_and(|stream| stream.removed) {
            self.reports.place += 1;
        }
        let active = self.streams.iter().find(|stream| !stream.removed).map(|stream| stream.config.info.ssrc);
        let Some(first) = active.filter(|_| self.reports.place < self.streams.len()) else {
            self.finish_report(now);
            return false;
        };
        let now_ntp = self.reports.ntp(now);
        let mut writer = CompoundWriter::new(out.buffer());
        for s in &self.streams[self.reports.place..] {
            if s.removed {
                self.reports.place += 1;
                continue;
            }
            let info = s.config.info;
            let timestamp = rtp_timestamp(now, info.clock_rate).wrapping_add(s.config.timestamp_offset);
            if writer.sender_report(info.ssrc, now_ntp, timestamp, s.packets as u32, s.octets, &[]).is_err() {
                break;
            }
            self.reports.place += 1;
        }
        // The CNAME is left out if there is no room; the receiver knows it from the other reports.
        let _ = writer.sdes_cname(first, "paceline");
        let len = writer.finish();
        out.set_len(len, 0, Ecn::NotEct);
        self.reports.handle_written(out.size());
        if self.reports.place == self.streams.len() {
            self.finish_report(now);
        }
        true
    }

    fn finish_report(&mut self, now: Time) {
        self.reports.finish(now);
        self.repair.update_resend_rate(now);
    }
}

/// The header of a packet that is sent now, without marker and padding.
fn rtp_header(now: Time, sent: u64, payload_type: u8, sequence: u16, timestamp: u32, ssrc: u32) -> RtpHeader {
    RtpHeader { payload_type, ..PacketHead::new(sent, now, timestamp).rtp_header(ssrc, sequence) }
}
