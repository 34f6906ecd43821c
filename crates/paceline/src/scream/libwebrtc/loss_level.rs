//! The loss level: round-trip times with a loss raise it by a third, those without one lower it by a half (`loss_estimator.cc`).
//! Packets that arrive after all clear it, so there is no reordering window.

use super::config::{ScreamLibwebrtcConfig, since};
use paceline_units::{Time, TimeDelta};

/// The level at which losses are congestion.
const CONGESTED: f64 = 0.99;
/// The level from which the window does not grow.
const BLOCKS_GROWTH: f64 = 0.01;

/// The level and what it is counted from.
#[derive(Clone, Debug, Default)]
pub struct LossLevel {
    /// 0 to 1.
    pub level: f64,
    /// Whether a packet was lost in this round-trip time.
    lost: bool,
    /// The lost packets that did not arrive after all.
    outstanding: u64,
    /// The last loss or late arrival.
    changed: Option<Time>,
    /// The start of this round-trip time.
    began: Option<Time>,
}

impl LossLevel {
    /// Handles a report with this number of newly lost packets and of lost packets that arrived after all.
    pub fn update(
        &mut self,
        now: Time,
        lost: u32,
        recovered: u32,
        smoothed_rtt: TimeDelta,
        config: &ScreamLibwebrtcConfig,
    ) {
        let interval = config.virtual_rtt.max(smoothed_rtt);
        if since(now, self.changed) > interval {
            self.outstanding = 0;
        }
        if lost > 0 || recovered > 0 {
            self.changed = Some(now);
        }
        if recovered > 0 {
            self.outstanding = self.outstanding.saturating_sub(recovered.into());
            if self.outstanding == 0 {
                (self.level, self.lost) = (0.0, false);
            }
        }
        if lost > 0 {
            self.outstanding += u64::from(lost);
            self.lost = true;
        }
        if since(now, self.began) >= interval {
            self.began = Some(now);
            self.level = match core::mem::take(&mut self.lost) {
                true => (self.level + 1.0 / config.lossy_rtts as f64).min(1.0),
                false => (self.level - 1.0 / config.lossless_rtts as f64).max(0.0),
            };
        }
    }

    /// Returns whether losses are congestion.
    pub fn is_congested(&self) -> bool {
        self.level >= CONGESTED
    }

    /// Returns whether the window must not grow.
    pub fn blocks_growth(&self) -> bool {
        self.level >= BLOCKS_GROWTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// Returns the levels after reports at these times, ms, with these losses and late arrivals.
    fn levels<const N: usize>(reports: [(i64, u32, u32); N]) -> [f64; N] {
        let mut level = LossLevel::default();
        reports.map(|(ms, lost, recovered)| {
            level.update(Time::from_millis(ms), lost, recovered, RTT, &CONFIG);
            (level.level * 1e6 + 0.5).floor() / 1e6
        })
    }

    #[test]
    fn late_arrivals_clear_the_level_once_none_is_missing() {
        assert_eq!(levels([(0, 2, 0), (10, 0, 1), (20, 0, 1), (50, 0, 0)]), [0.333_333, 0.333_333, 0.0, 0.0]);
        assert_eq!(levels([(0, 0, 0), (10, 1, 0), (20, 0, 1), (50, 0, 0)]), [0.0; 4], "nor does its interval count");
        // The loss of the same report counts after the late arrival.
        assert_eq!(levels([(0, 1, 0), (10, 1, 1), (50, 0, 0)]), [0.333_333, 0.0, 0.333_333]);
    }

    /// Losses of more than a round-trip time ago do not have to arrive.
    #[test]
    fn old_losses_do_not_have_to_arrive() {
        assert_eq!(levels([(0, 2, 0), (50, 1, 0), (101, 1, 0), (110, 0, 1)])[3], 0.0);
        assert!(levels([(0, 2, 0), (50, 1, 0), (100, 1, 0), (110, 0, 1)])[3] > 0.9);
    }
}
