//! External controllers on the command line and in scenario files.
#![cfg(unix)]

use super::{folder, paceline, stderr};
use serde_json::Value;

const PROGRAM: &str = r#"#!/bin/sh
echo started >> starts
echo '{"protocol":1,"feedback":"none","signals":[{"name":"lines"}],"parameters":[{"name":"bps","default":300000,"min":1,"max":900000}]}'
n=0
while read -r line; do
  n=$((n + 1))
  echo "{\"target_bps\":300000,\"signals\":{\"lines\":$n}}"
done
"#;

const SCENARIO: &str = r#"
id = "test/external"
title = "A program in a scenario file"
duration = "5s"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "exec:sh ./program"
"#;

#[test]
fn programs_run_compare_and_are_started_once_per_run() {
    let folder = folder("external", &[("program", PROGRAM)]);
    let names = "fixed,exec:sh ./program";
    let output = paceline(
        &folder,
        &["compare", "mmsys16/table1", "--set", "duration=10s", "--controllers", names, "--repeats", "2", "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document.to_string().contains("exec:sh ./program"));
    let starts = std::fs::read_to_string(folder.join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 3, "once for the hello, and once for each of two runs");
}

#[test]
fn file_starts_no_program_without_the_option() {
    let folder = folder("external-file", &[("program", PROGRAM), ("file.toml", SCENARIO)]);
    let refused = paceline(&folder, &["run", "file.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = stderr(&refused);
    assert!(text.contains("no controller `exec:sh ./program`") && text.contains("--allow-exec"), "{text}");
    let allowed = paceline(&folder, &["run", "file.toml", "--allow-exec", "--json"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
}

#[test]
fn failure_has_exit_code_2_and_the_command_that_repeats_it() {
    let program = "echo '{\"protocol\":1}'; read -r l; echo '{\"target_bps\":300000}'; read -r l; echo bad";
    let folder = folder("external-failure", &[("program", program)]);
    let output = paceline(
        &folder,
        &["run", "mmsys16/table1", "--controllers", "exec:sh ./program", "--seed", "5", "--set", "duration=9s"],
    );
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("answered invalid data: the answer is `bad`"), "{text}");
    let again = "paceline run mmsys16/table1 --set duration=9s --controllers 'exec:sh ./program' --seed 5 --repeats 1";
    assert!(text.contains(again), "{text}");
}

#[test]
fn schema_describes_every_line() {
    let output = paceline(&folder("external-schema", &[]), &["schema", "controller"]);
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    for kind in ["Hello", "Input", "Answer", "Packet"] {
        assert!(schema["$defs"][kind].is_object(), "{kind}");
    }
}
