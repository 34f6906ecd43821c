// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline sweep`.

use super::{command, contains_all, document, paceline, rejects, stderr, stdout};
use paceline_lab::results::StoreError;
use paceline_lab::results::database::{Database, JobRun};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

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

/// Returns a folder with the scenario and this sweep.
fn folder(name: &str, sweep: &str) -> PathBuf {
    super::folder(&format!("sweep-{name}"), &[("call.toml", SCENARIO), ("rates.sweep.toml", sweep)])
}

#[test]
fn a_point_has_the_results_of_run() {
    let dir = folder("points", SWEEP);
    let swept = document(&paceline(&dir, &["sweep", "rates.sweep.toml", "--json"]), 0);
    let points = swept["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for (point, rate) in points.iter().zip([250_000, 500_000]) {
        let set = format!("flow.call.config.rate_bps={rate}");
        let run = document(&paceline(&dir, &["run", "call.toml", "--set", &set, "--repeats", "2", "--json"]), 0);
        assert_eq!(point["at"][0], rate);
        assert_eq!(point["values"][0]["mean"], run["summary"]["utilization"]["mean"]);
        assert_eq!(point["values"][0]["n"], 2);
        let measured = point["values"][1]["mean"].as_f64().unwrap() / f64::from(rate);
        assert!((0.97..1.03).contains(&measured), "{measured}");
    }
    assert_eq!([&points[0]["sum"], &points[1]["sum"]], [0.0, 2.0], "minimum and maximum of both columns");
    let on_threads = |threads| paceline(&dir, &["sweep", "rates.sweep.toml", "--json", "--threads", threads]).stdout;
    assert_eq!(on_threads("1"), on_threads("2"), "the number of threads does not matter");
}

#[test]
fn text_shows_a_table() {
    let dir = folder("table", SWEEP);
    let output = paceline(&dir, &["sweep", "rates.sweep.toml"]);
    let parts = ["Two rates", "media.config.rate_bps", "used:", "utilization", "250000", "500000", "0.5"];
    contains_all(stdout(&output, 0), &parts);
}

#[test]
fn bad_input_is_exit_code_2_with_a_hint() {
    let cases = [
        ("call.toml", "cal.toml", "cannot read cal.toml", "paceline list scenarios"),
        ("\"utilization\"", "\"utilisation\"", "no metric `utilisation`", "utilization"),
        ("flow = \"call\"", "flow = \"cal\"", "no flow `cal`", "call"),
        ("[250000, 500000]", "[]", "an axis without values", "values = [1, 2]"),
        ("media.config.rate_bps", "media.config.rate", "rate", "media."),
        ("\"8s\"]", "\"18s\"]", "within the run", "10 s"),
        ("repeats = 2", "repeats = 0", "repeats are 1 to 10000", "leave the key out"),
        ("window = [", "range = [1, 0]\nwindow = [", "a range goes from its lower end", "range = [0, 1]"),
        ("window = [", "range = [0, nan]\nwindow = [", "a range goes from its lower end", "range = [0, 1]"),
        ("[sum]", "[refine]\nbest = 1\nrepeats = 20000\n[sum]", "on 1 to 10000 seeds", "repeats = 5"),
        (
            "values = [250000, 500000]",
            "values = [250000]\n[[axis]]\none_at_a_time = [{ key = \"path.rtt\", base = 1 }]",
            "no axis beside them but controllers'",
            "`set` of a [[measure]]",
        ),
        ("values = [250000, 500000]", "log = { from = 0, to = 1, steps = 3 }", "above 0", "steps = 8"),
        ("values = [250000, 500000]", "samples = { from = 0, to = 1, count = 3 }", "above 0", "count = 1000"),
        (
            "values = [250000, 500000]",
            "values = [1]\nlog = { from = 1, to = 2, steps = 3 }",
            "one of `values`",
            "steps = 8",
        ),
        ("repeats = 2", "controllers = [\"gcc-2061\"]", "no controller", "gcc-2016"),
        ("name = \"rate\"", "name = \"used\"", "already the name", "a name of its own"),
        ("name = \"rate\"", "name = \"seed\"", "already the name", "a name of its own"),
        ("normalised = true", "normalised = true\nlarger_where = [\"a\", \"b\"]", "key of no axis", "rate_bps"),
        ("[sum]", "[published]\nx = 1\n[sum]", "a value for each key", "rate_bps"),
    ];
    for (index, (good, bad, message, hint)) in cases.into_iter().enumerate() {
        let dir = folder(&format!("bad{index}"), &SWEEP.replacen(good, bad, 1));
        rejects(&paceline(&dir, &["sweep", "rates.sweep.toml"]), &[message, hint]);
    }
    rejects(&paceline(&folder("unknown", SWEEP), &["sweep", "mmsys16/fig88"]), &["mmsys16/fig8"]);
}

