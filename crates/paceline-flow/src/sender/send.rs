//! What leaves: frames cut into packets, packets written as bytes, padding, sender reports.

use super::protect::{Cut, FEC_HEADERS, write_payload_head};
use super::{MediaSender, OVERHEAD_MEMORY, Queued, QueuedKind, SenderEvent, Sent, rtp_timestamp};
use crate::allocation::Claim;
use crate::datagram::{Datagram, FramePiece, IP_UDP_HEADERS};
use crate::padding::PADDING_PAYLOAD;
use crate::resend::MediaPacket;
use crate::source::Frame;
use paceline::{Class, MediaKind, PacketKind, SentPacket, StreamState};
use paceline_units::{DataSize, Ecn, Rate, StreamId, Time, TimeDelta};
use paceline_wire::{AbsSendTime, CompoundWriter, RtpHeader, ntp, red, rtx};

impl MediaSender {
    pub(super) fn handle_frame_due(&mut self, now: Time, index: usize) {
        let stream = &mut self.streams[index];
        let frame = stream.config.source.poll_frame(now);
        stream.next_frame = stream.config.source.poll_timeout();
        let Some(frame) = frame else { return };
        let Claim { priority, min, max } = stream.claim();
        let state = StreamState {
            stream: stream.config.names.id,
            queued: stream.queued,
            unused: stream.allotted.saturating_sub(stream.config.source.range().1),
            priority,
            min,
            max,
        };
        if let Some(half) = &mut self.half {
            half.handle_stream(now, &state);
            self.ask(now);
        }
        self.packetise(now, index, &frame);
        self.direct_sources(now); // the overhead moved a little
    }

