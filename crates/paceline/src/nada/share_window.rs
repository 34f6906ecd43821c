//! Shares of the recent past: of the packets that were sent, those that are missing, and those that are marked.

use paceline_units::{RemoteTime, TimeDelta};

const BUCKETS: usize = 50;

/// A sliding window of a whole and so many parts of it, in buckets of a fiftieth of its length.
#[derive(Clone, Debug)]
pub struct ShareWindow<const PARTS: usize = 1> {
    bucket: TimeDelta,
    /// Parts and whole, by bucket; what is taken back of a part counts below zero.
    buckets: [([i64; PARTS], u64); BUCKETS],
    total: ([i64; PARTS], u64),
    newest: Option<RemoteTime>,
    index: usize,
}

impl<const PARTS: usize> ShareWindow<PARTS> {
    /// An empty window of this length.
    pub fn new(window: TimeDelta) -> Self {
        let bucket = TimeDelta::from_nanos((window.as_nanos() / BUCKETS as i64).max(1));
        let none = ([0; PARTS], 0);
        Self { bucket, buckets: [none; BUCKETS], total: none, newest: None, index: 0 }
    }

    /// So many more, and so many of them count. Times never go back.
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

    /// The parts over the whole of the window that ends at `now`, from 0 to 1.
    pub fn shares(&mut self, now: RemoteTime) -> [f64; PARTS] {
        self.advance(now);
        let (parts, whole) = self.total;
        parts.map(|part| if part <= 0 || whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) })
    }

    fn advance(&mut self, now: RemoteTime) {
        let newest = self.newest.get_or_insert(now);
        if now - *newest < self.bucket {
            return;
        }
        let steps = (now - *newest).as_nanos() / self.bucket.as_nanos();
        *newest += self.bucket * steps;
        for _ in 0..steps.min(BUCKETS as i64) {
            self.index = (self.index + 1) % BUCKETS;
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
    fn the_part_over_the_whole() {
        let mut window = ShareWindow::new(TimeDelta::from_millis(500));
        assert_eq!(window.shares(at(0)), [0.0; 2]);
        for n in 0..50 {
            window.add(at(10 * n), [i64::from(n % 10 == 7), i64::from(n % 25 == 3)], 1);
        }
        assert_eq!(window.shares(at(495)), [5.0 / 50.0, 2.0 / 50.0]);
        window.add(at(496), [-1, 0], 0);
        assert_eq!(window.shares(at(497)), [4.0 / 50.0, 2.0 / 50.0], "one was only late");
        window.add(at(498), [-9, 0], 0);
        assert_eq!(window.shares(at(499)), [0.0, 2.0 / 50.0]);
    }

    #[test]
    fn it_leaves_with_its_time() {
        let mut window = ShareWindow::new(TimeDelta::from_millis(500));
        window.add(at(0), [0], 2);
        window.add(at(10), [2], 4);
        assert_eq!(window.shares(at(20)), [2.0 / 6.0]);
        assert_eq!(window.shares(at(505)), [2.0 / 4.0], "the first two have left");
        assert_eq!(window.shares(at(515)), [0.0]);
        window.add(at(600), [1], 1);
        assert_eq!(window.shares(at(86_400_000)), [0.0], "a day of silence");
    }
}
