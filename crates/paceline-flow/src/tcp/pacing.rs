//! When segments may leave, for an algorithm that spreads them over time.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// So many first segments of a connection are not held back: an initial window (`TCP_INIT_CWND` in Linux's
/// `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// The gaps between bursts of segments.
#[derive(Debug)]
pub(super) struct Pacing {
    unpaced: u32,
    /// What has left of the present burst: segments and bytes of data.
    left: (u64, DataSize),
    /// The next segment may leave from here on.
    pub next: Time,
}

impl Pacing {
    pub fn new() -> Self {
        Self { unpaced: UNPACED, left: (0, DataSize::ZERO), next: Time::ZERO }
    }

    /// A segment with so many bytes of data leaves, in a burst of so many segments. The next burst follows when the rate has
    /// carried this one, or sooner by as much as this one was late, up to half of that.
    pub fn handle_sent(&mut self, now: Time, size: DataSize, rate: Rate, burst: u64) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        self.left = (self.left.0 + 1, self.left.1 + size);
        if self.left.0 < burst {
            return;
        }
        let gap = self.left.1 / rate;
        self.left = (0, DataSize::ZERO);
        let late = (now - self.next).clamp(TimeDelta::ZERO, gap / 2);
        self.next = self.next.max(now) + (gap - late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_a_gap_apart_after_the_initial_window() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacing = Pacing::new();
        for _ in 0..10 {
            pacing.handle_sent(Time::from_millis(5), size, rate, 1);
            assert_eq!(pacing.next, Time::ZERO);
        }
        pacing.handle_sent(Time::from_millis(5), size, rate, 1);
        assert_eq!(pacing.next, Time::from_millis(10));
        pacing.handle_sent(Time::from_millis(10), size, rate, 1);
        assert_eq!(pacing.next, Time::from_millis(20));
        pacing.handle_sent(Time::from_millis(23), size, rate, 1);
        assert_eq!(pacing.next, Time::from_millis(30), "what was late is made up for");
        pacing.handle_sent(Time::from_millis(70), size, rate, 1);
        assert_eq!(pacing.next, Time::from_millis(75), "but a pause only by half a gap");
    }

    #[test]
    fn a_burst_leaves_at_once_and_is_paid_for_as_a_whole() {
        let (size, rate) = (DataSize::from_bytes(1250), Rate::from_kbps(1000));
        let mut pacing = Pacing::new();
        pacing.unpaced = 0;
        pacing.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacing.next, Time::ZERO, "the second may follow");
        pacing.handle_sent(Time::from_millis(5), size, rate, 2);
        assert_eq!(pacing.next, Time::from_millis(20), "two gaps, less the half that it was late");
        pacing.handle_sent(Time::from_millis(20), size, rate, 2);
        pacing.handle_sent(Time::from_millis(20), size, rate, 2);
        assert_eq!(pacing.next, Time::from_millis(40));
    }
}
