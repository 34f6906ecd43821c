// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON of the AlphaRTC challenge and the OpenNetLab gym: for each direction a pattern of entries with a
//! duration in milliseconds and a capacity in kbit/s, both of which may have a fraction:
//!
//! ```json
//! {"type": "video", "downlink": {}, "uplink": {"trace_pattern": [{"duration": 200, "capacity": 291.8}]}}
//! ```
//!
//! As in the gym's own player (`trace_player.cc`) the pattern loops, and the uplink pattern is played in both directions,
//! since most files have no other: the downlink of a file without a downlink pattern is its uplink, with a note. The player
//! sets the rate of a point-to-point device, which counts the IP packet and 2 bytes of PPP header.
//!
//! Entries may also contain `loss`, a share, and `rtt` in milliseconds, which the player ignores and this reader does not. An entry
//! without them keeps those of the one before. `jitter` and `time` are ignored, and the note names those present. A capacity of 0 is an
//! outage.

use super::lines::{Line, lines, too_fast, too_long};
use super::{Conditions, Direction, FASTEST, Format, Headers, LONGEST, Shape, Trace, TraceError};
use core::fmt;
use paceline_netsim::link::CapacityEnd;
use paceline_units::{Fraction, Rate, TimeDelta};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, Visitor};

pub(super) static FORMAT: Format = Format {
    name: "alphartc",
    description: "JSON with a pattern of duration (ms), capacity (kbps), loss and rtt (ms) each way (AlphaRTC, OpenNetLab gym)",
    example: r#"{"uplink": {"trace_pattern": [{"duration": 200, "capacity": 291.8}]}}"#,
    headers: Headers::IpAndLink,
    recognises: |head| head.starts_with('{'),
    read,
};

fn read(text: &str, direction: Direction) -> Result<Trace, TraceError> {
    let head = lines(text).next().unwrap_or(Line { number: 1, text: "" });
    let comments = head.number - 1;
    let json = &text[text.split_inclusive('\n').take(comments).map(str::len).sum()..];
    let file: File = serde_json::from_str(json).map_err(|e| {
        let line = comments + e.line().max(1);
        let (cause, hint) = (e.to_string(), format!("a file looks like `{}`", FORMAT.example));
        let cause = cause.split(" at line ").next().unwrap_or_default();
        Line { number: line, text: text.lines().nth(line - 1).unwrap_or_default().trim() }.error(cause, hint)
    })?;
    let (pattern, borrowed) = match direction {
        Direction::Uplink => (file.uplink.trace_pattern, false),
        Direction::Downlink if file.downlink.trace_pattern.is_empty() => (file.uplink.trace_pattern, true),
        Direction::Downlink => (file.downlink.trace_pattern, false),
    };

    let mut steps = Vec::with_capacity(pattern.len());
    let mut end = TimeDelta::ZERO;
    let mut conditions = Conditions::default();
    for entry in pattern.iter().filter(|entry| entry.duration.0.is_positive()) {
        steps.push((end, entry.capacity.0));
        if conditions.loss.is_empty() && entry.loss.is_some() && end.is_positive() {
            conditions.loss.push((TimeDelta::ZERO, Fraction::ZERO));
        }
        conditions.loss.extend(entry.loss.as_ref().map(|loss| (end, loss.0)));
        conditions.rtt.extend(entry.rtt.as_ref().map(|rtt| (end, rtt.0)));
        end += entry.duration.0;
        if end > LONGEST {
            return Err(head.error(too_long(), "durations are in milliseconds"));
        }
    }
    if steps.is_empty() {
        let side = if direction == Direction::Uplink { "uplink" } else { "downlink" };
        let hint = format!("write entries with `duration` and `capacity` under `{side}`.`trace_pattern`");
        return Err(head.error("the pattern of this direction is missing or has duration 0", hint));
    }
    let note = note(&pattern, borrowed);
    Ok(Trace { conditions, note, ..Trace::new(&FORMAT, Shape::Rates(steps), CapacityEnd::Loop(end), end) })
}

