// SPDX-License-Identifier: MIT OR Apache-2.0
//! The score of a stream: how old and how good the picture is that a viewer sees, at each moment (`docs/explanation/score.md`).
//!
//! ```text
//! rendered frames --Viewer--> pieces of one frame each --ScoreSums--> seconds --> windows of 10 s --> score, losses
//! ```

use super::freezes::RecentGaps;
use paceline_netsim::flow::MediaKind;
use paceline_netsim::plan::{MediaUse, StreamPlan};
use paceline_units::{DataSize, Time, TimeDelta};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What media are for, which decides how much delay costs: nothing up to the first age, everything from the second on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgeLimits {
    /// The age up to which a picture is as good as a fresh one.
    pub free: TimeDelta,
    /// The age from which on a picture is worth nothing.
    pub useless: TimeDelta,
    /// Logarithm of the second age over the first.
    range: f64,
}

impl From<MediaUse> for AgeLimits {
    /// The limits of a use. Only the first ones of a conversation and of tele-operation are published; the others are choices.
    fn from(media_use: MediaUse) -> Self {
        let (free, useless) = match media_use {
            // Up to 150 ms most users are not disturbed (ITU-T G.114). With 1 s its upper limit, 400 ms, costs about half.
            MediaUse::Conversation => (150, 1000),
            // Latency begins to harm the most critical games at about 50 ms (Raaen and Grønli, NIK 2014), and opinions fall
            // linearly with it (Claypool and Finkel, NetGames 2014).
            MediaUse::Game => (60, 300),
            // At most 100 ms for the way of the video (3GPP TR 22.856). With 225 ms, which cost half, vision-based driving fails on
            // half of the routes (arXiv 2603.06850).
            MediaUse::Teleoperation => (100, 500),
            // One way, with a buffer of about a second.
            MediaUse::Contribution => (1000, 5000),
        };
        let (free, useless) = (TimeDelta::from_millis(free), TimeDelta::from_millis(useless));
        Self { free, useless, range: libm::log(useless.as_secs_f64() / free.as_secs_f64()) }
    }
}

impl AgeLimits {
    /// Returns D, the worth of a picture of this age, s: 1 up to the first limit, 0 from the second on, and logarithmic between,
    /// so that equal ratios of delay cost the same.
    pub fn worth(self, age: f64) -> f64 {
        let (free, useless) = self.seconds();
        if age <= free { 1.0 } else { (libm::log(useless / age) / self.range).max(0.0) }
    }

    /// Returns the integral of D over ages from 0 to `age`, s.
    fn integral(self, age: f64) -> f64 {
        let (free, useless) = self.seconds();
        if age <= free {
            return age;
        }
        let antiderivative = |age: f64, log: f64| age * (log + 1.0) / self.range;
        let age = age.min(useless);
        free + antiderivative(age, libm::log(useless / age)) - antiderivative(free, self.range)
    }

    fn seconds(self) -> (f64, f64) {
        (self.free.as_secs_f64(), self.useless.as_secs_f64())
    }
}

/// The quality of what is displayed, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quality {
    /// Video: logarithmic from the rate of the worst quality, bit/s, to that of the best; `range` is the logarithm of their ratio.
    Video { worst: f64, range: f64 },
    /// Audio with a frame of this length, s; `None` if it is not constant.
    Audio { interval: Option<f64> },
}

/// Lines of a picture, and the rates of the worst and of the best quality, bit/s. They are choices, within the range in which
/// encoders of calls change resolution and rate.
const VIDEO: [(f64, f64, f64); 3] = [(360.0, 60e3, 0.8e6), (720.0, 100e3, 2.5e6), (1080.0, 200e3, 5e6)];
/// The rates of a game, in those of the table: 1 and 30 Mbit/s for 1080 lines at 60 frames per second. A choice.
const GAME_RATES: (f64, f64) = (5.0, 6.0);
/// The time of capture over which a rate is measured.
const RATE_TIME: TimeDelta = TimeDelta::from_secs(1);
/// The least time over which the rate of a stream that has just begun is measured.
const RATE_TIME_MIN: TimeDelta = TimeDelta::from_millis(100);

