// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading recorded capacity: the text of a trace file in, a [`Trace`] out.
//!
//! A trace is the capacity of a link over time, in one of two shapes: a rate that holds until the next one, or instants
//! at each of which a fixed number of bytes may leave. [`Trace`] also holds three properties of the format that change
//! results and that the files do not contain: which headers the bytes include ([`Headers`]), what follows the last line
//! ([`CapacityEnd`]), and what was left out (`note`).
//!
//! The format is recognised by content, never by file name, from the first line that is neither blank nor a `#`
//! comment, by the first rule that fits:
//! 1. it starts with `{`: AlphaRTC JSON;
//! 2. it names the columns `Timestamp` and `DL_bitrate` or `UL_bitrate`: a log of G-NetTrack;
//! 3. it has a comma, a semicolon or a tab, and starts with a number or with `time`: `time,rate` CSV, unless rule 5 fits;
//! 4. it is one number: mahimahi, even where the numbers could be meant as rates;
//! 5. it is two numbers: Pensieve;
//! 6. it is six numbers: a drive log, Ghent's if the first (the wall clock) is at least 10^11, which as seconds
//!    would be the year 5138 and as milliseconds is 1973; the Norwegian one otherwise.
//!
//! Import rules (all formats): time that goes back is an error; a rate of zero is an outage; negative, NaN and
//! implausibly large numbers are errors; CRLF line ends, a byte order mark, blank lines and `#` lines are fine.

mod alphartc;
mod drive_log;
mod lines;
mod mahimahi;
mod named_csv;
mod pensieve;
mod rate_csv;

use core::fmt;
use lines::{Line, lines};
use paceline_netsim::link::CapacityEnd;
use paceline_units::{DataSize, Fraction, Rate, TimeDelta};

/// A trace format that Paceline reads.
pub struct Format {
    /// Its name, such as `mahimahi`.
    pub name: &'static str,
    /// A description, in one line.
    pub description: &'static str,
    /// The start of such a file.
    pub example: &'static str,
    /// The headers that its bytes include.
    pub headers: Headers,
    /// Returns whether a text is in this format, by its first line that is neither blank nor a comment.
    recognises: fn(&str) -> bool,
    read: fn(&str, Direction) -> Result<Trace, TraceError>,
}

/// Every format, in the order of the documentation. Of several that recognise a text, the first reads it.
pub static FORMATS: [&Format; 7] = [
    &mahimahi::FORMAT,
    &drive_log::HSDPA,
    &drive_log::GHENT,
    &named_csv::FORMAT,
    &pensieve::FORMAT,
    &alphartc::FORMAT,
    &rate_csv::FORMAT,
];

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The link of a file with two links. Only AlphaRTC files have two; the others are read the same for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TraceDirection")]
pub enum Direction {
    /// From the network to the recording device.
    #[default]
    Downlink,
    /// From the recording device to the network.
    Uplink,
}

/// Recorded capacity over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The format that the text was in.
    pub format: &'static Format,
    /// The capacity itself.
    pub shape: Shape,
    /// The capacity after the end of the recording. Where it loops, an opportunity at 0 of the next round coincides with
    /// one at the end of this round.
    pub end: CapacityEnd,
    /// What else the recording has.
    pub conditions: Conditions,
    /// Remark on what the reader left out or assumed; `None` if it used the file as it is.
    pub note: Option<String>,
    /// The duration of the recording: one round of a looped trace. The last of steps that hold is as long as the one
    /// before it (zero if there is one step).
    pub duration: TimeDelta,
}

/// Loss and round-trip time over time; empty if a recording has none. They end and loop as the capacity does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The share of packets that is lost, from each time on.
    pub loss: Vec<(TimeDelta, Fraction)>,
    /// The round-trip time of the path without its queue, from each time on.
    pub rtt: Vec<(TimeDelta, TimeDelta)>,
}

/// The two representations of capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Each rate holds from its time (since the trace's start) to the next one's. Times strictly increase and the
    /// first is zero; [`Rate::ZERO`] is an outage.
    Rates(Vec<(TimeDelta, Rate)>),
    /// At each instant a fixed number of bytes may leave; what is not used then is lost.
    Opportunities {
        /// Times since the trace's start, never decreasing; equal ones are separate opportunities.
        at: Vec<TimeDelta>,
        /// Bytes that may leave at each; several small packets share one, a large packet needs several.
        bytes_each: DataSize,
    },
}

