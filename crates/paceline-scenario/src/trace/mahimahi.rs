// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mahimahi (`.up`, `.down`, `.trace`): one whole number of milliseconds a line, never decreasing, the last above
//! zero. Each line is an opportunity to deliver one maximal packet in that millisecond; what is not used is lost.
//!
//! The manual specifies 1500 bytes an opportunity; the code (`src/frontend/link_queue.cc`, `PACKET_SIZE`) gives 1504,
//! because its packets carry the 4 bytes that a TUN device puts before the IP header. The code decides, so a file
//! with the single line `1` is 12.032 Mbps, of which 12 are IP. The file loops with the last line as its period.

use super::lines::{is_numbers, lines};
use super::{Direction, Format, Headers, Shape, Trace, TraceError};
use paceline_netsim::link::CapacityEnd;
use paceline_units::{DataSize, TimeDelta};

pub(super) static FORMAT: Format = Format {
    name: "mahimahi",
    description: "a millisecond a line, each an opportunity to deliver 1504 bytes (mahimahi, Pantheon, Sprout)",
    example: "12",
    headers: Headers::IpAndLink,
    recognises: |head| is_numbers(head, 1),
    read,
};

const TUN_HEADER: DataSize = DataSize::from_bytes(4);
const OPPORTUNITY: DataSize = DataSize::from_bytes(1500 + TUN_HEADER.as_bytes());

fn read(text: &str, _: Direction) -> Result<Trace, TraceError> {
    let mut at: Vec<TimeDelta> = Vec::with_capacity(text.len() / 5);
    let mut last = None;
    for line in lines(text) {
        let ms = line.whole(line.text, "a time in whole milliseconds")?;
        let time = line.plausible_span(TimeDelta::from_millis(ms.min(1 << 40) as i64))?;
        if let Some(&before) = at.last().filter(|before| time < **before) {
            return Err(line.back_in_time(before, time));
        }
        at.push(time);
        last = Some(line);
    }
    let period = at.last().copied().unwrap_or_default();
    match last {
        Some(line) if !period.is_positive() => Err(line.error(
            "the duration of the trace must be > 0",
            "the last line is the period of the loop: make it at least 1",
        )),
        _ => {
            let shape = Shape::Opportunities { at, bytes_each: OPPORTUNITY };
            Ok(Trace::new(&FORMAT, shape, CapacityEnd::Loop(period), period))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::assert_errors;
    use paceline_units::Rate;

    #[test]
    fn opportunities_have_1504_bytes_and_loop_at_the_last() {
        let trace = Trace::read("0\n0\n3\n10\n", Direction::Downlink).unwrap();
        let at = [0, 0, 3, 10].map(TimeDelta::from_millis).to_vec();
        assert_eq!(trace.shape, Shape::Opportunities { at, bytes_each: DataSize::from_bytes(1504) });
        assert_eq!(trace.end, CapacityEnd::Loop(TimeDelta::from_millis(10)));
        // 4 * 1504 * 8 bits in 10 ms.
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_812_800));
        assert_eq!(
            trace.describe(),
            "mahimahi trace, 4 opportunities of 1504 bytes, mean 4.81 Mbps, 10 ms; sizes include IP and link headers"
        );
    }

    #[test]
    fn one_opportunity_a_millisecond_is_12_mbps() {
        let trace = Trace::read("1", Direction::Downlink).unwrap();
        assert_eq!(trace.mean_rate(), Rate::from_bps(12_032_000));
        assert_eq!(trace.duration, TimeDelta::from_millis(1));
    }

    #[test]
    fn names_the_wrong_line() {
        assert_errors(&[
            ("1\n\n3\n2\n", 4, "time goes back, from 3 ms to 2 ms"),
            ("1\n2.5\n", 2, "`2.5` is not a time in whole milliseconds"),
            ("-1\n", 1, "`-1` is not a time in whole milliseconds"),
            ("1\nfive\n", 2, "`five` is not a time in whole milliseconds"),
            ("1\n2 3\n", 2, "`2 3` is not a time in whole milliseconds"),
            ("nan\n", 1, "`nan` is not a time in whole milliseconds"),
            ("1\n99999999999999999999999\n", 2, "`99999999999999999999999` is not a time in whole milliseconds"),
            ("1\n18446744073709551615\n", 2, "the recording is longer than a year"),
            ("31622400001\n", 1, "the recording is longer than a year"),
            ("0\n0\n", 2, "the duration of the trace must be > 0"),
        ]);
        assert!(Trace::read("31622400000\n", Direction::Downlink).is_ok(), "366 days are not too long");
    }

    #[test]
    fn a_million_lines_are_read() {
        let text: String = (0..1_200_000).map(|i| format!("{}\n", i / 8)).collect();
        let trace = Trace::read(&text, Direction::Downlink).unwrap();
        assert_eq!(trace.duration, TimeDelta::from_millis(149_999));
    }
}
