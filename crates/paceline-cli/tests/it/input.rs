// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input of strangers and of other programs: standard input, files that are no scenarios, control characters, and several
//! processes that write to one folder.

use super::{command, contains_all, document, folder, paceline, rejects, stderr, stdout, stored};
use std::io::Write;
use std::process::Stdio;

const SCENARIO: &str = r#"id = "test/input"
title = "A test scenario"
duration = "2s"
[path]
rtt = "40ms"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
"#;

#[test]
fn a_scenario_is_read_from_standard_input() {
    let folder = folder("input-stdin", &[]);
    let run = |text: &str| {
        let mut run = command(&folder, &["run", "-", "--json"]);
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(document(&run(SCENARIO), 0)["scenario"], "test/input");
    rejects(&run("id = 1"), &["standard input"]);
}

#[test]
fn processes_share_a_folder_of_results() {
    let folder = folder("input-shared", &[("own.toml", SCENARIO)]);
    let seeds: Vec<String> = (1..=8).map(|seed| seed.to_string()).collect();
    let start = |seed: &String| {
        let mut run = command(&folder, &["run", "own.toml", "--seed", seed, "--out", "results"]);
        run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<_> = seeds.iter().map(start).collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let runs = stored(&folder.join("results")).runs;
    let listed: Vec<u64> = runs.iter().map(|run| run.about.run.seed).collect();
    assert_eq!(listed, (1..=8).collect::<Vec<u64>>());
    assert_eq!(std::fs::read_dir(folder.join("results/runs")).unwrap().count(), 8);
}

#[test]
fn control_characters_of_a_scenario_do_not_reach_the_terminal() {
    let folder = folder("input-escapes", &[]);
    let title = SCENARIO.replace("A test scenario", r"\u001b]0;owned\u0007 \u001b[2J a title");
    std::fs::write(folder.join("own.toml"), title).unwrap();
    let output = paceline(&folder, &["run", "own.toml"]);
    let text = stdout(&output, 0);
    assert!(text.contains("a title") && !text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    // In a key that is not known, and raw in the file.
    for line in ["\"\\u001b[2Jx\" = 1\n", "y = \u{1b}[2J\n"] {
        std::fs::write(folder.join("own.toml"), format!("{line}{SCENARIO}")).unwrap();
        let output = paceline(&folder, &["run", "own.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(!stderr(&output).contains("\u{1b}[2J"), "{:?}", stderr(&output));
    }
}

#[cfg(unix)]
#[test]
fn devices_and_foreign_files_are_refused_without_their_text() {
    let secret = "token = \"hunter2\"\nroot:hunter2:0\n";
    let folder = folder("input-foreign", &[("own.toml", SCENARIO), ("secret", secret), ("credentials.toml", secret)]);
    let refused = |set: &str, messages: &[&str]| {
        let output = paceline(&folder, &["run", "own.toml", "--set", set]);
        rejects(&output, messages);
        assert!(!stderr(&output).contains("hunter2"), "{}", stderr(&output));
    };
    for device in ["/dev/zero", "/dev/stdin", "."] {
        refused(&format!("path.forward.capacity.trace=\"{device}\""), &["no regular file"]);
    }
    refused("path.forward.capacity.trace=secret", &["secret, line 1", "no trace format"]);
    refused("path.forward.capacity.trace=credentials.toml", &["line 1", "no trace format"]);
    refused("constants=secret", &["no name of a file of constants", "constants.toml"]);
    refused("constants=credentials.toml", &["no name of a file of constants"]);
    contains_all(&stderr(&paceline(&folder, &["run", "/dev/zero"])), &["there is no scenario"]);
}
