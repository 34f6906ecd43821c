// SPDX-License-Identifier: MIT OR Apache-2.0
//! Freezes: gaps between rendered frames of more than `max(3 x mean, mean + 150 ms)`, with the mean of the last 30 gaps
//! (W3C webrtc-stats, `freezeCount`). In addition, a gap of 1 s or more always counts, because the mean adapts to a video of
//! few frames; the gap that is open at the end counts; and a stream that renders nothing is frozen all the time.

use paceline_units::{Time, TimeDelta};

const MEMORY: usize = 30;
/// A gap of this length is a freeze, whatever the mean is.
const LONG: TimeDelta = TimeDelta::from_secs(1);

/// The last gaps between rendered frames.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentGaps {
    /// Ring, zero where unused, and its sum.
    gaps: [TimeDelta; MEMORY],
    sum: TimeDelta,
    seen: usize,
}

impl RecentGaps {
    pub fn add(&mut self, gap: TimeDelta) {
        self.sum += gap - core::mem::replace(&mut self.gaps[self.seen % MEMORY], gap);
        self.seen += 1;
    }

    /// Returns their mean; 0 without any.
    pub fn mean(&self) -> TimeDelta {
        self.sum / self.seen.clamp(1, MEMORY) as i64
    }

    /// Returns whether a gap after them is a freeze.
    pub fn is_freeze(&self, gap: TimeDelta) -> bool {
        let mean = self.mean();
        gap >= LONG || self.seen >= 2 && gap > (mean * 3).max(mean + TimeDelta::from_millis(150))
    }
}

/// The freezes of a stream, up to its last frame.
#[derive(Clone, Debug, Default)]
pub struct Freezes {
    last: Option<Time>,
    gaps: RecentGaps,
    pub count: u64,
    pub total: TimeDelta,
    /// The begin of the first and of the last freeze.
    begins: Option<(Time, Time)>,
}

impl Freezes {
    pub fn rendered(&mut self, at: Time) {
        let Some(last) = self.last.replace(at) else { return };
        let gap = at - last;
        self.judge(last, gap);
        self.gaps.add(gap);
    }

    /// Returns the time of the last frame that was rendered since the last interruption.
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// Handles a pause of the stream from `at` to its next frame: it is no freeze, but the gap before it may be one.
    pub fn interrupt(&mut self, at: Time) {
        if let Some(last) = self.last.take() {
            self.judge(last, at - last);
        }
    }

    /// Counts the open gap at the end of a stream that lived from `from` to `to`.
    pub fn finish(&mut self, from: Time, to: Time) {
        match self.last {
            Some(last) => self.judge(last, to - last),
            None if from < to => self.add(from, to - from),
            None => (),
        }
    }

    /// Returns the mean time from the begin of a freeze to that of the next; 0 if there are fewer than two.
    pub fn interval(&self) -> TimeDelta {
        match self.begins {
            Some((first, last)) if self.count > 1 => (last - first) / (self.count as i64 - 1),
            _ => TimeDelta::ZERO,
        }
    }

    fn judge(&mut self, begin: Time, gap: TimeDelta) {
        if self.gaps.is_freeze(gap) {
            self.add(begin, gap);
        }
    }

    fn add(&mut self, begin: Time, gap: TimeDelta) {
        self.begins = Some((self.begins.map_or(begin, |(first, _)| first), begin));
        self.count += 1;
        self.total += gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_over_both_bounds_is_a_freeze() {
        let mut freezes = Freezes::default();
        let mut at = Time::ZERO;
        let mut show = |freezes: &mut Freezes, gap_ms: i64| {
            at += TimeDelta::from_millis(gap_ms);
            freezes.rendered(at);
        };
        for _ in 0..40 {
            show(&mut freezes, 33);
        }
        show(&mut freezes, 182); // 33 + 150 = 183 is more than 3 * 33
        assert_eq!(freezes.count, 0);
        for _ in 0..40 {
            show(&mut freezes, 33);
        }
        show(&mut freezes, 184);
        assert_eq!(
            (freezes.count, freezes.total, freezes.interval()),
            (1, TimeDelta::from_millis(184), TimeDelta::ZERO)
        );
        show(&mut freezes, 1000);
        show(&mut freezes, 2000);
        // They begin 0, 184 and 1184 ms after the first.
        assert_eq!((freezes.count, freezes.interval()), (3, TimeDelta::from_millis(592)));
    }

    #[test]
    fn a_pause_of_the_stream_is_no_freeze() {
        let mut freezes = Freezes::default();
        let rendered = |freezes: &mut Freezes, ms: core::ops::Range<i64>| {
            ms.step_by(40).for_each(|ms| freezes.rendered(Time::from_millis(ms)));
        };
        rendered(&mut freezes, 0..2000);
        freezes.interrupt(Time::from_millis(2100));
        rendered(&mut freezes, 9000..9500);
        assert_eq!((freezes.count, freezes.last()), (0, Some(Time::from_millis(9480))));
        freezes.interrupt(Time::from_millis(9680));
        assert_eq!(
            (freezes.count, freezes.total),
            (1, TimeDelta::from_millis(200)),
            "200 > 40 + 150 ms before the pause"
        );
        freezes.interrupt(Time::from_millis(9900));
        assert_eq!(freezes.count, 1);
    }

    #[test]
    fn counts_the_open_gap_and_a_stream_without_frames() {
        let ended = |frames_ms: &[i64], end_ms: i64| {
            let mut freezes = Freezes::default();
            frames_ms.iter().for_each(|ms| freezes.rendered(Time::from_millis(*ms)));
            freezes.finish(Time::from_millis(10), Time::from_millis(end_ms));
            (freezes.count, freezes.total.as_nanos() / 1_000_000)
        };
        assert_eq!(ended(&[20, 60, 100], 290), (0, 0), "190 = 40 + 150 is not over the bound");
        assert_eq!(ended(&[20, 60, 100], 291), (1, 191));
        assert_eq!(ended(&[20, 60], 1059), (0, 0), "one gap is known, two are needed");
        assert_eq!(ended(&[20, 60], 1060), (1, 1000), "but 1 s is always a freeze");
        let slides: Vec<i64> = (0..11).map(|n| 12_000 * n).collect();
        assert_eq!(ended(&slides, 120_010), (10, 120_000), "one frame every 12 s");
        assert_eq!(ended(&[], 9000), (1, 8990));
        assert_eq!(ended(&[], 10), (0, 0), "it did not live");
    }
}
