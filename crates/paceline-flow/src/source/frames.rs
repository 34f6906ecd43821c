//! The trace-driven model of a live video encoder (RFC 8593, section 6): recorded frame sizes, replayed at a constant
//! frame rate.
//!
//! The size of the next frame is read at one place of all recordings of the [`Ladder`] at once: between two rungs it
//! is interpolated, below the lowest and above the highest it is scaled. A new target changes the rung, not the place.
//! At the end, the place returns not to the first frame but past the first [`FrameTraceConfig::skip_frames`], so
//! that the key frame does not become periodic; a requested key frame returns it to the first.
//!
//! Recorded encoders miss their bitrate: each rung is rescaled, all its sizes by one factor, so that the part that
//! repeats (without the skipped frames) has the nominal rate exactly at the configured frame rate. The shape, and with
//! it the relative size of key frames, is kept. Without it a target inside the ladder would give whatever the encoder
//! did that day. In the public `chat` recordings (7200 frames in 240 s, 29.81 to 30.00 frames a second, the sizes
//! summed over the last timestamp) that is
//!
//! | nominal, kbps | 100 | 200 | 400 | 600 | 800 | 1000 | 1200 | 1500 | 2000 |
//! |---|---|---|---|---|---|---|---|---|---|
//! | 720p, measured | - | 201 | 401 | 597 | 789 | 977 | 1156 | 1405 | 1754 |
//! | 360p, measured | 96 | 179 | 337 | 464 | 546 | 592 | 613 | 629 | 639 |
//!
//! No one frame rate gives the nominal rates: that of the 720p recordings grows from 29.6 at 200 kbps to 34.2 at 2000,
//! that of the 360p recordings from 31.3 at 100 kbps to 93.9, as the content has no more bits to spend at that size.
//! The upper 360p rungs are therefore stretched up to 3.1 times: take 360p for targets up to 600 kbps or so, and
//! 720p above.
//!
//! Readings, where the RFC leaves a choice: "factor" in case b of section 6.2.1, which it does not define, is w; both
//! limits of the frame size hold in all cases; the step to the next rung may vary (section 6.2.2); the first frame is
//! the first of the recording; the key frames are those at the first place. The reaction to targets is damped as in
//! [`EncoderConfig::reaction_delay`](super::EncoderConfig::reaction_delay).

use super::cadence::Cadence;
use super::damping::DampedTarget;
use super::error::{check, check_fps, check_range};
use super::ladder::{Ladder, SKIP_FRAMES};
use super::whole_bytes::WholeBytes;
use super::{Frame, Source, SourceError, VIDEO_CLOCK};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::sync::Arc;

/// What a [`FrameTrace`] is made from, beside its ladder. The default is RFC 8593's examples.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameTraceConfig {
    /// Frames per second, 0.1 to 1000 (section 6.1: 30).
    pub fps: f64,
    /// R_min, the lowest target obeyed, at least one byte a frame; may be below the ladder (figure 2: 150 kbps).
    pub min: Rate,
    /// R_max, the highest target obeyed; may be above the ladder (figure 2: 1.5 Mbps).
    pub max: Rate,
    /// The target until the first reaction (section 6.2.1: R_min).
    pub start: Rate,
    /// tau_v, the least time from one reaction to the next, 0 to 60 s (figure 2: 0.2 s).
    pub reaction_delay: TimeDelta,
    /// SkipFrames, the frames at the beginning that are played once and on request only (section 6.2.1: 20); at least
    /// two fewer than the recordings have. 0 keeps the first key frame in each repetition.
    pub skip_frames: usize,
    /// fs_min, the smallest frame, one byte or more (section 6.2.1: 10 bytes).
    pub frame_min: DataSize,
    /// fs_max, the largest frame (section 6.2.1: 1 MB).
    pub frame_max: DataSize,
}

impl Default for FrameTraceConfig {
    fn default() -> Self {
        Self {
            fps: 30.0,
            min: Rate::from_kbps(150),
            max: Rate::from_kbps(1500),
            start: Rate::from_kbps(150),
            reaction_delay: TimeDelta::from_millis(200),
            skip_frames: SKIP_FRAMES,
            frame_min: DataSize::from_bytes(10),
            frame_max: DataSize::from_bytes(1_000_000),
        }
    }
}

