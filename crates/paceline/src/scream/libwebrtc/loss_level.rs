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
    level: f64,
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

    /// Returns the level, 0 to 1.
    pub fn get(&self) -> f64 {
        self.level
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
            (level.get() * 1e6 + 0.5).floor() / 1e6
        })
    }

    /// The pattern of section 6: loss, loss, clean, loss, loss, loss.
    #[test]
    fn three_lossy_round_trips_in_a_row_are_congestion() {
        let lossy = [(0, 1, 0), (50, 1, 0), (100, 0, 0), (150, 1, 0), (200, 1, 0), (250, 1, 0), (300, 1, 0)];
        assert_eq!(levels(lossy), [0.333_333, 0.666_667, 0.166_667, 0.5, 0.833_333, 1.0, 1.0]);
        assert_eq!(levels([(0, 1, 0), (50, 0, 0), (100, 0, 0)]), [0.333_333, 0.0, 0.0]);
        let mut level = LossLevel { level: 0.99, ..LossLevel::default() };
        assert!(level.is_congested() && level.blocks_growth());
        level.level = 0.989;
        assert!(!level.is_congested() && level.blocks_growth());
        level.level = 0.009;
        assert!(!level.blocks_growth());
    }

    /// A round-trip time is the larger of 25 ms and the smoothed time; losses within it count once.
    #[test]
    fn losses_count_once_in_each_round_trip() {
        assert_eq!(
            levels([(0, 1, 0), (20, 1, 0), (49, 1, 0), (50, 0, 0)]),
            [0.333_333, 0.333_333, 0.333_333, 0.666_667]
        );
        let mut level = LossLevel::default();
        for ms in [0, 24, 25] {
            level.update(Time::from_millis(ms), 1, 0, TimeDelta::from_millis(5), &CONFIG);
        }
        assert!((level.get() - 2.0 / 3.0).abs() < 1e-12);
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