impl Quality {
    fn of(plan: &StreamPlan, media_use: MediaUse) -> Option<Self> {
        match plan.kind {
            MediaKind::Audio => {
                let interval = plan.source.config.frame_interval();
                Some(Self::Audio { interval: interval.map(TimeDelta::as_secs_f64) })
            }
            MediaKind::Video => Some(Self::video(plan.source.lines?, media_use)),
        }
    }

    /// Rates between and beyond the given resolutions follow a power of the number of lines.
    fn video(lines: u32, media_use: MediaUse) -> Self {
        let lines = f64::from(lines);
        let upper = if lines <= VIDEO[1].0 { 1 } else { 2 };
        let (below, above) = (VIDEO[upper - 1], VIDEO[upper]);
        let part = libm::log(lines / below.0) / libm::log(above.0 / below.0);
        let between = |low: f64, high: f64| low * libm::pow(high / low, part);
        let (worst, best) = if media_use == MediaUse::Game { GAME_RATES } else { (1.0, 1.0) };
        let (worst, best) = (worst * between(below.1, above.1), best * between(below.2, above.2));
        Self::Video { worst, range: libm::log(best / worst) }
    }

    /// Returns Q of `frames` and their `bytes`, which were captured within `time`, s.
    fn from(self, frames: usize, bytes: u64, time: f64) -> f64 {
        match self {
            Self::Video { worst, range } => {
                let rate = bytes as f64 * 8.0 / time;
                (libm::log((rate / worst).max(1.0)) / range).min(1.0)
            }
            Self::Audio { interval } => {
                let played = interval.map_or(1.0, |interval| (frames as f64 * interval / time).min(1.0));
                played * played
            }
        }
    }
}

/// A part of the time in which a stream is active, in which one frame is displayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::metrics) struct Piece {
    limits: AgeLimits,
    from: Time,
    to: Time,
    /// Quality, and capture time; `None` if nothing is displayed.
    frame: Option<(f64, Time)>,
    /// The time from which on it is displayed only because the stream freezes.
    frozen: Time,
    /// The integral of the utility over all of it, s.
    utility: Utility,
}

#[derive(Clone)]
pub(in crate::metrics) struct Viewer {
    limits: AgeLimits,
    quality: Quality,
    /// The times in which the stream is active and that are not over.
    active: VecDeque<(Time, Time)>,
    /// Up to here pieces were returned.
    settled: Time,
    /// Quality and capture time of the displayed frame, and when it was rendered.
    displayed: Option<(f64, Time, Time)>,
    gaps: RecentGaps,
    /// Frames that were captured in the last second, and their bytes.
    recent: VecDeque<(Time, u64)>,
    bytes: u64,
}

impl Viewer {
    /// Creates the viewer of a stream that lives from `from` to `to`; `None` if its source has no resolution.
    pub fn new(plan: &StreamPlan, media_use: MediaUse, from: Time, to: Time) -> Option<Self> {
        let active = plan.active_times(from, to).into();
        Some(Self::with_quality(Quality::of(plan, media_use)?, media_use.into(), active))
    }

