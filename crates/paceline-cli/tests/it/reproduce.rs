// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline reproduce`, and cases in `paceline run`.

use super::{contains_all, document, keys, one_line, paceline, rejects, stderr, stdout};
use paceline_lab::results::database::Database;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A call at a constant rate: half or a quarter of the capacity.
const SCENARIO: &str = r#"id = "paper/rates"
title = "Two rates"
duration = "10s"
repeats = 2
constants = "constants.toml"

[path.forward]
capacity = "1Mbps"

[[flow]]
id = "call"
controller = "fixed"
encoder = { source = "ideal" }
config = { rate_bps = 900000 }

[[case]]
label = { rate = "half" }
set = { "flow.call.config.rate_bps" = 500000 }

[[case]]
label = { rate = "quarter" }
set = { "flow.call.config.rate_bps" = 250000 }

[[expect]]
metric = "utilization"
case = { rate = "half" }
published = 0.52

[[expect]]
metric = "utilization"
case = { rate = "quarter" }
published = 0.85
claim = "half-is-twice-a-quarter"
note = "the paper sends more"
reproduced_with = ["flow.call.config.rate_bps=850000"]

[[expect]]
metric = "throughput_bps"
case = { rate = "quarter" }
flow = "call"
window = ["2s", "8s"]
published = 100000

[[expect]]
metric = "rtt_p50_ms"
case = { rate = "half" }
published = 52

[[assert]]
id = "half-is-twice-a-quarter"
metric = "throughput_bps"
case = { rate = "half" }
relative_to = { case = { rate = "quarter" } }
bounds = [1.9, 2.1]

[[assert]]
id = "loses-little"
metric = "loss_ratio"
bounds = [-inf, 0.1]
"#;

const CONSTANTS: &str = r#"paper = "paper"
seed = ["nothing"]

[[constant]]
id = "rtt"
key = "path.rtt"
value = "50ms"
range = ["40ms", "200ms"]
why = "the paper does not say"

[[constant]]
id = "receive-window"
key = "tcp.receive_window"
value = "4 MB"
range = ["1 MB", "6 MB"]
why = "the paper does not say"
"#;

fn folder(name: &str) -> PathBuf {
    super::folder(&format!("reproduce-{name}"), &[("rates.toml", SCENARIO), ("constants.toml", CONSTANTS)])
}