/// Returns the note: which pattern replaces a missing one, and which fields are ignored.
fn note(pattern: &[Entry], borrowed: bool) -> Option<String> {
    type Field = (&'static str, fn(&Entry) -> bool);
    let fields: [Field; 2] = [("jitter", |e| e.jitter.is_some()), ("time", |e| e.time.is_some())];
    let ignored: Vec<&str> = fields.iter().filter(|(_, has)| pattern.iter().any(has)).map(|(name, _)| *name).collect();
    let ignored = match ignored.as_slice() {
        [] => None,
        [one] => Some(format!("{one} is ignored")),
        [most @ .., last] => Some(format!("{} and {last} are ignored", most.join(", "))),
    };
    let borrowed = borrowed.then(|| "no downlink pattern, so the uplink's is used".to_owned());
    let notes: Vec<String> = [borrowed, ignored].into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[derive(serde::Deserialize)]
struct File {
    #[serde(default)]
    uplink: Side,
    #[serde(default)]
    downlink: Side,
}

#[derive(Default, serde::Deserialize)]
struct Side {
    #[serde(default)]
    trace_pattern: Vec<Entry>,
}

#[derive(serde::Deserialize)]
struct Entry {
    duration: Duration,
    capacity: Capacity,
    loss: Option<Share>,
    rtt: Option<Duration>,
    jitter: Option<IgnoredAny>,
    time: Option<IgnoredAny>,
}

/// From milliseconds.
struct Duration(TimeDelta);

struct Share(Fraction);

/// From kilobits per second.
struct Capacity(Rate);

macro_rules! from_number {
    ($($name:ident $what:literal $convert:expr,)*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_f64(Number($what, $convert))
            }
        }
    )* };
}
from_number! {
    Duration "a duration in milliseconds, not negative" |ms| {
        let span = TimeDelta::from_millis_f64(ms);
        if span <= LONGEST { Ok(Self(span)) } else { Err(too_long()) }
    },
    Share "a share of lost packets, not negative" |share| {
        Fraction::new(share).map(Self).ok_or_else(|| format!("the loss {share} is above 1; 5 % is 0.05"))
    },
    Capacity "a capacity in kbit/s, not negative" |kbps| {
        let rate = Rate::from_bps_f64(kbps * 1e3);
        if rate <= FASTEST { Ok(Self(rate)) } else { Err(too_fast()) }
    },
}

