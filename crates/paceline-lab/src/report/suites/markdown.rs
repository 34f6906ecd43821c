// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leaderboard as Markdown, with its pictures.

use super::{Board, BoardRow, advice, pareto, plot, scores};
use crate::results::SuitesReport;
use std::fmt::Write as _;

pub struct Leaderboard {
    pub text: String,
    pub pictures: Vec<(String, String)>,
}

const SCORES: &str = "score-by-family.svg";

/// Returns the leaderboard of suites. `pictures` is the path from the text to the folder of the pictures; empty or with a slash at
/// its end.
pub fn leaderboard(report: &SuitesReport, pictures: &str) -> Leaderboard {
    let board = Board::of(report);
    let mut text = "# Leaderboard\n\n".to_owned();
    let advice = advice::sentences(report);
    advice.iter().for_each(|sentence| _ = writeln!(text, "* {sentence}"));
    text += if advice.is_empty() { "" } else { "\n" };
    text += "Scores are of the possible: 0 is a constant rate without feedback, 100 is the oracle `causal`, which takes its fair share of a path \
        that it\nknows one round trip late. Intervals are of 95 %, over tests as a sample of paths. =: not distinguishable from the first \
        place. Others\nkeep: what TCP and cross traffic receive of their fair share, mean over the tests that have them. The last column counts the tests whose \
        bounds\nall hold.\n";
    let mut drawn = Vec::new();
    if board.families.iter().any(|_| board.groups.iter().flat_map(|group| &group.rows).any(|row| row.all.0.is_some())) {
        drawn.push((SCORES.to_owned(), scores::draw_alone(&board)));
        _ = write!(text, "\n![Score of the possible of each controller, by family]({pictures}{SCORES})\n");
    }
    let names: Vec<&str> = board.families.iter().map(|(name, _)| name.as_str()).collect();
    for group in &board.groups {
        _ = write!(
            text,
            "\n## {}\n\n| place | controller | all | {} | others keep | tests |\n|---|---|---:|",
            group.title,
            names.join(" | ")
        );
        text += &"---:|".repeat(names.len() + 2);
        text += "\n";
        for row in &group.rows {
            let cells: Vec<String> = row.families.iter().map(super::Points::short).collect();
            let BoardRow { place, controller, all, passed, others_keep, .. } = row;
            _ = writeln!(
                text,
                "| {place} | {controller} | {} | {} | {others_keep} | {passed} |",
                all.text(),
                cells.join(" | ")
            );
        }
    }
    text += "\n| suite | tests | that count | runs of each test | paths |\n|---|---:|---:|---:|---|\n";
    for suite in &report.suites {
        let counted = (0..suite.tests.len()).filter(|test| suite.scale(*test).is_some()).count();
        let (id, tests, runs, title) = (&suite.id, suite.tests.len(), suite.repeats_text(), &suite.title);
        _ = writeln!(text, "| {id} | {tests} | {counted} | {runs} | {title} |");
    }
    let families: Vec<_> = pareto::families(report).into_iter().filter(|(_, points)| !points.is_empty()).collect();
    if !families.is_empty() {
        text += "\n## Utilisation against delay\n\nUp and to the left is better. The line is the Pareto front: no other controller has both \
            more utilisation and less delay\nthan those on it. Diamonds are oracles, which know the path; hollow circles are faulty \
            controllers.\n";
    }
    for (family, points) in families {
        let name = format!("{family}.svg");
        _ = write!(text, "\n![Utilisation against queuing delay of each controller: {family}]({pictures}{name})\n");
        drawn.push((name, plot::draw_alone(&points, &family)));
    }
    Leaderboard { text, pictures: drawn }
}
