//! Verdicts on published values and bounds.

use super::tolerance::within;
use paceline_netsim::records::Summary;
use paceline_results::Verdict;

/// Returns whether these runs reproduce a published value.
fn is_reproduced(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    mean_is_within_tolerance(published, tolerance, measured) && measured.is_some_and(|m| within(m.ci95, tolerance))
}

/// Returns whether the mean is within the tolerance, with an interval of any width. If the null sender's mean is, the value is
/// no evidence.
pub fn mean_is_within_tolerance(published: f64, tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| within((m.mean - published).abs(), tolerance))
}

/// Returns whether the interval is too wide for a verdict, so that more runs may help.
pub fn interval_is_too_wide(tolerance: f64, measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| !within(m.ci95, tolerance))
}

/// Returns the verdict on a published value; `claim`: whether the claim that it supports passes.
pub fn verdict_on_value(published: f64, tolerance: f64, measured: Option<&Summary>, claim: bool) -> Verdict {
    match (is_reproduced(published, tolerance, measured), claim) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::Direction,
        (false, false) => Verdict::Not,
    }
}

/// Returns whether the mean is within the bounds.
pub fn mean_is_within_bounds(bounds: (f64, f64), measured: Option<&Summary>) -> bool {
    measured.is_some_and(|m| bounds.0 <= m.mean && m.mean <= bounds.1)
}

/// Returns whether the mean is within the bounds with its whole interval. A single run has none.
pub fn interval_is_within_bounds(bounds: (f64, f64), measured: Option<&Summary>) -> bool {
    mean_is_within_bounds(bounds, measured) && !interval_crosses_bounds(bounds, measured)
}

/// Returns whether the mean is within the bounds and a part of its interval is not, so that more runs may help.
pub fn interval_crosses_bounds(bounds: (f64, f64), measured: Option<&Summary>) -> bool {
    let outside = |m: &Summary| m.mean - m.ci95 < bounds.0 || bounds.1 < m.mean + m.ci95;
    mean_is_within_bounds(bounds, measured) && measured.is_some_and(|m| m.ci95.is_finite() && outside(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(mean: f64, ci95: f64) -> Summary {
        Summary { mean, std: 0.0, ci95, n: 10 }
    }

    #[test]
    fn mean_and_interval_must_be_within_the_tolerance() {
        let verdict = |mean, ci95, claim| verdict_on_value(0.84, 0.05, Some(&summary(mean, ci95)), claim);
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
        assert!(mean_is_within_tolerance(0.84, 0.05, Some(&summary(0.89, f64::INFINITY))));
        assert!(
            !mean_is_within_tolerance(0.84, 0.05, Some(&summary(0.8901, 0.0)))
                && !mean_is_within_tolerance(0.84, 0.05, None)
        );
        // One run has no interval; no value is no reproduction.
        assert_eq!(verdict(0.84, f64::INFINITY, false), Verdict::Not);
        assert_eq!(verdict_on_value(0.84, 0.05, None, false), Verdict::Not);
        assert_eq!(verdict_on_value(0.84, 0.05, None, true), Verdict::Direction);
    }

    #[test]
    fn only_a_wide_interval_needs_more_runs() {
        assert!(
            interval_is_too_wide(0.05, Some(&summary(0.84, 0.06)))
                && interval_is_too_wide(0.05, Some(&summary(0.84, f64::INFINITY)))
        );
        assert!(!interval_is_too_wide(0.05, Some(&summary(0.1, 0.05))) && !interval_is_too_wide(0.05, None));
    }

    #[test]
    fn bounds_include_their_ends() {
        let within = |mean| mean_is_within_bounds((0.2, 0.8), Some(&summary(mean, f64::INFINITY)));
        assert!(within(0.2) && within(0.8) && !within(0.1999) && !within(0.8001));
        assert!(!mean_is_within_bounds((0.0, 1.0), None));
    }

    /// 1.50 ± 0.24 does not hold a bound of 1.50.
    #[test]
    fn bounds_hold_with_the_interval() {
        let holds = |mean, ci95| interval_is_within_bounds((1.0, 1.5), Some(&summary(mean, ci95)));
        let crosses = |mean, ci95| interval_crosses_bounds((1.0, 1.5), Some(&summary(mean, ci95)));
        assert!(!holds(1.5, 0.24) && crosses(1.5, 0.24));
        assert!(!holds(1.1, 0.11) && crosses(1.1, 0.11));
        assert!(holds(1.2, 0.2) && !crosses(1.2, 0.2));
        assert!(holds(1.5, 0.0) && holds(1.2, f64::INFINITY), "one run has no interval");
        assert!(!holds(1.6, 0.01) && !crosses(1.6, 0.2), "the mean is outside");
    }
}
