//! What a stream sends: frames, at a rate that the controller asks for and the source follows as well as it can.
//!
//! A source knows nothing of packets, RTP or networks. It is told a target, and yields frames when they are due.
//!
//! | Source | Sizes | Intervals | Follows the target |
//! |---|---|---|---|
//! | [`Ideal`] | exactly the target | constant | at the next frame |
//! | [`Encoder`] | statistical model, RFC 8593 section 5 | Laplace noise | at most once in `tau_v` |
//! | [`FrameTrace`] | recorded encoder output, RFC 8593 section 6 | constant | at most once in `tau_v` |
//! | [`Audio`] | constant | constant | never |

mod audio;
mod cadence;
mod damping;
mod encoder;
mod error;
mod frames;
mod ideal;
mod ladder;
mod whole_bytes;

pub use audio::{Audio, AudioConfig};
pub use encoder::{Encoder, EncoderConfig};
pub use error::SourceError;
pub use frames::{FrameTrace, FrameTraceConfig};
pub use ideal::{Ideal, IdealConfig};
pub use ladder::{FrameTraceCause, FrameTraceError, Ladder, ladder_rung, parse_frame_sizes};

use paceline_units::{DataSize, Rate, Time};

/// One encoded frame, ready to be cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When the frame was captured, which is when it was due; its RTP timestamp is this reading in units of
    /// [`Source::clock_rate`].
    pub captured: Time,
    /// Encoded size, without any header; at least one byte.
    pub size: DataSize,
    /// Decodable without earlier frames.
    pub key: bool,
}

/// A producer of frames. The driver calls [`Source::poll_frame`] once `poll_timeout` has come, and again until
/// it answers `None`; calling early yields nothing and changes nothing. A driver that is late gets every frame it
/// missed, one a call, each with the time at which it was due.
pub trait Source: Send {
    /// The rate wanted from now on (encoded bytes, without headers). A source may react late or not at all.
    fn set_target(&mut self, now: Time, target: Rate);
    /// The receiver cannot go on without a key frame: make the next one a key frame. Ignored by sources without.
    fn request_key_frame(&mut self, now: Time) {
        let _ = now;
    }
    /// The next frame that is due at `now`.
    fn poll_frame(&mut self, now: Time) -> Option<Frame>;
    /// When the next frame is due; [`Time::MAX`] for never.
    fn poll_timeout(&self) -> Time;
    /// The lowest and the highest rate this source can produce.
    fn range(&self) -> (Rate, Rate);
    /// RTP timestamp units per second: 90000 for video, 48000 for audio.
    fn clock_rate(&self) -> u32;
}

/// RTP timestamp units per second of every video source (RFC 3551, section 5).
pub const VIDEO_CLOCK: u32 = 90_000;

/// RTP timestamp units per second of every audio source (RFC 7587, section 4.1).
pub const AUDIO_CLOCK: u32 = 48_000;

#[cfg(test)]
mod testing {
    //! What the tests of every source share.

    use super::*;

    /// All frames due before `end`, each polled exactly when it is due.
    pub fn frames_until(source: &mut dyn Source, end: Time) -> Vec<Frame> {
        let mut frames = Vec::new();
        while source.poll_timeout() < end {
            let due = source.poll_timeout();
            let frame = source.poll_frame(due).expect("a frame at its own due time");
            assert_eq!(frame.captured, due);
            assert!(source.poll_timeout() > due, "captured times strictly increase");
            assert_eq!(source.poll_frame(due), None, "one frame for each due time");
            frames.push(frame);
        }
        frames
    }

    /// Bytes of the frames.
    pub fn bytes(frames: &[Frame]) -> u64 {
        frames.iter().map(|f| f.size.as_bytes()).sum()
    }

    /// The mean rate of the frames in bits per second: what they carry, from the first until `end`.
    pub fn mean_bps(frames: &[Frame], end: Time) -> f64 {
        bytes(frames) as f64 * 8.0 / (end - frames[0].captured).as_secs_f64()
    }

    /// Polls `source` before each frame is due; it must go on as `twin`, the same source left alone.
    pub fn early_polls_change_nothing(mut source: impl Source, mut twin: impl Source, start: Time) {
        use paceline_units::TimeDelta;
        assert_eq!(source.poll_timeout(), start, "the first frame is due at the start");
        for n in 0..200 {
            let due = source.poll_timeout();
            let target = Rate::from_kbps(200 + n * 5);
            for early in [TimeDelta::from_millis(5), TimeDelta::from_nanos(1)] {
                assert_eq!(source.poll_frame(due - early), None);
                assert_eq!(source.poll_timeout(), due);
            }
            let frame = source.poll_frame(due);
            assert!(frame.is_some_and(|f| f.captured >= start));
            assert_eq!(frame, twin.poll_frame(due));
            source.set_target(due, target);
            twin.set_target(due, target);
        }
    }
}
