// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Pensieve (Mao et al., "Neural adaptive video streaming with Pensieve", SIGCOMM 2017), in which the FCC, 3G and Oboe traces of
//! many corpora are stored: a time in seconds and a rate in Mbit/s, separated by white space.
//!
//! Times count from the first. A rate holds until the next; Pensieve loops its traces, so does this reader.

use super::lines::{Line, is_numbers, lines};
use super::rate_csv::Steps;
use super::{Direction, Format, Headers, Trace, TraceError};

pub(super) static FORMAT: Format = Format {
    name: "pensieve",
    description: "seconds and Mbit/s, separated by white space (Pensieve, FCC and Oboe traces)",
    example: "0.53 2.35",
    headers: Headers::Payload,
    recognises: |head| is_numbers(head, 2),
    read,
};

fn read(text: &str, _: Direction) -> Result<Trace, TraceError> {
    let mut steps = Steps::default();
    for line in lines(text) {
        let mut fields = line.text.split_whitespace();
        let (Some(time), Some(rate), None) = (fields.next(), fields.next(), fields.next()) else {
            let count = line.text.split_whitespace().count();
            let hint = "a line is a time in seconds and a rate in Mbit/s: `10.5 2.35`";
            return Err(line.error(format!("{count} columns instead of 2"), hint));
        };
        let seconds = line.number(time, "a time in seconds, not negative")?;
        steps.add(&line, seconds * 1e9, line.number(rate, "a rate in Mbit/s, not negative")? * 1e6)?;
    }
    let empty = Line { number: 1, text: "" };
    steps.finish(&FORMAT, true).ok_or_else(|| empty.error("the trace is empty", FORMAT.example))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{assert_errors, steps};
    use paceline_netsim::link::CapacityEnd;
    use paceline_units::TimeDelta;

    #[test]
    fn a_rate_holds_until_the_next() {
        for text in ["0.5 1.25\n1.5\t0\n3.5   2\n", "# a comment\r\n100.0 1.25\r\n101 0\r\n\r\n103 2e0\r\n"] {
            let trace = Trace::read(text, Direction::Downlink).unwrap();
            assert_eq!(trace.shape, steps(&[(0, 1_250_000), (1000, 0), (3000, 2_000_000)]));
            assert_eq!((trace.format, trace.end), (&FORMAT, CapacityEnd::Loop(TimeDelta::from_secs(5))));
        }
    }

    #[test]
    fn names_the_wrong_line() {
        assert_errors(&[
            ("0 1\n1 2 3\n", 2, "3 columns instead of 2"),
            ("0 1\n0 2\n", 2, "time must increase, but is 0 ns twice"),
            ("1 1\n0.5 2\n", 2, "time goes back, from 1 s to 500 ms"),
            ("0 1\n1 -2\n", 2, "`-2` is not a rate in Mbit/s, not negative"),
            ("0 1\n1 2e9\n", 2, "the rate is above 1000 Gbps"),
        ]);
    }
}
