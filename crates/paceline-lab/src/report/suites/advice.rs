// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which controller to choose for which paths: sentences that follow from the rankings of suites.

use crate::results::{RankedRow, Rankings, RowKind, SuiteReport, SuitesReport};

/// With this number of equals of the first controller or more, a sentence names one less.
const NAMED: usize = 5;
/// A distance that may be 0 and has a wider interval is not printed. A choice: a quarter of the scale.
const WIDE: f64 = 25.0;
/// With fewer tests nothing is said of the choice.
const TESTS: usize = 3;

/// Returns the choice for all paths, on paths that a controller was not developed with, for each use of media and for each family, and what
/// is not known. Empty for fewer than two controllers.
pub fn sentences(report: &SuitesReport) -> Vec<String> {
    let rankings = Rankings::of(report);
    let mut unknown = Vec::new();
    let mut sentence = |of: String, ranking: &[RankedRow]| match choice(ranking) {
        Choice::Sentence(choice) => Some(format!("{of}: {choice}.")),
        Choice::FewTests(tests) => {
            unknown.push(format!("{of} (tests: {tests})"));
            None
        }
        Choice::None => None,
    };
    let mut sentences = Vec::new();
    if rankings.families.len() > 1 {
        sentences.extend(sentence("All families".to_owned(), &rankings.all));
    }
    let is_choice = rankings.all.iter().filter(|ranked| ranked.place.is_some()).count() > 1;
    for (controller, suites) in developed(report).into_iter().filter(|_| is_choice) {
        let unseen = Rankings::over_families(report, |suite| !suites.contains(&suite.id));
        let with = format!("{controller} was developed with {}", suites.join(", "));
        sentences.push(sentence(format!("{with}; the other suites"), &unseen).unwrap_or_else(|| format!("{with}.")));
    }
    if rankings.uses.len() > 1 {
        sentences.extend(rankings.uses.iter().filter_map(|(name, ranking)| sentence(format!("Use {name}"), ranking)));
    }
    let families = rankings.families.iter().filter_map(|(name, ranking)| sentence(format!("Family {name}"), ranking));
    let families: Vec<String> = families.collect();
    if !unknown.is_empty() {
        sentences.push(format!("Not known: {}.", unknown.join(", ")));
    }
    if !sentences.is_empty() || !families.is_empty() {
        sentences.extend(not_counted(report));
    }
    sentences.extend(families);
    sentences
}

enum Choice {
    Sentence(String),
    /// There are this many tests, too few.
    FewTests(usize),
    /// There are fewer than two places.
    None,
}

/// Returns the first place of a ranking, its distance to the second, and those that are not distinguishable from it.
fn choice(ranking: &[RankedRow]) -> Choice {
    let placed: Vec<&RankedRow> = ranking.iter().filter(|ranked| ranked.place.is_some()).collect();
    let [first, second, ..] = placed[..] else { return Choice::None };
    if first.possible.tests < TESTS || first.possible.interval.is_none() {
        return Choice::FewTests(first.possible.tests);
    }
    let tied = placed[1..].iter().filter(|ranked| ranked.tied).map(|ranked| ranked.controller.as_str());
    let tied: Vec<&str> = tied.collect();
    let ahead = second.difference.map_or(String::new(), |mut difference| {
        if second.tied && difference.interval.is_none_or(|interval| interval > WIDE) {
            let (other, tests) = (&second.controller, difference.tests);
            return format!("; the distance to {other} is not known, because the {tests} tests differ too much");
        }
        difference.points = -difference.points;
        format!("; {difference} ahead of {}", second.controller)
    });
    let (name, score) = (&first.controller, first.possible);
    let text = match tied.len() {
        0 => format!("{name}, {score}{ahead}"),
        more @ NAMED.. => {
            let named = tied[..NAMED - 1].join(", ");
            format!("{name}, {named} or {} more, not distinguishable; {name} has {score}{ahead}", more + 1 - NAMED)
        }
        _ => {
            let (last, others) = tied.split_last().unwrap_or((&"", &[]));
            let others: String = others.iter().map(|other| format!(", {other}")).collect();
            format!("{name}{others} or {last}, not distinguishable; {name} has {score}{ahead}")
        }
    };
    Choice::Sentence(text)
}

/// Returns each controller of the rows that was developed with some of the suites, and these suites.
fn developed(report: &SuitesReport) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for suite in &report.suites {
        for name in &suite.developed {
            let is_row = suite.rows.iter().any(|row| row.controller == *name && row.kind == RowKind::Controller);
            match found.iter_mut().find(|(other, _)| other == name) {
                Some((_, suites)) => suites.push(suite.id.clone()),
                None if is_row => found.push((name.clone(), vec![suite.id.clone()])),
                None => {}
            }
        }
    }
    found
}

