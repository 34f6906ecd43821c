// SPDX-License-Identifier: MIT OR Apache-2.0
//! The statistical model of a live video encoder (RFC 8593, section 5).
//!
//! It models three properties of real encoders that an ideal source lacks:
//!
//! * *Time damping* (5.1): after a reaction to a new target the encoder does not react again for tau_v. A target set in
//!   between is applied at the end of tau_v, see [`EncoderConfig::reaction_delay`].
//! * *Transient* (5.2): a key frame, or a sudden change of target, is one large frame followed by K_d - 1 smaller
//!   frames, so that the K_d frames together have the mean rate. With B0 = R_v / 8 / FPS, the large frame has r B0
//!   bytes (r = K_B / B0) and each of the others (K_d - r) / (K_d - 1) B0.
//! * *Steady state* (5.3): size B = B0 (1 + X), interval t = t0 (1 + Y), t0 = 1 / FPS, where X and Y are independent
//!   zero-mean Laplace variables with the scales SCALE_B and SCALE_t.
//!
//! Interpretations where the RFC leaves a choice:
//!
//! * The model as written allows negative frame sizes and intervals (X, Y < -1, 6 draws in 10 000). X and Y are clamped
//!   to [-0.9, 0.9]. The symmetric clamp keeps the mean at zero for any scale, so the long-run rate is R_v without a
//!   correction, and captured times strictly increase.
//! * K_B is given for 1 Mbps only. It scales with the rate: r is constant, 13.5 KB / 4.17 KB = 3.24.
//! * A transient that begins before the last has ended has to compensate for the sum of both excesses. Its large frame
//!   is limited so that no later frame falls below a tenth of B0, and the mean holds even if key frames are requested
//!   continuously.
//! * The transient lasts K_d frames (267 ms by default), although section 5.2 mentions tau_v (200 ms). Its frame sizes
//!   have no noise. Its intervals do, because the camera is independent of the encoder.
//! * The stream begins with a key frame and thus with a transient. A transient after a change of target is not a key
//!   frame.
//! * The range limits the target (5.4), not each frame.
//!
//! Each frame takes two random draws (size, interval), so that the noise of the n-th frame does not depend on earlier
//! decisions of the controller.

use super::damped_target::DampedTarget;
use super::entry::{FPS, MAX, MIN, RESOLUTION};
use super::error::check;
use super::rounding::ByteRounder;
use super::{Frame, Source, SourceConfig, SourceEntry, SourceError, VideoConfig};
use crate::flow::parameter::{Parameter, ParameterKind};
use crate::flow::stream_info::MediaKind;
use paceline_units::{RandomStream, Rate, Time, TimeDelta};

pub(super) const ENTRY: SourceEntry = SourceEntry {
    name: "encoder",
    summary: "statistical video encoder of RFC 8593, section 5",
    kind: MediaKind::Video,
    parameters: &[
        FPS,
        MIN,
        MAX,
        RESOLUTION,
        REACTION_DELAY,
        Parameter::new("size_noise", ParameterKind::Number(0.0, 0.5), "0.15")
            .about("scale of the Laplace noise on frame sizes (RFC 8593, SCALE_B)"),
        Parameter::new("interval_noise", ParameterKind::Number(0.0, 0.5), "0.15")
            .about("scale of the Laplace noise on frame intervals (RFC 8593, SCALE_t)"),
        Parameter::new("key_ratio", ParameterKind::Number(1.0, f64::MAX), "3.24")
            .about("size of a key frame over a mean frame (RFC 8593, K_B / B_0)"),
        Parameter::new("key_frames", ParameterKind::Count(1, u32::MAX), "8")
            .about("frames over which a key frame's excess is compensated (RFC 8593, K_d)"),
        Parameter::optional("key_change", ParameterKind::Number(0.0, f64::MAX), "no such frame").about(
            "a change of the target by more than this share of it makes a frame as large as a key frame (RFC 8593, \
             section 7)",
        ),
        Parameter::optional("saturation", ParameterKind::Rate, "no such rate")
            .about("rate above which a picture does not become better, so that it takes no more; not in RFC 8593"),
        Parameter::optional(
            "key_period",
            ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_nanos(i64::MAX)),
            "only on request",
        )
        .about("time between key frames"),
    ],
    implied_by: None,
    configure: |setup| {
        let values = setup.values;
        setup.with_lines(EncoderConfig {
            video: setup.video(),
            reaction_delay: values.time("reaction_delay"),
            key_frames: values.count("key_frames"),
            key_ratio: values.number("key_ratio"),
            key_change: values.optional_number("key_change"),
            saturation: values.optional_rate("saturation"),
            size_noise: values.number("size_noise"),
            interval_noise: values.number("interval_noise"),
            key_period: values.optional_time("key_period"),
        })
    },
};

