// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands `list`, `run`, `compare`, `report` and `schema`, and errors of all commands.

use super::{contains_all, document, folder, keys, one_line, rejects, stderr, stdout, stored};
use paceline_lab::results::Store;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const SHORT: [&str; 4] = ["run", "mmsys16/table1", "--set", "duration=20s"];

const SCENARIO: &str = r#"id = "test/cli"
title = "A test scenario"
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

fn paceline(arguments: &[&str]) -> Output {
    super::paceline(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

/// Returns the document of a short run with more arguments.
#[track_caller]
fn short(more: &[&str]) -> Value {
    document(&paceline(&[&SHORT[..], more, &["--json"]].concat()), 0)
}

#[track_caller]
fn numbers(value: &Value, names: &[&str]) {
    assert!(names.iter().all(|name| value[name].is_number()), "{names:?} of {value}");
}

#[track_caller]
fn texts(value: &Value, names: &[&str]) {
    assert!(names.iter().all(|name| value[name].is_string()), "{names:?} of {value}");
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

/// Checks one run for the documented fields.
#[track_caller]
fn run_of(run: &Value, seed: u64, controller: &str) {
    texts(run, &["world", "trace_hash"]);
    numbers(run, &["seed", "duration_s", "wall_s", "events"]);
    assert!(run["jain"].is_null(), "one flow shares with nobody");
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
fn welcome_names_three_commands_that_work() {
    let output = paceline(&[]);
    let text = stdout(&output, 0);
    let commands: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("    paceline ")).collect();
    assert_eq!(commands.len(), 3, "{text}");
    assert!(text.contains("congestion control") && text.contains("Three things to try first"));
    for line in commands {
        let arguments: Vec<&str> = line.split("  ").next().unwrap().split_whitespace().collect();
        // A claim may fail on a single seed: then the exit code is 1.
        let (more, codes): (&[&str], &[i32]) = match arguments[0] {
            "reproduce" => (&["--repeats", "1"], &[0, 1]),
            _ => (&["--set", "duration=5s", "--repeats", "1"], &[0]),
        };
        let output = paceline(&[&arguments, more].concat());
        assert!(codes.contains(&output.status.code().unwrap()), "{line}: {}", stderr(&output));
        assert!(!output.stdout.is_empty(), "{line}");
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
        assert!(names.iter().all(|n| stdout(&text, 0).contains(n)), "{kind}");
    }
    // A build with browsers has three controllers that exist only in that world.
    let of_worlds = all["controllers"].as_array().unwrap().iter().filter(|e| !e["world"].is_null());
    let marked: Vec<&str> = of_worlds
        .filter(|e| e["summary"].as_str().unwrap().ends_with("[only in --world browser]"))
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    let own = ["chromium", "chromium-rfc8888", "chromium-scream"];
    assert_eq!(marked, if cfg!(all(feature = "browser", target_os = "linux")) { &own[..] } else { &[] });
    let one = paceline(&["list", "controllers", "chromium"]);
    assert_eq!(one.status.code(), Some(if marked.is_empty() { 2 } else { 0 }), "{}", stderr(&one));
    let broken = |e: &&Value| e["summary"].as_str().unwrap().starts_with("broken");
    assert_eq!(all["scenarios"].as_array().unwrap().iter().find(broken), None);
    let metrics: BTreeSet<&str> =
        all["metrics"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    for id in "utilization good_utilization loss_ratio queue_p5_ms queue_p50_ms queue_p95_ms owd_p95_ms \
               rtt_p50_ms rtt_p95_ms jain throughput_bps share convergence_time_s"
        .split(' ')
    {
        assert!(metrics.contains(id), "documented metric `{id}`");
    }
}

#[test]
fn run_prints_the_documented_json() {
    let one = short(&[]);
    assert!(keys(&one).is_superset(&["scenario", "runs", "summary"].into()), "{:?}", keys(&one));
    assert_eq!(one["scenario"], "mmsys16/table1");
    assert_eq!(one["runs"].as_array().unwrap().len(), 1);
    run_of(&one["runs"][0], 1, "gcc-2016");
    assert_eq!(one["runs"][0]["duration_s"], 20.0);
    summary(&one["summary"], 1);

    let again = short(&[]);
    assert_eq!(one["runs"][0]["trace_hash"], again["runs"][0]["trace_hash"]);
    let other = short(&["--seed", "2"]);
    assert_ne!(one["runs"][0]["trace_hash"], other["runs"][0]["trace_hash"]);
    run_of(&other["runs"][0], 2, "gcc-2016");
}

#[test]
fn repeats_use_consecutive_seeds() {
    let result = short(&["--repeats", "3", "--seed", "7"]);
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
fn run_prints_one_document_for_several_controllers() {
    let both = short(&["--controller", "fixed,gcc-2016", "--repeats", "2"]);
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
    // One controller gives the plain document, with the same numbers.
    let one = short(&["--controller", "gcc-2016", "--repeats", "2"]);
    assert_eq!(one["summary"], both["controllers"]["gcc-2016"]);
    assert!(one.get("controllers").is_none());
}

#[test]
fn compare_returns_a_result_for_each_controller() {
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
    contains_all(stdout(&paceline(&arguments), 0), &["gcc-2016", "fixed", "±"]);
}

/// `run` and `compare` describe a score in the same words; runs without media flows have none.
#[test]
fn run_prints_the_score_as_compare_does() {
    let scenario = ["mmsys16/table1", "--set", "duration=20s", "--repeats", "2"];
    let text = |arguments: &[&str]| one_line(stdout(&paceline(arguments), 0));
    let run = text(&[&["run"][..], &scenario, &["--controller", "nada"]].concat());
    // A mean with its interval, `of 100:`, and three parts.
    let score = run.split(" score ").nth(1).expect("a score").split(' ').take(15).collect::<Vec<_>>().join(" ");
    let compared = text(&[&["compare"][..], &scenario, &["--controllers", "nada"]].concat());
    assert!(score.contains(" ± ") && score.contains(" of 100: "), "{score}");
    assert!(compared.contains(&format!("{score}.")), "{score:?} in {compared}");

    let folder = folder("cli-no-score", &[]);
    let head = SCENARIO.split("[[flow]]").next().unwrap();
    fs::write(folder.join("tcp.toml"), format!("{head}[[flow]]\nid = \"web\"\nkind = \"tcp\"\n")).unwrap();
    let without = super::paceline(&folder, &["run", "tcp.toml"]);
    assert!(!stdout(&without, 0).contains("of 100"));
}

#[test]
fn schema_lists_the_keys_of_scenarios() {
    let schema = document(&paceline(&["schema"]), 0);
    let top = keys(&schema["properties"]);
    for key in "id title source duration repeats path flow measure case expect assert constants".split(' ') {
        assert!(top.contains(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn text_contains_no_nan_or_infinity() {
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
        let text = stdout(&output, 0);
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        assert!(!words.any(|word| ["NaN", "nan", "inf", "Infinity"].contains(&word)), "{more:?}:\n{text}");
        assert!(text.contains("used %") || more.contains(&"duration=300ms"), "{text}");
        short(more);
    }
}

#[test]
fn tcp_flows_with_count_share_one_row() {
    let folder = folder("cli-tcp", &[]);
    let tcp = "[[flow]]\nid = \"web\"\nkind = \"tcp\"\ncount = 20\n";
    let (head, media) = SCENARIO.split_once("[[flow]]").unwrap();
    fs::write(folder.join("mixed.toml"), format!("{head}{tcp}[[flow]]{media}")).unwrap();
    fs::write(folder.join("alone.toml"), format!("{head}{tcp}")).unwrap();
    for more in [&["mixed.toml"][..], &["alone.toml"], &["alone.toml", "--repeats", "2"]] {
        let output = super::paceline(&folder, &[&["run"][..], more].concat());
        let text = stdout(&output, 0);
        assert!(!text.contains("-0.0") && !text.contains("web-2 "), "{text}");
        let (_, tables) = text.split_once(" freezes ").expect("a table of flows");
        let (flows, _) = tables.split_once("hop ").expect("a table of hops");
        // Rate, loss and two delays have values; target, frame delay and freezes have none.
        assert_eq!((flows.matches("web-1").count(), flows.matches(" –").count()), (1, 4), "{flows}");
        assert_eq!(text.matches("web-1 …").count(), 2, "a plot and a row: {text}");
        if more[0] == "mixed.toml" {
            assert!(flows.find("video") < flows.find("web-1") && text.contains("media_utilization"), "{text}");
        }
    }
    let alone = document(&super::paceline(&folder, &["run", "alone.toml", "--json"]), 0);
    let media = "target_bps freeze_duration_s objective media_utilization media_jain max_min_ratio rtt_p50_ms";
    for without in media.split(' ') {
        assert!(alone["summary"].get(without).is_none(), "{without}");
    }
    assert!(alone["summary"]["bottleneck_drops"]["mean"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_failed_assertion_is_exit_code_1() {
    let folder = folder("cli-assert", &[]);
    let with = |bounds: &str| {
        let text = format!("{SCENARIO}[[assert]]\nid = \"used\"\nmetric = \"utilization\"\nbounds = {bounds}\n");
        fs::write(folder.join("own.toml"), text).unwrap();
        super::paceline(&folder, &["run", "own.toml"])
    };
    contains_all(stdout(&with("[0.0, 1.01]"), 0), &["used, utilization: ", "allowed 0.0 % to 101.0 %: holds"]);
    contains_all(stdout(&with("[0.99, 1.0]"), 1), &["used, utilization: ", "allowed 99.0 % to 100.0 %: fails"]);
    let json = document(&super::paceline(&folder, &["run", "own.toml", "--json"]), 1);
    assert_eq!((&json["assertions"][0]["holds"], &json["assertions"][0]["verdict"]), (&json!(false), &json!("fails")));
    assert_eq!(super::paceline(&folder, &["compare", "own.toml", "--controllers", "gcc-2016"]).status.code(), Some(1));
}

#[test]
fn bad_input_is_exit_code_2_with_place_and_hint() {
    let folder = folder("cli-bad", &[]);
    fs::write(folder.join("broken.toml"), SCENARIO.replace("1Mbps", "1 mbps")).unwrap();
    let run = |arguments: &[&str]| super::paceline(&folder, arguments);
    let place = ["`1 mbps` is not a rate", "broken.toml:7:12", "capacity = \"1 mbps\"", "────", "Mbps"];
    let cases: [(&[&str], &[&str]); 17] = [
        (&["run", "broken.toml"], &place),
        (&["run", "broken.toml", "--json", "--out", "results"], &place),
        (&["run", "mmsys16/tabel1"], &["no scenario `mmsys16/tabel1`", "did you mean `mmsys16/table1`"]),
        (&["run", "none.toml"], &["cannot read none.toml", "list scenarios"]),
        (
            &["run", "mmsys16/table1", "--controller", "gcc2016", "--out", "results"],
            &["no controller `gcc2016`", "`gcc-2016`?"],
        ),
        (&["run", "mmsys16/table1", "--controller", "nada,nada"], &["`nada` is named twice"]),
        (
            &["compare", "mmsys16/table1", "--controllers", "gcc-2016,x"],
            &["no controller `x`", "nearest", "`paceline list controllers`"],
        ),
        (&["run", "mmsys16/table1", "--controller", "chromium"], &["no controller `chromium`", "--world browser"]),
        (&["run", "mmsys16/table1", "--set", "flow.video.controller=chromium-scream"], &["--world browser"]),
        (
            &["run", "mmsys16/table1", "--set", "path.forward.capcity=1Mbps", "--out", "results"],
            &["capcity", "`capacity`", "--set"],
        ),
        (&["run", "mmsys16/table1", "--set", "duration"], &["KEY=VALUE"]),
        (&["run", "mmsys16/table1", "--world", "moon"], &["no world `moon`", "`sim`"]),
        (&["run", "mmsys16/table1", "--repeats", "0"], &["--repeats"]),
        (&["run"], &["SCENARIO"]),
        (&["fly"], &["fly"]),
        (&["validate", "mmsys16/table1", "--world", "sim"], &["not with itself", "--world testbed"]),
        (&["validate", "mmsys16/table1", "--world", "testbad"], &["did you mean `testbed`"]),
    ];
    for (arguments, messages) in cases {
        rejects(&run(arguments), messages);
    }
    rejects(&run(&["gap", "mmsys16/table1", "--world", "testbed"]), &["`gap` was renamed", "`paceline validate`"]);
    assert!(!folder.join("results").exists(), "bad usage writes nothing");
}

#[test]
#[cfg(not(feature = "browser"))]
fn a_missing_world_is_exit_code_3() {
    let mut cases = vec![
        (&["validate", "mmsys16/table1", "--world", "browser", "--json"][..], "--features browser"),
        (&["run", "mmsys16/table1", "--world", "browser", "--json"], "--features browser"),
        (&["reproduce", "all", "--world", "browser"], "--features browser"),
        (&["call", "mmsys16/table1"], "--features browser"),
    ];
    if !cfg!(feature = "testbed") {
        cases.push((&["link", "--capacity", "1Mbps", "--", "true"], "--features testbed"));
    }
    for (arguments, hint) in cases {
        let output = paceline(arguments);
        assert_eq!(stdout(&output, 3), "");
        contains_all(&stderr(&output), &["is not available", hint]);
    }
}

#[test]
fn out_writes_results_and_a_rerun_replaces_them() {
    let folder = folder("cli-out", &[]);
    let arguments = [&SHORT[..], &["--out", "results", "--repeats", "2", "--json"]].concat();
    let printed = document(&super::paceline(&folder, &arguments), 0);
    let results = folder.join("results");
    let runs = || stored(&results).runs.len();
    assert_eq!(runs(), 2);
    let mut folders: Vec<PathBuf> =
        fs::read_dir(results.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert_eq!(folders.len(), 2);
    for (run, printed) in folders.iter().zip(printed["runs"].as_array().unwrap()) {
        for table in ["packets.parquet", "flows.parquet", "frames.parquet", "signals.parquet"] {
            let bytes = fs::read(run.join(table)).unwrap();
            assert!(bytes.len() > 500 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table}");
        }
        let stored = Store::read_run(run).unwrap().result;
        assert_eq!(stored["trace_hash"], printed["trace_hash"]);
        run_of(&stored, printed["seed"].as_u64().unwrap(), "gcc-2016");
    }
    // A repetition replaces the runs; another controller adds runs.
    document(&super::paceline(&folder, &arguments), 0);
    assert_eq!(runs(), 2);
    document(&super::paceline(&folder, &[&arguments[..], &["--controller", "fixed"]].concat()), 0);
    assert_eq!(runs(), 4);
    // A folder with other files is not touched.
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(folder.join("other/mine.txt"), "mine").unwrap();
    let output = super::paceline(&folder, &[&SHORT[..], &["--out", "other"]].concat());
    rejects(&output, &["other", "not empty"]);
    assert_eq!(fs::read_dir(folder.join("other")).unwrap().count(), 1);
}

#[test]
fn a_run_without_out_writes_no_file() {
    let folder = folder("cli-nothing", &[]);
    document(&super::paceline(&folder, &[&SHORT[..], &["--json"]].concat()), 0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn files_are_relative_to_the_scenario_or_to_the_working_directory() {
    let folder = folder("cli-path", &[]);
    fs::create_dir(folder.join("inner")).unwrap();
    let text = SCENARIO.replace("\"1Mbps\"", "{ trace = \"steps.csv\" }");
    fs::write(folder.join("inner/own.toml"), text).unwrap();
    fs::write(folder.join("inner/steps.csv"), "time_s,rate_mbps\n0,0.8\n10,0.4\n").unwrap();
    let result = document(&super::paceline(&folder, &["run", "inner/own.toml", "--json"]), 0);
    assert_eq!(result["scenario"], "test/cli");
    let capacity = result["runs"][0]["link"]["capacity_bps"].as_f64().unwrap();
    assert!((capacity - 600e3).abs() < 1e3, "10 s at 0.8 and 10 s at 0.4 Mbit/s, not {capacity}");
    // Files of `--set` are relative to the working directory.
    fs::write(folder.join("here.csv"), "time_s,rate_mbps\n0,2\n").unwrap();
    let set = ["run", "inner/own.toml", "--json", "--set", "path.forward.capacity.trace=here.csv"];
    let result = document(&super::paceline(&folder, &set), 0);
    assert_eq!(result["runs"][0]["link"]["capacity_bps"], 2e6);
}

#[test]
fn a_long_run_prints_progress_on_stderr_only() {
    let output = paceline(&["run", "mmsys16/table1", "--repeats", "12", "--json"]);
    assert_eq!(document(&output, 0)["runs"].as_array().unwrap().len(), 12);
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let mut command = super::command(Path::new("."), &["list", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn pcap_captures_exactly_one_run() {
    let folder = folder("cli-pcap", &[]);
    let short = ["run", "mmsys16/table1", "--set", "duration=5s", "--json", "--pcap", "run.pcapng"];
    for more in [["--repeats", "2"], ["--controller", "gcc-2016,fixed"]] {
        let output = super::paceline(&folder, &[&short[..], &more].concat());
        rejects(&output, &["--pcap captures one run, not 2", "--seed"]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is written");
    }
    let nowhere = ["run", "mmsys16/table1", "--set", "duration=5s", "--pcap", "no/folder/run.pcapng"];
    rejects(&super::paceline(&folder, &nowhere), &["cannot create the file `no/folder/run.pcapng`"]);

    let plain = document(&super::paceline(&folder, &short[..5]), 0);
    for more in [&[][..], &["--out", "rows"]] {
        let written = super::paceline(&folder, &[&short[..], more].concat());
        assert!(stderr(&written).contains("packets are in run.pcapng"));
        let captured = document(&written, 0);
        assert_eq!(captured["runs"][0]["trace_hash"], plain["runs"][0]["trace_hash"]);
    }
    let bytes = fs::read(folder.join("run.pcapng")).unwrap();
    assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && bytes.len() > 100_000, "{}", bytes.len());
    assert!(folder.join("rows/results.sqlite").exists());
}

#[test]
fn report_writes_svg_files() {
    let folder = folder("cli-svg", &[]);
    let run = ["run", "mmsys16/table1", "--set", "duration=5s", "--out", "results"];
    super::paceline(&folder, &run);
    let report = |arguments: &[&str]| super::paceline(&folder, &[&["report", "results"], arguments].concat());
    assert_eq!(stdout(&report(&["--svg"]), 0), "");
    let other = report(&["--svg", "plots"]);
    assert_eq!(stdout(&other, 0), "");
    let files = |place: &str| -> BTreeSet<_> {
        fs::read_dir(folder.join(place)).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let names = files("results/figures");
    assert_eq!(names, files("plots"));
    assert!(names.contains(std::ffi::OsStr::new("mmsys16-fig13.svg")), "{names:?}");
    contains_all(&stderr(&other), &[&format!("{} plots are in plots", names.len())]);
    for name in &names {
        let text = fs::read_to_string(folder.join("plots").join(name)).unwrap();
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{name:?}");
    }
    rejects(&report(&["--svg", "--out", "page.html"]), &["--svg", "--out"]);
    rejects(&super::paceline(&folder, &["report", "nowhere", "--svg"]), &["nowhere"]);
    assert!(!folder.join("nowhere").exists());
}
