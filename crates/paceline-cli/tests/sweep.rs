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
    assert_eq!(names[..3], ["mmsys16/fig7", "mmsys16/fig8", "mmsys16/static-threshold"]);
    assert!(names.contains(&"sensitivity/gcc-2016") && names.contains(&"sensitivity/nada"), "{names:?}");
    let titles: Vec<&str> =
        listed["sweeps"].as_array().unwrap().iter().map(|s| s["summary"].as_str().unwrap()).collect();
    assert!(titles.iter().all(|t| !t.is_empty() && !t.contains("broken")), "{titles:?}");
    let scenarios = json(&paceline(&dir, "1", &["list", "scenarios", "--json"]));
    assert!(!scenarios.to_string().contains("sweep"), "a sweep is no scenario");
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
fn a_claim_that_cannot_be_judged_does_not_hold() {
    let claim = |name: &str, text: &str| {
        let output = paceline(&folder(name, text), "2", &["sweep", "rates.sweep.toml"]);
        let [said, told] = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.code(), told.contains("the claim holds"), said.contains("cannot be judged"))
    };
    let there = claim("claim", CLAIM);
    let back = claim(
        "counterclaim",
        &CLAIM.replace("[\"media.config.k_u\", \"media.config.k_d\"]", "[\"media.config.k_d\", \"media.config.k_u\"]"),
    );
    let (holds, fails) = ((Some(0), true, false), (Some(1), false, false));
    assert!([there, back] == [holds, fails] || [there, back] == [fails, holds], "{there:?} {back:?}");
    assert_eq!(claim("one-sided", &CLAIM.replace("5e-3", "5e-4")), (Some(1), false, true));
}

#[test]
fn many_points_without_a_sum_are_shown_in_their_order() {
    let many = SWEEP.replace("values = [250000, 500000]", "linear = { from = 250_000, to = 500_000, steps = 41 }");
    let many = many.replace("repeats = 2", "repeats = 1");
    for (text, heading, rows) in [
        (many.clone(), "The best 10 of 41 points:", ["5.00e5", "4.94e5"]),
        (many.replace("[sum]\nnormalised = true\n", ""), "The first 10 of 41 points:", ["2.50e5", "3.06e5"]),
    ] {
        let dir = folder(&format!("many-{}", text.len()), &text);
        let output = paceline(&dir, "2", &["sweep", "rates.sweep.toml"]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains(heading), "{told}");
        assert!(rows.iter().all(|row| told.contains(row)), "{told}");
        assert!(!told.contains("3.75e5"), "no more than ten: {told}");
    }
}

/// 300 jobs, each long enough that a kill falls between some of them.
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

/// Lines of finished jobs in a folder, whole ones.
fn lines(parts: &Path) -> usize {
    let Ok(names) = fs::read_dir(parts) else { return 0 };
    // A part may get its name between the list and the look.
    let texts = names.filter_map(|name| fs::read(name.ok()?.path()).ok());
    texts.map(|text| text.iter().filter(|byte| **byte == b'\n').count()).sum()
}

