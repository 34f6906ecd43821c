//! Transmission: writes the packets of the pacer, padding and sender reports as bytes.

use super::fec_encoder::write_payload_head;
use super::stream::SenderStream;
use super::{DatagramKind, MediaSender, QueuedKind, QueuedPacket, rtp_timestamp};
use crate::datagram::{Datagram, FramePiece, IP_UDP_HEADERS};
use crate::padding::PADDING_PAYLOAD;
use crate::retransmission_store::MediaPacket;
use paceline::{Event, MediaKind, PacketKind, SentPacket};
use paceline_units::{DataSize, Ecn, Rate, StreamId, Time, TimeDelta};
use paceline_wire::{AbsSendTime, CompoundWriter, RtpHeader, ntp, red, rtx};

/// The size of a padding packet on the network.
pub(super) const PADDING_SIZE: DataSize =
    DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + RtpHeader::MAX_LEN as u64 + PADDING_PAYLOAD);

/// A burst of a probe of fewer bytes is not filled with earlier packets (libwebrtc's `kMinPayloadPaddingBytes`,
/// `rtp_sender.cc`).
const FILLED_MIN: DataSize = DataSize::from_bytes(50);
/// The largest payload of an earlier packet over the bytes of a burst (`max_padding_size_factor`).
const FILLER_MAX: u64 = 3;

impl MediaSender {
    /// Writes the next packet that may be sent at `now`: a sender report, then a probe, then media in pacer order,
    /// then padding.
    pub(super) fn write_next(&mut self, now: Time, out: &mut Datagram) -> Option<DatagramKind> {
        if (now >= self.next_report || self.next_reported > 0) && self.write_report(now, out) {
            return Some(DatagramKind::Rtcp);
        }
        if !self.window_is_open() {
            return None;
        }
        if core::mem::take(&mut self.window_was_full) {
            self.pacer.block_until(now);
        }
        self.probe = if now >= self.probe_due() { self.prober.poll(now) } else { None };
        if self.probe.is_some() {
            return Some(match self.pacer.pop_at_once(now) {
                Some(queued) => self.write_media(now, queued, out),
                None => self.write_filler(now, out),
            });
        }
        // Packets between those of a cluster would lower the rate that it measures.
        if self.prober.is_active() {
            return None;
        }
        if let Some(queued) = self.pacer.pop(now) {
            return Some(self.write_media(now, queued, out));
        }
        if self.pacer.queued() == DataSize::ZERO && now >= self.padding_due() {
            return Some(self.write_padding(now, out));
        }
        None
    }

    /// Returns the time at which a packet of a probe is due; [`Time::MAX`] for never. Probes wait for the first media.
    pub(super) fn probe_due(&self) -> Time {
        let has_media = || self.sent > 0 || self.pacer.queued() != DataSize::ZERO;
        self.prober.due().filter(|_| has_media()).unwrap_or(Time::MAX)
    }

