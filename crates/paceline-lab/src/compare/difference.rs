// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of paired runs, with the judgement of a check.

use crate::results::{Check, ComparedDifference};
use paceline_netsim::records::{Better, Paired, Summary};

/// Returns the difference of paired values, second minus first, with the interval and the judgement of a [`Check::Difference`]; `None`
/// if there are no pairs.
///
/// # Panics
/// The check is another one.
pub fn difference(pairs: &[(f64, f64)], better: Better, check: Check) -> Option<ComparedDifference> {
    let Check::Difference { margin, comparisons } = check else { panic!("{check:?} is no check of a difference") };
    let Paired { mean, std, ci95, n, .. } = Paired::among(comparisons, pairs)?;
    let judgement = check.judge(Some(&Summary { mean, std, ci95, n }));
    Some(ComparedDifference { mean, interval: ci95, margin, better: better.judge(mean), judgement })
}

/// Returns the difference of the second scores to the first, run by run.
pub(super) fn paired(first: &[f64], second: &[f64], margin: f64, comparisons: usize) -> Option<ComparedDifference> {
    let pairs: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
    difference(&pairs, Better::Higher, Check::Difference { margin, comparisons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict::{Fails, Holds, Undecided};

    #[test]
    fn significance_depends_on_all_comparisons_of_the_table() {
        // Differences 1 to 5: mean 3, standard deviation 1.581, so 2.776 * 1.581 / sqrt 5 = 1.963. For 40 comparisons
        // t(4) of 99.875 % is 8.122 and the interval 5.743.
        let pairs: Vec<(f64, f64)> = (1..=5).map(|n| (10.0, 10.0 + f64::from(n))).collect();
        let of = |pairs: &[(f64, f64)], better, comparisons| {
            difference(pairs, better, Check::Difference { margin: 0.0, comparisons })
        };
        let found = |pairs: &[(f64, f64)], better, comparisons| {
            let found = of(pairs, better, comparisons).unwrap();
            (found.judgement.verdict, found.better, found.to_string())
        };
        let alone = of(&pairs, Better::Higher, 1).unwrap();
        assert!((alone.mean, alone.judgement.verdict) == (3.0, Holds) && (alone.interval - 1.963).abs() < 2e-3);
        let among = of(&pairs, Better::Higher, 40).unwrap();
        assert!(among.judgement.verdict == Undecided && (among.interval - 5.743).abs() < 2e-3, "{among:?}");
        assert_eq!(found(&pairs, Better::Lower, 1), (Holds, Some(false), "worse".to_owned()));
        assert_eq!(found(&pairs, Better::Neither, 1), (Holds, None, "different".to_owned()));
        assert_eq!(found(&pairs[..1], Better::Lower, 1), (Undecided, Some(false), "undecided".to_owned()));
        assert_eq!(found(&[(0.5, 0.5); 3], Better::Lower, 1), (Fails, None, "equal".to_owned()));
        // The same difference in each run is certain.
        assert_eq!(found(&[(0.1, 0.3); 3], Better::Lower, 99).0, Holds);
        assert_eq!(of(&[], Better::Lower, 1), None);
    }
}
