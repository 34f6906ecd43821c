// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ideal encoder: a constant frame rate, every frame of exactly target / frame rate, and a new target from the next
//! frame on.
//!
//! Studies use it to isolate the controller. It has no key frame bursts: the first frame and each requested key frame
//! are marked as key frames but have the size of all others. Target / fps is rarely a whole number of bytes, so the
//! remainder is added to the next frame, and the long-run rate is exact.

use super::entry::{FPS, MAX, MIN, RESOLUTION};
use super::rounding::{ByteRounder, FrameClock};
use super::{Frame, Source, SourceConfig, SourceEntry, SourceError, VideoConfig};
use crate::flow::stream_info::MediaKind;
use paceline_units::{RandomStream, Rate, Time};

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "ideal",
    summary: "frames of exactly the target rate",
    kind: MediaKind::Video,
    parameters: &[FPS, MIN, MAX, RESOLUTION],
    implied_by: None,
    configure: |setup| setup.with_lines(setup.video()),
};

impl SourceConfig for VideoConfig {
    fn build(&self, start: Time, _: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Ideal::new(self.clone(), start)?))
    }
    fn range(&self) -> (Rate, Rate) {
        self.range()
    }
}

/// A video source that follows its target exactly.
#[derive(Clone, Debug)]
pub struct Ideal {
    config: VideoConfig,
    clock: FrameClock,
    target: Rate,
    bytes: ByteRounder,
    /// The next frame is a key frame.
    key: bool,
}

impl Ideal {
    /// Creates a source whose first frame, a key frame, is due at `start`.
    pub fn new(config: VideoConfig, start: Time) -> Result<Self, SourceError> {
        config.check(1.0)?;
        let clock = FrameClock::new(start, config.fps);
        Ok(Self { clock, target: config.start, bytes: ByteRounder::default(), key: true, config })
    }
}

impl Source for Ideal {
    fn set_target(&mut self, _now: Time, target: Rate) {
        self.target = target.clamp(self.config.min, self.config.max);
    }
    fn request_key_frame(&mut self, _now: Time) {
        self.key = true;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.clock.take(now)?;
        let size = self.bytes.round(self.target.as_bps_f64() / (8.0 * self.config.fps));
        Some(Frame { captured, size, key: core::mem::take(&mut self.key) })
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.clock.due())
    }
    fn range(&self) -> (Rate, Rate) {
        self.config.range()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_early_polls_have_no_effect, bytes, due, frames_until, next_frame};
    use super::*;
    use paceline_units::TimeDelta;

    const START: Time = Time::from_millis(250);

    fn config() -> VideoConfig {
        let kbps = Rate::from_kbps;
        VideoConfig { fps: 30.0, min: kbps(50), max: kbps(2000), start: kbps(1000) }
    }

    fn ideal() -> Ideal {
        Ideal::new(config(), START).unwrap()
    }

    #[test]
    fn rate_is_exact_to_the_byte() {
        // 1 Mbps for 60 s = 7 500 000 bytes in 1800 frames of 4166 or 4167 bytes.
        let mut source = ideal();
        let frames = frames_until(&mut source, START + TimeDelta::from_secs(60));
        assert_eq!(frames.len(), 1800);
        assert_eq!(bytes(&frames), 7_500_000);
        assert!(frames.iter().all(|f| (4166..=4167).contains(&f.size.as_bytes())));
    }

    #[test]
    fn a_new_target_applies_from_the_next_frame() {
        let mut source = ideal();
        for (kbps, low, high) in [(240, 1000, 1001), (9999, 8333, 8334), (0, 208, 209), (1200, 5000, 5001)] {
            source.set_target(due(&source), Rate::from_kbps(kbps));
            let size = next_frame(&mut source).size.as_bytes();
            assert!((low..=high).contains(&size), "{size} bytes at {kbps} kbps");
        }
        assert_eq!(source.range(), (Rate::from_kbps(50), Rate::from_kbps(2000)));
    }

    #[test]
    fn first_and_requested_frames_are_key_frames() {
        let mut source = ideal();
        let keys: Vec<bool> = (0..5)
            .map(|n| {
                if n == 3 {
                    source.request_key_frame(due(&source));
                }
                next_frame(&mut source).key
            })
            .collect();
        assert_eq!(keys, [true, false, false, true, false]);
    }

    #[test]
    fn late_polls_return_all_frames_with_their_due_times() {
        let mut source = ideal();
        let late = START + TimeDelta::from_millis(100);
        let captured: Vec<i64> =
            core::iter::from_fn(|| source.poll_frame(late)).map(|f| (f.captured - START).as_nanos()).collect();
        assert_eq!(captured, [0, 33_333_333, 66_666_667, 100_000_000]);
    }

    #[test]
    fn early_polls_have_no_effect() {
        assert_early_polls_have_no_effect(ideal(), ideal(), START);
    }

    #[test]
    fn an_invalid_configuration_is_an_error() {
        assert_eq!(Ideal::new(VideoConfig { fps: 0.0, ..config() }, START).unwrap_err().field, "fps");
    }
}
