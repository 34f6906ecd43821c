// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two logs of downloads on the move, with the same six columns: the wall clock, a clock in milliseconds,
//! latitude, longitude, bytes since the previous line, milliseconds since the previous line.
//!
//! * Norwegian HSDPA (Riiser et al., "Commute path bandwidth traces from 3G networks", MMSys 2013): the wall clock
//!   is in seconds, the other clock has an unknown origin.
//! * Ghent 4G (van der Hooft et al., "HTTP/2-based adaptive streaming of HEVC video over 4G/LTE networks", IEEE
//!   Communications Letters 2016): the wall clock is in milliseconds, the last column is padded with zeros.
//!
//! A line describes the time before it: bytes * 8 / milliseconds is the rate of the span that ends at the line's
//! clock. The clock of column 2 is the one that is used, because a wall clock may be set.
//!
//! By both formats the span reaches back to the previous line. If it is too short by more than a tenth of itself, the
//! log has no record of the time between: that time is an outage, and the note contains it. A smaller difference is
//! rounding, and the span is taken to start at the end of the last one; the same holds for a span that overlaps the
//! last.
//!
//! Bytes are those that the application received over TCP, without headers. Neither log has a tool that plays it, and
//! most users loop them, as this reader does: if the last rate were held, the last second, perhaps an outage, would
//! decide the rest of a run.

use super::lines::{Line, is_numbers, lines};
use super::{Format, Headers, Shape, Trace, TraceError};
use paceline_netsim::link::CapacityEnd;
use paceline_units::{DataSize, Rate, TimeDelta};

pub(super) static HSDPA: Format = Format {
    name: "hsdpa",
    description: "Norwegian 3G drive logs: unix s, clock ms, latitude, longitude, bytes, ms (Simula, UMass)",
    example: "1289406399 549692 59.851754 10.781778 248069 1008",
    headers: Headers::Payload,
    recognises: |head| columns(head) == Some(false),
    read: |text, _| read(text, &HSDPA),
};

pub(super) static GHENT: Format = Format {
    name: "ghent-4g",
    description: "Ghent 4G drive logs: unix ms, ms since start, latitude, longitude, bytes, ms (Ghent University)",
    example: "1453121790686 39287 51.0386528885778 3.73220785642186 2493100 1000",
    headers: Headers::Payload,
    recognises: |head| columns(head) == Some(true),
    read: |text, _| read(text, &GHENT),
};

/// Returns whether a line has the six columns, and whether its wall clock can only be one in milliseconds.
fn columns(head: &str) -> Option<bool> {
    let wall_clock = head.split_whitespace().next().and_then(|field| field.parse::<f64>().ok());
    is_numbers(head, 6).then(|| wall_clock.is_some_and(|clock| clock >= 1e11))
}

/// Reads either log.
fn read(text: &str, format: &'static Format) -> Result<Trace, TraceError> {
    let mut spans: Option<Spans> = None;
    let mut last = None;
    for line in lines(text) {
        let (now, rate, span) = read_line(&line)?;
        last = Some(line);
        let spans = spans.get_or_insert_with(|| Spans::starting_at(now - span));
        if now <= spans.end && !(span == TimeDelta::ZERO && now == spans.end) {
            return Err(line.back_in_time(spans.end, now));
        }
        line.plausible_span(now - spans.origin)?;
        if span.is_positive() {
            spans.add(now, rate, span);
        }
    }
    match (spans, last) {
        (Some(spans), _) if !spans.steps.is_empty() => Ok(spans.into_trace(format)),
        (_, line) => {
            let line = line.unwrap_or(Line { number: 1, text: "" });
            Err(line.error(
                "the duration of the trace must be > 0",
                "the last column is the span of the line in milliseconds",
            ))
        }
    }
}

