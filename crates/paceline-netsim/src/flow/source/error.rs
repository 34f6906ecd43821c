// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error of an invalid source configuration: the field, its value, and the allowed values.

use core::fmt::Display;

/// The configuration of a source is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {value}, expected {expected}")]
#[non_exhaustive]
pub struct SourceError {
    /// The name of the field in the configuration struct.
    pub field: &'static str,
    /// The field's value, with its unit.
    pub value: String,
    /// The allowed values.
    pub expected: &'static str,
}

/// Returns an error for `field` unless `ok`.
pub(super) fn check(
    ok: bool,
    field: &'static str,
    value: impl Display,
    expected: &'static str,
) -> Result<(), SourceError> {
    if ok { Ok(()) } else { Err(SourceError { field, value: value.to_string(), expected }) }
}

#[cfg(test)]
mod tests {
    use crate::flow::source::VideoConfig;
    use paceline_units::Rate;

    #[test]
    fn error_names_field_value_and_allowed_values() {
        let (bps, kbps) = (Rate::from_bps, Rate::from_kbps);
        let config = |min, max, start| VideoConfig { fps: 30.0, min, max, start };
        let error = config(kbps(150), kbps(1500), kbps(100)).check(1.0).unwrap_err();
        assert_eq!(error.to_string(), "`start` is 100 kbps, expected a rate from `min` to `max`");
        for (min, max, start, field) in [
            (bps(239), kbps(1), kbps(1), "min"), // 1 byte x 30 frames x 8 = 240
            (kbps(2), kbps(1), kbps(1), "max"),
            (kbps(2), Rate::MAX, kbps(2), "max"),
            (kbps(2), kbps(3), kbps(4), "start"),
        ] {
            assert_eq!(config(min, max, start).check(1.0).unwrap_err().field, field);
        }
        let valid = config(bps(240), kbps(1), kbps(1));
        assert_eq!(valid.check(1.0), Ok(()));
        for fps in [0.0, -30.0, f64::NAN, f64::INFINITY, 1001.0] {
            assert_eq!(VideoConfig { fps, ..valid.clone() }.check(1.0).unwrap_err().field, "fps");
        }
    }
}
