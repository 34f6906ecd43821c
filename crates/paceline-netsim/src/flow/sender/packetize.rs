// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packetization: cuts the frames of the sources into packets and queues them in the pacer.

use super::fec_encoder::{FEC_HEADERS, PacketizedFrame};
use super::{MediaSender, QueuedKind, QueuedPacket};
use crate::flow::datagram::IP_UDP_HEADERS;
use crate::flow::retransmission_store::MediaPacket;
use crate::flow::source::Frame;
use paceline::{Admission, PacketKind, QueuedFrame, StreamState};
use paceline_units::{DataSize, Rate, Time};

impl MediaSender {
    pub(super) fn handle_frame_due(&mut self, now: Time, place: usize) {
        let stream = &mut self.streams[place];
        let frame = stream.config.source.poll_frame(now);
        stream.next_frame = stream.config.source.poll_timeout().unwrap_or(Time::MAX);
        let Some(frame) = frame.filter(|_| !stream.is_inactive()) else { return };
        let suspended = stream.suspended;
        if !suspended {
            stream.unused.handle_frame(frame.captured, stream.allotted, frame.size);
        }
        let (min, max) = stream.limits();
        let mut state = StreamState::new(stream.config.info.id, self.core.queued_at(place));
        (state.unused, state.priority) = (stream.unused_rate(), stream.config.priority);
        (state.min, state.max) = (if stream.config.suspends { Rate::ZERO } else { min }, max);
        self.core.handle_stream(now, &state);
        self.follow_core(now);
        if !suspended {
            self.packetize(now, place, &frame);
        }
        self.allocate_rates(now); // the header overhead has changed
    }

    /// Cuts a frame into packets of equal size and queues all of them, or drops the frame.
    fn packetize(&mut self, now: Time, place: usize, frame: &Frame) {
        let stream = &mut self.streams[place];
        let info = stream.config.info;
        let bytes = frame.size.as_bytes().max(1);
        let count = bytes.div_ceil(stream.payload_max);
        let headers = count * stream.headers;
        let media = DataSize::from_bytes(bytes + headers);
        stream.update_overhead(headers, media);
        let fec_size = DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + FEC_HEADERS + bytes.div_ceil(count));
        let fec = stream.fec.packets_for(media, count, fec_size);
        let total = media + DataSize::from_bytes(fec * fec_size.as_bytes());
        let Admission { timestamp, accepted, discarded } = self.core.admit_frame(now, place, frame.captured, total);
        if let Some((next, _)) = discarded.first() {
            // The next frame continues the sequence numbers of the discarded ones, so that no packet is missing.
            stream.sequence = next.packet.sequence;
            stream.fec.discard(discarded.iter().filter(|(queued, _)| queued.kind == QueuedKind::Fec).count());
            stream.config.source.request_key_frame(now);
        }
        if accepted.is_err() {
            // The frame takes a picture number, so that the receiver notices the missing frame.
            stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
            stream.config.source.request_key_frame(frame.captured);
            return;
        }
        let (first, picture, key) = (stream.sequence, stream.picture, frame.key);
        let (least, longer) = (bytes / count, bytes % count);
        let packet = |i: u64| MediaPacket {
            sequence: first.wrapping_add(i as u16),
            timestamp,
            payload: (least + u64::from(i < longer)) as u16,
            offset: (least * i + i.min(longer)) as u32,
            picture,
            start: i == 0,
            marker: i + 1 == count,
            key,
        };
        let frame = PacketizedFrame { size: media, count, packet };
        let mut queued_size = DataSize::ZERO;
        for i in 0..count {
            let packet = (frame.packet)(i);
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers);
            queued_size += size;
            let queued = QueuedPacket { stream: place as u8, kind: QueuedKind::Media, packet };
            self.core.push_packet(now, place, PacketKind::Media, (timestamp, i == 0), queued, size);
        }
        stream.sequence = first.wrapping_add(count as u16);
        // FEC follows its frame: once the next frame begins, the receiver knows that no more FEC for it will arrive.
        if stream.red {
            for size in stream.fec.protect(&frame, fec, &info, &self.extensions) {
                let packet = MediaPacket { sequence: stream.sequence, start: false, ..(frame.packet)(0) };
                stream.sequence = stream.sequence.wrapping_add(1);
                queued_size += size;
                let queued = QueuedPacket { stream: place as u8, kind: QueuedKind::Fec, packet };
                self.core.push_packet(now, place, PacketKind::Fec, (timestamp, false), queued, size);
            }
        }
        stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
        let queued = QueuedFrame::new(info.id, queued_size, (count + fec) as u32).with_key(key);
        self.core.finish_frame(now, &queued);
    }
}