/// Reads a line: the clock at its end, its rate, its span.
fn read_line(line: &Line<'_>) -> Result<(TimeDelta, Rate, TimeDelta), TraceError> {
    let mut fields = line.text.split_whitespace();
    let (Some(_), Some(clock), Some(_), Some(_), Some(bytes), Some(span), None) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let count = line.text.split_whitespace().count();
        return Err(line.error(
            format!("{count} columns instead of 6"),
            "a line is: wall clock, clock in ms, latitude, longitude, bytes, ms",
        ));
    };
    let clock = line.whole(clock, "a clock in whole milliseconds (column 2)")?;
    let bytes = DataSize::from_bytes(line.whole(bytes, "a whole number of bytes (column 5)")?);
    let span = line.whole(span, "a span in whole milliseconds (column 6)")?;
    if clock > CLOCK_END_MS {
        return Err(line.error("the clock is past the year 2200", "is column 2 in milliseconds?"));
    }
    let span = line.plausible_span(TimeDelta::from_millis(span.min(CLOCK_END_MS) as i64))?;
    if span == TimeDelta::ZERO && bytes != DataSize::ZERO {
        return Err(
            line.error("a line with bytes must have a span > 0 ms", "the last column is the span of the line in ms")
        );
    }
    Ok((TimeDelta::from_millis(clock as i64), line.plausible_rate(Rate::from_size_and_time(bytes, span))?, span))
}

/// Milliseconds from 1970 to about 2200, and far from the end of 64-bit nanoseconds.
const CLOCK_END_MS: u64 = 7_258_118_400_000;

/// The spans so far, end to end. Times are of the log's clock, except those in `steps`.
struct Spans {
    origin: TimeDelta,
    end: TimeDelta,
    steps: Vec<(TimeDelta, Rate)>,
    gaps: usize,
    silent: TimeDelta,
}

impl Spans {
    fn starting_at(origin: TimeDelta) -> Self {
        Self { origin, end: origin, steps: Vec::new(), gaps: 0, silent: TimeDelta::ZERO }
    }

    /// Adds the span that ends at `now`, after the end of the last one.
    fn add(&mut self, now: TimeDelta, rate: Rate, span: TimeDelta) {
        let gap = now - span - self.end;
        if gap > span / 10 {
            self.steps.push((self.end - self.origin, Rate::ZERO));
            self.gaps += 1;
            self.silent += gap;
            self.end += gap;
        }
        self.steps.push((self.end - self.origin, rate));
        self.end = now;
    }

