// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline suite`: a suite of the user in a folder of its own.

use super::{contains_all, document, folder, keys, one_line, paceline, read_json, rejects, stderr, stdout};
use paceline_lab::results::database::Database;
use std::fs;
use std::path::PathBuf;

/// Two constant rates, below and above the capacity.
const SCENARIO: &str = r#"id = "own/rate"
title = "A <constant> rate"
duration = "5 s"

[path.forward]
capacity = "1 Mbps"
queue = { limit = "100 ms" }

[[flow]]
id = "call"
controller = "fixed"
encoder = { source = "ideal", max = "3 Mbps" }

[[case]]
label = { rate = "low" }
set = { "flow.call.config.rate_bps" = 600e3 }

[[case]]
label = { rate = "high" }
set = { "flow.call.config.rate_bps" = 2e6 }

[[assert]]
id = "no-queue"
metric = "queue_p95_ms"
bounds = [0, 50]
why = "half of the queue's limit"
"#;

const MANIFEST: &str = "id = \"own\"\ntitle = \"Own\"\nfamily = \"wired\"\nrepeats = 2\nscenarios = [\"rate\"]\n";

fn own(name: &str) -> PathBuf {
    folder(name, &[("own.suite.toml", MANIFEST), ("rate.toml", SCENARIO)])
}

