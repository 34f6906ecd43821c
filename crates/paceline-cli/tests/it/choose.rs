// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline choose`: one answer for several paths, on a page; hints for wrong input.

use super::{document, folder, paceline, rejects, stderr, stdout};
use serde_json::Value;
use std::fs;

const TRACE: &str = "time_s,rate_mbps\n0,2\n5,0\n6,2\n20,2\n";

#[test]
fn answer_is_printed_and_written_as_a_page() {
    let folder = folder("choose", &[("up.csv", TRACE)]);
    let output =
        paceline(&folder, &["choose", "--trace", "up.csv", "--also", "dsl", "--repeats", "2", "--duration", "20 s"]);
    let text = stdout(&output, 0);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // The verdict and the ranking are on the first screen.
    let screen: Vec<&str> = text.lines().take(20).collect();
    assert!(screen.iter().any(|line| line.contains("of 100")) && screen.join("").contains("causal"), "{text}");
    assert!(stderr(&output).contains("the page is choice.html"));
    assert!(fs::read_to_string(folder.join("choice.html")).unwrap().contains("<h1>"));
    let again =
        "--trace up.csv --also dsl --duration '20 s' --controllers googcc,scream-v2,nada,drc --seed 1 --repeats 2";
    let again = format!("paceline choose {again}");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").ends_with(&again), "{text}");
}

#[test]
fn one_scenario_is_ranked_as_by_compare() {
    let folder = folder("choose-compare", &[]);
    let same = ["mmsys16/table1", "--controllers", "nada,googcc,causal", "--repeats", "3"];
    let run = |command: &str| document(&paceline(&folder, &[&[command][..], &same, &["--json"]].concat()), 0);
    let (chosen, compared): (Value, Value) = (run("choose"), run("compare"));
    for key in ["ranking", "verdict"] {
        assert_eq!(chosen[key], compared["table"][key]);
        assert_eq!(chosen["paths"][0]["table"][key], compared["table"][key]);
    }
    assert!(chosen["limits"][0].as_str().unwrap().contains("this path alone"), "{}", chosen["limits"]);
}

#[test]
fn wrong_input_has_a_hint() {
    let folder = folder("choose-wrong", &[("up.csv", TRACE), ("bad.csv", "time_s,rate_mbps\n0,2\nx,1\n")]);
    for (arguments, message, hint) in [
        (&[][..], "there is no path to choose for", "--trace FILE"),
        (&["adls"], "no preset, scenario or file `adls`", "did you mean `adsl"),
        (&["--trace", "none.up"], "cannot read none.up", "paceline list traces"),
        (&["--trace", "up.csv,"], "a part of it is empty", "FILE,BACK"),
        (&["--trace", "bad.csv"], "bad.csv, line 3", "help: "),
        (&["dsl", "--video", "721p"], "no video `721p`", "720p30"),
        (&["dsl", "--also", "dsl"], "two paths have the name `dsl`", "NAME=FILE"),
        (&["mmsys16/table1", "--video", "720p"], "has media of its own", "leave them out"),
        (&["dsl", "--controllers", "nada,"], "empty", "nada"),
        (&["dsl", "--use", "talk"], "talk", "conversation"),
    ] {
        rejects(&paceline(&folder, &[&["choose"], arguments].concat()), &[message, hint]);
        assert!(!folder.join("choice.html").exists());
    }
}
