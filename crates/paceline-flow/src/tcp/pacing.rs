//! When segments may leave, for an algorithm that spreads them over time.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// So many first segments of a connection are not held back: an initial window (`TCP_INIT_CWND` in Linux's
/// `tcp_update_skb_after_send`).
const UNPACED: u32 = 10;

/// The gaps between segments.
#[derive(Debug)]
pub(super) struct Pacing {
    unpaced: u32,
    /// The next segment may leave from here on.
    pub next: Time,
}

impl Pacing {
    pub fn new() -> Self {
        Self { unpaced: UNPACED, next: Time::ZERO }
    }

    /// A segment with so many bytes of data leaves. The next follows when the rate has carried it, or sooner by as much as
    /// this one was late, up to half of that.
    pub fn handle_sent(&mut self, now: Time, size: DataSize, rate: Rate) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let gap = size / rate;
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
            pacing.handle_sent(Time::from_millis(5), size, rate);
            assert_eq!(pacing.next, Time::ZERO);
        }
        pacing.handle_sent(Time::from_millis(5), size, rate);
        assert_eq!(pacing.next, Time::from_millis(10));
        pacing.handle_sent(Time::from_millis(10), size, rate);
        assert_eq!(pacing.next, Time::from_millis(20));
        pacing.handle_sent(Time::from_millis(23), size, rate);
        assert_eq!(pacing.next, Time::from_millis(30), "what was late is made up for");
        pacing.handle_sent(Time::from_millis(70), size, rate);
        assert_eq!(pacing.next, Time::from_millis(75), "but a pause only by half a gap");
    }
}
