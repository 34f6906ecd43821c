// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the samples of a dump were taken.

use crate::statistics::number;
use serde_json::Value;
use std::collections::BTreeMap;

/// Points of a series at most: Chromium keeps 1000.
pub(super) const POINTS_MAX: usize = 100_000;
/// Starts and ends this near to each other are those of the same sample, ms.
const NEAR_MS: f64 = 1500.0;
/// The shortest and the longest time between two samples, ms.
const INTERVALS_MS: (f64, f64) = (20.0, 120_000.0);
/// A series may lack this share of its samples, and one. Assumed. Missing first samples shift the series by this much.
const LACKS: f64 = 0.02;

/// The series of an object.
#[derive(Default)]
pub(super) struct Series {
    pub kind: String,
    /// First and last time, and values, by metric.
    pub metrics: BTreeMap<String, (f64, f64, Vec<Value>)>,
    /// The same for [`RATES`].
    pub rates: BTreeMap<&'static str, Vec<Value>>,
}

/// Computed rates, and the counters of which they are. Both give the time between two samples.
pub(super) const RATES: [(&str, &str); 2] =
    [("[bytesSent_in_bits/s]", "bytesSent"), ("[bytesReceived_in_bits/s]", "bytesReceived")];

/// The times of the samples of a connection, for objects without series of times (before Chromium 117).
pub(super) struct Grid(Vec<f64>);

impl Grid {
    /// Finds the times by the object with the longest counter of bytes that has a series of rates.
    pub(super) fn new<'a>(objects: impl Iterator<Item = &'a Series>) -> Self {
        let all = objects.filter(|series| !series.metrics.contains_key("timestamp"));
        let grids = all.flat_map(|series| RATES.iter().filter_map(|(rate, counter)| measured(series, rate, counter)));
        Self(grids.max_by_key(Vec::len).unwrap_or_default())
    }

    /// Returns the times of an object's samples: its `timestamp`, else those of the connection, else even ones.
    pub(super) fn times(&self, series: &Series) -> Vec<f64> {
        if let Some((_, _, values)) = series.metrics.get("timestamp") {
            let times: Vec<f64> = values.iter().filter_map(number).collect();
            if !times.is_empty() {
                return times;
            }
        }
        let Some((start, end, values)) = series.metrics.values().max_by_key(|(_, _, values)| values.len()) else {
            return Vec::new();
        };
        let count = values.len().min(POINTS_MAX);
        if count == 0 {
            return Vec::new();
        }
        if let Some(last) = self.0.last().filter(|_| count <= self.0.len()) {
            // All objects that are there to the end end with the same sample.
            let at_end = self.0.len() - count;
            if (last - end).abs() <= NEAR_MS && (self.0[at_end] - start).abs() <= allowed(count) {
                return self.0[at_end..].to_vec();
            }
            let from = self.0.partition_point(|time| *time < start - NEAR_MS / 3.0);
            let to = from + count;
            if to <= self.0.len() && (self.0[to - 1] - end).abs() <= NEAR_MS {
                return self.0[from..to].to_vec();
            }
        }
        even(*start, *end, count)
    }
}

fn even(start: f64, end: f64, count: usize) -> Vec<f64> {
    let step = if count > 1 && end > start { (end - start) / (count - 1) as f64 } else { 1e3 };
    (0..count).map(|index| start + step * index as f64).collect()
}

/// Returns the times that a counter and its rate give: the bits between two samples by their rate. Where nothing was counted, the
/// rest of the span is shared.
fn measured(series: &Series, rate: &str, counter: &str) -> Option<Vec<f64>> {
    let (start, end, bytes) = series.metrics.get(counter)?;
    let rates = series.rates.get(rate).filter(|rates| rates.len() == bytes.len() && bytes.len() > 1)?;
    let interval = |index: usize| {
        let bits = 8.0 * (number(&bytes[index])? - number(&bytes[index - 1])?);
        let ms = 1e3 * bits / number(&rates[index])?;
        (bits > 0.0 && ms >= INTERVALS_MS.0 && ms <= INTERVALS_MS.1).then_some(ms)
    };
    let intervals: Vec<Option<f64>> = (1..bytes.len()).map(interval).collect();
    let known: f64 = intervals.iter().flatten().sum();
    let unknown = intervals.iter().filter(|interval| interval.is_none()).count();
    let each = if unknown > 0 { ((end - start - known) / unknown as f64).max(INTERVALS_MS.0) } else { 0.0 };
    let total = known + each * unknown as f64;
    let scale = (end - start) / total;
    // The rates of another span than the series are of no use.
    if !(0.9..=1.1).contains(&scale) {
        return None;
    }
    let mut at = *start;
    let after = intervals.iter().map(|interval| {
        at += interval.unwrap_or(each) * scale;
        at
    });
    Some(std::iter::once(*start).chain(after).collect())
}

fn allowed(count: usize) -> f64 {
    NEAR_MS + 1e3 * LACKS * count as f64
}

/// Returns the index of the first value among the times. `last`: the end of the object. A series that is much shorter than its span
/// has gaps and cannot be placed.
pub(super) fn place(times: &[f64], (start, end): (f64, f64), count: usize, last: f64) -> Option<usize> {
    let near = |wanted: f64| {
        let at = times.partition_point(|time| *time < wanted - 500.0);
        let candidates = at..(at + 3).min(times.len());
        candidates.min_by(|a, b| (times[*a] - wanted).abs().total_cmp(&(times[*b] - wanted).abs()))
    };
    if count == times.len() {
        return Some(0);
    }
    if let (Some(from), Some(to)) = (near(start), near(end))
        && to + 1 == from + count
    {
        return Some(from);
    }
    // All series that are there to the end end with the same sample.
    let from = times.len().checked_sub(count)?;
    (end == last && count > 0 && (times[from] - start).abs() <= allowed(count)).then_some(from)
}