/// The time in which a live encoder that has reacted ignores other targets.
pub(super) const REACTION_DELAY: Parameter =
    Parameter::new("reaction_delay", ParameterKind::Time(TimeDelta::ZERO, TimeDelta::from_secs(60)), "200 ms")
        .about("time in which a source that has reacted to a target ignores others (RFC 8593, tau_v)");

/// The configuration of an [`Encoder`]. The default is RFC 8593, figure 2, without transients at changes of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderConfig {
    /// FPS, R_min (at least 10 bytes per frame), R_max, and R_v before the first reaction (figure 2: 30 Hz, 150 kbps, 1.5 Mbps,
    /// 1 Mbps).
    pub video: VideoConfig,
    /// tau_v, the minimum time between two reactions, 0 to 60 s (section 5.1; figure 2: 0.2 s). The first target is
    /// applied at once. A target set too early is applied when the time is over, unless a later one replaces it.
    pub reaction_delay: TimeDelta,
    /// K_d, the number of frames in a transient with the large one, at least 1 (section 5.2; figure 2: 8). 1 means no
    /// transient and requires a `key_ratio` of 1.
    pub key_frames: u32,
    /// K_B / B0, the size of the large frame in mean frames, from 1 (no burst) to 1 + 0.9 (K_d - 1), where the other
    /// frames have a tenth of a mean frame (section 5.2; figure 2: 13.5 KB at 1 Mbps and 30 Hz, 3.24).
    pub key_ratio: f64,
    /// A change of the target by more than this share of the previous target starts a transient (example in section 7:
    /// 0.1). `None`: only key frames do, as in calls of Chromium (docs/algorithms/googcc.md).
    pub key_change: Option<f64>,
    /// The rate above which pictures do not become better: a higher target has no effect. Unlike `max`, the sender does
    /// not know it. Not in the RFC.
    pub saturation: Option<Rate>,
    /// SCALE_B, the scale of the Laplace noise on the frame size in mean frame sizes, 0 (none) to 0.5 (section 5.3;
    /// figure 2: 0.15).
    pub size_noise: f64,
    /// SCALE_t, the scale of the Laplace noise on the frame interval in mean intervals, 0 (none) to 0.5 (section 5.3;
    /// figure 2: 0.15).
    pub interval_noise: f64,
    /// The time from one key frame to the next unless one is requested in between, longer than K_d frames. `None`
    /// (default): key frames only at the start and on request, as in live encoders. Not in the RFC.
    pub key_period: Option<TimeDelta>,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            video: VideoConfig {
                fps: 30.0,
                min: Rate::from_kbps(150),
                max: Rate::from_kbps(1500),
                start: Rate::from_kbps(1000),
            },
            reaction_delay: TimeDelta::from_millis(200),
            key_frames: 8,
            key_ratio: 3.24,
            key_change: None,
            saturation: None,
            size_noise: 0.15,
            interval_noise: 0.15,
            key_period: None,
        }
    }
}

impl SourceConfig for EncoderConfig {
    fn build(&self, start: Time, random: RandomStream) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Encoder::new(self.clone(), start, random)?))
    }
    fn range(&self) -> (Rate, Rate) {
        self.video.range()
    }
}

