// SPDX-License-Identifier: MIT OR Apache-2.0
//! External controllers on the command line and in scenario files.
#![cfg(unix)]

use super::{contains_all, document, folder, one_line, paceline, rejects, stderr, stdout};
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
fn file_loads_no_library_without_the_option() {
    let scenario = SCENARIO.replace("exec:sh ./program", "lib:./mine.so");
    let folder = folder("external-library", &[("mine.so", "no library"), ("file.toml", &scenario)]);
    let refused = stderr(&paceline(&folder, &["run", "file.toml"]));
    assert!(refused.contains("no controller `lib:./mine.so`") && refused.contains("--allow-exec"), "{refused}");
    let allowed = paceline(&folder, &["run", "file.toml", "--allow-exec"]);
    assert_eq!(allowed.status.code(), Some(2));
    assert!(stderr(&allowed).contains("the controller `lib:./mine.so` does not load"), "{}", stderr(&allowed));
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

#[test]
fn list_shows_the_parameters_of_a_program() {
    let folder = folder("external-list", &[("program", PROGRAM)]);
    let listed = paceline(&folder, &["list", "controllers", "exec:sh ./program"]);
    contains_all(stdout(&listed, 0), &["bps", "300000", "900000", "--set flow.ID.config.PARAMETER=VALUE"]);
    rejects(&paceline(&folder, &["list", "controllers", "lib:./none.so"]), &["lib:./none.so", "does not load"]);
}

#[test]
fn new_writes_a_file_that_names_a_program() {
    let folder = folder("external-new", &[("program", PROGRAM)]);
    let name = r#"exec:sh "./program""#;
    let made = paceline(&folder, &["new", "own.toml", "--duration", "5 s", "--controller", name]);
    contains_all(stdout(&made, 0), &["paceline run own.toml --allow-exec", "paceline compare own.toml --controllers"]);
    rejects(&paceline(&folder, &["run", "own.toml"]), &["no controller", "--allow-exec"]);
    let run = document(&paceline(&folder, &["run", "own.toml", "--allow-exec", "--json"]), 0);
    assert_eq!(run["runs"][0]["flows"][0]["controller"], name);
    rejects(&paceline(&folder, &["new", "-", "--controller", "exec:./none"]), &["`exec:./none` did not start"]);
    rejects(&paceline(&folder, &["new", "-", "--controller", "gog-cc"]), &["no controller `gog-cc`", "googcc"]);
    // Without a program, the lines are those of before.
    let made = paceline(&folder, &["new", "other.toml", "--controller", "scream"]);
    assert!(!stdout(&made, 0).contains("--allow-exec"));
}

#[test]
fn reproduce_judges_a_file_that_names_a_program() {
    let bound = "[[assert]]\nid = \"rate\"\nmetric = \"throughput_bps\"\nflow = \"video\"\nbounds = [1000, 900000]\n";
    let scenario = format!("{SCENARIO}{bound}");
    let folder = folder("external-reproduce", &[("program", PROGRAM), ("file.toml", &scenario)]);
    rejects(&paceline(&folder, &["reproduce", "file.toml"]), &["no controller `exec:sh ./program`", "--allow-exec"]);
    let judged =
        document(&paceline(&folder, &["reproduce", "file.toml", "--allow-exec", "--repeats", "1", "--json"]), 0);
    assert_eq!(judged["experiments"][0]["cells"][0]["verdict"], "reproduced");
    let name = "exec:sh ./program";
    let named = ["reproduce", "file.toml", "--controllers", name, "--repeats", "1", "--json"];
    let named = document(&paceline(&folder, &named), 0);
    assert_eq!(named["experiments"][0]["under"], name);
    assert_eq!(named["experiments"][0]["cells"][0]["verdict"], "reproduced");
}

#[test]
fn explain_runs_a_program_on_the_observed_path() {
    let folder =
        folder("external-explain", &[("program", PROGRAM), ("bad", "echo '{\"protocol\":1}'; read -r l; exit 3")]);
    let run = ["run", "mmsys16/table1", "--set", "duration=20s", "--out", "out"];
    stdout(&paceline(&folder, &run), 0);
    let explained = paceline(&folder, &["explain", "out", "--what-if", "fixed,exec:sh ./program"]);
    contains_all(&one_line(stdout(&explained, 0)), &["exec:sh ./program"]);
    let failed = paceline(&folder, &["explain", "out", "--what-if", "exec:sh ./bad"]);
    assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
    contains_all(&stderr(&failed), &["`exec:sh ./bad`"]);
    let fitted = paceline(&folder, &["fit", "out", "--controller", "exec:sh ./program", "--simulate"]);
    contains_all(stdout(&fitted, 0), &["exec:sh ./program"]);
}