/// Visits a number, so that an error about its value carries the number's own line.
struct Number<T>(&'static str, fn(f64) -> Result<T, String>);

impl<T> Visitor<'_> for Number<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
    fn visit_f64<E: Error>(self, x: f64) -> Result<T, E> {
        if x.is_finite() && x >= 0.0 {
            self.1(x).map_err(E::custom)
        } else {
            Err(E::custom(format_args!("{x} is not {}", self.0)))
        }
    }
    fn visit_u64<E: Error>(self, x: u64) -> Result<T, E> {
        self.visit_f64(x as f64)
    }
    fn visit_i64<E: Error>(self, x: i64) -> Result<T, E> {
        self.visit_f64(x as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = r#"{
  "type": "video",
  "downlink": {"trace_pattern": [{"duration": 500, "capacity": 1000, "loss": 0, "rtt": 20, "jitter": 0}]},
  "uplink": {
    "trace_pattern": [
      {"duration": 200.0, "capacity": 291.76, "time": 0.0},
      {"duration": 0, "capacity": 5000},
      {"duration": 300, "capacity": 0},
      {"duration": 0.5, "capacity": 100}
    ]
  }
}"#;

    #[test]
    fn durations_add_up_and_a_capacity_of_zero_is_an_outage() {
        let trace = Trace::read(BOTH, Direction::Uplink).unwrap();
        let steps = [(0, 291_760), (200_000, 0), (500_000, 100_000)]
            .map(|(us, bps)| (TimeDelta::from_micros(us), Rate::from_bps(bps)));
        assert_eq!(trace.shape, Shape::Rates(steps.to_vec()));
        assert_eq!(trace.end, CapacityEnd::Loop(TimeDelta::from_micros(500_500)));
        // (291760 * 0.2 + 100000 * 0.0005) bits / 0.5005 s = 116687.3.
        assert_eq!(trace.mean_rate(), Rate::from_bps(116_687));
        assert_eq!(trace.note.as_deref(), Some("time is ignored"));
        assert_eq!(trace.format.headers, Headers::IpAndLink);
    }

    #[test]
    fn the_direction_chooses_the_pattern() {
        let trace = Trace::read(BOTH, Direction::Downlink).unwrap();
        assert_eq!(trace.shape, Shape::Rates(vec![(TimeDelta::ZERO, Rate::from_kbps(1000))]));
        assert_eq!(trace.note.as_deref(), Some("jitter is ignored"));
    }

    #[test]
    fn loss_and_round_trip_times_are_read() {
        let text = r#"{"uplink": {"trace_pattern": [{"duration": 1000, "capacity": 1, "loss": 0, "rtt": 40},
            {"duration": 0, "capacity": 1, "loss": 1}, {"duration": 500, "capacity": 1, "loss": null},
            {"duration": 500, "capacity": 1, "loss": 0.125, "rtt": 200.5, "jitter": 1}]}}"#;
        let trace = Trace::read(text, Direction::Uplink).unwrap();
        let at = TimeDelta::from_millis;
        let loss = [(at(0), 0.0), (at(1500), 0.125)].map(|(at, loss)| (at, Fraction::new(loss).unwrap()));
        let rtt = [(at(0), at(40)), (at(1500), TimeDelta::from_micros(200_500))];
        assert_eq!(trace.conditions, Conditions { loss: loss.to_vec(), rtt: rtt.to_vec() });
    }

    #[test]
    fn the_uplink_replaces_a_missing_downlink() {
        let text =
            "# a comment\n{\"downlink\": {}, \"uplink\": {\"trace_pattern\": [{\"duration\": 1, \"capacity\": 1}]}}";
        let trace = Trace::read(text, Direction::Downlink).unwrap();
        assert_eq!(trace.mean_rate(), Rate::from_kbps(1));
        assert_eq!(trace.note.as_deref(), Some("no downlink pattern, so the uplink's is used"));
        assert_eq!(Trace::read(text, Direction::Uplink).unwrap().note, None);
    }

    /// The bad entry stands on line 4.
    #[test]
    fn names_the_line_of_a_wrong_value() {
        for (entry, cause) in [
            (r#"{"duration": 5, "capacity": -1}"#, "-1 is not a capacity in kbit/s, not negative"),
            (r#"{"duration": -0.5, "capacity": 1}"#, "-0.5 is not a duration in milliseconds, not negative"),
            (r#"{"duration": 5, "capacity": 1000000000.001}"#, "the rate is above 1000 Gbps"),
            (r#"{"duration": 31622400001, "capacity": 1}"#, "the recording is longer than a year"),
            (r#"{"duration": 1e999, "capacity": 1}"#, "number out of range"),
            (r#"{"duration": 5}"#, "missing field `capacity`"),
            (r#"{"duration": 5, "capacity": 1, "loss": 5}"#, "the loss 5 is above 1; 5 % is 0.05"),
            (r#"{"duration": 5, "capacity": 1, "rtt": -1}"#, "-1 is not a duration in milliseconds, not negative"),
            (r#"{"duration": 5, "capacity": 1, "capacity": 1}"#, "duplicate field `capacity`"),
            (r#"{"duration": 5 "capacity": 1}"#, "expected `,` or `}`"),
            (
                r#"{"duration": "x", "capacity": 1}"#,
                "invalid type: string \"x\", expected a duration in milliseconds, not negative",
            ),
        ] {
            let text = format!("# a comment\n{{\"uplink\": {{\"trace_pattern\": [\n{GOOD},\n{entry}\n]}}}}");
            let error = Trace::read(&text, Direction::Uplink).unwrap_err();
            assert_eq!((error.line, error.cause.as_str(), error.text.as_str()), (4, cause, entry));
        }
    }
    const GOOD: &str = r#"{"duration": 5, "capacity": 1000000000}"#;

    #[test]
    fn durations_add_up_to_a_year_at_most() {
        let file = |ms: f64| {
            let entries =
                format!(r#"{{"duration": 31622399999.5, "capacity": 1}}, {{"duration": {ms}, "capacity": 1}}"#);
            Trace::read(&format!(r#"{{"uplink": {{"trace_pattern": [{entries}]}}}}"#), Direction::Uplink)
        };
        assert_eq!(file(0.5).unwrap().duration, LONGEST);
        assert_eq!(file(0.6).unwrap_err().cause, "the recording is longer than a year");
    }

    #[test]
    fn rejects_a_pattern_without_duration() {
        for text in
            ["{}", "\n{\"uplink\": {}}", "{\"uplink\": {\"trace_pattern\": [{\"duration\": 0, \"capacity\": 1}]}}"]
        {
            for direction in [Direction::Downlink, Direction::Uplink] {
                let error = Trace::read(text, direction).unwrap_err();
                assert_eq!(error.cause, "the pattern of this direction is missing or has duration 0");
            }
        }
        let cut = Trace::read("{\"uplink\":\n", Direction::Uplink).unwrap_err();
        assert_eq!((cut.line, cut.cause.as_str()), (2, "EOF while parsing a value"));
    }
}