/// A video source with the delayed reaction, bursts and noise of a live encoder. Its long-run rate is the target.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: EncoderConfig,
    target: DampedTarget,
    random: RandomStream,
    bytes: ByteRounder,
    start: Time,
    /// Time from the start to the next frame, in mean intervals: without noise a whole number, so that nothing drifts.
    phase: f64,
    due: Time,
    transient: Transient,
    /// The next frame starts a transient because the target has changed suddenly.
    jumped: bool,
    /// The next frame is a key frame.
    key: bool,
    last_key: Time,
}

/// A transient in progress, in units of B0.
#[derive(Clone, Debug, Default)]
struct Transient {
    /// Excess over the mean that later frames have to compensate for.
    excess: f64,
    left: u32,
}

/// The largest deviation of a frame from the mean, as a fraction of the mean.
const DEVIATION_MAX: f64 = 0.9;

impl Encoder {
    /// Creates a source whose first frame, a key frame, is due at `start`. The noise is drawn from `random`.
    pub fn new(config: EncoderConfig, start: Time, random: RandomStream) -> Result<Self, SourceError> {
        config.check()?;
        let target = DampedTarget::new(&config.video, config.reaction_delay);
        Ok(Self {
            target,
            random,
            bytes: ByteRounder::default(),
            start,
            phase: 0.0,
            due: start,
            transient: Transient::default(),
            jumped: false,
            key: true,
            last_key: start,
            config,
        })
    }

    fn update_target(&mut self, now: Time) {
        if let (Some(change), Some(threshold)) = (self.target.update(now), self.config.key_change) {
            let (from, to) = (change.from.as_bps_f64(), change.to.as_bps_f64());
            self.jumped |= (to - from).abs() > threshold * from;
        }
    }

    /// Draws zero-mean noise.
    fn noise(&mut self, scale: f64) -> f64 {
        let x = self.random.laplace(1.0); // drawn even if unused
        if scale > 0.0 { (x * scale).clamp(-DEVIATION_MAX, DEVIATION_MAX) } else { 0.0 }
    }
}

impl Transient {
    /// Starts or restarts the transient and returns the size of the large frame.
    fn start(&mut self, frames: u32, ratio: f64) -> f64 {
        self.left = frames - 1;
        let room = DEVIATION_MAX * f64::from(self.left) - self.excess;
        let excess = (ratio - 1.0).min(room).max(0.0);
        self.excess += excess;
        1.0 + excess
    }

    /// Returns the size of the next small frame, or `None` if the transient is over.
    fn next(&mut self) -> Option<f64> {
        let share = (self.left > 0).then(|| self.excess / f64::from(self.left))?;
        self.left -= 1;
        self.excess -= share;
        Some(1.0 - share)
    }
}

impl EncoderConfig {
    fn check(&self) -> Result<(), SourceError> {
        self.video.check(10.0)?;
        let delay = self.reaction_delay;
        check((TimeDelta::ZERO..=TimeDelta::from_secs(60)).contains(&delay), "reaction_delay", delay, "0 to 60 s")?;
        check((1..=10_000).contains(&self.key_frames), "key_frames", self.key_frames, "1 to 10000 frames")?;
        let most = 1.0 + DEVIATION_MAX * f64::from(self.key_frames - 1);
        let expected = "1 to 1 + 0.9 (`key_frames` - 1) mean frames";
        check((1.0..=most).contains(&self.key_ratio), "key_ratio", self.key_ratio, expected)?;
        for (field, scale) in [("size_noise", self.size_noise), ("interval_noise", self.interval_noise)] {
            check((0.0..=0.5).contains(&scale), field, scale, "0 to 0.5")?;
        }
        if let Some(threshold) = self.key_change {
            check(threshold >= 0.0, "key_change", threshold, "at least 0")?;
        }
        if let Some(rate) = self.saturation {
            check(rate >= self.video.min, "saturation", rate, "at least `min`")?;
        }
        if let Some(period) = self.key_period {
            let transient = f64::from(self.key_frames) / self.video.fps;
            let ok = period.as_secs_f64() > transient;
            check(ok, "key_period", period, "longer than `key_frames` / `fps`")?;
        }
        Ok(())
    }
}

