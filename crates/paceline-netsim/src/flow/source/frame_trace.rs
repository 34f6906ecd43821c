// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace-driven model of a live video encoder (RFC 8593, section 6): recorded frame sizes, replayed at a constant
//! frame rate.
//!
//! All recordings of the [`Ladder`] are read at the same position. Between two rungs the size of the next frame is
//! interpolated; below the lowest rung and above the highest it is scaled. A new target changes the rung, not the
//! position. At the end, the position returns to the frame after the first [`FrameTraceConfig::skip_frames`], so that
//! the first key frame is not repeated periodically. A requested key frame returns it to the first frame.
//!
//! Recorded encoders miss their nominal bitrate. All sizes of a rung are therefore rescaled by one factor, so that the
//! repeated part (without the skipped frames) has exactly the nominal rate at the configured frame rate. The shape, and
//! thus the relative size of key frames, is kept. In the public `chat` recordings (7200 frames in 240 s, 29.81 to
//! 30.00 frames per second, the sizes
//! summed over the last timestamp) that is
//!
//! | nominal, kbps | 100 | 200 | 400 | 600 | 800 | 1000 | 1200 | 1500 | 2000 |
//! |---|---|---|---|---|---|---|---|---|---|
//! | 720p, measured | - | 201 | 401 | 597 | 789 | 977 | 1156 | 1405 | 1754 |
//! | 360p, measured | 96 | 179 | 337 | 464 | 546 | 592 | 613 | 629 | 639 |
//!
//! No single frame rate gives the nominal rates. The 720p recordings would need 29.6 frames per second at 200 kbps and
//! 34.2 at 2000, the 360p recordings 31.3 at 100 kbps and 93.9 at 2000, because at that size the content does not need
//! more bits. The upper 360p rungs are therefore scaled up to 3.1 times: use 360p for targets up to about 600 kbps, and
//! 720p above.
//!
//! Interpretations where the RFC leaves a choice: "factor" in case b of section 6.2.1, which is not defined, is w; both
//! limits of the frame size apply in all cases; the step to the next rung may vary (section 6.2.2); the first frame is
//! the first of the recording; the frames at the first position are key frames. The reaction to targets is damped as in
//! [`EncoderConfig::reaction_delay`](super::EncoderConfig::reaction_delay).

use super::damped_target::DampedTarget;
use super::encoder::REACTION_DELAY;
use super::entry::{FPS, FolderFiles, MAX, MIN};
use super::error::check;
use super::ladder::{Ladder, SKIP_FRAMES, ladder_rung, parse_frame_sizes};
use super::rounding::{ByteRounder, FrameClock};
use super::{Configured, Frame, SetupError, SetupHint, Source, SourceConfig, SourceEntry, SourceError, VideoConfig};
use crate::flow::parameter::{Parameter, ParameterKind};
use crate::flow::stream_info::MediaKind;
use paceline_units::{DataSize, RandomStream, Rate, Time, TimeDelta};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "frames",
    summary: "recorded frame sizes on a ladder of bitrates, RFC 8593, section 6",
    kind: MediaKind::Video,
    parameters: &[
        FPS,
        MIN,
        MAX,
        REACTION_DELAY,
        Parameter::required("frames", ParameterKind::Text)
            .about("folder of recorded frame sizes, `<content>_<resolution>_<kbps>.txt` each"),
        Parameter::optional("resolution", ParameterKind::Text, "the highest").about("the resolution of the recording"),
    ],
    implied_by: Some("frames"),
    configure: |setup| {
        let values = setup.values;
        let folder = values.text("frames").unwrap_or_default();
        let files = (setup.read_folder)(folder).map_err(|message| SetupError {
            parameter: "frames",
            message,
            hint: SetupHint::MissingFile,
        })?;
        let (lines, resolution, ladder) = read_ladder(folder, &files, values.text("resolution"))?;
        setup.notes.push(format!(
            "frame sizes: {} rungs of {resolution} from {folder}, each scaled to its nominal rate",
            ladder.rungs().len()
        ));
        let (video, reaction_delay) = (setup.video(), values.time("reaction_delay"));
        let config = FrameTraceConfig { video, reaction_delay, ..FrameTraceConfig::default() };
        let config = Arc::new(LadderConfig { config, ladder: Arc::new(ladder) });
        Ok(Configured { config, lines: (lines > 0).then_some(lines) })
    },
};

