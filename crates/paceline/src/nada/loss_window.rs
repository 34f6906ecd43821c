//! The loss ratio of the recent past: what is missing from the sequences of media, over what was sent of them.

use paceline_units::{RemoteTime, StreamId, TimeDelta};

const BUCKETS: usize = 50;

/// What becomes of packets that come behind a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatePackets {
    /// They fill their gaps (2015).
    Count,
    /// They stay lost (RFC 8698, section 5.1.2).
    AreLost,
}

/// A sliding window of losses, in buckets of a fiftieth of it. A gap counts when the packet behind it comes.
#[derive(Clone, Debug)]
pub struct LossWindow {
    late: LatePackets,
    bucket: TimeDelta,
    /// Packets expected and missing, by bucket; what fills a gap of an earlier bucket counts below zero.
    buckets: [(u32, i32); BUCKETS],
    newest: Option<RemoteTime>,
    index: usize,
    /// The highest number of each stream.
    highest: Vec<(StreamId, u16)>,
}

impl LossWindow {
    /// An empty window of this length.
    pub fn new(window: TimeDelta, late: LatePackets) -> Self {
        let bucket = TimeDelta::from_nanos((window.as_nanos() / BUCKETS as i64).max(1));
        Self { late, bucket, buckets: [(0, 0); BUCKETS], newest: None, index: 0, highest: Vec::new() }
    }

    /// A packet arrived that has a place in its stream's sequence. Times never go back.
    pub fn handle_arrival(&mut self, now: RemoteTime, stream: StreamId, sequence: u16) {
        self.advance(now);
        let (expected, missing) = &mut self.buckets[self.index];
        let Some((_, highest)) = self.highest.iter_mut().find(|(id, _)| *id == stream) else {
            self.highest.push((stream, sequence));
            *expected = expected.saturating_add(1);
            return;
        };
        match sequence.wrapping_sub(*highest) as i16 {
            0 => {}
            ahead if ahead > 0 => {
                *highest = sequence;
                *expected = expected.saturating_add(ahead as u32);
                *missing = missing.saturating_add(ahead as i32 - 1);
            }
            _ if self.late == LatePackets::Count => *missing = missing.saturating_sub(1),
            _ => {}
        }
    }

    /// The share that is missing of what was to come in the window that ends at `now`, from 0 to 1.
    pub fn ratio(&mut self, now: RemoteTime) -> f64 {
        self.advance(now);
        let sum = |(e, m): (u64, i64), (expected, missing): &(u32, i32)| (e + *expected as u64, m + *missing as i64);
        let (expected, missing) = self.buckets.iter().fold((0, 0), sum);
        if expected == 0 { 0.0 } else { (missing.max(0) as f64 / expected as f64).min(1.0) }
    }

    fn advance(&mut self, now: RemoteTime) {
        let newest = self.newest.get_or_insert(now);
        let steps = (now - *newest).as_nanos() / self.bucket.as_nanos();
        *newest += self.bucket * steps;
        for _ in 0..steps.min(BUCKETS as i64) {
            self.index = (self.index + 1) % BUCKETS;
            self.buckets[self.index] = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> RemoteTime {
        RemoteTime::from_millis(5000 + ms)
    }

    /// Packets each 10 ms from number 65530 on, those of `lost` left out, those of `late` 25 ms late; answers the ratio
    /// half a second after the first was sent.
    fn ratio(late: LatePackets, lost: &[u16], behind: &[u16]) -> f64 {
        let mut window = LossWindow::new(TimeDelta::from_millis(500), late);
        let mut arrivals: Vec<(i64, u16)> = (0..50)
            .filter(|n| !lost.contains(n))
            .map(|n| (10 * n as i64 + if behind.contains(&n) { 25 } else { 0 }, n))
            .collect();
        arrivals.sort_unstable();
        for (ms, n) in arrivals {
            window.handle_arrival(at(ms), StreamId(0), n.wrapping_add(65_530));
        }
        window.ratio(at(495))
    }

    #[test]
    fn what_is_missing_over_what_was_sent() {
        use LatePackets::*;
        assert_eq!(ratio(Count, &[], &[]), 0.0);
        assert_eq!([ratio(Count, &[7], &[]), ratio(Count, &[7, 8, 30], &[])], [1.0 / 50.0, 3.0 / 50.0]);
        assert_eq!([ratio(Count, &[7], &[20]), ratio(AreLost, &[7], &[20])], [1.0 / 50.0, 2.0 / 50.0]);
    }

    #[test]
    fn losses_leave_with_their_time_and_streams_are_apart() {
        let mut window = LossWindow::new(TimeDelta::from_millis(500), LatePackets::Count);
        for (ms, stream, sequence) in [(0, 0, 10), (0, 1, 40_000), (10, 0, 13), (20, 1, 40_001), (20, 1, 40_001)] {
            window.handle_arrival(at(ms), StreamId(stream), sequence);
        }
        assert_eq!(window.ratio(at(20)), 2.0 / 6.0, "a packet that comes twice is one");
        assert_eq!(window.ratio(at(505)), 2.0 / 4.0, "the first two have left");
        assert_eq!(window.ratio(at(515)), 0.0);
        window.handle_arrival(at(600), StreamId(0), 12);
        assert_eq!(window.ratio(at(600)), 0.0, "what comes too late makes no gain");
        assert_eq!(window.ratio(at(86_400_000)), 0.0);
    }
}
