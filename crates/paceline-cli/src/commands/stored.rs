//! `--out DIR`: runs whose rows go to disk, and what they came to beside them.

use super::{Selection, refused};
use miette::{IntoDiagnostic, Result};
use paceline_lab::group::{Group, Making};
use paceline_lab::plan::Plan;
use paceline_lab::run::{self, Runner, RunsResult};
use paceline_lab::store::{RunManifest, Setting, Store};
use serde_json::{Map, Value, json};

/// One run after the other, each into files of its own as it goes; then what they came to.
pub fn run_into(
    store: &Store,
    selection: &Selection,
    controller: Option<&str>,
    runner: &Runner<'_>,
    plan: &Plan,
    seeds: &[u64],
) -> Result<RunsResult> {
    let (mut runs, mut folders) = (Vec::new(), Vec::new());
    // The case is a change like any other; what is assumed stands apart, for it is not the user's.
    let case = plan.case.pairs().map(|(key, value)| format!("case.{key}={value}"));
    let assumed: Map<String, Value> =
        plan.constants.iter().filter(|c| c.applied).map(|c| (c.key.clone(), json!(c.value))).collect();
    let manifest = RunManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_text: selection.text()?,
        changes: case.chain(selection.changes()).collect(),
        setting: Some(Setting::of(plan, runner.registry)),
        more: [("assumed".to_owned(), Value::Object(assumed))].into(),
        ..RunManifest::default()
    };
    for seed in seeds {
        let header = run::header(plan, runner.registry, runner.world.name(), *seed);
        let mut rows = store.run(&header, manifest.clone()).into_diagnostic()?;
        let result = runner.run(plan, *seed, Some(&mut rows)).map_err(refused)?;
        let folder = rows.finish(&serde_json::to_value(&result).into_diagnostic()?).into_diagnostic()?;
        folders.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        runs.push(result);
    }
    let result = run::summarise(plan, runs);
    let making = Making {
        version: manifest.version,
        command: command(selection, controller, seeds.len()),
        changes: selection.changes(),
        runs: folders,
    };
    if let Some(group) = Group::of(plan, &result, making) {
        store.group(&group).into_diagnostic()?;
    }
    Ok(result)
}

/// The command that makes the same numbers again.
fn command(selection: &Selection, controller: Option<&str>, repeats: usize) -> String {
    let mut words = vec!["paceline".to_owned(), "run".to_owned(), selection.scenario.clone()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for (key, value) in selection.case.iter().flat_map(|case| case.pairs()) {
        option("case", format!("{key}={value}"));
    }
    for change in selection.changes() {
        option("set", change);
    }
    if selection.world != "sim" {
        option("world", selection.world.clone());
    }
    if let Some(controller) = controller {
        option("controller", controller.to_owned());
    }
    option("seed", selection.seed.to_string());
    option("repeats", repeats.to_string());
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_for_a_shell() {
        for (word, wanted) in [
            ("path.rtt=50ms", "path.rtt=50ms"),
            ("path.forward.burst=20 KB", "'path.forward.burst=20 KB'"),
            ("path.reverse.jitter={std=\"10 ms\"}", "'path.reverse.jitter={std=\"10 ms\"}'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), wanted);
        }
    }
}
