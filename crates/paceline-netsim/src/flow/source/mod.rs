// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources: encoder models that produce frames at about the target rate.
//!
//! A source does not depend on packets, RTP or networks. It gets a target rate and returns frames when they are due.
//! [`SOURCES`] is the registry; to add one, see `docs/how-to/source.md`.
//!
//! | Source | Frame sizes | Frame intervals | Reacts to the target |
//! |---|---|---|---|
//! | [`Ideal`] | exactly the target | constant | at the next frame |
//! | [`Encoder`] | statistical model, RFC 8593 section 5 | Laplace noise | at most once in `tau_v` |
//! | [`FrameTrace`] | recorded encoder output, RFC 8593 section 6 | constant | at most once in `tau_v` |
//! | [`Audio`] | constant | constant | never |

mod audio;
mod damped_target;
mod encoder;
mod entry;
mod error;
mod frame_trace;
mod ideal;
mod ladder;
mod registry;
mod rounding;
mod screen;

pub use audio::{Audio, AudioConfig};
pub use encoder::{Encoder, EncoderConfig};
pub use entry::{Configured, FolderFiles, SetupError, SetupHint, SourceConfig, SourceEntry, SourceSetup, VideoConfig};
pub use error::SourceError;
pub use frame_trace::{FrameTrace, FrameTraceConfig};
pub use ideal::Ideal;
pub use ladder::{FrameTraceError, Ladder, ladder_rung, parse_frame_sizes};
pub use registry::SOURCES;

use paceline_units::{DataSize, Rate, Time};

/// An encoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The time at which the frame was captured, which is when it was due. Its RTP timestamp is this time in units of
    /// the clock rate of its stream.
    pub captured: Time,
    /// Encoded size without headers; at least one byte.
    pub size: DataSize,
    /// A key frame: decodable without earlier frames.
    pub key: bool,
}

/// A producer of frames.
///
/// The caller calls [`poll_frame`](Self::poll_frame) at the time of [`poll_timeout`](Self::poll_timeout), and again
/// until it returns `None`. A call before that time returns `None` and has no effect. A late caller gets every frame
/// that was missed, one per call, each with the time at which it was due.
pub trait Source: Send {
    /// Sets the target rate of the encoded frames, without headers. A source may react late or not at all.
    fn set_target(&mut self, now: Time, target: Rate);
    /// Requests that the next frame be a key frame. Sources without key frames ignore the request.
    fn request_key_frame(&mut self, now: Time) {
        let _ = now;
    }
    /// Returns the next frame that is due at `now`.
    fn poll_frame(&mut self, now: Time) -> Option<Frame>;
    /// Returns the time at which the next frame is due; `None` if there will be no more.
    fn poll_timeout(&self) -> Option<Time>;
    /// Returns the lowest and the highest rate that the source can produce.
    fn range(&self) -> (Rate, Rate);
}

/// RTP timestamp units per second of every video source (RFC 3551, section 5).
pub const VIDEO_CLOCK: u32 = 90_000;

/// RTP timestamp units per second of every audio source (RFC 7587, section 4.1).
pub const AUDIO_CLOCK: u32 = 48_000;

#[cfg(test)]
mod testing {
    //! Helpers of the tests of every source.

    use super::*;
    use paceline_units::TimeDelta;

    /// The time of the next frame.
    pub fn due(source: &dyn Source) -> Time {
        source.poll_timeout().expect("sources do not end")
    }

    /// The next frame, polled when it is due.
    pub fn next_frame(source: &mut dyn Source) -> Frame {
        source.poll_frame(due(source)).expect("a frame at its due time")
    }

    /// All frames due before `end`, each polled exactly when it is due.
    pub fn frames_until(source: &mut dyn Source, end: Time) -> Vec<Frame> {
        let mut frames = Vec::new();
        while due(source) < end {
            let now = due(source);
            let frame = next_frame(source);
            assert_eq!(frame.captured, now);
            assert!(due(source) > now, "captured times strictly increase");
            assert_eq!(source.poll_frame(now), None, "one frame for each due time");
            frames.push(frame);
        }
        frames
    }

    /// Sum of the frame sizes in bytes.
    pub fn bytes(frames: &[Frame]) -> u64 {
        frames.iter().map(|f| f.size.as_bytes()).sum()
    }

    /// Mean rate of the frames in bits per second, from the first one until `end`.
    pub fn mean_bps(frames: &[Frame], end: Time) -> f64 {
        bytes(frames) as f64 * 8.0 / (end - frames[0].captured).as_secs_f64()
    }

    /// Asserts that early polls have no effect: `source`, polled before each frame is due, behaves like `twin`, which
    /// is not.
    pub fn assert_early_polls_have_no_effect(mut source: impl Source, mut twin: impl Source, start: Time) {
        assert_eq!(due(&source), start, "the first frame is due at the start");
        for n in 0..200 {
            let now = due(&source);
            let target = Rate::from_kbps(200 + n * 5);
            for early in [TimeDelta::from_millis(5), TimeDelta::from_nanos(1)] {
                assert_eq!(source.poll_frame(now - early), None);
                assert_eq!(due(&source), now);
            }
            let frame = source.poll_frame(now);
            assert!(frame.is_some_and(|f| f.captured >= start));
            assert_eq!(frame, twin.poll_frame(now));
            source.set_target(now, target);
            twin.set_target(now, target);
        }
    }
}
