// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows from a ranking, in a few sentences: a pick only where one controller is alone in the tie group of the first place.

use super::difference::paired;
use super::ranking::mean;
use super::scores::{CAUSES, Scored, score_text};
use crate::results::{RankedController, RowKind, Verdict};
use crate::yardsticks::Oracle;

/// A best score below this is poor: half of what a fresh picture of the best quality has. A choice.
const POOR: f64 = 50.0;
/// Other flows that keep less than this part of their fair share are named beside a pick. A choice.
const HARM: f64 = 0.5;
/// The smallest difference inside a tie group that is no matter of taste: points lost to one cause, and part of a fair share. Choices.
const TASTE: (f64, f64) = (1.0, 0.05);
/// The number of runs that is suggested if one gives no interval.
const RUNS: usize = 10;

/// Names in a sentence. A choice.
const NAMED: usize = 4;

/// Returns the sentences; `scored` has the runs of each entry of the ranking, which are means over `paths` paths. `gaps` describes the path,
/// where that is part of the reason of a poor call. `option` sets the number of runs.
pub(super) fn sentences(
    ranking: &[RankedController],
    scored: &[Scored],
    paths: usize,
    gaps: Option<String>,
    option: &str,
) -> Vec<String> {
    if ranking.is_empty() {
        return vec!["No controller has a score in each run, so there is no ranking.".to_owned()];
    }
    let ranked: Vec<&RankedController> = ranking.iter().take_while(|entry| entry.place.is_some()).collect();
    let Some(best) = ranked.first() else { return Vec::new() };
    // A place between them may be decided: it varies less.
    let tied: Vec<&RankedController> = ranked.iter().copied().filter(|entry| entry.tied).collect();
    let (is_poor, is_one_run) = (best.score.mean < POOR, best.score.n == 1);
    let (who, score, loses) = (name(best), best.score.mean, loss_beyond([0.0; 3], best));
    let is_first = ranked.get(1).is_none_or(|second| second.score.mean < score);
    let has_pick = tied.len() == 1 || (is_one_run && is_first);
    let mut sentences = vec![match ranked.get(1) {
        None => {
            let has = if is_poor { "is poor, with" } else { "has" };
            format!("{who} {has} {}.", score_text(score, best.score.ci95, lost(best)))
        }
        Some(_) if is_poor => format!("All are poor: the best, {who}, has {score:.1} of 100 and {loses}."),
        Some(second) if has_pick => {
            let is = if is_one_run { "is first in one run" } else { "is best" };
            format!("{who} {is}: {score:.1} of 100; {}.", ahead(best, second))
        }
        Some(_) => {
            let scores: Vec<String> = tied.iter().map(|entry| format!("{:.1}", entry.score.mean)).collect();
            let scores = match scores.as_slice() {
                [first, .., last] if scores.len() > NAMED => format!("{first} to {last}"),
                scores => joined(scores),
            };
            format!("{} are not distinguishable: {scores} of 100.", joined(&names(&tied)))
        }
    }];
    match ranked.get(1) {
        None => {}
        Some(_) if is_one_run => sentences.push(format!("One run gives no interval; `{option} {RUNS}` gives one.")),
        Some(second) if has_pick && is_poor => sentences.push(format!("It is {}.", ahead(best, second))),
        Some(_) if has_pick => {}
        Some(_) => {
            if is_poor {
                sentences.push(format!("It is not distinguishable from {}.", joined(&names(&tied[1..]))));
            }
            let runs = ranking.iter().zip(scored).filter(|(entry, _)| entry.tied).map(|(_, scored)| scored);
            sentences.extend(differences(&runs.collect::<Vec<_>>()));
            sentences.extend(further_runs(&tied[1..], best.score.n, option));
        }
    }
    let causal =
        ranking.iter().find(|entry| entry.kind == RowKind::Oracle && entry.controller == Oracle::Causal.name());
    sentences.extend(gaps.filter(|_| is_poor));
    let allow = if paths == 1 { "The path itself allows" } else { "The paths themselves allow" };
    sentences.extend(causal.map(|oracle| oracle.score.mean).and_then(|allowed| match allowed > score {
        true => Some(format!("{allow} {allowed:.1}.")),
        false => is_poor.then(|| format!("The oracle `causal` has no more: {allowed:.1}.")),
    }));
    let kept = best.others_keep.filter(|kept| has_pick && *kept < HARM);
    let describe = |kept| format!("With {who}, other flows keep {:.0} % of their fair share.", 100.0 * kept);
    sentences.extend(kept.map(describe));
    sentences
}

fn name(entry: &RankedController) -> String {
    format!("`{}`", entry.controller)
}

