// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive jitter buffer of a receiver: it holds a complete frame until its playout time, so that frames follow each other evenly
//! (`docs/explanation/score.md`, "The jitter buffer").
//!
//! ```text
//! complete frames --JitterBuffer--> frames with the times at which they are rendered
//! ```

use paceline_netsim::plan::MediaUse;
use paceline_units::{DataSize, Time, TimeDelta};
use std::collections::VecDeque;

/// The time over which the fastest frame is the reference: `max_history_ms` of NetEQ in libwebrtc.
const REFERENCE_TIME: TimeDelta = TimeDelta::from_secs(2);
/// Standard deviations of jitter that the buffer covers: 99 % of a normal distribution, as in libwebrtc's `JitterEstimator`.
const COVERED: f64 = 2.33;
/// The change of delay above which it counts as this one, so that one late frame is not jitter: in standard deviations, and a constant
/// part, s. As in `JitterEstimator`.
const OUTLIER: (f64, f64) = (3.5, 0.5e-3);
/// Frames over which jitter is averaged, as in `JitterEstimator`.
const MEMORY: f64 = 400.0;
/// The variance of jitter before the first frame, and the least one, s². As in `JitterEstimator`.
const VARIANCE: (f64, f64) = (4e-6, 1e-6);
/// The largest change of the length of the buffer, per time of capture, as in libwebrtc's `VCMTiming`.
const CHANGE: f64 = 0.1;

/// Mean and variance of the change of delay from frame to frame, s and s².
#[derive(Clone, Copy, Debug)]
struct Jitter {
    frames: f64,
    mean: f64,
    variance: f64,
}

impl Jitter {
    fn add(&mut self, change: f64) {
        let limit = OUTLIER.0 * libm::sqrt(self.variance) + OUTLIER.1;
        let deviation = change.clamp(-limit, limit) - self.mean;
        self.frames = (self.frames + 1.0).min(MEMORY);
        let weight = 1.0 / self.frames;
        self.mean += weight * deviation;
        self.variance = ((1.0 - weight) * self.variance + weight * deviation * deviation).max(VARIANCE.1);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::metrics) struct Rendered {
    pub at: Time,
    pub captured: Time,
    pub size: DataSize,
}

#[derive(Clone, Debug)]
pub(in crate::metrics) struct JitterBuffer {
    /// Whether frames wait at all.
    holds: bool,
    /// When frames of the last [`REFERENCE_TIME`] were complete, and their delays, without those that a later one was faster than.
    fastest: VecDeque<(Time, TimeDelta)>,
    /// Capture time and delay of the last frame.
    last: Option<(Time, TimeDelta)>,
    jitter: Jitter,
    /// How much later than the fastest frame others are rendered.
    length: TimeDelta,
    waiting: VecDeque<Rendered>,
}

impl JitterBuffer {
    /// Creates the buffer of a receiver. Pictures of a game and of a machine that a person drives are rendered at once, as receivers
    /// do that are asked for no playout delay.
    pub fn new(media_use: MediaUse) -> Self {
        Self {
            holds: matches!(media_use, MediaUse::Conversation | MediaUse::Contribution),
            fastest: VecDeque::new(),
            last: None,
            jitter: Jitter { frames: 0.0, mean: 0.0, variance: VARIANCE.0 },
            length: TimeDelta::ZERO,
            waiting: VecDeque::new(),
        }
    }

    /// Handles a frame that is complete. It is rendered at its playout time; at once if that is over; and not before the last one.
    pub fn complete(&mut self, at: Time, captured: Time, size: DataSize) {
        let playout = if self.holds { self.playout(at, captured) } else { at };
        let previous = self.waiting.back().map_or(at, |frame| frame.at);
        self.waiting.push_back(Rendered { at: playout.max(at).max(previous), captured, size });
    }

    /// Returns the next frame that is rendered up to `until`.
    pub fn next(&mut self, until: Time) -> Option<Rendered> {
        self.waiting.front().filter(|frame| frame.at <= until)?;
        self.waiting.pop_front()
    }