/// Starts a sweep and kills it, as SIGKILL does, once so many jobs are done; answers how many were.
#[cfg(unix)]
fn killed_after(dir: &Path, jobs: usize, arguments: &[&str]) -> usize {
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let parts = dir.join("out/parts");
    while lines(&parts) < jobs {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lines(&parts)
}

#[test]
#[cfg(unix)]
fn a_killed_sweep_goes_on_and_ends_as_if_it_had_not_been() {
    let dir = folder("killed", MANY);
    for (threads, out) in [("1", "one"), ("2", "two")] {
        let whole = paceline(&dir, "2", &["sweep", "rates.sweep.toml", "--out", out, "--threads", threads, "--json"]);
        assert_eq!(json(&whole)["points"], serde_json::json!([]), "they are in the folder");
    }
    assert_eq!(tables(&dir, "one"), tables(&dir, "two"), "threads do not matter");

    let resume = ["sweep", "rates.sweep.toml", "--out", "out", "--resume", "--threads", "2"];
    let first = killed_after(&dir, 40, &resume[..4]);
    let second = killed_after(&dir, first + 40, &resume);
    assert!(second < 600, "there is something left to do");
    let last = paceline(&dir, "2", &resume);
    let said = String::from_utf8_lossy(&last.stderr);
    assert!(last.status.success(), "{said}");
    // A job whose line was being written is made again, and no other: at most one for each thread.
    let before: usize = said.split(" jobs were done before").next().unwrap().trim().parse().unwrap();
    assert!((second - 2..=second).contains(&before), "{before} of {second}");
    assert_eq!(tables(&dir, "out"), tables(&dir, "one"));
    let left = fs::read_dir(dir.join("out/parts")).unwrap().count();
    assert_eq!(left, 1, "what is complete is one part");

    let again = paceline(&dir, "2", &resume);
    assert!(
        again.status.success() && String::from_utf8_lossy(&again.stderr).contains("600 jobs were done before, 0 are")
    );
    assert_eq!(tables(&dir, "out"), tables(&dir, "one"));
}

#[test]
fn a_folder_of_another_sweep_is_left_alone() {
    let dir = folder("foreign", SWEEP);
    let sweep = |more: &[&str]| {
        let arguments = [&["sweep", "rates.sweep.toml", "--out", "out"], more].concat();
        let output = paceline(&dir, "2", &arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(sweep(&[]).0, Some(0));
    let kept = tables(&dir, "out");
    for (more, message, hint) in [
        (&[][..], "4 of the 4 jobs of small/rates", "--resume"),
        (&["--resume", "--seeds", "3"][..], "seeds per point", "a new folder"),
        (&["--resume", "--set", "title=Other"][..], "text of its sweep", "a new folder"),
    ] {
        let (code, said) = sweep(more);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(message) && said.contains(hint), "{said}");
    }
    // The sweep's text is the same, and what it means is not.
    fs::write(dir.join("call.toml"), SCENARIO.replace("1Mbps", "2Mbps")).unwrap();
    let (code, said) = sweep(&["--resume"]);
    assert!(code == Some(2) && said.contains("a scenario of the sweep"), "{said}");
    assert_eq!(tables(&dir, "out"), kept);
    let output = paceline(&dir, "1", &["report", "out"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("holds the sweep small/rates"), "{said}");
    assert!(said.contains("out/figures") && said.contains("--resume"), "{said}");
    fs::create_dir(dir.join("mine")).unwrap();
    fs::write(dir.join("mine/thesis.txt"), "").unwrap();
    let output = paceline(&dir, "1", &["sweep", "rates.sweep.toml", "--out", "mine"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("holds no Paceline result"), "{said}");
    let (code, said) = {
        let output = paceline(&dir, "1", &["sweep", "rates.sweep.toml", "--resume"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(2) && said.contains("--out"), "{said}");
}

/// Three million jobs begin at once, in little memory and few files.
#[test]
#[cfg(target_os = "linux")]
fn a_sweep_of_millions_loads_none_of_them() {
    use std::process::Stdio;
    let dir = folder("millions", &MANY.replace("count = 100 ", "count = 1_000_000 "));
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(["sweep", "rates.sweep.toml", "--out", "out", "--threads", "2"]).current_dir(&dir);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let parts = dir.join("out/parts");
    while lines(&parts) < 200 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before its jobs were done");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    // A plan alone has some kilobytes: six million of them would take gigabytes.
    assert!((1_000..100_000).contains(&most), "{most} kB");
    assert!(fs::read_dir(&parts).unwrap().count() < 20);
    let about: Value = serde_json::from_slice(&fs::read(dir.join("out/sweep.json")).unwrap()).unwrap();
    assert_eq!(about["jobs"], 6_000_000);
}