    /// Returns the time at which padding is due if no media is sent before; [`Time::MAX`] for never.
    pub(super) fn padding_due(&self) -> Time {
        self.padding.due().map_or(Time::MAX, |due| due.max(self.pacer.drained_at()))
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
            ..rtp_header(now, self.sent, payload_type, sequence, packet.timestamp, ssrc)
        };
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        let kind = if kind != QueuedKind::Media {
            stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
            len += rtx::write(packet.sequence, &mut buffer[len..]);
            if kind == QueuedKind::Filler { PacketKind::Padding } else { PacketKind::Retransmission }
        } else {
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers);
            count_media(stream, size, packet.payload as u32);
            if self.retransmit && info.kind == MediaKind::Video {
                stream.store.insert(packet);
                stream.update_filler(packet);
            }
            PacketKind::Media
        };
        len += write_payload_head(&packet, &info, stream.red, &mut buffer[len..]);
        let piece = FramePiece { stream: info.id, timestamp: packet.timestamp, offset: packet.offset };
        out.set_media(len, packet.payload as u64, piece, self.decision.ecn);
        self.handle_sent(now, &header, out.size(), info.id, kind)
    }

    /// Writes the stream's next FEC packet, with the sequence number that it got in the media's sequence.
    fn write_fec(&mut self, now: Time, index: u8, packet: &MediaPacket, out: &mut Datagram) -> DatagramKind {
        let stream = &mut self.streams[index as usize];
        let info = stream.config.info;
        let header = rtp_header(now, self.sent, info.red_payload_type(), packet.sequence, packet.timestamp, info.ssrc);
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        len += red::write(info.ulpfec_payload_type(), &mut buffer[len..]);
        let (written, rest) = stream.fec.pop(&mut buffer[len..]);
        out.set_len(len + written, rest, self.decision.ecn);
        count_media(stream, out.size(), (red::LEN + written) as u32 + rest as u32);
        self.handle_sent(now, &header, out.size(), info.id, PacketKind::Fec)
    }

    /// Writes a packet of a probe for which no media waits: an earlier packet again, which may repair a loss, or padding.
    fn write_filler(&mut self, now: Time, out: &mut Datagram) -> DatagramKind {
        let burst = self.prober.burst();
        let fits =
            |packet: &MediaPacket| burst >= FILLED_MIN && u64::from(packet.payload) <= FILLER_MAX * burst.as_bytes();
        let index = self.streams.iter().position(|s| s.carries_padding());
        let earlier =
            index.and_then(|index| self.streams[index].filler.filter(fits).map(|packet| (index as u8, packet)));
        let Some((stream, packet)) = earlier else { return self.write_padding(now, out) };
        let kind = self.write_media(now, QueuedPacket { stream, kind: QueuedKind::Filler, packet }, out);
        self.pacer.spend(now, out.size());
        kind
    }

    fn write_padding(&mut self, now: Time, out: &mut Datagram) -> DatagramKind {
        let stream = self.streams.iter_mut().find(|s| s.carries_padding());
        let stream = stream.expect("the padding rate is zero without video");
        let info = stream.config.info;
        let (sequence, timestamp) = (stream.rtx_sequence, stream.last_timestamp);
        let header = RtpHeader {
            padding: true,
            ..rtp_header(now, self.sent, info.rtx_payload_type(), sequence, timestamp, info.rtx_ssrc)
        };
        stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
        let len = header.write(&self.extensions, out.buffer());
        out.set_len(len, PADDING_PAYLOAD, self.decision.ecn);
        self.pacer.spend(now, out.size());
        self.handle_sent(now, &header, out.size(), info.id, PacketKind::Padding)
    }

    /// Records that a packet with this header was sent.
    fn handle_sent(
        &mut self,
        now: Time,
        header: &RtpHeader,
        size: DataSize,
        stream: StreamId,
        kind: PacketKind,
    ) -> DatagramKind {
        if let Some(map) = self.sequence_maps.iter_mut().find(|map| map.ssrc == header.ssrc) {
            map.handle_sent(header.sequence, self.sent);
        }
        self.padding.handle_sent(now, size);
        if kind == PacketKind::Retransmission {
            self.resent.1 += size;
        }
        let probe = self.probe.take();
        if probe.is_some() {
            self.prober.handle_sent(size);
        }
        let in_flight = self.history.as_ref().map(|history| history.flight().outstanding);
        let packet = SentPacket { sequence: self.sent, size, stream, kind, probe, in_flight };
        self.sent += 1;
        self.sent_since += size;
        if let Some(history) = &mut self.history {
            history.handle_sent(now, &packet);
        }
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::Sent(&packet), &mut self.signals);
            if self.decides_on_sent {
                self.update_decision(now);
            }
        }
        DatagramKind::Rtp { stream, kind }
    }

    /// Writes a sender report for every stream, and the CNAME that RFC 3550 requires in every compound. Reports that do
    /// not fit into one datagram continue in the next. Returns whether there is a datagram: not without a stream, and not if
    /// the streams that were left have ended.
    fn write_report(&mut self, now: Time, out: &mut Datagram) -> bool {
        while self.streams.get(self.next_reported).is_some_and(|stream| stream.removed) {
            self.next_reported += 1;
        }
        let active = self.streams.iter().find(|stream| !stream.removed).map(|stream| stream.config.info.ssrc);
        let Some(first) = active.filter(|_| self.next_reported < self.streams.len()) else {
            self.finish_report(now);
            return false;
        };
        let now_ntp = self.ntp(now);
        let mut writer = CompoundWriter::new(out.buffer());
        for s in &self.streams[self.next_reported..] {
            if s.removed {
                self.next_reported += 1;
                continue;
            }
            let info = s.config.info;
            let timestamp = rtp_timestamp(now, info.clock_rate).wrapping_add(s.config.timestamp_offset);
            if writer.sender_report(info.ssrc, now_ntp, timestamp, s.packets as u32, s.octets, &[]).is_err() {
                break;
            }
            self.next_reported += 1;
        }
        // The CNAME is left out if there is no room; the receiver knows it from the other reports.
        let _ = writer.sdes_cname(first, "paceline");
        let len = writer.finish();
        out.set_len(len, 0, Ecn::NotEct);
        self.reported += out.size();
        if self.next_reported == self.streams.len() {
            self.finish_report(now);
        }
        true
    }

    /// Sets the time of the next report after the last datagram of this one.
    fn finish_report(&mut self, now: Time) {
        let size = core::mem::take(&mut self.reported);
        self.next_reported = 0;
        self.next_report = now + self.rtcp.next_interval((size > DataSize::ZERO).then_some(size));
        self.update_resend_rate(now);
    }

    fn update_resend_rate(&mut self, now: Time) {
        let (since, bytes) = self.resent;
        if now - since >= TimeDelta::from_secs(1) {
            self.resend_rate = Rate::from_size_and_time(bytes, now - since);
            self.resent = (now, DataSize::ZERO);
        }
    }

    pub(super) fn ntp(&self, now: Time) -> u64 {
        ntp::from_nanos(self.ntp_origin.wrapping_add(now.as_nanos() as u64))
    }
}

/// Counts a packet on the media SSRC that leaves the pacer queue.
fn count_media(stream: &mut SenderStream, size: DataSize, octets: u32) {
    stream.queued = stream.queued.saturating_sub(size);
    stream.packets += 1;
    stream.octets = stream.octets.wrapping_add(octets);
}

/// The header of a packet that is sent now, without marker and padding.
fn rtp_header(now: Time, sent: u64, payload_type: u8, sequence: u16, timestamp: u32, ssrc: u32) -> RtpHeader {
    RtpHeader {
        marker: false,
        payload_type,
        sequence,
        timestamp,
        ssrc,
        abs_send_time: Some(AbsSendTime::from_time(now)),
        transport_sequence: Some(sent as u16),
        padding: false,
    }
}
