// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ranking of a comparison: controllers in order of their mean score.

use super::difference::paired;
use super::scores::Scored;
use crate::results::{ComparedDifference, RankedController, RowKind, Verdict};
use paceline_netsim::records::Summary;

/// Returns the ranking: the best first, then what is only shown as scale. It brings `scored` into the same order.
pub(super) fn ranking(scored: &mut [Scored]) -> Vec<RankedController> {
    let mean = |of: &Scored| mean(&of.scores);
    scored.sort_by(|a, b| is_scale(a).cmp(&is_scale(b)).then(mean(b).total_cmp(&mean(a))));
    let places = scored.iter().filter(|of| !is_scale(of)).count();
    let entry = |(index, of): (usize, &Scored)| {
        let comparisons = places.saturating_sub(1).max(1);
        // An oracle alone has nothing to be compared with.
        let is_compared = index > 0 && places > 0;
        let difference = is_compared.then(|| paired(&scored[0].scores, &of.scores, 0.0, comparisons)).flatten();
        let place = (index < places).then_some(index + 1);
        let is_worse = |difference: &ComparedDifference| difference.judgement.verdict == Verdict::Holds;
        Some(RankedController {
            place,
            controller: of.name.clone(),
            kind: of.kind,
            score: Summary::from_values(&of.scores)?,
            lost_to_rate: self::mean(&of.lost[0]),
            lost_to_delay: self::mean(&of.lost[1]),
            lost_to_freezes: self::mean(&of.lost[2]),
            tied: place.is_some() && !difference.as_ref().is_some_and(is_worse),
            difference,
            others_keep: of.others.as_deref().map(self::mean),
        })
    };
    scored.iter().enumerate().filter_map(entry).collect()
}

fn is_scale(of: &Scored) -> bool {
    matches!(of.kind, RowKind::Oracle | RowKind::Faulty)
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, kind: RowKind, scores: [f64; 3]) -> Scored {
        let lost = [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 9.0], vec![7.0; 3]];
        Scored { name: name.to_owned(), kind, scores: scores.to_vec(), lost, others: Some(vec![0.2, 0.4, 0.9]) }
    }

    /// Differences to `b`: of `a` 1, -2, -2, mean -1, standard deviation sqrt 3; of `c` -20, -22, -24, mean -22, standard deviation 2.
    /// For two comparisons t(2) of 97.5 % is 6.205, so the half-widths are 6.205 and 6.205 * 2 / sqrt 3 = 7.165.
    #[test]
    fn ranks_by_the_mean_score_with_paired_intervals() {
        let controller = RowKind::Controller;
        let mut scored = vec![
            of("causal", RowKind::Oracle, [80.0, 82.0, 84.0]),
            of("a", controller, [71.0, 70.0, 72.0]),
            of("faulty-x", RowKind::Faulty, [90.0; 3]),
            of("c", RowKind::OtherImplementation, [50.0; 3]),
            of("b", controller, [70.0, 72.0, 74.0]),
        ];
        let ranking = ranking(&mut scored);
        let order: Vec<_> = ranking.iter().map(|e| (e.controller.as_str(), e.place, e.score.mean, e.tied)).collect();
        let expected = [
            ("b", Some(1), 72.0, true),
            ("a", Some(2), 71.0, true),
            ("c", Some(3), 50.0, false),
            ("faulty-x", None, 90.0, false),
            ("causal", None, 82.0, false),
        ];
        assert_eq!(order, expected);
        assert!(scored.iter().map(|of| &of.name).eq(ranking.iter().map(|entry| &entry.controller)));
        let first = &ranking[0];
        assert_eq!((first.lost_to_rate, first.lost_to_delay, first.lost_to_freezes), (2.0, 6.0, 7.0));
        assert!(first.difference.is_none() && (first.others_keep.unwrap() - 0.5).abs() < 1e-12);
        let found: Vec<_> = ranking[1..].iter().map(|entry| entry.difference.unwrap()).collect();
        assert_eq!(found.iter().map(|d| d.mean).collect::<Vec<_>>(), [-1.0, -22.0, 18.0, 10.0]);
        for (found, half) in found.iter().zip([6.205, 7.165]) {
            assert!((found.interval - half).abs() < 2e-3, "{found:?}");
        }
        let verdicts: Vec<_> = found.iter().map(|difference| difference.judgement.verdict).collect();
        assert_eq!(verdicts, [Verdict::Undecided, Verdict::Holds, Verdict::Holds, Verdict::Holds]);
    }

    #[test]
    fn scale_alone_has_no_place_and_no_difference() {
        let ranking = ranking(&mut [of("ideal", RowKind::Oracle, [1.0; 3]), of("causal", RowKind::Oracle, [2.0; 3])]);
        assert!(ranking.iter().all(|entry| entry.place.is_none() && entry.difference.is_none() && !entry.tied));
        assert_eq!(ranking[0].controller, "causal");
    }
}
