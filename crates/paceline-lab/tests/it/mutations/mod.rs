// SPDX-License-Identifier: MIT OR Apache-2.0
//! GoogCC with one fault each, under the tests of the suites: each fault makes the bounds fail that name the broken behaviour.

mod faults;

use faults::{FAULTS, registry};
use paceline::Registry;
use paceline_lab::load;
use paceline_lab::run::Runner;
use paceline_scenario::{Catalogue, Changes, Label};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Seeds of each run. More would be slower; the bounds of the table are clear with these.
const SEEDS: [u64; 3] = [1, 2, 3];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    fault: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    /// The broken behaviour, and how the bounds show it.
    why: String,
    #[serde(default)]
    finds: Vec<Find>,
    /// Tests without a bound that could fail, because the fault changes no run of them.
    #[serde(default)]
    hidden_in: Vec<Test>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    scenario: String,
    #[serde(default)]
    case: String,
    bounds: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    scenario: String,
    #[serde(default)]
    case: String,
}

fn table() -> Table {
    toml::from_str(include_str!("table.toml")).unwrap()
}

/// The outcome of a test: the bounds with whether they hold, and the trace hash of each run.
struct Outcome {
    holds: BTreeMap<String, bool>,
    hashes: Vec<String>,
}

fn run(scenario: &str, case: &str, controller: &str, registry: &Registry) -> Outcome {
    let changes = Changes {
        case: if case.is_empty() { Label::default() } else { case.parse().unwrap() },
        controller: Some(controller.to_owned()),
        ..Changes::default()
    };
    let scenario = load(&Catalogue.find(scenario).unwrap(), &changes, registry).unwrap();
    let runs = Runner::simulator(registry).run_all(&scenario, &SEEDS).unwrap();
    let mut holds = BTreeMap::new();
    for assertion in &runs.assertions {
        // The mean decides: intervals over three seeds are wide.
        let (low, high) = assertion.bounds;
        let is_kept = assertion.measured.is_some_and(|mean| low <= mean && mean <= high);
        *holds.entry(assertion.id.clone()).or_insert(true) &= is_kept;
    }
    Outcome { holds, hashes: runs.runs.iter().map(|run| run.trace_hash.clone()).collect() }
}

#[test]
fn every_fault_has_a_row_with_a_reason() {
    let rows: Vec<String> = table().fault.into_iter().map(|row| row.name).collect();
    assert_eq!(rows, FAULTS.iter().map(|fault| fault.name).collect::<Vec<_>>());
    for row in table().fault {
        assert!(!row.why.trim().is_empty() && row.finds.is_empty() != row.hidden_in.is_empty(), "{}", row.name);
        assert!(row.finds.iter().all(|find| !find.bounds.is_empty()), "{}", row.name);
    }
    assert!(FAULTS.iter().all(|fault| fault.name.starts_with("mutation-") && !fault.text.is_empty()));
    assert!(table().fault.iter().filter(|row| !row.finds.is_empty()).count() >= 10);
}

/// GoogCC keeps each bound of the table, and GoogCC with the fault does not.
#[test]
fn each_fault_fails_the_bounds_that_name_it() {
    let registry = registry();
    let mut sound: BTreeMap<(String, String), Outcome> = BTreeMap::new();
    let mut wrong = BTreeSet::new();
    for row in table().fault {
        for Find { scenario, case, bounds } in row.finds {
            let key = (scenario.clone(), case.clone());
            let before = sound.entry(key).or_insert_with(|| run(&scenario, &case, "googcc", &registry));
            let after = run(&scenario, &case, &row.name, &registry);
            for bound in bounds {
                let states = (before.holds.get(&bound), after.holds.get(&bound));
                if states != (Some(&true), Some(&false)) {
                    wrong.insert(format!("{}: {scenario} {case}: {bound}: {states:?}", row.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "googcc must keep these, and the fault must not:\n{}", Vec::from_iter(wrong).join("\n"));
}

/// A fault that changes no run cannot be found. The table says why.
#[test]
fn hidden_faults_change_no_run() {
    let registry = registry();
    for row in table().fault {
        for Test { scenario, case } in row.hidden_in {
            let hashes = |controller: &str| run(&scenario, &case, controller, &registry).hashes;
            assert_eq!(hashes("googcc"), hashes(&row.name), "{} is visible in {scenario}", row.name);
        }
    }
}
