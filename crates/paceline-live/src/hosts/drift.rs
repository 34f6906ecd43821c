// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drift between the clocks of two hosts, from the smallest one-way delays.
//!
//! Of all lines below which no delay lies, the one whose distances to the delays have the smallest sum has the drift as its slope: the edge of
//! the lower convex hull that contains the mean of the times (Moon, Skelly, Towsley: Estimation and Removal of Clock Skew from Network
//! Delay Measurements, INFOCOM 1999). A queue that grows has such a slope, too, but then the round-trip time grows with it. A drift
//! does not change that.

use paceline_units::{Time, TimeDelta};
use serde::Serialize;

/// The smallest value of each such interval counts.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Smallest change over a session that is reported, ms. Assumed: hosts add less to the smallest delay of a second.
const CHANGE_MIN_MS: f64 = 1.0;

/// Largest drift, as a ratio: Linux adjusts the frequency of a clock by at most 500 ppm (`MAXFREQ` in `linux/timex.h`), and there are two.
const RATIO_MAX: f64 = 1000e-6;

/// Assumed: a drift is steady, so in each third of the intervals at least a quarter is near the line: nearer than this share of the
/// change over the session.
const NEAR: f64 = 0.15;
const NEAR_SHARE: f64 = 0.25;

/// Fewest intervals with delays, and with round-trip times, in which a drift is seen. Assumed: in fewer, noise looks like a drift.
const INTERVALS_MIN: usize = 15;
const ROUND_TRIPS_MIN: usize = 10;

/// Assumed: the intervals with round-trip times span this share of the session, or more.
const COVERED: f64 = 0.7;

/// Assumed: the round-trip time changes by less than this share of the change of the delay.
const ROUND_TRIP: f64 = 0.5;

/// A drift that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// The frequency of the receiver's clock over that of the sender's, less one, in millionths.
    pub ppm: f64,
    /// What it changed in the one-way delays from the first interval to the last, ms.
    pub change_ms: f64,
}

/// The smallest value of each interval of a session, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Minima {
    points: Vec<(Time, TimeDelta)>,
}

/// A line below points: through `(at_s, value_ms)` with a slope in ms/s.
struct Line {
    at_s: f64,
    value_ms: f64,
    slope: f64,
}

impl Minima {
    /// Adds a value. One of an earlier interval than the latest does not count.
    pub fn push(&mut self, at: Time, value: TimeDelta) {
        let interval = |at: Time| (at - Time::ZERO).as_nanos().div_euclid(INTERVAL.as_nanos());
        match self.points.last_mut() {
            Some(last) if interval(at) == interval(last.0) => {
                if value < last.1 {
                    *last = (at, value);
                }
            }
            Some(last) if interval(at) < interval(last.0) => {}
            _ => self.points.push((at, value)),
        }
    }

    /// Returns times in s and values in ms, from the first point.
    fn points(&self) -> Vec<(f64, f64)> {
        let Some(first) = self.points.first() else { return Vec::new() };
        self.points
            .iter()
            .map(|(at, value)| ((*at - first.0).as_secs_f64(), (*value - first.1).as_millis_f64()))
            .collect()
    }
}

/// Returns the edge of the lower convex hull that contains the mean of the times; `None` for fewer than two points.
fn lower_line(points: &[(f64, f64)]) -> Option<Line> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &(t, v) in points {
        while let [.., (t0, v0), (t1, v1)] = hull[..]
            && (v1 - v0) * (t - t0) >= (v - v0) * (t1 - t0)
        {
            hull.pop();
        }
        hull.push((t, v));
    }
    let mean = points.iter().map(|(t, _)| t).sum::<f64>() / points.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean)?;
    let [(t0, v0), (t1, v1)] = *edge else { return None };
    Some(Line { at_s: t0, value_ms: v0, slope: (v1 - v0) / (t1 - t0) })
}

/// Returns the slope of the line below points in ms/s; `None` unless there are `fewest`, and points near the line in each third of them:
/// nearer than a share of `change_ms`, or of the change over the points if that is `None`.
fn steady_slope(points: &[(f64, f64)], fewest: usize, change_ms: Option<f64>) -> Option<f64> {
    let Line { at_s, value_ms, slope } = lower_line(points).filter(|_| points.len() >= fewest)?;
    let limit = NEAR * change_ms.unwrap_or(slope * span_s(points)).abs();
    let is_near = |(t, v): &&(f64, f64)| v - (value_ms + slope * (t - at_s)) <= limit;
    let is_steady =
        |third: &[(f64, f64)]| third.iter().filter(is_near).count() as f64 >= NEAR_SHARE * third.len() as f64;
    points.chunks(points.len().div_ceil(3)).all(is_steady).then_some(slope)
}

fn span_s(points: &[(f64, f64)]) -> f64 {
    points.last().map_or(0.0, |(t, _)| *t)
}