impl Source for Encoder {
    fn set_target(&mut self, now: Time, target: Rate) {
        self.update_target(now);
        self.target.request(now, target);
        self.update_target(now);
    }
    /// Makes the next frame a key frame, independently of tau_v.
    fn request_key_frame(&mut self, _now: Time) {
        self.key = true;
    }
    fn poll_frame(&mut self, now: Time) -> Option<Frame> {
        if now < self.due {
            return None;
        }
        let captured = self.due;
        self.update_target(captured);
        let (size_noise, interval_noise) = (self.noise(self.config.size_noise), self.noise(self.config.interval_noise));

        let periodic = self.config.key_period.is_some_and(|period| captured - self.last_key >= period);
        let key = core::mem::take(&mut self.key) || periodic;
        if key {
            self.last_key = captured;
        }
        let part = if core::mem::take(&mut self.jumped) || key {
            self.transient.start(self.config.key_frames, self.config.key_ratio)
        } else {
            self.transient.next().unwrap_or(1.0 + size_noise)
        };
        let target = self.target.current();
        let rate = self.config.saturation.map_or(target, |most| most.min(target));
        let mean = rate.as_bps_f64() / (8.0 * self.config.video.fps);
        self.phase += 1.0 + interval_noise;
        self.due = self.start + TimeDelta::from_secs_f64(self.phase / self.config.video.fps);
        Some(Frame { captured, size: self.bytes.round(mean * part), key })
    }
    fn poll_timeout(&self) -> Option<Time> {
        Some(self.due)
    }
    fn range(&self) -> (Rate, Rate) {
        self.target.range()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_early_polls_have_no_effect, due, frames_until, mean_bps, next_frame};
    use super::*;
    use paceline_units::RandomStreams;

    const START: Time = Time::from_millis(40);

    fn encoder(change: impl FnOnce(&mut EncoderConfig)) -> Result<Encoder, SourceError> {
        let mut config = EncoderConfig::default();
        change(&mut config);
        Encoder::new(config, START, RandomStreams::new(1).stream("encoder"))
    }

    fn quiet(config: &mut EncoderConfig) {
        config.size_noise = 0.0;
        config.interval_noise = 0.0;
    }

    fn sizes(source: &mut Encoder, n: usize) -> Vec<u64> {
        (0..n).map(|_| next_frame(source).size.as_bytes()).collect()
    }

    #[test]
    fn default_is_figure_2() {
        let c = EncoderConfig::default();
        let b0 = c.video.start.as_bps_f64() / 8.0 / c.video.fps;
        assert!((b0 - 4167.0).abs() < 1.0);
        assert!((c.key_ratio * b0 - 13_500.0).abs() < 0.001);
        assert_eq!(c.key_change, None);
    }

    #[test]
    fn long_run_rate_is_the_target() {
        // 18 000 frames: the mean of B and that of t have standard errors of 0.21 / sqrt(18000) = 0.16 % each.
        for kbps in [150, 600, 1500] {
            for scale in [0.15, 0.5] {
                let mut source = encoder(|c| {
                    (c.size_noise, c.interval_noise) = (scale, scale);
                    c.video.start = Rate::from_kbps(kbps);
                })
                .unwrap();
                let end = START + TimeDelta::from_secs(600);
                let frames = frames_until(&mut source, end);
                let ratio = mean_bps(&frames, end) / (kbps as f64 * 1000.0);
                assert!((0.99..=1.01).contains(&ratio), "{ratio} of {kbps} kbps at scale {scale}");
                let fps = frames.len() as f64 / 600.0;
                assert!((29.7..=30.3).contains(&fps), "{fps} frames a second");
            }
        }
    }

    #[test]
    fn noise_has_the_configured_scale() {
        // The mean of |X| of a Laplace variable is its scale; the clamp reduces it by 0.15 exp(-6) = 0.0004.
        let mut source = encoder(|_| ()).unwrap();
        let frames = frames_until(&mut source, START + TimeDelta::from_secs(600));
        let (b0, t0) = (1e6 / 8.0 / 30.0, 1.0 / 30.0);
        let steady = &frames[8..];
        let n = (steady.len() - 1) as f64;
        let b: f64 = steady[1..].iter().map(|f| (f.size.as_bytes() as f64 / b0 - 1.0).abs()).sum();
        let t: f64 = steady.windows(2).map(|w| ((w[1].captured - w[0].captured).as_secs_f64() / t0 - 1.0).abs()).sum();
        assert!((0.145..=0.155).contains(&(b / n)), "{}", b / n);
        assert!((0.145..=0.155).contains(&(t / n)), "{}", t / n);
    }