    /// Returns the playout time of a frame: its capture, the least delay of the last [`REFERENCE_TIME`], and the length of the buffer.
    fn playout(&mut self, at: Time, captured: Time) -> Time {
        let delay = at - captured;
        while self.fastest.back().is_some_and(|(_, slower)| *slower >= delay) {
            self.fastest.pop_back();
        }
        self.fastest.push_back((at, delay));
        while self.fastest.front().is_some_and(|(complete, _)| *complete < at - REFERENCE_TIME) {
            self.fastest.pop_front();
        }
        if let Some((previous, previous_delay)) = self.last.filter(|(previous, _)| *previous < captured) {
            self.jitter.add((delay - previous_delay).as_secs_f64());
            let wanted = TimeDelta::from_secs_f64(COVERED * libm::sqrt(self.jitter.variance));
            let most = (captured - previous).scale(CHANGE);
            self.length = wanted.max(self.length - most).min(self.length + most);
        }
        self.last = Some((captured, delay));
        captured + self.fastest[0].1 + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MediaUse::{Contribution, Conversation, Game, Teleoperation};

    fn ms(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// Returns the delays, ms, after which frames each 40 ms are rendered that are complete after `delays`.
    fn rendered(media_use: MediaUse, delays: &[i64]) -> Vec<i64> {
        let mut buffer = JitterBuffer::new(media_use);
        let mut all = Vec::new();
        for (delay, captured) in delays.iter().zip((0..).step_by(40)) {
            buffer.complete(ms(captured + delay), ms(captured), DataSize::from_bytes(1));
            all.extend(core::iter::from_fn(|| buffer.next(ms(captured))));
        }
        all.extend(core::iter::from_fn(|| buffer.next(Time::MAX)));
        assert!(all.is_sorted_by_key(|frame| frame.at) && all.len() == delays.len());
        all.iter().map(|frame| (frame.at - frame.captured).as_nanos() / 1_000_000).collect()
    }

    /// By hand: 4 ms² before the first frame. A change of 20 ms counts as 3.5 * 2 + 0.5 = 7.5 ms, then 56.25 ms² and a mean of 7.5 ms;
    /// one of -20 ms is within 3.5 * 7.5 + 0.5 = 26.75 ms, then (56.25 + 27.5²) / 2 ms², and a mean of (7.5 - 20) / 2 ms.
    #[test]
    fn jitter_matches_values_computed_by_hand() {
        let mut jitter = Jitter { frames: 0.0, mean: 0.0, variance: VARIANCE.0 };
        for (change, mean, variance) in [(20.0, 7.5, 56.25), (-20.0, -6.25, 406.25), (-6.25, -6.25, 406.25 * 2.0 / 3.0)]
        {
            jitter.add(change * 1e-3);
            assert!((jitter.mean * 1e3 - mean).abs() < 1e-9, "{jitter:?}");
            assert!((jitter.variance * 1e6 - variance).abs() < 1e-9, "{jitter:?}");
        }
        (0..5000).for_each(|_| jitter.add(0.0));
        assert!((jitter.variance - VARIANCE.1).abs() < 1e-12 && jitter.frames == MEMORY, "{jitter:?}");
    }

    #[test]
    fn frames_of_constant_delay_hardly_wait() {
        let delays = rendered(Conversation, &[50; 500]);
        // Standard deviation of 1 ms at least: 2.33 ms.
        assert_eq!((delays[0], delays[499]), (50, 52));
    }

    #[test]
    fn jitter_is_evened_out_for_uses_that_allow_to_wait() {
        // 0, 20, 40, 10, 30 ms after 50 ms.
        let late: Vec<i64> = (0..1000).map(|n| 50 + n * 20 % 50).collect();
        for media_use in [Conversation, Contribution] {
            let after = rendered(media_use, &late).split_off(500);
            // The changes are 20, 20, -30, 20, -30 ms with a standard deviation of 24.5 ms: 57 ms.
            assert!(after.iter().all(|delay| (106..=108).contains(delay)), "{after:?}");
        }
        for media_use in [Game, Teleoperation] {
            assert_eq!(rendered(media_use, &late), late);
        }
    }

    /// A step of the delay is no jitter: frames are rendered at once, and after 2 s the longer delay is the reference.
    #[test]
    fn a_longer_path_is_not_jitter() {
        let delays: Vec<i64> = (0..400).map(|n| if n < 200 { 50 } else { 350 }).collect();
        let after = rendered(Conversation, &delays);
        assert_eq!(after[210], 350);
        assert!((351..=360).contains(&after[260]), "{}", after[260]);
        // Back on the shorter path they are evened out at once.
        let back: Vec<i64> = delays.iter().rev().copied().collect();
        assert!((50..=60).contains(&rendered(Conversation, &back)[210]));
    }

    /// The length follows by a tenth of the time of capture.
    #[test]
    fn the_length_changes_slowly() {
        let delays: Vec<i64> = (0..200).map(|n| if n < 100 { 50 } else { 50 + 30 * (n % 2) }).collect();
        let after = rendered(Conversation, &delays);
        let even: Vec<i64> = after.iter().copied().skip(100).step_by(2).collect();
        assert!(even.windows(2).all(|pair| (-8..=8).contains(&(pair[1] - pair[0]))), "{even:?}");
        // One half of 200 changes was 0 ms, the other is 30 ms: 50 + 2.33 * 30 ms / sqrt 2, less what did not count at first.
        assert!(even[0] < 55 && even[10] < 75 && (85..=99).contains(&even[49]), "{even:?}");
    }
}
