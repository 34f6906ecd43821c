//! Whether a flow is limited by its application: it sends less than its target allows because its sources produce less.
//!
//! ```text
//! k = 0.8 target          b = min(max(b - sent, -k W) + k dt, k W)          W = 500 ms
//! begins: b > 0.4 k W     ends: b < -0.6 k W          and never while a queue takes longer than 50 ms at the target
//! ```
//!
//! This is libwebrtc's `AlrDetector` with its effective defaults. The condition on the queue follows
//! draft-cheng-iccrg-delivery-rate-estimation (section 3.4): a flow with data to send is limited by its pacer or window.
//! Media is always queued for a moment, because its frames are paced. Only a longer queue counts.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The share of the target that counts as used (`bandwidth_usage_ratio`), in percent.
const USAGE_PERCENT: i128 = 80;
/// The window of the budget (`kWindowMs`).
const WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// Above this share of the largest budget the limitation begins (`start_budget_level_ratio`), in percent.
const BEGIN_PERCENT: i128 = 40;
/// Below this share it ends (`stop_budget_level_ratio`), in percent.
const END_PERCENT: i128 = -60;

/// A queue that takes longer than this at the target is more than the frame that is being paced. Assumed: the interval of
/// frames at 20 per second.
const BACKLOG: TimeDelta = TimeDelta::from_millis(50);

const SECOND: i128 = 1_000_000_000;

/// The detector.
#[derive(Clone, Debug, Default)]
pub struct ApplicationLimit {
    /// The bits that could have been sent and were not, times 10^9.
    budget: i128,
    updated: Option<Time>,
    limited: bool,
}

impl ApplicationLimit {
    /// Returns whether the flow is limited, after `sent` left since the last update. Padding, probes and retransmissions
    /// count. `queued` is the size of the queue. The first update only starts the clock.
    pub fn update(&mut self, now: Time, target: Rate, sent: DataSize, queued: DataSize) -> bool {
        let Some(before) = self.updated.replace(now) else { return false };
        let rate = i128::from(target.as_bps()) * USAGE_PERCENT / 100;
        let most = rate * i128::from(WINDOW.as_nanos());
        let spent = i128::from(sent.as_bytes()) * 8 * SECOND;
        self.budget = (self.budget.min(most) - spent).max(-most);
        self.budget = (self.budget + rate * i128::from((now - before).as_nanos())).min(most);
        let level = 100 * self.budget;
        if level > BEGIN_PERCENT * most {
            self.limited = true;
        } else if level < END_PERCENT * most {
            self.limited = false;
        }
        self.limited && queued <= target * BACKLOG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends this many bytes each 10 ms, with this many bytes in the queue. Returns the last time in ms at which the flow
    /// was not as at the end.
    fn last_change(detector: &mut ApplicationLimit, ms: core::ops::Range<i64>, bytes: u64, queued: u64) -> (i64, bool) {
        let (mut at, mut state) = (ms.start, None);
        for ms in ms.step_by(10) {
            let (sent, queued) = (DataSize::from_bytes(bytes), DataSize::from_bytes(queued));
            let limited = detector.update(Time::from_millis(ms), Rate::from_kbps(1000), sent, queued);
            if state.replace(limited) != Some(limited) {
                at = ms;
            }
        }
        (at, state.unwrap())
    }

    /// Model run of libwebrtc's detector: at a target of 1 Mbit/s, 500 bytes each 10 ms begin the state at 420 ms (0.41 of
    /// the budget). 1500 bytes each 10 ms after 1500 ms end it at 3110 ms (-0.61).
    #[test]
    fn state_begins_and_ends_as_in_libwebrtc() {
        let mut detector = ApplicationLimit::default();
        assert_eq!(last_change(&mut detector, 10..1501, 500, 0), (420, true));
        assert_eq!(last_change(&mut detector, 1510..5000, 1500, 0), (3110, false));
    }

    #[test]
    fn flow_with_a_backlog_or_a_full_rate_is_not_limited() {
        assert_eq!(last_change(&mut ApplicationLimit::default(), 10..5000, 500, 6250), (420, true));
        assert_eq!(last_change(&mut ApplicationLimit::default(), 10..5000, 500, 6251), (10, false));
        assert_eq!(last_change(&mut ApplicationLimit::default(), 10..5000, 1000, 0), (10, false), "0.8 of the target");
    }

    #[test]
    fn lower_target_bounds_the_budget_and_a_pause_does_not_overflow() {
        let mut detector = ApplicationLimit::default();
        let mut update = |ms, target: Rate, bytes| {
            detector.update(Time::from_millis(ms), target, DataSize::from_bytes(bytes), DataSize::ZERO)
        };
        assert!(!update(0, Rate::MAX, 0));
        assert!(update(1_000_000_000, Rate::MAX, 0));
        // The budget is at most 5000 bytes at 100 kbit/s: 5000 - 8000 + 1000 = -2000, then -2000 - 3000 + 1000 = -4000.
        assert!(update(1_000_000_100, Rate::from_kbps(100), 8000), "above -3000");
        assert!(!update(1_000_000_200, Rate::from_kbps(100), 3000), "below -3000");
    }
}
