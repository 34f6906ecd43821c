//! The smoothed round-trip time, the time for which the receiver holds its feedback, and the virtual round-trip time: flows whose
//! round-trip time is shorter than that grow as if it was theirs.

use super::config::ScreamLibwebrtcConfig;
use super::rounding::averaged;
use paceline_units::{DataSize, Rate, TimeDelta};

/// The least smoothed time of the target (`UpdateTargetRate`).
const LEAST: TimeDelta = TimeDelta::from_millis(1);

/// The smoothed round-trip time and the feedback hold time.
#[derive(Clone, Debug, Default)]
pub struct VirtualRtt {
    smoothed: TimeDelta,
    hold: TimeDelta,
}

impl VirtualRtt {
    /// Handles a round-trip time. While the application limits the flow (`limited`), it changes slowly.
    pub fn handle_rtt(&mut self, sample: TimeDelta, limited: bool, config: &ScreamLibwebrtcConfig) {
        let gain = if limited { config.rtt_gain_in_alr } else { config.rtt_gain };
        self.smoothed = match self.smoothed {
            TimeDelta::ZERO => sample,
            smoothed => averaged(smoothed, sample, gain),
        };
    }

    /// Handles a hold time.
    pub fn handle_hold(&mut self, sample: TimeDelta, config: &ScreamLibwebrtcConfig) {
        if self.hold == TimeDelta::ZERO && config.hold_gain > 0.0 {
            self.hold = sample;
        }
        self.hold = averaged(self.hold, sample, config.hold_gain);
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    pub fn smoothed(&self) -> TimeDelta {
        self.smoothed
    }

    /// Returns the average hold time.
    pub fn hold(&self) -> TimeDelta {
        self.hold
    }

    /// Returns both together: the time from a packet to its report.
    pub fn to_report(&self) -> TimeDelta {
        self.smoothed + self.hold
    }

    /// Returns the smoothed time that the target is divided by, 1 ms or more.
    pub fn non_zero(&self) -> TimeDelta {
        self.smoothed.max(LEAST)
    }

    /// Returns the larger of the smoothed and the virtual time.
    pub fn at_least_virtual(&self, config: &ScreamLibwebrtcConfig) -> TimeDelta {
        config.virtual_rtt.max(self.smoothed)
    }

    /// Returns the least time between two reactions: the smaller of the smoothed and the virtual time.
    pub fn reaction_interval(&self, config: &ScreamLibwebrtcConfig) -> TimeDelta {
        config.virtual_rtt.min(self.smoothed)
    }

    /// Returns the size of the first window at this rate.
    pub fn first_window(&self, start: Rate) -> DataSize {
        start * self.to_report()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    /// Times in ms.
    pub fn times(smoothed: i64, hold: i64) -> VirtualRtt {
        VirtualRtt { smoothed: MS(smoothed), hold: MS(hold) }
    }

    #[test]
    fn samples_have_an_eighth_or_less_of_the_weight() {
        let mut rtt = VirtualRtt::default();
        rtt.handle_rtt(MS(40), true, &CONFIG);
        assert_eq!(rtt.smoothed(), MS(40), "the first sample is taken whole");
        rtt.handle_rtt(MS(80), false, &CONFIG);
        assert_eq!(rtt.smoothed(), MS(45));
        rtt.handle_rtt(MS(109), true, &CONFIG);
        assert_eq!(rtt.smoothed(), TimeDelta::from_micros(45_500));
    }

    #[test]
    fn first_hold_time_is_taken_whole() {
        let mut rtt = VirtualRtt::default();
        rtt.handle_hold(MS(8), &CONFIG);
        assert_eq!(rtt.hold(), MS(8));
        rtt.handle_hold(MS(16), &CONFIG);
        assert_eq!((rtt.hold(), rtt.to_report()), (MS(9), MS(9)));
        let none = ScreamLibwebrtcConfig { hold_gain: 0.0, ..CONFIG };
        let mut rtt = VirtualRtt::default();
        rtt.handle_hold(MS(8), &none);
        assert_eq!(rtt.hold(), TimeDelta::ZERO, "a gain of zero ignores it");
    }

    #[test]
    fn virtual_time_bounds_intervals() {
        let bounds = |rtt: VirtualRtt| (rtt.reaction_interval(&CONFIG), rtt.at_least_virtual(&CONFIG), rtt.non_zero());
        assert_eq!(bounds(times(10, 50)), (MS(10), MS(25), MS(10)));
        assert_eq!(bounds(times(40, 50)), (MS(25), MS(40), MS(40)));
        assert_eq!(bounds(times(0, 50)), (MS(0), MS(25), MS(1)));
        assert_eq!(times(50, 10).first_window(Rate::from_kbps(300)), DataSize::from_bytes(2250));
    }
}
