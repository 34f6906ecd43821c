// SPDX-License-Identifier: MIT OR Apache-2.0
//! The group-sequential rule: how many seeds a check takes.
//!
//! The check is judged after 3, 5, 8, 12, 20 and 40 seeds. At each of these looks its interval is wider than that of 95 %, so that the
//! probability that any of them misses the mean is 5 % or less, unless values are skewed by more than 1. A check that is decided takes no more
//! seeds, and neither does one that the last look hardly decides: it stays undecided (stopping for futility by predictive power, as
//! Spiegelhalter, Freedman and Blackburn, 1986, "Monitoring clinical trials: conditional or predictive power?", Controlled Clinical Trials
//! 7, 8-17).
//!
//! All looks have the same level (Pocock, 1977, "Group sequential methods in the design and analysis of clinical trials", Biometrika
//! 64, 191-199). Levels that grow from look to look (O'Brien and Fleming, 1979, "A multiple testing procedure for clinical trials",
//! Biometrics 35, 549-556) decide nothing before the third look.

use super::check::{Check, Judgement};
use paceline_netsim::records::{Summary, t_quantile, t_quantile_at};

/// Numbers of seeds after which a check is judged.
const LOOKS: [u64; 6] = [3, 5, 8, 12, 20, 40];

/// The level of each look, by the number of looks. With several looks, 5 % is the error for values with a skewness of 1, for which
/// intervals by Student's t are too narrow. A single look has the usual interval.
const LEVELS: [f64; 6] = [0.05, 0.0185, 0.012, 0.009, 0.0072, 0.006];

/// A check takes no more seeds if the last look decides it with less than this probability, in the direction of its mean.
const FUTILE: f64 = 0.2;
/// The least change of the mean that counts as possible, in its standard deviations: for many seeds the probability is 0.16.
const CHANGE_MIN: f64 = 1.0;

/// The looks of a check at its runs. The seeds are those from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    most: u64,
}

impl Looks {
    /// The highest number of seeds.
    pub const MOST: u64 = LOOKS[LOOKS.len() - 1];

    /// Returns the looks at no more than this number of seeds, which is from 1 to [`Self::MOST`].
    pub fn up_to(most: u64) -> Self {
        Self { most: most.clamp(1, Self::MOST) }
    }

    /// Returns the number of seeds of the first look after this number of seeds; `None` after the last look.
    pub fn after(self, seeds: u64) -> Option<u64> {
        self.all().find(|look| *look > seeds)
    }

    /// Returns a mean with the interval of a look.
    pub fn interval(self, of: Summary) -> Summary {
        match of.ci95.is_finite() {
            true => Summary { ci95: self.quantile(of.n - 1) * of.std / (of.n as f64).sqrt(), ..of },
            false => of,
        }
    }

    /// Returns the judgement of a mean with the [interval](Self::interval) of a look. For a pair of controllers the values are the
    /// differences on each seed, and the check is [`Check::Ordering`]: it holds above 0 and fails below.
    pub fn judge(self, check: &Check, measured: Option<&Summary>) -> Judgement {
        check.judge_with(measured, &|df| self.quantile(df))
    }

    /// Returns whether more seeds are futile for a check that is undecided. The mean of the last look differs from this one by
    /// `std sqrt(1/n - 1/most)` times Student's t.
    pub fn is_futile(self, check: &Check, of: &Summary) -> bool {
        let (n, most) = (of.n as f64, self.most as f64);
        let width = self.quantile((self.most as usize).saturating_sub(1).max(1)) * of.std / most.sqrt();
        let change = of.std * (1.0 / n - 1.0 / most).max(0.0).sqrt();
        let possible = t_quantile_at(2.0 * FUTILE, of.n.saturating_sub(1)).max(CHANGE_MIN) * change;
        of.n > 1 && width - check.deciding_half_width(of.mean) > possible
    }

    fn all(self) -> impl Iterator<Item = u64> {
        LOOKS.into_iter().filter(move |look| *look < self.most).chain([self.most])
    }

