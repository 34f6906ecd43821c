//! The frames that were encoded lately, for the packets that carry pieces of them: first, and again when asked for.

use paceline_flow::FramePiece;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Frames kept: a sender remembers 1024 packets, and none has more than one frame.
const KEPT: usize = 1024;

/// The last frames of one stream by their RTP timestamps; copies are the same shelf.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<Mutex<Frames>>);

/// RTP timestamp and bytes, oldest first.
type Frames = VecDeque<(u32, Vec<u8>)>;

impl Shelf {
    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a frame.
    pub fn put(&self, timestamp: u32, frame: Vec<u8>) {
        let mut frames = self.frames();
        if frames.len() == KEPT {
            frames.pop_front();
        }
        frames.push_back((timestamp, frame));
    }

    /// Writes the piece of a frame into `out`; answers the frame's first byte, or `None` where the frame is not kept or
    /// ends before.
    ///
    /// A packet carries the first byte of a VP8 frame in its head (it says what kind of frame it is) and counts from the
    /// second.
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
    fn pieces_are_found_until_their_frame_is_too_old() {
        let shelf = Shelf::default();
        let read = |timestamp, offset, len| {
            let mut out = vec![0; len];
            shelf.read(&FramePiece { stream: StreamId(0), timestamp, offset }, &mut out).map(|first| (first, out))
        };
        shelf.put(7, vec![9, 1, 2, 3, 4]);
        shelf.put(8, vec![8]);
        assert_eq!(read(7, 0, 2), Some((9, vec![1, 2])));
        assert_eq!(read(7, 2, 2), Some((9, vec![3, 4])));
        assert_eq!(read(7, 3, 2), None, "beyond its end");
        assert_eq!((read(8, 0, 0), read(9, 0, 0)), (Some((8, vec![])), None));
        (0..KEPT as u32 - 2).for_each(|n| shelf.put(100 + n, vec![0, 0]));
        assert!(read(7, 0, 1).is_some());
        shelf.put(99, vec![0]);
        assert!(read(7, 0, 1).is_none() && read(8, 0, 0).is_some());
    }
}