/// Returns the names of the first ones, and how many more there are.
fn names(entries: &[&RankedController]) -> Vec<String> {
    let shown = if entries.len() > NAMED { NAMED - 1 } else { entries.len() };
    let more = (shown < entries.len()).then(|| format!("{} more", entries.len() - shown));
    entries[..shown].iter().map(|entry| name(entry)).chain(more).collect()
}

/// Returns the points that each cause costs, in the order of [`CAUSES`].
fn lost(entry: &RankedController) -> [f64; 3] {
    [entry.lost_to_rate, entry.lost_to_delay, entry.lost_to_freezes]
}

/// Describes the loss that exceeds the given ones the most.
fn loss_beyond(others: [f64; 3], entry: &RankedController) -> String {
    let causes = CAUSES.iter().zip(lost(entry)).zip(others);
    let most = causes.max_by(|((_, a), other_a), ((_, b), other_b)| (a - other_a).total_cmp(&(b - other_b)));
    let ((cause, _), points) = most.expect("there are causes").0;
    format!("loses {points:.1} to {cause}")
}

/// Describes how far the first place is before the second, and what the second loses.
fn ahead(best: &RankedController, second: &RankedController) -> String {
    let difference = second.difference.expect("it is compared with the first");
    let interval =
        if difference.interval.is_finite() { format!(" ± {:.1}", difference.interval) } else { String::new() };
    let loses = loss_beyond(lost(best), second);
    format!("{:.1}{interval} points before {}, which {loses}", -difference.mean, name(second))
}

/// Describes in what the first and the last of a tie group differ by more than a matter of taste.
fn differences(tied: &[&Scored]) -> Option<String> {
    let pairs = tied.len() * (tied.len() - 1) / 2;
    let comparisons = pairs * (CAUSES.len() + 1);
    let differ = |values: &[&[f64]], margin: f64| {
        let order = |a: &usize, b: &usize| mean(values[*a]).total_cmp(&mean(values[*b]));
        let (least, most) = ((0..tied.len()).min_by(order)?, (0..tied.len()).max_by(order)?);
        let found = paired(values[least], values[most], margin, comparisons)?;
        (found.judgement.verdict == Verdict::Holds).then(|| [least, most].map(|of| (&tied[of].name, mean(values[of]))))
    };
    let mut parts: Vec<String> = CAUSES
        .iter()
        .enumerate()
        .filter_map(|(cause, (label, _))| {
            let lost: Vec<&[f64]> = tied.iter().map(|of| &of.lost[cause][..]).collect();
            let [(a, least), (b, most)] = differ(&lost, TASTE.0)?;
            Some(format!("`{a}` loses {least:.1} to {label}, `{b}` {most:.1}"))
        })
        .collect();
    let kept: Option<Vec<&[f64]>> = tied.iter().map(|of| of.others.as_deref()).collect();
    parts.extend(kept.and_then(|kept| differ(&kept, TASTE.1)).map(|[(a, least), (b, most)]| {
        format!(
            "with `{b}` other flows keep {:.0} % of their fair share, with `{a}` {:.0} %",
            100.0 * most,
            100.0 * least
        )
    }));
    let mut text = parts.join("; ");
    text.get_mut(..1)?.make_ascii_uppercase();
    Some(text + ".")
}

/// The largest number of further runs that is worth a recommendation.
const FURTHER_RUNS_MAX: u64 = 1000;

/// States how many runs would distinguish the tied controllers from the first.
fn further_runs(tied: &[&RankedController], runs: usize, option: &str) -> Option<String> {
    let judgements = || tied.iter().filter_map(|entry| Some(entry.difference?.judgement));
    if judgements().all(|judgement| judgement.verdict == Verdict::Fails) {
        return None;
    }
    let undecided = judgements().filter(|judgement| judgement.verdict == Verdict::Undecided);
    let further: Option<Vec<u64>> = undecided.map(|judgement| judgement.further_runs).collect();
    Some(match further.and_then(|further| further.into_iter().max()).filter(|further| *further <= FURTHER_RUNS_MAX) {
        Some(1) => format!("About 1 more run would decide: `{option} {}`.", runs + 1),
        // The estimate for many pairs is one for the closest of them.
        Some(_) if tied.len() >= NAMED && runs < RUNS => {
            format!("{runs} runs are few for so many: `{option} {RUNS}` separates more of them.")
        }
        Some(further) => format!("About {further} more runs would decide: `{option} {}`.", runs as u64 + further),
        None => "More runs would hardly distinguish them.".to_owned(),
    })
}

