// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target of the queuing delay, which rises when other flows fill the queue (RFC 8298, section 4.1.2.3).
//!
//! ```text
//! norm = qdelay / QDELAY_TARGET_LO              one per feedback; var of the last 200, avg of the last 50
//! new  = (avg + sqrt(var)) QDELAY_TARGET_LO
//!
//! loss_event_rate > 0.002:          qdelay_target = 1.5 new
//! else var < 0.2:                   qdelay_target = new
//! else new < QDELAY_TARGET_LO:      qdelay_target = max(0.5 qdelay_target, new)
//! else                              qdelay_target = 0.9 qdelay_target
//! within QDELAY_TARGET_LO and QDELAY_TARGET_HI
//! ```

use crate::params;
use libm::sqrt;
use paceline_units::TimeDelta;

params! {
    /// The parameters of the target.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TargetConfig {
        /// RFC 8298, section 4.1.1.1.
        const RFC_8298;

        /// Lowest and initial target of the queuing delay.
        lo as "qdelay_target_lo_ms": TimeDelta = TimeDelta::from_millis(100), in 1.0..=1e4, from "QDELAY_TARGET_LO";
        /// Highest target of the queuing delay.
        hi as "qdelay_target_hi_ms": TimeDelta = TimeDelta::from_millis(400), in 1.0..=1e4,
            from "QDELAY_TARGET_HI; C++: kQueueDelayTargetMax, 300 ms";
        /// Whether the target rises among flows that fill queues; otherwise it is constant.
        compensate: bool = true, from "section 4.1.2.3; C++: kEnableSbd, 0";
    }
}

/// The samples of the variance. The RFC declares a history of 100 and uses 200 of it.
const LONG: usize = 200;
/// The samples of the average.
const SHORT: usize = 50;
/// Above this fraction of round-trip times with losses, other flows fill the queue.
const LOSS_EVENT_RATE: f64 = 0.002;
/// Above this variance the target does not follow the delay.
const VARIANCE: f64 = 0.2;

/// `qdelay_target`.
#[derive(Clone, Debug)]
pub struct DelayTarget {
    config: TargetConfig,
    /// `qdelay_target`.
    pub target: TimeDelta,
    /// The last normalised delays, in a ring buffer, in single precision to save memory.
    history: [f32; LONG],
    next: usize,
    /// The sums over the history, and over its newest part.
    sum: f64,
    squares: f64,
    recent: f64,
}

impl DelayTarget {
    pub fn new(config: TargetConfig) -> Self {
        Self { config, target: config.lo, history: [0.0; LONG], next: 0, sum: 0.0, squares: 0.0, recent: 0.0 }
    }

    /// Adapts the target (`adjust_qdelay_target`).
    pub fn adjust(&mut self, qdelay: TimeDelta, loss_event_rate: f64) {
        if !self.config.compensate {
            return;
        }
        let TargetConfig { lo, hi, .. } = self.config;
        self.remember((qdelay.as_secs_f64() / lo.as_secs_f64()) as f32);
        let mean = self.sum / LONG as f64;
        let variance = (self.squares / LONG as f64 - mean * mean).max(0.0);
        let new = lo.scale(self.recent / SHORT as f64 + sqrt(variance));
        let target = if loss_event_rate > LOSS_EVENT_RATE {
            new.scale(1.5)
        } else if variance < VARIANCE {
            new
        } else if new < lo {
            new.max(self.target.scale(0.5))
        } else {
            self.target.scale(0.9)
        };
        self.target = target.min(hi).max(lo);
    }

    fn remember(&mut self, norm: f32) {
        let oldest = core::mem::replace(&mut self.history[self.next], norm) as f64;
        let leaves_recent = self.history[(self.next + LONG - SHORT) % LONG] as f64;
        self.next = (self.next + 1) % LONG;
        let norm = norm as f64;
        self.sum += norm - oldest;
        self.squares += norm * norm - oldest * oldest;
        self.recent += norm - leaves_recent;
        // The sums are computed again once per round of the buffer, so that rounding errors do not accumulate.
        if self.next == 0 {
            self.sum = sum(&self.history);
            self.squares = self.history.iter().map(|x| *x as f64 * *x as f64).sum();
            self.recent = sum(&self.history[LONG - SHORT..]);
        }
    }
}

fn sum(values: &[f32]) -> f64 {
    values.iter().map(|x| *x as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: TargetConfig =
        TargetConfig { lo: TimeDelta::from_millis(100), hi: TimeDelta::from_millis(400), compensate: true };

    fn after(samples: impl Iterator<Item = i64>, loss_event_rate: f64) -> DelayTarget {
        let mut target = DelayTarget::new(CONFIG);
        samples.for_each(|ms| target.adjust(TimeDelta::from_millis(ms), loss_event_rate));
        target
    }

    /// A constant queuing delay of 250 ms is caused by another flow: after 200 samples the target is 250 ms, and 1.5
    /// times that with losses, within the bounds.
    #[test]
    fn constant_queue_raises_the_target() {
        assert_eq!(after((0..200).map(|_| 250), 0.0).target, TimeDelta::from_millis(250));
        assert_eq!(after((0..200).map(|_| 250), 0.01).target, TimeDelta::from_millis(375));
        assert_eq!(after((0..200).map(|_| 900), 0.01).target, CONFIG.hi);
        assert_eq!(after((0..200).map(|_| 20), 0.0).target, CONFIG.lo);
        let fixed = DelayTarget::new(TargetConfig { compensate: false, ..CONFIG });
        let mut target = fixed;
        (0..200).for_each(|_| target.adjust(TimeDelta::from_millis(250), 0.01));
        assert_eq!(target.target, CONFIG.lo);
    }

    /// Alternating delays have a large variance: the target falls by 10 % per sample, from 250 to 100 ms in about nine.
    #[test]
    fn varying_queue_lowers_the_target() {
        let mut target = after((0..200).map(|_| 250), 0.0);
        let mut steps = 0;
        while target.target > CONFIG.lo {
            target.adjust(TimeDelta::from_millis(if steps % 2 == 0 { 900 } else { 0 }), 0.0);
            steps += 1;
            assert!(steps < 20);
        }
        assert!((9..=13).contains(&steps), "{steps}");
    }

    #[test]
    fn sums_match_the_history_after_many_rounds() {
        let target = after((0..12_345).map(|n| n * 7919 % 311), 0.0);
        let newest = |back: usize| target.history[(target.next + LONG - 1 - back) % LONG] as f64;
        assert!((target.sum - sum(&target.history)).abs() < 1e-9);
        assert!((target.recent - (0..SHORT).map(newest).sum::<f64>()).abs() < 1e-9);
    }
}
