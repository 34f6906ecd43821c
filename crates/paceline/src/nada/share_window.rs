// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares over a sliding window: of missing and of marked packets in the packets that were sent.

use paceline_units::{RemoteTime, TimeDelta};

const BUCKETS: usize = 50;

/// A sliding window of a whole and its parts, in buckets of a fiftieth of its length.
#[derive(Clone, Debug)]
pub struct ShareWindow<const PARTS: usize = 1> {
    bucket: TimeDelta,
    /// Parts and whole of each bucket. A part is negative if packets were counted before and are taken back.
    buckets: [([i64; PARTS], u64); BUCKETS],
    total: ([i64; PARTS], u64),
    newest: Option<RemoteTime>,
    index: usize,
}

impl<const PARTS: usize> ShareWindow<PARTS> {
    /// Creates an empty window of this length.
    pub fn new(window: TimeDelta) -> Self {
        let bucket = TimeDelta::from_nanos((window.as_nanos() / BUCKETS as i64).max(1));
        let none = ([0; PARTS], 0);
        Self { bucket, buckets: [none; BUCKETS], total: none, newest: None, index: 0 }
    }

    /// Adds to the parts and to the whole. Times never decrease.
    #[inline]
    pub fn add(&mut self, now: RemoteTime, parts: [i64; PARTS], whole: u64) {
        self.advance(now);
        let bucket = &mut self.buckets[self.index];
        for (part, (of_bucket, total)) in parts.into_iter().zip(bucket.0.iter_mut().zip(&mut self.total.0)) {
            *of_bucket += part;
            *total += part;
        }
        bucket.1 += whole;
        self.total.1 += whole;
    }

    /// Returns the parts over the whole in the window that ends at `now`, each from 0 to 1.
    #[inline]
    pub fn shares(&mut self, now: RemoteTime) -> [f64; PARTS] {
        self.advance(now);
        let (parts, whole) = self.total;
        parts.map(|part| if part <= 0 || whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) })
    }

    #[inline]
    fn advance(&mut self, now: RemoteTime) {
        let newest = *self.newest.get_or_insert(now);
        if now - newest >= self.bucket {
            self.turn(now, newest);
        }
    }

    /// Empties the buckets that begin by `now`. The newest one began at `newest`.
    #[inline(never)]
    fn turn(&mut self, now: RemoteTime, newest: RemoteTime) {
        let steps = (now - newest).as_nanos() / self.bucket.as_nanos();
        self.newest = Some(newest + self.bucket * steps);
        for _ in 0..steps.min(BUCKETS as i64) {
            self.index = if self.index + 1 == BUCKETS { 0 } else { self.index + 1 };
            let (parts, whole) = core::mem::replace(&mut self.buckets[self.index], ([0; PARTS], 0));
            self.total.0.iter_mut().zip(parts).for_each(|(total, part)| *total -= part);
            self.total.1 -= whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(5000 + ms)
    }

    #[test]
    fn shares_are_parts_over_the_whole() {
        let mut window = ShareWindow::new(TimeDelta::from_millis(500));
        assert_eq!(window.shares(at(0)), [0.0; 2]);
        for n in 0..50 {
            window.add(at(10 * n), [i64::from(n % 10 == 7), i64::from(n % 25 == 3)], 1);
        }
        assert_eq!(window.shares(at(495)), [5.0 / 50.0, 2.0 / 50.0]);
        window.add(at(496), [-1, 0], 0);
        assert_eq!(window.shares(at(497)), [4.0 / 50.0, 2.0 / 50.0], "one was late and not lost");
        window.add(at(498), [-9, 0], 0);
        assert_eq!(window.shares(at(499)), [0.0, 2.0 / 50.0]);
    }

    #[test]
    fn old_buckets_leave_the_window() {
        let mut window = ShareWindow::new(TimeDelta::from_millis(500));
        window.add(at(0), [0], 2);
        window.add(at(10), [2], 4);
        assert_eq!(window.shares(at(20)), [2.0 / 6.0]);
        assert_eq!(window.shares(at(505)), [2.0 / 4.0], "the first two have left");
        assert_eq!(window.shares(at(515)), [0.0]);
        window.add(at(600), [1], 1);
        assert_eq!(window.shares(at(86_400_000)), [0.0], "after a day without packets");
    }
}