/// Which headers the bytes of a trace include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// None: bytes that an application received.
    Payload,
    /// Whole IP packets.
    Ip,
    /// Whole IP packets and, for each, the link header of the tool that plays the format.
    IpAndLink,
}

/// An error in the text of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}{}; {hint}", quoted(.text))]
pub struct TraceError {
    /// Line of the wrong text, from 1.
    pub line: usize,
    /// The wrong text, shortened.
    pub text: String,
    /// The error.
    pub cause: String,
    /// The hint.
    pub hint: String,
}

impl Trace {
    /// Reads a trace in any of the [formats](FORMATS), recognised by content.
    pub fn read(text: &str, direction: Direction) -> Result<Self, TraceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        (recognise(text)?.read)(text, direction)
    }

    /// Returns a trace without conditions and remark.
    fn new(format: &'static Format, shape: Shape, end: CapacityEnd, duration: TimeDelta) -> Self {
        Self { format, shape, end, duration, conditions: Conditions::default(), note: None }
    }

    /// Returns the mean rate over the duration; the only rate of a trace without duration.
    pub fn mean_rate(&self) -> Rate {
        let ns = self.duration.as_nanos().max(0) as u128;
        match &self.shape {
            Shape::Opportunities { at, bytes_each } => {
                Rate::from_size_and_time(DataSize::from_bytes(bytes_each.as_bytes() * at.len() as u64), self.duration)
            }
            Shape::Rates(steps) if ns == 0 => steps.last().map_or(Rate::ZERO, |(_, rate)| *rate),
            Shape::Rates(steps) => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([self.duration]);
                let bit_ns: u128 = steps
                    .iter()
                    .zip(ends)
                    .map(|((at, rate), end)| rate.as_bps() as u128 * (end - *at).as_nanos().max(0) as u128)
                    .sum();
                Rate::from_bps(((bit_ns + ns / 2) / ns) as u64)
            }
        }
    }

    /// Describes format, extent, mean, headers and note in one line.
    pub fn describe(&self) -> String {
        let shape = match &self.shape {
            Shape::Opportunities { at, bytes_each } => {
                format!("{} opportunities of {} bytes", at.len(), bytes_each.as_bytes())
            }
            Shape::Rates(steps) => {
                let low = steps.iter().map(|(_, rate)| *rate).min().unwrap_or_default();
                let high = steps.iter().map(|(_, rate)| *rate).max().unwrap_or_default();
                format!("{} rates from {} to {}", steps.len(), rounded(low), rounded(high))
            }
        };
        let note = self.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
        format!(
            "{} trace, {shape}, mean {}, {}; sizes {}{note}",
            self.format.name,
            rounded(self.mean_rate()),
            self.duration,
            self.format.headers,
        )
    }
}

impl fmt::Display for Headers {
    /// Completes the sentence "sizes ...".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Payload => "are application data without headers",
            Self::Ip => "include IP headers",
            Self::IpAndLink => "include IP and link headers",
        })
    }
}

/// The largest plausible rate; a larger number has a wrong unit.
const FASTEST: Rate = Rate::from_kbps(1_000_000_000);
/// The longest plausible recording; a larger number has a wrong unit.
const LONGEST: TimeDelta = TimeDelta::from_secs(366 * 86_400);

/// Recognises the format of a text by the rules of the module's documentation.
fn recognise(text: &str) -> Result<&'static Format, TraceError> {
    let Some(head) = lines(text).next() else {
        return Err(Line { number: 1, text: "" }.error("the trace is empty", known_formats()));
    };
    let found = FORMATS.into_iter().find(|format| (format.recognises)(head.text));
    found.ok_or_else(|| head.error("this is the start of no trace format that Paceline reads", known_formats()))
}

fn known_formats() -> String {
    let lines = FORMATS.map(|f| format!("{} (`{}`)", f.name, f.example));
    format!("known formats, with a line of each: {}", lines.join(", "))
}

