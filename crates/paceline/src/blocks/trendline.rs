//! The trendline: whether the queue grows is the slope of a line through the last smoothed delays.
//!
//! ```text
//! acc_i = acc_{i-1} + d_i                 d_i = (t_i - t_{i-1}) - (T_i - T_{i-1})
//! s_i   = 0.9 s_{i-1} + 0.1 acc_i
//! trend = sum (t_j - mean t)(s_j - mean s) / sum (t_j - mean t)²                  (rmcat-ns3, eq. 5)
//! ```
//!
//! over the last 20 groups; until then it is zero. A trend is milliseconds of delay per millisecond: on a saturated
//! link what is sent over its capacity, in shares of what is sent.

use paceline_units::{RemoteTime, TimeDelta};

/// Numbers of the trendline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendlineConfig {
    /// Groups that the line is fitted to, 2 to [`WINDOW_MAX`](Self::WINDOW_MAX) (libwebrtc: 20).
    pub window: usize,
    /// Memory of the smoothed delay (rmcat-ns3, section 3: 0.9).
    pub smoothing: f64,
}

impl TrendlineConfig {
    /// Most groups that a line is fitted to.
    pub const WINDOW_MAX: usize = 64;
}

/// The fitted line.
#[derive(Clone, Debug)]
pub struct Trendline {
    config: TrendlineConfig,
    /// Arrival of the first group.
    origin: Option<RemoteTime>,
    accumulated: f64,
    smoothed: f64,
    /// Arrival since the first, and smoothed delay, ms: a ring, once it is full.
    points: [(f64, f64); TrendlineConfig::WINDOW_MAX],
    /// Groups so far.
    count: usize,
    trend: f64,
}

impl Trendline {
    /// No group yet. Panics for a window of less than 2 or more than [`TrendlineConfig::WINDOW_MAX`] groups.
    pub fn new(config: TrendlineConfig) -> Self {
        assert!((2..=TrendlineConfig::WINDOW_MAX).contains(&config.window), "a window of {} groups", config.window);
        let points = [(0.0, 0.0); TrendlineConfig::WINDOW_MAX];
        Self { config, origin: None, accumulated: 0.0, smoothed: 0.0, points, count: 0, trend: 0.0 }
    }

    /// Takes a group's delay gradient; `now` is the receiver's time. Answers the trend.
    pub fn update(&mut self, now: RemoteTime, gradient: TimeDelta) -> f64 {
        let since = (now - *self.origin.get_or_insert(now)).as_millis_f64();
        self.accumulated += gradient.as_millis_f64();
        self.smoothed = smooth(self.smoothed, self.accumulated, self.config.smoothing);
        self.points[self.count % self.config.window] = (since, self.smoothed);
        self.count += 1;
        if self.count >= self.config.window {
            // Groups that came all at once have no line: the last one stands.
            self.trend = slope(&self.points[..self.config.window]).unwrap_or(self.trend);
        }
        self.trend
    }

    /// The smoothed delay, ms, from the first group on.
    pub fn smoothed_ms(&self) -> f64 {
        self.smoothed
    }
}

fn smooth(smoothed: f64, accumulated: f64, memory: f64) -> f64 {
    memory * smoothed + (1.0 - memory) * accumulated
}

/// Eq. 5. The order of the points does not matter.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in points {
        above += (x - mean_x) * (y - mean_y);
        below += (x - mean_x) * (x - mean_x);
    }
    (below != 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saturated_link_shows_the_share_that_is_too_much() {
        // 10 ms of packets take 11 ms: 1 ms more each group.
        let mut line = Trendline::new(TrendlineConfig { window: 20, smoothing: 0.9 });
        let mut at = |i: i64, delta| line.update(RemoteTime::from_millis(11 * i), TimeDelta::from_millis(delta));
        assert!((1..20).all(|i| at(i, 1) == 0.0), "no line yet");
        let later = (20..200).map(|i| at(i, 1)).last().unwrap();
        assert!((later - 1.0 / 11.0).abs() < 1e-6, "{later}");
        // The queue stands: the slope goes, at the pace of smoothing and window.
        let standing: Vec<f64> = (200..300).map(|i| at(i, 0)).collect();
        assert!(standing[5] > 0.05 && standing[99].abs() < 1e-3, "{standing:?}");
    }

    #[test]
    fn groups_that_arrive_at_once_keep_the_trend() {
        let mut line = Trendline::new(TrendlineConfig { window: 2, smoothing: 0.0 });
        let mut at = |ms, delta| line.update(RemoteTime::from_millis(ms), TimeDelta::from_millis(delta));
        assert_eq!([at(0, 0), at(10, 5), at(20, 0)], [0.0, 0.5, 0.0]);
        assert_eq!(at(20, 7), 0.0);
        assert_eq!(at(30, 1), 0.1);
    }
}
