//! `paceline reproduce` as scripts and people meet it.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A call at a constant rate: half of what there is, or a quarter.
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
moved_by = ["flow.call.config.rate_bps=850000"]

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
over = { case = { rate = "quarter" } }
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
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reproduce-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("rates.toml"), SCENARIO).unwrap();
    fs::write(folder.join("constants.toml"), CONSTANTS).unwrap();
    folder
}

fn paceline(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paceline")).args(arguments).current_dir(folder).output().expect("it runs")
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn document(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", talk(output));
    serde_json::from_slice(&output.stdout).expect("stdout is exactly one JSON document")
}

#[track_caller]
fn text(output: &Output, code: i32) -> &str {
    assert_eq!(output.status.code(), Some(code), "{}", talk(output));
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn cells_keep_the_contract() {
    let folder = folder("contract");
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 0);
    assert_eq!(keys(&report), ["experiments", "papers", "summary"].into());
    let [experiment] = report["experiments"].as_array().unwrap().as_slice() else { panic!("one experiment") };
    assert_eq!((&experiment["id"], &experiment["title"]), (&json!("paper/rates"), &json!("Two rates")));
    let assumed = json!([{ "id": "rtt", "key": "path.rtt", "value": "\"50ms\"", "why": "the paper does not say" }]);
    assert_eq!(experiment["assumed"], assumed);
    let cells = experiment["cells"].as_array().unwrap();
    let contract = [
        "metric",
        "controller",
        "world",
        "case",
        "flow",
        "window_s",
        "published",
        "tolerance",
        "measured",
        "ci95",
        "n",
        "null_sender",
        "claim",
        "verdict",
        "note",
    ];
    for cell in cells {
        assert!(contract.iter().all(|key| keys(cell).contains(key)), "{cell}");
        assert_eq!((&cell["world"], &cell["controller"], &cell["n"]), (&json!("sim"), &json!("fixed"), &json!(2)));
        assert!(cell["measured"].is_number() && cell["ci95"].is_number() && cell["null_sender"].is_number(), "{cell}");
        assert_eq!(cell["note"].is_null(), cell["verdict"] == "reproduced", "{cell}");
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
    // Null senders take 85 % in both cases, so they reproduce what is 0.85.
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
    assert_eq!(cells[3]["bounds"], json!([null, 0.1]), "no bound is null");

    let summary = &report["summary"];
    let tally = |t: &Value| ["cells", "reproduced", "direction", "not"].map(|key| t[key].as_u64().unwrap());
    assert_eq!(tally(summary), [7, 5, 1, 1]);
    assert_eq!(tally(&summary["published"]), [4, 2, 1, 1]);
    assert_eq!(tally(&summary["published_without_null"])[0], tally(&summary["published"])[0] - 2, "0.85 and the RTT");
    let counts = ["claims", "claims_held", "claims_without_null", "claims_held_without_null"];
    assert_eq!(counts.map(|key| summary[key].as_u64().unwrap()), [2, 2, 1, 1]);
}

#[test]
fn a_folder_a_file_and_exact_seeds() {
    let folder = folder("folder");
    let report = document(&paceline(&folder, &["reproduce", ".", "--seeds", "3", "--json"]), 0);
    assert_eq!(report["experiments"].as_array().unwrap().len(), 1, "the file of constants is none");
    assert!(report["experiments"][0]["cells"].as_array().unwrap().iter().all(|c| c["n"] == 3));
    let one = document(&paceline(&folder, &["reproduce", "rates.toml", "--seeds", "1", "--json"]), 0);
    let cell = &one["experiments"][0]["cells"][0];
    assert_eq!((&cell["n"], &cell["ci95"], &cell["verdict"]), (&json!(1), &Value::Null, &json!("not")), "no interval");
    // The catalogue, by id and by paper.
    let table1 = document(&paceline(&folder, &["reproduce", "mmsys16/table1", "--seeds", "2", "--json"]), 0);
    assert_eq!(table1["experiments"][0]["id"], "mmsys16/table1");
    assert_eq!(table1["experiments"][0]["cells"][0]["case"], json!({}));
}

#[test]
fn people_see_tables_claims_and_notes() {
    let folder = folder("text");
    let output = paceline(&folder, &["reproduce", "rates.toml"]);
    let text = text(&output, 0);
    for part in [
        "paper/rates  Two rates",
        "published",
        "null",
        "verdict",
        "reproduced",
        "direction",
        "throughput_bps over rate=quarter",
        "× 1.900 to × 2.100",
        "holds",
        "· utilization, rate=quarter, 0 to 10 s: the paper sends more; moved into tolerance by `paceline run",
        "it matters): path.rtt = \"50ms\"",
        "* the null sender",
        "published values 4: 2 reproduced, 1 in direction, 1 not",
        "claims 2: 2 hold",
        "published values that the null sender does not reproduce",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn a_claim_that_fails_is_exit_1() {
    let folder = folder("fails");
    fs::write(folder.join("rates.toml"), SCENARIO.replace("[1.9, 2.1]", "[2.5, 3.0]")).unwrap();
    let output = paceline(&folder, &["reproduce", "rates.toml"]);
    assert!(text(&output, 1).contains("FAILS") && text(&output, 1).contains("claims 2: 1 hold"));
    // A change that does not move it is not said to.
    let other = SCENARIO.replace("rate_bps=850000", "rate_bps=700000");
    fs::write(folder.join("other.toml"), other).unwrap();
    let other = document(&paceline(&folder, &["reproduce", "other.toml", "--json"]), 0);
    let cell = &other["experiments"][0]["cells"][4];
    assert!(cell["note"].as_str().unwrap().contains("; not moved into tolerance by"), "{cell}");
    assert!((0.69..0.71).contains(&cell["moved"]["measured"].as_f64().unwrap()), "{cell}");
    // Without its claim the value is not even reproduced in direction.
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 1);
    assert_eq!(report["experiments"][0]["cells"][4]["verdict"], "not");
}

#[test]
fn sensitivity_says_which_verdicts_depend_on_what() {
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
    let output = paceline(&folder, &["reproduce", "rates.toml", "--sensitivity", "--seeds", "2"]);
    let text = text(&output, 0);
    assert!(text.contains("1 of 1 constants change a verdict; 1 of 7 cells depend on one"), "{text}");
}

#[test]
fn cases_can_be_run_and_are_listed() {
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
    // As the hint writes it, with a comma, and by two flags.
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
fn what_is_not_there_is_exit_2_with_a_hint() {
    let folder = folder("refused");
    fs::write(folder.join("plain.toml"), SCENARIO.split("[[expect]]").next().unwrap()).unwrap();
    fs::write(folder.join("moved.toml"), SCENARIO.replace("flow.call.config.rate_bps=8", "flow.cal.config.rate_bps=8"))
        .unwrap();
    for (arguments, says) in [
        (&["reproduce", "mmsys15"][..], ["no paper `mmsys15`", "`mmsys16`"]),
        (&["reproduce", "mmsys16/table11"], ["no scenario `mmsys16/table11`", "`mmsys16/table1`"]),
        (&["reproduce", "moved.toml"], ["--set flow.cal.config.rate_bps=850000", "`call`"]),
        (&["reproduce", "plain.toml"], ["no published value and no bound", "[[expect]]"]),
        (&["reproduce", "rates.toml", "--seeds", "0"], ["--seeds", "1..=10000"]),
        (&["run", "rates.toml", "--case", "rate=full"], ["no case `rate=full`", "`rate=half`"]),
        (&["run", "rates.toml", "--case", "half"], ["NAME=VALUE", "threshold=static"]),
    ] {
        let output = paceline(&folder, arguments);
        let talk = talk(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{talk}");
        assert!(says.iter().all(|text| talk.contains(text)), "{says:?} is not in:\n{talk}");
    }
    let output = paceline(&folder, &["reproduce", "all", "--world", "browser"]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn the_scoreboard_is_the_same_text_each_time_and_diff_names_what_moved() {
    let folder = folder("scoreboard");
    let board = |scenario: &str, out: &str| {
        fs::write(folder.join("rates.toml"), scenario).unwrap();
        let mut printed = document(&paceline(&folder, &["reproduce", "rates.toml", "--json", "--out", out]), 0);
        let read = |name: &str| fs::read_to_string(folder.join(out).join(name)).unwrap();
        // How long runs took is of this machine, and is not kept.
        printed.as_object_mut().unwrap().remove("papers").expect("the matrix is printed");
        (printed, ["scoreboard.json", "scoreboard.md", "scoreboard.html"].map(read))
    };
    let (printed, [json, table, page]) = board(SCENARIO, "one");
    assert_eq!(board(SCENARIO, "two"), (printed.clone(), [json.clone(), table.clone(), page]));
    assert!(!json.contains("wall_s"), "{json}");
    // The document that was printed, and the version.
    let mut read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read.as_object_mut().unwrap().remove("version"), Some(json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(read, printed);
    let runs = &read["experiments"][0]["runs"];
    assert_eq!((&runs[0]["case"], &runs[0]["n"]), (&json!({"rate": "half"}), &json!(2)));
    assert_ne!(runs[0]["trace_hash"], runs[1]["trace_hash"]);
    // One row a cell; every row has every column; the command is left to the JSON.
    let rows: Vec<&str> = table.lines().filter(|l| l.starts_with("| paper/rates |")).collect();
    assert_eq!(rows.len(), 7, "{table}");
    assert!(rows.iter().all(|row| row.matches(" | ").count() == 10), "{table}");
    assert!(table.contains("moved into tolerance by `flow.call.config.rate_bps=850000` |"), "{table}");
    assert!(table.contains("half-is-twice-a-quarter: × 1.900 to × 2.100") && !table.contains("paceline run"));

    let diff = |after: &str, more: &[&str]| paceline(&folder, &[&["diff", "one", after], more].concat());
    assert_eq!(text(&diff("two", &[]), 0).trim(), "nothing moved: 4 runs, 4 hashes equal");
    assert_eq!(text(&diff("two/scoreboard.json", &[]), 0).trim(), "nothing moved: 4 runs, 4 hashes equal");

    // One number of the scenario less: its case moves, and the other does not.
    board(&SCENARIO.replace("= 500000", "= 520000"), "three");
    let said = diff("three", &[]);
    let said = text(&said, 1);
    for part in
        ["paper/rates  [rate=half]", "the hash over 2 runs differs", "utilization", "moved: 4 runs, 2 hashes equal"]
    {
        assert!(said.contains(part), "`{part}` is not in\n{said}");
    }
    assert!(!said.contains("[rate=quarter]") && !said.contains("inf"), "{said}");
    let found = document(&diff("three", &["--json"]), 1);
    assert_eq!((&found["moved"], &found["runs"], &found["hashes_equal"]), (&json!(true), &json!(4), &json!(2)));
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);

    // What stands in the constants is named.
    fs::write(folder.join("constants.toml"), CONSTANTS.replace("\"50ms\"", "\"60ms\"")).unwrap();
    board(SCENARIO, "four");
    let said = diff("four", &[]);
    assert!(text(&said, 1).contains("constant path.rtt: \"50ms\" → \"60ms\""), "{}", text(&said, 1));

    let refused = paceline(&folder, &["reproduce", "rates.toml", "--out", "five", "--sensitivity"]);
    assert_eq!(refused.status.code(), Some(2), "{}", talk(&refused));
}

/// A folder of two papers: one experiment of the first, two of the second.
fn two_papers(name: &str) -> PathBuf {
    let folder = folder(name);
    for id in ["second/rates", "second/again"] {
        let file = format!("{}.toml", id.replace('/', "-"));
        fs::write(folder.join(file), SCENARIO.replace("paper/rates", id)).unwrap();
    }
    // Letters that mean something in HTML.
    let source = "title = \"Two rates\"\nsource = \"<Paper> & Co, table 1\"";
    fs::write(folder.join("rates.toml"), SCENARIO.replace("title = \"Two rates\"", source)).unwrap();
    folder
}

#[test]
fn a_matrix_comes_first_where_there_are_several_experiments() {
    let folder = two_papers("matrix");
    let output = paceline(&folder, &["reproduce", "."]);
    let lines: Vec<&str> = text(&output, 0).lines().collect();
    let rows: Vec<Vec<&str>> = lines[..7].iter().map(|line| line.split_whitespace().collect()).collect();
    let half = ["cells", "✓", "≈", "✗", "claims", "│"];
    assert_eq!(rows[0], [&["experiment"][..], &half, &half, &["runs", "time"]].concat());
    // Seven cells each, of which the null sender gives away 0.85, the RTT, and the loss in both cases.
    let one = ["7", "5", "1", "1", "2/2", "│", "3", "2", "0", "1", "1/1", "│", "4"];
    let two = ["14", "10", "2", "2", "4/4", "│", "6", "4", "0", "2", "2/2", "│", "8"];
    let all = ["21", "15", "3", "3", "6/6", "│", "9", "6", "0", "3", "3/3", "│", "12"];
    let wanted = [
        ("paper", one),
        ("paper/rates", one),
        ("second", two),
        ("second/again", one),
        ("second/rates", one),
        ("all", all),
    ];
    for (row, (name, counts)) in rows[1..].iter().zip(wanted) {
        assert_eq!((row[0], &row[1..14]), (name, &counts[..]));
        assert!(row[14].parse::<f64>().is_ok() && row[15] == "s", "{row:?}");
    }
    assert!(lines[..12].iter().all(|line| line.chars().count() <= 100), "{lines:?}");
    assert!(lines[7..12].join(" ").contains("paper/rates  Two rates"), "the experiments follow: {lines:?}");
    let one = paceline(&folder, &["reproduce", "rates.toml"]);
    assert!(text(&one, 0).starts_with("paper/rates  Two rates"), "one experiment needs none");
}

#[test]
fn the_matrix_is_in_the_document_too() {
    let folder = two_papers("papers");
    let report = document(&paceline(&folder, &["reproduce", ".", "--json"]), 0);
    let [first, second] = report["papers"].as_array().unwrap().as_slice() else { panic!("two papers") };
    assert_eq!((&first["paper"], &second["paper"]), (&json!("paper"), &json!("second")));
    let ids: Vec<&Value> = second["experiments"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["second/again", "second/rates"]);
    // A row has what the summary has, for its own; papers add up to it.
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
fn the_page_has_every_cell_and_loads_nothing() {
    let folder = two_papers("page");
    let output = paceline(&folder, &["reproduce", ".", "--out", "board"]);
    assert!(talk(&output).contains("scoreboard.html"), "{}", talk(&output));
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
            let given = if cell["null_reproduces"] == true { " given" } else { "" };
            let classes = format!("cell {}{given}", cell["verdict"].as_str().unwrap());
            // A square that leads to the cell's row, each of them once and with the cell's verdict.
            let square = format!("<a class=\"square {classes}\" href=\"#{anchor}\"");
            let row = format!("<tbody id=\"{anchor}\" class=\"{classes}\">");
            assert_eq!([page.matches(&square).count(), page.matches(&row).count()], [1, 1], "{anchor}");
            cells += 1;
        }
    }
    assert_eq!((cells, page.matches("<a class=\"square").count(), page.matches("<tbody id=").count()), (21, 21, 21));
    for part in [
        "&#60;Paper&#62; &#38; Co, table 1",
        "<code>paceline reproduce second/again</code>",
        "the paper does not say",
        "<td class=\"number\" data-name=\"published\">52.0 %</td>",
        "× 1.900 to × 2.100",
        "at most 10.000 %",
        "the paper sends more; moved into tolerance by <code>paceline run paper/rates",
    ] {
        assert!(page.contains(part), "`{part}` is not in:\n{page}");
    }
    // Nothing from elsewhere, and no script.
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""), "{page}");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The same again from what is kept; elsewhere on demand; and not from a damaged file.
    fs::remove_file(folder.join("board/scoreboard.html")).unwrap();
    text(&paceline(&folder, &["report", "board"]), 0);
    text(&paceline(&folder, &["report", "board", "--out", "page.html"]), 0);
    assert_eq!((read("scoreboard.html"), fs::read_to_string(folder.join("page.html")).unwrap()), (page.clone(), page));
    fs::write(folder.join("board/scoreboard.json"), "{").unwrap();
    let refused = paceline(&folder, &["report", "board"]);
    assert_eq!(refused.status.code(), Some(2), "{}", talk(&refused));
    assert!(talk(&refused).contains("scoreboard.json` is damaged"), "{}", talk(&refused));
}

/// Ten values, of which the formula contradicts six; no run is made, and no claim fails.
#[test]
fn a_table_that_a_formula_gives_takes_no_run() {
    let folder = folder("formula");
    let report = document(&paceline(&folder, &["reproduce", "uottawa15/table2", "--json", "--out", "board"]), 0);
    let experiment = &report["experiments"][0];
    assert_eq!((&experiment["id"], &experiment["cells"][0]["n"]), (&json!("uottawa15/table2"), &json!(0)));
    let published = &report["summary"]["published"];
    assert_eq!((&published["cells"], &published["reproduced"], &published["not"]), (&json!(10), &json!(4), &json!(6)));
    let board = fs::read_to_string(folder.join("board/scoreboard.md")).unwrap();
    assert!(board.contains("0.9100 ± 0.0050 | 0.9033"), "{board}");
    let run = paceline(&folder, &["run", "uottawa15/table2"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(talk(&run).contains("paceline reproduce uottawa15/table2"), "{}", talk(&run));
}

#[test]
fn a_formula_table_of_one_s_own_is_judged_and_not_run_and_says_what_is_no_number() {
    let folder = folder("own-formula");
    let table = "id = \"own/table\"\ntitle = \"own\"\nformula = \"dynamic-alpha\"\ndigits = 2\n[[value]]\n\
                 at = { T = 45, gamma = 25 }\nline = \"max-unknown\"\npublished = 0.95\n";
    fs::write(folder.join("own.formula.toml"), table).unwrap();
    fs::write(folder.join("endless.formula.toml"), table.replace("45", "inf")).unwrap();
    let report = document(&paceline(&folder, &["reproduce", "./own.formula.toml", "--json"]), 0);
    assert_eq!(report["summary"]["published"]["cells"], 1);
    for (arguments, says) in [
        (["run", "./own.formula.toml"], ["own.formula.toml is no scenario", "`paceline reproduce ./own.formula.toml`"]),
        (["reproduce", "./endless.formula.toml"], ["`inf` is not finite", "endless.formula.toml:6:12"]),
    ] {
        let output = paceline(&folder, &arguments);
        let talk = talk(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{talk}");
        assert!(says.iter().all(|text| talk.contains(text)), "{says:?} is not in:\n{talk}");
    }
}

#[test]
fn run_and_reproduce_judge_the_runs_that_count_alike() {
    let folder = folder("keep");
    let (cases, _) = SCENARIO.split_once("[[expect]]").unwrap();
    let bound = "[[assert]]\nid = \"some\"\nmetric = \"utilization\"\nbounds = [0, 1]\n";
    let keep = |rate: u32| {
        format!("[measure]\nkeep = {{ metric = \"throughput_bps\", flow = \"call\", at_least = {rate} }}\n")
    };
    for (rate, kept, code) in [(1, 3, 0), (900_000, 0, 1)] {
        fs::write(folder.join("rates.toml"), format!("{cases}{}{bound}", keep(rate))).unwrap();
        let run = paceline(&folder, &["run", "rates.toml", "--case", "rate=half", "--repeats", "3"]);
        let told = format!("kept {kept} of 3, those with throughput_bps of {rate} or more");
        assert!(text(&run, code).contains(&told), "{}", text(&run, code));
        let compare = ["compare", "rates.toml", "--case", "rate=half", "--controllers", "fixed", "--repeats", "3"];
        let compared = paceline(&folder, &compare);
        let compared = text(&compared, code);
        assert_eq!(compared.matches(&format!("fixed: runs: {told}")).count(), 1, "{compared}");
        let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--seeds", "3", "--json"]), code);
        assert_eq!(report["experiments"][0]["cells"][0]["n"], kept);
    }
    // Only one case asks for something, and the other is the one that is judged.
    let keep = "\"measure.keep\" = { metric = \"overuses\", at_least = 1 }";
    let scenario = cases.replace("= 250000 }", &format!("= 250000, {keep} }}"));
    let ratio = "[[expect]]\nmetric = \"throughput_bps\"\nflow = \"call\"\ncase = { rate = \"half\" }\n\
                 over = { case = { rate = \"quarter\" } }\npublished = 2\n";
    fs::write(folder.join("rates.toml"), format!("{scenario}{ratio}")).unwrap();
    let report = document(&paceline(&folder, &["reproduce", "rates.toml", "--json"]), 0);
    let cell = &report["experiments"][0]["cells"][0];
    assert_eq!((&cell["n"], &cell["left_out"], &cell["verdict"]), (&json!(0), &json!(2), &json!("not")));
    assert_eq!(cell["note"], "kept 0 of 2, those with overuses of 1 or more in rate=quarter");
}
