// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a trace and the numbers in them, with errors that name the line.

use super::{FASTEST, LONGEST, TraceError};
use paceline_units::{Rate, TimeDelta};

/// What may separate columns.
pub(super) const SEPARATORS: [char; 3] = [',', ';', '\t'];

#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    /// Without the white space around it.
    pub(super) text: &'a str,
}

/// The lines of a text that are neither blank nor `#` comments.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines()
        .zip(1..)
        .map(|(text, number)| Line { number, text: text.trim() })
        .filter(|line| !line.text.is_empty() && !line.text.starts_with('#'))
}

/// Returns whether a text consists of this many numbers between white space.
pub(super) fn is_numbers(text: &str, count: usize) -> bool {
    text.split_whitespace().count() == count && text.split_whitespace().all(|field| field.parse::<f64>().is_ok())
}

impl Line<'_> {
    pub(super) fn error(&self, cause: impl Into<String>, hint: impl Into<String>) -> TraceError {
        TraceError { line: self.number, text: shortened(self.text), cause: cause.into(), hint: hint.into() }
    }

    /// Parses a whole number that is not negative; `what` completes "... is not".
    pub(super) fn whole(&self, field: &str, what: &str) -> Result<u64, TraceError> {
        field.parse().map_err(|_| {
            self.error(
                format!("`{}` is not {what}", shortened(field)),
                "write a whole number, not negative, without a unit or separators",
            )
        })
    }

    /// Parses a finite number that is not negative; `what` completes "... is not".
    pub(super) fn number(&self, field: &str, what: &str) -> Result<f64, TraceError> {
        match field.parse::<f64>() {
            Ok(x) if x.is_finite() && x >= 0.0 => Ok(x),
            _ => Err(self.error(
                format!("`{}` is not {what}", shortened(field)),
                "write a number, not negative, without a unit, with a decimal point if it needs one",
            )),
        }
    }

    /// Returns the error for time that does not increase from `before` to `now`.
    pub(super) fn back_in_time(&self, before: TimeDelta, now: TimeDelta) -> TraceError {
        let cause = if now == before {
            format!("time must increase, but is {now} twice")
        } else {
            format!("time goes back, from {before} to {now}")
        };
        self.error(cause, "sort the lines, or split the file where the recording restarted")
    }

    /// Returns `rate` if it is at most [`FASTEST`].
    pub(super) fn plausible_rate(&self, rate: Rate) -> Result<Rate, TraceError> {
        if rate <= FASTEST { Ok(rate) } else { Err(self.error(too_fast(), "is the unit right?")) }
    }

    /// Returns `span` if it is at most [`LONGEST`].
    pub(super) fn plausible_span(&self, span: TimeDelta) -> Result<TimeDelta, TraceError> {
        if span <= LONGEST { Ok(span) } else { Err(self.error(too_long(), "is the unit right?")) }
    }
}

pub(super) fn too_fast() -> String {
    format!("the rate is above {FASTEST}")
}

pub(super) fn too_long() -> String {
    "the recording is longer than a year".to_owned()
}

/// Returns at most 60 characters of a text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
