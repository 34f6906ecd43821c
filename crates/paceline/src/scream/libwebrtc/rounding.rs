// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arithmetic of libwebrtc's units: whole bytes, microseconds and bit/s. Products with a factor are rounded half away from
//! zero (`rtc_base/units/unit_base.h`), quotients of a size are truncated (`api/units/data_rate.h`).

use paceline_units::{DataSize, Rate, TimeDelta, round_to_i64, round_to_u64};

/// Returns `span` times `factor` in whole microseconds.
pub fn scale_span(span: TimeDelta, factor: f64) -> TimeDelta {
    TimeDelta::from_nanos(round_to_i64((span.as_nanos() / 1000) as f64 * factor).saturating_mul(1000))
}

/// Returns `size` times `factor` in whole bytes; zero if the factor is negative.
pub fn scale_size(size: DataSize, factor: f64) -> DataSize {
    DataSize::from_bytes(round_to_u64(size.as_bytes() as f64 * factor))
}

/// Returns `a / b` of two spans.
pub fn ratio(a: TimeDelta, b: TimeDelta) -> f64 {
    a.as_nanos() as f64 / b.as_nanos() as f64
}

/// Returns `a / b` of two sizes.
pub fn size_ratio(a: DataSize, b: DataSize) -> f64 {
    a.as_bytes() as f64 / b.as_bytes() as f64
}

/// Returns an average in which `sample` has the weight `gain`. Both products are rounded.
pub fn averaged(average: TimeDelta, sample: TimeDelta, gain: f64) -> TimeDelta {
    scale_span(sample, gain) + scale_span(average, 1.0 - gain)
}

/// Returns the time that `size` takes at `rate`, truncated to a microsecond; [`TimeDelta::MAX`] at rate zero.
pub fn time_of(size: DataSize, rate: Rate) -> TimeDelta {
    let microbits = u128::from(size.as_bytes()) * 8_000_000;
    match microbits.checked_div(u128::from(rate.as_bps())) {
        Some(us) => TimeDelta::from_nanos(i64::try_from(us.saturating_mul(1000)).unwrap_or(i64::MAX)),
        None => TimeDelta::MAX,
    }
}
