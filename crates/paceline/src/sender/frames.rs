// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames into the pacer: which are accepted, and which are dropped because they would be too late.

use super::outbox::Queued;
use super::{FrameDropped, Sender, SenderEvent, rtp_timestamp};
use crate::{Event, MediaKind, PacketKind, PacketPriority, QueuedFrame, StreamState};
use alloc::vec::Vec;
use paceline_units::{DataSize, StreamId, Time, TimeDelta};

/// A frame of an encoder, cut into packets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewFrame {
    /// The stream.
    pub stream: StreamId,
    /// The time of capture, on the sender's clock. Frames that waited too long elsewhere are dropped.
    pub captured: Time,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

impl NewFrame {
    /// Returns a frame that was captured at this time.
    pub fn new(stream: StreamId, captured: Time, key: bool) -> Self {
        Self { stream, captured, key }
    }
}

/// The result of [`Sender::admit_frame`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Admission<T> {
    /// The media timestamp of the frame.
    pub timestamp: u32,
    /// Whether its packets may be queued.
    pub accepted: Result<(), FrameDropped>,
    /// Packets of earlier frames that were removed from the queue, with their sizes: these frames waited too long.
    pub discarded: Vec<(T, DataSize)>,
}

impl<T> Sender<T> {
    /// Queues the packets of a frame, with their sizes on the network, IP and UDP headers included. They leave by
    /// [`poll_transmit`](Self::poll_transmit). If frames have waited for longer than the controller allows
    /// ([`Decision::queue_max`](crate::Decision::queue_max)), they are removed from the queue: [`poll_discarded`](Self::poll_discarded)
    /// returns their packets.
    ///
    /// # Errors
    /// The frame is dropped; nothing of it is queued. The next frame should be a key frame.
    pub fn push_frame(
        &mut self,
        now: Time,
        frame: &NewFrame,
        packets: impl IntoIterator<Item = (T, DataSize), IntoIter: Clone>,
    ) -> Result<(), FrameDropped> {
        let packets = packets.into_iter();
        let time = self.advance(now);
        if !self.outbox.paces() {
            return Err(FrameDropped::ProgramPaces);
        }
        let Some(place) = self.streams.find(frame.stream) else { return Err(FrameDropped::NoStream) };
        let total = packets.clone().map(|(_, size)| size).sum();
        let request = self.streams.request(place);
        let stream = &mut self.streams.list[place];
        let (is_inactive, suspended) = (stream.is_inactive(), stream.suspended);
        if !suspended {
            stream.unused.handle_frame(self.clock.own_time(frame.captured), stream.share, total);
        }
        let (queued, unused) = (stream.queued, stream.unused.get());
        if is_inactive {
            return Err(FrameDropped::NoStream);
        }
        let (min, max) = (if stream.config.suspends { Default::default() } else { request.min }, request.max);
        let state = StreamState { stream: frame.stream, queued, unused, priority: request.priority, min, max };
        self.handle_stream(now, &state);
        if suspended {
            return Err(FrameDropped::NoStream);
        }
        let admission = self.admit_frame(now, place, frame.captured, total);
        self.discarded.clear();
        self.discarded.extend(admission.discarded.into_iter().map(|(packet, _)| packet));
        if admission.accepted.is_ok() {
            let mut count = 0;
            for (packet, size) in packets {
                self.push_packet(time, place, PacketKind::Media, (admission.timestamp, count == 0), packet, size);
                count += 1;
            }
            self.finish_frame(now, &QueuedFrame { stream: frame.stream, size: total, packets: count, key: frame.key });
        }
        self.follow(time);
        self.update_wake();
        admission.accepted
    }

    /// Queues the packets of a frame of the video stream of id 0 that was captured just now; see [`push_frame`](Self::push_frame). `key`:
    /// it is a key frame.
    ///
    /// # Errors
    /// The frame is dropped; nothing of it is queued. The next frame should be a key frame.
    pub fn push_video(
        &mut self,
        now: Time,
        key: bool,
        packets: impl IntoIterator<Item = (T, DataSize), IntoIter: Clone>,
    ) -> Result<(), FrameDropped> {
        self.push_frame(now, &NewFrame::new(StreamId(0), now, key), packets)
    }

    /// Handles the state of a stream, for a program that queues frames itself: what waits in its queue, and the limits of the encoder.
    /// Call it before each frame; [`push_frame`](Self::push_frame) does so.
    pub fn handle_stream(&mut self, now: Time, state: &StreamState) {
        let now = self.advance(now);
        self.check_application_limit(now);
        self.half.handle(now, &Event::Stream(state));
        self.update_decision();
    }

