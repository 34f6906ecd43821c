//! Runs all scripts through both controllers and prints the counts of each class; `--first` prints the first divergence of
//! each class.

use paceline_conformance::{Class, Oracle, Script, Subject, Tally, Vintage, compare};
use std::collections::BTreeMap;

/// The rules of 2024 with the numbers of 2026.
const RULES_OF_2024: &[(&str, f64)] = &[
    ("loss_prefers_larger", 0.0),
    ("loss_after_report", 1.0),
    ("stable_target", 1.0),
    ("alr_truncates", 1.0),
    ("alr_after_feedback", 0.0),
    ("alr_publishes", 0.0),
    ("probe_allocation_anywhere", 0.0),
    ("probe_allocation_decrease", 1.0),
];

fn main() {
    let first = std::env::args().any(|argument| argument == "--first");
    let cases: [(&str, Vintage, &str, &[(&str, f64)]); 3] = [
        ("googcc-2024", Vintage::Y2024, "googcc-2024", &[]),
        ("googcc with the rules of 2024", Vintage::Y2026, "googcc", RULES_OF_2024),
        ("googcc", Vintage::Y2026, "googcc", &[]),
    ];
    for (title, vintage, name, changes) in cases {
        println!("{title}");
        let mut tallies: BTreeMap<Class, Tally> = BTreeMap::new();
        let mut shown = Vec::new();
        for script in Script::all() {
            let (tally, divergence) = compare(&script, Oracle::new(vintage), Subject::registered(name, changes));
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
}

fn print_tally(name: &str, tally: &Tally) {
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    println!(
        "  {name:<18} {:>8} packets {:>7} decisions {:>7.3} % agree {:>7.3} % equal {:>5} probes {:>7.3} % same",
        tally.packets,
        tally.decisions,
        percent(tally.agree, tally.decisions),
        percent(tally.equal, tally.decisions),
        tally.probes,
        percent(tally.same_probes, tally.probes),
    );
}