/// A video source that replays recordings. Each rung is rescaled by one factor, so that its repeated part has the
/// rung's nominal rate exactly at [`FrameTraceConfig::fps`]; inside [`FrameTraceConfig::frame_min`] and `frame_max` the
/// long-run rate is the target.
#[derive(Clone, Debug)]
pub struct FrameTrace {
    config: FrameTraceConfig,
    ladder: Arc<Ladder>,
    /// For each rung, nominal over recorded rate.
    factors: Vec<f64>,
    cadence: Cadence,
    target: DampedTarget,
    bytes: WholeBytes,
    /// t_current, the place in the recordings.
    place: usize,
}

impl FrameTrace {
    /// A source whose first frame, a key frame, is due at `start`. Sources may share a ladder.
    pub fn new(config: FrameTraceConfig, ladder: impl Into<Arc<Ladder>>, start: Time) -> Result<Self, SourceError> {
        let ladder = ladder.into();
        config.check(&ladder)?;
        let factors = ladder
            .rungs()
            .map(|(rate, sizes)| {
                let repeated = &sizes[config.skip_frames..];
                let sum: u64 = repeated.iter().map(|size| u64::from(*size)).sum();
                rate.as_bps_f64() / (8.0 * config.fps) * repeated.len() as f64 / sum as f64
            })
            .collect();
        Ok(Self {
            ladder,
            factors,
            cadence: Cadence::new(start, config.fps),
            target: DampedTarget::new(config.min, config.max, config.start, config.reaction_delay),
            bytes: WholeBytes::default(),
            place: 0,
            config,
        })
    }

    /// Bytes of the frame at the current place at the current target (section 6.2.1, cases a to c).
    fn size(&self) -> f64 {
        let target = self.target.current();
        let (lowest, highest) = self.ladder.range();
        let low = self.ladder.at_or_below(target);
        let (r, size_low) = self.rung(low);
        let size = if target < lowest || target >= highest {
            size_low * (target.as_bps_f64() / r.as_bps_f64()) // cases b and c: w times the recorded size
        } else {
            let (r_next, size_high) = self.rung(low + 1);
            let distance = (target - r).as_bps_f64() / (r_next - r).as_bps_f64();
            size_high * distance + size_low * (1.0 - distance)
        };
        size.clamp(self.config.frame_min.as_bytes() as f64, self.config.frame_max.as_bytes() as f64)
    }

    /// The rate of a rung and its rescaled size, in bytes, at the current place.
    fn rung(&self, n: usize) -> (Rate, f64) {
        let (rate, sizes) = self.ladder.rung(n);
        (rate, f64::from(sizes[self.place]) * self.factors[n])
    }
}

impl FrameTraceConfig {
    fn check(&self, ladder: &Ladder) -> Result<(), SourceError> {
        check_fps(self.fps)?;
        check_range(self.min, self.max, self.start, self.fps, 1.0)?;
        let delay = self.reaction_delay;
        check((TimeDelta::ZERO..=TimeDelta::from_secs(60)).contains(&delay), "reaction_delay", delay, "0 to 60 s")?;
        let enough = self.skip_frames.saturating_add(2) <= ladder.frames();
        check(enough, "skip_frames", self.skip_frames, "at least two fewer than the recordings have")?;
        check(self.frame_min.as_bytes() >= 1, "frame_min", self.frame_min, "one byte or more")?;
        check(self.frame_max >= self.frame_min, "frame_max", self.frame_max, "`frame_min` or more")
    }
}

/// The place after `place` in recordings of `length` frames (section 6.2.1, the update of t_current).
fn next_place(place: usize, skip: usize, length: usize) -> usize {
    if place < skip { place + 1 } else { (place + 1 - skip) % (length - skip) + skip }
}

