//! A shared screen. A new slide is sent at the target rate until it is complete. Until the next one, frames have the lowest rate:
//! nothing on the screen changes.

use super::entry::{MAX, MIN, RESOLUTION};
use super::error::{check_fps, check_range};
use super::rounding::{ByteRounder, FrameClock};
use super::{Frame, SetupError, Source, SourceConfig, SourceEntry, SourceError, SourceSetup, VIDEO_CLOCK};
use crate::flow::parameter::{Parameter, ParameterKind, Value};
use crate::flow::stream_info::MediaKind;
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};
use std::sync::Arc;

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "screen",
    summary: "a shared screen: a slide now and then, little in between",
    kind: MediaKind::Video,
    parameters: &[
        Parameter::new(
            "fps",
            ParameterKind::Number(0.1, 1000.0),
            (Value::Number(5.0), "5"),
            "frames per second (assumed)",
        ),
        MIN,
        MAX,
        RESOLUTION,
        Parameter::new(
            "slide_size",
            ParameterKind::Size(DataSize::from_bytes(1), DataSize::from_bytes(100_000_000)),
            (Value::Size(DataSize::from_bytes(150_000)), "150 KB"),
            "bytes of a slide (assumed)",
        ),
        Parameter::new(
            "slide_every",
            ParameterKind::Time(TimeDelta::from_millis(100), TimeDelta::from_secs(86_400)),
            (Value::Time(TimeDelta::from_secs(30)), "30 s"),
            "mean time between slides; each is drawn between half and one and a half times as long (assumed)",
        ),
    ],
    implied_by: None,
    renamed: &[("start", "min"), ("lines", "resolution")],
    configure: |setup: &mut SourceSetup<'_>| -> Result<Arc<dyn SourceConfig>, SetupError> {
        let (min, max, start) = setup.rates();
        Ok(Arc::new(ScreenConfig {
            fps: setup.values.number("fps"),
            min,
            max,
            start,
            lines: setup.picture_lines()?,
            slide_size: setup.values.size("slide_size"),
            slide_every: setup.values.time("slide_every"),
        }))
    },
};

#[derive(Clone, Debug)]
struct ScreenConfig {
    fps: f64,
    min: Rate,
    max: Rate,
    start: Rate,
    lines: u32,
    slide_size: DataSize,
    slide_every: TimeDelta,
}

impl SourceConfig for ScreenConfig {
    fn build(&self, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        check_fps(self.fps)?;
        check_range(self.min, self.max, self.start, self.fps, 1.0)?;
        Ok(Box::new(Screen {
            clock: FrameClock::new(start, self.fps),
            target: self.start,
            next_slide: start,
            left: 0,
            key: false,
            bytes: ByteRounder::default(),
            random,
            config: self.clone(),
        }))
    }
    fn range(&self) -> (Rate, Rate) {
        (self.min, self.max)
    }
    fn picture_lines(&self) -> Option<u32> {
        Some(self.lines)
    }
}

struct Screen {
    config: ScreenConfig,
    clock: FrameClock,
    target: Rate,
    /// The time of the next slide. The first begins with the stream.
    next_slide: Time,
    /// Bytes of the slide that are not yet sent.
    left: u64,
    /// The next frame is the first of a slide.
    key: bool,
    bytes: ByteRounder,
    random: RandomStream,
}

impl Screen {
    fn begin_slide(&mut self) {
        self.left = self.config.slide_size.as_bytes();
        self.key = true;
    }
}

impl Source for Screen {
    fn set_target(&mut self, _: Time, target: Rate) {
        self.target = target.clamp(self.config.min, self.config.max);
    }
    /// Sends the slide again.
    fn request_key_frame(&mut self, _: Time) {
        self.begin_slide();
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.clock.take(now)?;
        if captured >= self.next_slide {
            self.begin_slide();
            self.next_slide = captured + self.config.slide_every.scale(self.random.uniform(0.5, 1.5));
        }
        let bytes = |rate: Rate| rate.as_bps_f64() / (8.0 * self.config.fps);
        let full = self.bytes.round(bytes(self.target)).as_bytes();
        let idle = (bytes(self.config.min) as u64).max(1);
        let size = full.min(self.left).max(idle);
        self.left -= size.min(self.left);
        Some(Frame { captured, size: DataSize::from_bytes(size), key: std::mem::take(&mut self.key) })
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.clock.due())
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

    fn config() -> ScreenConfig {
        ScreenConfig {
            fps: 5.0,
            min: Rate::from_kbps(40),
            max: Rate::from_kbps(4000),
            start: Rate::from_kbps(400),
            lines: 1080,
            slide_size: DataSize::from_bytes(25_000),
            slide_every: TimeDelta::from_secs(10),
        }
    }

    fn sizes(source: &mut dyn Source, frames: u64) -> Vec<(u64, bool)> {
        let frame = |_| {
            let now = source.poll_timeout().unwrap();
            source.poll_frame(now).map(|frame| (frame.size.as_bytes(), frame.key))
        };
        (0..frames).filter_map(frame).collect()
    }

    /// By hand: 400 kbit/s are 10,000 bytes in 200 ms, 40 kbit/s are 1,000. A slide of 25,000 bytes takes three frames.
    #[test]
    fn a_slide_is_sent_at_the_target_and_the_rest_at_the_lowest_rate() {
        let mut source = config().build(Time::ZERO, RandomStreams::new(1).stream("screen")).unwrap();
        let slide = [(10_000, true), (10_000, false), (5_000, false)];
        assert_eq!(sizes(&mut *source, 3), slide);
        assert!(sizes(&mut *source, 20).iter().all(|frame| *frame == (1_000, false)), "no slide follows within 5 s");
        source.request_key_frame(Time::from_secs(5));
        assert_eq!(sizes(&mut *source, 3), slide);
        source.set_target(Time::from_secs(6), Rate::from_kbps(9000));
        source.request_key_frame(Time::from_secs(6));
        assert_eq!(
            sizes(&mut *source, 2),
            [(25_000, true), (1_000, false)],
            "the highest rate is 100,000 bytes a frame"
        );
    }

    #[test]
    fn slides_follow_each_other_after_half_to_one_and_a_half_of_the_mean_time() {
        let mut source = config().build(Time::ZERO, RandomStreams::new(2).stream("screen")).unwrap();
        let frames = sizes(&mut *source, 5 * 2_000);
        let keys: Vec<usize> = (0..frames.len()).filter(|n| frames[*n].1).collect();
        assert!((170..=235).contains(&keys.len()), "{} slides in 2000 s", keys.len());
        let gaps: Vec<usize> = keys.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (25..=76).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().max() > gaps.iter().min());
    }

    #[test]
    fn the_guide_shows_this_file() {
        let (example, _) = include_str!("screen.rs").split_once("\n#[cfg(test)]").unwrap();
        let guide = include_str!("../../../../../docs/how-to/source.md");
        assert!(guide.contains(example), "docs/how-to/source.md is out of date");
    }
}
