// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clock drift and standing queues (draft, section "Clock drift issues and remedies"): the least delay of each period, averaged.
//! When it is too high, the base delay is measured again while the target is halved.

use crate::params;
use paceline_units::{Time, TimeDelta};

params! {
    /// The parameters of the detection.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DriftConfig {
        /// The draft, where this is optional.
        const DRAFT;

        /// Whether a standing delay halves the target and resets the base delay.
        enabled as "drift": bool = false, from "optional in the draft; C++: 1";
        /// Weight of the lowest delay of a period.
        gain as "drift_gain": f64 = 1.0 / 256.0, in 1e-4..=1.0, from "QDELAY_MIN_AVG_ALPHA; C++: 1/8";
        /// Length of a period, in smoothed round-trip times.
        rtts as "drift_rtts": f64 = 1.0, in 0.0..=1e4, from "draft: 1; C++: kQueueDelayMinSlowAvgUpdateRtts, 100";
        /// Share of the delay target above which the average starts a new measurement.
        share as "drift_share": f64 = 1.0 / 4.0, in 0.0..=10.0, from "draft: 1/4; C++: 1/8";
        /// Whether the average falls at once, and the queuing delay counts from it.
        follows as "drift_follows": bool = false, from "draft: neither; C++: both";
        /// Shortest time between two measurements.
        pause as "drift_pause_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e7,
            from "draft: none; C++: kBaseDelayResetInterval_ntp, 60 s";
    }
}

impl DriftConfig {
    /// The authors' C++.
    pub const CPP: Self = Self {
        enabled: true,
        gain: 1.0 / 8.0,
        rtts: 100.0,
        share: 1.0 / 8.0,
        follows: true,
        pause: TimeDelta::from_secs(60),
    };
}

/// The target is halved for five round-trip times, at least 0.2 s.
const HALVED_RTTS: i64 = 5;
const HALVED_MIN: TimeDelta = TimeDelta::from_millis(200);

/// The detection of one path.
#[derive(Clone, Debug)]
pub struct ClockDrift {
    config: DriftConfig,
    /// `qdelay_min_avg`, s.
    average: f64,
    /// `qdelay_min` of the current period, s, and the start of that.
    min: f64,
    began: Option<Time>,
    /// The start and the end of the last time with half the target.
    halved: Option<(Time, Time)>,
    /// Whether that time goes on.
    is_halved: bool,
}

impl ClockDrift {
    pub fn new(config: DriftConfig) -> Self {
        Self { config, average: 0.0, min: f64::INFINITY, began: None, halved: None, is_halved: false }
    }

    /// Handles a queuing delay. Returns whether the base delay must be forgotten.
    pub fn update(&mut self, now: Time, qdelay: TimeDelta, s_rtt: TimeDelta, target: TimeDelta) -> bool {
        if !self.config.enabled {
            return false;
        }
        self.min = self.min.min(qdelay.as_secs_f64());
        if now - *self.began.get_or_insert(now) >= s_rtt.scale(self.config.rtts) {
            let min = core::mem::replace(&mut self.min, f64::INFINITY);
            let falls = self.config.follows && min < self.average;
            let gain = if falls { 1.0 } else { self.config.gain };
            self.average = (1.0 - gain) * self.average + gain * min;
            self.began = Some(now);
        }
        let is_due = self.halved.is_none_or(|(began, _)| now - began >= self.config.pause);
        if !self.is_halved && is_due && self.average > self.config.share * target.as_secs_f64() {
            self.halved = Some((now, now + (s_rtt * HALVED_RTTS).max(HALVED_MIN)));
            self.is_halved = true;
        }
        if self.is_halved && self.halved.is_some_and(|(_, end)| now >= end) {
            self.is_halved = false;
            self.average = 0.0;
            self.min = f64::INFINITY;
            return true;
        }
        false
    }

    /// Returns by how much the queuing delay is too high, s.
    pub fn offset(&self) -> f64 {
        if self.config.follows { self.average } else { 0.0 }
    }

    /// Returns what to multiply the target with.
    pub fn factor(&self) -> f64 {
        if self.is_halved { 0.5 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 30 ms of standing delay and a target of 60 ms the average passes 15 ms after 256 ln 2 = 178 round-trip times.
    #[test]
    fn standing_delay_halves_the_target_and_then_resets_the_base_delay() {
        let config = DriftConfig { enabled: true, ..DriftConfig::DRAFT };
        let (mut drift, rtt, target) =
            (ClockDrift::new(config), TimeDelta::from_millis(50), TimeDelta::from_millis(60));
        let mut halved = None;
        let mut reset = None;
        for n in 0..200 {
            let now = Time::ZERO + rtt * n;
            if drift.update(now, TimeDelta::from_millis(30), rtt, target) {
                reset = Some(n);
                break;
            }
            halved = halved.or((drift.factor() < 1.0).then_some(n));
        }
        assert_eq!((halved, reset), (Some(178), Some(183)));
        assert_eq!(drift.factor(), 1.0);
        let mut short = ClockDrift::new(config);
        assert!((0..10_000).all(|n| !short.update(Time::ZERO + rtt * n, TimeDelta::from_millis(14), rtt, target)));
        assert_eq!(short.factor(), 1.0);
    }
}