#[test]
fn cells_have_the_documented_fields_and_verdicts() {
    let folder = folder("contract");
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 0);
    assert_eq!(keys(&report), ["experiments", "papers", "summary"].into());
    let [experiment] = report["experiments"].as_array().unwrap().as_slice() else { panic!("one experiment") };
    assert_eq!((&experiment["id"], &experiment["title"]), (&json!("paper/rates"), &json!("Two rates")));
    let assumed = json!([{ "id": "rtt", "key": "path.rtt", "value": "\"50ms\"", "why": "the paper does not say" }]);
    assert_eq!(experiment["assumed"], assumed);
    let cells = experiment["cells"].as_array().unwrap();
    let documented = "metric controller world case flow window_s published tolerance measured ci95 \
                      n null_sender claim verdict note";
    for cell in cells {
        assert!(documented.split(' ').all(|key| keys(cell).contains(key)), "{cell}");
        assert_eq!((&cell["world"], &cell["controller"], &cell["n"]), (&json!("sim"), &json!("fixed"), &json!(2)));
        assert!(cell["measured"].is_number() && cell["ci95"].is_number() && cell["null_sender"].is_number(), "{cell}");
        assert_eq!(cell["note"].is_null(), cell["verdict"] == "reproduced", "{cell}");
        assert_eq!(cell["check"], if cell["verdict"] == "reproduced" { "holds" } else { "fails" }, "{cell}");
        assert!(cell["further_runs"].is_null(), "{cell}");
    }
    let verdicts: Vec<_> = cells.iter().map(|c| (&c["metric"], &c["case"]["rate"], &c["verdict"])).collect();
    let wanted = json!([
        ["utilization", "half", "reproduced"],
        ["rtt_p50_ms", "half", "reproduced"],
        ["throughput_bps", "half", "reproduced"],
        ["loss_ratio", "half", "reproduced"],
        ["utilization", "quarter", "direction"],
        ["throughput_bps", "quarter", "not"],
        ["loss_ratio", "quarter", "reproduced"],
    ]);
    assert_eq!(json!(verdicts), wanted);
    // The null sender uses 85 % in both cases, so it reproduces 0.85.
    let [half, quarter, not, claim] = [0, 4, 5, 2].map(|index| &cells[index]);
    assert_eq!(
        (&half["tolerance"], &half["flow"], &half["window_s"]),
        (&json!(0.05), &json!(null), &json!([0.0, 10.0]))
    );
    assert_eq!((&half["null_reproduces"], &quarter["null_reproduces"]), (&json!(false), &json!(true)));
    assert!((0.80..0.87).contains(&quarter["null_sender"].as_f64().unwrap()), "{quarter}");
    assert_eq!(quarter["claim"], "half-is-twice-a-quarter");
    let command = "paceline run paper/rates --case 'rate=quarter' --repeats 2 --set 'flow.call.config.rate_bps=850000'";
    assert_eq!(quarter["note"], format!("the paper sends more; moved into tolerance by `{command}`"));
    assert_eq!((&quarter["moved"]["verdict"], &half["moved"]), (&json!("reproduced"), &Value::Null));
    assert!((0.84..0.86).contains(&quarter["moved"]["measured"].as_f64().unwrap()), "{quarter}");
    assert_eq!((&not["flow"], &not["window_s"]), (&json!("call"), &json!([2.0, 8.0])));
    assert_eq!((&not["note"], &not["tolerance"]), (&json!("cause not found"), &json!(15000.0)));
    assert_eq!((&claim["published"], &claim["bounds"]), (&Value::Null, &json!([1.9, 2.1])));
    assert_eq!(
        (&claim["claim"], &claim["over"]["case"]["rate"]),
        (&json!("half-is-twice-a-quarter"), &json!("quarter"))
    );
    assert!((1.9..2.1).contains(&claim["measured"].as_f64().unwrap()), "{claim}");
    assert!((0.9..1.1).contains(&claim["null_sender"].as_f64().unwrap()), "both at 85 %: {claim}");
    assert_eq!(cells[3]["bounds"], json!([null, 0.1]), "a missing bound is null");

    let summary = &report["summary"];
    let tally = |t: &Value| ["cells", "reproduced", "direction", "not"].map(|key| t[key].as_u64().unwrap());
    assert_eq!(tally(summary), [7, 5, 1, 1]);
    assert_eq!(tally(&summary["published"]), [4, 2, 1, 1]);
    assert_eq!(tally(&summary["published_without_null"])[0], tally(&summary["published"])[0] - 2, "0.85 and the RTT");
    let counts = ["claims", "claims_held", "claims_without_null", "claims_held_without_null"];
    assert_eq!(counts.map(|key| summary[key].as_u64().unwrap()), [2, 2, 1, 1]);
}

