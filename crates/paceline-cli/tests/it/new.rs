// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline new`.

use super::{contains_all, document, folder, paceline, rejects, stdout};

#[test]
fn writes_a_scenario_that_runs_and_replaces_no_file() {
    let folder = folder("new", &[]);
    let made = paceline(&folder, &["new", "--traffic", "download", "--duration", "5 s"]);
    contains_all(stdout(&made, 0), &["paceline run call.toml", "paceline compare call.toml --controllers"]);
    let text = std::fs::read_to_string(folder.join("call.toml")).unwrap();
    contains_all(
        &text,
        &["preset = \"lte-drive-up\"", "source = \"720p30\"", "direction = \"reverse\"", "# A TCP flow."],
    );
    let run = document(&paceline(&folder, &["run", "call.toml", "--json"]), 0);
    assert_eq!(run["scenario"], "my/call");
    rejects(&paceline(&folder, &["new"]), &["call.toml exists", "paceline new FILE.toml"]);
    assert_eq!(std::fs::read_to_string(folder.join("call.toml")).unwrap(), text);
}

#[test]
fn prints_the_chosen_parts_and_refuses_unknown_ones() {
    let folder = folder("new-print", &[]);
    let options = ["--path", "adsl-down", "--source", "screenshare", "--audio", "none", "--controller", "scream"];
    let printed = paceline(&folder, &[&["new", "-"], &options[..]].concat());
    let text = stdout(&printed, 0);
    contains_all(text, &["adsl-down", "screenshare", "controller = \"scream\""]);
    assert!(!text.contains("audio = ") && std::fs::read_dir(&folder).unwrap().count() == 0);
    rejects(&paceline(&folder, &["new", "--path", "adsl"]), &["adsl"]);
    rejects(&paceline(&folder, &["new", "-", "--duration", "long"]), &["long"]);
}