/// Joins names by commas and a final `and`.
fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranking::ranking;
    use super::*;

    /// A controller: its scores and its points lost to rate, delay and freezes by seed.
    fn of(name: &str, kind: RowKind, scores: &[f64], lost: [&[f64]; 3]) -> Scored {
        Scored { name: name.to_owned(), kind, scores: scores.to_vec(), lost: lost.map(<[f64]>::to_vec), others: None }
    }

    fn nada() -> Scored {
        of("nada", RowKind::Controller, &[73.0, 72.0, 71.0], [&[20.0; 3], &[4.0, 5.0, 6.0], &[3.0; 3]])
    }

    /// 12, 13 and 14 points behind `nada`.
    fn drc() -> Scored {
        of("drc", RowKind::Controller, &[61.0, 59.0, 57.0], [&[10.0; 3], &[24.9, 26.9, 28.9], &[4.1; 3]])
    }

    fn causal(score: f64) -> Scored {
        of("causal", RowKind::Oracle, &[score; 3], [&[1.0; 3], &[2.0; 3], &[3.0; 3]])
    }

    #[track_caller]
    fn check(mut scored: Vec<Scored>, expected: &[&str]) {
        let ranking = ranking(&mut scored);
        assert_eq!(sentences(&ranking, &scored, 1, None, "--repeats"), expected);
    }

    /// Controllers with equal scores tie, in one run as well. They say nothing about the runs that the others need: differences -1, 1
    /// and -3 have the mean -1 and the standard deviation 2.
    #[test]
    fn equal_controllers_are_a_tie() {
        let same = |name: &str| of(name, RowKind::Controller, &[72.0], [&[20.0], &[5.0], &[3.0]]);
        let text = [
            "`a` and `b` are not distinguishable: 72.0 and 72.0 of 100.",
            "One run gives no interval; `--repeats 10` gives one.",
        ];
        check(vec![same("a"), same("b")], &text);

        let (mut twin, mut other) = (nada(), nada());
        (twin.name, other.name) = ("twin".to_owned(), "other".to_owned());
        other.scores = vec![72.0, 73.0, 68.0];
        let mut scored = vec![nada(), twin, other];
        let sentences = sentences(&ranking(&mut scored), &scored, 1, None, "--repeats");
        assert_eq!(sentences[0], "`nada`, `twin` and `other` are not distinguishable: 72.0, 72.0 and 71.0 of 100.");
        assert!(
            sentences[1].starts_with("About ") && sentences[1].contains(" more runs would decide"),
            "{sentences:?}"
        );
    }

    #[test]
    fn many_in_a_tie_are_counted() {
        let of = |name: &str, shift: f64| Scored {
            name: name.to_owned(),
            scores: vec![72.0, 72.0 + shift, 72.0 - 2.0 * shift],
            ..nada()
        };
        let mut scored: Vec<Scored> =
            ["a", "b", "c", "d", "e"].iter().zip(0..).map(|(name, i)| of(name, f64::from(i))).collect();
        let found = sentences(&ranking(&mut scored), &scored, 1, None, "--repeats");
        assert_eq!(found[0], "`a`, `b`, `c` and 2 more are not distinguishable: 72.0 to 70.7 of 100.");
        assert_eq!(found[1], "3 runs are few for so many: `--repeats 10` separates more of them.");
    }

    /// Differences -12, -13, -14: mean -13, standard deviation 1, t(2) = 4.303, half-width 4.303 / sqrt 3 = 2.484.
    #[test]
    fn a_controller_alone_in_its_group_is_the_pick() {
        let pick = "`nada` is best: 72.0 of 100; 13.0 ± 2.5 points before `drc`, which loses 26.9 to delay.";
        check(vec![drc(), nada()], &[pick]);
        check(vec![drc(), causal(80.0), nada()], &[pick, "The path itself allows 80.0."]);
        check(vec![drc(), causal(71.0), nada()], &[pick]);
        let keeps = |part: f64| Scored { others: Some(vec![part; 3]), ..nada() };
        check(vec![keeps(0.5), drc()], &[pick]);
        check(vec![keeps(0.49), drc()], &[pick, "With `nada`, other flows keep 49 % of their fair share."]);
        check(vec![nada()], &["`nada` has 72.0 ± 2.5 of 100: 20.0 lost to rate, 5.0 to delay, 3.0 to freezes."]);
        check(vec![], &["No controller has a score in each run, so there is no ranking."]);
    }

    /// Differences 1, -2, -2: mean -1, standard deviation sqrt 3, half-width 4.303. Of 13 runs it is 2.179 sqrt(3 / 13) = 1.047, of
    /// 14 runs 2.160 sqrt(3 / 14) = 0.9999.
    #[test]
    fn a_tie_group_is_named_with_what_differs_in_it() {
        let a = of("a", RowKind::Controller, &[70.0, 72.0, 74.0], [&[5.0; 3], &[10.0, 11.0, 12.0], &[1.0; 3]]);
        let b = of("b", RowKind::Controller, &[71.0, 70.0, 72.0], [&[14.0; 3], &[3.0, 4.0, 5.0], &[1.5; 3]]);
        let tie = "`a` and `b` are not distinguishable: 72.0 and 71.0 of 100.";
        let more = "About 11 more runs would decide: `--repeats 14`.";
        let differs = "`a` loses 5.0 to rate, `b` 14.0; `b` loses 4.0 to delay, `a` 11.0";
        check(vec![b.clone(), a.clone()], &[tie, &format!("{differs}."), more]);
        let keeps = |of: &Scored, part: f64| Scored { others: Some(vec![part; 3]), ..of.clone() };
        let harm = "with `b` other flows keep 90 % of their fair share, with `a` 40 %.";
        check(vec![keeps(&a, 0.4), keeps(&b, 0.9)], &[tie, &format!("{differs}; {harm}"), more]);
        // Less than 5 % of a fair share is a matter of taste, as are 0.5 points lost to freezes.
        check(vec![keeps(&a, 0.86), keeps(&b, 0.9)], &[tie, &format!("{differs}."), more]);
        let same = |name: &str| Scored { name: name.to_owned(), ..nada() };
        check(vec![same("x"), same("y")], &["`x` and `y` are not distinguishable: 72.0 and 72.0 of 100."]);
    }

    #[test]
    fn poor_calls_are_ranked() {
        let lost = || [&[10.0; 3][..], &[12.0; 3], &[50.0; 3]];
        let x = of("x", RowKind::Controller, &[28.0; 3], lost());
        let y = of("y", RowKind::Controller, &[20.0, 21.0, 22.0], [&[20.0; 3], &[9.0; 3], &[50.0; 3]]);
        let poor = "All are poor: the best, `x`, has 28.0 of 100 and loses 50.0 to freezes.";
        let ahead = "It is 7.0 ± 2.5 points before `y`, which loses 20.0 to rate.";
        check(vec![x.clone(), y.clone(), causal(61.0)], &[poor, ahead, "The path itself allows 61.0."]);
        check(vec![x.clone(), y, causal(28.0)], &[poor, ahead, "The oracle `causal` has no more: 28.0."]);
        let near = of("y", RowKind::Controller, &[27.0, 28.0, 29.0], lost());
        let tie = "It is not distinguishable from `y`.";
        check(vec![x.clone(), near], &[poor, tie, "More runs would hardly distinguish them."]);
        check(
            vec![x.clone()],
            &["`x` is poor, with 28.0 ± 0.0 of 100: 50.0 lost to freezes, 12.0 to delay, 10.0 to rate."],
        );
        let at = |score: f64| Scored { scores: vec![score; 3], ..x.clone() };
        check(vec![at(50.0)], &["`x` has 50.0 ± 0.0 of 100: 50.0 lost to freezes, 12.0 to delay, 10.0 to rate."]);
    }

    #[test]
    fn gaps_are_a_reason_of_poor_calls() {
        let gaps = || Some("The path has 7 gaps.".to_owned());
        let poor = of("x", RowKind::Controller, &[28.0; 3], [&[10.0; 3], &[12.0; 3], &[50.0; 3]]);
        for (scored, paths, is_poor) in [(poor, 2, true), (nada(), 1, false)] {
            let mut scored = vec![scored, causal(80.0)];
            let sentences = sentences(&ranking(&mut scored), &scored, paths, gaps(), "--repeats");
            assert_eq!(sentences.contains(&gaps().unwrap()), is_poor, "{sentences:?}");
            let allow = if paths == 1 { "The path itself allows 80.0." } else { "The paths themselves allow 80.0." };
            assert_eq!(sentences.last().unwrap(), allow);
        }
    }

    #[test]
    fn one_run_is_ranked_without_an_interval() {
        let cut =
            |of: Scored| Scored { scores: of.scores[1..2].to_vec(), lost: of.lost.map(|l| l[1..2].to_vec()), ..of };
        let first = "`nada` is first in one run: 72.0 of 100; 13.0 points before `drc`, which loses 26.9 to delay.";
        check(vec![cut(drc()), cut(nada())], &[first, "One run gives no interval; `--repeats 10` gives one."]);
    }

    #[test]
    fn what_is_shown_as_scale_is_never_the_pick() {
        let faulty = Scored { name: "faulty-x".to_owned(), kind: RowKind::Faulty, scores: vec![99.0; 3], ..drc() };
        check(
            vec![faulty.clone(), nada()],
            &["`nada` has 72.0 ± 2.5 of 100: 20.0 lost to rate, 5.0 to delay, 3.0 to freezes."],
        );
        check(vec![faulty], &[]);
    }
}
