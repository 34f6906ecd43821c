// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means over runs, with confidence intervals.

use crate::records::json::{finite_or_null, or_infinite};
use serde::{Deserialize, Serialize};

/// The mean of a metric over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub mean: f64,
    /// Sample standard deviation over runs (n - 1); 0 for one run.
    pub std: f64,
    /// Half-width of the 95 % confidence interval of the mean, by Student's t; infinite for one run, written as null.
    #[serde(serialize_with = "finite_or_null", deserialize_with = "or_infinite")]
    pub ci95: f64,
    /// Number of runs.
    pub n: usize,
}

impl Summary {
    /// Returns the summary of `values`; `None` if there are none.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Self { mean, std: 0.0, ci95: f64::INFINITY, n });
        }
        let std = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64).sqrt();
        Some(Self { mean, std, ci95: t_quantile(1, n - 1) * std / (n as f64).sqrt(), n })
    }
}

/// The number that a bound applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean over runs.
    #[default]
    Mean,
    /// The lowest value of any run.
    Lowest,
    /// The highest value of any run.
    Highest,
}

impl Statistic {
    /// Every statistic with its name in scenarios.
    pub const NAMES: [(&'static str, Self); 3] =
        [("mean", Self::Mean), ("lowest", Self::Lowest), ("highest", Self::Highest)];

    /// Returns the statistic of `values`; `None` if there are none. Extremes have no confidence interval.
    pub fn compute(self, values: &[f64]) -> Option<Summary> {
        let extreme = |value: f64| Summary { mean: value, std: 0.0, ci95: f64::INFINITY, n: values.len() };
        match self {
            Self::Mean => Summary::from_values(values),
            Self::Lowest => values.iter().copied().reduce(f64::min).map(extreme),
            Self::Highest => values.iter().copied().reduce(f64::max).map(extreme),
        }
    }

    /// Returns the name of a metric with the statistic over runs, unless it is the mean.
    pub fn qualify(self, metric: &str) -> String {
        match self {
            Self::Mean => metric.to_owned(),
            extreme => format!("{} {metric}", extreme.name()),
        }
    }

    /// Returns the name in scenarios.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, s)| *s == self).expect("all are listed").0
    }
}

/// Differences below this fraction of the values are attributed to rounding.
const ROUNDING: f64 = 1e-12;

/// The difference of a metric between paired runs of the same seeds. What both runs of a seed share cancels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Mean of the differences.
    pub mean: f64,
    /// Sample standard deviation of the differences (n - 1); 0 for one seed and for differences equal up to rounding.
    pub std: f64,
    /// Half-width of the 95 % confidence interval of their mean, by Student's t; infinite for one seed, written as null.
    #[serde(serialize_with = "finite_or_null", deserialize_with = "or_infinite")]
    pub ci95: f64,
    /// Number of seeds.
    pub n: usize,
    /// Effect size for pairs, Cohen's `d_z`: mean over standard deviation of the differences. `None` if the standard
    /// deviation is 0.
    pub effect: Option<f64>,
    /// Whether the interval excludes 0; `None` for one seed.
    pub significant: Option<bool>,
}

impl Paired {
    /// Returns the statistics of second minus first value of each pair; `None` if there are no pairs.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        Self::among(1, pairs)
    }

    /// Returns the same as [`Self::from_pairs`] for one of several comparisons, with the wider interval of [`t_quantile`].
    pub fn among(comparisons: usize, pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(from, to)| to - from).collect();
        let Summary { mut mean, mut std, mut ci95, n } = Summary::from_values(&differences)?;
        if n > 1 {
            ci95 *= t_quantile(comparisons, n - 1) / t_quantile(1, n - 1);
        }
        let largest = pairs.iter().flat_map(|(from, to)| [from.abs(), to.abs()]).fold(0.0, f64::max);
        if n > 1 && std <= ROUNDING * largest {
            (std, ci95) = (0.0, 0.0);
            mean = if mean.abs() <= ROUNDING * largest { 0.0 } else { mean };
        }
        let effect = (std > 0.0).then(|| mean / std);
        Some(Self { mean, std, ci95, n, effect, significant: (n > 1).then_some(mean.abs() > ci95) })
    }
}

/// Returns the two-sided quantile of Student's t for one of `comparisons` intervals which together have 95 % confidence: each has
/// the confidence 1 - 0.05 / `comparisons` (Bonferroni). For one comparison it is exact to three digits: from a table up to 30
/// degrees of freedom, beyond by the expansion in 1/df around the normal quantile.
pub fn t_quantile(comparisons: usize, df: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match (comparisons, df) {
        (_, 0) => f64::INFINITY,
        (0 | 1, 1..=30) => TABLE[df - 1],
        (0 | 1, _) => 1.960 + 2.372 / df as f64 + 2.822 / (df * df) as f64,
        _ => t_quantile_at(0.05 / comparisons as f64, df),
    }
}

