// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fraction of marked packets, averaged with a fast rise and a slow fall (draft, section "Receiving ECN-CE for L4S").

use crate::params;
use paceline_units::{Time, TimeDelta};

params! {
    /// The parameters of the average.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AlphaConfig {
        /// The draft.
        const DRAFT;

        /// Initial `l4s_alpha`.
        start as "alpha_start": f64 = 0.0, in 0.0..=1.0, from "draft: 0; C++: 0.1";
        /// Weight of a greater fraction of marks.
        up as "alpha_up": f64 = 1.0 / 8.0, in 1e-4..=1.0, from "L4S_AVG_G_UP";
        /// Weight of a smaller fraction of marks.
        down as "alpha_down": f64 = 1.0 / 128.0, in 1e-4..=1.0, from "L4S_AVG_G_DOWN";
        /// Time between two updates, if a round-trip time is not shorter.
        interval as "alpha_ms": TimeDelta = TimeDelta::from_millis(10), in 0.1..=1e3,
            from "draft: 10 ms; C++: more than 655/65536 s";
    }
}

impl AlphaConfig {
    /// The authors' C++, whose interval is more than 655 / 65536 s.
    pub const CPP: Self = Self { start: 0.1, interval: TimeDelta::from_micros(10_009), ..Self::DRAFT };
}

/// `l4s_alpha`.
#[derive(Clone, Debug)]
pub struct L4sAlpha {
    config: AlphaConfig,
    /// `l4s_alpha`, 0 to 1.
    pub alpha: f64,
    /// `data_units_delivered_this_rtt`, `data_units_marked_this_rtt`.
    delivered: u64,
    marked: u64,
    /// `last_fraction_marked`.
    pub fraction: f64,
    updated: Option<Time>,
}

impl L4sAlpha {
    pub fn new(config: AlphaConfig) -> Self {
        Self { config, alpha: config.start, delivered: 0, marked: 0, fraction: 0.0, updated: None }
    }

    #[inline]
    pub fn handle_packet(&mut self, marked: bool) {
        self.delivered += 1;
        self.marked += u64::from(marked);
    }

    /// Updates the average, at most every `min(10 ms, s_rtt)` (draft).
    pub fn update(&mut self, now: Time, s_rtt: TimeDelta) {
        let since = *self.updated.get_or_insert(now);
        if now - since < self.config.interval.min(s_rtt) || self.delivered == 0 {
            return;
        }
        self.updated = Some(now);
        self.fraction = self.marked as f64 / self.delivered as f64;
        (self.delivered, self.marked) = (0, 0);
        self.alpha = average(self.alpha, self.fraction, &self.config);
    }
}

/// The EWMA filter of `l4s_alpha`.
fn average(alpha: f64, fraction: f64, config: &AlphaConfig) -> f64 {
    if fraction >= alpha { config.up * fraction + (1.0 - config.up) * alpha } else { (1.0 - config.down) * alpha }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: one of two packets is marked: 0.5 / 8; then none: 127 / 128 of it.
    #[test]
    fn average_rises_by_an_eighth_and_falls_by_a_hundredtwentyeighth() {
        let mut alpha = L4sAlpha::new(AlphaConfig::DRAFT);
        let rtt = TimeDelta::from_millis(50);
        alpha.handle_packet(true);
        alpha.update(Time::ZERO, rtt);
        assert_eq!(alpha.alpha, 0.0, "the first interval begins");
        alpha.handle_packet(false);
        alpha.update(Time::from_millis(9), rtt);
        assert_eq!(alpha.alpha, 0.0, "10 ms are not over");
        alpha.update(Time::from_millis(10), rtt);
        assert_eq!((alpha.alpha, alpha.fraction), (0.0625, 0.5));
        alpha.update(Time::from_millis(30), rtt);
        assert_eq!(alpha.alpha, 0.0625, "no packet");
        alpha.handle_packet(false);
        alpha.update(Time::from_millis(31), rtt);
        assert_eq!((alpha.alpha, alpha.fraction), (0.0625 * 127.0 / 128.0, 0.0));
        alpha.handle_packet(true);
        alpha.update(Time::from_millis(36), TimeDelta::from_millis(5));
        assert_eq!(alpha.fraction, 1.0, "a round-trip time below 10 ms shortens the interval");
    }
}
