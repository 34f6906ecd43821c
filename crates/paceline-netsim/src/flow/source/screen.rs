// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shared screen. A new slide is sent at the target rate until it is complete. Until the next one, frames have the lowest rate:
//! nothing on the screen changes.

use super::entry::{MAX, MIN, RESOLUTION};
use super::rounding::{ByteRounder, FrameClock};
use super::{Frame, Source, SourceConfig, SourceEntry, SourceError, VideoConfig};
use crate::flow::parameter::{Parameter, ParameterKind};
use crate::flow::stream_info::MediaKind;
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "screen",
    summary: "a shared screen: a slide now and then, little in between",
    kind: MediaKind::Video,
    parameters: &[
        Parameter::new("fps", ParameterKind::Number(0.1, 1000.0), "5").about("frames per second (assumed)"),
        MIN,
        MAX,
        RESOLUTION,
        Parameter::new(
            "slide_size",
            ParameterKind::Size(DataSize::from_bytes(1), DataSize::from_bytes(100_000_000)),
            "150 KB",
        )
        .about("bytes of a slide (assumed)"),
        Parameter::new(
            "slide_every",
            ParameterKind::Time(TimeDelta::from_millis(100), TimeDelta::from_secs(86_400)),
            "30 s",
        )
        .about("mean time between slides; each is drawn between half and one and a half times as long (assumed)"),
    ],
    implied_by: None,
    configure: |setup| {
        let (video, values) = (setup.video(), setup.values);
        let (slide_size, slide_every) = (values.size("slide_size"), values.time("slide_every"));
        setup.with_lines(ScreenConfig { video, slide_size, slide_every })
    },
};

#[derive(Clone, Debug)]
struct ScreenConfig {
    video: VideoConfig,
    slide_size: DataSize,
    slide_every: TimeDelta,
}

impl SourceConfig for ScreenConfig {
    fn build(&self, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        self.video.check(1.0)?;
        Ok(Box::new(Screen {
            clock: FrameClock::new(start, self.video.fps),
            target: self.video.start,
            next_slide: start,
            left: 0,
            key: false,
            bytes: ByteRounder::default(),
            random,
            config: self.clone(),
        }))
    }
    fn range(&self) -> (Rate, Rate) {
        self.video.range()
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
        self.target = target.clamp(self.config.video.min, self.config.video.max);
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
        let bytes = |rate: Rate| rate.as_bps_f64() / (8.0 * self.config.video.fps);
        let full = self.bytes.round(bytes(self.target)).as_bytes();
        let idle = (bytes(self.config.video.min) as u64).max(1);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::RandomStreams;

    fn config() -> ScreenConfig {
        let kbps = Rate::from_kbps;
        ScreenConfig {
            video: VideoConfig { fps: 5.0, min: kbps(40), max: kbps(4000), start: kbps(400) },
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
}
