// SPDX-License-Identifier: MIT OR Apache-2.0
//! The averages of reports: the fraction of marked packets, the received rate, the round-trip time and the hold time.

use super::config::ScreamLibwebrtcConfig;
use super::rounding::averaged;
use crate::blocks::units::rate_of;
use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// `l4s_alpha`, 0 to 1: the fraction of marked packets, averaged with a fast rise and a slow fall (`UpdateL4SAlpha`). Each report
/// updates it, whatever the time since the last one.
#[derive(Clone, Debug, Default)]
pub struct L4sAlpha(pub f64);

impl L4sAlpha {
    /// Handles a report on `received` packets, more than zero, of which `marked` were marked.
    pub fn update(&mut self, received: u32, marked: u32, config: &ScreamLibwebrtcConfig) {
        let fraction = f64::from(marked) / f64::from(received);
        self.0 = if fraction > self.0 {
            (config.alpha_up * fraction + (1.0 - config.alpha_up) * self.0).min(1.0)
        } else {
            (1.0 - config.alpha_down) * self.0
        };
    }
}

/// The rate at which packets arrived over the last 100 ms or more, on the receiver's clock (`UpdateReceiveRate`).
#[derive(Clone, Debug, Default)]
pub struct ReceivedRate {
    /// Zero before the first report, [`Rate::MAX`] until it is measured.
    pub rate: Rate,
    received: DataSize,
    began: Option<RemoteTime>,
}

impl ReceivedRate {
    /// Handles the bytes that a report says have arrived, the last of them at `last`.
    pub fn update(&mut self, last: RemoteTime, received: DataSize, config: &ScreamLibwebrtcConfig) {
        self.received += received;
        let Some(began) = self.began else {
            (self.began, self.rate, self.received) = (Some(last), Rate::MAX, DataSize::ZERO);
            return;
        };
        let time = last - began;
        if time >= config.received {
            self.rate = rate_of(core::mem::take(&mut self.received), time);
            self.began = Some(last);
        }
    }

    /// Returns the rate; `None` from the first report on until it is measured.
    pub fn finite(&self) -> Option<Rate> {
        (self.rate < Rate::MAX).then_some(self.rate)
    }
}

/// The least smoothed time of the target (`UpdateTargetRate`).
const LEAST: TimeDelta = TimeDelta::from_millis(1);

/// The smoothed round-trip time and the feedback hold time. Flows whose round-trip time is shorter than the virtual one grow as if
/// that was theirs.
#[derive(Clone, Debug, Default)]
pub struct VirtualRtt {
    /// Zero before the first sample.
    pub smoothed: TimeDelta,
    pub hold: TimeDelta,
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
mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;

    /// The calls of `tests/suite/scream_libwebrtc.rs` show the rest.
    #[test]
    fn first_report_starts_the_measurement_and_a_gain_of_zero_ignores_hold_times() {
        let mut received = ReceivedRate::default();
        let mut after = |ms: i64, bytes| {
            received.update(RemoteTime::from_millis(ms), DataSize::from_bytes(bytes), &CONFIG);
            received.rate
        };
        assert_eq!([after(-50, 9000), after(49, 1000)], [Rate::MAX; 2]);
        assert_eq!(after(70, 2000), Rate::from_kbps(200), "3000 B in 120 ms");
        let mut rtt = VirtualRtt::default();
        rtt.handle_hold(TimeDelta::from_millis(8), &ScreamLibwebrtcConfig { hold_gain: 0.0, ..CONFIG });
        assert_eq!(rtt.hold, TimeDelta::ZERO);
    }
}
