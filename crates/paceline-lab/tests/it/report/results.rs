// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of results, written as by the command.

use crate::fixtures::{registry, simulator};
use paceline_lab::group::Provenance;
use paceline_lab::results::{RunInputs, Store};
use paceline_lab::run;
use paceline_netsim::records::Environment;
use paceline_scenario::{self, Catalogue, Changes, Origin};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
pub struct Runs<'a> {
    pub scenario: &'a str,
    pub controller: Option<&'a str>,
    pub case: Option<&'a str>,
    pub seeds: &'a [u64],
}

/// Runs a catalogue scenario into the folder.
pub fn run_into(dir: &Path, runs: Runs<'_>) {
    let changes = Changes {
        case: runs.case.map_or_else(Default::default, |case| case.parse().unwrap()),
        controller: runs.controller.map(str::to_owned),
        ..Changes::default()
    };
    store(dir, &Catalogue.find(runs.scenario).unwrap(), &changes, runs.seeds, true);
}

/// Runs a scenario into the folder, and returns the folders of the runs.
pub fn store(dir: &Path, origin: &Origin, changes: &Changes, seeds: &[u64], grouped: bool) -> Vec<PathBuf> {
    let scenario = paceline_scenario::load(origin, changes, registry()).unwrap();
    let store = Store::create(dir).unwrap();
    let runner = simulator();
    let manifest = RunInputs {
        environment: Environment { version: "0.0.0-test".to_owned(), ..Environment::default() },
        changes: scenario.plan.case.pairs().map(|(key, value)| format!("case.{key}={value}")).collect(),
        setting: Some(scenario.plan.describe(registry())),
        ..RunInputs::default()
    };
    let (mut results, mut folders) = (Vec::new(), Vec::new());
    for &seed in seeds {
        let mut events = store.run(&scenario.plan.header(registry(), "sim", seed), manifest.clone()).unwrap();
        let result = runner.run(&scenario, seed, Some(&mut events)).unwrap();
        folders.push(events.finish(&serde_json::to_value(&result).unwrap(), Vec::new()).unwrap());
        results.push(result);
    }
    if grouped {
        let result = run::summarise(&scenario, results);
        let command = format!("paceline run {}", scenario.plan.id);
        let name = |folder: &PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
        let runs = folders.iter().map(name).collect();
        let making = Provenance { version: "0.0.0-test".to_owned(), command, changes: Vec::new(), runs };
        store.group(&paceline_lab::group::group_of(&scenario, &result, making).unwrap()).unwrap();
    }
    folders
}
