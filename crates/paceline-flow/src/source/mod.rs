//! What a stream sends: frames, at a rate that the controller asks for and the source follows as well as it can.
//!
//! A source knows nothing of packets, RTP or networks. It is told a target, and yields frames when they are due.

use paceline_units::{DataSize, Rate, Time};

/// One encoded frame, ready to be cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When the frame was captured; its RTP timestamp is this reading in units of [`Source::clock_rate`].
    pub captured: Time,
    /// Encoded size, without any header.
    pub size: DataSize,
    /// Decodable without earlier frames.
    pub key: bool,
}

/// A producer of frames. The driver calls [`Source::poll_frame`] once `poll_timeout` has come, and again until
/// it answers `None`; calling early yields nothing and changes nothing.
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