    /// Cuts a frame into packets of equal size and queues them, all or none.
    pub(super) fn packetise(&mut self, now: Time, index: usize, frame: &Frame) {
        let stream = &mut self.streams[index];
        let names = stream.config.names;
        let bytes = frame.size.as_bytes().max(1);
        let count = bytes.div_ceil(stream.payload_max);
        let headers = count * stream.headers;
        let media = DataSize::from_bytes(bytes + headers);
        stream.overhead =
            OVERHEAD_MEMORY * stream.overhead + (1.0 - OVERHEAD_MEMORY) * headers as f64 / media.as_bytes() as f64;
        let fec_size = DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + FEC_HEADERS + bytes.div_ceil(count));
        let fec = stream.fec.packets_for(media, count, fec_size);
        let total = media + DataSize::from_bytes(fec * fec_size.as_bytes());
        // After a leap of the clock a source hands out what it missed: too old before it is queued.
        if now - frame.captured > self.pacer_limit || !self.pacer.has_room(total) {
            // The picture number is spent: the receiver sees that a frame is missing.
            stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
            stream.config.source.request_key_frame(frame.captured);
            self.events.push_back(SenderEvent::FrameDropped(names.id));
            return;
        }
        let timestamp = rtp_timestamp(frame.captured, names.clock_rate).wrapping_add(stream.config.timestamp_offset);
        stream.last_timestamp = timestamp;
        let class = match names.kind {
            MediaKind::Audio => Class::Audio,
            MediaKind::Video => Class::Video,
        };
        let (first, picture) = (stream.sequence, stream.picture);
        let packet = |i: u64| MediaPacket {
            sequence: first.wrapping_add(i as u16),
            timestamp,
            payload: (bytes / count + u64::from(i < bytes % count)) as u16,
            offset: (bytes / count * i + i.min(bytes % count)) as u32,
            picture,
            start: i == 0,
            marker: i + 1 == count,
            key: frame.key,
        };
        let cut = Cut { size: media, count, packet };
        for i in 0..count {
            let packet = (cut.packet)(i);
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers);
            stream.queued += size;
            self.pacer.push(now, class, index, Queued { stream: index as u8, kind: QueuedKind::Media, packet }, size);
        }
        stream.sequence = first.wrapping_add(count as u16);
        // Behind the frame: when the next one begins, a receiver knows that all of it went by.
        for size in stream.fec.protect(&cut, fec, &names, &self.extensions) {
            let packet = MediaPacket { sequence: stream.sequence, ..(cut.packet)(0) };
            stream.sequence = stream.sequence.wrapping_add(1);
            stream.queued += size;
            self.pacer.push(now, class, index, Queued { stream: index as u8, kind: QueuedKind::Fec, packet }, size);
        }
        stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
    }

    pub(super) fn write_next(&mut self, now: Time, out: &mut Datagram) -> Option<Sent> {
        if now >= self.next_report {
            self.write_report(now, out);
            return Some(Sent::Control);
        }
        if !self.window_is_open() {
            return None;
        }
        if core::mem::take(&mut self.window_was_closed) {
            self.pacer.hold(now);
        }
        if let Some(queued) = self.pacer.pop(now) {
            return Some(self.write_media(now, queued, out));
        }
        if self.pacer.queued() == DataSize::ZERO && now >= self.padding_due() {
            return Some(self.write_padding(now, out));
        }
        None
    }

    pub(super) fn write_media(&mut self, now: Time, queued: Queued, out: &mut Datagram) -> Sent {
        let Queued { stream: index, kind, packet } = queued;
        let stream = &mut self.streams[index as usize];
        let names = stream.config.names;
        let (payload_type, sequence, ssrc) = match (kind, stream.red) {
            (QueuedKind::Media, false) => (names.payload_type(), packet.sequence, names.ssrc),
            (QueuedKind::Media, true) => (names.red_payload_type(), packet.sequence, names.ssrc),
            (QueuedKind::Retransmission, false) => (names.rtx_payload_type(), stream.rtx_sequence, names.rtx_ssrc),
            (QueuedKind::Retransmission, true) => (names.red_rtx_payload_type(), stream.rtx_sequence, names.rtx_ssrc),
            (QueuedKind::Fec, _) => return self.write_fec(now, index, &packet, out),
        };
        let header = RtpHeader {
            marker: packet.marker,
            payload_type,
            sequence,
            timestamp: packet.timestamp,
            ssrc,
            abs_send_time: Some(AbsSendTime::from_time(now)),
            transport_sequence: Some(self.sent as u16),
            padding: false,
        };
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        let kind = if kind == QueuedKind::Retransmission {
            stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
            len += rtx::write(packet.sequence, &mut buffer[len..]);
            PacketKind::Retransmission
        } else {
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers);
            stream.queued = stream.queued.saturating_sub(size);
            stream.packets += 1;
            stream.octets = stream.octets.wrapping_add(packet.payload as u32);
            if self.retransmit && names.kind == MediaKind::Video {
                stream.store.remember(packet);
            }
            PacketKind::Media
        };
        len += write_payload_head(&packet, &names, stream.red, &mut buffer[len..]);
        let piece = FramePiece { stream: names.id, timestamp: packet.timestamp, offset: packet.offset };
        out.set_media(len, packet.payload as u64, piece, self.ecn);
        self.count_sent(now, (ssrc, sequence), out.size(), names.id, kind)
    }

    /// The stream's next FEC packet, in the place that it has in the media's sequence.
    fn write_fec(&mut self, now: Time, index: u8, place: &MediaPacket, out: &mut Datagram) -> Sent {
        let stream = &mut self.streams[index as usize];
        let names = stream.config.names;
        let header = RtpHeader {
            marker: false,
            payload_type: names.red_payload_type(),
            sequence: place.sequence,
            timestamp: place.timestamp,
            ssrc: names.ssrc,
            abs_send_time: Some(AbsSendTime::from_time(now)),
            transport_sequence: Some(self.sent as u16),
            padding: false,
        };
        let buffer = out.buffer();
        let mut len = header.write(&self.extensions, buffer);
        len += red::write(names.ulpfec_payload_type(), &mut buffer[len..]);
        let (written, rest) = stream.fec.pop(&mut buffer[len..]);
        out.set_len(len + written, rest, self.ecn);
        stream.queued = stream.queued.saturating_sub(out.size());
        stream.packets += 1;
        stream.octets = stream.octets.wrapping_add((red::LEN + written) as u32 + rest as u32);
        self.count_sent(now, (header.ssrc, header.sequence), out.size(), names.id, PacketKind::Fec)
    }

    pub(super) fn write_padding(&mut self, now: Time, out: &mut Datagram) -> Sent {
        let stream = self.streams.iter_mut().find(|s| s.config.names.kind == MediaKind::Video);
        let stream = stream.expect("only video pads: without it the padding rate is zero");
        let names = stream.config.names;
        let header = RtpHeader {
            marker: false,
            payload_type: names.rtx_payload_type(),
            sequence: stream.rtx_sequence,
            timestamp: stream.last_timestamp,
            ssrc: names.rtx_ssrc,
            abs_send_time: Some(AbsSendTime::from_time(now)),
            transport_sequence: Some(self.sent as u16),
            padding: true,
        };
        stream.rtx_sequence = stream.rtx_sequence.wrapping_add(1);
        let len = header.write(&self.extensions, out.buffer());
        out.set_len(len, PADDING_PAYLOAD, self.ecn);
        self.pacer.spend(now, out.size());
        self.count_sent(now, (header.ssrc, header.sequence), out.size(), names.id, PacketKind::Padding)
    }

    /// A packet left, of this SSRC and number.
    pub(super) fn count_sent(
        &mut self,
        now: Time,
        (ssrc, number): (u32, u16),
        size: DataSize,
        stream: StreamId,
        kind: PacketKind,
    ) -> Sent {
        if let Some(numbers) = self.numbers.iter_mut().find(|n| n.ssrc == ssrc) {
            numbers.handle_sent(number, self.sent);
        }
        self.padding.handle_sent(now, size);
        if kind == PacketKind::Retransmission {
            self.resent.1 += size;
        }
        let packet = SentPacket { sequence: self.sent, size, stream, kind };
        self.sent += 1;
        if let Some(history) = &mut self.history {
            history.handle_sent(now, &packet);
        }
        if let Some(half) = &mut self.half {
            half.handle_sent(now, &packet);
            self.ask(now);
        }
        Sent::Media { stream, kind }
    }

    /// SR for every stream that has sent, and the name that RFC 3550 wants in every compound.
    pub(super) fn write_report(&mut self, now: Time, out: &mut Datagram) {
        let stamp = self.ntp(now);
        let mut writer = CompoundWriter::new(out.buffer());
        for s in self.streams.iter() {
            let names = s.config.names;
            let timestamp = rtp_timestamp(now, names.clock_rate).wrapping_add(s.config.timestamp_offset);
            // More streams than fit report in later compounds, never: flows have a handful.
            let _ = writer.sender_report(names.ssrc, stamp, timestamp, s.packets as u32, s.octets, &[]);
        }
        let _ = writer.sdes_cname(self.streams[0].config.names.ssrc, "paceline");
        let len = writer.finish();
        out.set_len(len, 0, Ecn::NotEct);
        self.next_report = now + self.rtcp.next(Some(out.size()));
        self.reckon_resends(now);
    }

    pub(super) fn reckon_resends(&mut self, now: Time) {
        let (since, bytes) = self.resent;
        if now - since >= TimeDelta::from_secs(1) {
            self.resend_rate = Rate::of(bytes, now - since);
            self.resent = (now, DataSize::ZERO);
        }
    }

    pub(super) fn ntp(&self, now: Time) -> u64 {
        ntp::from_nanos(self.ntp_origin.wrapping_add(now.as_nanos() as u64))
    }
}