/// Reads a time such as `2026-02-03T10:20:30.123Z` (ISO 8601; UTC unless it has an offset), ms since 1970.
pub(in crate::readers) fn milliseconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().trim_end_matches('Z').split_once(['T', ' '])?;
    let (time, offset) = match time.find(['+', '-']) {
        Some(at) => (&time[..at], minutes(&time[at..])?),
        None => (time, 0),
    };
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hours, minutes) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds: f64 = time.next()?.parse().ok()?;
    if !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // 60 is a leap second; no number (NaN) is in no range.
    if !(0..=24).contains(&hours) || !(0..60).contains(&minutes) || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(((days * 86_400 + hours * 3600 + (minutes - offset) * 60) as f64 + seconds) * 1e3)
}

/// Reads an offset from UTC such as `+01:00` or `-0530`, minutes.
fn minutes(text: &str) -> Option<i64> {
    let digits: i64 = text[1..].replace(':', "").parse().ok().filter(|_| text.len() >= 5)?;
    let minutes = digits / 100 * 60 + digits % 100;
    Some(if text.starts_with('-') { -minutes } else { minutes }).filter(|_| (0..=1800).contains(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_times_of_the_calendar() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(milliseconds("2000-02-29T12:00:00.500Z"), Some(951_825_600_500.0));
        for same in
            ["2026-11-24T00:00:00Z", "2026-11-24 00:00:00", "2026-11-24T01:30:00+01:30", "2026-11-23T19:00:00-0500"]
        {
            assert_eq!(milliseconds(same), Some(1_795_478_400_000.0), "{same}");
        }
        for bad in
            ["", "2026-11-24", "2026-13-01T00:00:00Z", "x-11-24T00:00:00Z", "2026-11-24T00:00:00+é", "Invalid Date"]
        {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
        for time in ["9000000000000000:00:00", "25:00:00", "00:60:00", "00:00:NaN", "00:00:inf", "00:00:-1", "00:00:61"]
        {
            assert_eq!(milliseconds(&format!("2026-11-24T{time}Z")), None, "{time}");
        }
        assert!(milliseconds("2026-11-24T23:59:60.5Z") > milliseconds("2026-11-24T23:59:59Z"));
    }

    #[test]
    fn series_without_values_have_no_times() {
        let mut empty = Series::default();
        empty.metrics.insert("bytesSent".to_owned(), (1e12, 1e12 + 1e3, Vec::new()));
        let grid = Grid(vec![1e12, 1e12 + 1e3]);
        assert!(grid.times(&empty).is_empty() && Grid(Vec::new()).times(&empty).is_empty());
        empty.metrics.insert("packetsSent".to_owned(), (1e12, 1e12 + 1e3, vec![json!(1), json!(2)]));
        assert_eq!(grid.times(&empty), [1e12, 1e12 + 1e3]);
    }

    #[test]
    fn places_series_that_began_later_and_refuses_gaps() {
        let times: Vec<f64> = (0..10).map(|n| 1e12 + 1001.0 * f64::from(n)).collect();
        let last = times[9];
        assert_eq!(place(&times, (times[0], last), 10, last), Some(0));
        assert_eq!(place(&times, (times[3].trunc(), last.trunc()), 7, last), Some(3));
        // One sample is missing, two, and one before the end of the object.
        assert_eq!(place(&times, (times[3], last), 6, last), Some(4));
        assert_eq!(place(&times, (times[3], last), 5, last), None);
        assert_eq!(place(&times, (times[3], times[7]), 4, last), None);
        assert_eq!(place(&times, (times[3], last), 11, last), None);
    }

    /// A stream of 100 kB/s whose 10th sample is 2 s late, and a pair of which the first sample is missing.
    #[test]
    fn rates_give_the_times_between_samples() {
        let span = (1e12, 1e12 + 21e3);
        let seconds: Vec<f64> = (0..20).map(|index| f64::from(index) + if index >= 10 { 2.0 } else { 0.0 }).collect();
        let bytes: Vec<Value> = seconds.iter().map(|second| json!(1e5 * second)).collect();
        let rates: Vec<Value> = (0..20).map(|index| json!(if index == 0 { 0.0 } else { 8e5 })).collect();
        let mut stream = Series::default();
        stream.metrics.insert("bytesSent".to_owned(), (span.0, span.1, bytes));
        let mut pair = Series::default();
        pair.metrics.insert("availableOutgoingBitrate".to_owned(), (span.0 + 1e3, span.1, vec![json!(1); 19]));
        let check = |grid: &Grid, at: f64| {
            assert!((grid.times(&pair)[9] - span.0 - at).abs() < 1.0, "{:?}", grid.times(&pair));
            assert_eq!(grid.times(&stream).len(), 20);
        };
        // Without rates, all intervals are the same.
        check(&Grid::new([&stream].into_iter()), 1e3 + 9.0 * 20e3 / 18.0);
        stream.rates.insert("[bytesSent_in_bits/s]", rates);
        let grid = Grid::new([&stream].into_iter());
        assert!((grid.times(&pair)[9] - span.0 - 12e3).abs() < 1.0, "{:?}", grid.times(&pair));
        assert!((grid.times(&stream)[9] - span.0 - 9e3).abs() < 1.0);
    }
}
