//! `paceline suite`: a suite of the user in a folder of its own.

use super::{contains_all, document, folder, keys, one_line, paceline, read_json, rejects, stderr, stdout};
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
    contains_all(&text, &["2 tests, 2 runs of each", "fixed 1/2 1/2", "fail fixed own/rate rate=high, no-queue"]);
    contains_all(&text, &["0 to 5 s: queue_p95_ms is", "allowed 0.0 ms to 50.0 ms", "--accept writes those"]);

    let accepted = run(&["--accept"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", stderr(&accepted));
    let expected = fs::read_to_string(folder.join("own.expected.toml")).unwrap();
    contains_all(&expected, &["repeats = 2", "fixed = [\n    \"own/rate rate=high: no-queue\",\n]"]);
    contains_all(&one_line(stdout(&run(&[]), 0)), &["every verdict is as expected"]);

    fs::write(folder.join("own.expected.toml"), expected.replace("rate=high", "rate=low")).unwrap();
    let changed = run(&[]);
    contains_all(
        &one_line(stdout(&changed, 1)),
        &["fixed: own/rate rate=high: no-queue now fails", "fixed: own/rate rate=low: no-queue now passes"],
    );
    contains_all(&one_line(stdout(&run(&["--repeats", "1"]), 0)), &["the expected verdicts are of 2 runs"]);
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
        &[&format!("href=\"{plots}\""), "half of the queue", "A &#60;constant&#62; rate", "class=\"pareto\""],
    );
    assert!(!page.contains("<script") && !page.contains("<constant>"));

    // `report` draws the same page again.
    fs::remove_file(folder.join("out/suites.html")).unwrap();
    stdout(&paceline(&folder, &["report", "out"]), 0);
    assert_eq!(fs::read_to_string(folder.join("out/suites.html")).unwrap(), page);
}

/// The document does not depend on the number of threads.
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

#[test]
fn rejects_wrong_arguments() {
    let folder = own("suite-rejects");
    rejects(&paceline(&folder, &["suite", "ownn"]), &["there is no suite `ownn`", "list suites"]);
    rejects(&paceline(&folder, &["suite", "own.suite.toml", "--controllers", "nadaa"]), &["`nadaa`", "`nada`"]);
    rejects(&paceline(&folder, &["suite", "own.suite.toml", "--plots"]), &["--out"]);
    rejects(&paceline(&folder, &["suite", "l4s", "--accept"]), &["part of the program", "copy its manifest"]);
    rejects(&paceline(&folder, &["run", "l4s.suite.toml"]), &["is a suite", "paceline suite"]);
}