#[test]
fn all_sweeps_of_the_catalogue_load() {
    let dir = folder("shipped", SWEEP);
    let listed = document(&paceline(&dir, &["list", "sweeps", "--json"]), 0);
    let names: Vec<&str> = listed["sweeps"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["mmsys16/fig7", "mmsys16/fig8", "mmsys16/static-threshold"]);
    assert!(names.contains(&"sensitivity/gcc-2016") && names.contains(&"sensitivity/nada"), "{names:?}");
    let titles: Vec<&str> =
        listed["sweeps"].as_array().unwrap().iter().map(|s| s["summary"].as_str().unwrap()).collect();
    assert!(titles.iter().all(|t| !t.is_empty() && !t.contains("broken")), "{titles:?}");
    let scenarios = document(&paceline(&dir, &["list", "scenarios", "--json"]), 0);
    assert!(!scenarios.to_string().contains("sweep"), "a sweep is not a scenario");
}

/// A claim on two gains, each at two values.
const CLAIM: &str = r#"id = "small/claim"
title = "Two gains"

[[axis]]
key = "media.config.k_u"
values = [1e-3, 1e-2]

[[axis]]
key = "media.config.k_d"
values = [1e-4, 5e-3]

[[measure]]
name = "used"
scenario = "mmsys16/table1"
set = { duration = "20s" }
metric = "utilization"

[sum]
normalised = false
larger_where = ["media.config.k_u", "media.config.k_d"]
"#;

#[test]
fn a_claim_that_cannot_be_judged_fails() {
    let claim = |name: &str, text: &str| {
        let output = paceline(&folder(name, text), &["sweep", "rates.sweep.toml"]);
        let text = String::from_utf8_lossy(&output.stdout);
        (output.status.code(), text.contains("the claim holds"), stderr(&output).contains("has no result"))
    };
    let claimed = claim("claim", CLAIM);
    let reversed = claim(
        "reversed-claim",
        &CLAIM.replace("[\"media.config.k_u\", \"media.config.k_d\"]", "[\"media.config.k_d\", \"media.config.k_u\"]"),
    );
    let (pass, fail) = ((Some(0), true, false), (Some(1), false, false));
    assert!([[pass, fail], [fail, pass]].contains(&[claimed, reversed]), "{claimed:?} {reversed:?}");
    assert_eq!(claim("one-sided", &CLAIM.replace("5e-3", "5e-4")), (Some(1), false, true));
}

#[test]
fn only_ten_of_many_points_are_shown() {
    let many = SWEEP.replace("values = [250000, 500000]", "linear = { from = 250_000, to = 500_000, steps = 41 }");
    let many = many.replace("repeats = 2", "repeats = 1");
    for (text, heading, rows) in [
        (many.clone(), "The best 10 of 41 points:", ["5.00e5", "4.94e5"]),
        (many.replace("[sum]\nnormalised = true\n", ""), "The first 10 of 41 points:", ["2.50e5", "3.06e5"]),
    ] {
        let dir = folder(&format!("many-{}", text.len()), &text);
        let output = paceline(&dir, &["sweep", "rates.sweep.toml"]);
        let text = stdout(&output, 0);
        contains_all(text, &[heading, rows[0], rows[1]]);
        assert!(!text.contains("3.75e5"), "no more than ten: {text}");
    }
}

/// 600 jobs, each long enough to kill the process between two of them.
const MANY: &str = r#"id = "small/many"
title = "Many rates"
repeats = 3

[[axis]]
key = "media.config.rate_bps"
samples = { from = 100_000, to = 900_000, count = 100 }

[[measure]]
name = "used"
scenario = "call.toml"
metric = "utilization"

[[measure]]
name = "delay"
scenario = "call.toml"
set = { duration = "6s" }
metric = "queue_p95_ms"

[sum]
normalised = true
"#;

const TABLES: [&str; 3] = ["rows.parquet", "points.parquet", "result.json"];

fn tables(dir: &Path, out: &str) -> Vec<Vec<u8>> {
    TABLES.iter().map(|name| fs::read(dir.join(out).join(name)).unwrap()).collect()
}

fn finished_jobs(dir: &Path) -> usize {
    let Ok(database) = Database::open(&dir.join("out")) else { return 0 };
    database.experiment("sweep").unwrap().map_or(0, |sweep| database.jobs(&sweep).unwrap().len())
}

