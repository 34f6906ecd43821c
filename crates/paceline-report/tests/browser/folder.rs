//! Folders of results, made by the laboratory.

use paceline::Registry;
use paceline_lab::group::{Group, Making};
use paceline_lab::run::{self, Runner};
use paceline_lab::scenario::{self, Catalogue, Changes, Label};
use paceline_lab::sim::Simulator;
use paceline_lab::store::{RunManifest, Setting, Store};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that goes when the test does.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("paceline-report-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What to run.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub scenario: &'a str,
    pub controller: Option<&'a str>,
    pub case: Option<&'a str>,
    pub seeds: &'a [u64],
}

/// Runs into the folder, as the command does.
pub fn run_into(dir: &Path, wanted: Wanted<'_>) {
    let registry = Registry::standard();
    let origin = Catalogue.find(wanted.scenario).unwrap();
    let case: Label = wanted.case.map_or_else(Label::default, |case| case.parse().unwrap());
    let changes = Changes { case, controller: wanted.controller.map(str::to_owned), ..Changes::default() };
    let plan = scenario::load(&origin, &changes, &registry).unwrap();
    let store = Store::create(dir).unwrap();
    let runner = Runner { world: &Simulator, registry: &registry, clock: &|| 0.0, ticked: &|| () };
    let manifest = RunManifest {
        version: "0.0.0-test".to_owned(),
        changes: plan.case.pairs().map(|(key, value)| format!("case.{key}={value}")).collect(),
        setting: Some(Setting::of(&plan, &registry)),
        ..RunManifest::default()
    };
    let (mut results, mut runs) = (Vec::new(), Vec::new());
    for &seed in wanted.seeds {
        let mut rows = store.run(&run::header(&plan, &registry, "sim", seed), manifest.clone()).unwrap();
        let result = runner.run(&plan, seed, Some(&mut rows)).unwrap();
        let place = rows.finish(&serde_json::to_value(&result).unwrap()).unwrap();
        runs.push(place.file_name().unwrap().to_str().unwrap().to_owned());
        results.push(result);
    }
    let result = run::summarise(&plan, results);
    let command = format!("paceline run {}", wanted.scenario);
    let making = Making { version: "0.0.0-test".to_owned(), command, changes: Vec::new(), runs };
    store.group(&Group::of(&plan, &result, making).unwrap()).unwrap();
}
