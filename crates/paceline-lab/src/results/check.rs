// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks: what is required of a measured value, and the verdict on it. Every command, page and document gives verdicts by
//! [`Check::judge`], in the words of [`Judgement`]'s text.
//!
//! The 95 % interval of the mean decides. If all of it is allowed, the check holds; if none of it is, the check fails; otherwise
//! the runs are too few, and the check is undecided. Where only the least or the highest possible value is allowed, one other value
//! fails it. A value without an interval, such as that of a single run, is judged as it is; published values and differences need an
//! interval.

use paceline_netsim::records::{MetricKind, Summary, t_quantile};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Allowance for the rounding of decimal differences.
const ROUNDING: f64 = 1e-9;

/// The largest number of further runs that a judgement names.
const FURTHER_RUNS_MAX: u64 = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The requirement is met.
    Holds,
    /// The runs are too few to decide.
    #[default]
    Undecided,
    /// It is not met.
    Fails,
}

impl Verdict {
    /// Returns its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
        }
    }

    /// Returns the verdict on several requirements together: that of the worst, where failure is worse than no decision.
    pub fn all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Holds)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The verdict on a check and, where there is none yet, what would decide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The number of additional runs after which the interval would decide if mean and standard deviation stay; `None` if it is
    /// decided, if the mean is on the limit, if one run has no standard deviation, or for more than 10,000 runs.
    #[serde(default)]
    pub further_runs: Option<u64>,
}

impl Judgement {
    fn decided(holds: bool) -> Self {
        Self { verdict: if holds { Verdict::Holds } else { Verdict::Fails }, further_runs: None }
    }
}

/// Writes `holds`, `fails`, or `undecided, 6 more runs`.
impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.further_runs {
            None => write!(f, "{}", self.verdict),
            Some(1) => write!(f, "{}, 1 more run", self.verdict),
            Some(runs) => write!(f, "{}, {runs} more runs", self.verdict),
        }
    }
}

/// A requirement on a mean over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// A value from `low` to `high`.
    Bound {
        /// The lowest allowed value. Intervals may extend below 0 if it is 0.
        low: f64,
        high: f64,
        /// The highest possible value. Intervals may extend above it if it is allowed.
        most: f64,
    },
    /// A value that differs from a published one by at most `tolerance`. An interval up to that half-width does not change the
    /// verdict of its mean; a wider one decides only if all of it is outside.
    Published { value: f64, tolerance: f64 },
    /// A paired difference that matters: its interval excludes 0, and its mean is at least `margin`. It fails if no difference in
    /// the interval exceeds the margin.
    Difference {
        margin: f64,
        /// The number of comparisons for which the interval is corrected; see [`t_quantile`].
        comparisons: usize,
    },
    /// A difference above 0.
    Ordering,
}

impl Check {
    /// Returns the check of a metric's bounds, or of those on a ratio of two values of it.
    pub fn bound(kind: MetricKind, is_ratio: bool, (low, high): (f64, f64)) -> Self {
        use MetricKind::{Jain, Loss, Share, Utilization};
        let is_part = matches!(kind, Utilization | Share | Loss | Jain) && !is_ratio;
        Self::Bound { low, high, most: if is_part { 1.0 } else { f64::INFINITY } }
    }

    /// Returns the check that a difference is at most `margin` in either direction.
    pub fn within(margin: f64) -> Self {
        let edge = with_rounding(margin);
        Self::Bound { low: -edge, high: edge, most: f64::INFINITY }
    }

    /// Returns whether a value without an interval meets the requirement.
    pub fn contains(&self, value: f64) -> bool {
        match *self {
            Self::Bound { low, high, .. } => low <= value && value <= high,
            Self::Published { value: published, tolerance } => (value - published).abs() <= with_rounding(tolerance),
            Self::Difference { margin, .. } => value != 0.0 && value.abs() >= margin,
            Self::Ordering => value > 0.0,
        }
    }

