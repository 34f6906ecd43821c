// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss-based controller: the rate decreases with heavy loss, stays with moderate loss and grows without loss.
//!
//! ```text
//!            A_s (1 - 0.5 f)   f > 0.1
//! A_s(k) =   1.05 A_s          f < 0.02                                             (mmsys16, eq. 5)
//!            A_s               otherwise
//! ```
//!
//! Applied once per receiver report. In 2013 the growth was `1.05 (A_s + 1 kbit/s)`, and the rate did not fall below
//! the TCP throughput (fhmn13, eq. 1).

use super::tfrc;
use crate::{Setup, params};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

params! {
    /// The parameters of the controller.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct LossConfig {
        /// mmsys16, eq. 5.
        const Y2016;

        /// Fraction lost below which A_s grows.
        low as "loss_low": f64 = 0.02, in 0.0..=1.0, from "eq. 5";
        /// Fraction lost above which A_s falls.
        high as "loss_high": f64 = 0.1, in 0.0..=1.0, from "eq. 5";
        /// Growth factor of A_s per report.
        increase as "loss_increase": f64 = 1.05, in 1.0..=10.0, from "eq. 5";
        /// Added to A_s before growth.
        step as "loss_step": Rate = Rate::ZERO, in 0.0..=1e6, from "eq. 5";
        /// Decrease of A_s per fraction lost.
        decrease as "loss_decrease": f64 = 0.5, in 0.0..=1.0, from "eq. 5";
        /// Whether A_s does not fall below the throughput of TCP.
        tfrc: bool = false, from "eq. 5";
    }
}

impl LossConfig {
    /// fhmn13, eq. 1.
    pub const Y2013: Self = Self { step: Rate::from_kbps(1), tfrc: true, ..Self::Y2016 };
}

/// The average packet size for the throughput of TCP in libwebrtc of 2013 (`kAvgPacketSizeBytes`), if the largest packets
/// have [`Setup::PACKET_SIZE`], and in proportion otherwise.
const SEGMENT: DataSize = DataSize::from_bytes(1000);

/// The controller.
#[derive(Clone, Debug)]
pub struct LossController {
    config: LossConfig,
    /// The average packet size for the throughput of TCP, if that bounds the rate.
    segment: Option<DataSize>,
    rate: Rate,
    /// The last reported round-trip time.
    rtt: Option<TimeDelta>,
}

impl LossController {
    /// Creates a controller at the start rate.
    pub fn new(config: LossConfig, setup: &Setup) -> Self {
        let segment = config.tfrc.then(|| setup.scaled(SEGMENT));
        Self { config, segment, rate: setup.start, rtt: None }
    }

    /// Returns `A_s`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the round-trip time.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = Some(rtt);
    }

    /// Handles a receiver report (eq. 5).
    pub fn handle_report(&mut self, fraction_lost: Fraction) {
        let (f, c) = (fraction_lost.get(), &self.config);
        if f > c.high {
            let tcp = self.segment.zip(self.rtt).map_or(Rate::ZERO, |(segment, rtt)| tfrc(segment, rtt, fraction_lost));
            self.rate = self.rate.scale(1.0 - c.decrease * f).max(tcp);
        } else if f < c.low {
            self.rate = (self.rate + c.step).scale(c.increase);
        }
    }

    /// Replaces the rate by the flow's share of the rate of several flows (RFC 8699, appendix A).
    pub fn set_coupled(&mut self, share: Rate) {
        self.rate = share;
    }

    /// Raises the rate to at least `rate`: the result of a probe.
    pub fn raise(&mut self, rate: Rate) {
        self.rate = self.rate.max(rate);
    }

    /// Bounds the rate ("A_s cannot exceed A_r", section 3.2). If `min` exceeds `max`, the rate is `min`.
    pub fn bound(&mut self, min: Rate, max: Rate) {
        self.rate = self.rate.min(max).max(min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;

    #[test]
    fn rate_follows_equation_5() {
        let after = |f| {
            let mut c = LossController::new(LossConfig::Y2016, &Setup { start: Rate::from_kbps(1000), ..SETUP });
            c.handle_report(Fraction::new(f).unwrap());
            c.rate().as_bps()
        };
        assert_eq!(
            [0.0, 0.0199, 0.02, 0.05, 0.1, 0.2, 1.0].map(after),
            [1_050_000, 1_050_000, 1_000_000, 1_000_000, 1_000_000, 900_000, 500_000]
        );
    }

    /// Vector V7.1: TCP gets 124 475 bit/s with segments of 1000 bytes, a round-trip time of 100 ms and a loss of 0.11. With
    /// packets of half the size the average is half of that, and so is the rate. Without TCP 94.5 of 100 kbit/s remain.
    #[test]
    fn rate_does_not_fall_below_tcp_with_packets_of_the_flow() {
        let after = |packet_size| {
            let setup = Setup { start: Rate::from_kbps(100), packet_size: DataSize::from_bytes(packet_size), ..SETUP };
            let mut c = LossController::new(LossConfig::Y2013, &setup);
            c.set_rtt(TimeDelta::from_millis(100));
            c.handle_report(Fraction::new(0.11).unwrap());
            c.rate().as_bps()
        };
        assert_eq!([after(1200), after(900), after(600)], [124_475, 94_500, 94_500]);
    }
}
