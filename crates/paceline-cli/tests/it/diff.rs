// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline diff`, and the groups of runs that `--out` stores.

use super::{contains_all, document, one_line, paceline, rejects, stdout, stored};
use paceline_lab::results::Store;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SCENARIO: &str = r#"id = "test/diff"
title = "A call on one link"
duration = "20s"
[path]
rtt = "40ms"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[case]]
label = { link = "1 Mbit/s" }
[[case]]
label = { link = "0.5 Mbit/s" }
set = { "path.forward.capacity" = "500kbps" }
[[expect]]
metric = "utilization"
published = 0.84
claim = "busy"
[[assert]]
id = "busy"
metric = "utilization"
bounds = [-inf, 1]
[[assert]]
id = "less"
case = { link = "0.5 Mbit/s" }
metric = "throughput_bps"
relative_to = { case = { link = "1 Mbit/s" } }
bounds = [0.3, 0.7]
"#;

/// Returns an empty folder with the scenario.
fn folder(name: &str) -> PathBuf {
    super::folder(&format!("diff-{name}"), &[("own.toml", SCENARIO)])
}

const RUN: [&str; 6] = ["run", "own.toml", "--repeats", "2", "--json", "--out"];

#[test]
fn out_stores_the_runs_of_a_scenario_as_a_group() {
    let folder = folder("groups");
    let printed = document(&paceline(&folder, &[&RUN[..], &["results", "--set", "path.rtt=60 ms"]].concat()), 0);
    let half = ["results", "--case", "link=0.5 Mbit/s", "--controller", "fixed"];
    document(&paceline(&folder, &[&RUN[..], &half].concat()), 0);
    let results = folder.join("results");
    let groups = stored(&results).groups.into_iter().map(|group| serde_json::to_value(&group).unwrap());
    let groups: Vec<Value> = groups.collect();
    let [first, file] = groups.as_slice() else { panic!("two: {groups:?}") };
    assert_eq!((&first["controllers"], &file["controllers"]), (&json!(["fixed"]), &json!(["gcc-2016"])));
    assert_eq!((&first["case"], &file["seeds"]), (&json!({"link": "0.5 Mbit/s"}), &json!([1, 2])));
    for run in groups.iter().flat_map(|group| group["runs"].as_array().unwrap()) {
        assert!(results.join("runs").join(run.as_str().unwrap()).is_dir(), "{run}");
    }
    assert_eq!((&file["summary"], &file["assertions"]), (&printed["summary"], &printed["assertions"]));
    assert_eq!(file["command"], "paceline run own.toml --set 'path.rtt=60 ms' --seed 1 --repeats 2");
    assert_eq!((&file["version"], &file["changes"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(["path.rtt=60 ms"])));
    for (stored, printed) in file["per_run"].as_array().unwrap().iter().zip(printed["runs"].as_array().unwrap()) {
        assert_eq!((&stored["seed"], &stored["trace_hash"]), (&printed["seed"], &printed["trace_hash"]));
        assert_eq!(stored["metrics"]["utilization"], printed["link"]["utilization"]);
    }
    let cells: Vec<_> = file["cells"].as_array().unwrap().iter().map(|c| (&c["metric"], &c["n"])).collect();
    // With changes, published values do not apply. A ratio to another case is not a cell.
    assert_eq!(json!(cells), json!([["utilization", 2]]));
    // A shell can run the command, and it gives the same numbers.
    let command = file["command"].as_str().unwrap().replacen("paceline", env!("CARGO_BIN_EXE_paceline"), 1) + " --json";
    let again = Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap();
    assert_eq!(document(&again, 0)["summary"], printed["summary"]);
}

#[test]
fn equal_results_have_no_difference() {
    let folder = folder("itself");
    let compare = ["compare", "own.toml", "--controllers", "gcc-2016,fixed", "--repeats", "2", "--json", "--out"];
    for out in ["one", "two"] {
        document(&paceline(&folder, &[&compare[..], &[out]].concat()), 0);
    }
    for after in ["one", "two"] {
        let output = paceline(&folder, &["diff", "one", after]);
        assert_eq!(stdout(&output, 0).trim(), "no difference: 4 runs, 4 hashes equal");
        let found = document(&paceline(&folder, &["diff", "one", after, "--json"]), 0);
        assert_eq!((&found["moved"], &found["hashes_equal"], &found["groups"]), (&json!(false), &json!(4), &json!([])));
    }
}

#[test]
fn a_changed_parameter_is_named_with_its_effects() {
    let folder = folder("changed");
    let grown = "[[assert]]\nid = \"grows\"\nmetric = \"utilization\"\nbounds = [0.39, inf]\n";
    fs::write(folder.join("own.toml"), format!("{SCENARIO}{grown}")).unwrap();
    document(&paceline(&folder, &[&RUN[..], &["before"]].concat()), 0);
    let set = ["after", "--set", "flow.video.config.eta=1.01"];
    document(&paceline(&folder, &[&RUN[..], &set].concat()), 1);
    let output = paceline(&folder, &["diff", "before", "after"]);
    let text = stdout(&output, 1);
    let parts = [
        "test/diff [link=1 Mbit/s] gcc-2016",
        "change flow.video.config.eta: – → 1.01",
        "0 of 2 hashes equal; changed: seed 1, 2",
        "throughput_bps",
        "grows:",
        "reproduced → not",
        "Published values apply to the scenario as written: only the first has them (1).",
        "different: 2 runs, 0 hashes equal; the verdict changed in 1 of 3 changed cells",
    ];
    contains_all(&one_line(text), &parts);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let found = document(&paceline(&folder, &["diff", "before", "after", "--json"]), 1);
    let group = &found["groups"][0];
    assert_eq!((&found["moved"], &group["moved_seeds"]), (&json!(true), &json!([1, 2])));
    let used = group["metrics"].as_array().unwrap().iter().find(|m| m["metric"] == "utilization").unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    // Slower growth leaves more of the link unused.
    assert!(number(&used["after"]) < number(&used["before"]), "{used}");
    let difference = number(&used["after"]) - number(&used["before"]);
    assert!((number(&used["difference"]["mean"]) - difference).abs() < 1e-12 && used["difference"]["n"] == 2, "{used}");
    assert!(!group["cells"].as_array().unwrap().is_empty());

    // One side has another run.
    document(&paceline(&folder, &["run", "own.toml", "--repeats", "3", "--json", "--out", "more"]), 0);
    let output = paceline(&folder, &["diff", "before", "more"]);
    contains_all(stdout(&output, 1), &["2 of 2 hashes equal\n  1 run only in the second"]);
    // Runs of different controllers are not compared.
    document(&paceline(&folder, &[&RUN[..], &["other", "--controller", "fixed"]].concat()), 0);
    let output = paceline(&folder, &["diff", "before", "other"]);
    let before = "only in before: test/diff  [link=1 Mbit/s]  gcc-2016 (2 runs)";
    contains_all(stdout(&output, 1), &[before, "only in other: test/diff  [link=1 Mbit/s]  fixed (2 runs)"]);
}

#[test]
fn rejects_folders_without_results() {
    let folder = folder("refused");
    document(&paceline(&folder, &[&RUN[..], &["good"]].concat()), 0);
    for broken in ["damaged", "board", "empty"] {
        fs::create_dir(folder.join(broken)).unwrap();
    }
    Store::create(&folder.join("rows")).unwrap();
    let mut database = fs::read(folder.join("good/results.sqlite")).unwrap();
    let at = database.windows(9).position(|bytes| bytes == b"\"summary\"").unwrap();
    database[at + 1] = b'S';
    fs::write(folder.join("damaged/results.sqlite"), database).unwrap();
    fs::write(folder.join("board/scoreboard.json"), "{\"version\": \"1\"}").unwrap();
    for (path, message) in [
        ("none", "`none` holds neither results nor a scoreboard"),
        ("empty", "`empty` holds neither results nor a scoreboard"),
        ("rows", "`rows` lists no group of runs"),
        ("damaged", "is not as it was written"),
        ("board", "scoreboard.json` is damaged: missing field `experiments`"),
        ("own.toml", "`own.toml` is damaged: expected"),
    ] {
        for order in [["good", path], [path, "good"]] {
            rejects(&paceline(&folder, &["diff", order[0], order[1]]), &[message, "--out DIR"]);
        }
    }
}

#[test]
fn compare_pairs_seeds_and_marks_significant_differences() {
    let folder = folder("compare");
    let compare = |controllers: &str, more: &[&str]| {
        paceline(&folder, &[&["compare", "own.toml", "--controllers", controllers], more].concat())
    };
    let found = document(&compare("gcc-2016,fixed,gcc-2016-static", &["--repeats", "3", "--json"]), 0);
    let [fixed, other] = found["differences"].as_array().unwrap().as_slice() else { panic!("two: {found}") };
    assert_eq!((&fixed["controller"], &fixed["baseline"]), (&json!("fixed"), &json!("gcc-2016")));
    assert_eq!((&other["controller"], &other["seeds"]), (&json!("gcc-2016-static"), &json!(3)));
    let used = |controller: usize, seed: usize| {
        found["controllers"][controller]["result"]["runs"][seed]["link"]["utilization"].as_f64().unwrap()
    };
    let mean = (0..3).map(|seed| used(1, seed) - used(0, seed)).sum::<f64>() / 3.0;
    let difference = &fixed["metrics"]["utilization"];
    assert!((difference["mean"].as_f64().unwrap() - mean).abs() < 1e-12 && mean.abs() > 0.01, "{difference}");
    let (ci, std) = (difference["ci95"].as_f64().unwrap(), difference["std"].as_f64().unwrap());
    // t(2) = 4.303 over root 3.
    assert!((ci - 4.303 / 3.0_f64.sqrt() * std).abs() < 1e-9, "{difference}");
    assert_eq!(difference["significant"], json!(mean.abs() > ci));
    let compared = fixed["metrics"].as_object().unwrap();
    assert_eq!(fixed["metrics_compared"], compared.len());
    let significant = compared.values().filter(|m| m["significant"] == true).count();
    assert_eq!(fixed["significant"], significant);

    let output = compare("gcc-2016,fixed", &["--repeats", "3"]);
    let text = stdout(&output, 0);
    contains_all(text, &["better, - worse than gcc-2016", "3 runs of each controller", "`gcc-2016` ", "scale"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let ranking = found["table"]["ranking"].as_array().unwrap();
    let of = |n: usize| (ranking[n]["controller"].as_str().unwrap(), ranking[n]["place"].as_u64());
    assert_eq!(of(2), ("fixed", None));
    assert_eq!([of(0).1, of(1).1, ranking[0]["difference"].as_u64()], [Some(1), Some(2), None]);
    let mean = |controller: usize| &found["controllers"][controller]["result"]["summary"]["score"];
    assert_eq!(&ranking[2]["score"], mean(1));
    // One seed has no interval. Before the first report, both variants of GCC make the same decisions.
    let output = compare("gcc-2016,gcc-2016-static", &["--repeats", "1"]);
    contains_all(&one_line(stdout(&output, 0)), &["One run gives no interval; `--repeats 10` gives one."]);
    let output = compare("gcc-2016-static,gcc-2016", &["--repeats", "2", "--set", "duration=1s"]);
    contains_all(stdout(&output, 0), &["gcc-2016 makes the same decisions as gcc-2016-static in each run."]);
}
