//! The error of an invalid source configuration: the field, its value, and the allowed values.

use core::fmt::Display;
use paceline_units::Rate;

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

/// A higher rate is a mistake, such as a wrong unit.
const RATE_MAX: Rate = Rate::from_kbps(1_000_000_000);

/// Returns an error for `field` unless `ok`.
pub(super) fn check(
    ok: bool,
    field: &'static str,
    value: impl Display,
    expected: &'static str,
) -> Result<(), SourceError> {
    if ok { Ok(()) } else { Err(SourceError { field, value: value.to_string(), expected }) }
}

pub(super) fn check_fps(fps: f64) -> Result<(), SourceError> {
    check((0.1..=1000.0).contains(&fps), "fps", fps, "0.1 to 1000 frames per second")
}

/// Checks that `min <= start <= max`, that no rate is above [`RATE_MAX`], and that frames at `min` have at least
/// `smallest_frame` bytes.
pub(super) fn check_range(min: Rate, max: Rate, start: Rate, fps: f64, smallest_frame: f64) -> Result<(), SourceError> {
    check(
        min.as_bps_f64() >= smallest_frame * 8.0 * fps,
        "min",
        min,
        "at least one byte per frame (10 for an encoder)",
    )?;
    check(min <= max && max <= RATE_MAX, "max", max, "at least `min` and at most 1000 Gbps")?;
    check((min..=max).contains(&start), "start", start, "a rate from `min` to `max`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_field_value_and_allowed_values() {
        let kbps = Rate::from_kbps;
        let error = check_range(kbps(150), kbps(1500), kbps(100), 30.0, 1.0).unwrap_err();
        assert_eq!(error.to_string(), "`start` is 100 kbps, expected a rate from `min` to `max`");
        for (min, max, start, field) in [
            (Rate::from_bps(239), kbps(1), kbps(1), "min"), // 1 byte x 30 frames x 8 = 240
            (kbps(2), kbps(1), kbps(1), "max"),
            (kbps(2), Rate::MAX, kbps(2), "max"),
            (kbps(2), kbps(3), kbps(4), "start"),
        ] {
            assert_eq!(check_range(min, max, start, 30.0, 1.0).unwrap_err().field, field);
        }
        assert_eq!(check_range(Rate::from_bps(240), kbps(1), kbps(1), 30.0, 1.0), Ok(()));
        for fps in [0.0, -30.0, f64::NAN, f64::INFINITY, 1001.0] {
            assert_eq!(check_fps(fps).unwrap_err().field, "fps");
        }
    }
}
