//! The leaderboard as Markdown, with a picture for each family of paths.

use super::{advice, groups, pareto, plot};
use crate::results::SuitesReport;
use std::fmt::Write as _;

/// A leaderboard: its text, and the pictures that the text names.
pub struct Leaderboard {
    /// The text, Markdown.
    pub text: String,
    /// Name and content of each picture, SVG.
    pub pictures: Vec<(String, String)>,
}

/// Returns the leaderboard of suites. `pictures` is the path from the text to the folder of the pictures; empty or with a slash at
/// its end.
pub fn leaderboard(report: &SuitesReport, pictures: &str) -> Leaderboard {
    let mut text = "# Leaderboard\n\n\
        Each cell is the share of bounds of a suite that hold under a controller, in per cent. A bound holds if the 95 %\n\
        interval of the mean over the runs is within it. A dash: the suite shares a medium, so it has no oracle.\n"
        .to_owned();
    let advice = advice::sentences(report);
    if !advice.is_empty() {
        text += "\n## Which controller to choose\n\n";
        advice.iter().for_each(|sentence| _ = writeln!(text, "* {sentence}"));
    }
    text += "\n## Bounds that hold\n";
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.id.as_str()).collect();
    for group in groups(report) {
        _ = write!(text, "\n### {}\n\n| controller | all | {} |\n|---|---:|", group.title, names.join(" | "));
        text += &"---:|".repeat(names.len());
        text += "\n";
        for row in &group.rows {
            let cells: Vec<String> = row.suites.iter().map(super::Share::percent).collect();
            _ = writeln!(text, "| {} | {} | {} |", row.controller, row.all.percent(), cells.join(" | "));
        }
    }
    text += "\n| suite | tests | bounds | runs of each test | paths |\n|---|---:|---:|---:|---|\n";
    for suite in &report.suites {
        let bounds: usize = suite.tests.iter().map(|test| test.bound_ids().count()).sum();
        let (id, tests, runs, title) = (&suite.id, suite.tests.len(), suite.repeats_text(), &suite.title);
        _ = writeln!(text, "| {id} | {tests} | {bounds} | {runs} | {title} |");
    }
    let mut drawn = Vec::new();
    text += "\n## Utilisation against delay\n\nUp and to the left is better. The line is the Pareto front: no other controller has both more \
        utilisation and less delay\nthan those on it. Diamonds are oracles, which know the path; hollow circles are faulty controllers.\n";
    for (family, points) in pareto::families(report).into_iter().filter(|(_, points)| !points.is_empty()) {
        let name = format!("{family}.svg");
        _ = write!(text, "\n![Utilisation against queuing delay of each controller: {family}]({pictures}{name})\n");
        drawn.push((name, plot::draw_alone(&points, &family)));
    }
    Leaderboard { text, pictures: drawn }
}
