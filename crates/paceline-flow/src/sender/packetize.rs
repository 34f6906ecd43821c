//! Packetization: cuts the frames of the sources into packets and queues them in the pacer.

use super::fec_encoder::{FEC_HEADERS, PacketizedFrame};
use super::{MediaSender, QueuedKind, QueuedPacket, SenderEvent, rtp_timestamp};
use crate::allocation::RateRequest;
use crate::datagram::IP_UDP_HEADERS;
use crate::retransmission_store::MediaPacket;
use crate::source::Frame;
use paceline::ApplicationLimit;
use paceline::{Event, MediaKind, PacketPriority, QueuedFrame, StreamState};
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The least time between two checks of the application limit: a fifth of its window.
const LIMIT_CHECK_INTERVAL: TimeDelta = TimeDelta::from_millis(100);

impl MediaSender {
    pub(super) fn handle_frame_due(&mut self, now: Time, index: usize) {
        let stream = &mut self.streams[index];
        let frame = stream.config.source.poll_frame(now);
        stream.next_frame = stream.config.source.poll_timeout().unwrap_or(Time::MAX);
        let Some(frame) = frame.filter(|_| !stream.is_inactive()) else { return };
        if !stream.suspended {
            stream.unused.handle_frame(frame.captured, stream.allotted, frame.size);
        }
        // The last allocation was after the last change of the header overhead, so its requests are those of now.
        let suspended = stream.suspended;
        let RateRequest { priority, min, max } = if suspended { stream.rate_request() } else { self.requests[index] };
        let state = StreamState {
            stream: stream.config.info.id,
            queued: stream.queued,
            unused: stream.unused_rate(),
            priority,
            min: if stream.config.suspends { Rate::ZERO } else { min },
            max,
        };
        self.check_application_limit(now);
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::Stream(&state), &mut self.signals);
            self.update_decision(now);
        }
        if !suspended {
            self.packetize(now, index, &frame);
        }
        self.allocate_rates(now); // the header overhead has changed
    }

    /// Reports to the half when the application begins or ceases to limit the flow.
    fn check_application_limit(&mut self, now: Time) {
        if now < self.limit_check_due {
            return;
        }
        self.limit_check_due = now + LIMIT_CHECK_INTERVAL;
        let sent = core::mem::take(&mut self.sent_since);
        let limited = self.application_limit.update(now, self.decision.target, sent, self.pacer.queued());
        if limited != core::mem::replace(&mut self.application_limited, limited)
            && let Some(half) = &mut self.half
        {
            half.handle_event(now, &Event::ApplicationLimit(limited), &mut self.signals);
        }
    }

    /// Starts the detection of the application limit again, without that limit; without a network it does not run.
    pub(super) fn restart_application_limit(&mut self, now: Time) {
        (self.application_limit, self.sent_since) = (ApplicationLimit::default(), DataSize::ZERO);
        self.limit_check_due = if self.available { now } else { Time::MAX };
        if core::mem::take(&mut self.application_limited)
            && let Some(half) = &mut self.half
        {
            half.handle_event(now, &Event::ApplicationLimit(false), &mut self.signals);
        }
    }

    /// Cuts a frame into packets of equal size and queues all of them, or drops the frame.
    fn packetize(&mut self, now: Time, index: usize, frame: &Frame) {
        let stream = &mut self.streams[index];
        let info = stream.config.info;
        let bytes = frame.size.as_bytes().max(1);
        let count = bytes.div_ceil(stream.payload_max);
        let headers = count * stream.headers;
        let media = DataSize::from_bytes(bytes + headers);
        stream.update_overhead(headers, media);
        let fec_size = DataSize::from_bytes(IP_UDP_HEADERS.as_bytes() + FEC_HEADERS + bytes.div_ceil(count));
        let fec = stream.fec.packets_for(media, count, fec_size);
        let total = media + DataSize::from_bytes(fec * fec_size.as_bytes());
        let offset = stream.config.timestamp_offset;
        let timestamp_of = |at| rtp_timestamp(at, info.clock_rate).wrapping_add(offset);
        // When the clock jumps, a source returns all the frames that it missed: those are too old to be queued.
        let queue_max = self.decision.queue_max.min(self.pacer_limit);
        let mut is_late = now - frame.captured > self.pacer_limit;
        if let Some(first) = self.pacer.first_video(index).map(|first| first.packet) {
            let units = timestamp_of(now).wrapping_sub(first.timestamp) as i32;
            let age = TimeDelta::from_secs(1) * i64::from(units.max(0)) / i64::from(info.clock_rate);
            stream.frame_waits.begin_with(first.timestamp);
            if age > queue_max {
                self.discard_waiting(now, index, &first);
                is_late = true;
            } else if age > self.pacer_limit / 4 {
                // A younger frame gives a poor estimate of the rate at which packets leave.
                let queued = self.pacer.queued() + total;
                is_late |= stream.frame_waits.predict(age, self.pacer.released(), queued) > self.pacer_limit;
            }
        } else {
            stream.frame_waits.clear();
        }
        let stream = &mut self.streams[index];
        if is_late || !self.pacer.has_room(total) || !self.available {
            // The frame takes a picture number, so that the receiver notices the missing frame.
            stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
            stream.config.source.request_key_frame(frame.captured);
            self.events.push_back(SenderEvent::FrameDropped(info.id));
            return;
        }
        let timestamp = timestamp_of(frame.captured);
        stream.last_timestamp = timestamp;
        if info.kind == MediaKind::Video {
            stream.frame_waits.push(timestamp, self.pacer.released());
        }
        let class = match info.kind {
            MediaKind::Audio => PacketPriority::Audio,
            MediaKind::Video => PacketPriority::Video,
        };
        let (first, picture, key, before) = (stream.sequence, stream.picture, frame.key, stream.queued);
        let (least, longer) = (bytes / count, bytes % count);
        let packet = |i: u64| MediaPacket {
            sequence: first.wrapping_add(i as u16),
            timestamp,
            payload: (least + u64::from(i < longer)) as u16,
            offset: (least * i + i.min(longer)) as u32,
            picture,
            start: i == 0,
            marker: i + 1 == count,
            key: frame.key,
        };
        let frame = PacketizedFrame { size: media, count, packet };
        let queued = |kind, packet| QueuedPacket { stream: index as u8, kind, packet };
        for i in 0..count {
            let packet = (frame.packet)(i);
            let size = DataSize::from_bytes(packet.payload as u64 + stream.headers);
            stream.queued += size;
            self.pacer.push(now, class, index, queued(QueuedKind::Media, packet), size);
        }
        stream.sequence = first.wrapping_add(count as u16);
        // FEC follows its frame: once the next frame begins, the receiver knows that no more FEC for it will arrive.
        if stream.red {
            for size in stream.fec.protect(&frame, fec, &info, &self.extensions) {
                let packet = MediaPacket { sequence: stream.sequence, start: false, ..(frame.packet)(0) };
                stream.sequence = stream.sequence.wrapping_add(1);
                stream.queued += size;
                self.pacer.push(now, class, index, queued(QueuedKind::Fec, packet), size);
            }
        }
        stream.picture = stream.picture.wrapping_add(1) & 0x7FFF;
        let size = stream.queued.saturating_sub(before);
        let queued = QueuedFrame { stream: info.id, size, packets: (count + fec) as u32, key };
        if let Some(half) = &mut self.half {
            half.handle_event(now, &Event::Frame(&queued), &mut self.signals);
        }
    }

    /// Discards the frames of a stream that wait in the pacer, from the first one of which nothing has left. `first` is
    /// the packet that would leave next. The next frame continues its sequence numbers, so that no packet is missing.
    fn discard_waiting(&mut self, now: Time, index: usize, first: &MediaPacket) {
        let begun = (!first.start).then_some(first.timestamp);
        let discarded = self.pacer.discard_video(index, |queued| Some(queued.packet.timestamp) == begun);
        let Some((next, _)) = discarded.first() else { return };
        let stream = &mut self.streams[index];
        stream.sequence = next.packet.sequence;
        stream.queued = stream.queued.saturating_sub(discarded.iter().map(|(_, size)| *size).sum());
        stream.fec.discard(discarded.iter().filter(|(queued, _)| queued.kind == QueuedKind::Fec).count());
        stream.config.source.request_key_frame(now);
        let dropped = stream.frame_waits.keep(usize::from(begun.is_some()));
        let id = stream.config.info.id;
        self.events.extend(core::iter::repeat_n(SenderEvent::FrameDropped(id), dropped));
    }
}