#[test]
fn conclusions_hold_with_their_evidence_or_with_a_change() {
    let folder = folder("conclusions");
    let conclusion = |text: &str, evidence: &str| {
        format!(
            "[[conclusion]]\ntext = \"{text}\"\nplace = \"section 1\"\nevidence = [{{ experiment = \"rates\", {evidence} }}]\n"
        )
    };
    let write = |last: &str| {
        let all = [
            conclusion("Half is more", r#"claim = "half-is-twice-a-quarter""#),
            conclusion("A quarter fills the link", r#"metric = "utilization", case = { rate = "quarter" }"#),
            conclusion("A quarter is slow", last),
        ];
        fs::write(folder.join("conclusions.toml"), format!("paper = \"paper\"\n{}", all.join(""))).unwrap();
    };
    write(r#"metric = "throughput_bps""#);
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 0);
    let of = |key: &str| report["conclusions"].as_array().unwrap().iter().map(|c| c[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("verdict"), [json!("holds"), json!("holds if"), json!("does not hold")]);
    assert_eq!(of("conditions"), [json!([]), json!(["flow.call.config.rate_bps=850000"]), json!([])]);
    let shown = paceline(&folder, &["reproduce", "rates.toml"]);
    let shown = one_line(stdout(&shown, 0));
    contains_all(
        &shown,
        &["conclusions of paper", "✓ holds: Half is more (section 1)", "✗ does not hold: A quarter is slow"],
    );
    write(r#"claim = "is-slow""#);
    rejects(&paceline(&folder, &["reproduce", "rates.toml"]), &["no cell of `is-slow`", "`loses-little`"]);
}

/// The published values stay, and remarks on the paper's controller do not apply. `--resume` keeps finished runs.
#[test]
fn other_controllers_replace_that_of_the_paper() {
    let folder = folder("under");
    let run = || {
        let more = ["--controllers", "nada,gcc-2016", "--json", "--out", "out", "--resume"];
        let output = paceline(&folder, &[&["reproduce", "rates.toml"][..], &more].concat());
        let runs = Database::open(&folder.join("out")).unwrap().run_count().unwrap();
        (document(&output, 1)["experiments"].clone(), stderr(&output).to_owned(), runs)
    };
    let (experiments, said, runs) = run();
    let under: Vec<_> = experiments.as_array().unwrap().iter().map(|experiment| &experiment["under"]).collect();
    assert_eq!(under, [&json!("nada"), &json!("gcc-2016")]);
    for experiment in experiments.as_array().unwrap() {
        let cells = experiment["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell["controller"] == experiment["under"]), "{experiment}");
        assert_eq!((cells.len(), &cells[4]["published"]), (7, &json!(0.85)));
        // The remark on 0.85 is on the paper's controller.
        assert!(!cells[4].to_string().contains("the paper sends more"), "{}", cells[4]);
    }
    assert!(runs >= 8 && !said.contains("finished runs"), "{runs} {said}");
    let (again, said, after) = run();
    assert_eq!((again, after), (experiments, runs));
    contains_all(&said, &[&format!("{runs} finished runs are in the folder")]);
    rejects(&paceline(&folder, &["reproduce", "rates.toml", "--resume"]), &["--out"]);
}

#[test]
fn targets_are_folders_files_or_ids() {
    let folder = folder("folder");
    let report = document(&paceline(&folder, &["reproduce", ".", "--repeats", "3", "--json"]), 0);
    assert_eq!(report["experiments"].as_array().unwrap().len(), 1, "the file of constants is not an experiment");
    assert!(report["experiments"][0]["cells"].as_array().unwrap().iter().all(|c| c["n"] == 3));
    let one = document(&paceline(&folder, &["reproduce", "rates.toml", "--repeats", "1", "--json"]), 0);
    let cell = &one["experiments"][0]["cells"][0];
    assert_eq!((&cell["n"], &cell["ci95"], &cell["verdict"]), (&json!(1), &Value::Null, &json!("not")), "no interval");
    assert_eq!((&cell["check"], &cell["further_runs"]), (&json!("undecided"), &Value::Null));
    // The catalogue, by id and by paper.
    let table1 = document(&paceline(&folder, &["reproduce", "mmsys16/table1", "--repeats", "3", "--json"]), 0);
    assert_eq!(table1["experiments"][0]["id"], "mmsys16/table1");
    assert_eq!(table1["experiments"][0]["cells"][0]["case"], json!({}));
}

#[test]
fn text_shows_tables_claims_and_notes() {
    let folder = folder("text");
    let output = paceline(&folder, &["reproduce", "rates.toml"]);
    let text = stdout(&output, 0);
    let parts = [
        "paper/rates Two rates",
        "published",
        "null",
        "verdict",
        "reproduced",
        "direction",
        "throughput_bps over",
        "× 2.100",
        "holds",
        "· utilization, rate=quarter, 0 to 10 s: the paper sends more; moved into tolerance by `paceline run",
        "shows the effect): path.rtt = \"50ms\"",
        "* the null sender",
        "published values 4: 2 reproduced, 1 in direction, 1 not",
        "claims 2: 2 hold",
        "published values that the null sender does not reproduce",
    ];
    contains_all(&one_line(text), &parts);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn a_failed_claim_is_exit_code_1() {
    let folder = folder("fails");
    fs::write(folder.join("rates.toml"), SCENARIO.replace("[1.9, 2.1]", "[2.5, 3.0]")).unwrap();
    let output = paceline(&folder, &["reproduce", "rates.toml"]);
    contains_all(stdout(&output, 1), &["fails", "claims 2: 1 hold"]);
    // The note states that a change does not move the value into tolerance.
    let other = SCENARIO.replace("rate_bps=850000", "rate_bps=700000");
    fs::write(folder.join("other.toml"), other).unwrap();
    let other = document(&paceline(&folder, &["reproduce", "other.toml", "--json"]), 0);
    let cell = &other["experiments"][0]["cells"][4];
    assert!(cell["note"].as_str().unwrap().contains("; not moved into tolerance by"), "{cell}");
    assert!((0.69..0.71).contains(&cell["moved"]["measured"].as_f64().unwrap()), "{cell}");
    // If the claim fails, the value is not reproduced in direction.
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 1);
    assert_eq!(report["experiments"][0]["cells"][4]["verdict"], "not");
}

#[test]
fn sensitivity_lists_the_verdicts_that_depend_on_a_constant() {
    let folder = folder("sensitivity");
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--sensitivity", "--json"]), 0);
    assert_eq!(keys(&report), ["constants", "summary"].into());
    let [rtt] = report["constants"].as_array().unwrap().as_slice() else { panic!("one constant applies: {report}") };
    assert_eq!((&rtt["paper"], &rtt["id"], &rtt["key"]), (&json!("paper"), &json!("rtt"), &json!("path.rtt")));
    let [low, high] = rtt["ends"].as_array().unwrap().as_slice() else { panic!("two ends") };
    assert_eq!((&low["value"], &low["cells"], &low["changed"]), (&json!("\"40ms\""), &json!(7), &json!(0)));
    assert_eq!((&high["value"], &high["changed"]), (&json!("\"200ms\""), &json!(1)));
    let change = &high["changes"][0];
    assert_eq!(
        (&change["metric"], &change["from"], &change["to"]),
        (&json!("rtt_p50_ms"), &json!("reproduced"), &json!("not"))
    );
    assert_eq!(
        report["summary"],
        json!({ "constants": 1, "constants_that_matter": 1, "cells": 7, "cells_that_change": 1 })
    );
    let output = paceline(&folder, &["reproduce", "rates.toml", "--sensitivity", "--repeats", "2"]);
    let text = stdout(&output, 0);
    assert!(text.contains("1 of 1 constants change a verdict; 1 of 7 cells depend on one"), "{text}");
}

#[test]
fn run_selects_a_case_and_list_shows_them() {
    let folder = folder("cases");
    let run = |more: &[&str]| paceline(&folder, &[&["run", "rates.toml", "--json"], more].concat());
    let half = document(&run(&["--case", "rate=half"]), 0);
    let throughput = |run: &Value| run["summary"]["throughput_bps"]["mean"].as_f64().unwrap();
    assert!((0.45e6..0.55e6).contains(&throughput(&half)));
    assert_eq!(half["expectations"].as_array().unwrap().len(), 2);
    assert_eq!(half["assertions"].as_array().unwrap().len(), 1, "the other compares cases");
    let written = document(&run(&[]), 0);
    assert!(throughput(&written) > 0.85e6);
    let notes = written["notes"].as_array().unwrap();
    assert!(notes.iter().any(|n| n.as_str().unwrap().contains("`paceline reproduce rates.toml`")), "{notes:?}");
    // Labels are separated by a space or a comma, or given in two options.
    let hash = |case: &[&str]| {
        let short = ["run", "tcp/ns3", "--set", "duration=3s", "--json"];
        document(&paceline(&folder, &[&short[..], case].concat()), 0)["runs"][0]["trace_hash"].clone()
    };
    let linux = hash(&["--case", "congestion=cubic profile=linux"]);
    assert_eq!(linux, hash(&["--case", "profile=linux,congestion=cubic"]));
    assert_eq!(linux, hash(&["--case", "profile=linux", "--case", "congestion=cubic"]));
    assert_ne!(linux, hash(&["--case", "congestion=cubic profile=rfc"]));
    let list = document(&paceline(&folder, &["list", "scenarios", "--json"]), 0);
    let scenarios = list["scenarios"].as_array().unwrap();
    assert!(scenarios.iter().all(|s| s["cases"].is_array() && !s["name"].as_str().unwrap().ends_with("constants")));
}

#[test]
fn bad_targets_and_cases_are_exit_code_2_with_a_hint() {
    let folder = folder("refused");
    fs::write(folder.join("plain.toml"), SCENARIO.split("[[expect]]").next().unwrap()).unwrap();
    fs::write(folder.join("moved.toml"), SCENARIO.replace("flow.call.config.rate_bps=8", "flow.cal.config.rate_bps=8"))
        .unwrap();
    for (arguments, messages) in [
        (&["reproduce", "mmsys15"][..], ["no paper `mmsys15`", "`mmsys16`"]),
        (&["reproduce", "mmsys16/table11"], ["no scenario `mmsys16/table11`", "`mmsys16/table1`"]),
        (&["reproduce", "moved.toml"], ["--set flow.cal.config.rate_bps=850000", "`call`"]),
        (&["reproduce", "plain.toml"], ["no published value and no bound", "[[expect]]"]),
        (&["reproduce", "rates.toml", "--repeats", "0"], ["--repeats", "1..=10000"]),
        (&["run", "rates.toml", "--case", "rate=full"], ["no case `rate=full`", "`rate=half`"]),
        (&["run", "rates.toml", "--case", "half"], ["NAME=VALUE", "threshold=static"]),
    ] {
        rejects(&paceline(&folder, arguments), &messages);
    }
}

#[test]
fn the_scoreboard_is_reproducible_and_diff_names_changes() {
    let folder = folder("scoreboard");
    let board = |scenario: &str, out: &str| {
        fs::write(folder.join("rates.toml"), scenario).unwrap();
        let mut printed = document(&paceline(&folder, &["reproduce", "rates.toml", "--json", "--out", out]), 0);
        let read = |name: &str| fs::read_to_string(folder.join(out).join(name)).unwrap();
        // The counts include the duration of runs, which depends on the machine and is not stored.
        printed.as_object_mut().unwrap().remove("papers").expect("the counts are printed");
        (printed, ["scoreboard.json", "scoreboard.md", "scoreboard.html"].map(read))
    };
    let (printed, [json, table, page]) = board(SCENARIO, "one");
    assert_eq!(board(SCENARIO, "two"), (printed.clone(), [json.clone(), table.clone(), page]));
    assert!(!json.contains("wall_s"), "{json}");
    // The file is the printed document with the version.
    let mut read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read.as_object_mut().unwrap().remove("version"), Some(json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(read, printed);
    let runs = &read["experiments"][0]["runs"];
    assert_eq!((&runs[0]["case"], &runs[0]["n"]), (&json!({"rate": "half"}), &json!(2)));
    assert_ne!(runs[0]["trace_hash"], runs[1]["trace_hash"]);
    // One row for each cell, with every column, without the command.
    let rows: Vec<&str> = table.lines().filter(|l| l.starts_with("| paper/rates |")).collect();
    assert_eq!(rows.len(), 7, "{table}");
    assert!(rows.iter().all(|row| row.matches(" | ").count() == 10), "{table}");
    assert!(table.contains("moved into tolerance by `flow.call.config.rate_bps=850000` |"), "{table}");
    assert!(table.contains("half-is-twice-a-quarter: × 1.900 to × 2.100") && !table.contains("paceline run"));

    let diff = |after: &str, more: &[&str]| paceline(&folder, &[&["diff", "one", after], more].concat());
    assert_eq!(stdout(&diff("two", &[]), 0).trim(), "no difference: 4 runs, 4 hashes equal");
    assert_eq!(stdout(&diff("two/scoreboard.json", &[]), 0).trim(), "no difference: 4 runs, 4 hashes equal");

    // Another number in one case changes that case only.
    board(&SCENARIO.replace("= 500000", "= 520000"), "three");
    let output = diff("three", &[]);
    let text = stdout(&output, 1);
    let summary = "different: 4 runs, 2 hashes equal";
    contains_all(
        text,
        &[
            "paper/rates  [rate=half]",
            "the combined hash of 2 runs or the number of runs differs",
            "utilization",
            summary,
        ],
    );
    assert!(!text.contains("[rate=quarter]") && !text.contains("inf"), "{text}");
    let found = document(&diff("three", &["--json"]), 1);
    assert_eq!((&found["moved"], &found["runs"], &found["hashes_equal"]), (&json!(true), &json!(4), &json!(2)));
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);

    // A changed constant is named.
    fs::write(folder.join("constants.toml"), CONSTANTS.replace("\"50ms\"", "\"60ms\"")).unwrap();
    board(SCENARIO, "four");
    contains_all(stdout(&diff("four", &[]), 1), &["constant path.rtt: \"50ms\" → \"60ms\""]);
    rejects(&paceline(&folder, &["reproduce", "rates.toml", "--out", "five", "--sensitivity"]), &["--sensitivity"]);
}

/// Returns a folder with one experiment of a first paper, and two of a second.
fn two_papers(name: &str) -> PathBuf {
    let folder = folder(name);
    for id in ["second/rates", "second/again"] {
        let file = format!("{}.toml", id.replace('/', "-"));
        fs::write(folder.join(file), SCENARIO.replace("paper/rates", id)).unwrap();
    }
    // Characters that HTML must escape.
    let source = "title = \"Two rates\"\nsource = \"<Paper> & Co, table 1\"";
    fs::write(folder.join("rates.toml"), SCENARIO.replace("title = \"Two rates\"", source)).unwrap();
    folder
}

#[test]
fn several_experiments_start_with_a_table_of_counts() {
    let folder = two_papers("matrix");
    let output = paceline(&folder, &["reproduce", "."]);
    let lines: Vec<&str> = stdout(&output, 0).lines().collect();
    let rows: Vec<Vec<&str>> = lines[..7].iter().map(|line| line.split_whitespace().collect()).collect();
    let half = ["cells", "✓", "≈", "✗", "claims", "│"];
    assert_eq!(rows[0], [&["experiment"][..], &half, &half[..5], &["runs"]].concat());
    // Seven cells each, of which the null sender reproduces 0.85, the RTT, and the loss in both cases.
    let one = ["7", "5", "1", "1", "2/2", "│", "3", "2", "0", "1", "1/1", "4"];
    let two = ["14", "10", "2", "2", "4/4", "│", "6", "4", "0", "2", "2/2", "8"];
    let all = ["21", "15", "3", "3", "6/6", "│", "9", "6", "0", "3", "3/3", "12"];
    let wanted = [
        ("paper", one),
        ("paper/rates", one),
        ("second", two),
        ("second/again", one),
        ("second/rates", one),
        ("all", all),
    ];
    for (row, (name, counts)) in rows[1..].iter().zip(wanted) {
        assert_eq!((row[0], &row[1..]), (name, &counts[..]));
    }
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    assert!(lines[7..].join(" ").contains("paper/rates  Two rates"), "the experiments follow: {lines:?}");
    let one = paceline(&folder, &["reproduce", "rates.toml"]);
    assert!(stdout(&one, 0).starts_with("paper/rates  Two rates"), "a single experiment has no such table");
}

#[test]
fn the_document_contains_the_counts() {
    let folder = two_papers("papers");
    let report = document(&paceline(&folder, &["reproduce", ".", "--json"]), 0);
    let [first, second] = report["papers"].as_array().unwrap().as_slice() else { panic!("two papers") };
    assert_eq!((&first["paper"], &second["paper"]), (&json!("paper"), &json!("second")));
    let ids: Vec<&Value> = second["experiments"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["second/again", "second/rates"]);
    // A row has the fields of the summary; the papers add up to the summary.
    let summary = &report["summary"];
    for (key, of_all) in summary.as_object().unwrap().iter().filter(|(_, value)| value.is_u64()) {
        let sum: u64 = [first, second].iter().map(|paper| paper[key].as_u64().unwrap()).sum();
        assert_eq!(sum, of_all.as_u64().unwrap(), "{key}");
        assert_eq!(second["experiments"][0][key], first[key], "{key}");
    }
    let without = |row: &Value| row["without_null"]["cells"].as_u64().unwrap();
    assert_eq!((without(first), without(second), without(summary)), (3, 6, 9));
    let row = &second["experiments"][1];
    assert_eq!((&row["runs"], &second["runs"]), (&json!(4), &json!(8)));
    let seconds = |row: &Value| row["wall_s"].as_f64().unwrap();
    let sum: f64 = second["experiments"].as_array().unwrap().iter().map(seconds).sum();
    assert!(seconds(row) > 0.0 && (seconds(second) - sum).abs() < 1e-9, "{second}");
}

#[test]
fn the_page_shows_every_cell_and_loads_nothing() {
    let folder = two_papers("page");
    let output = paceline(&folder, &["reproduce", ".", "--out", "board"]);
    assert!(stderr(&output).contains("scoreboard.html"), "{}", stderr(&output));
    let read = |name: &str| fs::read_to_string(folder.join("board").join(name)).unwrap();
    let (page, board) = (read("scoreboard.html"), read("scoreboard.json"));
    let board: Value = serde_json::from_str(&board).unwrap();
    let experiments = board["experiments"].as_array().unwrap();
    let mut cells = 0;
    for experiment in experiments {
        let id = experiment["id"].as_str().unwrap();
        assert_eq!(page.matches(&format!("<section class=\"experiment group\" id=\"{id}\">")).count(), 1, "{id}");
        for (index, cell) in experiment["cells"].as_array().unwrap().iter().enumerate() {
            let anchor = format!("{id}/{}", index + 1);
            let given = if cell["null_reproduces"] == true || cell["fitted"].is_string() { " given" } else { "" };
            let classes = format!("cell {}{given}", cell["verdict"].as_str().unwrap());
            // One square links to the row of the cell, and both have the verdict as a class.
            let square = format!("<a class=\"square {classes}\" href=\"#{anchor}\"");
            let row = format!("<tbody id=\"{anchor}\" class=\"{classes}\">");
            assert_eq!([page.matches(&square).count(), page.matches(&row).count()], [1, 1], "{anchor}");
            cells += 1;
        }
    }
    assert_eq!((cells, page.matches("<a class=\"square").count(), page.matches("<tbody id=").count()), (21, 21, 21));
    let parts = [
        "&#60;Paper&#62; &#38; Co, table 1",
        "<code>paceline reproduce second/again</code>",
        "the paper does not say",
        "<td class=\"number\" data-name=\"published\">52.0 %</td>",
        "to × 2.100",
        "at most 10.000 %",
        "the paper sends more; moved into tolerance by <code>paceline run paper/rates",
    ];
    contains_all(&page, &parts);
    // No external resource, and no script.
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "{page}");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // `report` draws the same page from the stored file, and rejects a damaged file.
    fs::remove_file(folder.join("board/scoreboard.html")).unwrap();
    stdout(&paceline(&folder, &["report", "board"]), 0);
    stdout(&paceline(&folder, &["report", "board", "--out", "page.html"]), 0);
    assert_eq!((read("scoreboard.html"), fs::read_to_string(folder.join("page.html")).unwrap()), (page.clone(), page));
    fs::write(folder.join("board/scoreboard.json"), "{").unwrap();
    rejects(&paceline(&folder, &["report", "board"]), &["scoreboard.json` is damaged"]);
}

/// The formula contradicts six of ten values.
#[test]
fn a_formula_table_needs_no_run() {
    let folder = folder("formula");
    let report = document(&paceline(&folder, &["reproduce", "uottawa15/table2", "--json", "--out", "board"]), 0);
    let experiment = &report["experiments"][0];
    assert_eq!((&experiment["id"], &experiment["cells"][0]["n"]), (&json!("uottawa15/table2"), &json!(0)));
    let published = &report["summary"]["published"];
    assert_eq!((&published["cells"], &published["reproduced"], &published["not"]), (&json!(10), &json!(4), &json!(6)));
    let board = fs::read_to_string(folder.join("board/scoreboard.md")).unwrap();
    assert!(board.contains("0.9100 ± 0.0050 | 0.9033"), "{board}");
    rejects(&paceline(&folder, &["run", "uottawa15/table2"]), &["paceline reproduce uottawa15/table2"]);
}

#[test]
fn formula_tables_in_files_are_judged_and_rejected_with_a_place() {
    let folder = folder("own-formula");
    let table = "id = \"own/table\"\ntitle = \"own\"\nformula = \"dynamic-alpha\"\ndigits = 2\n[[value]]\n\
                 at = { T = 45, gamma = 25 }\nline = \"max-unknown\"\npublished = 0.95\n";
    fs::write(folder.join("own.formula.toml"), table).unwrap();
    fs::write(folder.join("endless.formula.toml"), table.replace("45", "inf")).unwrap();
    let report = document(&paceline(&folder, &["reproduce", "./own.formula.toml", "--json"]), 0);
    assert_eq!(report["summary"]["published"]["cells"], 1);
    for (arguments, messages) in [
        (["run", "./own.formula.toml"], ["own.formula.toml is no scenario", "`paceline reproduce ./own.formula.toml`"]),
        (["reproduce", "./endless.formula.toml"], ["`inf` is not finite", "endless.formula.toml:6:12"]),
    ] {
        rejects(&paceline(&folder, &arguments), &messages);
    }
}

#[test]
fn run_compare_and_reproduce_filter_runs_alike() {
    let folder = folder("keep");
    let (cases, _) = SCENARIO.split_once("[[expect]]").unwrap();
    let bound = "[[assert]]\nid = \"some\"\nmetric = \"utilization\"\nbounds = [0, 1]\n";
    let keep = |rate: u32| {
        format!("[measure]\ninclude_if = {{ metric = \"throughput_bps\", flow = \"call\", at_least = {rate} }}\n")
    };
    for (rate, kept, code) in [(1, 3, 0), (900_000, 0, 1)] {
        fs::write(folder.join("rates.toml"), format!("{cases}{}{bound}", keep(rate))).unwrap();
        let run = paceline(&folder, &["run", "rates.toml", "--case", "rate=half", "--repeats", "3"]);
        let note = format!("{kept} of 3 runs included, those with throughput_bps of {rate} or more");
        contains_all(stdout(&run, code), &[&note]);
        let compare = ["compare", "rates.toml", "--case", "rate=half", "--controllers", "fixed", "--repeats", "3"];
        let compared = paceline(&folder, &compare);
        let compared = stdout(&compared, code);
        assert_eq!(compared.matches(&format!("fixed: {note}")).count(), 1, "{compared}");
        let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--repeats", "3", "--json"]), code);
        assert_eq!(report["experiments"][0]["cells"][0]["n"], kept);
    }
    // Only the reference case filters its runs.
    let keep = "\"measure.include_if\" = { metric = \"overuse_count\", at_least = 1 }";
    let scenario = cases.replace("= 250000 }", &format!("= 250000, {keep} }}"));
    let ratio = "[[expect]]\nmetric = \"throughput_bps\"\nflow = \"call\"\ncase = { rate = \"half\" }\n\
                 relative_to = { case = { rate = \"quarter\" } }\npublished = 2\n";
    fs::write(folder.join("rates.toml"), format!("{scenario}{ratio}")).unwrap();
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 0);
    let cell = &report["experiments"][0]["cells"][0];
    assert_eq!((&cell["n"], &cell["left_out"], &cell["verdict"]), (&json!(0), &json!(2), &json!("not")));
    assert_eq!(cell["note"], "0 of 2 runs included, those with overuse_count of 1 or more in rate=quarter");
}
