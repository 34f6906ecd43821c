// SPDX-License-Identifier: MIT OR Apache-2.0
//! The average loss rate, by which losses of the link layer are distinguished from those of congestion (draft, section
//! "Link layer losses and rate policers"; optional there).

use crate::params;

params! {
    /// The parameters of the loss rate.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LossRateConfig {
        /// The draft, where both thresholds are optional.
        const DRAFT;

        /// Loss rate below which losses count only when the queue grows; 0: every loss counts.
        threshold as "loss_threshold": f64 = 0.0, in 0.0..=1.0, from "LOSS_RATE_THRESHOLD; optional: 0.01";
        /// Loss rate above which losses without a queue bound ref_wnd; 1: never.
        policer as "policer_threshold": f64 = 1.0, in 0.0..=1.0, from "LOSS_RATE_THRESHOLD_POLICER; optional: 0.1";
        /// That bound over ref_wnd.
        policer_beta: f64 = 0.9, in 0.1..=1.0, from "BETA_LOSS_POLICER; C++: 0.8";
    }
}

impl LossRateConfig {
    /// The authors' C++.
    pub const CPP: Self = Self { threshold: 0.01, policer_beta: 0.8, ..Self::DRAFT };
}

/// The growth of the bound per round-trip time ("for instance 0.001").
const POLICED_GROWTH: f64 = 1.001;

/// `loss_rate` and `max_policed_ref_wnd`.
#[derive(Clone, Debug)]
pub struct LossRate {
    config: LossRateConfig,
    rate: f64,
    /// Bytes.
    pub policed: f64,
}

impl LossRate {
    pub fn new(config: LossRateConfig) -> Self {
        Self { config, rate: 0.0, policed: f64::INFINITY }
    }

    /// Handles a packet that arrived or is lost. `packets` is the size of the window in packets.
    #[inline]
    pub fn handle_packet(&mut self, lost: bool, packets: f64) {
        if self.config.threshold > 0.0 || self.config.policer < 1.0 {
            let threshold = if self.config.threshold > 0.0 { self.config.threshold } else { 0.01 };
            self.rate = average(self.rate, lost, packets, threshold);
        }
    }

    /// Returns whether a loss is a sign of congestion; if it seems to be that of a policer, it bounds the window. `delay` is
    /// `qdelay_avg` over `qdelay_target`, `window` is in bytes.
    pub fn handle_loss(&mut self, delay: f64, window: f64) -> bool {
        if self.rate > self.config.policer && delay < 0.25 {
            self.policed = window * self.config.policer_beta;
        }
        self.config.threshold == 0.0 || self.rate > self.config.threshold || delay > 0.25
    }

    /// Raises the bound of a policer after a round-trip time.
    pub fn handle_round(&mut self) {
        self.policed *= POLICED_GROWTH;
    }
}

/// `loss_rate`, over two windows, at least four over the threshold packets.
fn average(rate: f64, lost: bool, packets: f64, threshold: f64) -> f64 {
    let alpha = (threshold / 4.0).min(1.0 / packets / 2.0);
    (1.0 - alpha) * rate + if lost { alpha } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_losses_do_not_count_below_the_threshold() {
        let mut rate = LossRate::new(LossRateConfig::CPP);
        (0..1000).for_each(|n| rate.handle_packet(n % 500 == 0, 50.0));
        assert!(!rate.handle_loss(0.2, 1e4) && rate.handle_loss(0.3, 1e4), "a queue grows");
        (0..1000).for_each(|n| rate.handle_packet(n % 20 == 0, 50.0));
        assert!(rate.handle_loss(0.0, 1e4));
        assert_eq!(rate.policed, f64::INFINITY);
        assert!(LossRate::new(LossRateConfig::DRAFT).handle_loss(0.0, 1e4));
    }

    #[test]
    fn losses_without_delay_bound_the_window() {
        let mut rate = LossRate::new(LossRateConfig { policer: 0.1, ..LossRateConfig::DRAFT });
        (0..2000).for_each(|n| rate.handle_packet(n % 5 == 0, 50.0));
        assert!(rate.handle_loss(0.3, 10_000.0) && rate.policed == f64::INFINITY);
        assert!(rate.handle_loss(0.1, 10_000.0) && rate.policed == 9000.0);
        rate.handle_round();
        assert!((rate.policed - 9009.0).abs() < 1e-9);
    }
}
