// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incoming rate `R`: the bytes that arrived within a sliding window, such as 500 ms (mmsys16, eq. 3), in buckets
//! of a hundredth of the window.

use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

const BUCKETS: usize = 100;

/// The rate of a window that is not full yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    /// There is none.
    Unknown,
    /// The bytes over the part that is filled.
    Part,
    /// The bytes over the whole window.
    Whole,
}

/// A sliding-window rate with bounded memory, exact to one bucket at the far edge of the window.
#[derive(Clone, Debug)]
pub struct IncomingRate {
    bucket: TimeDelta,
    filling: Filling,
    bytes: [u32; BUCKETS],
    total: u64,
    /// The start of the newest bucket, and its index.
    newest: Option<RemoteTime>,
    index: usize,
    /// The first arrival and the number of arrivals in the window that is being filled.
    first: RemoteTime,
    packets: u32,
}

impl IncomingRate {
    /// Creates an empty window that gives a rate once it has passed completely since the first arrival.
    pub fn full_window(window: TimeDelta) -> Self {
        Self::new(window, Filling::Unknown)
    }

    /// Creates an empty window that gives a rate from its second packet on, over the part that is filled (libwebrtc's
    /// `RateStatistics`). After a pause of a whole window it is filled anew.
    pub fn growing_window(window: TimeDelta) -> Self {
        Self::new(window, Filling::Part)
    }

    /// Creates an empty window whose bytes are always divided by its whole length, so that the rate grows from zero (RFC
    /// 8698, section 5.1.3).
    pub fn whole_window(window: TimeDelta) -> Self {
        Self::new(window, Filling::Whole)
    }

    fn new(window: TimeDelta, filling: Filling) -> Self {
        let bucket = TimeDelta::from_nanos((window.as_nanos() / BUCKETS as i64).max(1));
        let (bytes, first) = ([0; BUCKETS], RemoteTime::ZERO);
        Self { bucket, filling, bytes, total: 0, newest: None, index: 0, first, packets: 0 }
    }

    /// Handles a packet that arrived. Times never decrease.
    #[inline]
    pub fn handle_arrival(&mut self, now: RemoteTime, size: DataSize) {
        self.advance(now);
        if self.filling == Filling::Part && self.total == 0 {
            (self.newest, self.packets) = (None, 0);
        }
        if self.newest.is_none() {
            (self.newest, self.first) = (Some(now), now);
        }
        self.bytes[self.index] = self.bytes[self.index].saturating_add(size.as_bytes() as u32);
        self.total += size.as_bytes();
        self.packets = self.packets.saturating_add(1);
    }

    /// Returns the rate over the window that ends at `now`, if it is known.
    pub fn rate(&mut self, now: RemoteTime) -> Option<Rate> {
        self.advance(now);
        let newest = self.newest?;
        // 99 whole buckets and the part of the newest one that has passed.
        let whole = self.bucket * (BUCKETS as i64 - 1) + (now - newest);
        match self.filling {
            Filling::Unknown => (now - self.first >= self.bucket * BUCKETS as i64).then(|| self.over(whole)),
            Filling::Part if self.packets < 2 || self.total == 0 => None,
            // One more millisecond: libwebrtc counts both ends of the window.
            Filling::Part => Some(self.over((now - self.first + TimeDelta::from_millis(1)).min(whole))),
            Filling::Whole => Some(self.over(whole)),
        }
    }

    fn over(&self, covered: TimeDelta) -> Rate {
        Rate::from_size_and_time(DataSize::from_bytes(self.total), covered)
    }

    #[inline(always)]
    fn advance(&mut self, now: RemoteTime) {
        let Some(newest) = &mut self.newest else { return };
        if now - *newest < self.bucket {
            return;
        }
        let steps = (now - *newest).as_nanos() / self.bucket.as_nanos();
        *newest += self.bucket * steps;
        for _ in 0..steps.min(BUCKETS as i64) {
            self.index = if self.index + 1 == BUCKETS { 0 } else { self.index + 1 };
            self.total -= self.bytes[self.index] as u64;
            self.bytes[self.index] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_a_steady_rate_and_forgets_an_old_one() {
        let mut rate = IncomingRate::full_window(TimeDelta::from_millis(500));
        let size = DataSize::from_bytes(1250); // each 10 ms: 1 Mbps
        let mut now = RemoteTime::from_millis(123);
        for i in 0..200 {
            now = RemoteTime::from_millis(123 + 10 * i);
            rate.handle_arrival(now, size);
            let measured = rate.rate(now);
            if i < 50 {
                assert_eq!(measured, None, "the first window is not full yet");
            } else {
                let kbps = measured.unwrap().as_bps() as f64 / 1e3;
                assert!((990.0..=1030.0).contains(&kbps), "{i}: {kbps}");
            }
        }
        let half = rate.rate(now + TimeDelta::from_millis(250)).unwrap().as_bps() as f64;
        assert!((490e3..=520e3).contains(&half), "{half}");
        assert_eq!(rate.rate(now + TimeDelta::from_millis(506)), Some(Rate::ZERO));
        assert_eq!(rate.rate(now + TimeDelta::from_secs(86_400)), Some(Rate::ZERO), "after a day without packets");
    }

    /// By hand: 1250 bytes each 10 ms. After 100 ms eleven packets have arrived: 13,750 bytes over the 101 ms that are
    /// filled, or over 495 ms of the whole window.
    #[test]
    fn first_window_counts_the_part_or_the_whole() {
        let window = TimeDelta::from_millis(500);
        let after_100_ms = |mut rate: IncomingRate| {
            for i in 0..=10 {
                rate.handle_arrival(RemoteTime::from_millis(10 * i), DataSize::from_bytes(1250));
            }
            rate.rate(RemoteTime::from_millis(100)).map(|rate| rate.as_bps() / 1000)
        };
        assert_eq!(after_100_ms(IncomingRate::full_window(window)), None);
        assert_eq!(after_100_ms(IncomingRate::growing_window(window)), Some(1089));
        assert_eq!(after_100_ms(IncomingRate::whole_window(window)), Some(222));
    }
}