/// Reads the recordings of a folder in one resolution, the highest if none is given. Returns its lines (0 if its
/// name has none) and its name, too.
fn read_ladder(folder: &str, files: &FolderFiles, wanted: Option<&str>) -> Result<(u32, String, Ladder), SetupError> {
    let error = |message, hint| SetupError { parameter: "frames", message, hint: SetupHint::Text(hint) };
    /// Recordings by rate, for each resolution (as a number first, to find the highest).
    type Ladders = BTreeMap<(u32, String), Vec<(Rate, Vec<u32>)>>;
    let mut ladders = Ladders::new();
    for (name, text) in files {
        let Some((resolution, rate)) = ladder_rung(name) else { continue };
        let sizes = parse_frame_sizes(text)
            .map_err(|e| error(format!("{folder}/{name}, {e}"), "a line is: index type X timestamp(s) size(bytes)"))?;
        let lines: u32 = resolution.trim_end_matches('p').parse().unwrap_or(0);
        ladders.entry((lines, resolution.to_owned())).or_default().push((rate, sizes));
    }
    let known = || ladders.keys().map(|(_, resolution)| resolution.clone()).collect();
    let key = match wanted {
        Some(wanted) => {
            ladders.keys().find(|(_, resolution)| resolution == wanted).cloned().ok_or_else(|| SetupError {
                parameter: "resolution",
                message: format!("no frame sizes of resolution `{wanted}`"),
                hint: SetupHint::Known(known()),
            })?
        }
        None => ladders.keys().next_back().cloned().ok_or_else(|| {
            let hint = "files are called <content>_<resolution>_<kbps>.txt, such as talk_720p_1000.txt";
            error(format!("{folder} holds no frame sizes"), hint)
        })?,
    };
    let rungs = ladders.remove(&key).unwrap_or_default();
    let ladder = Ladder::new(rungs).map_err(|e| {
        let hint = "every file of one resolution must hold the same frames, encoded at another rate";
        error(format!("{folder}: {e}"), hint)
    })?;
    Ok((key.0, key.1, ladder))
}

/// A configuration with its recordings, which all runs share.
#[derive(Clone, Debug)]
struct LadderConfig {
    config: FrameTraceConfig,
    ladder: Arc<Ladder>,
}

impl SourceConfig for LadderConfig {
    fn build(&self, start: Time, _: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(FrameTrace::new(self.config.clone(), self.ladder.clone(), start)?))
    }
    fn range(&self) -> (Rate, Rate) {
        self.config.video.range()
    }
}

/// The configuration of a [`FrameTrace`], in addition to its ladder. The default values are the examples of RFC 8593.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameTraceConfig {
    /// Frames per second (section 6.1: 30), the lowest target, at least one byte per frame, and the highest, which may be below
    /// and above the ladder (figure 2: 150 kbps, 1.5 Mbps), and the first target (section 6.2.1: R_min).
    pub video: VideoConfig,
    /// tau_v, the minimum time between two reactions, 0 to 60 s (figure 2: 0.2 s).
    pub reaction_delay: TimeDelta,
    /// SkipFrames, the number of initial frames that are played only at the start and on request (section 6.2.1: 20);
    /// at least two fewer than the recordings have. With 0, the first key frame is part of each repetition.
    pub skip_frames: usize,
    /// fs_min, the smallest frame, at least one byte (section 6.2.1: 10 bytes).
    pub frame_min: DataSize,
    /// fs_max, the largest frame (section 6.2.1: 1 MB).
    pub frame_max: DataSize,
}

