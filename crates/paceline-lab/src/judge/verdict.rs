//! Verdicts on published values and bounds.

use super::tolerance::within;
use paceline_records::Summary;
use paceline_results::Verdict;

/// Returns whether these runs reproduce a published value.
fn reproduces(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    comes_close(published, tolerance, measured) && measured.is_some_and(|m| within(m.ci95, tolerance))
}

/// Returns whether the mean is within the tolerance, with an interval of any width. If the null sender's mean is, the value is
/// no evidence.
pub fn comes_close(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| within((m.mean - published).abs(), tolerance))
}

/// Returns whether the interval is too wide for a verdict, so that more runs may help.
pub fn too_wide(tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| !within(m.ci95, tolerance))
}

/// Returns the verdict on a published value; `claim`: whether the claim that it supports passes.
pub fn of_value(published: f64, tolerance: f64, measured: Option<&Summary>, claim: bool) -> Verdict {
    match (reproduces(published, tolerance, measured), claim) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::Direction,
        (false, false) => Verdict::Not,
    }
}

/// Returns whether the mean is within the bounds.
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
    fn mean_and_interval_must_be_within_the_tolerance() {
        let verdict = |mean, ci95, claim| of_value(0.84, 0.05, Some(&summary(mean, ci95)), claim);
        for mean in [0.79, 0.84, 0.89] {
            assert_eq!(verdict(mean, 0.05, false), Verdict::Reproduced, "{mean}");
            assert_eq!(verdict(mean, 0.0501, false), Verdict::Not, "{mean}: too wide");
            assert_eq!(verdict(mean, 0.0501, true), Verdict::Direction, "{mean}: too wide, but the claim passes");
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
    fn only_a_wide_interval_needs_more_runs() {
        assert!(too_wide(0.05, Some(&summary(0.84, 0.06))) && too_wide(0.05, Some(&summary(0.84, f64::INFINITY))));
        assert!(!too_wide(0.05, Some(&summary(0.1, 0.05))) && !too_wide(0.05, None));
    }

    #[test]
    fn bounds_include_their_ends() {
        let keeps = |mean| keeps((0.2, 0.8), Some(&summary(mean, f64::INFINITY)));
        assert!(keeps(0.2) && keeps(0.8) && !keeps(0.1999) && !keeps(0.8001) && !super::keeps((0.0, 1.0), None));
    }
}
