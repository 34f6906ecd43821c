// SPDX-License-Identifier: MIT OR Apache-2.0
//! Push-back on the encoder: frames are dropped while the send window or the pacer is full (`CalculateCwndReduceRatio`,
//! `VideoStreamEncoder::UpdateTargetBitrate`).

use super::config::ScreamLibwebrtcConfig;
use super::rounding::{ratio, time_of};
use paceline_units::{DataSize, Rate};

/// Ratios up to this one drop no frame.
const LEAST: f64 = 0.01;
/// At most every second frame is dropped.
const SHORTEST_INTERVAL: u64 = 2;

/// The state of pacer and network.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub in_flight: DataSize,
    pub send_window: DataSize,
    /// The bytes in the pacer's queue.
    pub queued: DataSize,
    pub pacing: Rate,
}

/// Returns the ratio by which the encoder is to reduce its rate, 0 to 1.
pub fn reduction(load: &Load, config: &ScreamLibwebrtcConfig) -> f64 {
    if load.in_flight > load.send_window {
        return 1.0;
    }
    let (least, most) = (config.pushback_min, config.pushback_max);
    if load.queued == DataSize::ZERO || load.pacing == Rate::ZERO || most <= least {
        return 0.0;
    }
    ratio(time_of(load.queued, load.pacing) - least, most - least).clamp(0.0, 1.0)
}

/// Returns whether encoders drop frames for this reduction.
pub fn drops_frames(reduction: f64) -> bool {
    reduction > LEAST
}

/// Returns the rate of an encoder that drops every n-th frame for this reduction, at most every second one. It drops none if the
/// target is not above the least rate.
pub fn rate_with_drops(target: Rate, least: Rate, reduction: f64) -> Rate {
    if !drops_frames(reduction) {
        return target;
    }
    let reduced = (target.as_bps_f64() * reduction) as u64;
    let reduced = reduced.min(target.saturating_sub(least).as_bps());
    match target.as_bps().checked_div(reduced) {
        Some(interval) => Rate::from_bps(target.as_bps() - target.as_bps() / interval.max(SHORTEST_INTERVAL)),
        None => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacer_without_rate_or_range_reduces_nothing() {
        let (config, queued) = (ScreamLibwebrtcConfig::LIBWEBRTC, DataSize::from_bytes(1));
        let none = ScreamLibwebrtcConfig { pushback_max: config.pushback_min, ..config.clone() };
        for (pacing, config) in [(Rate::ZERO, &config), (Rate::from_bps(1), &none)] {
            let load = Load { in_flight: DataSize::ZERO, send_window: DataSize::ZERO, queued, pacing };
            assert_eq!(reduction(&load, config), 0.0);
        }
    }

    #[test]
    fn every_second_frame_at_most_is_dropped() {
        let rate = |reduction| rate_with_drops(Rate::from_kbps(1000), Rate::from_kbps(30), reduction).as_bps();
        assert_eq!([rate(0.0), rate(0.01)], [1_000_000; 2]);
        assert_eq!(
            [rate(0.02), rate(0.25), rate(0.3), rate(0.5), rate(1.0)],
            [980_000, 750_000, 666_667, 500_000, 500_000]
        );
        let small = |least| rate_with_drops(Rate::from_bps(100), Rate::from_bps(least), 1.0).as_bps();
        assert_eq!([small(0), small(75), small(100), small(200)], [50, 75, 100, 100]);
    }
}
