// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of a stream that wait in the pacer: how long the oldest has waited, and how many bytes there are.
//!
//! The flow reports each frame that it queues and each packet that leaves. When it discards frames, those are the newest
//! ones, which shows in the queue size that it reports before the next frame.

use crate::{PacketKind, QueuedFrame, SentPacket, StreamState};
use alloc::collections::VecDeque;
use paceline_units::{DataSize, StreamId, Time, TimeDelta};

/// The frames that are remembered; older ones count as one.
const FRAMES_MAX: usize = 256;

/// The queue of one stream.
#[derive(Clone, Debug)]
pub struct MediaQueue {
    stream: StreamId,
    /// The time at which each frame was queued, and its bytes that wait.
    frames: VecDeque<(Time, DataSize)>,
}

impl MediaQueue {
    pub fn new(stream: StreamId) -> Self {
        Self { stream, frames: VecDeque::new() }
    }

    pub fn handle_frame(&mut self, now: Time, frame: &QueuedFrame) {
        let is_full = self.frames.len() >= FRAMES_MAX;
        match self.frames.back_mut() {
            Some((_, waiting)) if is_full => *waiting += frame.size,
            _ => self.frames.push_back((now, frame.size)),
        }
    }

    #[inline]
    pub fn handle_sent(&mut self, packet: &SentPacket) {
        if packet.stream != self.stream || !matches!(packet.kind, PacketKind::Media | PacketKind::Fec) {
            return;
        }
        if let Some((_, waiting)) = self.frames.front_mut() {
            *waiting = waiting.saturating_sub(packet.size);
            if *waiting == DataSize::ZERO {
                self.frames.pop_front();
            }
        }
    }

    /// Handles the state of the stream before its next frame: frames that the flow discarded are forgotten.
    pub fn handle_stream(&mut self, state: &StreamState) {
        let mut extra = self.size().saturating_sub(state.queued);
        while extra > DataSize::ZERO
            && let Some((_, waiting)) = self.frames.back_mut()
        {
            let taken = extra.min(*waiting);
            *waiting = waiting.saturating_sub(taken);
            extra = extra.saturating_sub(taken);
            if *waiting == DataSize::ZERO {
                self.frames.pop_back();
            }
        }
    }

    /// Returns for how long the oldest packet has waited (`media_qdelay`); zero if none waits.
    pub fn delay(&self, now: Time) -> TimeDelta {
        self.frames.front().map_or(TimeDelta::ZERO, |(queued, _)| now - *queued)
    }

    pub fn size(&self) -> DataSize {
        self.frames.iter().map(|(_, waiting)| *waiting).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn delay_is_that_of_the_oldest_frame() {
        let mut queue = MediaQueue::new(StreamId(0));
        let size = DataSize::from_bytes;
        let at = Time::from_millis;
        let frame = |bytes| QueuedFrame { stream: StreamId(0), size: size(bytes), packets: 2, key: false };
        assert_eq!(queue.delay(at(5)), TimeDelta::ZERO);
        queue.handle_frame(at(0), &frame(2000));
        queue.handle_frame(at(40), &frame(3000));
        assert_eq!(queue.delay(at(50)), TimeDelta::from_millis(50));
        queue.handle_sent(&testing::sent(0, PacketKind::Media, 1000));
        queue.handle_sent(&testing::sent(1, PacketKind::Retransmission, 1000));
        assert_eq!((queue.delay(at(50)), queue.size()), (TimeDelta::from_millis(50), size(4000)));
        queue.handle_sent(&testing::sent(2, PacketKind::Fec, 1000));
        assert_eq!((queue.delay(at(50)), queue.size()), (TimeDelta::from_millis(10), size(3000)));
        queue.handle_frame(at(60), &frame(500));
        // The flow discarded the frame of 60 ms and a part of the one before.
        queue.handle_stream(&StreamState::new(StreamId(0), size(1000)));
        assert_eq!((queue.delay(at(70)), queue.size()), (TimeDelta::from_millis(30), size(1000)));
        queue.handle_stream(&StreamState::new(StreamId(0), size(0)));
        assert_eq!((queue.delay(at(70)), queue.size()), (TimeDelta::ZERO, size(0)));
    }
}