impl Default for FrameTraceConfig {
    fn default() -> Self {
        Self {
            video: VideoConfig {
                fps: 30.0,
                min: Rate::from_kbps(150),
                max: Rate::from_kbps(1500),
                start: Rate::from_kbps(150),
            },
            reaction_delay: TimeDelta::from_millis(200),
            skip_frames: SKIP_FRAMES,
            frame_min: DataSize::from_bytes(10),
            frame_max: DataSize::from_bytes(1_000_000),
        }
    }
}

/// A video source that replays recordings. The long-run rate is the target, as long as
/// [`FrameTraceConfig::frame_min`] and `frame_max` do not limit the frames.
#[derive(Clone, Debug)]
pub struct FrameTrace {
    config: FrameTraceConfig,
    ladder: Arc<Ladder>,
    /// Nominal over recorded rate, per rung.
    factors: Vec<f64>,
    clock: FrameClock,
    target: DampedTarget,
    bytes: ByteRounder,
    /// t_current, the position in the recordings.
    position: usize,
}

impl FrameTrace {
    /// Creates a source whose first frame, a key frame, is due at `start`. Sources may share a ladder.
    pub fn new(config: FrameTraceConfig, ladder: impl Into<Arc<Ladder>>, start: Time) -> Result<Self, SourceError> {
        let ladder = ladder.into();
        config.check(&ladder)?;
        let factors = ladder
            .rungs()
            .map(|(rate, sizes)| {
                let repeated = &sizes[config.skip_frames..];
                let sum: u64 = repeated.iter().map(|size| u64::from(*size)).sum();
                rate.as_bps_f64() / (8.0 * config.video.fps) * repeated.len() as f64 / sum as f64
            })
            .collect();
        Ok(Self {
            ladder,
            factors,
            clock: FrameClock::new(start, config.video.fps),
            target: DampedTarget::new(&config.video, config.reaction_delay),
            bytes: ByteRounder::default(),
            position: 0,
            config,
        })
    }

    /// Returns the size in bytes of the frame at the current position and target (section 6.2.1, cases a to c).
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

    /// Returns the nominal rate of a rung and its rescaled frame size in bytes at the current position.
    fn rung(&self, n: usize) -> (Rate, f64) {
        let (rate, sizes) = self.ladder.rung(n);
        (rate, f64::from(sizes[self.position]) * self.factors[n])
    }
}

impl FrameTraceConfig {
    fn check(&self, ladder: &Ladder) -> Result<(), SourceError> {
        self.video.check(1.0)?;
        let delay = self.reaction_delay;
        check((TimeDelta::ZERO..=TimeDelta::from_secs(60)).contains(&delay), "reaction_delay", delay, "0 to 60 s")?;
        let enough = self.skip_frames.saturating_add(2) <= ladder.frames();
        check(enough, "skip_frames", self.skip_frames, "at least two fewer than the recordings have")?;
        check(self.frame_min.as_bytes() >= 1, "frame_min", self.frame_min, "at least one byte")?;
        check(self.frame_max >= self.frame_min, "frame_max", self.frame_max, "at least `frame_min`")
    }
}

/// Returns the position after `position` in recordings of `length` frames (section 6.2.1, the update of t_current).
fn next_position(position: usize, skip: usize, length: usize) -> usize {
    if position < skip { position + 1 } else { (position + 1 - skip) % (length - skip) + skip }
}

