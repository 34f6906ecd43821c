// SPDX-License-Identifier: MIT OR Apache-2.0
//! The averaged queuing delay, its variation, and the virtual marks (draft, section "Detecting Increased Queue Delay").

use crate::params;
use paceline_units::{Time, TimeDelta};

params! {
    /// The parameters of the average.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DelayConfig {
        /// The draft.
        const DRAFT;

        /// Weight of a rise of the queuing delay.
        gain as "qdelay_gain": f64 = 1.0 / 4.0, in 1e-3..=1.0, from "QDELAY_AVG_G";
        /// Whether a delay that varies slows growth and backoff.
        reduce_jitter: bool = false, from "REDUCE_JITTER; draft: off; C++: on";
        /// Decay of the extremes of the delay.
        extremes_gain: f64 = 1.0 / 16.0, in 1e-3..=1.0, from "QDELAY_MIN_MAX_AVG_G";
        /// Weight of the difference of the extremes.
        deviation_gain: f64 = 1.0 / 32.0, in 1e-3..=1.0, from "QDELAY_DEV_AVG_G";
        /// Difference with the full effect.
        deviation_max as "deviation_max_ms": TimeDelta = TimeDelta::from_millis(10), in 0.1..=1e3,
            from "QDELAY_DEV_THRESHOLD";
        /// Whether the difference is taken before the extremes decay, and is at most twice the threshold; otherwise after.
        before_decay as "deviation_first": bool = false, from "draft: after; C++: before";
    }
}

impl DelayConfig {
    /// The authors' C++.
    pub const CPP: Self = Self { reduce_jitter: true, before_decay: true, ..Self::DRAFT };
}

/// `qdelay_avg` and `ref_wnd_delay_scale`. Delays are in seconds.
#[derive(Clone, Debug)]
pub struct DelayAverage {
    config: DelayConfig,
    /// `qdelay_avg`, s.
    pub average: f64,
    /// `qdelay_max_avg`; `qdelay_min_avg`, `None` before the first packet.
    max: f64,
    min: Option<f64>,
    /// `qdelay_dev_avg`.
    deviation: f64,
    /// `ref_wnd_delay_scale`, 0 (the delay varies) to 1.
    pub scale: f64,
    updated: Option<Time>,
}

impl DelayAverage {
    /// Creates an average of zero. The draft starts `qdelay_max_avg` at the target; here it starts at zero, as in the C++, so
    /// that a call does not begin with the variation of a congested path.
    pub fn new(config: DelayConfig) -> Self {
        Self { config, average: 0.0, max: 0.0, min: None, deviation: 0.0, scale: 1.0, updated: None }
    }

    /// Handles the queuing delay of a packet.
    #[inline]
    pub fn handle_packet(&mut self, qdelay: TimeDelta, target: TimeDelta) {
        if self.config.reduce_jitter {
            let qdelay = qdelay.as_secs_f64();
            self.max = self.max.max(qdelay).min(target.as_secs_f64());
            self.min = Some(self.min.map_or(qdelay, |min| min.min(qdelay)));
        }
    }

    /// Handles the delay of the newest packet, in seconds, at most once per `interval`.
    pub fn update(&mut self, now: Time, qdelay: f64, interval: TimeDelta) {
        if self.updated.is_some_and(|at| now - at < interval) {
            return;
        }
        self.updated = Some(now);
        self.average = slow_rise(self.average, qdelay, self.config.gain);
        if self.config.reduce_jitter {
            self.update_scale();
        }
    }

    /// `calculate_ref_wnd_delay_scale`.
    fn update_scale(&mut self) {
        let (g, threshold) = (self.config.extremes_gain, self.config.deviation_max.as_secs_f64());
        let before = (self.max - self.min.unwrap_or(self.max)).clamp(0.0, 2.0 * threshold);
        self.max *= 1.0 - g;
        let min = self.min.unwrap_or(self.max) * (1.0 - g) + self.max * g;
        self.min = Some(min);
        let difference = if self.config.before_decay { before } else { (self.max - min).max(0.0) };
        let g = self.config.deviation_gain;
        self.deviation = (1.0 - g) * self.deviation + g * difference;
        self.scale = (1.0 - self.deviation / threshold).clamp(0.0, 1.0);
    }

    pub fn reset(&mut self) {
        self.average = 0.0;
    }
}

/// `qdelay_avg`: it falls at once and rises slowly.
fn slow_rise(average: f64, qdelay: f64, gain: f64) -> f64 {
    if qdelay < average { qdelay } else { gain * qdelay + (1.0 - gain) * average }
}

/// `l4s_alpha_v`: 0 at half of the target, 1 at the target. Both in seconds.
pub fn virtual_alpha(average: f64, target: f64) -> f64 {
    ((average - target / 2.0) / (target / 2.0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    #[test]
    fn average_falls_at_once_and_rises_by_a_quarter() {
        let mut delay = DelayAverage::new(DelayConfig::DRAFT);
        delay.update(Time::ZERO, 0.040, MS(25));
        assert_eq!(delay.average, 0.010);
        delay.update(Time::from_millis(24), 0.040, MS(25));
        assert_eq!(delay.average, 0.010, "25 ms are not over");
        delay.update(Time::from_millis(25), 0.040, MS(25));
        assert_eq!(delay.average, 0.0175);
        delay.update(Time::from_millis(50), 0.001, MS(25));
        assert_eq!((delay.average, delay.scale), (0.001, 1.0));
    }

    /// Delays between 0 and 40 ms: `max` falls by a sixteenth of 40 ms per update and is raised again.
    #[test]
    fn varying_delay_lowers_the_scale_and_a_constant_one_does_not() {
        let scale_after = |least: i64, most: i64| {
            let mut delay = DelayAverage::new(DelayConfig::CPP);
            for n in 0..400 {
                let at = if n % 2 == 0 { least } else { most };
                delay.handle_packet(MS(at), MS(100));
                delay.update(Time::from_millis(25 * n), 0.0, MS(25));
            }
            delay.scale
        };
        assert!(scale_after(0, 40) < 0.01, "{}", scale_after(0, 40));
        assert!((0.45..0.7).contains(&scale_after(0, 5)), "{}", scale_after(0, 5));
        assert!(scale_after(5, 5) > 0.95, "{}", scale_after(5, 5));
    }
}
