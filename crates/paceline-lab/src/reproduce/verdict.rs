//! Verdicts: what a measured value says of a published one, or of a bound.

use super::tolerance::within;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};

/// What became of a published value or a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Of a published value: the measured mean lies within the tolerance of it, and the half-width of the 95 % interval
    /// within the tolerance. Of a bound: the mean keeps it.
    Reproduced,
    /// It is not, but the claim that the value supports holds.
    Direction,
    /// Neither.
    Not,
    /// No run of it was made yet, in a world in real time.
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// As results call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Direction => "direction",
            Self::Not => "not",
            Self::NotRun => "not run",
        }
    }
}

/// Whether a published value is reproduced by these runs.
fn reproduces(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    comes_close(published, tolerance, measured) && measured.is_some_and(|m| within(m.ci95, tolerance))
}

/// Whether the mean of these runs lies within the tolerance, however wide its interval: enough for the null sender to
/// spoil a value.
pub fn comes_close(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| within((m.mean - published).abs(), tolerance))
}

/// Whether the interval is too wide for a verdict, so that more runs may help.
pub fn too_wide(tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| !within(m.ci95, tolerance))
}

/// The verdict on a published value; `claim`: whether the claim that it supports holds.
pub fn of_value(published: f64, tolerance: f64, measured: Option<&Summary>, claim: bool) -> Verdict {
    match (reproduces(published, tolerance, measured), claim) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::Direction,
        (false, false) => Verdict::Not,
    }
}

/// Whether these runs keep the bounds.
pub fn keeps(bounds: (f64, f64), measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| bounds.0 <= m.mean && m.mean <= bounds.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(mean: f64, ci95: f64) -> Summary {
        Summary { mean, std: 0.0, ci95, n: 10 }
    }

    #[test]
    fn a_value_is_reproduced_within_its_tolerance_and_an_interval_no_wider() {
        let verdict = |mean, ci95, claim| of_value(0.84, 0.05, Some(&summary(mean, ci95)), claim);
        for mean in [0.79, 0.84, 0.89] {
            assert_eq!(verdict(mean, 0.05, false), Verdict::Reproduced, "{mean}");
            assert_eq!(verdict(mean, 0.0501, false), Verdict::Not, "{mean}: too wide");
            assert_eq!(verdict(mean, 0.0501, true), Verdict::Direction, "{mean}: too wide, but the claim holds");
        }
        for mean in [0.7899, 0.8901] {
            assert_eq!(verdict(mean, 0.0, false), Verdict::Not, "{mean}");
            assert_eq!(verdict(mean, 0.0, true), Verdict::Direction, "{mean}");
        }
        // The null sender needs no interval.
        assert!(comes_close(0.84, 0.05, Some(&summary(0.89, f64::INFINITY))));
        assert!(!comes_close(0.84, 0.05, Some(&summary(0.8901, 0.0))) && !comes_close(0.84, 0.05, None));
        // One run has no interval; no value is no reproduction.
        assert_eq!(verdict(0.84, f64::INFINITY, false), Verdict::Not);
        assert_eq!(of_value(0.84, 0.05, None, false), Verdict::Not);
        assert_eq!(of_value(0.84, 0.05, None, true), Verdict::Direction);
    }

    #[test]
    fn only_a_wide_interval_asks_for_more_runs() {
        assert!(too_wide(0.05, Some(&summary(0.84, 0.06))) && too_wide(0.05, Some(&summary(0.84, f64::INFINITY))));
        assert!(!too_wide(0.05, Some(&summary(0.1, 0.05))) && !too_wide(0.05, None));
    }

    #[test]
    fn bounds_include_their_ends() {
        let keeps = |mean| keeps((0.2, 0.8), Some(&summary(mean, f64::INFINITY)));
        assert!(keeps(0.2) && keeps(0.8) && !keeps(0.1999) && !keeps(0.8001) && !super::keeps((0.0, 1.0), None));
    }
}
