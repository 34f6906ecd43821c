// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts how long the next frame of a stream would wait in the pacer.
//!
//! ```text
//! age:    since the first frame that still waits was captured
//! rate:   bytes that left the pacer since that frame was queued / age
//! wait:   bytes queued / rate
//! ```
//!
//! The pacing rate alone does not tell it: a window may hold packets back for longer.

use alloc::collections::VecDeque;
use paceline_units::{DataSize, Rate, TimeDelta};

/// The frames of a stream that are in the pacer.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameWaits {
    /// RTP timestamp, and all that had left the pacer when the frame was queued.
    frames: VecDeque<(u32, DataSize)>,
}

impl FrameWaits {
    /// Handles a frame that is queued.
    #[inline]
    pub fn push(&mut self, timestamp: u32, released: DataSize) {
        self.frames.push_back((timestamp, released));
    }

    /// Forgets the frames before the first one that still waits, which has this RTP timestamp.
    #[inline]
    pub fn begin_with(&mut self, first: u32) {
        while self.frames.front().is_some_and(|(timestamp, _)| *timestamp != first) {
            self.frames.pop_front();
        }
    }

    /// Returns the wait of a frame behind `queued` bytes. `age` is that of the first frame that still waits; `released` is all
    /// that has left the pacer.
    pub fn predict(&self, age: TimeDelta, released: DataSize, queued: DataSize) -> TimeDelta {
        let Some((_, before)) = self.frames.front() else { return age };
        age.max(queued / Rate::from_size_and_time(released - *before, age))
    }

    /// Forgets all but the first `kept` frames, because they were discarded. Returns the number of these.
    pub fn keep(&mut self, kept: usize) -> usize {
        let discarded = self.frames.len().saturating_sub(kept);
        self.frames.truncate(kept);
        discarded
    }

    /// Forgets all frames, because none waits.
    #[inline]
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_follows_from_what_left_since_the_first_frame_was_queued() {
        let (size, ms) = (DataSize::from_bytes, TimeDelta::from_millis);
        let mut waits = FrameWaits::default();
        waits.push(0, size(0));
        waits.push(3000, size(1000));
        waits.push(6000, size(2000));
        // Since the second frame was queued, 5000 bytes left in 100 ms: 20,000 bytes take 400 ms.
        waits.begin_with(3000);
        assert_eq!(waits.predict(ms(100), size(6000), size(20_000)), ms(400));
        assert_eq!(waits.predict(ms(500), size(6000), size(2000)), ms(500), "at least that of the first");
        waits.begin_with(6000);
        assert_eq!(waits.predict(ms(40), size(2000), size(1)), TimeDelta::MAX, "nothing left");
        waits.begin_with(9000);
        assert_eq!(waits.frames.len(), 0, "what left is forgotten");
        assert_eq!(waits.predict(ms(7), size(9000), size(1)), ms(7), "an unknown frame");
    }
}
