//! `--out DIR` and `--pcap FILE`: runs whose rows or packets go to disk, and what they came to beside the rows.

use super::{Selection, refused};
use miette::{IntoDiagnostic, Result};
use paceline::Registry;
use paceline_lab::capture::Capture;
use paceline_lab::group::{Group, Making};
use paceline_lab::plan::Plan;
use paceline_lab::run::{self, Runner, RunsResult};
use paceline_lab::store::{RunManifest, Setting, Store};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Where runs go besides the screen.
#[derive(Clone, Copy)]
pub struct Into<'a> {
    /// Rows and results.
    pub store: Option<&'a Store>,
    /// Every packet, of one run.
    pub pcap: Option<&'a Path>,
}

impl Into<'_> {
    /// Whether they go anywhere.
    pub fn anything(&self) -> bool {
        self.store.is_some() || self.pcap.is_some()
    }
}

/// What runs of a selection, whose plan this is, are made from.
pub fn inputs(selection: &Selection, plan: &Plan, registry: &Registry) -> Result<RunManifest> {
    Ok(inputs_of(selection.text()?, selection.changes(), plan, registry))
}

/// What runs of a plan are made from: a scenario's text and changes to it.
pub fn inputs_of(scenario_text: String, changes: Vec<String>, plan: &Plan, registry: &Registry) -> RunManifest {
    // The case is a change like any other; what is assumed stands apart, for it is not the user's.
    let case = plan.case.pairs().map(|(key, value)| format!("case.{key}={value}"));
    let assumed: Map<String, Value> =
        plan.constants.iter().filter(|c| c.applied).map(|c| (c.key.clone(), json!(c.value))).collect();
    RunManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_text,
        changes: case.chain(changes).collect(),
        setting: Some(Setting::of(plan, registry)),
        more: [("assumed".to_owned(), Value::Object(assumed))].into(),
        ..RunManifest::default()
    }
}

/// One run after the other, each into files of its own as it goes; then what they came to.
pub fn run_into(
    into: Into<'_>,
    selection: &Selection,
    controller: Option<&str>,
    runner: &Runner<'_>,
    plan: &Plan,
    seeds: &[u64],
) -> Result<RunsResult> {
    let (mut runs, mut folders) = (Vec::new(), Vec::new());
    let manifest = inputs(selection, plan, runner.registry)?;
    for seed in seeds {
        let header = run::header(plan, runner.registry, runner.world.name(), *seed);
        let (result, (rows, packets)) = runner.undisturbed(|| -> Result<_> {
            let rows = into.store.map(|s| s.run(&header, manifest.clone())).transpose().into_diagnostic()?;
            let mut rows = rows.map(|rows| rows.in_parts(runner.world.real_time()));
            let mut packets = into.pcap.map(|p| Capture::create(p, plan, &header)).transpose().into_diagnostic()?;
            let result = runner.run(plan, *seed, Some(&mut (&mut rows, &mut packets))).map_err(refused)?;
            Ok((result, (rows, packets)))
        })?;
        if let Some(rows) = rows {
            let folder = rows.finish(&serde_json::to_value(&result).into_diagnostic()?).into_diagnostic()?;
            folders.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        if let Some(packets) = packets {
            packets.finish().into_diagnostic()?;
        }
        runs.push(result);
    }
    let result = run::summarise(plan, runs);
    let making = Making {
        version: manifest.version,
        command: command("run", selection, controller, seeds.len()),
        changes: selection.changes(),
        runs: folders,
    };
    if let Some((store, group)) = into.store.zip(Group::of(plan, &result, making)) {
        store.group(&group).into_diagnostic()?;
    }
    Ok(result)
}

/// The command, of this name, that makes the same numbers again.
pub fn command(name: &str, selection: &Selection, controller: Option<&str>, repeats: usize) -> String {
    let mut words = vec!["paceline".to_owned(), name.to_owned(), selection.scenario.clone()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    for (key, value) in selection.variation.case.iter().flat_map(|case| case.pairs()) {
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
