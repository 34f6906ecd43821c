// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drive logs of G-NetTrack as CSV with named columns, of which the Irish 4G and 5G traces consist (Raca et al., MMSys 2018 and 2020):
//! `Timestamp` such as `2020.01.01_10.00.59`, of ISO 8601, or in seconds or milliseconds, `DL_bitrate` and `UL_bitrate` in kbit/s, `State`.
//!
//! Lines of the same second count as one, with their mean rate. A line without a number, or of a second without a download (`State` is
//! `I`), says nothing about the capacity and is left out: the rate before it holds. The bitrate is that of the application. The log loops,
//! as drive logs do.

use super::lines::{Line, SEPARATORS, lines};
use super::rate_csv::Steps;
use super::{Direction, Format, Headers, Trace, TraceError};

pub(super) static FORMAT: Format = Format {
    name: "g-nettrack",
    description: "CSV with the columns Timestamp and DL_bitrate or UL_bitrate in kbit/s (Irish 4G and 5G, UCC)",
    example: "Timestamp,State,DL_bitrate,UL_bitrate\n2020.01.01_10.00.59,D,4488,448",
    headers: Headers::Payload,
    recognises: |head| [Direction::Downlink, Direction::Uplink].iter().any(|of| Columns::find(head, *of).is_some()),
    read,
};

struct Columns {
    separator: char,
    time: usize,
    rate: usize,
    state: Option<usize>,
}

impl Columns {
    fn find(header: &str, direction: Direction) -> Option<Self> {
        let rate = if direction == Direction::Downlink { "DL_bitrate" } else { "UL_bitrate" };
        SEPARATORS.into_iter().find_map(|separator| {
            let at = |name: &str| header.split(separator).position(|cell| unquoted(cell).eq_ignore_ascii_case(name));
            Some(Self { separator, time: at("Timestamp")?, rate: at(rate)?, state: at("State") })
        })
    }
}

fn unquoted(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

fn read(text: &str, direction: Direction) -> Result<Trace, TraceError> {
    let mut all = lines(text);
    let head = all.next().unwrap_or(Line { number: 1, text: "" });
    let Some(columns) = Columns::find(head.text, direction) else {
        return Err(
            head.error("the header has no column with this direction", "write direction = \"downlink\" or \"uplink\"")
        );
    };
    let (mut steps, mut second, mut left_out): (Steps, Option<Second<'_>>, u64) = (Steps::default(), None, 0);
    for line in all {
        let cells: Vec<&str> = line.text.split(columns.separator).map(unquoted).collect();
        let (Some(time), Some(rate)) = (cells.get(columns.time), cells.get(columns.rate)) else {
            let count = cells.len();
            return Err(line
                .error(format!("{count} columns are fewer than in the header"), "complete the line, or leave it out"));
        };
        let is_idle = columns.state.and_then(|at| cells.get(at)).is_some_and(|state| state.eq_ignore_ascii_case("I"));
        if is_idle || rate.is_empty() || *rate == "-" {
            left_out += 1;
            continue;
        }
        let at = seconds(time)
            .ok_or_else(|| line.error(format!("`{time}` is not a time"), "write it like `2020.01.01_10.00.59`"))?
            .floor();
        let kbps = line.number(rate, "a rate in kbit/s, not negative")?;
        match &mut second {
            Some(second) if second.at == at => (second.kbps, second.lines) = (second.kbps + kbps, second.lines + 1.0),
            _ => {
                let before = second.replace(Second { at, kbps, lines: 1.0, line });
                before.map_or(Ok(()), |before| before.add_to(&mut steps))?;
            }
        }
    }
    second.map_or(Ok(()), |second| second.add_to(&mut steps))?;
    let Some(mut trace) = steps.finish(&FORMAT, true) else {
        return Err(head.error("no line has a rate", "a line needs a number in the column of the bitrate"));
    };
    let column = head.text.split(columns.separator).nth(columns.rate).map_or("", unquoted);
    let left = if left_out > 0 { format!("; {left_out} lines without a download are left out") } else { String::new() };
    trace.note = Some(format!("its column {column}{left}"));
    Ok(trace)
}

struct Second<'a> {
    at: f64,
    kbps: f64,
    lines: f64,
    line: Line<'a>,
}

impl Second<'_> {
    fn add_to(&self, steps: &mut Steps) -> Result<(), TraceError> {
        steps.add(&self.line, self.at * 1e9, self.kbps / self.lines * 1e3)
    }
}

