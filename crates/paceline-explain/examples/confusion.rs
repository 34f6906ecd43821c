// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains generated captures and prints the confusion matrix: `confusion [train|test|more|check] [list]`; `more` are captures
//! besides the 400, for the choice of rules and thresholds; `check` are others, to see whether these hold.

#[path = "../tests/it/generator/mod.rs"]
mod generator;

use generator::score::{Scored, matrix, right, score_all};
use generator::{CAPTURES, Format, TEMPLATES, generate};
use std::collections::BTreeSet;

/// The number of further captures, and of those to check.
const MORE: u64 = 3600;
const CHECK: u64 = 800;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|w| w == word);
    let count = words.iter().find_map(|w| w.parse().ok()).unwrap_or(CAPTURES);
    let wanted = |number: &u64| {
        let training = generate(*number).is_training;
        (!has("train") || training) && (!has("test") || !training)
    };
    let (more, check) = (CAPTURES..CAPTURES + MORE, CAPTURES + MORE..CAPTURES + MORE + CHECK);
    let numbers: Vec<u64> = match (has("more"), has("check")) {
        (true, _) => more.collect(),
        (_, true) => check.collect(),
        _ => (0..count).filter(wanted).collect(),
    };
    let scored = score_all(numbers.iter().copied());
    println!("{} captures, {} findings", numbers.len(), scored.len());
    print_matrix(&scored);
    let share = |name: &str, of: &dyn Fn(&&Scored) -> bool| {
        let (right, all) = right(scored.iter().filter(of));
        if all > 0 {
            println!("{name:34} {right:4} of {all:4}  {:5.1} %", 100.0 * right as f64 / all as f64);
        }
    };
    share("drops", &|one| one.is_drop());
    share("slow returns", &|one| !one.is_drop());
    share("drops, one cause", &|one| one.is_drop() && one.causes == 1);
    share("drops, two causes", &|one| one.is_drop() && one.causes == 2);
    for format in [Format::Run, Format::Capture, Format::SenderCapture, Format::Statistics] {
        share(&format!("drops, {format:?}"), &|one| one.is_drop() && one.format == format);
    }
    let seen: BTreeSet<u64> =
        scored.iter().filter(|one| one.is_drop() && one.truth != "none").map(|one| one.number).collect();
    for template in TEMPLATES {
        let of = |number: &&u64| generate(**number).causes == [template.cause];
        let (all, none) =
            numbers.iter().filter(of).fold((0, 0), |(all, none), n| (all + 1, none + usize::from(!seen.contains(n))));
        println!("{:16} {all:3} captures alone, {none:3} without a drop in the window", template.cause);
    }
    if has("list") {
        for one in scored.iter().filter(|one| !one.is_right()) {
            let (e, g) = (&one.finding.episode, generate(one.number));
            println!(
                "{:3} {:?} {:?} {:.1}..{:.1} {:?} {:.2}->{:.2} at {:.1}..{:.1}: {} not {} | {} {} | {} | {:?}",
                one.number,
                one.format,
                g.causes,
                g.window_s.0,
                g.reacts_until_s,
                e.kind,
                e.from / 1e6,
                e.to / 1e6,
                e.start.since(paceline_units::Time::ZERO).as_secs_f64(),
                e.end.since(paceline_units::Time::ZERO).as_secs_f64(),
                one.said,
                one.truth,
                g.text.split("controller = ").nth(1).and_then(|t| t.split('"').nth(1)).unwrap_or(""),
                one.details,
                one.finding.evidence.as_ref().map_or("", |e| e.text.as_str()),
                one.finding.others.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
            );
        }
    }
}

fn print_matrix(scored: &[Scored]) {
    let counts = matrix(scored);
    let truths: BTreeSet<&str> = counts.keys().map(|(truth, _)| *truth).collect();
    for truth in truths {
        let row: Vec<String> =
            counts.iter().filter(|((t, _), _)| *t == truth).map(|((_, said), n)| format!("{said} {n}")).collect();
        println!("{truth:16} {}", row.join(", "));
    }
}
