//! The RTP queue: what was made and has not been sent (RFC 8298, section 4.1, `rtp_queue_size`), of all streams.
//!
//! The flow's pacer is the queue. It tells what waits for a stream before each of its frames, and what leaves; so what is
//! counted as waiting are packets of frames before the newest. The newest always waits a little, for it is paced.

use crate::{PacketKind, SentPacket, StreamState};
use paceline_units::{DataSize, StreamId};

/// One stream's part.
#[derive(Clone, Copy, Debug)]
struct Part {
    stream: StreamId,
    /// What waited before its newest frame, and what left since.
    queued: DataSize,
    sent: DataSize,
}

/// The queue of a flow.
#[derive(Clone, Debug, Default)]
pub struct RtpQueue {
    /// A few; grows when a stream shows for the first time.
    parts: Vec<Part>,
}

impl RtpQueue {
    /// A packet left.
    #[inline]
    pub fn handle_sent(&mut self, packet: &SentPacket) {
        if matches!(packet.kind, PacketKind::Media | PacketKind::Fec)
            && let Some(part) = self.parts.iter_mut().find(|p| p.stream == packet.stream)
        {
            part.sent += packet.size;
        }
    }

    /// A stream is about to queue a frame. Answers what its frame before came to.
    pub fn handle_stream(&mut self, state: &StreamState) -> DataSize {
        let fresh = Part { stream: state.stream, queued: state.queued, sent: DataSize::ZERO };
        match self.parts.iter_mut().find(|p| p.stream == state.stream) {
            Some(part) => {
                let before = core::mem::replace(part, fresh);
                (state.queued + before.sent).saturating_sub(before.queued)
            }
            None => {
                self.parts.push(fresh);
                DataSize::ZERO
            }
        }
    }

    /// `rtp_queue_size`.
    pub fn size(&self) -> DataSize {
        self.parts.iter().map(|p| p.queued.saturating_sub(p.sent)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 5000 and 3000 bytes, of which 4000 leave between: 1000 of the first wait, then 4000 of both.
    #[test]
    fn frames_and_what_waits_are_found_from_both_ends() {
        let mut queue = RtpQueue::default();
        let size = DataSize::from_bytes;
        let state = |stream, bytes| StreamState::new(StreamId(stream), size(bytes));
        let packet = |kind| SentPacket { sequence: 0, size: size(1000), stream: StreamId(0), kind };
        assert_eq!(queue.handle_stream(&state(0, 0)), size(0));
        (0..4).for_each(|_| queue.handle_sent(&packet(PacketKind::Media)));
        queue.handle_sent(&packet(PacketKind::Retransmission));
        assert_eq!(queue.handle_stream(&state(0, 1000)), size(5000));
        assert_eq!(queue.size(), size(1000));
        queue.handle_stream(&state(1, 700));
        assert_eq!(queue.size(), size(1700));
        (0..2).for_each(|_| queue.handle_sent(&packet(PacketKind::Fec)));
        assert_eq!(queue.size(), size(700), "the frame's own packets are not older ones");
        assert_eq!(queue.handle_stream(&state(0, 2000)), size(3000));
        assert_eq!(queue.size(), size(2700));
    }
}
