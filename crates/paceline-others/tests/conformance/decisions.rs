// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions of both, script by script.

use paceline_others::conformance::{Case, Class, Oracle, Script, Subject, Tally, compare, compare_pair, trials};
use std::collections::BTreeMap;

/// The share of decisions that must agree within 1 %, of all and in each class.
const AGREE: (f64, f64) = (0.99, 0.95);

/// Runs the first scripts of each class. Prints the first divergence of a class that fails.
fn run(case: Case, of_each_class: u64) -> BTreeMap<Class, Tally> {
    let mut tallies: BTreeMap<Class, Tally> = BTreeMap::new();
    let mut divergences = BTreeMap::new();
    for script in Script::all().filter(|script| script.seed < of_each_class) {
        let (tally, divergence) = compare(&script, case);
        *tallies.entry(script.class).or_default() += tally;
        if let Some(divergence) = divergence {
            divergences.entry(script.class).or_insert(divergence);
        }
    }
    for (class, tally) in &tallies {
        if let Some(divergence) = divergences.get(class).filter(|_| tally.share() < AGREE.1) {
            panic!("{case:?}, {class:?}: {:.4} agree. The first divergence:\n{divergence}", tally.share());
        }
    }
    tallies
}

fn sum(tallies: &BTreeMap<Class, Tally>) -> Tally {
    let mut all = Tally::default();
    tallies.values().for_each(|tally| all += *tally);
    all
}

fn assert_agreement(case: Case, of_each_class: u64) {
    let tallies = run(case, of_each_class);
    let all = sum(&tallies);
    assert!(all.share() >= AGREE.0, "{case:?}: {all:?}");
    assert!(all.same_probes as f64 >= AGREE.0 * all.probes as f64, "{case:?}: {all:?}");
    // An oracle whose target never changes would prove nothing.
    for (class, tally) in tallies {
        let scripts = of_each_class.min(class.scripts());
        assert!(tally.decisions > 25 * scripts && tally.probes >= scripts, "{case:?}, {class:?}: {tally:?}");
    }
}

#[test]
fn preset_of_2024_agrees_in_every_class() {
    assert_agreement(Case::Preset2024, 4);
}

#[test]
fn numbers_of_2026_with_the_rules_of_2024_agree_in_every_class() {
    assert_agreement(Case::RulesOf2024, 4);
}

/// Without the congestion window the crate's deviation `CR-CWND-TICK` has no effect, and every decision agrees.
#[test]
fn every_decision_agrees_without_the_congestion_window() {
    let all = sum(&run(Case::WithoutWindow, 3));
    assert_eq!((all.agree, all.same_probes, all.same_pacing), (all.decisions, all.probes, all.inputs));
}

/// All 200 scripts: `cargo test --release -p paceline-others -- --ignored`.
#[test]
#[ignore = "takes 20 s in release; a part of it runs always"]
fn all_scripts_agree_in_every_class() {
    assert_eq!(Script::all().count(), 200);
    Case::EXACT.into_iter().for_each(|case| assert_agreement(case, 50));
    let all = sum(&run(Case::WithoutWindow, 50));
    assert_eq!((all.agree, all.same_probes, all.same_pacing), (all.decisions, all.probes, all.inputs));
}

/// The bounds are two-sided: a controller whose rate hardly moves fails, and so does one with a decrease of 0.83.
#[test]
fn other_controllers_fail() {
    let share = |change: fn(&mut paceline::GoogCcConfig)| {
        let mut config = Case::Preset2024.config();
        change(&mut config);
        let mut all = Tally::default();
        for script in Script::all().filter(|script| script.seed < 1) {
            let streams = goog_cc::transport::StreamsConfig::default();
            let oracle = Oracle::new(trials(Case::Preset2024.vintage(), true), streams);
            all += compare_pair(&script, oracle, Subject::new(&config)).0;
        }
        all.share()
    };
    let constant = share(|config| {
        config.probes.enabled = false;
        (config.aimd.eta, config.aimd.headroom, config.aimd.beta) = (1.0, 1.0, 1.0);
    });
    assert!(constant < 0.3, "{constant}");
    let decrease = share(|config| config.aimd.beta = 0.83);
    assert!(decrease < 0.8, "{decrease}");
}