    /// Decides whether the packets of a frame may be queued, which take `total` bytes. `place` is that of the stream in the order
    /// of [`add_stream`](Self::add_stream).
    #[doc(hidden)]
    pub fn admit_frame(&mut self, now: Time, place: usize, captured: Time, total: DataSize) -> Admission<T> {
        let now = self.advance(now);
        let stream = &mut self.streams.list[place];
        let (clock_rate, offset) = (stream.config.clock_rate, stream.config.timestamp_offset);
        let captured = self.clock.own_time(captured);
        let timestamp_of = |at| rtp_timestamp(at, clock_rate).wrapping_add(offset);
        // When the clock jumps, a source returns all the frames that it missed: those are too old to be queued.
        let queue_max = self.decision.queue_max.min(self.queue_limit);
        let mut is_late = now - captured > self.queue_limit;
        let mut discarded = Vec::new();
        let pacer = &self.outbox.pacer;
        if let Some((first, start)) = pacer.first_video(place).map(|first| (first.timestamp, first.start)) {
            let units = timestamp_of(now).wrapping_sub(first) as i32;
            let age = TimeDelta::from_secs(1) * i64::from(units.max(0)) / i64::from(clock_rate);
            stream.waits.begin_with(first);
            if age > queue_max {
                discarded = self.discard_waiting(place, (!start).then_some(first));
                is_late = true;
            } else if age.min(self.outbox.available_for(now)) > self.queue_limit / 4 {
                // A younger frame gives a poor estimate of the rate at which packets leave, and so does a time without a network.
                is_late |= stream.waits.predict(age, pacer.released(), pacer.queued() + total) > self.queue_limit;
            }
        } else {
            stream.waits.clear();
        }
        let accepted = match () {
            _ if is_late => Err(FrameDropped::TooLate),
            _ if !self.outbox.pacer.has_room(total) => Err(FrameDropped::QueueFull),
            _ if !self.outbox.is_available() => Err(FrameDropped::Unavailable),
            _ => Ok(()),
        };
        let timestamp = timestamp_of(captured);
        let stream = &mut self.streams.list[place];
        if accepted.is_err() {
            let id = stream.config.id;
            self.emit(SenderEvent::FrameDropped(id));
            self.emit(SenderEvent::KeyFrameRequested(id));
        } else {
            stream.timestamp = timestamp;
            if stream.config.kind == MediaKind::Video {
                stream.waits.push(timestamp, self.outbox.pacer.released());
            }
        }
        Admission { timestamp, accepted, discarded }
    }

    /// Queues a packet: one of an admitted frame, or a retransmission. `timestamp` is the media timestamp of its frame; `start`: it is the
    /// first packet of it.
    #[doc(hidden)]
    pub fn push_packet(
        &mut self,
        at: Time,
        place: usize,
        kind: PacketKind,
        (timestamp, start): (u32, bool),
        packet: T,
        size: DataSize,
    ) {
        let stream = &mut self.streams.list[place];
        let priority = match (kind, stream.config.kind) {
            (PacketKind::Retransmission, _) => PacketPriority::Retransmission,
            (_, MediaKind::Audio) => PacketPriority::Audio,
            (_, MediaKind::Video) => PacketPriority::Video,
        };
        if kind != PacketKind::Retransmission {
            stream.queued += size;
        }
        self.outbox.push(at, priority, Queued { packet, timestamp, stream: place as u8, kind, start }, size);
    }

    /// Returns whether the queue of this sender plus `size` would drain within its limit.
    pub fn has_room(&self, size: DataSize) -> bool {
        self.outbox.pacer.has_room(size)
    }

    /// Handles a frame whose packets a program has put into its own queue. [`push_frame`](Self::push_frame) does so.
    pub fn finish_frame(&mut self, now: Time, frame: &QueuedFrame) {
        let now = self.advance(now);
        self.half.handle(now, &Event::Frame(frame));
    }

    /// Discards the frames of a stream that wait in the pacer, from the first one of which nothing has left. `begun` is the
    /// timestamp of the frame of which something has left.
    #[cold]
    fn discard_waiting(&mut self, place: usize, begun: Option<u32>) -> Vec<(T, DataSize)> {
        let discarded = self.outbox.pacer.discard_video(place, |queued| Some(queued.timestamp) == begun);
        if discarded.is_empty() {
            return Vec::new();
        }
        let stream = &mut self.streams.list[place];
        stream.queued = stream.queued.saturating_sub(discarded.iter().map(|(_, size)| *size).sum());
        let (id, dropped) = (stream.config.id, stream.waits.keep(usize::from(begun.is_some())));
        for _ in 0..dropped {
            self.emit(SenderEvent::FrameDropped(id));
        }
        discarded.into_iter().map(|(queued, size)| (queued.packet, size)).collect()
    }
}
