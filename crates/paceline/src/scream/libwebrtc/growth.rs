//! Growth of the reference window: a segment for each round-trip time, and after a while without reaction 2 % more. It is slower
//! with a short round-trip time, near the inflection point, and where the delay shows that the link is nearly full.

use super::config::ScreamLibwebrtcConfig;
use super::queue_delay::QueueDelay;
use super::rounding::{ratio, scale_size, size_ratio};
use super::virtual_rtt::VirtualRtt;
use super::window::{MIN_FLOOR, NEAR_FLOOR};
use paceline_units::{DataSize, TimeDelta};

/// What growth depends on.
#[derive(Clone, Copy, Debug)]
pub struct Growth<'a> {
    /// The window, after a reaction.
    pub window: DataSize,
    /// The factor of the distance from the inflection point.
    pub near: f64,
    /// The time since the last reaction.
    pub since_reaction: TimeDelta,
    pub delay: &'a QueueDelay,
    pub rtt: &'a VirtualRtt,
}

/// Returns by how much the window grows for a report on this many bytes that are not marked.
pub fn increment(not_marked: DataSize, growth: &Growth<'_>, config: &ScreamLibwebrtcConfig) -> DataSize {
    let additive = mss_share(growth.window, config) * short_rtt_factor(growth.rtt, config);
    let limited = additive
        * growth.near.max(NEAR_FLOOR)
        * growth.delay.min_factor(MIN_FLOOR, config)
        * growth.delay.difference_factor(config);
    scale_size(not_marked, limited * multiplicative(growth, config))
}

/// Returns a segment as a share of the window, at most 1 (`ref_window_mss_ratio`).
pub fn mss_share(window: DataSize, config: &ScreamLibwebrtcConfig) -> f64 {
    size_ratio(config.mss, window).min(1.0)
}

/// Returns the square of the time to a report over the virtual round-trip time, at most 1.
fn short_rtt_factor(rtt: &VirtualRtt, config: &ScreamLibwebrtcConfig) -> f64 {
    let share = ratio(rtt.to_report(), config.virtual_rtt);
    if share < 1.0 { share * share } else { 1.0 }
}

/// Returns the multiplicative factor, 1 or more: 1 at a reaction.
fn multiplicative(growth: &Growth<'_>, config: &ScreamLibwebrtcConfig) -> f64 {
    let calm = growth.rtt.at_least_virtual(config) * config.post_rtts as i64;
    let post = ratio(growth.since_reaction, calm).clamp(0.0, 1.0);
    1.0 + size_ratio(scale_size(growth.window, config.growth), config.mss) * post * growth.near
}

#[cfg(test)]
mod tests {
    use super::super::queue_delay::tests::averages;
    use super::super::virtual_rtt::tests::times;
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;

    /// Returns the growth for as many bytes as the window has, which is 64,000 B: 1280 B without any limit.
    fn grown(near: f64, since_ms: i64, delay: &QueueDelay, rtt: &VirtualRtt) -> u64 {
        let window = DataSize::from_bytes(64_000);
        let growth = Growth { window, near, since_reaction: TimeDelta::from_millis(since_ms), delay, rtt };
        increment(window, &growth, &CONFIG).as_bytes()
    }

    #[test]
    fn window_grows_by_a_segment_per_round_trip_and_by_two_percent_later() {
        let (delay, rtt) = (averages(0, 0, 0), times(50, 0));
        assert_eq!(grown(1.0, 0, &delay, &rtt), 1280);
        assert_eq!(grown(1.0, 2500, &delay, &rtt), 1280 + 640);
        assert_eq!(grown(1.0, 5000, &delay, &rtt), 2560);
        assert_eq!(grown(1.0, 50_000, &delay, &rtt), 2560);
        assert_eq!(grown(1.0, 1250, &delay, &times(12, 13)), 1280 + 640, "100 virtual round-trip times are 2.5 s");
    }

    #[test]
    fn growth_is_slower_near_the_inflection_point_and_with_delays() {
        let rtt = times(50, 0);
        assert_eq!(grown(0.5, 0, &averages(0, 0, 0), &rtt), 640);
        assert_eq!(grown(0.1, 0, &averages(0, 0, 0), &rtt), 320);
        assert_eq!(grown(0.5, 5000, &averages(0, 0, 0), &rtt), 960);
        assert_eq!(grown(1.0, 0, &averages(0, 5, 0), &rtt), 896);
        assert_eq!(grown(1.0, 0, &averages(0, 0, 5), &rtt), 896);
        assert_eq!(grown(1.0, 0, &averages(0, 20, 20), &rtt), 13);
    }

    /// By hand: (12.5 / 25)² = 1/4, where the hold time counts as well.
    #[test]
    fn growth_is_slower_with_a_short_round_trip_time() {
        let delay = averages(0, 0, 0);
        assert_eq!(grown(1.0, 0, &delay, &times(5, 0)), 51);
        assert_eq!(grown(1.0, 0, &delay, &times(5, 15)), 819);
        assert_eq!(grown(1.0, 0, &delay, &times(5, 20)), 1280);
        assert_eq!(grown(1.0, 0, &delay, &times(90, 90)), 1280);
    }

    #[test]
    fn segment_is_at_most_the_window() {
        let share = |bytes| mss_share(DataSize::from_bytes(bytes), &CONFIG);
        assert_eq!([share(0), share(1000), share(1280), share(2560)], [1.0, 1.0, 1.0, 0.5]);
    }
}
