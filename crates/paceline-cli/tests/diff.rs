//! `paceline diff` and stored groups as scripts and people meet them.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
over = { case = { link = "1 Mbit/s" } }
bounds = [0.3, 0.7]
"#;

/// A folder for one test, emptied, with the scenario.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("diff-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("own.toml"), SCENARIO).unwrap();
    folder
}

fn paceline(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paceline")).args(arguments).current_dir(folder).output().expect("it runs")
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn text(output: &Output, code: i32) -> &str {
    assert_eq!(output.status.code(), Some(code), "{}", talk(output));
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8").trim()
}

#[track_caller]
fn document(output: &Output, code: i32) -> Value {
    serde_json::from_str(text(output, code)).expect("stdout is exactly one JSON document")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

const RUN: [&str; 6] = ["run", "own.toml", "--repeats", "2", "--json", "--out"];

#[test]
fn runs_of_one_plan_are_stored_together() {
    let folder = folder("groups");
    let printed = document(&paceline(&folder, &[&RUN[..], &["results", "--set", "path.rtt=60 ms"]].concat()), 0);
    let half = ["results", "--case", "link=0.5 Mbit/s", "--controller", "fixed"];
    document(&paceline(&folder, &[&RUN[..], &half].concat()), 0);
    let results = folder.join("results");
    let manifest = read(&results.join("manifest.json"));
    let [first, second] = manifest["groups"].as_array().unwrap().as_slice() else { panic!("two: {manifest}") };
    assert_eq!((&first["controllers"], &second["controllers"]), (&json!(["fixed"]), &json!(["gcc-2016"])));
    assert_eq!((&first["case"], &second["seeds"]), (&json!({"link": "0.5 Mbit/s"}), &json!([1, 2])));
    for group in [first, second] {
        let file = read(&results.join("results").join(group["file"].as_str().unwrap()));
        for key in ["scenario", "world", "controllers", "case", "changes", "seeds", "runs"] {
            assert_eq!(file[key], group[key], "{key}");
        }
        for run in group["runs"].as_array().unwrap() {
            assert!(results.join("runs").join(run.as_str().unwrap()).join("run.json").is_file(), "{run}");
        }
    }
    let file = read(&results.join("results").join(second["file"].as_str().unwrap()));
    assert_eq!((&file["summary"], &file["assertions"]), (&printed["summary"], &printed["assertions"]));
    assert_eq!(file["command"], "paceline run own.toml --set 'path.rtt=60 ms' --seed 1 --repeats 2");
    assert_eq!((&file["version"], &file["changes"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(["path.rtt=60 ms"])));
    for (stored, printed) in file["per_run"].as_array().unwrap().iter().zip(printed["runs"].as_array().unwrap()) {
        assert_eq!((&stored["seed"], &stored["trace_hash"]), (&printed["seed"], &printed["trace_hash"]));
        assert_eq!(stored["metrics"]["utilization"], printed["link"]["utilization"]);
    }
    let cells: Vec<_> = file["cells"].as_array().unwrap().iter().map(|c| (&c["metric"], &c["n"])).collect();
    assert_eq!(json!(cells), json!([["utilization", 2], ["utilization", 2]]), "no ratio to another case");
    // The command is one that a shell runs, and it makes the same numbers.
    let command = file["command"].as_str().unwrap().replacen("paceline", env!("CARGO_BIN_EXE_paceline"), 1) + " --json";
    let again = Command::new("sh").args(["-c", &command]).current_dir(&folder).output().unwrap();
    assert_eq!(document(&again, 0)["summary"], printed["summary"]);
}

#[test]
fn a_result_does_not_differ_from_itself() {
    let folder = folder("itself");
    let compare = ["compare", "own.toml", "--controllers", "gcc-2016,fixed", "--repeats", "2", "--json", "--out"];
    for out in ["one", "two"] {
        document(&paceline(&folder, &[&compare[..], &[out]].concat()), 0);
    }
    for after in ["one", "two"] {
        let output = paceline(&folder, &["diff", "one", after]);
        assert_eq!(text(&output, 0), "nothing moved: 4 runs, 4 hashes equal");
        let found = document(&paceline(&folder, &["diff", "one", after, "--json"]), 0);
        assert_eq!((&found["moved"], &found["hashes_equal"], &found["groups"]), (&json!(false), &json!(4), &json!([])));
    }
}

#[test]
fn one_constant_changed_is_named_with_what_it_moves() {
    let folder = folder("changed");
    let grown = "[[assert]]\nid = \"grows\"\nmetric = \"utilization\"\nbounds = [0.42, inf]\n";
    fs::write(folder.join("own.toml"), format!("{SCENARIO}{grown}")).unwrap();
    document(&paceline(&folder, &[&RUN[..], &["before"]].concat()), 0);
    let set = ["after", "--set", "flow.video.config.eta=1.03"];
    document(&paceline(&folder, &[&RUN[..], &set].concat()), 1);
    let output = paceline(&folder, &["diff", "before", "after"]);
    let said = text(&output, 1);
    let parts = [
        "test/diff  [link=1 Mbit/s]  gcc-2016",
        "change flow.video.config.eta: – → 1.03",
        "0 of 2 hashes equal; moved: seed 1, 2",
        "throughput_bps",
        "grows: utilization",
        "reproduced → not",
        "moved: 2 runs, 0 hashes equal; 1 of 3 moved values change verdict",
    ];
    for part in parts {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 120), "{said}");
    let found = document(&paceline(&folder, &["diff", "before", "after", "--json"]), 1);
    let group = &found["groups"][0];
    assert_eq!((&found["moved"], &group["moved_seeds"]), (&json!(true), &json!([1, 2])));
    let used = group["metrics"].as_array().unwrap().iter().find(|m| m["metric"] == "utilization").unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    // Growing more slowly leaves more of the link unused.
    assert!(number(&used["after"]) < number(&used["before"]), "{used}");
    let difference = number(&used["after"]) - number(&used["before"]);
    assert!((number(&used["difference"]["mean"]) - difference).abs() < 1e-12 && used["difference"]["n"] == 2, "{used}");
    assert!(!group["cells"].as_array().unwrap().is_empty());

    // A run more on one side.
    document(&paceline(&folder, &["run", "own.toml", "--repeats", "3", "--json", "--out", "more"]), 0);
    let output = paceline(&folder, &["diff", "before", "more"]);
    assert!(text(&output, 1).contains("2 of 2 hashes equal\n  1 run only in the second"), "{}", text(&output, 1));
    // Another controller is no pair.
    document(&paceline(&folder, &[&RUN[..], &["other", "--controller", "fixed"]].concat()), 0);
    let output = paceline(&folder, &["diff", "before", "other"]);
    let said = text(&output, 1);
    assert!(said.contains("only in before: test/diff  [link=1 Mbit/s]  gcc-2016 (2 runs)"), "{said}");
    assert!(said.contains("only in other: test/diff  [link=1 Mbit/s]  fixed (2 runs)"), "{said}");
}

#[test]
fn what_is_no_result_is_exit_2() {
    let folder = folder("refused");
    document(&paceline(&folder, &[&RUN[..], &["good"]].concat()), 0);
    let file = fs::read_dir(folder.join("good/results")).unwrap().next().unwrap().unwrap().path();
    for broken in ["rows", "damaged", "board", "empty"] {
        fs::create_dir(folder.join(broken)).unwrap();
    }
    fs::write(folder.join("rows/manifest.json"), r#"{"format": "paceline-results", "format_version": 1, "runs": []}"#)
        .unwrap();
    fs::copy(folder.join("good/manifest.json"), folder.join("damaged/manifest.json")).unwrap();
    fs::create_dir(folder.join("damaged/results")).unwrap();
    fs::write(folder.join("damaged/results").join(file.file_name().unwrap()), "{\"scenario\": 7}").unwrap();
    fs::write(folder.join("board/scoreboard.json"), "{\"version\": \"1\"}").unwrap();
    for (path, says) in [
        ("none", "`none` holds neither results nor a scoreboard"),
        ("empty", "`empty` holds neither results nor a scoreboard"),
        ("rows", "`rows` lists no group of runs"),
        ("damaged", "is damaged: invalid type: integer `7`"),
        ("board", "scoreboard.json` is damaged: missing field `experiments`"),
        ("own.toml", "`own.toml` is damaged: expected"),
    ] {
        for order in [["good", path], [path, "good"]] {
            let output = paceline(&folder, &["diff", order[0], order[1]]);
            let talk = talk(&output);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{talk}");
            assert!(talk.contains(says) && talk.contains("--out DIR"), "`{says}` is not in\n{talk}");
        }
    }
}

#[test]
fn compare_pairs_seeds_and_says_what_is_told_apart() {
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
    assert_eq!(difference["apart"], json!(mean.abs() > ci));
    let compared = fixed["metrics"].as_object().unwrap();
    assert_eq!(fixed["metrics_compared"], compared.len());
    let apart = compared.values().filter(|m| m["apart"] == true).count();
    assert_eq!(fixed["told_apart"], apart);

    let output = compare("gcc-2016,fixed", &["--repeats", "3"]);
    let said = text(&output, 0);
    assert!(said.contains("fixed against gcc-2016, seed by seed") && said.contains("told apart from 0"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 120), "{said}");
    // One seed has no interval; before its first report a controller decides as another of its kind.
    let output = compare("gcc-2016,fixed", &["--repeats", "1"]);
    assert!(text(&output, 0).contains("one seed says nothing of how sure a difference is"), "{}", text(&output, 0));
    let wide = ["--repeats", "2", "--set", "duration=1s"];
    let output = compare("gcc-2016-static,gcc-2016", &wide);
    let same =
        "gcc-2016 against gcc-2016-static, seed by seed: no difference, all 2 runs are the same decision for decision";
    assert!(text(&output, 0).contains(same), "{}", text(&output, 0));
}