    /// Returns the judgement of a measured value; a value that is missing in some run fails.
    pub fn judge(&self, measured: Option<&Summary>) -> Judgement {
        let comparisons = if let Self::Difference { comparisons, .. } = *self { comparisons } else { 1 };
        self.judge_with(measured, &|df| t_quantile(comparisons, df))
    }

    /// Returns the judgement of a measured value whose interval has these quantiles of Student's t, by degrees of freedom.
    pub(super) fn judge_with(&self, measured: Option<&Summary>, quantile: &dyn Fn(usize) -> f64) -> Judgement {
        let Some(measured) = measured else { return Judgement::decided(false) };
        let (mean, half) = (measured.mean, measured.ci95);
        let holds = self.contains(mean);
        let is_decided = match self {
            Self::Bound { .. } | Self::Ordering if half.is_infinite() => true,
            Self::Bound { .. } if !holds && self.is_extreme() => true,
            Self::Bound { .. } | Self::Published { .. } => half <= self.deciding_half_width(mean),
            Self::Difference { .. } | Self::Ordering if holds => half < mean.abs(),
            Self::Difference { .. } | Self::Ordering => half <= self.deciding_half_width(mean),
        };
        match is_decided {
            true => Judgement::decided(holds),
            false => Judgement { verdict: Verdict::Undecided, further_runs: self.further_runs(measured, quantile) },
        }
    }

    /// Returns whether only the least or the highest possible value is allowed. A mean is there only if every value is, so one other
    /// value decides. No metric with bounds is negative.
    fn is_extreme(&self) -> bool {
        matches!(*self, Self::Bound { low, high, most } if low >= most || low == 0.0 && high == 0.0)
    }

    /// Returns the largest half-width with which the interval of this mean decides.
    pub fn deciding_half_width(&self, mean: f64) -> f64 {
        match *self {
            Self::Bound { low, .. } if mean < low => low - mean,
            Self::Bound { high, .. } if mean > high => mean - high,
            Self::Bound { low, high, most } => {
                let below = if low == 0.0 { f64::INFINITY } else { mean - low };
                let above = if high >= most { f64::INFINITY } else { high - mean };
                below.min(above)
            }
            Self::Published { value, tolerance } => {
                with_rounding(tolerance).max((mean - value).abs() - with_rounding(tolerance))
            }
            Self::Difference { margin, .. } if mean.abs() < margin => margin - mean.abs(),
            Self::Difference { .. } | Self::Ordering => mean.abs(),
        }
    }

    /// Returns how many more runs make the interval as narrow as it must be. Its half-width is the standard deviation times
    /// Student's t over the square root of the number of runs.
    fn further_runs(&self, measured: &Summary, quantile: &dyn Fn(usize) -> f64) -> Option<u64> {
        let width = self.deciding_half_width(measured.mean);
        if measured.n < 2 || width <= ROUNDING * measured.mean.abs() {
            return None;
        }
        let factor = |n: u64| quantile(n as usize - 1) / (n as f64).sqrt();
        let n = measured.n as u64;
        let wanted = factor(n) * width / measured.ci95;
        let (mut few, mut enough) = (n, n + FURTHER_RUNS_MAX);
        if factor(enough) > wanted {
            return None;
        }
        while enough - few > 1 {
            let middle = (few + enough) / 2;
            if factor(middle) > wanted { few = middle } else { enough = middle }
        }
        Some(enough - n)
    }
}