impl Source for FrameTrace {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.target.settle(now);
        self.target.request(now, target);
        self.target.settle(now);
    }
    /// Returns to the first frame of the recordings.
    fn request_key_frame(&mut self, _now: Time) {
        self.place = 0;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.cadence.take(now)?;
        self.target.settle(captured);
        let exact = self.size();
        let frame = Frame { captured, size: self.bytes.take(exact), key: self.place == 0 };
        self.place = next_place(self.place, self.config.skip_frames, self.ladder.frames());
        Some(frame)
    }
    fn poll_timeout(&self) -> Time {
        self.cadence.due()
    }
    fn range(&self) -> (Rate, Rate) {
        self.target.range()
    }
    fn clock_rate(&self) -> u32 {
        VIDEO_CLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{bytes, early_polls_change_nothing, frames_until, mean_bps};
    use super::*;

    const START: Time = Time::from_millis(10);

    fn kbps(k: u64) -> Rate {
        Rate::from_kbps(k)
    }

    /// A recording of mean `mean` bytes after the first 20 frames: a key frame of three means, small frames to make
    /// up for it, then a saw tooth of half a mean to one and a half.
    fn recording(mean: u32, frames: usize) -> Vec<u32> {
        (0..frames)
            .map(|n| match n {
                0 => mean * 3,
                1..20 => mean * 9 / 10,
                _ => mean / 2 + mean * ((n - 20) % 5) as u32 / 4,
            })
            .collect()
    }

    /// Rungs at 200, 400, 600, 1000 kbps whose means are `factor` times what 30 frames a second need.
    fn ladder(factor: f64) -> Ladder {
        let rung = |k: u64| (kbps(k), recording((k as f64 * 1000.0 / 240.0 * factor) as u32, 520));
        Ladder::new([600, 200, 1000, 400].map(rung).into()).unwrap()
    }

    fn source(factor: f64, change: impl FnOnce(&mut FrameTraceConfig)) -> FrameTrace {
        let mut config = FrameTraceConfig { min: kbps(50), max: kbps(2000), start: kbps(200), ..Default::default() };
        change(&mut config);
        FrameTrace::new(config, ladder(factor), START).unwrap()
    }

    fn next(source: &mut FrameTrace) -> Frame {
        source.poll_frame(source.poll_timeout()).unwrap()
    }

    #[test]
    fn the_long_run_rate_is_the_target_whatever_the_recordings_rates() {
        for factor in [0.4, 1.0, 1.3] {
            for k in [50, 120, 200, 250, 399, 400, 700, 999, 1000, 1600] {
                let mut source = source(factor, |c| c.start = kbps(k));
                let end = START + TimeDelta::from_secs(120);
                let ratio = mean_bps(&frames_until(&mut source, end), end) / (k as f64 * 1000.0);
                // Within the first key frame and its makers-up: 19 x 0.9 + 3 - 20 = 0.1 means in 3600.
                assert!((0.999..=1.001).contains(&ratio), "{ratio} of {k} kbps");
            }
        }
    }

    #[test]
    fn the_mean_holds_at_other_frame_rates() {
        let mut source = source(1.0, |c| (c.fps, c.start) = (25.0, kbps(500)));
        let end = START + TimeDelta::from_secs(120);
        let frames = frames_until(&mut source, end);
        assert_eq!(frames.len(), 3000);
        assert!((0.999..=1.001).contains(&(mean_bps(&frames, end) / 500e3)));
    }

    #[test]
    fn sizes_are_interpolated_between_rungs_and_scaled_beyond() {
        // At place 0: 3 means. 200 kbps is 833.3 bytes a frame, 400 is 1666.7; 250 lies at a quarter.
        for (k, expected) in [(200, 2500.0), (250, 3125.0), (400, 5000.0), (1000, 12_500.0), (50, 625.0), (2000, 25e3)]
        {
            let mut source = source(1.0, |c| c.start = kbps(k));
            let size = next(&mut source).size.as_bytes() as f64;
            assert!((expected * 0.997..=expected * 1.003).contains(&size), "{size} bytes at {k} kbps");
        }
    }

    #[test]
    fn frames_stay_within_their_limits() {
        let mut small = source(1.0, |c| {
            (c.min, c.start) = (Rate::from_bps(2000), Rate::from_bps(2000)); // 8.3 bytes a frame
        });
        let mut large = source(1.0, |c| {
            (c.start, c.frame_max) = (kbps(2000), DataSize::from_bytes(9000));
        });
        let sizes = |s: &mut FrameTrace| -> Vec<u64> { (0..100).map(|_| next(s).size.as_bytes()).collect() };
        assert_eq!(sizes(&mut small).iter().min(), Some(&10));
        let large = sizes(&mut large);
        assert_eq!(large.iter().max(), Some(&9000));
        assert!(large.iter().any(|b| *b < 9000));
    }

    #[test]
    fn places_wrap_past_the_skipped_frames() {
        // 25 frames, 20 skipped: 0 to 24, then 20 to 24 for ever.
        let mut place = 0;
        let places: Vec<usize> = (0..36)
            .map(|_| {
                let now = place;
                place = next_place(place, 20, 25);
                now
            })
            .collect();
        let expected: Vec<usize> = (0..25).chain(20..25).chain(20..25).chain(20..21).collect();
        assert_eq!(places, expected);
        assert_eq!(next_place(24, 0, 25), 0);
    }

    #[test]
    fn key_frames_come_first_on_demand_and_periodically_only_if_not_skipped() {
        let keys = |source: &mut FrameTrace, n: usize| (0..n).filter(|_| next(source).key).count();
        let mut skipping = source(1.0, |_| ());
        assert_eq!(keys(&mut skipping, 1), 1);
        assert_eq!(keys(&mut skipping, 1999), 0);
        let before = next(&mut skipping).size;
        skipping.request_key_frame(skipping.poll_timeout());
        let key = next(&mut skipping);
        assert!(key.key && key.size.as_bytes() >= 2 * before.as_bytes().min(1200));
        assert!(!next(&mut skipping).key);
        let mut repeating = source(1.0, |c| c.skip_frames = 0);
        assert_eq!(keys(&mut repeating, 520 * 3), 3);
    }

    #[test]
    fn requests_within_the_reaction_delay_wait() {
        let mut source = source(1.0, |_| ());
        source.set_target(START, kbps(400));
        let first = bytes(&[next(&mut source)]);
        source.set_target(START + TimeDelta::from_millis(20), kbps(1000));
        // The frames at 33 to 167 ms are of 400 kbps (0.9 x 1667 = 1500), those from 200 ms on of 1000 (0.9 x 4167).
        let sizes: Vec<u64> = (0..7).map(|_| next(&mut source).size.as_bytes()).collect();
        assert!((4980..=5020).contains(&first), "{first}");
        assert!(sizes[..5].iter().all(|b| (1490..=1510).contains(b)), "{sizes:?}");
        assert!(sizes[5..].iter().all(|b| (3730..=3770).contains(b)), "{sizes:?}");
    }

    #[test]
    fn early_polls() {
        let ladder = Arc::new(ladder(1.0));
        let make = || FrameTrace::new(FrameTraceConfig::default(), Arc::clone(&ladder), START).unwrap();
        early_polls_change_nothing(make(), make(), START);
    }

    #[test]
    fn bad_configurations_are_named() {
        let field = |change: fn(&mut FrameTraceConfig)| {
            let mut config = FrameTraceConfig::default();
            change(&mut config);
            FrameTrace::new(config, ladder(1.0), START).unwrap_err().field
        };
        assert_eq!(field(|c| c.fps = -1.0), "fps");
        assert_eq!(field(|c| c.min = Rate::ZERO), "min");
        assert_eq!(field(|c| c.max = kbps(149)), "max");
        assert_eq!(field(|c| c.start = kbps(149)), "start");
        assert_eq!(field(|c| c.reaction_delay = TimeDelta::from_secs(61)), "reaction_delay");
        assert_eq!(field(|c| c.skip_frames = 519), "skip_frames");
        assert_eq!(field(|c| c.skip_frames = usize::MAX), "skip_frames");
        assert_eq!(field(|c| c.frame_min = DataSize::ZERO), "frame_min");
        assert_eq!(field(|c| c.frame_max = DataSize::from_bytes(9)), "frame_max");
    }
}
