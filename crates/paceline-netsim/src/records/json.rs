// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serde helpers for infinite numbers, which JSON cannot represent: they are written as null.

use serde::{Deserialize, Deserializer, Serializer};

/// Serializes a number; one that is not finite becomes null.
pub fn finite_or_null<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() { s.serialize_f64(*x) } else { s.serialize_none() }
}

/// Deserializes a number; null becomes infinity.
pub fn or_infinite<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or(f64::INFINITY))
}

/// Deserializes a lower and an upper bound; null is no bound.
pub fn bounds<'de, D: Deserializer<'de>>(d: D) -> Result<(f64, f64), D::Error> {
    Deserialize::deserialize(d).map(unbounded)
}

/// Deserializes optional bounds.
pub fn some_bounds<'de, D: Deserializer<'de>>(d: D) -> Result<Option<(f64, f64)>, D::Error> {
    Ok(Option::deserialize(d)?.map(unbounded))
}

fn unbounded((low, high): (Option<f64>, Option<f64>)) -> (f64, f64) {
    (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))
}