    /// Returns the quantile of Student's t at each look.
    fn quantile(self, df: usize) -> f64 {
        match self.all().count() {
            1 => t_quantile(1, df),
            looks => t_quantile_at(LEVELS[looks - 1], df),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict::{Fails, Holds, Undecided};
    use paceline_units::{RandomStream, RandomStreams};

    const TRIALS: usize = 20_000;

    /// Applies the rule to random values whose check is that they are at most `limit`. Returns the shares of trials that hold and that fail,
    /// and the mean number of seeds.
    fn simulate(looks: Looks, limit: f64, value: impl Fn(&mut RandomStream) -> f64) -> [f64; 3] {
        simulate_with(true, looks, limit, value)
    }

    /// The same, also without stopping for futility.
    fn simulate_with(stops: bool, looks: Looks, limit: f64, value: impl Fn(&mut RandomStream) -> f64) -> [f64; 3] {
        let mut random = RandomStreams::new(1).stream("sequential");
        let check = Check::Bound { low: f64::NEG_INFINITY, high: limit, most: f64::INFINITY };
        let quantiles: Vec<(u64, f64)> = looks.all().map(|n| (n, looks.quantile(n as usize - 1))).collect();
        let (mut holds, mut fails, mut seeds) = (0, 0, 0);
        for _ in 0..TRIALS {
            let mut values: Vec<f64> = Vec::new();
            for (n, quantile) in &quantiles {
                values.resize_with(*n as usize, || value(&mut random));
                let of = Summary::from_values(&values).unwrap();
                let of = Summary { ci95: quantile * of.std / (*n as f64).sqrt(), ..of };
                // The number of further runs is not needed here.
                let verdict = check.judge_with(Some(&of), &|_| f64::INFINITY).verdict;
                (holds, fails) = (holds + usize::from(verdict == Holds), fails + usize::from(verdict == Fails));
                if verdict != Undecided || stops && looks.is_futile(&check, &of) {
                    break;
                }
            }
            seeds += values.len();
        }
        [holds, fails, seeds].map(|count| count as f64 / TRIALS as f64)
    }

    #[track_caller]
    fn within(value: f64, low: f64, high: f64) {
        assert!((low..=high).contains(&value), "{value} is not from {low} to {high}");
    }

    /// Returns the sum of four exponential values, scaled to mean 0 and standard deviation 1: skewness 1.
    fn skewed(random: &mut RandomStream) -> f64 {
        let product: f64 = (0..4).map(|_| 1.0 - random.unit()).product();
        (-libm::log(product) - 4.0) / 2.0
    }

    /// A value on the limit is decided wrongly whichever way it is decided. The standard error of a share of 5 % is 0.15 %.
    #[test]
    fn the_error_is_at_most_five_percent() {
        for most in &LOOKS[1..] {
            let [holds, fails, _] = simulate_with(false, Looks::up_to(*most), 0.0, skewed);
            within(holds + fails, 0.0455, 0.0545);
            // Futile checks are not decided.
            let [holds, fails, _] = simulate(Looks::up_to(*most), 0.0, skewed);
            within(holds + fails, 0.038, 0.0545);
        }
        for (most, low, high) in [(3, 0.0455, 0.0545), (40, 0.0245, 0.0335)] {
            let [holds, fails, _] = simulate_with(false, Looks::up_to(most), 0.0, RandomStream::normal);
            within(holds + fails, low, high);
            within(holds - fails, -0.004, 0.004);
        }
    }

    /// The limit is at half of the standard deviation above the mean, at one, two and four.
    #[test]
    fn few_seeds_decide_far_from_the_limit() {
        let [near, one, two, far] =
            [0.5, 1.0, 2.0, 4.0].map(|limit| simulate(Looks::up_to(40), limit, RandomStream::normal));
        within(near[0], 0.52, 0.59);
        within(near[1], 0.0002, 0.003);
        within(near[2], 24.0, 25.1);
        for ([holds, fails, seeds], low, high) in [(one, 14.8, 15.8), (two, 6.6, 7.1), (far, 4.4, 4.7)] {
            within(holds, 0.98, 1.0);
            within(fails, 0.0, 0.001);
            within(seeds, low, high);
        }
    }

    /// Seeds and decisions with futile seeds and without: the limit is at the mean, at half of the standard deviation above it, and at one.
    #[test]
    fn futile_seeds_are_not_taken() {
        for (most, limit, seeds, all_seeds, holds, all_hold) in [
            (10, 0.0, 4.33, 9.87, 0.013, 0.015),
            (10, 1.0, 6.62, 8.80, 0.491, 0.531),
            (40, 0.0, 15.8, 39.2, 0.014, 0.013),
            (40, 0.5, 24.5, 32.9, 0.552, 0.640),
            (40, 1.0, 15.2, 15.6, 0.986, 0.999),
        ] {
            for (stops, seeds, holds) in [(true, seeds, holds), (false, all_seeds, all_hold)] {
                let of = simulate_with(stops, Looks::up_to(most), limit, RandomStream::normal);
                within(of[2], seeds * 0.98, seeds * 1.02);
                within(of[0], holds - 0.015, holds + 0.015);
            }
        }
    }

    #[test]
    fn looks_end_at_the_highest_number_of_seeds() {
        let all = |most| Looks::up_to(most).all().collect::<Vec<_>>();
        assert_eq!([all(2), all(3), all(10)], [vec![2], vec![3], vec![3, 5, 8, 10]]);
        assert_eq!((all(40), all(100)), (LOOKS.to_vec(), LOOKS.to_vec()));
        let after = |seeds| Looks::up_to(10).after(seeds);
        assert_eq!([0, 3, 4, 8, 10].map(after), [Some(3), Some(5), Some(5), Some(10), None]);
    }

    /// Values 1, 2, 3: mean 2, standard deviation 1. The look has the level 0.6 %, for which t(2) is 12.85 and the half-width
    /// 12.85 / sqrt 3 = 7.42. With this deviation that of four values is 6.99 / 2 = 3.50, of five 5.32 / sqrt 5 = 2.38, and of six
    /// 4.57 / sqrt 6 = 1.87.
    #[test]
    fn the_interval_of_a_look_decides() {
        let looks = Looks::up_to(40);
        let of = |values: &[f64]| looks.interval(Summary::from_values(values).unwrap());
        let three = of(&[1.0, 2.0, 3.0]);
        assert!((three.ci95 - 7.42).abs() < 0.01, "{three:?}");
        let at_most = |high| Check::Bound { low: f64::NEG_INFINITY, high, most: f64::INFINITY };
        let judge = |check: Check, of: &Summary| looks.judge(&check, Some(of));
        assert_eq!(judge(at_most(9.5), &three).verdict, Holds);
        assert_eq!(judge(at_most(9.4), &three), Judgement { verdict: Undecided, further_runs: Some(1) });
        assert_eq!(judge(at_most(4.0), &three), Judgement { verdict: Undecided, further_runs: Some(3) });
        assert_eq!(judge(at_most(-5.5), &three).verdict, Fails);
        // Equal values have no spread; one value has no interval.
        assert_eq!(judge(at_most(2.0), &of(&[2.0; 3])).verdict, Holds);
        assert!(of(&[2.0]).ci95.is_infinite());
        // Differences of a pair of controllers on each seed.
        let differences = [10.0, 11.0, 12.0, 10.0, 11.0];
        assert_eq!(judge(Check::Ordering, &of(&differences)).verdict, Holds);
        assert_eq!(judge(Check::Ordering, &of(&differences.map(|d| -d))).verdict, Fails);
        assert_eq!(judge(Check::Ordering, &of(&differences.map(|d| d - 10.0))).verdict, Undecided);
        assert_eq!(looks.judge(&Check::Ordering, None).verdict, Fails);
    }
}
