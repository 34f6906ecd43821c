// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses and writes quantities as text: a number and its unit.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The error for text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}; write it like `{example}`{units}")]
pub struct ParseError {
    text: String,
    expected: &'static str,
    example: &'static str,
    /// The valid units, if the unit is wrong; otherwise empty.
    units: String,
}

impl ParseError {
    pub(crate) fn new(text: &str, expected: &'static str, example: &'static str) -> Self {
        Self { text: text.to_owned(), expected, example, units: String::new() }
    }
}

/// Parses `<number> <unit>` and returns the number in base units.
pub(crate) fn quantity(
    text: &str,
    expected: &'static str,
    example: &'static str,
    units: &[(&str, f64)],
) -> Result<f64, ParseError> {
    let error = || ParseError::new(text, expected, example);
    let trimmed = text.trim();
    let digits =
        trimmed.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).ok_or_else(error)?;
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.replace('_', "").parse().map_err(|_| error())?;
    let unit = unit.trim();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
        let names: Vec<String> = units.iter().map(|(name, _)| format!("`{name}`")).collect();
        let bytes = if unit.ends_with("Bps") { "; a rate counts bits, and 1 byte is 8 bits" } else { "" };
        ParseError { units: format!("; units: {}{bytes}", names.join(", ")), ..error() }
    })?;
    let value = number * factor;
    if value.is_finite() { Ok(value) } else { Err(error()) }
}

/// Writes `value` without trailing zeros, in the largest unit in which it is at least 1.
pub(crate) fn display(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let magnitude = value.abs();
    let (name, factor) = units.iter().rev().find(|(_, factor)| magnitude >= *factor).unwrap_or(&units[0]);
    f.pad(&format!("{} {name}", value / factor))
}
