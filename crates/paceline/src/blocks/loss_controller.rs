//! The loss-based controller: a rate that falls with heavy loss, rests with some, grows with none.
//!
//! ```text
//!            A_s (1 - 0.5 f)   f > 0.1
//! A_s(k) =   1.05 A_s          f < 0.02                                             (mmsys16, eq. 5)
//!            A_s               otherwise
//! ```
//!
//! Applied once per receiver report. In 2013 it grew by `1.05 (A_s + 1 kbit/s)` and did not fall below what TCP would get
//! (fhmn13, eq. 1).

use super::tfrc;
use crate::{Block, Fields};
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

/// Numbers of the controller, all from eq. 5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossConfig {
    /// Below this fraction lost the rate grows.
    pub low: f64,
    /// Above this fraction lost the rate falls.
    pub high: f64,
    /// Growth factor per report.
    pub increase: f64,
    /// Added before growth; nothing in eq. 5.
    pub step: Rate,
    /// Share of the fraction lost by which the rate falls.
    pub decrease: f64,
    /// The packet size of the TCP throughput below which the rate does not fall; none in eq. 5.
    pub tfrc: Option<DataSize>,
}

impl LossConfig {
    /// The packet size that libwebrtc of 2013 gives TFRC (`kAvgPacketSizeBytes`).
    pub const SEGMENT: DataSize = DataSize::from_bytes(1000);
    /// As in 2013 (fhmn13, eq. 1).
    pub const Y2013: Self = Self {
        low: 0.02,
        high: 0.1,
        increase: 1.05,
        step: Rate::from_kbps(1),
        decrease: 0.5,
        tfrc: Some(Self::SEGMENT),
    };
}

impl Block for LossConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.number("loss_low", "", (0.0, 1.0), &mut self.low).says("below this loss A_s grows");
        fields.number("loss_high", "", (0.0, 1.0), &mut self.high).says("above this loss A_s falls");
        fields.number("loss_increase", "", (1.0, 10.0), &mut self.increase).says("growth of A_s per report");
        fields.rate("loss_step", (0.0, 1e6), &mut self.step).says("added before growth");
        fields.number("loss_decrease", "", (0.0, 1.0), &mut self.decrease).says("fall of A_s per fraction lost");
        let mut floor = self.tfrc.is_some();
        fields.flag("tfrc", &mut floor).says("A_s does not fall below what TCP would get");
        self.tfrc = floor.then_some(self.tfrc.unwrap_or(Self::SEGMENT));
    }
}

/// The controller.
#[derive(Clone, Debug)]
pub struct LossController {
    config: LossConfig,
    rate: Rate,
    /// The last round-trip time that a report gave.
    rtt: Option<TimeDelta>,
}

impl LossController {
    /// At its first rate.
    pub fn new(config: LossConfig, start: Rate) -> Self {
        Self { config, rate: start, rtt: None }
    }

    /// `A_s`.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// A receiver report: eq. 5.
    pub fn handle_report(&mut self, fraction_lost: Fraction, rtt: Option<TimeDelta>) {
        self.rtt = rtt.or(self.rtt);
        let (f, c) = (fraction_lost.get(), &self.config);
        if f > c.high {
            let tcp = c.tfrc.zip(self.rtt).map_or(Rate::ZERO, |(segment, rtt)| tfrc(segment, rtt, fraction_lost));
            self.rate = self.rate.scale(1.0 - c.decrease * f).max(tcp);
        } else if f < c.low {
            self.rate = (self.rate + c.step).scale(c.increase);
        }
    }

    /// Keeps the rate between a floor and a ceiling ("A_s cannot exceed A_r", section 3.2); the floor wins.
    pub fn bound(&mut self, min: Rate, max: Rate) {
        self.rate = self.rate.min(max).max(min);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_5() {
        let config = LossConfig { low: 0.02, high: 0.1, increase: 1.05, step: Rate::ZERO, decrease: 0.5, tfrc: None };
        let after = |f| {
            let mut c = LossController::new(config, Rate::from_kbps(1000));
            c.handle_report(Fraction::new(f).unwrap(), None);
            c.rate().as_bps()
        };
        assert_eq!(
            [0.0, 0.0199, 0.02, 0.05, 0.1, 0.2, 1.0].map(after),
            [1_050_000, 1_050_000, 1_000_000, 1_000_000, 1_000_000, 900_000, 500_000]
        );
    }
}
