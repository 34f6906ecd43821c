// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steps of time and rate as comma-separated values, Paceline's own format:
//!
//! ```csv
//! # a comment
//! time_s,rate_mbps
//! 0,2.5
//! 10,0
//! 12.5,1
//! ```
//!
//! The header line is optional; `time` and `rate` may each carry a unit (`time_ms`, `Rate (kbps)`), and count in
//! seconds and bits per second without one. Times strictly increase and count from the first, so that recordings
//! with a wall clock can be used as they are. Zero is an outage. A semicolon or a tab may stand for the comma, and other usual names for
//! `time` and `rate`.
//!
//! Rates are of whole IP packets. The last one holds, as in a scenario's own list of capacities. If such a trace is looped,
//! and for its mean, the last step is as long as the one before it.

use super::lines::{Line, SEPARATORS, is_numbers, lines};
use super::{Direction, FASTEST, Format, Headers, Shape, Trace, TraceError};
use paceline_netsim::link::CapacityEnd;
use paceline_units::{Rate, TimeDelta, round_to_i64};

pub(super) static FORMAT: Format = Format {
    name: "rate-csv",
    description: "CSV of time and rate, in seconds and bit/s unless the header names units (time_ms,rate_kbps); looped, its last step lasts as long as the one before",
    example: "0,2500000",
    headers: Headers::Ip,
    recognises: |head| head.split_once(SEPARATORS).is_some_and(|(time, _)| is_header(time) || is_numbers(time, 1)),
    read,
};

/// Nanoseconds in each unit of time.
const TIME_UNITS: [(&str, f64); 4] = [("", 1e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)];
/// Bits per second in each unit of rate.
const RATE_UNITS: [(&str, f64); 5] = [("", 1.0), ("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9)];

/// Names of the columns.
const TIME_NAMES: [&str; 2] = ["time", "timestamp"];
const RATE_NAMES: [&str; 5] = ["rate", "bitrate", "bandwidth", "throughput", "capacity"];

/// Returns whether a line that starts with this cell is a header.
fn is_header(cell: &str) -> bool {
    cell.trim_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("time"))
}

fn read(text: &str, _: Direction) -> Result<Trace, TraceError> {
    let (mut to_ns, mut to_bps) = (1e9, 1.0);
    let mut has_unit = false;
    let mut steps = Steps::default();
    let mut last = Line { number: 1, text: "" };
    for (line, nth) in lines(text).zip(0..) {
        last = line;
        let (time, rate) = cells(&line)?;
        if nth == 0 && is_header(time) {
            (to_ns, _) = unit(&line, time, &TIME_NAMES, &TIME_UNITS)?;
            (to_bps, has_unit) = unit(&line, rate, &RATE_NAMES, &RATE_UNITS)?;
            continue;
        }
        let ns = line.number(time, "a time, not negative")? * to_ns;
        steps.add(&line, ns, line.number(rate, "a rate, not negative")? * to_bps)?;
    }
    let highest = steps.steps.iter().map(|(_, rate)| *rate).max().unwrap_or_default();
    if !has_unit && !highest.is_zero() && highest < Rate::from_kbps(1) {
        let hint = "rates are in bit/s; for another unit begin with a header such as `time_s,rate_mbps`";
        return Err(last.error("every rate is below 1 kbit/s", hint));
    }
    let hint = if has_unit { "add lines such as `0,2.5`" } else { "add lines such as `0,2500000`" };
    steps.finish(&FORMAT, false).ok_or_else(|| last.error("the trace has a header and nothing else", hint))
}

/// Steps of rates whose times increase and count from the first.
#[derive(Default)]
pub(super) struct Steps {
    origin: Option<TimeDelta>,
    steps: Vec<(TimeDelta, Rate)>,
}

impl Steps {
    /// Adds a step from this time on, ns, with this rate, bit/s.
    pub(super) fn add(&mut self, line: &Line<'_>, ns: f64, bps: f64) -> Result<(), TraceError> {
        if ns > 9e18 {
            return Err(line.error("the time is beyond 285 years", "name the unit in the header: `time_ms,rate_bps`"));
        }
        let time = TimeDelta::from_nanos(round_to_i64(ns));
        let at = line.plausible_span(time - *self.origin.get_or_insert(time))?;
        let rate =
            line.plausible_rate(if bps <= FASTEST.as_bps_f64() { Rate::from_bps_f64(bps) } else { Rate::MAX })?;
        if let Some((before, _)) = self.steps.last().filter(|(before, _)| at <= *before) {
            let start = self.origin.unwrap_or_default();
            return Err(line.back_in_time(*before + start, at + start));
        }
        self.steps.push((at, rate));
        Ok(())
    }

    /// Returns the trace, `None` without steps. The last step is as long as the one before it.
    pub(super) fn finish(self, format: &'static Format, loops: bool) -> Option<Trace> {
        let (end, _) = *self.steps.last()?;
        let duration = self.steps.iter().nth_back(1).map_or(end, |(before, _)| end + (end - *before));
        let origin = self.origin.unwrap_or_default();
        let note = origin.is_positive().then(|| format!("the first line, at {origin}, is taken as the start"));
        let end = if loops && duration.is_positive() { CapacityEnd::Loop(duration) } else { CapacityEnd::Hold };
        Some(Trace { note, ..Trace::new(format, Shape::Rates(self.steps), end, duration) })
    }
}

/// Returns the two cells of a line.
fn cells<'a>(line: &Line<'a>) -> Result<(&'a str, &'a str), TraceError> {
    match line.text.split_once(SEPARATORS) {
        Some((time, rate)) if !rate.contains(SEPARATORS) => Ok((time.trim(), rate.trim())),
        _ => {
            let count = line.text.split(SEPARATORS).count();
            Err(line
                .error(format!("{count} columns instead of 2"), "a line is a time, a comma and a rate: `10,2500000`"))
        }
    }
}

