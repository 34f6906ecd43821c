//! `cargo xtask figures`: the figures of the documentation, `docs/figures`, which the command draws from its own runs.

use crate::steps::{Problem, command, program, root, run, shown, target};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use toml::{Table, Value};

/// The list of figures, which the report crate also reads.
const CHOICES: &str = include_str!("../../crates/paceline-lab/figures.toml");

/// The maximum total size of the figures.
const MOST_BYTES: u64 = 2_000_000;

/// Draws every figure of a paper; with `--check`, only compares them with the files.
pub fn figures(arguments: &[String]) -> Result<(), Problem> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(Problem::Usage("takes `--check` or nothing".into())),
    };
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
        let mut report = program(paceline.to_owned(), "report");
        report.arg(&results).arg("--svg");
        run(report)?;
        for id in choices.iter().map(|choice| choice["id"].as_str().unwrap_or_default()) {
            let made = results.join("figures").join(format!("{}.svg", id.replace('/', "-")));
            let to = place.join(format!("{id}.svg"));
            fs::create_dir_all(to.parent().unwrap_or(&place)).map_err(failed(&to))?;
            total += fs::copy(&made, &to).map_err(failed(&made))?;
            if check && fs::read(&to).ok() != fs::read(kept.join(format!("{id}.svg"))).ok() {
                moved.push(id.to_owned());
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

fn by_scenario() -> Result<BTreeMap<String, Vec<Table>>, String> {
    let file: Table = CHOICES.parse().map_err(|error| format!("figures.toml: {error}"))?;
    let mut scenarios: BTreeMap<String, Vec<Table>> = BTreeMap::new();
    for choice in file["figure"].as_array().into_iter().flatten().filter_map(Value::as_table) {
        let scenario = choice["scenario"].as_str().unwrap_or_default().to_owned();
        scenarios.entry(scenario).or_default().push(choice.clone());
    }
    Ok(scenarios)
}

/// Runs a scenario into a folder, once for each case in a figure.
fn simulate(paceline: &Path, scenario: &str, choices: &[Table], into: &Path) -> Result<(), String> {
    let lists = choices.iter().filter_map(|choice| choice.get("cases")).filter_map(Value::as_array);
    let mut cases: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
    cases.sort_unstable();
    cases.dedup();
    let cases = if cases.is_empty() { vec![None] } else { cases.into_iter().map(Some).collect() };
    for case in cases {
        let mut run = program(paceline.to_owned(), &format!("run {scenario}"));
        let labels = case.iter().flat_map(|case| case.split(' '));
        run.args(labels.flat_map(|label| ["--case", label])).arg("--out").arg(into).stdout(Stdio::null());
        eprintln!("\n==> {}", shown(&run));
        let status = run.status().map_err(|error| format!("`{}` did not start: {error}", shown(&run)))?;
        // 1 means that an assertion fails, which the pages state.
        if !matches!(status.code(), Some(0 | 1)) {
            return Err(format!("`{}` failed: {status}", shown(&run)));
        }
    }
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