    fn with_quality(quality: Quality, limits: AgeLimits, active: VecDeque<(Time, Time)>) -> Self {
        Self {
            limits,
            quality,
            settled: active.front().map_or(Time::MAX, |times| times.0),
            active,
            displayed: None,
            gaps: RecentGaps::default(),
            recent: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Handles a frame that was rendered. Passes on what was displayed before it. A frame that is older than the displayed one
    /// changes nothing.
    pub fn rendered(&mut self, at: Time, captured: Time, size: DataSize, mut add: impl FnMut(&Piece)) {
        self.settle(at, &mut add);
        let Some((begin, _)) = self.active.front().copied().filter(|(begin, _)| *begin <= at) else { return };
        match self.displayed {
            Some((_, newest, _)) if captured <= newest => return,
            Some((_, _, since)) => self.gaps.add(at - since),
            None => {}
        }
        self.recent.push_back((captured, size.as_bytes()));
        self.bytes += size.as_bytes();
        let time = (captured - begin).min(RATE_TIME).max(RATE_TIME_MIN);
        while let Some((_, bytes)) = self.recent.front().copied().filter(|(first, _)| *first <= captured - time) {
            self.recent.pop_front();
            self.bytes -= bytes;
        }
        self.displayed = Some((self.quality.from(self.recent.len(), self.bytes, time.as_secs_f64()), captured, at));
    }

    /// Passes on what was displayed up to `at`.
    pub fn settle(&mut self, at: Time, mut add: impl FnMut(&Piece)) {
        while let Some((begin, end)) = self.active.front().copied()
            && begin < at
        {
            let to = end.min(at);
            let is_open = to < end;
            if self.settled < to {
                let frozen = self.displayed.filter(|(_, _, since)| self.gaps.is_freeze(to - *since));
                let frozen = frozen.map_or(to, |(_, _, since)| (since + self.gaps.mean()).max(self.settled).min(to));
                let frame = self.displayed.map(|(quality, captured, _)| (quality, captured));
                let from = core::mem::replace(&mut self.settled, to);
                let mut piece = Piece { limits: self.limits, from, to, frame, frozen, utility: Utility::default() };
                piece.utility = piece.integral(from, to);
                add(&piece);
            }
            if is_open {
                break;
            }
            // A stream that resumes displays nothing at first.
            self.active.pop_front();
            self.settled = self.active.front().map_or(Time::MAX, |times| times.0);
            (self.displayed, self.bytes) = (None, 0);
            self.recent.clear();
            self.gaps = RecentGaps::default();
        }
    }
}

/// The score of a stream in a window, and where its points went. The four add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// From 0, nothing was ever seen in time, to 100.
    pub score: f64,
    /// Points lost to a rate below that of the best quality; for audio, to concealed frames.
    pub lost_to_rate: f64,
    /// Points lost to freezes, beyond the usual time between two frames.
    pub lost_to_freezes: f64,
    /// Points lost to delay otherwise.
    pub lost_to_delay: f64,
}

impl Score {
    /// Returns the mean of scores with these weights; `None` without any.
    pub fn mean(scores: impl IntoIterator<Item = (Self, f64)>) -> Option<Self> {
        let (mut sums, mut weights) = ([0.0; 4], 0.0);
        for (score, weight) in scores {
            let Self { score, lost_to_rate, lost_to_freezes, lost_to_delay } = score;
            let parts = [score, lost_to_rate, lost_to_freezes, lost_to_delay];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += weight * part);
            weights += weight;
        }
        let [score, lost_to_rate, lost_to_freezes, lost_to_delay] = sums.map(|sum| sum / weights);
        (weights > 0.0).then_some(Self { score, lost_to_rate, lost_to_freezes, lost_to_delay })
    }
}

/// Seconds of a window in which the worst one weighs as much as the mean.
const POOLED_SECONDS: usize = 10;

/// The utility of each moment with more and more of what lowers it: quality alone, with the delay without freezes, with freezes.
type Utility = [f64; 3];

/// Sums over the active time of a stream in a window, from which its score follows.
#[derive(Clone, Debug, Default)]
pub(in crate::metrics) struct ScoreSums {
    /// Active time in the current second, s, and the integral of the utility over it.
    time: f64,
    second: Utility,
    /// Complete seconds of the current ten, with sum and least value.
    seconds: usize,
    sum: Utility,
    least: Utility,
    /// Sum over complete tens, weighted by their seconds.
    pooled: Utility,
    weight: f64,
}

impl ScoreSums {
    /// Adds the part of a piece that lies between `from` and `to`.
    pub fn add(&mut self, piece: &Piece, from: Time, to: Time) {
        let (mut at, to) = (piece.from.max(from), piece.to.min(to));
        while at < to {
            // The rest of the second in nanoseconds, so that rounding adds no empty parts.
            let rest = TimeDelta::from_secs_f64(1.0 - self.time).max(TimeDelta::from_nanos(1));
            let end = to.min(at + rest);
            // Most pieces lie in one second of each window.
            let is_whole = (at, end) == (piece.from, piece.to);
            let utility = if is_whole { piece.utility } else { piece.integral(at, end) };
            self.second.iter_mut().zip(utility).for_each(|(sum, utility)| *sum += utility);
            self.time += (end - at).as_secs_f64();
            if end - at == rest {
                self.end_second(1.0);
            }
            at = end;
        }
    }

