// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles of a few numbers.

/// Returns a quantile by the nearest rank; 0 if there are no values. Sorts the values.
pub fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((quantile * last as f64 + 0.5) as usize).copied().unwrap_or(0.0)
}

/// Returns the median; 0 if there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&mut values.collect::<Vec<_>>(), 0.5)
}
