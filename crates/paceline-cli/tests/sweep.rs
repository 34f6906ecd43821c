//! `paceline sweep` as scripts and people meet it.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCENARIO: &str = r#"id = "small/call"
title = "A call at a constant rate"
duration = "10s"

[path.forward]
capacity = "1Mbps"

[[flow]]
id = "call"
controller = "fixed"
encoder = { source = "ideal" }
config = { rate_bps = 900000 }
"#;

const SWEEP: &str = r#"id = "small/rates"
title = "Two rates"
repeats = 2

[[axis]]
key = "media.config.rate_bps"
values = [250000, 500000]

[[measure]]
name = "used"
scenario = "call.toml"
metric = "utilization"

[[measure]]
name = "rate"
scenario = "call.toml"
metric = "throughput_bps"
flow = "call"
window = ["2s", "8s"]

[sum]
normalised = true
"#;

/// A folder with the scenario and this sweep, in which the command runs.
fn folder(name: &str, sweep: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("paceline-sweep-{}-{name}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("call.toml"), SCENARIO).unwrap();
    fs::write(dir.join("rates.sweep.toml"), sweep).unwrap();
    dir
}

fn paceline(dir: &Path, threads: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments).current_dir(dir).env("RAYON_NUM_THREADS", threads).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_point_is_what_run_says() {
    let dir = folder("points", SWEEP);
    let swept = json(&paceline(&dir, "2", &["sweep", "rates.sweep.toml", "--json"]));
    let points = swept["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for (point, rate) in points.iter().zip([250_000, 500_000]) {
        let set = format!("flow.call.config.rate_bps={rate}");
        let run = json(&paceline(&dir, "1", &["run", "call.toml", "--set", &set, "--repeats", "2", "--json"]));
        assert_eq!(point["at"][0], rate);
        assert_eq!(point["values"][0]["mean"], run["summary"]["utilization"]["mean"]);
        assert_eq!(point["values"][0]["n"], 2);
        let measured = point["values"][1]["mean"].as_f64().unwrap() / f64::from(rate);
        assert!((0.97..1.03).contains(&measured), "{measured}");
    }
    assert_eq!([&points[0]["sum"], &points[1]["sum"]], [0.0, 2.0], "least and largest of both columns");
    let one = paceline(&dir, "1", &["sweep", "rates.sweep.toml", "--json"]).stdout;
    assert_eq!(one, paceline(&dir, "2", &["sweep", "rates.sweep.toml", "--json"]).stdout, "threads do not matter");
}

#[test]
fn people_read_a_table() {
    let dir = folder("table", SWEEP);
    let output = paceline(&dir, "2", &["sweep", "rates.sweep.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["Two rates", "media.config.rate_bps", "used: utilization", "250000", "500000", "0.5"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn bad_input_gets_its_place_and_a_hint() {
    let cases = [
        ("call.toml", "cal.toml", "cannot read cal.toml", "paceline list scenarios"),
        ("\"utilization\"", "\"utilisation\"", "no metric `utilisation`", "utilization"),
        ("flow = \"call\"", "flow = \"cal\"", "no flow `cal`", "call"),
        ("[250000, 500000]", "[]", "an axis without values", "values = [1, 2]"),
        ("media.config.rate_bps", "media.config.rate", "rate", "media."),
        ("\"8s\"]", "\"18s\"]", "within the run", "10 s"),
        ("repeats = 2", "repeats = 0", "repeats are 1 to 10000", "leave the key out"),
        ("values = [250000, 500000]", "log = { from = 0, to = 1, steps = 3 }", "above 0", "steps = 8"),
    ];
    for (index, (good, bad, message, hint)) in cases.into_iter().enumerate() {
        let dir = folder(&format!("bad{index}"), &SWEEP.replacen(good, bad, 1));
        let output = paceline(&dir, "1", &["sweep", "rates.sweep.toml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{bad}: {said}");
        assert!(output.stdout.is_empty(), "{bad}");
        assert!(said.contains(message) && said.contains(hint), "{bad}: {said}");
    }
    let dir = folder("unknown", SWEEP);
    let output = paceline(&dir, "1", &["sweep", "mmsys16/fig88"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mmsys16/fig8"));
}

#[test]
fn what_is_shipped_is_listed_and_loads() {
    let dir = folder("shipped", SWEEP);
    let listed = json(&paceline(&dir, "1", &["list", "sweeps", "--json"]));
    let names: Vec<&str> = listed["sweeps"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mmsys16/fig8", "mmsys16/static-threshold"]);
    let titles: Vec<&str> =
        listed["sweeps"].as_array().unwrap().iter().map(|s| s["summary"].as_str().unwrap()).collect();
    assert!(titles.iter().all(|t| !t.is_empty() && !t.contains("broken")), "{titles:?}");
    let scenarios = json(&paceline(&dir, "1", &["list", "scenarios", "--json"]));
    assert!(!scenarios.to_string().contains("sweep"), "a sweep is no scenario");
}