    fn end_second(&mut self, length: f64) {
        let is_first = self.seconds == 0;
        for (index, value) in core::mem::take(&mut self.second).into_iter().enumerate() {
            let mean = value / length;
            self.sum[index] += mean;
            self.least[index] = if is_first { mean } else { self.least[index].min(mean) };
        }
        self.time = 0.0;
        self.seconds += 1;
        if self.seconds == POOLED_SECONDS {
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        let seconds = core::mem::take(&mut self.seconds) as f64;
        let (sum, least) = (core::mem::take(&mut self.sum), core::mem::take(&mut self.least));
        for (pooled, (sum, least)) in self.pooled.iter_mut().zip(sum.into_iter().zip(least)) {
            *pooled += seconds * (sum / seconds + least) / 2.0;
        }
        self.weight += seconds;
    }

    /// Returns the score; `None` if the stream was not active in the window.
    pub fn score(&self) -> Option<Score> {
        let mut all = self.clone();
        // A second of which less than half is known says little, unless it is all there is.
        if all.time >= 0.5 || (all.weight == 0.0 && all.seconds == 0 && all.time > 0.0) {
            all.end_second(all.time);
        }
        if all.seconds > 0 {
            all.end_window();
        }
        let [quality, delayed, score] = all.pooled.map(|pooled| 100.0 * pooled / all.weight);
        (all.weight > 0.0).then_some(Score {
            score,
            lost_to_rate: 100.0 - quality,
            lost_to_delay: quality - delayed,
            lost_to_freezes: delayed - score,
        })
    }
}

impl Piece {
    pub fn from(&self) -> Time {
        self.from
    }

