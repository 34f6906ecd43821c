// SPDX-License-Identifier: MIT OR Apache-2.0
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

use paceline_units::{DataSize, Rate, Time};

/// The share of the target that counts as used (`bandwidth_usage_ratio`).
const USAGE: f64 = 0.8;
/// The window of the budget, s (`kWindowMs`).
const WINDOW_S: f64 = 0.5;
/// Above this share of the largest budget the limitation begins (`start_budget_level_ratio`).
const BEGIN: f64 = 0.4;
/// Below this share it ends (`stop_budget_level_ratio`).
const END: f64 = -0.6;
/// A queue that takes longer than this at the target, s, is more than the frame that is being paced. Assumed: the interval
/// of frames at 20 per second.
const BACKLOG_S: f64 = 0.05;

/// The detector.
#[derive(Clone, Debug, Default)]
pub struct ApplicationLimit {
    /// The bits that could have been sent and were not.
    budget: f64,
    updated: Option<Time>,
    limited: bool,
}

impl ApplicationLimit {
    /// Returns whether the application limits the flow, after `sent` left since the last update. Padding, probes and
    /// retransmissions count. `queued` is the size of the queue. The first update only starts the clock.
    pub fn update(&mut self, now: Time, target: Rate, sent: DataSize, queued: DataSize) -> bool {
        let Some(before) = self.updated.replace(now) else { return false };
        let rate = USAGE * target.as_bps_f64();
        let most = rate * WINDOW_S;
        let spent = (self.budget.min(most) - bits(sent)).max(-most);
        self.budget = (spent + rate * (now - before).as_secs_f64()).min(most);
        if self.budget > BEGIN * most {
            self.limited = true;
        } else if self.budget < END * most {
            self.limited = false;
        }
        self.limited && bits(queued) <= BACKLOG_S * target.as_bps_f64()
    }
}

fn bits(size: DataSize) -> f64 {
    8.0 * size.as_bytes() as f64
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
