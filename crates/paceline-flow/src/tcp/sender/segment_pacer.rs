//! The times at which segments may be sent, for congestion control that paces.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// Number of initial segments of a connection that are not paced: an initial window (`TCP_INIT_CWND` in Linux's
/// `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// Computes the gaps between bursts of segments.
#[derive(Debug)]
pub(super) struct SegmentPacer {
    /// Remaining segments that are not paced.
    unpaced: u32,
    /// Segments and bytes of data sent in the current burst.
    sent: (u64, DataSize),
    /// The earliest time of the next segment.
    pub next: Time,
}

impl SegmentPacer {
    pub fn new() -> Self {
        Self { unpaced: UNPACED, sent: (0, DataSize::ZERO), next: Time::ZERO }
    }

    /// Handles a sent segment with `size` bytes of data, in bursts of `burst` segments. The gap after a burst is its
    /// size divided by the rate. If the burst was late, the gap is shorter by the delay, and at least half as long.
    pub fn handle_sent(&mut self, now: Time, size: DataSize, rate: Rate, burst: u64) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        self.sent = (self.sent.0 + 1, self.sent.1 + size);
        if self.sent.0 < burst {
            return;
        }
        let gap = self.sent.1 / rate;
        self.sent = (0, DataSize::ZERO);
        let late = (now - self.next).clamp(TimeDelta::ZERO, gap / 2);
        self.next = self.next.max(now) + (gap - late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_spaced_after_the_initial_window() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacer = SegmentPacer::new();
        for _ in 0..10 {
            pacer.handle_sent(Time::from_millis(5), size, rate, 1);
            assert_eq!(pacer.next, Time::ZERO);
        }
        pacer.handle_sent(Time::from_millis(5), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(10));
        pacer.handle_sent(Time::from_millis(10), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(20));
        pacer.handle_sent(Time::from_millis(23), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(30), "the delay is made up for");
        pacer.handle_sent(Time::from_millis(70), size, rate, 1);
        assert_eq!(pacer.next, Time::from_millis(75), "a pause shortens the gap by at most half");
    }

    #[test]
    fn a_burst_is_sent_at_once_and_followed_by_its_whole_gap() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacer = SegmentPacer::new();
        pacer.unpaced = 0;
        pacer.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacer.next, Time::ZERO, "the second may follow");
        pacer.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacer.next, Time::from_millis(20), "two gaps, shortened by half for the delay");
        pacer.handle_sent(Time::from_millis(20), size, rate, 2);
        pacer.handle_sent(Time::from_millis(20), size, rate, 2);
        assert_eq!(pacer.next, Time::from_millis(40));
    }
}