fn with_rounding(tolerance: f64) -> f64 {
    tolerance + ROUNDING * tolerance.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Fails, Holds, Undecided};

    fn summary(mean: f64, ci95: f64) -> Summary {
        Summary { mean, std: 0.0, ci95, n: 10 }
    }

    fn verdict(check: Check, mean: f64, ci95: f64) -> Verdict {
        check.judge(Some(&summary(mean, ci95))).verdict
    }

    #[test]
    fn the_interval_decides_a_bound() {
        let bound = Check::bound(MetricKind::Number, false, (1.0, 1.5));
        for (mean, ci95, expected) in [
            (1.25, 0.25, Holds),
            (1.0, 0.0, Holds),
            (1.5, 0.0, Holds),
            (1.5, 0.24, Undecided),
            (1.25, 0.26, Undecided),
            (1.7, 0.25, Undecided),
            (0.9, 0.2, Undecided),
            (1.7, 0.15, Fails),
            (0.8, 0.1, Fails),
            (1.5001, 0.0, Fails),
            // One run, and the extremes of several runs.
            (1.5, f64::INFINITY, Holds),
            (1.5001, f64::INFINITY, Fails),
        ] {
            assert_eq!(verdict(bound, mean, ci95), expected, "{mean} ± {ci95}");
        }
        assert_eq!(bound.judge(None).verdict, Fails);
    }

    /// An interval around 0.999 extends above 1, which no utilisation exceeds. A ratio of two exceeds it.
    #[test]
    fn intervals_may_extend_beyond_possible_values() {
        let of = |kind, is_ratio, bounds| verdict(Check::bound(kind, is_ratio, bounds), 0.999, 0.01);
        assert_eq!(of(MetricKind::Utilization, false, (0.5, 1.0)), Holds);
        assert_eq!(of(MetricKind::Utilization, true, (0.5, 1.0)), Undecided);
        assert_eq!(of(MetricKind::Utilization, false, (0.995, 1.0)), Undecided);
        assert_eq!(of(MetricKind::Number, false, (0.5, 1.0)), Undecided);
        let loss = Check::bound(MetricKind::Loss, false, (0.0, 0.1));
        assert_eq!([0.09, 0.11].map(|ci95| verdict(loss, 0.0, ci95)), [Holds, Undecided]);
    }

    /// A mean of 1 needs values of 1 if none exceeds it, and a mean of 0 values of 0.
    #[test]
    fn one_value_fails_a_bound_on_the_extreme() {
        let of = |kind, is_ratio, bounds, mean| verdict(Check::bound(kind, is_ratio, bounds), mean, 0.5);
        assert_eq!(of(MetricKind::Share, false, (1.0, 1.0), 0.9), Fails);
        assert_eq!(of(MetricKind::Share, true, (1.0, 1.0), 0.9), Undecided);
        assert_eq!(of(MetricKind::Number, false, (1.0, 1.0), 0.9), Undecided);
        assert_eq!(of(MetricKind::Number, false, (0.0, 0.0), 0.1), Fails);
        assert_eq!(of(MetricKind::Number, false, (0.0, 0.05), 0.1), Undecided);
    }

    #[test]
    fn a_published_value_needs_an_interval_within_the_tolerance() {
        let published = Check::Published { value: 0.84, tolerance: 0.05 };
        for mean in [0.79, 0.84, 0.89] {
            assert_eq!(verdict(published, mean, 0.05), Holds, "{mean}");
            assert_eq!(verdict(published, mean, 0.0501), Undecided, "{mean}: too wide");
        }
        for mean in [0.7899, 0.8901] {
            assert_eq!(verdict(published, mean, 0.05), Fails, "{mean}");
            assert_eq!(verdict(published, mean, 0.0501), Undecided, "{mean}: too wide");
        }
        // All of a wide interval is outside.
        assert_eq!([0.09, 0.11].map(|ci95| verdict(published, 0.99, ci95)), [Fails, Undecided]);
        assert_eq!(verdict(published, 0.84, f64::INFINITY), Undecided);
        assert_eq!(published.judge(None).verdict, Fails);
        // 0.89 - 0.84 is a little more than 0.05 in binary.
        assert!(published.contains(0.89) && !published.contains(0.8901));
    }

    #[test]
    fn a_difference_matters_if_it_is_significant_and_reaches_the_margin() {
        let differs = Check::Difference { margin: 0.1, comparisons: 1 };
        for (mean, ci95, expected) in [
            (0.1, 0.09, Holds),
            (-0.3, 0.29, Holds),
            (-0.3, 0.3, Undecided),
            (0.05, 0.05, Fails),
            (0.05, 0.06, Undecided),
            (0.09, 0.02, Undecided),
            (0.0, 0.0, Fails),
            (0.5, f64::INFINITY, Undecided),
        ] {
            assert_eq!(verdict(differs, mean, ci95), expected, "{mean} ± {ci95}");
        }
        let any = Check::Difference { margin: 0.0, comparisons: 1 };
        assert_eq!([1e-3, 0.0].map(|mean| verdict(any, mean, 0.0)), [Holds, Fails]);
        assert_eq!(verdict(any, 0.0, 0.1), Undecided);
    }

    #[test]
    fn an_order_holds_above_zero() {
        for (mean, ci95, expected) in [
            (0.2, 0.1, Holds),
            (-0.2, 0.1, Fails),
            (0.2, 0.2, Undecided),
            (-0.1, 0.2, Undecided),
            (0.2, f64::INFINITY, Holds),
            (0.0, f64::INFINITY, Fails),
        ] {
            assert_eq!(verdict(Check::Ordering, mean, ci95), expected, "{mean} ± {ci95}");
        }
    }

    /// Values 1 to 5: mean 3, standard deviation 1.5811, half-width 2.776 * 1.5811 / sqrt 5 = 1.963. The half-width of 9 such runs is
    /// 2.306 * 1.5811 / 3 = 1.2154, of 10 runs 2.262 * 1.5811 / sqrt 10 = 1.1310, of 12 runs 2.201 * 1.5811 / sqrt 12 = 1.0046, of 13 runs
    /// 2.179 * 1.5811 / sqrt 13 = 0.9555.
    #[test]
    fn further_runs_follow_students_t() {
        let measured = Summary::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let further = |check: Check| {
            let judgement = check.judge(Some(&measured));
            assert_eq!(judgement.verdict, Undecided);
            judgement.further_runs
        };
        let at_most = |high| Check::bound(MetricKind::Number, false, (f64::NEG_INFINITY, high));
        assert_eq!(further(at_most(4.2)), Some(5));
        assert_eq!(further(at_most(4.22)), Some(4));
        assert_eq!(further(Check::Published { value: 2.5, tolerance: 1.0 }), Some(8));
        // The mean is outside, and the interval extends inside.
        assert_eq!(further(at_most(2.0)), Some(8));
        assert_eq!(further(Check::Difference { margin: 4.0, comparisons: 1 }), Some(8));
        // For 40 comparisons t(4) is 8.122 and the half-width 5.743. Of 10 runs it is 4.622 * 1.5811 / sqrt 10 = 2.311, of 11 runs
        // 4.442 * 1.5811 / sqrt 11 = 2.118.
        let among = Summary { ci95: 8.122 * measured.std / 5_f64.sqrt(), ..measured };
        let judgement = Check::Difference { margin: 5.2, comparisons: 40 }.judge(Some(&among));
        assert_eq!(judgement, Judgement { verdict: Undecided, further_runs: Some(6) });
        // On the limit, or so near to it that too many runs would be needed.
        assert_eq!((further(at_most(3.0)), further(at_most(3.001))), (None, None));
        let one = Summary::from_values(&[1.0]).unwrap();
        let published = Check::Published { value: 1.0, tolerance: 0.1 };
        assert_eq!(published.judge(Some(&one)), Judgement { verdict: Undecided, further_runs: None });
    }

    #[test]
    fn several_requirements_are_as_good_as_the_worst() {
        assert_eq!(Verdict::all([]), Holds);
        assert_eq!(Verdict::all([Holds, Undecided, Holds]), Undecided);
        assert_eq!(Verdict::all([Undecided, Fails, Holds]), Fails);
    }

    #[test]
    fn text_names_the_number_of_further_runs() {
        let text = |verdict, further_runs| Judgement { verdict, further_runs }.to_string();
        assert_eq!(text(Holds, None), "holds");
        assert_eq!(text(Undecided, Some(1)), "undecided, 1 more run");
        assert_eq!(text(Undecided, Some(6)), "undecided, 6 more runs");
    }
}