/// Returns the drift, from the differences between arrival on the receiver's clock and sending on the sender's, and the round-trip times;
/// `None` if none is seen.
pub fn drift(differences: &Minima, round_trips: &Minima) -> Option<Drift> {
    let (points, round_trips) = (differences.points(), round_trips.points());
    let (slope, span) = (steady_slope(&points, INTERVALS_MIN, None)?, span_s(&points));
    let change_ms = slope * span;
    let round_trip_ms = steady_slope(&round_trips, ROUND_TRIPS_MIN, Some(change_ms))? * span;
    let is_seen = change_ms.abs() >= CHANGE_MIN_MS
        && slope.abs() / 1e3 <= RATIO_MAX
        && span_s(&round_trips) >= COVERED * span
        && round_trip_ms.abs() < ROUND_TRIP * change_ms.abs();
    is_seen.then_some(Drift { ppm: slope * 1e3, change_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a point for each second of a minute.
    fn minute(value_ms: impl Fn(f64) -> f64) -> Minima {
        seconds(60, value_ms)
    }

    fn seconds(seconds: i64, value_ms: impl Fn(f64) -> f64) -> Minima {
        let mut minima = Minima::default();
        for tenth in 0..seconds * 10 {
            let at = Time::from_millis(tenth * 100);
            minima.push(at, TimeDelta::from_secs_f64(value_ms(tenth as f64 / 10.0) / 1e3));
        }
        minima
    }

    #[test]
    fn the_line_is_the_edge_of_the_hull_at_the_mean() {
        // The hull is (0, 2), (2, 0), (6, 1), (8, 4); the mean of the times is 4.
        let line = lower_line(&[(0.0, 2.0), (2.0, 0.0), (4.0, 3.0), (6.0, 1.0), (8.0, 4.0)]).unwrap();
        assert_eq!((line.at_s, line.value_ms, line.slope), (2.0, 0.0, 0.25));
        assert!(lower_line(&[]).is_none() && lower_line(&[(1.0, 1.0)]).is_none());
    }

    #[test]
    fn each_second_has_its_smallest_value_and_late_ones_do_not_count() {
        let mut minima = Minima::default();
        for (at, ms) in [(100, 7), (900, 5), (950, 6), (1200, 9), (300, 1), (2000, 4)] {
            minima.push(Time::from_millis(at), TimeDelta::from_millis(ms));
        }
        assert_eq!(minima.points(), [(0.0, 0.0), (0.3, 4.0), (1.1, -1.0)]);
    }

    #[test]
    fn a_drift_is_seen_below_queues_in_either_direction() {
        // A queue that comes and goes within six seconds, and noise of 0.3 ms.
        let queue = |t: f64| 20.0 * (t / 3.0).sin().max(0.0) + 0.3 * (t * 17.0).sin().abs();
        for ppm in [-900.0, -50.0, 20.0, 100.0, 980.0] {
            let seen = drift(&minute(|t| 7000.0 + t * ppm / 1e3 + queue(t)), &minute(|t| 30.0 + queue(t))).unwrap();
            assert!((seen.ppm - ppm).abs() < 5.0, "{ppm}: {seen:?}");
            assert!((seen.change_ms - 59.9 * ppm / 1e3).abs() < 1.0, "{ppm}: {seen:?}");
        }
    }

    #[test]
    fn queues_routes_and_noise_are_no_drift() {
        let flat = |_: f64| 30.0;
        let grows = |t: f64| 30.0 + t * 0.1;
        let step = |t: f64| if t < 30.0 { 30.0 } else { 35.0 };
        let outlier = |t: f64| if t < 1.0 { 25.0 } else { 30.0 };
        let later_step = |t: f64| if t < 50.0 { 30.0 } else { 35.0 };
        assert!(drift(&minute(grows), &minute(flat)).is_some());
        assert_eq!(drift(&minute(later_step), &minute(flat)), None, "another route at the end");
        assert_eq!(drift(&minute(grows), &minute(grows)), None, "a queue");
        assert_eq!(drift(&minute(step), &minute(flat)), None, "another route");
        assert_eq!(drift(&minute(outlier), &minute(flat)), None, "one fast packet");
        assert_eq!(drift(&minute(|t| 30.0 + t * 0.01), &minute(flat)), None, "0.6 ms");
        assert_eq!(drift(&minute(|t| 30.0 + t * 1.1), &minute(flat)), None, "1100 ppm");
        assert_eq!(drift(&minute(grows), &Minima::default()), None, "no round trip");
        assert!(drift(&seconds(15, grows), &seconds(15, flat)).is_some());
        assert_eq!(drift(&seconds(14, grows), &seconds(14, flat)), None, "a short session");
        assert!(drift(&minute(grows), &seconds(45, flat)).is_some());
        assert_eq!(drift(&minute(grows), &seconds(40, flat)), None, "no round trip at the end");
        // A round-trip time each six seconds makes ten, each seven nine.
        let every = |period: i64| {
            let mut minima = Minima::default();
            (0..60).step_by(period as usize).for_each(|s| minima.push(Time::from_secs(s), TimeDelta::from_millis(30)));
            minima
        };
        assert!(drift(&minute(grows), &every(6)).is_some());
        assert_eq!(drift(&minute(grows), &every(7)), None, "few round trips");
        assert!(drift(&minute(grows), &minute(|t| 30.0 + t * 0.04)).is_some());
        assert_eq!(drift(&minute(grows), &minute(|t| 30.0 + t * 0.06)), None, "more than half of it is a queue");
        let wild = |t: f64| 30.0 + 20.0 * (t * t).sin();
        assert_eq!(
            drift(&minute(grows), &minute(|t| if t < 20.0 { 20.0 + wild(t) } else { 10.0 })),
            None,
            "round trips change"
        );
        assert_eq!(drift(&Minima::default(), &minute(flat)), None, "no delay");
    }
}
