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

use crate::{Block, Fields};
use paceline_units::{RemoteTime, TimeDelta};

/// Numbers of the trendline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendlineConfig {
    /// Groups that the line is fitted to, 2 to [`WINDOW_MAX`](Self::WINDOW_MAX) (libwebrtc: 20).
    pub window: usize,
    /// Memory of the smoothed delay (rmcat-ns3, section 3: 0.9).
    pub smoothing: f64,
}

impl Block for TrendlineConfig {
    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.count("window", (2, Self::WINDOW_MAX), &mut self.window).says("groups that the line is fitted to");
        fields.number("smoothing", "", (0.0, 1.0), &mut self.smoothing).says("memory of the smoothed delay");
    }
}

impl TrendlineConfig {
    /// Most groups that a line is fitted to.
    pub const WINDOW_MAX: usize = 64;
}

/// The fitted line.
#[derive(Clone, Debug)]
pub struct Trendline {
    config: TrendlineConfig,
    accumulated: f64,
    smoothed: f64,
    /// Where the points are counted from: an arrival and a smoothed delay, once in a window those of the newest group.
    origin: (RemoteTime, f64),
    /// Arrival and smoothed delay, ms: a ring, once it is full.
    points: [(f64, f64); TrendlineConfig::WINDOW_MAX],
    next: usize,
    full: bool,
    sums: Sums,
    trend: f64,
}

impl Trendline {
    /// No group yet. Panics for a window of less than 2 or more than [`TrendlineConfig::WINDOW_MAX`] groups.
    pub fn new(config: TrendlineConfig) -> Self {
        assert!((2..=TrendlineConfig::WINDOW_MAX).contains(&config.window), "a window of {} groups", config.window);
        Self {
            config,
            accumulated: 0.0,
            smoothed: 0.0,
            origin: (RemoteTime::ZERO, 0.0),
            points: [(0.0, 0.0); TrendlineConfig::WINDOW_MAX],
            next: 0,
            full: false,
            sums: Sums::default(),
            trend: 0.0,
        }
    }

    /// Takes a group's delay gradient; `now` is the receiver's time. Answers the trend.
    pub fn update(&mut self, now: RemoteTime, gradient: TimeDelta) -> f64 {
        self.accumulated += gradient.as_millis_f64();
        self.smoothed = smooth(self.smoothed, self.accumulated, self.config.smoothing);
        if self.next == 0 {
            self.count_from(now, self.smoothed);
        }
        let point = (now.since(self.origin.0).as_millis_f64(), self.smoothed - self.origin.1);
        let oldest = core::mem::replace(&mut self.points[self.next], point);
        // Before the window is full these are zeros.
        self.sums.drop(oldest);
        self.sums.take(point);
        self.next += 1;
        if self.next == self.config.window {
            (self.next, self.full) = (0, true);
        }
        if self.full
            && let Some(slope) = self.sums.slope(self.config.window as f64)
        {
            // Groups that came all at once have no line: the last one stands.
            self.trend = slope;
        }
        self.trend
    }

    /// The smoothed delay, ms, from the first group on.
    pub fn smoothed_ms(&self) -> f64 {
        self.smoothed
    }

    /// Counts the points from here on, and adds them up anew: sums that are only ever changed would drift.
    fn count_from(&mut self, now: RemoteTime, smoothed: f64) {
        let (x, y) = ((now - self.origin.0).as_millis_f64(), smoothed - self.origin.1);
        self.origin = (now, smoothed);
        self.sums = Sums::default();
        if self.full {
            for point in &mut self.points[..self.config.window] {
                *point = (point.0 - x, point.1 - y);
                self.sums.take(*point);
            }
        }
    }
}

fn smooth(smoothed: f64, accumulated: f64, memory: f64) -> f64 {
    memory * smoothed + (1.0 - memory) * accumulated
}

/// What eq. 5 needs of the points; with sums its two differences are `(n xy - x y) / n` and `(n xx - x²) / n`.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Sums {
    fn take(&mut self, (x, y): (f64, f64)) {
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn drop(&mut self, (x, y): (f64, f64)) {
        self.x -= x;
        self.y -= y;
        self.xx -= x * x;
        self.xy -= x * y;
    }

    /// Eq. 5; `None` for arrivals that lie, to the microsecond, at one time.
    fn slope(&self, n: f64) -> Option<f64> {
        let below = n * self.xx - self.x * self.x;
        (below > 1e-6).then(|| (n * self.xy - self.x * self.y) / below)
    }
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

    /// Against eq. 5 as it is printed, over an hour in which the receiver's clock drifts by a thousandth.
    #[test]
    fn sums_stay_what_the_points_say() {
        let mut line = Trendline::new(TrendlineConfig { window: 20, smoothing: 0.9 });
        let (mut now, mut accumulated, mut smoothed, mut points) = (0, 0.0, 0.0, Vec::new());
        for i in 0..300_000i64 {
            let gradient = (i * 7919 % 4000 - 1990) * 1000;
            now += 10_000_000 + gradient;
            let trend = line.update(RemoteTime::from_nanos(now), TimeDelta::from_nanos(gradient));
            accumulated += gradient as f64 / 1e6;
            smoothed = 0.9 * smoothed + 0.1 * accumulated;
            points.push((now as f64 / 1e6, smoothed));
            if i % 9973 == 0 && i > 20 {
                let last = &points[points.len() - 20..];
                let mean = |f: fn(&(f64, f64)) -> f64| last.iter().map(f).sum::<f64>() / 20.0;
                let (x, y) = (mean(|p| p.0), mean(|p| p.1));
                let above: f64 = last.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
                let below: f64 = last.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
                assert!((trend - above / below).abs() < 1e-9, "{i}: {trend}, printed {}", above / below);
            }
        }
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
