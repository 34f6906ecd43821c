// SPDX-License-Identifier: MIT OR Apache-2.0
//! The suite `zoo` judges: each of its tests is failed by a faulty controller and passed by one that is in use.
//!
//! One run of each case decides here, without its interval, so that the test is fast. `paceline suite zoo` makes ten.

use paceline::Registry;
use paceline_lab::results::{SuiteReport, SuiteRow};
use paceline_lab::run::Runner;
use paceline_lab::suite::{self, Subject, Suite};
use paceline_lab::yardsticks::{self, FAULTY};
use std::collections::BTreeSet;

/// Controllers of which at least one passes each test.
const SOUND: [&str; 5] = ["googcc", "scream-v2", "nada-sender", "gcc-remb-2018", "gcc-tfb"];

/// Returns the tests in which a value is outside its bounds, by number.
fn failed(report: &SuiteReport, row: &SuiteRow) -> BTreeSet<usize> {
    let fails = |test: usize| {
        let results = &row.results[test].bounds;
        report.tests[test].bounds.iter().zip(results).any(|(bound, result)| {
            let (low, high) = bound.bounds;
            !result.measured.is_some_and(|value| (low..=high).contains(&value))
        })
    };
    (0..report.tests.len()).filter(|test| fails(*test)).collect()
}

#[test]
fn each_test_is_failed_by_a_faulty_controller_and_passed_by_a_sound_one() {
    let registry = yardsticks::add(Registry::standard());
    let runner = Runner::simulator(&registry);
    let subjects: Vec<Subject> =
        FAULTY.iter().chain(&SOUND).map(|name| Subject::controller(*name, &registry)).collect();
    let report =
        suite::run(&runner, &[Suite::find("zoo").unwrap()], &subjects, Some(1), None, &|_| ()).unwrap().unwrap();
    let report = &report.suites[0];
    assert!(report.tests.len() >= 26, "{} tests", report.tests.len());
    let (faulty, sound) = report.rows.split_at(FAULTY.len());
    let faulty: Vec<_> = faulty.iter().map(|row| failed(report, row)).collect();
    let sound: Vec<_> = sound.iter().map(|row| failed(report, row)).collect();
    for (number, test) in report.tests.iter().enumerate() {
        let name = format!("{} {:?}", test.scenario, test.case);
        assert!(faulty.iter().any(|failed| failed.contains(&number)), "no faulty controller fails {name}");
        assert!(sound.iter().any(|failed| !failed.contains(&number)), "no sound controller passes {name}");
    }
    // And each fault is found.
    for (name, failed) in FAULTY.iter().zip(&faulty) {
        assert!(failed.len() >= 5, "{name} fails {} tests only", failed.len());
    }
}
