// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask figures`: the figures of the documentation, `docs/figures`, which the command draws from its own runs.

use crate::steps::{Problem, command, create, failed, has_flag, program, root, run, run_to, target};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The list of figures, which the report crate also reads.
const CHOICES: &str = include_str!("../../crates/paceline-lab/figures.toml");

/// The maximum total size of the figures.
const MOST_BYTES: u64 = 2_000_000;

/// Draws every figure of a paper; with `--check`, only compares them with the files.
pub fn figures(arguments: &[String]) -> Result<(), Problem> {
    let check = has_flag(arguments, "--check")?;
    run(command("cargo build --quiet --release"))?;
    draw(&target().join("release/paceline"), check)
}

/// Draws the figures with this program, or compares them with the files.
fn draw(paceline: &Path, check: bool) -> Result<(), Problem> {
    let kept = root().join("docs/figures");
    let place = if check { target().join("figures") } else { kept.clone() };
    let (mut total, mut moved) = (0, Vec::new());
    for (scenario, choices) in by_scenario()? {
        let results = target().join("figure-runs").join(scenario.replace('/', "-"));
        if results.exists() {
            fs::remove_dir_all(&results).map_err(failed(&results))?;
        }
        simulate(paceline, &scenario, &choices, &results)?;
        run(program(paceline, "report").arg(&results).arg("--svg"))?;
        for Choice { id, .. } in &choices {
            let made = results.join("figures").join(format!("{}.svg", id.replace('/', "-")));
            let to = place.join(format!("{id}.svg"));
            create(to.parent().unwrap_or(&place))?;
            total += fs::copy(&made, &to).map_err(failed(&made))?;
            if check && fs::read(&to).ok() != fs::read(kept.join(format!("{id}.svg"))).ok() {
                moved.push(id.clone());
            }
        }
    }
    match (moved.as_slice(), total) {
        ([], 0..=MOST_BYTES) => Ok(()),
        ([], _) => Err(Problem::Failed(format!("the figures have {total} bytes, more than {MOST_BYTES}"))),
        (moved, _) => Err(Problem::Failed(format!(
            "these figures have changed: {}; `cargo xtask figures` writes them",
            moved.join(", ")
        ))),
    }
}

/// A figure in the list.
#[derive(Deserialize)]
struct Choice {
    id: String,
    scenario: String,
    #[serde(default)]
    cases: Vec<String>,
}

fn by_scenario() -> Result<BTreeMap<String, Vec<Choice>>, String> {
    let mut file: BTreeMap<String, Vec<Choice>> =
        toml::from_str(CHOICES).map_err(|error| format!("figures.toml: {error}"))?;
    let mut scenarios: BTreeMap<String, Vec<Choice>> = BTreeMap::new();
    for choice in file.remove("figure").unwrap_or_default() {
        scenarios.entry(choice.scenario.clone()).or_default().push(choice);
    }
    Ok(scenarios)
}

/// Runs a scenario into a folder, once for each case in a figure.
fn simulate(paceline: &Path, scenario: &str, choices: &[Choice], into: &Path) -> Result<(), String> {
    let mut cases: BTreeSet<&str> = choices.iter().flat_map(|choice| &choice.cases).map(String::as_str).collect();
    if cases.is_empty() {
        cases.insert("");
    }
    for case in cases {
        let mut run = program(paceline, &format!("run {scenario}"));
        let labels = case.split_whitespace().flat_map(|label| ["--case", label]);
        // 1 means that an assertion fails, which the pages state.
        run_to(run.args(labels).arg("--out").arg(into).stdout(Stdio::null()), &[0, 1])?;
    }
    Ok(())
}