    /// Returns the integral of the utility from `from` to `to`, s.
    fn integral(&self, from: Time, to: Time) -> Utility {
        let limits = self.limits;
        let seconds = (to - from).as_secs_f64();
        // Nothing is displayed: that is a freeze.
        let Some((quality, captured)) = self.frame else { return [seconds, seconds, 0.0] };
        let age = |at: Time| (at - captured).as_secs_f64().max(0.0);
        let worth = |from: Time, to: Time| limits.integral(age(to)) - limits.integral(age(from));
        // In a freeze the delay is that at its begin.
        let (displayed, frozen) = (worth(from, to), self.frozen.max(from));
        let delayed = match frozen < to {
            true => worth(from, frozen) + (to - frozen).as_secs_f64() * limits.worth(age(self.frozen)),
            false => displayed,
        };
        [seconds, delayed, displayed].map(|time| quality * time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MediaUse::{Contribution, Conversation, Game, Teleoperation};
    use proptest::prelude::*;

    /// A rendered frame: capture and delay, µs, and size, bytes.
    type Frame = (i64, i64, u64);

    fn at(us: i64) -> Time {
        Time::ZERO + TimeDelta::from_micros(us)
    }

    /// What is seen of frames in the order of their capture: 720p of a conversation, or 1080p of a game.
    fn viewer(media_use: MediaUse, active: VecDeque<(Time, Time)>) -> Viewer {
        let lines = if media_use == Game { 1080 } else { 720 };
        Viewer::with_quality(Quality::video(lines, media_use), media_use.into(), active)
    }

    /// Returns the score of frames for a window, s, of a stream that is active at these times, s.
    fn score_in(frames: &[Frame], media_use: MediaUse, window: (i64, i64), active: &[(i64, i64)]) -> Score {
        let (from, to) = (Time::from_secs(window.0), Time::from_secs(window.1));
        let active = active.iter().map(|(from, to)| (Time::from_secs(*from), Time::from_secs(*to)));
        let mut viewer = viewer(media_use, active.collect());
        let mut sums = ScoreSums::default();
        for (captured, delay, size) in frames {
            let add = |piece: &Piece| sums.add(piece, from, to);
            viewer.rendered(at(captured + delay), at(*captured), DataSize::from_bytes(*size), add);
        }
        viewer.settle(to, |piece| sums.add(piece, from, to));
        sums.score().unwrap()
    }

    fn score_of(frames: &[Frame], media_use: MediaUse, window: (i64, i64)) -> Score {
        score_in(frames, media_use, window, &[(0, window.1)])
    }

    /// Evenly spaced frames of 40 s: frames per second, delay, ms, and rate, bit/s.
    fn even(fps: i64, delay: i64, rate: f64) -> Vec<Frame> {
        let size = (rate / 8.0 / fps as f64).round() as u64;
        (0..40 * fps).map(|n| (n * 1_000_000 / fps, delay * 1000, size)).collect()
    }

    /// The score after the first ten seconds.
    fn steady(frames: &[Frame], media_use: MediaUse) -> f64 {
        score_of(frames, media_use, (10, 30)).score
    }

    #[track_caller]
    fn close(got: f64, expected: f64, error: f64) {
        assert!((got - expected).abs() <= error, "{got}, expected {expected}");
    }

    #[test]
    fn worth_of_ages_matches_vectors() {
        for (age, worth) in [(0.15, 1.0), (0.3, 0.6346), (0.4, 0.4830), (0.6, 0.2693), (1.0, 0.0), (5.0, 0.0)] {
            close(AgeLimits::from(Conversation).worth(age), worth, 5e-5);
        }
        // By the first limit all, by the last nothing, and at their geometric mean half.
        for (media_use, free, useless) in
            [(Game, 0.06, 0.3), (Teleoperation, 0.1, 0.5), (Contribution, 1.0, 5.0), (Conversation, 0.15, 1.0)]
        {
            let limits = AgeLimits::from(media_use);
            for (age, worth) in [(free, 1.0), (f64::sqrt(free * useless), 0.5), (useless, 0.0)] {
                close(limits.worth(age), worth, 1e-9);
            }
        }
        close(AgeLimits::from(Game).worth(0.1), 0.6826, 5e-5);
        // The integral is that of the worth.
        let steps =
            (0..12_000).map(|n| AgeLimits::from(Conversation).worth((f64::from(n) + 0.5) * 1e-4) * 1e-4).sum::<f64>();
        close(AgeLimits::from(Conversation).integral(1.2), steps, 1e-6);
    }

    #[test]
    fn quality_of_rates_matches_vectors() {
        for (kbps, quality) in
            [(50.0, 0.0), (100.0, 0.0), (250.0, 0.2847), (500.0, 0.5), (1e3, 0.7153), (2.5e3, 1.0), (9e3, 1.0)]
        {
            close(Quality::video(720, Conversation).from(30, (kbps * 125.0) as u64, 1.0), quality, 5e-5);
        }
        for (lines, worst, best) in VIDEO {
            for (media_use, factors) in [(Conversation, (1.0, 1.0)), (Contribution, (1.0, 1.0)), (Game, (5.0, 6.0))] {
                let Quality::Video { worst: low, range } = Quality::video(lines as u32, media_use) else { panic!() };
                close(low / worst, factors.0, 1e-9);
                close(low * libm::exp(range) / best, factors.1, 1e-9);
            }
        }
        // A game: 1, 5.477 and 30 Mbit/s.
        for (kbps, quality) in [(1e3, 0.0), (5477.2, 0.5), (30e3, 1.0)] {
            close(Quality::video(1080, Game).from(60, (kbps * 125.0) as u64, 1.0), quality, 5e-5);
        }
        let audio = Quality::Audio { interval: Some(0.02) };
        close(audio.from(50, 0, 1.0), 1.0, 0.0);
        close(audio.from(40, 0, 1.0), 0.64, 1e-9);
    }

    #[test]
    fn steady_calls_match_vectors() {
        for (fps, delay, rate, score) in [
            (30, 100, 2.5e6, 100.0),
            (30, 300, 2.5e6, 60.64),
            (30, 100, 0.5e6, 50.0),
            (10, 100, 2.5e6, 96.03),
            (30, 1000, 2.5e6, 0.0),
        ] {
            close(steady(&even(fps, delay, rate), Conversation), score, 0.01);
        }
        close(steady(&even(60, 80, 30e6), Game), 76.06, 0.01);
        assert!(steady(&even(30, 900, 2.5e6), Conversation) > 1.0);
    }

    /// Ten seconds at 100 ms. At 15 s a gap of 1 s and a frame interval begins; its frames are rendered at its end.
    #[test]
    fn a_freeze_weighs_as_in_its_vector() {
        let (begin, end) = (15_000_000, 16_000_000 + 1_000_000 / 30);
        let mut frames = even(30, 100, 2.5e6);
        for (captured, delay, _) in &mut frames {
            if (begin + 1..end).contains(&(*captured + *delay)) {
                *delay = end - *captured;
            }
        }
        let all = score_of(&frames, Conversation, (10, 20));
        close(all.score, 63.98, 0.1);
        assert!(all.lost_to_freezes > 30.0 && all.lost_to_delay < 5.0 && all.lost_to_rate < 0.1, "{all:?}");
    }

    #[test]
    fn losses_add_up_and_name_their_cause() {
        let slow = score_of(&even(30, 100, 0.5e6), Conversation, (10, 30));
        let late = score_of(&even(30, 300, 2.5e6), Conversation, (10, 30));
        for score in [slow, late] {
            close(score.score + score.lost_to_rate + score.lost_to_freezes + score.lost_to_delay, 100.0, 1e-9);
        }
        assert!(slow.lost_to_rate > 49.0 && slow.lost_to_freezes + slow.lost_to_delay < 1.0, "{slow:?}");
        assert!(late.lost_to_delay > 39.0 && late.lost_to_freezes + late.lost_to_rate < 1.0, "{late:?}");
    }

    #[test]
    fn time_in_which_a_stream_is_not_active_does_not_count() {
        let frames: Vec<Frame> =
            even(30, 100, 2.5e6).into_iter().filter(|f| !(10_000_000..20_000_000).contains(&f.0)).collect();
        let score = |active: &[(i64, i64)]| score_in(&frames, Conversation, (0, 30), active);
        let (paused, frozen) = (score(&[(0, 10), (20, 30)]), score(&[(0, 30)]));
        // Only the first 100 ms of each part show nothing.
        assert!(paused.score > 88.0 && paused.lost_to_freezes < 11.0, "{paused:?}");
        assert!(frozen.score < 70.0 && frozen.lost_to_freezes > 30.0, "{frozen:?}");
        let nothing = score_of(&[], Conversation, (0, 20));
        assert_eq!((nothing.score, nothing.lost_to_freezes), (0.0, 100.0));
    }

    proptest! {
        /// Less delay, a larger frame and one more frame of a constant rate never lower the score, and it is from 0 to 100. (A frame of
        /// fewer bytes than usual lowers the rate.)
        #[test]
        fn better_calls_have_no_lower_score(
            delays in prop::collection::vec(0_i64..1500, 2..60),
            interval in 1_i64..400,
            size in 0_u64..40_000,
            changed in any::<prop::sample::Index>(),
            less in 0.0..1.0_f64,
            media_use in prop::sample::select(vec![Conversation, Game, Teleoperation, Contribution]),
        ) {
            // Rendered in the order of their capture, as a receiver renders them.
            let mut rendered = 0;
            let frames: Vec<Frame> = delays.iter().zip(1..).map(|(delay, n)| {
                let captured = n * interval * 1000;
                rendered = rendered.max(captured + delay * 1000);
                (captured, rendered - captured, size)
            }).collect();
            let index = changed.index(frames.len());
            let score = |frames: &[Frame]| score_of(frames, media_use, (0, 26)).score;
            let all = score(&frames);
            prop_assert!((0.0..=100.0 + 1e-9).contains(&all), "{all}");
            let before = index.checked_sub(1).map_or(0, |before| frames[before].0 + frames[before].1);
            let (captured, delay, _) = frames[index];
            let mut faster = frames.clone();
            faster[index].1 -= ((captured + delay - before.max(captured)) as f64 * less) as i64;
            prop_assert!(score(&faster) >= all - 1e-9, "delay: {} < {all}", score(&faster));
            let mut larger = frames.clone();
            larger[index].2 += 5_000;
            prop_assert!(score(&larger) >= all - 1e-9, "size: {} < {all}", score(&larger));
            let mut fewer = frames.clone();
            fewer.remove(index);
            prop_assert!(score(&fewer) <= all + 1e-9, "frame: {} > {all}", score(&fewer));
        }
    }
}