/// The matrix, the failed bound with its value, and the exit code: 0 as long as no expected verdict changes.
#[test]
fn prints_which_bounds_hold() {
    let folder = own("suite-prints");
    let run =
        |more: &[&str]| paceline(&folder, &[&["suite", "own.suite.toml", "--controllers", "fixed"], more].concat());
    let output = run(&[]);
    let text = one_line(stdout(&output, 0));
    contains_all(
        &text,
        &["2 tests, 2 runs of each", "controller score tests rate", "fixed own/rate rate=high: no-queue,"],
    );
    contains_all(&text, &["0 to 5 s, queue_p95_ms:", "allowed 0.0 ms to 50.0 ms: fails", "--accept writes those"]);

    let row = text.split(" fixed ").nth(1).unwrap();
    let [score, tests, rate] = row.split(' ').take(3).collect::<Vec<_>>()[..] else { panic!("{row}") };
    assert_eq!((tests, rate), ("1/2", score));
    assert!((5.0..60.0).contains(&score.parse::<f64>().unwrap()), "half of the calls are late: {score}");

    // The points that one controller lost; with several, none.
    contains_all(&text, &[&format!("· fixed has a score of {score} of 100: "), " lost to "]);
    let both = ["suite", "own.suite.toml", "--controllers", "fixed,gcc-2016", "--repeats", "1"];
    assert!(!stdout(&paceline(&folder, &both), 0).contains("has a score of"));

    let accepted = run(&["--accept"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", stderr(&accepted));
    let expected = fs::read_to_string(folder.join("own.expected.toml")).unwrap();
    contains_all(
        &expected,
        &["repeats = 2\nsequential = true\n", "fixed = [\n    \"own/rate rate=high: no-queue\",\n]"],
    );
    contains_all(&one_line(stdout(&run(&[]), 0)), &["every verdict is as expected"]);

    fs::write(folder.join("own.expected.toml"), expected.replace("rate=high", "rate=low")).unwrap();
    let changed = run(&[]);
    contains_all(
        &one_line(stdout(&changed, 1)),
        &["fixed: own/rate rate=high: no-queue now fails", "fixed: own/rate rate=low: no-queue now holds"],
    );
    contains_all(&one_line(stdout(&run(&["--repeats", "1"]), 0)), &["the expected verdicts are of up to 2 runs"]);
    // A changed suite has no expected verdicts.
    let changed = run(&["--set", "path.forward.capacity=5Mbps"]);
    contains_all(&one_line(stdout(&changed, 0)), &["Own [path.forward.capacity=5Mbps]", " 2/2 "]);
    rejects(&run(&["--set", "path.rtt=1s", "--accept"]), &["--set", "cannot be used with", "--accept"]);
}

/// The loss of the link is on the bound. An undecided verdict is a warning, also where another one is expected, and exit code 1 only with
/// --strict.
#[test]
fn undecided_verdicts_fail_only_if_strict() {
    let lossy = SCENARIO
        .replace("capacity = \"1 Mbps\"", "capacity = \"1 Mbps\"\nloss = \"2 %\"")
        .replace("metric = \"queue_p95_ms\"\nbounds = [0, 50]", "metric = \"loss_ratio\"\nbounds = [0, 0.02]");
    let scenario = lossy.split("[[case]]\nlabel = { rate = \"high\" }").next().unwrap().to_owned();
    let scenario = scenario + &lossy[lossy.find("[[assert]]").unwrap()..];
    let folder =
        folder("suite-strict", &[("own.suite.toml", &MANIFEST.replace("= 2", "= 5")), ("rate.toml", &scenario)]);
    fs::write(folder.join("own.expected.toml"), "repeats = 5\nsequential = true\n[fails]\nfixed = []\n").unwrap();
    let run =
        |more: &[&str]| paceline(&folder, &[&["suite", "own.suite.toml", "--controllers", "fixed"], more].concat());
    let output = run(&[]);
    contains_all(&one_line(stdout(&output, 0)), &["1 test, 5 runs of each", ": undecided, "]);
    contains_all(&stderr(&output), &["warning: undecided verdicts: 1; --strict makes that exit code 1"]);
    stdout(&run(&["--strict"]), 1);
    stdout(&run(&["--accept"]), 0);
    contains_all(&one_line(stdout(&run(&["--strict"]), 1)), &["every verdict is as expected"]);
}

#[test]
fn writes_results_page_and_plots() {
    let folder = own("suite-writes");
    let output =
        paceline(&folder, &["suite", "own.suite.toml", "--controllers", "fixed,gcc-2016", "--out", "out", "--plots"]);
    stdout(&output, 0);
    contains_all(&stderr(&output), &["suites.html"]);
    let report = read_json(&folder.join("out/suites.json"));
    let suite = &report["suites"][0];
    assert_eq!((suite["tests"].as_array().unwrap().len(), suite["rows"].as_array().unwrap().len()), (2, 2));
    assert_eq!(suite["rows"][0]["results"][1]["bounds"][0]["pass"], false);
    let page = fs::read_to_string(folder.join("out/suites.html")).unwrap();
    let plots = "plots/own/own-rate-rate-high-fixed/report.html";
    assert!(folder.join("out").join(plots).is_file());
    contains_all(
        &page,
        &[
            &format!("href=\"{plots}\""),
            "half of the queue",
            "A &#60;constant&#62; rate",
            "class=\"pareto\"",
            "class=\"scores\"",
        ],
    );
    assert!(!page.contains("<script") && !page.contains("<constant>"));

    // `report` draws the same page again.
    fs::remove_file(folder.join("out/suites.html")).unwrap();
    stdout(&paceline(&folder, &["report", "out"]), 0);
    assert_eq!(fs::read_to_string(folder.join("out/suites.html")).unwrap(), page);
}

/// What the CI of a stack reads. A rate that exceeds the capacity breaks a bound of the baseline: exit code 1.
#[test]
fn writes_files_for_ci_and_finds_regressions() {
    let folder = own("suite-ci");
    let run = |more: &[&str]| {
        paceline(&folder, &[&["suite", "own.suite.toml", "--controllers", "fixed", "--repeats", "3"], more].concat())
    };
    let files = ["--junit", "junit.xml", "--markdown", "summary.md", "--badge", "badge.json"];
    stdout(&run(&[&["--out", "main"][..], &files].concat()), 0);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let junit = read("junit.xml");
    contains_all(
        &junit,
        &["tests=\"2\" failures=\"1\" skipped=\"0\"", "<testcase classname=\"own: fixed\" name=\"own/rate rate=low\">"],
    );
    contains_all(&read("summary.md"), &["| fixed |", "Bounds that fail: 1", "* fixed, own/rate rate=high: no-queue"]);
    assert_eq!(read_json(&folder.join("badge.json"))["message"], "1 of 2 tests");
    let same = one_line(stdout(&run(&["--baseline", "main"]), 0));
    contains_all(&same, &["beside the baseline: 0 worse, 0 better"]);
    fs::write(folder.join("rate.toml"), SCENARIO.replace("600e3", "1.5e6")).unwrap();
    let worse = one_line(stdout(&run(&[&["--baseline", "main/suites.json"][..], &files].concat()), 1));
    contains_all(
        &worse,
        &["beside the baseline: 1 worse, 0 better", "worse: fixed, own: own/rate rate=low:", "no-queue fails now"],
    );
    contains_all(&read("summary.md"), &["Beside the baseline: 1 worse, 0 better."]);
    let other = ["suite", "own.suite.toml", "--controllers", "gcc-2016", "--repeats", "3", "--baseline", "main"];
    let other = paceline(&folder, &other);
    assert!(stdout(&other, 2).contains("gcc-2016") && stderr(&other).contains("no test in common"));
    rejects(&run(&["--baseline", "nowhere"]), &["there is no baseline at nowhere", "suites.json"]);
    // What was measured is printed all the same.
    let unwritten = run(&["--junit", "nowhere/junit.xml"]);
    assert!(stdout(&unwritten, 2).contains("0/2") && stderr(&unwritten).contains("cannot write nowhere/junit.xml"));
}

/// The document does not depend on the number of threads.
/// Earlier results follow the rows of this run, which has a place among them.
#[test]
fn earlier_results_are_rows_beside_those_of_this_run() {
    // A link on which more than 1 Mbit/s can be gained.
    let scenario = SCENARIO.replace("1 Mbps", "3 Mbps");
    let folder = folder("suite-beside", &[("own.suite.toml", MANIFEST), ("rate.toml", &scenario)]);
    let run = |controllers: &str, more: &[&str]| {
        paceline(&folder, &[&["suite", "own.suite.toml", "--controllers", controllers], more].concat())
    };
    stdout(&run("gcc-2016,faulty-constant,causal", &["--out", "earlier"]), 0);
    let text = one_line(stdout(&run("gcc-2013,gcc-2016", &["--beside", "earlier"]), 0));
    contains_all(
        &text,
        &["possible: the score between 0, a constant rate,", "gcc-2013 has ", " of the possible: place ", " of 2"],
    );
    let report = document(&run("gcc-2013,gcc-2016", &["--beside", "earlier", "--json"]), 0);
    let rows = report["suites"][0]["rows"].as_array().unwrap();
    let names: Vec<_> =
        rows.iter().map(|row| (row["controller"].as_str().unwrap(), row["kind"].as_str().unwrap())).collect();
    let expected =
        [("gcc-2013", "controller"), ("gcc-2016", "controller"), ("faulty-constant", "faulty"), ("causal", "oracle")];
    assert_eq!(names, expected);
    let ranking = report["rankings"]["all"].as_array().unwrap();
    let points = |name: &str| ranking.iter().find(|row| row["controller"] == name).unwrap()["points"].as_f64().unwrap();
    assert_eq!((points("faulty-constant"), points("causal")), (0.0, 100.0));
    assert_eq!(
        (&ranking[0]["place"], &ranking[1]["place"], &ranking[2]["place"]),
        (&1.into(), &2.into(), &serde_json::Value::Null)
    );

    // Only what was run is accepted and plotted.
    let more = ["--beside", "earlier", "--accept", "--plots", "--out", "out"];
    stdout(&run("gcc-2013", &more), 0);
    let expected = fs::read_to_string(folder.join("own.expected.toml")).unwrap();
    assert!(expected.contains("gcc-2013") && !expected.contains("gcc-2016"), "{expected}");
    let plots = fs::read_dir(folder.join("out/plots/own")).map_or(0, |plots| {
        plots.filter(|plot| !plot.as_ref().unwrap().file_name().to_string_lossy().contains("gcc-2013")).count()
    });
    assert_eq!(plots, 0, "plots of controllers that were not run");
    fs::remove_file(folder.join("own.expected.toml")).unwrap();

    rejects(&run("gcc-2013", &["--beside", "nowhere"]), &["cannot read", "suites.json", "--out"]);
    rejects(
        &run("gcc-2013", &["--beside", "earlier", "--repeats", "1"]),
        &["has up to 2 runs of each test", "makes 1", "leave out --repeats"],
    );
}

#[test]
fn prints_one_document() {
    let folder = own("suite-json");
    let run = |jobs: &str| {
        paceline(&folder, &["suite", "own.suite.toml", "--controllers", "fixed", "--json", "--jobs", jobs])
    };
    let one = document(&run("1"), 0);
    assert!(keys(&one["suites"][0]).is_superset(&["id", "rows", "tests", "changed"].into()));
    assert_eq!(one, document(&run("2"), 0));
}

/// Of four runs two are stored. `--resume` makes the two others, also under one more controller, with the same document.
#[test]
fn continues_an_interrupted_suite() {
    let folder = own("suite-resumes");
    let suite =
        |more: &[&str]| paceline(&folder, &[&["suite", "own.suite.toml", "--json", "--out", "out"], more].concat());
    let run = |more: &[&str]| {
        let output = suite(more);
        (document(&output, 0), stderr(&output))
    };
    let (whole, said) = run(&["--controllers", "fixed"]);
    assert!(!said.contains("finished runs are in the folder"), "{said}");
    let stored = || Database::open(&folder.join("out")).unwrap().run_count().unwrap();
    assert_eq!(stored(), 4);
    // Finished runs are not thrown away without a word.
    rejects(&suite(&["--controllers", "fixed"]), &["`out` holds 4 finished runs", "--resume", "a new folder"]);

    // Two of the runs are missing, as after a kill.
    let sqlite = rusqlite::Connection::open(folder.join("out/results.sqlite")).unwrap();
    sqlite.execute_batch("PRAGMA foreign_keys = ON; DELETE FROM run WHERE seed = 2").unwrap();
    drop(sqlite);
    let (resumed, said) = run(&["--controllers", "fixed", "--resume"]);
    contains_all(&said, &["2 finished runs are in the folder"]);
    assert_eq!((resumed, stored()), (whole.clone(), 4));

    let (more, said) = run(&["--controllers", "fixed,gcc-2016", "--resume"]);
    contains_all(&said, &["4 finished runs are in the folder"]);
    let results = |document: &serde_json::Value| document["suites"][0]["rows"][0]["results"].clone();
    assert_eq!((results(&more), stored()), (results(&whole), 8));

    // Another scenario is run again.
    fs::write(folder.join("rate.toml"), SCENARIO.replace("1 Mbps", "1.1 Mbps")).unwrap();
    run(&["--controllers", "fixed", "--resume"]);
    assert_eq!(stored(), 12);

    // A changed value is refused.
    let sqlite = rusqlite::Connection::open(folder.join("out/results.sqlite")).unwrap();
    sqlite.execute("UPDATE value SET value = value * 1.5", []).unwrap();
    rejects(&suite(&["--controllers", "fixed", "--resume"]), &["is not as it was written", "a new folder"]);
    rejects(&paceline(&folder, &["suite", "own.suite.toml", "--resume"]), &["--out"]);
}

#[test]
fn rejects_wrong_arguments() {
    let folder = own("suite-rejects");
    rejects(&paceline(&folder, &["suite", "ownn"]), &["there is no suite `ownn`", "list suites"]);
    rejects(&paceline(&folder, &["suite", "own.suite.toml", "--controllers", "nadaa"]), &["`nadaa`", "`nada`"]);
    rejects(&paceline(&folder, &["suite", "own.suite.toml", "--plots"]), &["--out"]);
    rejects(&paceline(&folder, &["suite", "l4s", "--accept"]), &["part of the program", "copy its manifest"]);
    rejects(&paceline(&folder, &["run", "l4s.suite.toml"]), &["is a suite", "paceline suite"]);
}