/// Rounds a rate to three significant digits.
fn rounded(rate: Rate) -> Rate {
    let bps = rate.as_bps();
    let mut unit = 1;
    while bps / unit >= 1000 {
        unit *= 10;
    }
    Rate::from_bps((bps.saturating_add(unit / 2)) / unit * unit)
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": `{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> TraceError {
        Trace::read(text, Direction::Downlink).unwrap_err()
    }

    /// Checks the line and the cause of the error of each text.
    pub(super) fn assert_errors(cases: &[(&str, usize, &str)]) {
        for (text, line, cause) in cases {
            let error = error(text);
            assert_eq!((error.line, error.cause.as_str()), (*line, *cause), "{text:?}");
        }
    }

    /// Returns rates in bit/s, from these times in ms on.
    pub(super) fn steps(steps: &[(i64, u64)]) -> Shape {
        Shape::Rates(steps.iter().map(|&(ms, bps)| (TimeDelta::from_millis(ms), Rate::from_bps(bps))).collect())
    }

    /// Reads an example that `cargo xtask make-traces` writes.
    fn example(file: &str) -> String {
        std::fs::read_to_string(format!("{}/../../scenarios/real/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn recognises_the_shipped_examples() {
        let (link, payload) = ("; sizes include IP and link headers", "; sizes are application data without headers");
        let ignored = "; sizes include IP and link headers; jitter is ignored";
        for (file, format, duration_ms, end) in [
            ("lte-like.mahimahi", &mahimahi::FORMAT, 40_000, link),
            ("traces/hsdpa.log", &drive_log::HSDPA, 39_947, payload),
            ("traces/ghent4g.log", &drive_log::GHENT, 39_985, payload),
            ("traces/alphartc.json", &alphartc::FORMAT, 20_000, ignored),
            ("traces/steps.csv", &rate_csv::FORMAT, 60_000, "60 s; sizes include IP headers"),
        ] {
            let trace = Trace::read(&example(file), Direction::Downlink).unwrap();
            assert_eq!((trace.format, trace.duration), (format, TimeDelta::from_millis(duration_ms)));
            let description = trace.describe();
            assert!(description.starts_with(&format!("{} trace, ", format.name)), "{description}");
            assert!(description.ends_with(end), "{description}");
        }
    }

    #[test]
    fn recognises_the_example_of_each_format() {
        for format in FORMATS {
            assert_eq!(recognise(format.example).unwrap(), format);
            assert_eq!(Trace::read(format.example, Direction::Uplink).unwrap().format, format);
        }
    }

    /// Lines in hints, with the header of the text if it has one.
    #[test]
    fn hints_work() {
        for text in [
            "0,2.5\n10,1.5\n",
            "0,1\n5\n",
            "0,1\n5,1,1\n",
            "time,rate\n",
            "time_s,rate_mbps\n",
            "time_h,rate\n",
            "time_ms,speed\n0,1\n",
            "0,1\n1e12,1\n",
            "0 1\n1 2 3\n",
            "hello",
            "",
        ] {
            let (error, mut tried) = (error(text), 0);
            let header =
                text.lines().next().filter(|line| line.starts_with("time") && error.cause.contains("nothing else"));
            for line in error.hint.split('`').skip(1).step_by(2) {
                let is_header = line.starts_with("time") || line.starts_with("rate");
                let line = match (is_header, line.contains(',')) {
                    (true, true) => format!("{line}\n0,2.5\n"),
                    (true, false) if line.starts_with("time") => format!("{line},rate_bps\n0,2500\n"),
                    (true, false) => format!("time_s,{line}\n0,1000\n"),
                    _ => format!("{}\n{line}\n", header.unwrap_or_default()),
                };
                assert!(Trace::read(&line, Direction::Uplink).is_ok(), "{text:?}: {}: {line:?}", error.hint);
                tried += 1;
            }
            assert!(tried > 0, "{text:?}: {}", error.hint);
        }
    }

    /// 10^11 is the first wall clock read as milliseconds.
    #[test]
    fn recognises_drive_logs_by_their_wall_clock() {
        assert_eq!(recognise("99999999999 1 0 0 1 1").unwrap(), &drive_log::HSDPA);
        assert_eq!(recognise("100000000000 1 0 0 1 1").unwrap(), &drive_log::GHENT);
    }

    #[test]
    fn lists_the_formats_for_unknown_text() {
        for (text, line, shown) in [
            ("", 1, ""),
            ("\n  \n# only a comment\n", 1, ""),
            ("\n\nhello world\n", 3, "hello world"),
            ("Dear reader, hello", 1, "Dear reader, hello"),
            ("1 2 3 4 5\n", 1, "1 2 3 4 5"),
            ("[1, 2]", 1, "[1, 2]"),
        ] {
            let error = error(text);
            assert_eq!((error.line, error.text.as_str()), (line, shown));
            for format in FORMATS {
                assert!(error.hint.contains(format.name) && error.hint.contains(format.example), "{error}");
            }
        }
        let long = "é".repeat(500);
        assert_eq!(error(&long).text.chars().count(), 61, "60 characters and an ellipsis");
        assert_eq!(error(&long).text.chars().last(), Some('…'));
    }

    #[test]
    fn ignores_line_ends_byte_order_marks_and_blanks() {
        let plain = Trace::read("1\n2\n2\n", Direction::Downlink).unwrap();
        for text in ["\u{feff}1\n2\n2", "1\r\n2\r\n2\r\n\r\n\r\n", "# made by hand\n\n1\n2 \n 2\n\n"] {
            assert_eq!(Trace::read(text, Direction::Downlink).unwrap(), plain, "{text:?}");
        }
    }

    #[test]
    fn an_error_shows_line_cause_text_and_hint() {
        assert_eq!(
            error("5\n4\n").to_string(),
            "line 2: time goes back, from 5 ms to 4 ms: `4`; sort the lines, or split the file where the recording restarted"
        );
    }

    #[test]
    fn rates_round_to_three_digits() {
        for (bps, shown) in [(0, 0), (999, 999), (1_234, 1_230), (1_235, 1_240), (5_041_208, 5_040_000)] {
            assert_eq!(rounded(Rate::from_bps(bps)).as_bps(), shown);
        }
    }

    /// Checks the guarantees of [`Shape`] and [`Trace::end`].
    fn check(trace: &Trace) {
        let duration = trace.duration;
        match &trace.shape {
            Shape::Rates(steps) => {
                assert_eq!(steps[0].0, TimeDelta::ZERO);
                assert!(steps.is_sorted_by(|a, b| a.0 < b.0));
                assert!(steps.iter().all(|(at, rate)| *at <= duration && *rate <= FASTEST));
                assert!(trace.mean_rate() <= FASTEST);
            }
            Shape::Opportunities { at, .. } => {
                assert!(at.is_sorted() && at[0] >= TimeDelta::ZERO);
                assert_eq!(at.last(), Some(&duration));
            }
        }
        if let CapacityEnd::Loop(period) = trace.end {
            assert!(period == duration && period.is_positive());
        }
        assert!(!trace.describe().contains('\n'));
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(text in "\\PC*|(.|\n)*") {
            if let Ok(trace) = Trace::read(&text, Direction::Uplink) {
                check(&trace);
            }
        }

        /// Lines of fields that pass recognition, many of them at a limit.
        #[test]
        fn nearly_traces_do_not_panic(
            lines in prop::collection::vec(prop::collection::vec(
                "0|1|7|1e3|-1|nan|inf|0999|1e308|100000000000|9223372036854775807|18446744073709551615|time_ms|rate_kbps|[0-9]{1,13}|[0-9]{1,4}\\.[0-9]{1,3}",
                1..8), 0..12),
            separator in prop::sample::select(vec![" ", ",", "  "]),
            columns in prop::sample::select(vec![1, 2, 6, 8]),
        ) {
            let lines: Vec<String> =
                lines.iter().map(|fields| fields.iter().cycle().take(columns).cloned().collect::<Vec<_>>().join(separator)).collect();
            if let Ok(trace) = Trace::read(&lines.join("\n"), Direction::Downlink) {
                check(&trace);
            }
        }

        #[test]
        fn damaged_traces_do_not_panic(
            file in prop::sample::select(vec!["hsdpa.log", "ghent4g.log", "alphartc.json", "steps.csv"]),
            at in any::<prop::sample::Index>(),
            damage in "[0-9 .,\\-\nexX\"{}é]{0,3}",
        ) {
            let text = example(&format!("traces/{file}"));
            let at = at.index(text.len());
            let damaged = format!("{}{damage}{}", &text[..at], &text[at + 1..]);
            if let Ok(trace) = Trace::read(&damaged, Direction::Downlink) {
                check(&trace);
            }
        }

        #[test]
        fn nearly_json_does_not_panic(
            entries in prop::collection::vec(("0|1|-1|200\\.5|1e9|1e99|1e999|null|\"x\"", "0|1|-1|200\\.5|1e9|1e99|null"), 0..6),
            side in "uplink|downlink|other",
            cut in 0_usize..400,
        ) {
            let entries: Vec<String> =
                entries.iter().map(|(d, c)| format!("{{\"duration\": {d}, \"capacity\": {c}}}")).collect();
            let text = format!("{{\"{side}\": {{\"trace_pattern\": [{}]}}}}", entries.join(",\n"));
            for text in [text.as_str(), &text[..cut.min(text.len())]] {
                if let Ok(trace) = Trace::read(text, Direction::Downlink) {
                    check(&trace);
                }
            }
        }
    }
}
