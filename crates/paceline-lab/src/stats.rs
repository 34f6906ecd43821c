//! Means with their uncertainty, over runs.

use crate::json::{finite_or_null, or_infinite};
use serde::{Deserialize, Serialize};

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// Standard deviation between runs (n - 1); 0 for one run.
    pub std: f64,
    /// Half-width of the 95 % confidence interval of the mean, by Student's t; infinite for one run, written as null.
    #[serde(serialize_with = "finite_or_null", deserialize_with = "or_infinite")]
    pub ci95: f64,
    /// How many runs.
    pub n: usize,
}

impl Summary {
    /// Of these values; `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Self { mean, std: 0.0, ci95: f64::INFINITY, n });
        }
        let std = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64).sqrt();
        Some(Self { mean, std, ci95: student_975(n - 1) * std / (n as f64).sqrt(), n })
    }
}

/// The 97.5 % quantile of Student's t, to three digits; from 1 to 30 degrees of freedom by table, beyond by the
/// expansion in 1/df around the normal quantile.
fn student_975(df: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match df {
        0 => f64::INFINITY,
        1..=30 => TABLE[df - 1],
        _ => 1.960 + 2.372 / df as f64 + 2.822 / (df * df) as f64,
    }
}

/// Jain's fairness index of shares: `(sum x)^2 / (n sum x^2)`; `None` when nobody has anything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_by_hand() {
        // 1..5: mean 3, std sqrt(10/4) = 1.5811, t(4) = 2.776, half-width 2.776 * 1.5811 / sqrt 5 = 1.9629.
        let s = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((s.mean, s.n), (3.0, 5));
        assert!((s.std - 1.5811).abs() < 1e-4 && (s.ci95 - 1.9629).abs() < 1e-3);
        assert!(Summary::of(&[1.0]).unwrap().ci95.is_infinite());
        // t(40) = 2.0211, t(120) = 1.9799
        assert!((student_975(40) - 2.0211).abs() < 5e-4 && (student_975(120) - 1.9799).abs() < 5e-4);
    }

    #[test]
    fn jain_by_hand() {
        assert_eq!(jain(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
        assert!((jain(&[2.0, 1.0]).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
