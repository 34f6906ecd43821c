// SPDX-License-Identifier: MIT OR Apache-2.0
//! Caches recently encoded frames, from which packets and retransmissions take their payload.

use paceline_netsim::flow::FramePiece;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest number of frames. A sender keeps 1024 packets, and a packet has bytes of one frame only.
const CAPACITY: usize = 1024;

/// RTP timestamp and bytes of each frame.
type Frames = VecDeque<(u32, Vec<u8>)>;

/// The last frames of one stream. Clones share the same cache.
#[derive(Clone, Debug, Default)]
pub struct FrameCache(Arc<Mutex<Frames>>);

impl FrameCache {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a frame; the oldest one is dropped if the cache is full.
    pub fn put(&self, timestamp: u32, frame: Vec<u8>) {
        let mut frames = self.frames();
        if frames.len() == CAPACITY {
            frames.pop_front();
        }
        frames.push_back((timestamp, frame));
    }

    /// Copies a piece of a frame into `out` and returns the first byte of the frame. Returns `None` if the frame is not
    /// cached or is too short.
    ///
    /// The header of the first packet contains the first byte of a VP8 frame (its frame tag), so offsets count from the
    /// second byte.
    pub fn read(&self, piece: &FramePiece, out: &mut [u8]) -> Option<u8> {
        let frames = self.frames();
        let (_, frame) = frames.iter().rev().find(|(timestamp, _)| *timestamp == piece.timestamp)?;
        let (first, rest) = frame.split_first()?;
        let from = piece.offset as usize;
        out.copy_from_slice(rest.get(from..from + out.len())?);
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::StreamId;

    #[test]
    fn evicts_the_oldest_frame() {
        let cache = FrameCache::default();
        let read = |timestamp, offset, len| {
            let mut out = vec![0; len];
            cache.read(&FramePiece { stream: StreamId(0), timestamp, offset }, &mut out).map(|first| (first, out))
        };
        cache.put(7, vec![9, 1, 2, 3, 4]);
        cache.put(8, vec![8]);
        assert_eq!(read(7, 0, 2), Some((9, vec![1, 2])));
        assert_eq!(read(7, 2, 2), Some((9, vec![3, 4])));
        assert_eq!(read(7, 3, 2), None, "beyond the end of the frame");
        assert_eq!((read(8, 0, 0), read(9, 0, 0)), (Some((8, vec![])), None));
        (0..CAPACITY as u32 - 2).for_each(|n| cache.put(100 + n, vec![0, 0]));
        assert!(read(7, 0, 1).is_some());
        cache.put(99, vec![0]);
        assert!(read(7, 0, 1).is_none() && read(8, 0, 0).is_some());
    }
}