/// Starts a sweep and waits until this number of jobs is finished.
fn start_until(dir: &Path, jobs: usize, arguments: &[&str]) -> Child {
    let mut child = command(dir, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while finished_jobs(dir) < jobs {
        assert_eq!(child.try_wait().unwrap(), None, "the sweep ended too early");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Kills a sweep with SIGKILL and returns the number of finished jobs.
fn kill(mut sweep: Child, dir: &Path) -> usize {
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    finished_jobs(dir)
}

#[test]
#[cfg(unix)]
fn a_killed_sweep_resumes_to_the_same_tables() {
    let dir = folder("killed", MANY);
    for (threads, out) in [("1", "one"), ("2", "two")] {
        let whole = paceline(&dir, &["sweep", "rates.sweep.toml", "--out", out, "--threads", threads, "--json"]);
        assert_eq!(document(&whole, 0)["points"], json!([]), "the points are in the folder");
    }
    assert_eq!(tables(&dir, "one"), tables(&dir, "two"), "the number of threads does not matter");

    let resume = ["sweep", "rates.sweep.toml", "--out", "out", "--resume", "--threads", "2"];
    let first = kill(start_until(&dir, 40, &resume[..4]), &dir);
    let second = kill(start_until(&dir, first + 40, &resume), &dir);
    assert!(second < 600, "some jobs are left");
    let last = paceline(&dir, &resume);
    stdout(&last, 0);
    let messages = stderr(&last);
    let before: usize = messages.split(" jobs are already stored").next().unwrap().trim().parse().unwrap();
    assert_eq!(before, second);
    assert_eq!(tables(&dir, "out"), tables(&dir, "one"));

    let again = paceline(&dir, &resume);
    stdout(&again, 0);
    contains_all(&stderr(&again), &["600 jobs are already stored, 0 remain"]);
    assert_eq!(tables(&dir, "out"), tables(&dir, "one"));
}

#[test]
fn rejects_a_folder_of_another_sweep() {
    let dir = folder("foreign", SWEEP);
    let sweep = |more: &[&str]| paceline(&dir, &[&["sweep", "rates.sweep.toml", "--out", "out"], more].concat());
    stdout(&sweep(&[]), 0);
    let stored = tables(&dir, "out");
    rejects(&sweep(&[]), &["4 of the 4 jobs of small/rates", "--resume"]);
    rejects(&sweep(&["--resume", "--repeats", "3"]), &["seeds per point", "a new folder"]);
    rejects(&sweep(&["--resume", "--set", "title=Other"]), &["text of its sweep", "a new folder"]);
    // The text of the sweep is the same, but a scenario has changed.
    fs::write(dir.join("call.toml"), SCENARIO.replace("1Mbps", "2Mbps")).unwrap();
    rejects(&sweep(&["--resume"]), &["a scenario of the sweep"]);
    assert_eq!(tables(&dir, "out"), stored);
    rejects(&paceline(&dir, &["report", "out"]), &["holds the sweep small/rates", "out/figures", "--resume"]);
    fs::create_dir(dir.join("mine")).unwrap();
    fs::write(dir.join("mine/thesis.txt"), "").unwrap();
    let other = paceline(&dir, &["sweep", "rates.sweep.toml", "--out", "mine"]);
    rejects(&other, &["holds no Paceline result"]);
    rejects(&paceline(&dir, &["sweep", "rates.sweep.toml", "--resume"]), &["--out"]);
}

/// Two sweeps that are started at once in a new folder: one has the folder, and the other is refused. Every row is of the sweep whose
/// text is stored.
#[test]
fn two_sweeps_do_not_share_a_folder() {
    let dir = folder("shared", SWEEP);
    fs::write(dir.join("other.sweep.toml"), SWEEP.replace("250000, 500000", "300000, 600000")).unwrap();
    for round in 0..10 {
        let out = format!("out{round}");
        let start = |name: &str| {
            let mut sweep = command(&dir, &["sweep", name, "--out", &out]);
            sweep.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let started = [start("rates.sweep.toml"), start("other.sweep.toml")];
        let ended = started.map(|sweep| sweep.wait_with_output().unwrap());
        let codes = ended.each_ref().map(|output| output.status.code().unwrap());
        assert!(codes == [0, 2] || codes == [2, 0], "{codes:?} {}", ended.each_ref().map(stderr).concat());
        let database = Database::open(&dir.join(&out)).unwrap();
        let sweep = database.experiment("sweep").unwrap().unwrap();
        let is_first = sweep.document.contains("250000");
        assert_eq!(is_first, codes[0] == 0);
        let wanted = if is_first { ["250000", "500000"] } else { ["300000", "600000"] };
        let mut rates = Vec::new();
        let each = |job: JobRun| -> Result<bool, StoreError> {
            rates.push(job.run.changes.last().unwrap().clone());
            Ok(true)
        };
        database.each_job(&sweep, each).unwrap();
        assert_eq!(
            rates,
            wanted
                .iter()
                .flat_map(|rate| [rate, rate])
                .map(|rate| format!("media.config.rate_bps={rate}"))
                .collect::<Vec<_>>()
        );
    }
}

/// Six million jobs start at once, with little memory and few files.
#[test]
#[cfg(target_os = "linux")]
fn a_sweep_of_millions_does_not_load_its_jobs() {
    let dir = folder("millions", &MANY.replace("count = 100 ", "count = 1_000_000 "));
    let sweep = start_until(&dir, 200, &["sweep", "rates.sweep.toml", "--out", "out", "--threads", "2"]);
    let status = fs::read_to_string(format!("/proc/{}/status", sweep.id())).unwrap();
    kill(sweep, &dir);
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // A plan takes some kilobytes: six million would take gigabytes.
    assert!((1_000..100_000).contains(&peak), "{peak} kB");
    let sweep = Database::open(&dir.join("out")).unwrap().experiment("sweep").unwrap().unwrap();
    assert!(sweep.document.contains("\"jobs\":6000000"), "{}", sweep.document);
}