/// Reads a time such as `2020.01.01_10.00.59`, also with other separators, s since 1970.
fn seconds(text: &str) -> Option<f64> {
    // From 1973 to 2286 milliseconds have 12 or 13 digits; more are a date without separators.
    if let Some(number) = text.parse::<f64>().ok().filter(|number| (0.0..1e13).contains(number)) {
        return Some(if number >= 1e11 { number / 1e3 } else { number });
    }
    let numbers: Vec<i64> = text
        .trim_end_matches('Z')
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let [year, month, day, hours, minutes, seconds] = *numbers.first_chunk()?;
    let is_date = (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    (is_date && hours < 24 && minutes < 60 && seconds < 61).then_some(())?;
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hours * 3600 + minutes * 60 + seconds) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{assert_errors, steps};
    use paceline_netsim::link::CapacityEnd;
    use paceline_units::TimeDelta;

    const LOG: &str = "Timestamp,Speed,DL_bitrate,UL_bitrate,State\n\
        2020.02.29_23.59.58,0,1000,100,D\n\
        2020.02.29_23.59.59,0,2000,200,D\n\
        2020.02.29_23.59.59,0,4000,600,D\n\
        2020.03.01_00.00.00,0,0,0,I\n\
        2020.03.01_00.00.01,0,-,-,D\n\
        2020.03.01_00.00.02,0,0,50,D\n";

    #[test]
    fn lines_of_a_second_count_as_one_and_those_without_a_download_not() {
        for text in [
            LOG.to_owned(),
            LOG.replace('.', "-").replace("State", "\"state\""),
            LOG.replace(',', ";"),
            LOG.replace(',', "\t"),
        ] {
            let trace = Trace::read(&text, Direction::Downlink).unwrap();
            assert_eq!(trace.shape, steps(&[(0, 1_000_000), (1000, 3_000_000), (4000, 0)]));
            assert_eq!((trace.format, trace.end), (&FORMAT, CapacityEnd::Loop(TimeDelta::from_secs(7))));
            assert_eq!(trace.note.as_deref(), Some("its column DL_bitrate; 2 lines without a download are left out"));
            let trace = Trace::read(&text, Direction::Uplink).unwrap();
            assert!(trace.note.unwrap().starts_with("its column UL_bitrate"));
            assert_eq!(trace.shape, steps(&[(0, 100_000), (1000, 400_000), (4000, 50_000)]));
        }
    }

    #[test]
    fn times_may_be_of_any_usual_kind() {
        for times in [
            ["2018-01-01T10:00:00Z", "2018-01-01T10:00:01Z"],
            ["2018-01-01 10:00:00.250", "2018-01-01 10:00:01.250"],
            ["1514800800", "1514800801"],
            ["1514800800500", "1514800801500"],
            ["0.5", "1.5"],
        ] {
            let text = format!("UL_bitrate,DL_bitrate,Timestamp\n9,1000,{}\n9,2000,{}\n", times[0], times[1]);
            let trace = Trace::read(&text, Direction::Downlink).unwrap();
            assert_eq!(trace.shape, steps(&[(0, 1_000_000), (1000, 2_000_000)]), "{text}");
        }
    }

    #[test]
    fn names_the_wrong_line() {
        let header = "Timestamp,DL_bitrate\n";
        for (text, line, cause) in [
            ("2020.01.01_10.00.00\n", 2, "1 columns are fewer than in the header"),
            ("2020.01.01_10.00.00,x\n", 2, "`x` is not a rate in kbit/s, not negative"),
            ("2020.13.01_10.00.00,1\n", 2, "`2020.13.01_10.00.00` is not a time"),
            ("-10.5,1\n", 2, "`-10.5` is not a time"),
            ("", 1, "no line has a rate"),
        ] {
            assert_errors(&[(&format!("{header}{text}"), line, cause)]);
        }
        let error = Trace::read(header, Direction::Uplink).unwrap_err();
        assert!(error.cause.contains("this direction"), "{error}");
    }
}
