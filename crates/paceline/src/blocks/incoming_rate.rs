//! The incoming rate `R`: what arrived in the last 500 ms (mmsys16, eq. 3), in buckets of a hundredth of the window.

use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

const BUCKETS: usize = 100;

/// A sliding-window rate with bounded memory, exact to one bucket at the window's far edge.
#[derive(Clone, Debug)]
pub struct IncomingRate {
    bucket: TimeDelta,
    bytes: [u32; BUCKETS],
    total: u64,
    /// Start of the newest bucket, and its index.
    newest: Option<RemoteTime>,
    index: usize,
    /// First arrival, and how many there were, of the window that is being filled.
    first: RemoteTime,
    packets: u32,
}

impl IncomingRate {
    /// An empty window of this length.
    pub fn new(window: TimeDelta) -> Self {
        let bucket = TimeDelta::from_nanos((window.as_nanos() / BUCKETS as i64).max(1));
        Self { bucket, bytes: [0; BUCKETS], total: 0, newest: None, index: 0, first: RemoteTime::ZERO, packets: 0 }
    }

    /// A packet arrived. Times never go back.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime, size: DataSize) {
        if self.newest.is_none() {
            (self.newest, self.first) = (Some(now), now);
        }
        self.advance(now);
        self.bytes[self.index] = self.bytes[self.index].saturating_add(size.as_bytes() as u32);
        self.total += size.as_bytes();
        self.packets = self.packets.saturating_add(1);
    }

    /// The rate over the window that ends at `now`; `None` until a whole window has passed since the first arrival.
    pub fn rate(&mut self, now: RemoteTime) -> Option<Rate> {
        self.advance(now);
        let newest = self.newest?;
        let window = self.bucket * BUCKETS as i64;
        if now - self.first < window {
            return None;
        }
        Some(self.over(self.whole(now, newest)))
    }

    /// The rate over as much of the window as has been filled (libwebrtc's `RateStatistics`); `None` before the second
    /// packet.
    pub fn rate_so_far(&mut self, now: RemoteTime) -> Option<Rate> {
        self.advance(now);
        let newest = self.newest.filter(|_| self.packets > 1 && self.total > 0)?;
        // A millisecond more, as libwebrtc counts both ends of the window.
        let filled = now - self.first + TimeDelta::from_millis(1);
        Some(self.over(filled.min(self.whole(now, newest))))
    }

    /// Begins anew if nothing came for a whole window: what comes then fills a window of its own.
    pub fn restart_if_empty(&mut self, now: RemoteTime) {
        self.advance(now);
        if self.total == 0 {
            (self.newest, self.packets) = (None, 0);
        }
    }

    /// 99 whole buckets and the part of the newest that has passed.
    fn whole(&self, now: RemoteTime, newest: RemoteTime) -> TimeDelta {
        self.bucket * (BUCKETS as i64 - 1) + (now - newest)
    }

    fn over(&self, covered: TimeDelta) -> Rate {
        Rate::of(DataSize::from_bytes(self.total), covered)
    }

    #[inline]
    fn advance(&mut self, now: RemoteTime) {
        let Some(newest) = &mut self.newest else { return };
        if now - *newest < self.bucket {
            return;
        }
        let steps = (now - *newest).as_nanos() / self.bucket.as_nanos();
        *newest += self.bucket * steps;
        for _ in 0..steps.min(BUCKETS as i64) {
            self.index = (self.index + 1) % BUCKETS;
            self.total -= self.bytes[self.index] as u64;
            self.bytes[self.index] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_a_steady_rate_and_forgets_an_old_one() {
        let mut rate = IncomingRate::new(TimeDelta::from_millis(500));
        let size = DataSize::from_bytes(1250); // each 10 ms: 1 Mbps
        let mut now = RemoteTime::from_millis(123);
        for i in 0..200 {
            now = RemoteTime::from_millis(123 + 10 * i);
            rate.handle_arrival(now, size);
            let measured = rate.rate(now);
            if i < 50 {
                assert_eq!(measured, None, "no whole window yet");
            } else {
                let kbps = measured.unwrap().as_bps() as f64 / 1e3;
                assert!((990.0..=1030.0).contains(&kbps), "{i}: {kbps}");
            }
        }
        let half = rate.rate(now + TimeDelta::from_millis(250)).unwrap().as_bps() as f64;
        assert!((490e3..=520e3).contains(&half), "{half}");
        assert_eq!(rate.rate(now + TimeDelta::from_millis(506)), Some(Rate::ZERO));
        assert_eq!(rate.rate(now + TimeDelta::from_secs(86_400)), Some(Rate::ZERO), "a day of silence");
    }
}