/// Returns how many tests do not count, with the reason; `None` if all count.
fn not_counted(report: &SuitesReport) -> Option<String> {
    let tests = || report.suites.iter().flat_map(|suite| (0..suite.tests.len()).map(move |test| (suite, test)));
    let count = |is: fn(&SuiteReport, usize) -> bool| tests().filter(|(suite, test)| is(suite, *test)).count();
    let without = count(|suite, test| !suite.has_scale(test));
    let narrow = count(|suite, test| suite.has_scale(test) && suite.scale(test).is_none());
    let part = |count: usize, reason: &str| (count > 0).then(|| format!("{count} {reason}"));
    let parts = [
        part(without, "without a scale"),
        part(narrow, "on which the oracle has less than 5 points more than a constant rate"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Not counted, of {} tests: {}.", tests().count(), parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{HUNDRED, SuiteRow, SuiteTest, TestResult, ZERO};

    /// A controller and its score in each of four tests, whose scale is from 0 to 100.
    fn suite(id: &str, media_use: &str, rows: &[(&str, RowKind, [f64; 4])]) -> SuiteReport {
        let ends = [(ZERO, RowKind::Faulty, [0.0; 4]), (HUNDRED, RowKind::Oracle, [100.0; 4])];
        let result = |score: f64| TestResult { scores: vec![score], ..TestResult::default() };
        let row = |(name, kind, scores): &(&str, RowKind, [f64; 4])| SuiteRow {
            controller: (*name).to_owned(),
            kind: *kind,
            results: scores.iter().copied().map(result).collect(),
        };
        let test = SuiteTest { media_use: media_use.to_owned(), ..SuiteTest::default() };
        SuiteReport {
            id: id.to_owned(),
            family: id.to_owned(),
            tests: vec![test; 4],
            rows: rows.iter().chain(&ends).map(row).collect(),
            ..SuiteReport::default()
        }
    }

    const C: RowKind = RowKind::Controller;

    /// `full` is better on each wired test; on wireless ones it and `short` change places.
    #[test]
    fn a_choice_is_alone_or_names_its_equals() {
        let mut wired =
            suite("wired", "game", &[("full", C, [80.0, 70.0, 80.0, 70.0]), ("short", C, [60.0, 50.0, 61.0, 49.0])]);
        wired.developed = vec!["full".to_owned()];
        let wifi = suite(
            "wifi",
            "conversation",
            &[("full", C, [50.0, 20.0, 40.0, 30.0]), ("short", C, [20.0, 50.0, 45.0, 35.0])],
        );
        let text = sentences(&SuitesReport { suites: vec![wired.clone(), wifi] });
        assert_eq!(text.len(), 6, "{text:?}");
        assert!(text[0].starts_with("All families: full or short, not distinguishable; full has 55 ± "), "{text:?}");
        let unseen =
            "full was developed with wired; the other suites: short or full, not distinguishable; short has 38 ± ";
        assert!(text[1].starts_with(unseen), "{text:?}");
        assert!(text[2].starts_with("Use game: full, 75 ± ") && text[2].ends_with(" ahead of short."), "{text:?}");
        let tie = "Use conversation: short or full, not distinguishable; short has 38 ± 21; the distance to full is not known, because the 4 \
                   tests differ too much.";
        assert_eq!(text[3], tie);
        let near = [("full", C, [50.0, 20.0, 40.0, 30.0]), ("short", C, [52.0, 28.0, 45.0, 35.0])];
        let near = sentences(&SuitesReport { suites: vec![suite("wifi", "conversation", &near)] });
        let starts = near[0].starts_with("Family wifi: short, 40 ± ");
        assert!(starts && near[0].ends_with("; 5 ± 4 ahead of full."), "{near:?}");
        assert!(text[4].starts_with("Family wired: full") && text[5].starts_with("Family wifi: short"), "{text:?}");

        // One family and one use need no sentence of their own. A test without an oracle does not count.
        wired.rows.last_mut().unwrap().results[3].scores.clear();
        wired.rows.last_mut().unwrap().results[2].scores[0] = 4.9;
        let text = sentences(&SuitesReport { suites: vec![wired.clone()] });
        assert_eq!((text.len(), text[0].as_str()), (3, "full was developed with wired."));
        assert_eq!(text[1], "Not known: Family wired (tests: 2).");
        let not_counted = "1 without a scale, 1 on which the oracle has less than 5 points more than a constant rate";
        assert_eq!(text[2], format!("Not counted, of 4 tests: {not_counted}."));
        wired.rows.remove(1);
        assert!(sentences(&SuitesReport { suites: vec![wired] }).is_empty(), "one controller is no choice");
    }
}