/// Returns the two-sided quantile of Student's t for an interval with the confidence 1 - `level`; infinite for no degrees of freedom.
/// Beyond 100 degrees of freedom it is the expansion in 1/df around the normal quantile.
pub fn t_quantile_at(level: f64, df: usize) -> f64 {
    let quantile = |probability: &dyn Fn(f64) -> f64| {
        let inside = |t: f64| probability(t) < 1.0 - level;
        let mut high = 2.0;
        while inside(high) {
            high *= 2.0;
        }
        let mut low = if high > 2.0 { high / 2.0 } else { 0.0 };
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if inside(middle) { low = middle } else { high = middle }
        }
        high
    };
    match df {
        0 => f64::INFINITY,
        1..=100 => quantile(&|t| t_probability(t, df)),
        _ => {
            let (z, n) = (quantile(&|z| 1.0 - libm::erfc(z / core::f64::consts::SQRT_2)), df as f64);
            z + z * (z * z + 1.0) / (4.0 * n) + z * (5.0 * z * z * z * z + 16.0 * z * z + 3.0) / (96.0 * n * n)
        }
    }
}

/// Returns the probability that the magnitude of Student's t is at most `t`, by the finite series of Abramowitz and Stegun (1964),
/// "Handbook of Mathematical Functions", equations 26.7.3 and 26.7.4.
fn t_probability(t: f64, df: usize) -> f64 {
    let n = df as f64;
    let (cos2, sin) = (n / (n + t * t), t / (n + t * t).sqrt());
    let is_odd = df % 2 == 1;
    let (mut sum, mut term) = (0.0, if is_odd { cos2.sqrt() } else { 1.0 });
    for k in (if is_odd { 1 } else { 0 }..df - 1).step_by(2) {
        sum += term;
        term *= cos2 * (k + 1) as f64 / (k + 2) as f64;
    }
    match is_odd {
        true => core::f64::consts::FRAC_2_PI * (libm::atan(t / n.sqrt()) + sin * sum),
        false => sin * sum,
    }
}

/// Returns Jain's fairness index of `shares`: `(sum x)^2 / (n sum x^2)`; `None` if all shares are 0.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Quantile of the normal distribution for an interval of 95 %.
pub const Z_95: f64 = 1.959_964;

/// Returns the 95 % interval of a ratio of which `hits` of `n` were observed. It presumes independent trials; losses in bursts spread
/// wider.
pub fn ratio_interval(hits: u64, n: u64) -> (f64, f64) {
    score_interval(hits as f64 / n.max(1) as f64, n as f64, Z_95)
}

