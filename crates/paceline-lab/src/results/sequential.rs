//! The group-sequential rule: how many seeds a check takes.
//!
//! The check is judged after 3, 5, 8, 12, 20 and 40 seeds. At each of these looks its interval is wider than 95 %, so that the
//! probability that any of them misses the mean is 5 %. A check that is decided takes no more seeds.
//!
//! All looks have the same level (Pocock, 1977, "Group sequential methods in the design and analysis of clinical trials", Biometrika
//! 64). Levels that grow from look to look (O'Brien and Fleming, 1979) leave less undecided after the last look, but decide
//! nothing before the third one.

use super::check::{Check, Judgement};
use paceline_netsim::records::{Summary, t_quantile, t_quantile_at};

/// Numbers of seeds after which a check is judged.
const LOOKS: [u64; 6] = [3, 5, 8, 12, 20, 40];

/// The level of each look, by the number of looks.
const LEVELS: [f64; 6] = [0.05, 0.0281, 0.02, 0.0158, 0.0128, 0.0106];

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
    use crate::results::Verdict::{self, Fails, Holds, Undecided};
    use paceline_units::{RandomStream, RandomStreams};

    const TRIALS: usize = 20_000;

    /// Applies the rule to random values whose check is that they are at most `limit`. Returns the shares of trials that hold and that fail,
    /// and the mean number of seeds.
    fn simulate(looks: Looks, limit: f64, value: impl Fn(&mut RandomStream) -> f64) -> [f64; 3] {
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
                if verdict != Undecided {
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

    /// A value on the limit is decided wrongly, either way, in 5 % of all trials. The standard error of the share is 0.15 %.
    #[test]
    fn the_error_is_five_percent_for_any_number_of_looks() {
        for most in LOOKS {
            let [holds, fails, _] = simulate(Looks::up_to(most), 0.0, RandomStream::normal);
            within(holds + fails, 0.0455, 0.0545);
            within(holds - fails, -0.005, 0.005);
        }
    }
}