    fn into_trace(self, format: &'static Format) -> Trace {
        let period = self.end - self.origin;
        let note = (self.gaps > 0).then(|| {
            let times = if self.gaps == 1 { "time" } else { "times" };
            format!("the log is silent {} {times}, {} in all, taken as outage", self.gaps, self.silent)
        });
        Trace { note, ..Trace::new(format, Shape::Rates(self.steps), CapacityEnd::Loop(period), period) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Direction;
    use crate::trace::tests::{assert_errors, steps};

    fn read(text: &str) -> Trace {
        Trace::read(text, Direction::Downlink).unwrap()
    }

    /// The first lines of the format's own page.
    #[test]
    fn a_line_is_the_rate_of_the_span_before_it() {
        let trace = read(
            "1289406399 549692 59.851754 10.781778 248069 1008\n\
             1289406400 550772 59.851864 10.781833 191698 1080\n\
             1289406401 551773 59.851964 10.781901 280579 1001\n\
             1289406402 552893 59.85206  10.781969 248971 1120\n",
        );
        assert_eq!((trace.format, trace.format.headers), (&HSDPA, Headers::Payload));
        // 248069 * 8 / 1.008 s = 1968801.6; 191698 * 8 / 1.08 = 1419985.2; 280579 * 8 / 1.001 = 2242389.6;
        // 248971 * 8 / 1.12 = 1778364.3. Starts: 0, 1008, + 1080, + 1001.
        assert_eq!(trace.shape, steps(&[(0, 1_968_802), (1008, 1_419_985), (2088, 2_242_390), (3089, 1_778_364)]));
        assert_eq!(trace.duration, TimeDelta::from_millis(4209));
        assert_eq!(trace.end, CapacityEnd::Loop(TimeDelta::from_millis(4209)));
        // All bytes over all time: 969317 * 8 / 4.209 s = 1842370.2.
        assert_eq!(trace.mean_rate(), Rate::from_bps(1_842_370));
        assert_eq!(trace.note, None);
    }

    #[test]
    fn the_last_column_may_be_padded_with_zeros() {
        let trace = read(
            "1453121791687 40288 51.0386532820580 3.73222847166054 2763504 1001\n\
             1453121792686 41287 51.0386553301824 3.73225142858955 2728896 0999\n",
        );
        assert_eq!(trace.format, &GHENT);
        // 2763504 * 8 / 1.001 = 22085946.1; 2728896 * 8 / 0.999 = 21853021.0.
        assert_eq!(trace.shape, steps(&[(0, 22_085_946), (1001, 21_853_021)]));
        assert_eq!(trace.duration, TimeDelta::from_millis(2000));
    }

    #[test]
    fn gaps_are_outages_but_rounding_is_not() {
        // The second span starts 2 s after the first ended; the third 100 ms (a tenth: rounding); the fourth
        // overlaps by 500 ms; the fifth starts 101 ms after the fourth.
        let trace = read(
            "1 1000 0 0 125 1000\n1 4000 0 0 250 1000\n1 5100 0 0 375 1000\n1 5600 0 0 500 1000\n1 6701 0 0 125 1000\n",
        );
        assert_eq!(
            trace.shape,
            steps(&[(0, 1000), (1000, 0), (3000, 2000), (4000, 3000), (5100, 4000), (5600, 0), (5701, 1000)])
        );
        assert_eq!(trace.note.as_deref(), Some("the log is silent 2 times, 2.101 s in all, taken as outage"));
        assert_eq!(trace.duration, TimeDelta::from_millis(6701));
    }

    #[test]
    fn a_span_without_bytes_is_an_outage() {
        let trace = read("1 1000 0 0 125 1000\n1 2000 0 0 0 1000\n1 2000 0 0 0 0\n");
        assert_eq!(trace.shape, steps(&[(0, 1000), (1000, 0)]));
        assert_eq!(trace.mean_rate(), Rate::from_bps(500));
        assert_eq!(
            trace.describe(),
            "hsdpa trace, 2 rates from 0 bps to 1 kbps, mean 500 bps, 2 s; sizes are application data without headers"
        );
    }

    #[test]
    fn names_the_wrong_line() {
        assert_errors(&[
            ("1 1000 0 0 125 1000\n1 999 0 0 125 1000\n", 2, "time goes back, from 1 s to 999 ms"),
            ("1 1000 0 0 125 1000\n1 1000 0 0 125 1000\n", 2, "time must increase, but is 1 s twice"),
            ("1 1000 0 0 125 1000\n\n1 2000 0 0 125\n", 3, "5 columns instead of 6"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 125 1000 7\n", 2, "7 columns instead of 6"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 -125 1000\n", 2, "`-125` is not a whole number of bytes (column 5)"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 125 nan\n", 2, "`nan` is not a span in whole milliseconds (column 6)"),
            ("1 1000 0 0 125 1000\n1 2e3 0 0 125 1000\n", 2, "`2e3` is not a clock in whole milliseconds (column 2)"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 125 0\n", 2, "a line with bytes must have a span > 0 ms"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 125000000001 1000\n", 2, "the rate is above 1000 Gbps"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 18446744073709551615 1\n", 2, "the rate is above 1000 Gbps"),
            ("1 1000 0 0 125 1000\n1 31622400001 0 0 125 1000\n", 2, "the recording is longer than a year"),
            ("1 1000 0 0 125 1000\n1 2000 0 0 125 31622400001\n", 2, "the recording is longer than a year"),
            ("1 1000 0 0 125 1000\n1 18446744073709551615 0 0 125 1000\n", 2, "the clock is past the year 2200"),
            ("1 1000 0 0 0 0\n", 1, "the duration of the trace must be > 0"),
        ]);
        let fastest = "1 1000 0 0 125 1000\n1 2000 0 0 125000000000 1000\n";
        assert!(Trace::read(fastest, Direction::Downlink).is_ok(), "1 Tbps is not too fast");
    }
}
