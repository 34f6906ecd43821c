// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs all scripts through both controllers and prints the counts of each class. `--first` prints the first divergence of
//! each class. `--rules` switches each rule of today on alone.

use paceline_others::conformance::{Case, Class, Rule, Script, Tally, compare};
use std::collections::BTreeMap;

fn main() {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    let mut cases = vec![Case::Preset2024, Case::WithoutWindow, Case::RulesOf2024, Case::Current];
    if has("--rules") {
        cases.extend(Rule::ALL.map(Case::With));
    }
    for case in cases {
        println!("{case:?}");
        run(case, has("--first"));
    }
}

fn run(case: Case, first: bool) {
    let mut tallies: BTreeMap<Class, Tally> = BTreeMap::new();
    let mut shown = Vec::new();
    for script in Script::all() {
        let (tally, divergence) = compare(&script, case);
        *tallies.entry(script.class).or_default() += tally;
        if let Some(divergence) = divergence.filter(|_| first && !shown.contains(&script.class)) {
            shown.push(script.class);
            println!("{divergence}");
        }
    }
    let mut all = Tally::default();
    for (class, tally) in tallies {
        print_tally(&format!("{class:?}"), &tally);
        all += tally;
    }
    print_tally("all", &all);
}

fn print_tally(name: &str, tally: &Tally) {
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    println!(
        "  {name:<18} {:>8} packets {:>6} decisions {:>7.3} % agree {:>7.3} % equal {:>4} probes {:>7.3} % same, pacing {:>7.3} %",
        tally.packets,
        tally.decisions,
        percent(tally.agree, tally.decisions),
        percent(tally.equal, tally.decisions),
        tally.probes,
        percent(tally.same_probes, tally.probes),
        percent(tally.same_pacing, tally.inputs),
    );
}
