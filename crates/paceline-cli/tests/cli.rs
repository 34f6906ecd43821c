//! The command as scripts and people meet it: documents on stdout, talk on stderr, exit codes.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SHORT: [&str; 4] = ["run", "mmsys16/table1", "--set", "duration=20s"];

const SCENARIO: &str = r#"id = "test/cli"
title = "A scenario of its own"
duration = "20s"
[path]
rtt = "40ms"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
audio = {}
"#;

fn paceline_in(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paceline")).args(arguments).current_dir(folder).output().expect("it runs")
}

fn paceline(arguments: &[&str]) -> Output {
    paceline_in(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

/// A folder for one test, emptied.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("stdout is UTF-8")
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one document on stdout of a command that ended with `code`.
#[track_caller]
fn document(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", talk(output));
    serde_json::from_slice(&output.stdout).expect("stdout is exactly one JSON document")
}

/// Bad input: exit 2, nothing on stdout, this on stderr.
#[track_caller]
fn refused(output: &Output, says: &[&str]) {
    let talk = talk(output);
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert_eq!(out(output), "");
    for text in says {
        assert!(talk.contains(text), "`{text}` is not in:\n{talk}");
    }
}

#[track_caller]
fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn numbers(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value[name].is_number(), "`{name}` is {}", value[name]);
    }
}

#[track_caller]
fn texts(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value[name].is_string(), "`{name}` is {}", value[name]);
    }
}

#[track_caller]
fn distribution(value: &Value) {
    numbers(value, &["p5", "p50", "p90", "p95", "p99", "max", "mean", "std"]);
}

#[track_caller]
fn link(value: &Value) {
    texts(value, &["id"]);
    numbers(value, &["loss_ratio"]);
    assert!(value["utilization"].is_number() || value["capacity_bps"].is_null(), "{value}");
    distribution(&value["queue_ms"]);
}

#[track_caller]
fn summary(value: &Value, n: u64) {
    assert!(keys(value).contains("utilization") && keys(value).contains("loss_ratio"), "{value}");
    for (metric, entry) in value.as_object().unwrap() {
        numbers(entry, &["mean", "std"]);
        assert_eq!(entry["n"], n, "{metric}");
        assert_eq!(entry["ci95"].is_null(), n == 1, "{metric}: one run has no interval");
    }
}

/// One run in the shape that scripts rely on.
#[track_caller]
fn run_of(run: &Value, seed: u64, controller: &str) {
    texts(run, &["world", "trace_hash"]);
    numbers(run, &["seed", "duration_s", "wall_s", "events", "jain"]);
    assert_eq!((&run["world"], &run["seed"]), (&Value::from("sim"), &Value::from(seed)));
    let hash = run["trace_hash"].as_str().unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
    run["links"].as_array().unwrap().iter().for_each(link);
    link(&run["link"]);
    assert!(run["links"].as_array().unwrap().contains(&run["link"]), "the bottleneck is one of the links");
    for flow in run["flows"].as_array().unwrap() {
        texts(flow, &["id", "kind", "controller"]);
        assert_eq!((flow["kind"].as_str(), flow["controller"].as_str()), (Some("media"), Some(controller)));
        numbers(flow, &["start_s", "stop_s", "throughput_bps", "goodput_bps", "loss_ratio"]);
        for times in ["owd_ms", "rtt_ms", "rtt_sampled_queue_ms"] {
            distribution(&flow[times]);
        }
        for stream in flow["streams"].as_array().unwrap() {
            texts(stream, &["id", "kind"]);
            numbers(stream, &["throughput_bps", "target_bps_mean", "freezes", "freeze_s", "frames_dropped"]);
            distribution(&stream["frame_delay_ms"]);
        }
    }
}