/// Returns the factor of the unit in a header's cell, such as `time_ms`, and whether it has one. A rate may be a unit alone.
fn unit(line: &Line<'_>, cell: &str, names: &[&str], units: &[(&str, f64)]) -> Result<(f64, bool), TraceError> {
    // `MBps` are bytes.
    let is_bytes = cell.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).ends_with("Bps");
    let cell = cell.to_ascii_lowercase();
    let words: Vec<&str> = cell.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let unit = match words[..] {
        [name] if names.contains(&name) => Some(""),
        [name, unit] if names.contains(&name) => Some(unit),
        [unit] if unit.ends_with("bps") => Some(unit),
        _ => None,
    };
    let found = unit.filter(|_| !is_bytes).and_then(|unit| units.iter().find(|(known, _)| *known == unit));
    found.map(|(unit, factor)| (*factor, !unit.is_empty())).ok_or_else(|| {
        let name = names[0];
        let known: Vec<String> = units.iter().skip(1).map(|(unit, _)| format!("`{name}_{unit}`")).collect();
        line.error(format!("the header's `{cell}` is not a {name}"), format!("write `{name}` or {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{assert_errors, steps};

    #[test]
    fn units_come_from_the_header() {
        for text in [
            "0,2500000\n10,0\n12.5,1000000\n",
            "time,rate\n0,2500000\n10,0\n12.5,1000000\n",
            "# steps\nTime_s , Rate_Mbps\n0, 2.5\n# outage\n10, 0\n12.5, 1\n",
            "time_ms,rate_kbps\n0,2500\n10000,0\n12500,1e3\n",
            "time_us,rate_gbps\n0,0.0025\n10000000,0\n12500000,0.001\n",
            "time_s,rate\n0,2500000\n10,0\n12.5,1000000\n",
            "Time (s),Throughput (Mbps)\n0,2.5\n10,0\n12.5,1\n",
            "timestamp_ms;bandwidth_kbps\r\n0;2500\r\n10000;0\r\n12500;1000\r\n",
            "time\tMbps\n0\t2.5\n10\t0\n12.5\t1\n",
        ] {
            let trace = Trace::read(text, Direction::Downlink).unwrap();
            assert_eq!(trace.shape, steps(&[(0, 2_500_000), (10_000, 0), (12_500, 1_000_000)]), "{text}");
            assert_eq!((trace.end, trace.format.headers, &trace.note), (CapacityEnd::Hold, Headers::Ip, &None));
            // 2.5 Mbps for 10 s, nothing for 2.5 s, and 1 Mbps for 2.5 s too: 27.5 Mbit in 15 s.
            assert_eq!((trace.duration, trace.mean_rate().as_bps()), (TimeDelta::from_secs(15), 1_833_333));
        }
    }

    #[test]
    fn a_single_line_is_a_constant_rate() {
        let trace = Trace::read("0,1000\n", Direction::Downlink).unwrap();
        assert_eq!((trace.duration, trace.mean_rate()), (TimeDelta::ZERO, Rate::from_kbps(1)));
    }

    #[test]
    fn times_count_from_the_first_line() {
        let trace = Trace::read("time_s,rate_kbps\n5,1\n6.5,2\n", Direction::Downlink).unwrap();
        assert_eq!(trace.shape, steps(&[(0, 1000), (1500, 2000)]));
        assert_eq!(trace.note.as_deref(), Some("the first line, at 5 s, is taken as the start"));
    }

    #[test]
    fn names_the_wrong_line() {
        assert_errors(&[
            ("0,1\n5,1\n4,1\n", 3, "time goes back, from 5 s to 4 s"),
            ("3,1\n2,1\n", 2, "time goes back, from 3 s to 2 s"),
            ("0,1\n\n5,1\n5,1\n", 4, "time must increase, but is 5 s twice"),
            ("0,1\n5,-1\n", 2, "`-1` is not a rate, not negative"),
            ("0,1\n5,NaN\n", 2, "`NaN` is not a rate, not negative"),
            ("0,1\n5,inf\n", 2, "`inf` is not a rate, not negative"),
            ("-1,1\n", 1, "`-1` is not a time, not negative"),
            ("0,1\n5\n", 2, "1 columns instead of 2"),
            ("0,1\n5,1,1\n", 2, "3 columns instead of 2"),
            ("0,1\ntime,rate\n", 2, "`time` is not a time, not negative"),
            ("0,1\n5,1 Mbps\n", 2, "`1 Mbps` is not a rate, not negative"),
            ("0,1\n5,1000000000001\n", 2, "the rate is above 1000 Gbps"),
            ("time_s,rate_gbps\n5,1e300\n", 2, "the rate is above 1000 Gbps"),
            ("0,1\n31622401,1\n", 2, "the recording is longer than a year"),
            ("0,1\n1e12,1\n", 2, "the time is beyond 285 years"),
            ("time_h,rate\n", 1, "the header's `time_h` is not a time"),
            ("time,speed\n", 1, "the header's `speed` is not a rate"),
            ("times,rate\n", 1, "the header's `times` is not a time"),
            ("0,2.5\n10,999\n", 2, "every rate is below 1 kbit/s"),
            ("time,rate\n0,2.5\n10,0\n", 3, "every rate is below 1 kbit/s"),
            ("# x\ntime,rate\n", 2, "the trace has a header and nothing else"),
        ]);
        for text in
            ["0,2.5\n10,1000\n", "time_s,rate_bps\n0,2.5\n10,4\n", "time_s,rate_kbps\n0,0.5\n10,0.9\n", "0,0\n1,0\n"]
        {
            assert!(Trace::read(text, Direction::Downlink).is_ok(), "{text}");
        }
        assert!(Trace::read("0,1000000000000\n31622400,1\n", Direction::Downlink).is_ok(), "both limits are allowed");
    }
}