    #[test]
    fn a_transient_is_one_large_frame_and_seven_small_ones() {
        // 13 500 bytes, then (8 x 4166.7 - 13 500) / 7 = 2833.3 each: 33 333 in all, then 4166.7 each.
        let mut source = encoder(quiet).unwrap();
        let first = sizes(&mut source, 8);
        assert_eq!(first[0], 13_500);
        assert!(first[1..].iter().all(|b| (2833..=2834).contains(b)), "{first:?}");
        assert!((33_332..=33_334).contains(&first.iter().sum::<u64>()));
        assert!(sizes(&mut source, 20).iter().all(|b| (4166..=4167).contains(b)));

        source.request_key_frame(due(&source));
        let key = next_frame(&mut source);
        assert!(key.key && (13_499..=13_501).contains(&key.size.as_bytes()));
        assert!(!next_frame(&mut source).key);
    }

    #[test]
    fn a_transient_scales_with_the_rate() {
        let mut source = encoder(|c| {
            quiet(c);
            c.video.start = Rate::from_kbps(150); // B0 = 625: 2025, then 425
        })
        .unwrap();
        assert_eq!(sizes(&mut source, 9), [2025, 425, 425, 425, 425, 425, 425, 425, 625]);
    }

    #[test]
    fn large_target_changes_start_a_transient_and_small_ones_do_not() {
        for (kbps, large) in [(1090, false), (910, false), (1110, true), (890, true)] {
            let mut source = encoder(|c| {
                quiet(c);
                c.key_change = Some(0.1);
            })
            .unwrap();
            sizes(&mut source, 8);
            source.set_target(due(&source), Rate::from_kbps(kbps));
            let frame = next_frame(&mut source);
            let b0 = kbps as f64 * 1000.0 / 8.0 / 30.0;
            let part = frame.size.as_bytes() as f64 / b0;
            let expected = if large { 3.24 } else { 1.0 };
            assert!((expected - 0.01..=expected + 0.01).contains(&part), "{part} mean frames at {kbps} kbps");
            assert!(!frame.key, "a transient is not a key frame");
        }
        let mut source = encoder(quiet).unwrap();
        sizes(&mut source, 8);
        source.set_target(due(&source), Rate::from_kbps(500));
        assert!((2083..=2084).contains(&sizes(&mut source, 1)[0]));
    }

    /// At 1 Mbit/s a frame has 4167 bytes, and no more at 1.5 Mbit/s; a target below has its effect.
    #[test]
    fn saturated_pictures_take_no_more() {
        let mut source = encoder(|c| {
            quiet(c);
            (c.key_frames, c.key_ratio) = (1, 1.0);
            c.saturation = Some(Rate::from_kbps(1000));
        })
        .unwrap();
        for (kbps, bytes) in [(1500, 4166..=4167), (1000, 4166..=4167), (500, 2083..=2084)] {
            source.set_target(due(&source) + TimeDelta::from_secs(1), Rate::from_kbps(kbps));
            let size = sizes(&mut source, 40)[39];
            assert!(bytes.contains(&size), "{size} at {kbps} kbit/s");
        }
        assert_eq!(source.range().1, Rate::from_kbps(1500), "the sender does not know it");
    }

    #[test]
    fn targets_set_within_the_reaction_delay_are_delayed() {
        let mut source = encoder(|c| {
            quiet(c);
            (c.key_frames, c.key_ratio) = (1, 1.0);
        })
        .unwrap();
        // Reaction at 0 ms; the frames at 33, 67, 100, 133, 167 ms do not use the targets set at 50 and 60 ms.
        source.set_target(START, Rate::from_kbps(480)); // 2000 bytes a frame
        assert_eq!(sizes(&mut source, 2), [2000, 2000]);
        source.set_target(START + TimeDelta::from_millis(50), Rate::from_kbps(720));
        source.set_target(START + TimeDelta::from_millis(60), Rate::from_kbps(960)); // 4000 bytes
        assert_eq!(sizes(&mut source, 6), [2000, 2000, 2000, 2000, 4000, 4000]);
    }

