// SPDX-License-Identifier: MIT OR Apache-2.0
//! The score is the same number in every command.

use super::compare;
use crate::run::Runner;
use crate::suite::{ALL, Subject, Suite, SuiteRuns};
use crate::yardsticks::{self, Oracle};
use paceline::Registry;
use paceline_netsim::records::Summary;
use paceline_scenario::Changes;

/// A suite takes no scenario without bounds, and those of a later time do not apply to fifteen seconds.
const BOUND: &str = "\n[[assert]]\nid = \"any\"\nmetric = \"score\"\nbounds = [0, 100]\nwhy = \"any score\"\n";

/// The first scenario of each suite, under a controller and an oracle: fifteen seconds of it, with `PACELINE_FULL` every
/// scenario as a whole.
#[test]
fn suite_and_compare_have_the_same_score() {
    let registry = Oracle::add_all(yardsticks::add(Registry::standard()));
    let runner = Runner::simulator(&registry);
    let (is_full, seeds) = (std::env::var_os("PACELINE_FULL").is_some(), [1, 2]);
    let most = if is_full { usize::MAX } else { 1 };
    let suites = Suite::find_all(&[ALL.to_owned()]).unwrap();
    assert!(suites.len() >= 6, "{}", suites.len());
    for mut suite in suites {
        suite.scenarios.truncate(most);
        suite.scenarios.iter_mut().for_each(|origin| origin.text += BOUND);
        suite.expected = None;
        if !is_full {
            suite.settings = vec!["duration=15s".parse().unwrap()];
        }
        let settings = suite.settings.clone();
        let origins = suite.scenarios.clone();
        let changes = |case| Changes { case, settings: settings.clone(), ..Changes::default() };
        let subjects = Subject::named(&["googcc".to_owned(), "causal".to_owned()], &registry);
        let mut runs = SuiteRuns::load(vec![suite], subjects.clone(), Some(&seeds), &registry).unwrap();
        runs.run(&runner, None, &|_| ()).unwrap();
        let report = runs.report("sim");
        let judged = &report.suites[0];
        for (place, test) in judged.tests.iter().enumerate().take(most) {
            let id = format!("id = \"{}\"", test.scenario);
            let origin = origins.iter().find(|origin| origin.text.contains(&id)).expect("a scenario of the suite");
            let changes = changes(test.case.clone());
            let load = |of: &Subject| of.scenario(origin, &changes, &registry).unwrap().map(|s| (of.name.clone(), s));
            let (names, scenarios): (Vec<_>, Vec<_>) = subjects.iter().filter_map(load).unzip();
            let results = scenarios.iter().map(|scenario| runner.run_all(scenario, &seeds).unwrap()).collect();
            let found = compare(&names, &scenarios, results, &registry);
            assert_eq!(found.table.ranking[0].controller, "googcc");
            for entry in &found.table.ranking {
                let row = judged.rows.iter().find(|row| row.controller == entry.controller).unwrap();
                let (scores, what) = (&row.results[place].scores, format!("{} in {}", entry.controller, test.scenario));
                assert_eq!(scores.len(), 2, "{what}");
                assert_eq!(Some(entry.score), Summary::from_values(scores), "{what}");
            }
        }
    }
}
