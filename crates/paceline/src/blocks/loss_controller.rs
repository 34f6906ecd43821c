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
use crate::{Block, FieldVisitor, Setup};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

/// The numbers of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossConfig {
    /// Below this fraction lost the rate grows.
    pub low: f64,
    /// Above this fraction lost the rate falls.
    pub high: f64,
    /// The growth factor per report.
    pub increase: f64,
    /// Added before growth; zero in eq. 5.
    pub step: Rate,
    /// The decrease per fraction lost.
    pub decrease: f64,
    /// The average packet size for the TCP throughput, below which the rate does not fall, if the largest packets have
    /// [`Setup::PACKET_SIZE`], and in proportion otherwise; `None` in eq. 5.
    pub tfrc: Option<DataSize>,
}

impl LossConfig {
    /// The packet size of TFRC in libwebrtc of 2013 (`kAvgPacketSizeBytes`).
    pub const SEGMENT: DataSize = DataSize::from_bytes(1000);
    /// mmsys16, eq. 5.
    pub const Y2016: Self = Self { low: 0.02, high: 0.1, increase: 1.05, step: Rate::ZERO, decrease: 0.5, tfrc: None };
    /// fhmn13, eq. 1.
    pub const Y2013: Self = Self { step: Rate::from_kbps(1), tfrc: Some(Self::SEGMENT), ..Self::Y2016 };
}

impl Block for LossConfig {
    fn fields(&mut self, fields: &mut FieldVisitor<'_>) {
        fields.number("loss_low", "", (0.0, 1.0), &mut self.low).describe("below this loss A_s grows");
        fields.number("loss_high", "", (0.0, 1.0), &mut self.high).describe("above this loss A_s falls");
        fields.number("loss_increase", "", (1.0, 10.0), &mut self.increase).describe("growth of A_s per report");
        fields.rate("loss_step", (0.0, 1e6), &mut self.step).describe("added before growth");
        fields.number("loss_decrease", "", (0.0, 1.0), &mut self.decrease).describe("fall of A_s per fraction lost");
        let mut floor = self.tfrc.is_some();
        fields.flag("tfrc", &mut floor).describe("A_s does not fall below what TCP would get");
        self.tfrc = floor.then_some(self.tfrc.unwrap_or(Self::SEGMENT));
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct LossController {
    config: LossConfig,
    rate: Rate,
    /// The last reported round-trip time.
    rtt: Option<TimeDelta>,
}

impl LossController {
    /// Creates a controller at the start rate.
    pub fn new(config: LossConfig, setup: &Setup) -> Self {
        let tfrc = config.tfrc.map(|segment| setup.scaled(segment));
        Self { config: LossConfig { tfrc, ..config }, rate: setup.start, rtt: None }
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
            let tcp = c.tfrc.zip(self.rtt).map_or(Rate::ZERO, |(segment, rtt)| tfrc(segment, rtt, fraction_lost));
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

    /// Vector V7.5: TCP gets 124 475 bit/s with segments of 1000 bytes, a round-trip time of 100 ms and a loss of 0.11. With
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
