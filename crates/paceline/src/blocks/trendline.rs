// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trendline: the delay gradient is the slope of a line through the last smoothed delays.
//!
//! ```text
//! acc_i = acc_{i-1} + d_i                 d_i = (t_i - t_{i-1}) - (T_i - T_{i-1})
//! s_i   = 0.9 s_{i-1} + 0.1 acc_i
//! trend = sum (t_j - mean t)(s_j - mean s) / sum (t_j - mean t)²                  (rmcat-ns3, eq. 5)
//! ```
//!
//! over the last 20 groups; before that it is zero. The unit is milliseconds of delay per millisecond. On a saturated
//! link the trend is the part of the sending rate that exceeds the capacity.

use crate::params;
use paceline_units::{RemoteTime, TimeDelta};

params! {
    /// The parameters of the trendline.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TrendlineConfig {
        /// libwebrtc (`trendline_estimator.cc`); rmcat-ns3, section 3.
        const LIBWEBRTC;

        /// Number of groups that the line is fitted to.
        window: usize = 20, in 2..=Self::WINDOW_MAX, from "kDefaultTrendlineWindowSize";
        /// Smoothing factor of the delay.
        smoothing: f64 = 0.9, in 0.0..=1.0, from "kDefaultTrendlineSmoothingCoeff";
    }
}

impl TrendlineConfig {
    /// The largest window.
    pub const WINDOW_MAX: usize = 64;
}

/// The fitted line.
#[derive(Clone, Debug)]
pub struct Trendline {
    config: TrendlineConfig,
    accumulated: f64,
    smoothed: f64,
    /// The origin of the points, an arrival and a smoothed delay; once per window it moves to the newest group.
    origin: (RemoteTime, f64),
    /// A ring buffer of arrival and smoothed delay, ms.
    points: [(f64, f64); TrendlineConfig::WINDOW_MAX],
    next: usize,
    full: bool,
    sums: Sums,
    trend: f64,
}

impl Trendline {
    /// Creates a trendline without groups.
    ///
    /// # Panics
    /// Panics if the window is less than 2 or more than [`TrendlineConfig::WINDOW_MAX`] groups.
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

    /// Forgets all groups.
    pub fn restart(&mut self) {
        *self = Self::new(self.config);
    }

    /// Handles the delay gradient of a group that arrived at `now`. Returns the trend.
    pub fn update(&mut self, now: RemoteTime, gradient: TimeDelta) -> f64 {
        self.accumulated += gradient.as_millis_f64();
        self.smoothed = smooth(self.smoothed, self.accumulated, self.config.smoothing);
        if self.next == 0 {
            self.move_origin(now, self.smoothed);
        }
        let point = (now.since(self.origin.0).as_millis_f64(), self.smoothed - self.origin.1);
        let oldest = core::mem::replace(&mut self.points[self.next], point);
        // Before the window is full the oldest point is zero.
        self.sums.drop(oldest);
        self.sums.take(point);
        self.next += 1;
        if self.next == self.config.window {
            (self.next, self.full) = (0, true);
        }
        if self.full
            && let Some(slope) = self.sums.slope(self.config.window as f64)
        {
            // There is no line through groups that arrived at the same time: the last trend stays.
            self.trend = slope;
        }
        self.trend
    }

    /// Moves the origin of the points and adds them up again: sums that are only updated would accumulate rounding
    /// errors.
    fn move_origin(&mut self, now: RemoteTime, smoothed: f64) {
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

/// The sums that eq. 5 needs: its numerator is `(n xy - x y) / n` and its denominator `(n xx - x²) / n`.
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

    /// Eq. 5; `None` if all arrivals are within a microsecond.
    fn slope(&self, n: f64) -> Option<f64> {
        let below = n * self.xx - self.x * self.x;
        (below > 1e-6).then(|| (n * self.xy - self.x * self.y) / below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn trend_on_a_saturated_link_is_the_excess_rate() {
        // Groups of 10 ms take 11 ms each: the delay grows by 1 ms per group.
        let mut line = Trendline::new(TrendlineConfig { window: 20, smoothing: 0.9 });
        let mut at = |i: i64, delta| line.update(RemoteTime::from_millis(11 * i), TimeDelta::from_millis(delta));
        assert!((1..20).all(|i| at(i, 1) == 0.0), "fewer than 20 groups");
        let later = (20..200).map(|i| at(i, 1)).last().unwrap();
        assert!((later - 1.0 / 11.0).abs() < 1e-6, "{later}");
        // The queue stops growing: the trend falls to zero within the smoothing and the window.
        let standing: Vec<f64> = (200..300).map(|i| at(i, 0)).collect();
        assert!(standing[5] > 0.05 && standing[99].abs() < 1e-3, "{standing:?}");
    }

    /// Compares with eq. 5 as printed, over an hour in which the receiver's clock drifts by a thousandth.
    #[test]
    fn sums_do_not_accumulate_rounding_errors() {
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
    fn simultaneous_arrivals_keep_the_trend() {
        let mut line = Trendline::new(TrendlineConfig { window: 2, smoothing: 0.0 });
        let mut at = |ms, delta| line.update(RemoteTime::from_millis(ms), TimeDelta::from_millis(delta));
        assert_eq!([at(0, 0), at(10, 5), at(20, 0)], [0.0, 0.5, 0.0]);
        assert_eq!(at(20, 7), 0.0);
        assert_eq!(at(30, 1), 0.1);
    }
}