impl Source for FrameTrace {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.target.update(now);
        self.target.request(now, target);
        self.target.update(now);
    }
    /// Returns to the first frame of the recordings.
    fn request_key_frame(&mut self, _now: Time) {
        self.position = 0;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        let captured = self.clock.take(now)?;
        self.target.update(captured);
        let exact = self.size();
        let frame = Frame { captured, size: self.bytes.round(exact), key: self.position == 0 };
        self.position = next_position(self.position, self.config.skip_frames, self.ladder.frames());
        Some(frame)
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.clock.due())
    }
    fn range(&self) -> (Rate, Rate) {
        self.target.range()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_early_polls_have_no_effect, bytes, due, frames_until, mean_bps, next_frame};
    use super::*;

    const START: Time = Time::from_millis(10);

    fn kbps(k: u64) -> Rate {
        Rate::from_kbps(k)
    }

    /// A recording with a mean of `mean` bytes after the first 20 frames: a key frame of three means, smaller frames
    /// that compensate for it, then a saw tooth from half a mean to one and a half.
    fn recording(mean: u32, frames: usize) -> Vec<u32> {
        (0..frames)
            .map(|n| match n {
                0 => mean * 3,
                1..20 => mean * 9 / 10,
                _ => mean / 2 + mean * ((n - 20) % 5) as u32 / 4,
            })
            .collect()
    }

    /// Rungs at 200, 400, 600 and 1000 kbps whose recorded rates are `factor` times the nominal ones at 30 frames per
    /// second.
    fn ladder(factor: f64) -> Ladder {
        let rung = |k: u64| (kbps(k), recording((k as f64 * 1000.0 / 240.0 * factor) as u32, 520));
        Ladder::new([600, 200, 1000, 400].map(rung).into()).unwrap()
    }

    fn source(factor: f64, change: impl FnOnce(&mut FrameTraceConfig)) -> FrameTrace {
        let mut config = FrameTraceConfig {
            video: VideoConfig { fps: 30.0, min: kbps(50), max: kbps(2000), start: kbps(200) },
            ..Default::default()
        };
        change(&mut config);
        FrameTrace::new(config, ladder(factor), START).unwrap()
    }

    #[test]
    fn long_run_rate_is_the_target_for_any_recorded_rate() {
        for factor in [0.4, 1.0, 1.3] {
            for k in [50, 120, 200, 250, 399, 400, 700, 999, 1000, 1600] {
                let mut source = source(factor, |c| c.video.start = kbps(k));
                let end = START + TimeDelta::from_secs(120);
                let ratio = mean_bps(&frames_until(&mut source, end), end) / (k as f64 * 1000.0);
                // The first 20 frames have 19 x 0.9 + 3 - 20 = 0.1 means too much, of 3600.
                assert!((0.999..=1.001).contains(&ratio), "{ratio} of {k} kbps");
            }
        }
    }

    #[test]
    fn mean_rate_holds_at_other_frame_rates() {
        let mut source = source(1.0, |c| (c.video.fps, c.video.start) = (25.0, kbps(500)));
        let end = START + TimeDelta::from_secs(120);
        let frames = frames_until(&mut source, end);
        assert_eq!(frames.len(), 3000);
        assert!((0.999..=1.001).contains(&(mean_bps(&frames, end) / 500e3)));
    }

    #[test]
    fn sizes_are_interpolated_between_rungs_and_scaled_beyond() {
        // At position 0: 3 means. 200 kbps is 833.3 bytes a frame, 400 is 1666.7; 250 lies at a quarter.
        for (k, expected) in [(200, 2500.0), (250, 3125.0), (400, 5000.0), (1000, 12_500.0), (50, 625.0), (2000, 25e3)]
        {
            let mut source = source(1.0, |c| c.video.start = kbps(k));
            let size = next_frame(&mut source).size.as_bytes() as f64;
            assert!((expected * 0.997..=expected * 1.003).contains(&size), "{size} bytes at {k} kbps");
        }
    }

    #[test]
    fn frames_stay_within_their_limits() {
        let mut small = source(1.0, |c| {
            (c.video.min, c.video.start) = (Rate::from_bps(2000), Rate::from_bps(2000)); // 8.3 bytes a frame
        });
        let mut large = source(1.0, |c| {
            (c.video.start, c.frame_max) = (kbps(2000), DataSize::from_bytes(9000));
        });
        let sizes = |s: &mut FrameTrace| -> Vec<u64> { (0..100).map(|_| next_frame(s).size.as_bytes()).collect() };
        assert_eq!(sizes(&mut small).iter().min(), Some(&10));
        let large = sizes(&mut large);
        assert_eq!(large.iter().max(), Some(&9000));
        assert!(large.iter().any(|b| *b < 9000));
    }

    #[test]
    fn positions_wrap_past_the_skipped_frames() {
        // 25 frames, 20 skipped: 0 to 24, then 20 to 24 repeatedly.
        let positions = core::iter::successors(Some(0), |position| Some(next_position(*position, 20, 25)));
        assert!(positions.take(36).eq((0..25).chain(20..25).chain(20..25).chain(20..21)));
        assert_eq!(next_position(24, 0, 25), 0);
    }

    #[test]
    fn key_frames_are_first_and_requested_and_periodic_only_if_not_skipped() {
        let keys = |source: &mut FrameTrace, n: usize| (0..n).filter(|_| next_frame(source).key).count();
        let mut skipping = source(1.0, |_| ());
        assert_eq!(keys(&mut skipping, 1), 1);
        assert_eq!(keys(&mut skipping, 1999), 0);
        let before = next_frame(&mut skipping).size;
        skipping.request_key_frame(due(&skipping));
        let key = next_frame(&mut skipping);
        assert!(key.key && key.size.as_bytes() >= 2 * before.as_bytes().min(1200));
        assert!(!next_frame(&mut skipping).key);
        let mut repeating = source(1.0, |c| c.skip_frames = 0);
        assert_eq!(keys(&mut repeating, 520 * 3), 3);
    }

    #[test]
    fn targets_set_within_the_reaction_delay_are_delayed() {
        let mut source = source(1.0, |_| ());
        source.set_target(START, kbps(400));
        let first = bytes(&[next_frame(&mut source)]);
        source.set_target(START + TimeDelta::from_millis(20), kbps(1000));
        // The frames at 33 to 167 ms are of 400 kbps (0.9 x 1667 = 1500), those from 200 ms on of 1000 (0.9 x 4167).
        let sizes: Vec<u64> = (0..7).map(|_| next_frame(&mut source).size.as_bytes()).collect();
        assert!((4980..=5020).contains(&first), "{first}");
        assert!(sizes[..5].iter().all(|b| (1490..=1510).contains(b)), "{sizes:?}");
        assert!(sizes[5..].iter().all(|b| (3730..=3770).contains(b)), "{sizes:?}");
    }

    #[test]
    fn early_polls_have_no_effect() {
        let ladder = Arc::new(ladder(1.0));
        let make = || FrameTrace::new(FrameTraceConfig::default(), Arc::clone(&ladder), START).unwrap();
        assert_early_polls_have_no_effect(make(), make(), START);
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let field = |change: fn(&mut FrameTraceConfig)| {
            let mut config = FrameTraceConfig::default();
            change(&mut config);
            FrameTrace::new(config, ladder(1.0), START).unwrap_err().field
        };
        assert_eq!(field(|c| c.video.fps = -1.0), "fps");
        assert_eq!(field(|c| c.video.min = Rate::ZERO), "min");
        assert_eq!(field(|c| c.video.max = kbps(149)), "max");
        assert_eq!(field(|c| c.video.start = kbps(149)), "start");
        assert_eq!(field(|c| c.reaction_delay = TimeDelta::from_secs(61)), "reaction_delay");
        assert_eq!(field(|c| c.skip_frames = 519), "skip_frames");
        assert_eq!(field(|c| c.skip_frames = usize::MAX), "skip_frames");
        assert_eq!(field(|c| c.frame_min = DataSize::ZERO), "frame_min");
        assert_eq!(field(|c| c.frame_max = DataSize::from_bytes(9)), "frame_max");
    }
}