/// Returns the interval of a ratio `p` that was observed in `n` trials, for the quantile `z` of the normal distribution: the score
/// interval of Wilson (1927), "Probable inference, the law of succession, and statistical inference", J. Am. Stat. Assoc. 22.
pub fn score_interval(p: f64, n: f64, z: f64) -> (f64, f64) {
    if n <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = z * z;
    let centre = p + z2 / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    (((centre - half) / scale).max(0.0), ((centre + half) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_hand_computed_values() {
        // 1..5: mean 3, std sqrt(10/4) = 1.5811, t(4) = 2.776, half-width 2.776 * 1.5811 / sqrt 5 = 1.9629.
        let s = Summary::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((s.mean, s.n), (3.0, 5));
        assert!((s.std - 1.5811).abs() < 1e-4 && (s.ci95 - 1.9629).abs() < 1e-3);
        assert!(Summary::from_values(&[1.0]).unwrap().ci95.is_infinite());
        // t(40) = 2.0211, t(120) = 1.9799
        assert!((t_quantile(1, 40) - 2.0211).abs() < 5e-4 && (t_quantile(1, 120) - 1.9799).abs() < 5e-4);
    }

    #[test]
    fn intervals_widen_with_the_number_of_comparisons() {
        // For 5 and 25 comparisons the two-sided quantiles of 99 % and 99.8 %; for 40 that of 99.875 %.
        for (comparisons, df, expected) in
            [(5, 1, 63.657), (5, 2, 9.925), (5, 9, 3.250), (25, 9, 4.297), (40, 4, 8.122), (5, 120, 2.617)]
        {
            let t = t_quantile(comparisons, df);
            assert!((t - expected).abs() < 1e-3, "{comparisons} {df}: {t}");
        }
        // At 1 %: t(100) = 2.6259, t(101) = 2.6254.
        assert!((t_quantile_at(0.01, 100) - 2.6259).abs() < 1e-4 && (t_quantile_at(0.01, 101) - 2.6254).abs() < 1e-4);
        // The table is that of the series.
        for df in 1..=30 {
            assert!((t_probability(t_quantile(1, df), df) - 0.95).abs() < 1e-4, "{df}");
        }
        let pairs = [(10.0, 11.0), (40.0, 42.0), (5.0, 8.0)];
        let [alone, among] = [1, 5].map(|comparisons| Paired::among(comparisons, &pairs).unwrap());
        // t(2) of 95 % is 4.303 and of 99 % 9.925.
        assert!((alone.ci95 - 4.303 / 3_f64.sqrt()).abs() < 1e-3 && (among.ci95 - 9.925 / 3_f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn extremes_are_the_values_of_single_runs() {
        let of = |s: Statistic| s.compute(&[2.0, 1.0, 4.0]).map(|s| (s.mean, s.n));
        assert_eq!(of(Statistic::Lowest), Some((1.0, 3)));
        assert_eq!(of(Statistic::Highest), Some((4.0, 3)));
        assert_eq!(Statistic::Mean.compute(&[2.0, 4.0]).unwrap().mean, 3.0);
        assert!(Statistic::NAMES.iter().all(|(name, s)| s.name() == *name && s.compute(&[]).is_none()));
    }

    #[test]
    fn paired_differences_match_hand_computed_values() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-3;
        // Differences 1, 2, 3: mean 2, std 1, t(2) = 4.303, half-width 4.303 / sqrt 3 = 2.484, d_z = 2.
        let three = Paired::from_pairs(&[(10.0, 11.0), (40.0, 42.0), (5.0, 8.0)]).unwrap();
        assert_eq!((three.mean, three.std, three.effect, three.significant), (2.0, 1.0, Some(2.0), Some(false)));
        assert!(close(three.ci95, 2.484), "{three:?}");
        // Differences -1, -2, -3, -2: mean -2, std sqrt(2/3), t(3) = 3.182, half-width 1.299, d_z = -2.449.
        let four = Paired::from_pairs(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (9.0, 7.0)]).unwrap();
        assert!(close(four.ci95, 1.299) && close(four.effect.unwrap(), -2.449), "{four:?}");
        assert_eq!((four.mean, four.significant), (-2.0, Some(true)));
        // Unpaired, the interval of the same values is far wider than the differences.
        assert!(Summary::from_values(&[10.0, 40.0, 5.0]).unwrap().ci95 > 40.0);
    }

    #[test]
    fn equal_differences_have_no_effect_size() {
        // One seed has no interval and no effect size.
        let one = Paired::from_pairs(&[(1.0, 3.0)]).unwrap();
        assert_eq!((one.mean, one.ci95, one.effect, one.significant), (2.0, f64::INFINITY, None, None));
        // Every seed differs by the same amount. 0.3 - 0.2 is not 0.1 in binary.
        let same = Paired::from_pairs(&[(0.2, 0.3), (0.0, 0.1), (0.7, 0.8)]).unwrap();
        assert!((same.mean - 0.1).abs() < 1e-12);
        assert_eq!((same.std, same.ci95, same.effect, same.significant), (0.0, 0.0, None, Some(true)));
        // No seed differs.
        let none = Paired::from_pairs(&[(0.2, 0.2), (0.7, 0.7)]).unwrap();
        assert_eq!((none.mean, none.std, none.effect, none.significant), (0.0, 0.0, None, Some(false)));
        assert_eq!(Paired::from_pairs(&[]), None);
        let text = serde_json::to_value(one).unwrap();
        assert!(text["ci95"].is_null() && text["effect"].is_null() && text["significant"].is_null(), "{text}");
        assert_eq!(serde_json::from_value::<Paired>(text).unwrap(), one);
    }

    #[test]
    fn jain_matches_hand_computed_values() {
        assert_eq!(jain(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
        assert!((jain(&[2.0, 1.0]).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_interval_of_a_ratio_is_that_of_wilson() {
        // Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion", formula (4), by hand for 10 of 100.
        let (low, high) = ratio_interval(10, 100);
        assert!((low - 0.055_23).abs() < 1e-4 && (high - 0.174_37).abs() < 1e-4, "{low} {high}");
        let (low, high) = ratio_interval(0, 1000);
        // z^2 / (n + z^2)
        assert!(low < 1e-12 && (high - 0.003_827).abs() < 1e-6, "{low} {high}");
        assert_eq!(ratio_interval(0, 0), (0.0, 1.0));
        assert!((ratio_interval(5, 5).1 - 1.0).abs() < 1e-12);
    }
}
