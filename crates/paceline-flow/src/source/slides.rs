//! A shared screen: a large frame whenever the slide changes, and frames of a tenth of its size in between. The rate is the
//! target on average.

use super::error::{check, check_range};
use super::registry::{MAX, MIN};
use super::{Frame, SetupError, Source, SourceConfig, SourceEntry, SourceError, SourceSetup, VIDEO_CLOCK};
use crate::parameter::{Parameter, ParameterKind, Value};
use crate::stream_info::MediaKind;
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};
use std::sync::Arc;

/// The time between two frames: 5 frames per second, as libwebrtc encodes shared screens at least.
const INTERVAL: TimeDelta = TimeDelta::from_millis(200);

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "slides",
    summary: "a shared screen with a large frame for each slide",
    kind: MediaKind::Video,
    parameters: &[
        MIN,
        MAX,
        Parameter::new(
            "slide_frames",
            ParameterKind::Count(1, 10_000),
            (Value::Count(25), "25"),
            "number of frames from one slide to the next (assumed)",
        ),
    ],
    implied_by: None,
    renamed: &[("start", "min")],
    configure: |setup: &mut SourceSetup<'_>| -> Result<Arc<dyn SourceConfig>, SetupError> {
        let (min, max, start) = setup.rates();
        Ok(Arc::new(SlidesConfig { min, max, start, slide_frames: setup.values.count("slide_frames") }))
    },
};

#[derive(Clone, Debug)]
struct SlidesConfig {
    min: Rate,
    max: Rate,
    start: Rate,
    slide_frames: u32,
}

impl SourceConfig for SlidesConfig {
    fn build(&self, start: Time, _: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        check_range(self.min, self.max, self.start, 1.0 / INTERVAL.as_secs_f64(), 1.0)?;
        check((1..=10_000).contains(&self.slide_frames), "slide_frames", self.slide_frames, "1 to 10000")?;
        Ok(Box::new(Slides { target: self.start, due: start, number: 0, config: self.clone() }))
    }
    fn range(&self) -> (Rate, Rate) {
        (self.min, self.max)
    }
}

struct Slides {
    config: SlidesConfig,
    target: Rate,
    due: Time,
    /// The number of the next frame since the last slide.
    number: u32,
}

impl Slides {
    /// Returns the size of a frame. A slide counts as ten others, and all together have the target rate.
    fn size(&self) -> DataSize {
        let parts = 10 + u64::from(self.config.slide_frames) - 1;
        let part = (self.target * INTERVAL).as_bytes() * u64::from(self.config.slide_frames) / parts;
        DataSize::from_bytes(if self.number == 0 { 10 * part } else { part }.max(1))
    }
}

impl Source for Slides {
    fn set_target(&mut self, _: Time, target: Rate) {
        self.target = target.clamp(self.config.min, self.config.max);
    }
    fn request_key_frame(&mut self, _: Time) {
        self.number = 0;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        if now < self.due {
            return None;
        }
        let frame = Frame { captured: self.due, size: self.size(), key: self.number == 0 };
        self.due += INTERVAL;
        self.number = (self.number + 1) % self.config.slide_frames;
        Some(frame)
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due)
    }
    fn range(&self) -> (Rate, Rate) {
        self.config.range()
    }
    fn clock_rate(&self) -> u32 {
        VIDEO_CLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    /// By hand: 340 kbit/s are 8,500 bytes in 200 ms, 212,500 in 25 frames; 34 parts of 6,250 bytes.
    #[test]
    fn a_slide_is_ten_times_as_large_as_the_frames_after_it() {
        let rate = Rate::from_kbps(340);
        let config = SlidesConfig { min: rate, max: rate, start: rate, slide_frames: 25 };
        let mut source = config.build(Time::ZERO, RandomStreams::new(1).stream("slides")).unwrap();
        let frames: Vec<Frame> = (0..50).filter_map(|n| source.poll_frame(Time::from_millis(200 * n))).collect();
        assert!((0..50).all(|n| frames[n].size.as_bytes() == if n % 25 == 0 { 62_500 } else { 6_250 }));
        assert!((0..50).all(|n| frames[n].key == (n % 25 == 0)));
        assert_eq!(frames.iter().map(|frame| frame.size.as_bytes()).sum::<u64>(), 425_000);
    }

    #[test]
    fn the_guide_shows_this_file() {
        let (example, _) = include_str!("slides.rs").split_once("\n#[cfg(test)]").unwrap();
        let guide = include_str!("../../../../docs/how-to/source.md");
        assert!(guide.contains(example), "docs/how-to/source.md is out of date");
    }
}
