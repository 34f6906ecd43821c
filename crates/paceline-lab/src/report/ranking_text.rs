// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the ranking of a comparison for the terminal and the pages.

use crate::report::check_text::summary_text;
use crate::results::RankedController;

/// Returns the rows of its table, the headings first: place and controller, then numbers.
pub fn rows(ranking: &[RankedController]) -> Vec<Vec<String>> {
    let headings =
        ["place", "controller", "score", "lost to rate", "to delay", "to freezes", "to the first", "others keep"];
    let columns = if ranking.iter().any(|entry| entry.others_keep.is_some()) { 8 } else { 7 };
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(ranking.iter().map(|entry| row(entry, has_ties(ranking)).to_vec()));
    rows.iter_mut().for_each(|row| row.truncate(columns));
    rows
}

fn row(entry: &RankedController, has_ties: bool) -> [String; 8] {
    // Without the sign of a loss that is 0 up to rounding.
    let points = |points: f64| format!("{:.1}", (points * 10.0).round() / 10.0 + 0.0);
    let place = match entry.place {
        None => "scale".to_owned(),
        Some(place) => format!("{place}{}", if has_ties && entry.tied { " =" } else { "" }),
    };
    let difference = entry.difference.map_or(String::new(), |difference| {
        let interval =
            if difference.interval.is_finite() { format!(" ± {:.1}", difference.interval) } else { String::new() };
        format!("{:+.1}{interval}", difference.mean)
    });
    [
        place,
        entry.controller.clone(),
        summary_text(&entry.score, points),
        points(entry.lost_to_rate),
        points(entry.lost_to_delay),
        points(entry.lost_to_freezes),
        difference,
        entry.others_keep.map_or("–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
    ]
}

pub fn legend(ranking: &[RankedController]) -> String {
    let mut text = "Points of 100.".to_owned();
    if has_ties(ranking) {
        text += " =: not distinguishable from the first, by 95\u{a0}% intervals of the differences seed by seed.";
    }
    if ranking.iter().any(|entry| entry.place.is_none()) {
        text += " scale: an oracle, a faulty controller or a constant sender; nothing to choose.";
    }
    if ranking.iter().any(|entry| entry.others_keep.is_some()) {
        text += " others keep: what other flows receive of their fair share.";
    }
    text
}

/// Returns whether several controllers with intervals are in the tie group of the first.
fn has_ties(ranking: &[RankedController]) -> bool {
    ranking.iter().filter(|entry| entry.tied && entry.score.n > 1).count() > 1
}