#[test]
fn alone_it_says_what_to_try() {
    let output = paceline(&[]);
    assert_eq!(output.status.code(), Some(0));
    let text = out(&output);
    let commands: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("  paceline ")).collect();
    assert_eq!(commands.len(), 3, "{text}");
    assert!(text.contains("congestion control") && text.contains("Three things to try first"));
    // And they work as printed.
    for line in commands {
        let arguments: Vec<&str> = line.split("  ").next().unwrap().split_whitespace().collect();
        // A claim need not hold on a single seed: then the answer is 1.
        let (more, codes): (&[&str], &[i32]) = match arguments[0] {
            "reproduce" => (&["--seeds", "1"], &[0, 1]),
            _ => (&["--set", "duration=5s", "--repeats", "1"], &[0]),
        };
        let output = paceline(&[&arguments, more].concat());
        assert!(codes.contains(&output.status.code().unwrap()), "{line}: {}", talk(&output));
        assert!(!out(&output).is_empty(), "{line}");
    }
}

#[test]
fn list_names_everything_once() {
    let all = document(&paceline(&["list", "--json"]), 0);
    for kind in ["controllers", "scenarios", "queues", "metrics", "flows", "tcp"] {
        let entries = all[kind].as_array().expect(kind);
        let names: BTreeSet<&str> = entries.iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert!(!names.is_empty() && names.len() == entries.len(), "{kind}");
        assert!(entries.iter().all(|e| !e["summary"].as_str().unwrap().is_empty()), "{kind}");
        let one = document(&paceline(&["list", kind, "--json"]), 0);
        assert_eq!(one[kind], all[kind]);
        let text = paceline(&["list", kind]);
        assert!(names.iter().all(|n| out(&text).contains(n)), "{kind}");
    }
    // Those that a build without browsers has are of every world; a build with them has three more.
    let elsewhere = all["controllers"].as_array().unwrap().iter().filter(|e| !e["world"].is_null());
    let marked: Vec<&str> = elsewhere
        .filter(|e| e["summary"].as_str().unwrap().ends_with("[only in --world browser]"))
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    let own = ["chromium", "chromium-rfc8888", "chromium-scream"];
    assert_eq!(marked, if cfg!(all(feature = "browser", target_os = "linux")) { &own[..] } else { &[] });
    let one = paceline(&["list", "controllers", "chromium"]);
    assert_eq!(one.status.code(), Some(if marked.is_empty() { 2 } else { 0 }), "{}", talk(&one));
    let broken = |e: &&Value| e["summary"].as_str().unwrap().starts_with("broken");
    assert_eq!(all["scenarios"].as_array().unwrap().iter().find(broken), None);
    let metrics: BTreeSet<&str> =
        all["metrics"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    for id in [
        "utilization",
        "good_utilization",
        "loss_ratio",
        "queue_p5_ms",
        "queue_p50_ms",
        "queue_p95_ms",
        "owd_p95_ms",
        "rtt_p50_ms",
        "rtt_p95_ms",
        "jain",
        "throughput_bps",
        "share",
        "converge_s",
    ] {
        assert!(metrics.contains(id), "the contract promises `{id}`");
    }
}

#[test]
fn a_run_as_json_keeps_the_contract() {
    let one = document(&paceline(&[&SHORT[..], &["--json"]].concat()), 0);
    assert!(keys(&one).is_superset(&["scenario", "runs", "summary"].into()), "{:?}", keys(&one));
    assert_eq!(one["scenario"], "mmsys16/table1");
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    run_of(&one["runs"][0], 1, "gcc-2016");
    assert_eq!(one["runs"][0]["duration_s"], 20.0);
    summary(&one["summary"], 1);

    let again = document(&paceline(&[&SHORT[..], &["--json"]].concat()), 0);
    assert_eq!(one["runs"][0]["trace_hash"], again["runs"][0]["trace_hash"]);
    let other = document(&paceline(&[&SHORT[..], &["--json", "--seed", "2"]].concat()), 0);
    assert_ne!(one["runs"][0]["trace_hash"], other["runs"][0]["trace_hash"]);
    run_of(&other["runs"][0], 2, "gcc-2016");
}

#[test]
fn repeats_are_consecutive_seeds() {
    let result = document(&paceline(&[&SHORT[..], &["--json", "--repeats", "3", "--seed", "7"]].concat()), 0);
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for (run, seed) in runs.iter().zip(7..) {
        run_of(run, seed, "gcc-2016");
    }
    summary(&result["summary"], 3);
    let used: f64 = runs.iter().map(|r| r["link"]["utilization"].as_f64().unwrap()).sum();
    assert!((result["summary"]["utilization"]["mean"].as_f64().unwrap() - used / 3.0).abs() < 1e-12);
}

#[test]
fn several_controllers_are_one_document() {
    let both =
        document(&paceline(&[&SHORT[..], &["--json", "--controller", "fixed,gcc-2016", "--repeats", "2"]].concat()), 0);
    assert_eq!(both["scenario"], "mmsys16/table1");
    let runs = both["runs"].as_array().unwrap();
    let expected = [(1, "fixed"), (2, "fixed"), (1, "gcc-2016"), (2, "gcc-2016")];
    assert_eq!(runs.len(), expected.len());
    for (run, (seed, controller)) in runs.iter().zip(expected) {
        run_of(run, seed, controller);
    }
    assert_eq!(keys(&both["controllers"]), ["fixed", "gcc-2016"].into());
    assert_eq!(both["summary"], both["controllers"]["fixed"]);
    summary(&both["controllers"]["gcc-2016"], 2);
    // One controller has the plain shape, and the same numbers.
    let one = document(&paceline(&[&SHORT[..], &["--json", "--controller", "gcc-2016", "--repeats", "2"]].concat()), 0);
    assert_eq!(one["summary"], both["controllers"]["gcc-2016"]);
    assert!(one.get("controllers").is_none());
}

#[test]
fn compare_gives_each_controller_its_result() {
    let arguments =
        ["compare", "mmsys16/table1", "--controllers", "gcc-2016,fixed", "--set", "duration=20s", "--repeats", "2"];
    let result = document(&paceline(&[&arguments[..], &["--json"]].concat()), 0);
    assert_eq!(result["scenario"], "mmsys16/table1");
    let each = result["controllers"].as_array().unwrap();
    assert_eq!(each.iter().map(|e| e["controller"].as_str().unwrap()).collect::<Vec<_>>(), ["gcc-2016", "fixed"]);
    for entry in each {
        summary(&entry["result"]["summary"], 2);
        run_of(&entry["result"]["runs"][1], 2, entry["controller"].as_str().unwrap());
    }
    let output = paceline(&arguments);
    assert_eq!(output.status.code(), Some(0));
    assert!(out(&output).contains("gcc-2016") && out(&output).contains("fixed") && out(&output).contains('±'));
}

#[test]
fn schema_names_what_a_scenario_may_say() {
    let schema = document(&paceline(&["schema"]), 0);
    let top = keys(&schema["properties"]);
    for key in [
        "id",
        "title",
        "source",
        "duration",
        "repeats",
        "path",
        "flow",
        "measure",
        "case",
        "expect",
        "assert",
        "constants",
    ] {
        assert!(top.contains(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn people_read_no_nonsense() {
    let settings: [&[&str]; 5] = [
        &[],
        &["--controller", "gcc-2016,fixed"],
        &["--repeats", "2"],
        // Nothing arrives, no hop has a capacity, a run shorter than a second.
        &["--set", "path.forward.loss=100 %"],
        &["--set", "duration=300ms", "--set", "path.forward.capacity=1 Mbps"],
    ];
    for more in settings {
        let output = paceline(&[&SHORT[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{more:?}: {}", talk(&output));
        let text = out(&output);
        let words = text.split(|c: char| !c.is_alphanumeric());
        for word in words {
            assert!(!["NaN", "nan", "inf", "Infinity"].contains(&word), "{more:?}:\n{text}");
        }
        assert!(text.contains("utilization") || more.contains(&"duration=300ms"), "{text}");
        document(&paceline(&[&SHORT[..], more, &["--json"]].concat()), 0);
    }
}

#[test]
fn tcp_flows_read_well() {
    let folder = folder("tcp");
    let tcp = "[[flow]]\nid = \"web\"\nkind = \"tcp\"\ncount = 20\n";
    let (head, media) = SCENARIO.split_once("[[flow]]").unwrap();
    fs::write(folder.join("mixed.toml"), format!("{head}{tcp}[[flow]]{media}")).unwrap();
    fs::write(folder.join("alone.toml"), format!("{head}{tcp}")).unwrap();
    for more in [&["mixed.toml"][..], &["alone.toml"], &["alone.toml", "--repeats", "2"]] {
        let output = paceline_in(&folder, &[&["run"][..], more].concat());
        let text = out(&output);
        assert!(!text.contains("-0.0") && !text.contains("web-2 "), "{text}");
        let row = text.lines().find(|l| l.contains("web-1 … web-20, mean of 20")).expect("one row for all");
        // No target, no frames, no freezes; a throughput, a loss ratio and two delays.
        assert_eq!((row.matches(" –").count(), row.matches(" ms").count()), (4, 2), "{row}");
        assert_eq!(text.matches("web-1 … web-20, sum of 20").count(), 1, "{text}");
        if more[0] == "mixed.toml" {
            let rows: Vec<&str> = text.lines().filter(|l| l.contains(" of 20") || l.starts_with("  video ")).collect();
            assert!(rows.len() == 4 && rows[0].contains("video") && rows[2].contains("video"), "{text}");
            assert!(text.contains("media_utilization"), "{text}");
        }
    }
    let alone = document(&paceline_in(&folder, &["run", "alone.toml", "--json"]), 0);
    for without in ["target_bps", "freeze_s", "objective", "media_utilization", "media_jain", "spread", "rtt_p50_ms"] {
        assert!(alone["summary"].get(without).is_none(), "{without}");
    }
    assert!(alone["summary"]["drops"]["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_assertion_that_fails_is_exit_1() {
    let folder = folder("assert");
    let with = |bounds: &str| {
        let text = format!("{SCENARIO}[[assert]]\nid = \"used\"\nmetric = \"utilization\"\nbounds = {bounds}\n");
        fs::write(folder.join("own.toml"), text).unwrap();
        paceline_in(&folder, &["run", "own.toml"])
    };
    let holds = with("[0.0, 1.01]");
    assert_eq!(holds.status.code(), Some(0), "{}", talk(&holds));
    assert!(out(&holds).contains("holds  used: utilization is ") && out(&holds).contains("wanted 0.0 % to 101.0 %"));
    let fails = with("[0.99, 1.0]");
    assert_eq!(fails.status.code(), Some(1));
    assert!(out(&fails).contains("FAILS  used: utilization is ") && out(&fails).contains("wanted 99.0 % to 100.0 %"));
    let json = document(&paceline_in(&folder, &["run", "own.toml", "--json"]), 1);
    assert_eq!(json["assertions"][0]["holds"], false);
    assert_eq!(paceline_in(&folder, &["compare", "own.toml", "--controllers", "gcc-2016"]).status.code(), Some(1));
}

#[test]
fn bad_input_is_exit_2_with_a_place_and_a_hint() {
    let folder = folder("bad");
    fs::write(folder.join("broken.toml"), SCENARIO.replace("1Mbps", "1 mbps")).unwrap();
    let run = |arguments: &[&str]| paceline_in(&folder, arguments);
    for command in [&["run", "broken.toml"][..], &["run", "broken.toml", "--json", "--out", "results"]] {
        refused(
            &run(command),
            &["`1 mbps` is not a rate", "broken.toml:7:12", "capacity = \"1 mbps\"", "────", "Mbps"],
        );
    }
    assert!(!folder.join("results").exists(), "a broken scenario writes nothing");
    refused(&run(&["run", "mmsys16/tabel1"]), &["no scenario `mmsys16/tabel1`", "did you mean `mmsys16/table1`"]);
    refused(&run(&["run", "none.toml"]), &["cannot read none.toml", "list scenarios"]);
    let out = ["--out", "results"];
    refused(
        &run(&[&SHORT[..], &["--controller", "gcc2016"], &out].concat()),
        &["no controller `gcc2016`", "`gcc-2016`?"],
    );
    refused(&run(&["compare", "mmsys16/table1", "--controllers", "gcc-2016,x"]), &["no controller `x`", "known"]);
    refused(
        &run(&["run", "mmsys16/table1", "--controller", "chromium"]),
        &["no controller `chromium`", "--world browser"],
    );
    refused(&run(&["run", "mmsys16/table1", "--set", "flow.video.controller=chromium-scream"]), &["--world browser"]);
    refused(
        &run(&[&SHORT[..], &["--set", "path.forward.capcity=1Mbps"], &out].concat()),
        &["capcity", "`capacity`", "--set"],
    );
    refused(&run(&[&SHORT[..], &["--set", "duration"]].concat()), &["KEY=VALUE"]);
    refused(&run(&[&SHORT[..], &["--world", "moon"]].concat()), &["no world `moon`", "`sim`"]);
    refused(&run(&[&SHORT[..], &["--repeats", "0"]].concat()), &["--repeats"]);
    refused(&run(&["run"]), &["SCENARIO"]);
    refused(&run(&["fly"]), &["fly"]);
    assert!(!folder.join("results").exists(), "bad usage writes nothing");
}

#[test]
fn a_gap_lies_between_two_worlds_that_there_are() {
    refused(&paceline(&["gap", "mmsys16/table1", "--world", "sim"]), &["between the simulator and another world"]);
    refused(&paceline(&["gap", "mmsys16/table1", "--world", "testbad"]), &["did you mean `testbed`"]);
}

#[test]
#[cfg(not(feature = "browser"))]
fn a_world_that_is_not_there_is_exit_3() {
    let world = "browser";
    let output = paceline(&["gap", "mmsys16/table1", "--world", world, "--json"]);
    assert_eq!((output.status.code(), out(&output)), (Some(3), ""), "{}", talk(&output));
    assert!(talk(&output).contains(world));
    let output = paceline(&[&SHORT[..], &["--world", world, "--json"]].concat());
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(out(&output), "");
    assert!(talk(&output).contains(world) && talk(&output).contains("--features browser"), "{}", talk(&output));
    let short = paceline(&["call", "mmsys16/table1"]);
    assert_eq!((short.status.code(), talk(&short)), (Some(3), talk(&output)));
}

#[test]
fn results_are_written_where_asked_and_replaced_by_a_rerun() {
    let folder = folder("out");
    let arguments = [&SHORT[..], &["--out", "results", "--repeats", "2", "--json"]].concat();
    let printed = document(&paceline_in(&folder, &arguments), 0);
    let results = folder.join("results");
    let manifest = || -> Value { serde_json::from_slice(&fs::read(results.join("manifest.json")).unwrap()).unwrap() };
    let first = manifest();
    assert_eq!(first["runs"].as_array().unwrap().len(), 2);
    let mut folders: Vec<PathBuf> =
        fs::read_dir(results.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert_eq!(folders.len(), 2);
    for (run, printed) in folders.iter().zip(printed["runs"].as_array().unwrap()) {
        for table in ["packets.parquet", "flows.parquet", "frames.parquet", "signals.parquet"] {
            let bytes = fs::read(run.join(table)).unwrap();
            assert!(bytes.len() > 500 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
        }
        let stored: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
        assert_eq!(stored["trace_hash"], printed["trace_hash"]);
        run_of(&stored, printed["seed"].as_u64().unwrap(), "gcc-2016");
    }
    // Again: the same runs in the same places. Another controller: beside them.
    document(&paceline_in(&folder, &arguments), 0);
    assert_eq!(manifest()["runs"].as_array().unwrap().len(), 2);
    document(&paceline_in(&folder, &[&arguments[..], &["--controller", "fixed"]].concat()), 0);
    assert_eq!(manifest()["runs"].as_array().unwrap().len(), 4);
    // A folder of something else is not touched.
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(folder.join("other/mine.txt"), "mine").unwrap();
    let output = paceline_in(&folder, &[&SHORT[..], &["--out", "other"]].concat());
    refused(&output, &["other", "not empty"]);
    assert_eq!(fs::read_dir(folder.join("other")).unwrap().count(), 1);
}

#[test]
fn a_run_without_out_writes_no_file() {
    let folder = folder("nothing");
    document(&paceline_in(&folder, &[&SHORT[..], &["--json"]].concat()), 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_scenario_by_path_finds_the_files_beside_it() {
    let folder = folder("path");
    fs::create_dir(folder.join("inner")).unwrap();
    let text = SCENARIO.replace("\"1Mbps\"", "{ trace = \"steps.csv\" }");
    fs::write(folder.join("inner/own.toml"), text).unwrap();
    fs::write(folder.join("inner/steps.csv"), "time_s,rate_mbps\n0,0.8\n10,0.4\n").unwrap();
    let result = document(&paceline_in(&folder, &["run", "inner/own.toml", "--json"]), 0);
    assert_eq!(result["scenario"], "test/cli");
    let capacity = result["runs"][0]["link"]["capacity_bps"].as_f64().unwrap();
    assert!((capacity - 600e3).abs() < 1e3, "10 s at 0.8 and 10 s at 0.4 Mbit/s, not {capacity}");
    // What `--set` names is found from where the command was typed.
    fs::write(folder.join("here.csv"), "time_s,rate_mbps\n0,2\n").unwrap();
    let set = ["run", "inner/own.toml", "--json", "--set", "path.forward.capacity.trace=here.csv"];
    let result = document(&paceline_in(&folder, &set), 0);
    assert_eq!(result["runs"][0]["link"]["capacity_bps"], 2e6);
}

#[test]
fn a_long_run_talks_on_stderr_only() {
    let output = paceline(&["run", "mmsys16/table1", "--repeats", "12", "--json"]);
    assert_eq!(document(&output, 0)["runs"].as_array().unwrap().len(), 12);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paceline"))
        .args(["list", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), talk(&output)), (Some(0), String::new()));
}

#[test]
fn a_capture_is_of_one_run() {
    let folder = folder("pcap");
    let short = ["run", "mmsys16/table1", "--set", "duration=5s", "--json", "--pcap", "run.pcapng"];
    for more in [["--repeats", "2"], ["--controller", "gcc-2016,fixed"]] {
        let refusal = paceline_in(&folder, &[&short[..], &more].concat());
        refused(&refusal, &["--pcap takes one run, and this asks for 2", "--seed"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is written");
    }
    let nowhere = ["run", "mmsys16/table1", "--set", "duration=5s", "--pcap", "no/folder/run.pcapng"];
    refused(&paceline_in(&folder, &nowhere), &["cannot create the file `no/folder/run.pcapng`"]);

    let plain = document(&paceline_in(&folder, &short[..5]), 0);
    for more in [&[][..], &["--out", "rows"]] {
        let written = paceline_in(&folder, &[&short[..], more].concat());
        assert!(talk(&written).contains("packets are in run.pcapng"));
        let watched = document(&written, 0);
        assert_eq!(watched["runs"][0]["trace_hash"], plain["runs"][0]["trace_hash"]);
    }
    let bytes = fs::read(folder.join("run.pcapng")).unwrap();
    assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && bytes.len() > 100_000, "{}", bytes.len());
    assert!(folder.join("rows/manifest.json").exists());
}

#[test]
fn report_draws_vector_files() {
    let folder = folder("svg");
    let run = ["run", "mmsys16/table1", "--set", "duration=5s", "--out", "results"];
    paceline_in(&folder, &run);
    let report = |arguments: &[&str]| paceline_in(&folder, &[&["report", "results"], arguments].concat());
    let within = report(&["--svg"]);
    assert_eq!((within.status.code(), out(&within)), (Some(0), ""), "{}", talk(&within));
    let elsewhere = report(&["--svg", "pictures"]);
    assert_eq!(elsewhere.status.code(), Some(0), "{}", talk(&elsewhere));
    let files = |place: &str| -> BTreeSet<_> {
        fs::read_dir(folder.join(place)).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let names = files("results/figures");
    assert_eq!(names, files("pictures"));
    assert!(names.contains(std::ffi::OsStr::new("mmsys16-fig13.svg")), "{names:?}");
    assert!(talk(&elsewhere).contains(&format!("{} pictures are in pictures", names.len())), "{}", talk(&elsewhere));
    for name in &names {
        let text = fs::read_to_string(folder.join("pictures").join(name)).unwrap();
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{name:?}");
    }
    refused(&report(&["--svg", "--out", "page.html"]), &["--svg", "--out"]);
    refused(&paceline_in(&folder, &["report", "nowhere", "--svg"]), &["nowhere"]);
    assert!(!folder.join("nowhere").exists());
}