    #[test]
    fn mean_rate_holds_with_continuous_key_frame_requests() {
        for every in [1, 2, 3, 5] {
            let mut source = encoder(quiet).unwrap();
            let sizes: Vec<u64> = (0..3000)
                .map(|n| {
                    if n % every == 0 {
                        source.request_key_frame(due(&source));
                    }
                    next_frame(&mut source).size.as_bytes()
                })
                .collect();
            let ratio = sizes.iter().sum::<u64>() as f64 / 3000.0 / (1e6 / 240.0);
            assert!((0.99..=1.01).contains(&ratio), "{ratio} with a key frame every {every}");
            let b0 = 1e6 / 240.0;
            assert!(*sizes.iter().min().unwrap() as f64 >= 0.099 * b0);
            assert!(*sizes.iter().max().unwrap() as f64 <= 3.25 * b0);
        }
    }

    #[test]
    fn periodic_key_frames_are_on_time_and_keep_the_mean_rate() {
        let mut source = encoder(|c| c.key_period = Some(TimeDelta::from_secs(2))).unwrap();
        let end = START + TimeDelta::from_secs(600);
        let frames = frames_until(&mut source, end);
        let keys: Vec<Time> = frames.iter().filter(|f| f.key).map(|f| f.captured).collect();
        assert!((290..=300).contains(&keys.len()), "{}", keys.len());
        for pair in keys.windows(2) {
            let gap = (pair[1] - pair[0]).as_secs_f64();
            assert!((2.0..=2.07).contains(&gap), "{gap}");
        }
        let ratio = mean_bps(&frames, end) / 1e6;
        assert!((0.99..=1.01).contains(&ratio), "{ratio}");
    }

    #[test]
    fn noise_is_independent_of_the_controller() {
        let (mut a, mut b) = (encoder(|_| ()).unwrap(), encoder(|_| ()).unwrap());
        for n in 0..300 {
            if n % 7 == 0 {
                b.set_target(due(&b), Rate::from_kbps(200 + n));
                b.request_key_frame(due(&b));
            }
            assert_eq!(next_frame(&mut a).captured, next_frame(&mut b).captured);
        }
    }

    #[test]
    fn early_polls_have_no_effect() {
        assert_early_polls_have_no_effect(encoder(|_| ()).unwrap(), encoder(|_| ()).unwrap(), START);
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let field = |change: fn(&mut EncoderConfig)| encoder(change).unwrap_err().field;
        assert_eq!(field(|c| c.video.fps = f64::NAN), "fps");
        assert_eq!(field(|c| c.video.min = Rate::from_bps(2399)), "min"); // 10 bytes x 30 x 8 = 2400
        assert_eq!(field(|c| c.video.max = Rate::from_kbps(100)), "max");
        assert_eq!(field(|c| c.video.start = Rate::from_kbps(1501)), "start");
        assert_eq!(field(|c| c.key_change = Some(f64::NAN)), "key_change");
        assert_eq!(field(|c| c.saturation = Some(Rate::from_kbps(149))), "saturation");
        assert_eq!(field(|c| c.reaction_delay = TimeDelta::from_millis(-1)), "reaction_delay");
        assert_eq!(field(|c| c.key_frames = 0), "key_frames");
        assert_eq!(field(|c| c.key_ratio = 0.99), "key_ratio");
        assert_eq!(field(|c| c.key_ratio = 7.4), "key_ratio"); // 1 + 0.9 x 7 = 7.3
        assert_eq!(field(|c| c.key_ratio = f64::NAN), "key_ratio");
        assert_eq!(field(|c| c.size_noise = -0.1), "size_noise");
        assert_eq!(field(|c| c.interval_noise = 0.6), "interval_noise");
        assert_eq!(field(|c| c.key_period = Some(TimeDelta::from_millis(266))), "key_period");
        assert!(encoder(|c| c.key_ratio = 7.3).is_ok());
    }
}
