// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RTP queue: the encoded bytes of all streams that are not sent yet (RFC 8298, section 4.1, `rtp_queue_size`).
//!
//! The queue is that of the flow's pacer. The flow reports the queue size of a stream before each of its frames, and
//! every packet that leaves. Only packets of frames before the newest one are counted: the newest frame is always
//! queued for a while, because it is paced.

use crate::{PacketKind, SentPacket, StreamState};
use alloc::vec::Vec;
use paceline_units::{DataSize, StreamId};

#[derive(Clone, Copy, Debug)]
struct StreamQueue {
    stream: StreamId,
    /// The queue size before its newest frame, and the bytes sent since.
    queued: DataSize,
    sent: DataSize,
}

/// The queue of a flow.
#[derive(Clone, Debug, Default)]
pub struct RtpQueue {
    /// Grows when a stream appears for the first time.
    streams: Vec<StreamQueue>,
}

impl RtpQueue {
    /// Handles a packet that was sent.
    #[inline]
    pub fn handle_sent(&mut self, packet: &SentPacket) {
        if matches!(packet.kind, PacketKind::Media | PacketKind::Fec)
            && let Some(queue) = self.streams.iter_mut().find(|p| p.stream == packet.stream)
        {
            queue.sent += packet.size;
        }
    }

    /// Handles the state of a stream before its next frame. Returns the size of its previous frame.
    pub fn handle_stream(&mut self, state: &StreamState) -> DataSize {
        let fresh = StreamQueue { stream: state.stream, queued: state.queued, sent: DataSize::ZERO };
        match self.streams.iter_mut().find(|p| p.stream == state.stream) {
            Some(queue) => {
                let before = core::mem::replace(queue, fresh);
                (state.queued + before.sent).saturating_sub(before.queued)
            }
            None => {
                self.streams.push(fresh);
                DataSize::ZERO
            }
        }
    }

    /// Removes a stream.
    pub fn remove_stream(&mut self, stream: StreamId) {
        self.streams.retain(|queue| queue.stream != stream);
    }

    /// Returns `rtp_queue_size`.
    pub fn size(&self) -> DataSize {
        self.streams.iter().map(|p| p.queued.saturating_sub(p.sent)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// A frame of 5000 bytes, of which 4000 leave before the next one: 1000 bytes are queued.
    #[test]
    fn frame_sizes_and_queue_size_follow_from_reports_and_sent_packets() {
        let mut queue = RtpQueue::default();
        let size = DataSize::from_bytes;
        let state = |stream, bytes| StreamState::new(StreamId(stream), size(bytes));
        let packet = |kind| testing::sent(0, kind, 1000);
        assert_eq!(queue.handle_stream(&state(0, 0)), size(0));
        (0..4).for_each(|_| queue.handle_sent(&packet(PacketKind::Media)));
        queue.handle_sent(&packet(PacketKind::Retransmission));
        assert_eq!(queue.handle_stream(&state(0, 1000)), size(5000));
        assert_eq!(queue.size(), size(1000));
        queue.handle_stream(&state(1, 700));
        assert_eq!(queue.size(), size(1700));
        (0..2).for_each(|_| queue.handle_sent(&packet(PacketKind::Fec)));
        assert_eq!(queue.size(), size(700), "packets of the newest frame do not count");
        assert_eq!(queue.handle_stream(&state(0, 2000)), size(3000));
        assert_eq!(queue.size(), size(2700));
    }
}
