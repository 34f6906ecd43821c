//! Numbers that JSON has none of: an infinite one is written as null and read back as what it was.

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a number, or null where it is not finite.
pub(crate) fn finite_or_null<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() { s.serialize_f64(*x) } else { s.serialize_none() }
}

/// Reads a number; null is infinite.
pub(crate) fn or_infinite<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
}

/// Reads the lowest and the highest value allowed; null is no bound.
pub(crate) fn bounds<'de, D: Deserializer<'de>>(d: D) -> Result<(f64, f64), D::Error> {
    Deserialize::deserialize(d).map(unbounded)
}

/// Reads bounds that there may be.
pub(crate) fn some_bounds<'de, D: Deserializer<'de>>(d: D) -> Result<Option<(f64, f64)>, D::Error> {
    Ok(Option::deserialize(d)?.map(unbounded))
}

fn unbounded((low, high): (Option<f64>, Option<f64>)) -> (f64, f64) {
    (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))
}
