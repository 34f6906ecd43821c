// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the command meets people: the width of its output, hints for usual mistakes, version, completions and man pages.

use super::{contains_all, document, folder, one_line, paceline, rejects, stderr, stdout, stored};
use std::fs;

const SCENARIO: &str = r#"id = "test/usage"
title = "A test scenario with a title that is longer than a line of a usual terminal has columns"
duration = "5s"
[path.forward]
capacity = "1Mbps"
[[flow]]
id = "video"
controller = "gcc-2016"
[[expect]]
metric = "utilization"
published = 0.5
[[assert]]
id = "used"
metric = "utilization"
bounds = [2.0, 3.0]
"#;

#[test]
fn output_fits_eighty_columns_and_has_no_styles_in_a_pipe() {
    let folder = folder("usage-width", &[]);
    let sweep = ["sweep", "mmsys16/fig8", "--set", "axis.0.log.steps=2", "--set", "axis.1.log.steps=2"];
    let commands: [&[&str]; 10] = [
        &["run", "mmsys16/table1"],
        &["run", "mmsys16/table3", "--controllers", "gcc-dynamic-alpha,nada", "--repeats", "2"],
        &["list"],
        &["list", "controllers", "gcc-2016"],
        &["reproduce", "fhmn13/step", "--repeats", "2"],
        &sweep,
        &[],
        &["--help"],
        &["run", "--help"],
        &["sweep", "--help"],
    ];
    for arguments in commands {
        let output = paceline(&folder, arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert!(wide.is_none() && text.len() > 200 && !text.contains('\u{1b}'), "{arguments:?}: {wide:?}");
    }
}

#[test]
fn published_values_apply_to_the_scenario_as_written() {
    let folder = folder("usage-published", &[("own.toml", SCENARIO)]);
    let run = |more: &[&str], out: &str| {
        let text = paceline(&folder, &[&["run", "own.toml", "--out", out][..], more].concat());
        let page = fs::read_to_string(folder.join(out).join("report.html")).unwrap();
        let json = document(&paceline(&folder, &[&["run", "own.toml", "--json"][..], more].concat()), 1);
        (one_line(stdout(&text, 1)), page, json)
    };
    for (more, out) in [(&[][..], "own"), (&["--controllers", "gcc-2016"], "named")] {
        let (text, page, json) = run(more, out);
        contains_all(&text, &["published", "50.0 ± 5.0 %"]);
        assert!(!text.contains("mean of"), "a file of one's own has no committed verdict: {text}");
        assert!(page.contains("Published and measured") && json["expectations"][0]["published"] == 0.5);
    }
    for (more, why) in [
        (&["--controllers", "fixed"][..], "not under fixed"),
        (&["--set", "path.rtt=80ms"], "not with path.rtt=80ms"),
        (&["--controller", "nada", "--set", "path.rtt=80ms"], "not under nada and with path.rtt=80ms"),
    ] {
        let (text, page, json) = run(more, &why.replace(' ', "-"));
        contains_all(
            &text,
            &["published values are for the scenario as written", why, "used, utilization:", ": fails"],
        );
        assert!(!text.contains("50.0 ±") && json["expectations"].as_array().unwrap().is_empty(), "{text}");
        assert!(!page.contains("Published and measured") && page.contains("<h2>Assertions"), "{why}");
        assert!(page.contains("verdict fails") && !page.contains("cause not found"), "{why}");
    }
}

#[test]
fn published_values_are_compared_and_the_command_that_explains_them_is_named() {
    let folder = folder("usage-first", &[]);
    let text = one_line(stdout(&paceline(&folder, &["run", "mmsys16/table1"]), 0));
    contains_all(
        &text,
        &[
            "measured published fits mean of all",
            "195.0 ± 48.8 ms no reproduced",
            "utilization 82.5 % 84.0 ± 5.0 % yes reproduced",
            "causes, and what is assumed: `paceline reproduce mmsys16/table1`",
        ],
    );
    let repeated = one_line(stdout(&paceline(&folder, &["run", "mmsys16/table1", "--repeats", "2"]), 0));
    contains_all(&repeated, &["measured ± 95 % published fits", " mean ± 95 % utilization "]);
    let other = one_line(stdout(&paceline(&folder, &["run", "mmsys16/table1", "--controller", "fixed"]), 0));
    assert!(
        other.contains("what is assumed: `paceline reproduce mmsys16/table1`") && !other.contains("fits"),
        "{other}"
    );
    let text = stdout(&paceline(&folder, &["run", "fhmn13/step"]), 0).to_owned();
    let before_notes = text.lines().take_while(|line| !line.starts_with("  · ")).count();
    assert!((20..=25).contains(&before_notes), "{text}");
}

#[test]
fn results_name_the_commit_and_the_machine() {
    let folder = folder("usage-version", &[("own.toml", SCENARIO)]);
    let version = paceline(&folder, &["-V"]);
    let long = paceline(&folder, &["--version"]);
    let long = stdout(&long, 0);
    assert!(long.starts_with(stdout(&version, 0).trim()), "{long}");
    assert!(long.contains("\n  googcc\n    libwebrtc f3ae3eb62e (2026-08-21)"), "{long}");
    assert!(long.contains("\n  nada, nada-sender\n") && long.lines().all(|line| line.chars().count() <= 80), "{long}");
    let commit = stdout(&version, 0).trim().strip_prefix("paceline 0.1.0 (commit ").and_then(|v| v.strip_suffix(')'));
    let commit = commit.expect("a version with a commit");
    assert!(commit == "unknown" || (commit.len() >= 12 && commit.bytes().all(|b| b.is_ascii_hexdigit())), "{commit}");
    paceline(&folder, &["run", "own.toml", "--out", "results"]);
    let results = folder.join("results");
    let about = serde_json::to_value(&stored(&results).runs[0].about).unwrap();
    for text in [about.to_string(), fs::read_to_string(results.join("report.html")).unwrap()] {
        assert!(text.contains(commit) && text.contains("0.1.0"), "{text}");
    }
    let made_with = &document(&paceline(&folder, &["run", "own.toml", "--json"]), 1)["made_with"];
    assert_eq!((made_with["version"].as_str(), made_with["commit"].as_str()), (Some("0.1.0"), Some(commit)));
    let inputs = &about["inputs"];
    let page = fs::read_to_string(results.join("report.html")).unwrap();
    for key in ["machine", "system"] {
        let value = made_with[key].as_str().unwrap();
        assert!(value.len() > 5 && inputs[key] == value && page.contains(value), "{key}: {value}");
    }
}

#[test]
fn usual_mistakes_have_a_hint() {
    let one_bracket = SCENARIO.replace("[[flow]]", "[flow]");
    let files = [
        ("own.toml", SCENARIO),
        ("flow.toml", &one_bracket),
        ("empty.toml", ""),
        ("x.sweep.toml", "id = \"x\"\n"),
        ("lte.down", "5\n12\n"),
        ("rate.csv", "time_s,rate_mbps\n0,2\n5,1\n"),
        ("line.txt", "hello\n"),
        ("folder/file", ""),
    ];
    let folder = folder("usage-hints", &[]);
    fs::create_dir_all(folder.join("folder")).unwrap();
    files.iter().for_each(|(file, text)| fs::write(folder.join(file), text).unwrap());
    let cases: [(&[&str], &[&str]); 57] = [
        (&["run", "flow.toml"], &["expected a list", "[[flow]] in place of [flow]"]),
        (&["run", "own.toml", "--duration", "10s"], &["--duration", "write `--set duration=10s`"]),
        (&["run", "own.toml", "--rtt=10ms"], &["write `--set path.rtt=10ms`"]),
        (&["compare", "own.toml", "--controllers", "nada", "fixed"], &["`--controllers nada,fixed`"]),
        (&["run", "own.toml", "--set", "path.forward.capacity=2MBps"], &["no rate", "counts bits", "8 bits"]),
        (&["run", "x.sweep.toml"], &["is a sweep", "`paceline sweep x.sweep.toml`"]),
        (&["run", "mmsys16/fig8"], &["is a sweep", "`paceline sweep mmsys16/fig8`"]),
        (&["sweep", "none.sweep.toml"], &["cannot read none.sweep.toml", "list sweeps"]),
        (&["run", "empty.toml"], &["empty.toml is empty"]),
        (&["list", "metrics", "jian"], &["no `jian` among the metrics", "did you mean `jain`?"]),
        (&["list", "queues", "codle"], &["no `codle` among the queues", "codel"]),
        (&["run", "own.toml", "--seeds", "10"], &["one number is no range", "write 1..10, or --seed 10 for one run"]),
        (
            &["run", "own.toml", "--seeds", "1..3", "--seed", "2"],
            &["--seed <N>", "cannot be used with", "--seeds <A..B>"],
        ),
        (&["suite", "l4s", "--seed", "3"], &["seeds from 1", "--seeds 1..3 or --repeats 3"]),
        (&["reproduce", "mmsys16/fig5", "--seeds", "2..4"], &["seeds from 1", "the same runs"]),
        (&["sweep", "mmsys16/fig8", "--seeds", "4,5"], &["seeds from 1", "each point"]),
        (&["run", "own.toml", "--controllers", "gcc-tfb,", "nada"], &["`--controllers gcc-tfb,nada`"]),
        (&["suite", "l4s", "--controllers", "gcc-tfb,", "nada"], &["a name is empty", "`--controllers gcc-tfb,nada`"]),
        (&["run", "mmsys16"], &["a group of scenarios", "`mmsys16/table1`", "`paceline reproduce mmsys16`"]),
        (&["run", "table1"], &["`med16/table1`", "`mmsys16/table1`"]),
        (&["run", "lte.down"], &["lte.down is a capacity trace", "paceline new", "trace = \"lte.down\""]),
        (&["sweep", "own.toml"], &["own.toml is a scenario", "`paceline run own.toml`"]),
        (&["sweep", "mmsys16/table1"], &["is a scenario", "`paceline run mmsys16/table1`"]),
        (&["leaderboard"], &["`paceline suite all"]),
        (&["version"], &["`paceline --version`"]),
        (&["run", "own.toml", "-v"], &["`paceline -V`"]),
        (&["run", "own.toml", "--parallel", "2"], &["write `--jobs`"]),
        (&["validate", "own.toml", "--world", "sim", "--output", "x"], &["write `--out`"]),
        (&["reproduce", "mmsys16/table1", "--controllers", "ideal"], &["the oracle `ideal`", "`paceline run`"]),
        (
            &["compare", "own.toml", "--controllers", "gcc-tfb,"],
            &["a name is empty", "leave out the comma", "`--controllers gcc-tfb`"],
        ),
        (&["compare", "own.toml", "--controllers=,nada"], &["leave out the comma", "`--controllers nada`"]),
        (&["run", "own.toml", "--controller", "zzz"], &["the nearest of", "`paceline list controllers` shows all"]),
        (&["list", "controllers", "zzz"], &["no controller `zzz`", "the nearest of"]),
        (&["run", "rate.csv"], &["rate.csv is a capacity trace", "trace = \"rate.csv\""]),
        (&["run", "folder"], &["`folder` is a folder, not a scenario", "folder/NAME.toml", "`paceline report folder`"]),
        (&["run", "dsl"], &["`dsl` is a preset of a path", "`paceline choose dsl`", "`paceline new call.toml --path`"]),
        (&["run", "adsl-down"], &["`adsl-down` is a preset of a path"]),
        (&["choose", "dsll"], &["no preset, scenario or file `dsll`", "did you mean `dsl`?"]),
        (&["list", "paths", "starlnk"], &["no `starlnk` among the paths", "did you mean `starlink`?"]),
        (&["suite", "shrt"], &["there is no suite `shrt`", "did you mean `short`?"]),
        (&["suite", "mmsys16"], &["a group of scenarios, not a suite", "`paceline reproduce mmsys16`"]),
        (&["sweep", "own.toml"], &["a sweep is a file", "`paceline list sweeps`"]),
        (&["reproduce", "mmsys17"], &["did you mean `mmsys16`? `paceline list scenarios`"]),
        (&["run", "own.toml", "--seed", "x"], &["'x' for '--seed <N>'", "a whole number from 0"]),
        (&["run", "own.toml", "--seed", "-1"], &["'-1' for '--seed <N>'", "a whole number from 0"]),
        (&["run", "own.toml", "--seed", "1..3"], &["a whole number from 0; --seeds names several"]),
        (&["run", "own.toml", "--repeats", "two"], &["'two' for '--repeats <N>': not a whole number from 0"]),
        (&["trace", "lte-drive", "--seed", "x"], &["'x' for '--seed <N>': not a whole number from 0"]),
        (&["run", "own.toml", "--trace", "lte.down"], &["--set 'path.forward.capacity={ trace = \"FILE\" }'"]),
        (&["new", "x.toml", "--capacity", "2Mbps"], &["leave the option out", "`path.forward.capacity`"]),
        (&["new", "x.toml", "--trace", "lte.down"], &["leave the option out", "`path.forward.capacity`"]),
        (&["trace", "lte-drive", "--duration", "60"], &["write `--seconds`"]),
        (&["play", "own.toml", "--controller", "nada"], &["write `--beside`"]),
        (&["explain", "none.pcap"], &["none.pcap: cannot be read: No such file", "check the path"]),
        (&["explain", "folder"], &["folder: the folder has no results", "a pcapng or pcap capture"]),
        (&["fit", "folder"], &["folder: the folder has no results", "a pcapng or pcap capture"]),
        (&["explain", "line.txt"], &["line.txt: unknown format: it begins with `hello`", "readable are"]),
    ];
    for (arguments, messages) in cases {
        let output = paceline(&folder, arguments);
        let messages: Vec<&str> = messages.iter().filter(|m| **m != "no rate").copied().collect();
        rejects(&output, &messages);
        let printed = stderr(&output);
        assert!(!printed.contains("similar argument exists") && printed.matches('`').count() < 40, "{printed}");
        // Errors of the command line look like all others.
        contains_all(&stderr(&output), &["  × ", "  help: "]);
    }
}

#[test]
fn places_that_cannot_be_written_are_named_with_a_way_out() {
    let folder = folder("usage-places", &[("own.toml", SCENARIO), ("file", "")]);
    for (option, place, way) in [
        ("--out", "file", "cannot create the folder `file`; a file has this name: name another folder"),
        ("--pcap", "none/run.pcap", "cannot create the file `none/run.pcap`; make its folder first"),
    ] {
        rejects(&paceline(&folder, &["run", "own.toml", option, place]), &[way]);
    }
}

#[test]
fn former_names_of_options_are_accepted() {
    let folder = folder("usage-names", &[("own.toml", SCENARIO)]);
    let run = |option: &str| {
        document(&paceline(&folder, &["run", "own.toml", option, "nada", "--json"]), 1)["summary"].clone()
    };
    assert_eq!(run("--controllers"), run("--controller"));
}

/// Each option means the same wherever it is, and each command that makes runs has those of all.
#[test]
fn commands_that_make_runs_share_their_options() {
    let folder = folder("usage-shared", &[("own.toml", SCENARIO)]);
    for command in ["run", "compare", "suite", "reproduce", "sweep", "validate"] {
        let output = paceline(&folder, &[command, "--help"]);
        let seeds = ["--seed <N> Makes one run", "--repeats <N> Number of runs", "--seeds <A..B> Seeds of the runs"];
        let others = ["--controllers <A,B[,…]>", "--jobs <N> Number of runs at the same", "--json", "--out <DIR>"];
        contains_all(&one_line(stdout(&output, 0)), &[&seeds[..], &others].concat());
    }
    let seeds = |more: &[&str]| {
        let result = document(&paceline(&folder, &[&["run", "own.toml", "--json"][..], more].concat()), 1);
        result["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((seeds(&["--seeds", "3..5"]), seeds(&["--seeds", "9,2"])), (vec![3, 4, 5], vec![9, 2]));
    assert_eq!((seeds(&["--seed", "4"]), seeds(&["--repeats", "2", "--jobs", "1"])), (vec![4], vec![1, 2]));
    let compare = ["compare", "own.toml", "--controllers", "gcc-2016,nada", "--seeds", "2,5"];
    let text = one_line(stdout(&paceline(&folder, &compare), 1));
    contains_all(&text, &["2 runs of each controller, seeds 2, 5"]);
    let reproduce = |option: &[&str]| {
        document(&paceline(&folder, &[&["reproduce", "mmsys16/fig5", "--json"], option].concat()), 1)["experiments"][0]
            ["cells"]
            .clone()
    };
    assert_eq!(reproduce(&["--repeats", "4"]), reproduce(&["--seeds", "1..4"]));
}

#[test]
fn oracles_and_all_are_controllers() {
    let text = SCENARIO.replace("bounds = [2.0, 3.0]", "bounds = [0.0, 1.0]");
    let folder = folder("usage-oracles", &[("own.toml", &text)]);
    let run = |verb: &str, names: &str| {
        document(&paceline(&folder, &[verb, "own.toml", "--controllers", names, "--json"]), 0)
    };
    let both = run("run", "faulty-constant,ideal");
    let names = |runs: &serde_json::Value| -> Vec<String> {
        let of = |run: &serde_json::Value| run["flows"][0]["controller"].as_str().unwrap().to_owned();
        runs["runs"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(names(&both), ["faulty-constant", "ideal"]);
    // The oracle knows the capacity: it leaves no queue, which a constant rate of the capacity does.
    let queue = |n: usize| both["runs"][n]["link"]["queue_ms"]["p95"].as_f64().unwrap();
    assert!(queue(1) < 20.0 && queue(1) < queue(0), "{} {}", queue(0), queue(1));
    let all = names(&run("run", "all"));
    assert!(all.len() > 20 && all.ends_with(&["ideal".to_owned(), "causal".to_owned()]), "{all:?}");
    let compared = run("compare", "ideal,causal");
    assert_eq!(compared["table"]["controllers"], serde_json::json!(["ideal", "causal"]));
    rejects(
        &paceline(&folder, &["run", "own.toml", "--controllers", "ideal,ideal"]),
        &["the oracle `ideal` is named twice"],
    );
}

/// A stored run is read, not made: its wall time shows it. A damaged one is made again, and without `--resume` every run is.
#[test]
fn interrupted_runs_and_comparisons_continue() {
    let folder = folder("usage-resume", &[("own.toml", SCENARIO)]);
    let runs = |verb: &str, more: &[&str]| -> Vec<(u64, f64)> {
        let arguments = [verb, "own.toml", "--controllers", "gcc-2016,nada", "--json", "--out", "out"];
        let found = document(&paceline(&folder, &[&arguments, more].concat()), 1);
        let parts = found["controllers"].as_array().into_iter().flatten().map(|part| &part["result"]);
        let parts: Vec<_> = if found["runs"].is_array() { vec![&found] } else { parts.collect() };
        let runs = parts.into_iter().flat_map(|part| part["runs"].as_array().unwrap());
        runs.map(|run| (run["events"].as_u64().unwrap(), run["wall_s"].as_f64().unwrap())).collect()
    };
    let first = runs("compare", &["--seeds", "1..1"]);
    let continued = runs("compare", &["--repeats", "2", "--resume"]);
    assert_eq!((continued.len(), continued[0], continued[2]), (4, first[0], first[1]), "controller by controller");
    assert_eq!(runs("run", &["--repeats", "2", "--resume"]), continued);
    let stored = fs::read_dir(folder.join("out/runs")).unwrap().map(|run| run.unwrap().path());
    let of = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("gcc-2016-seed1");
    let file = stored.into_iter().find(of).expect("the run is stored").join("resume.json");
    let mut damaged = super::read_json(&file);
    assert_eq!(damaged["run"]["run"]["events"], first[0].0);
    damaged["run"]["run"]["events"] = 7.into();
    fs::write(file, damaged.to_string()).unwrap();
    let again = runs("run", &["--repeats", "2", "--resume"]);
    assert_eq!((again[0].0, &again[1..]), (first[0].0, &continued[1..]));
    // Another scenario is run.
    let other = runs("run", &["--resume", "--set", "path.rtt=80ms"]);
    assert!(other.len() == 2 && other[0].0 != first[0].0, "{other:?}");
    rejects(&paceline(&folder, &["run", "own.toml", "--resume"]), &["--out"]);
}

#[test]
fn help_has_each_command_in_one_of_four_groups() {
    let folder = folder("usage-groups", &[]);
    let output = paceline(&folder, &["--help"]);
    let help = stdout(&output, 0);
    let places: Vec<usize> = ["Everyday:", "Real networks:", "Research:", "Tools:", "Options:"]
        .iter()
        .map(|group| help.find(&format!("\n{group}\n")).expect(group))
        .collect();
    assert!(places.is_sorted(), "{help}");
    stdout(&paceline(&folder, &["man", "pages"]), 0);
    for page in fs::read_dir(folder.join("pages")).unwrap() {
        let page = page.unwrap().file_name().into_string().unwrap();
        let Some(command) = page.strip_prefix("paceline-").and_then(|name| name.strip_suffix(".1")) else { continue };
        let lines = help.lines().filter(|line| line.starts_with(&format!("  {command} ")) && !command.contains('-'));
        assert!(lines.count() == 1 || command.starts_with("help-") || command == "gap", "{command}");
    }
    assert_eq!(stdout(&paceline(&folder, &["help"]), 0), help);
    let output = paceline(&folder, &["list"]);
    let list = stdout(&output, 0);
    assert!(list.lines().count() <= 40, "{list}");
    contains_all(list, &["scenarios", "paceline list scenarios mmsys16"]);
    let output = paceline(&folder, &["list", "scenarios", "mmsys16"]);
    let group = stdout(&output, 0);
    assert!(group.lines().skip(1).all(|line| line.trim_start().starts_with("mmsys16/")), "one line each: {group}");
    contains_all(
        stdout(&paceline(&folder, &["list", "paths", "lte-drive-up"]), 0),
        &["mean rate", "Mbit/s", "delay", "25 ms", "queue", "600 ms"],
    );
    let [alias, name] = ["starlink", "satellite-leo-up"].map(|path| paceline(&folder, &["list", "paths", path]));
    assert_eq!(stdout(&alias, 0), stdout(&name, 0));
    let output = paceline(&folder, &["list", "paths"]);
    let paths = stdout(&output, 0);
    assert!(paths.lines().all(|line| line.chars().count() <= 80), "{paths}");
    contains_all(
        &one_line(paths),
        &["paths rate delay queue", "adsl-up 1.000 Mbit/s 20 ms", "17 to 30 ms 150 ms", "10 ms fq-codel wifi"],
    );
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let folder = folder("usage-shell", &[]);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = paceline(&folder, &["completions", shell]);
        let script = stdout(&output, 0);
        contains_all(script, &["reproduce", "time-limit", "controllers"]);
        // Names, in shells that complete values.
        if shell != "powershell" {
            contains_all(script, &["mmsys16/table1", "rfc8867", "scream-v2"]);
        }
    }
    stdout(&paceline(&folder, &["man", "pages"]), 0);
    for page in ["paceline.1", "paceline-run.1", "paceline-sweep.1"] {
        assert!(fs::read_to_string(folder.join("pages").join(page)).unwrap().contains("paceline"), "{page}");
    }
}

#[test]
fn a_grid_of_a_sweep_may_have_units() {
    let sweep = |range: &str| {
        format!(
            "id = \"x\"\ntitle = \"x\"\n[[axis]]\nkey = \"path.rtt\"\nlinear = {range}\n[[measure]]\nname = \"used\"\n\
             scenario = \"own.toml\"\nmetric = \"utilization\"\n"
        )
    };
    let good = sweep("{ from = \"10ms\", to = \"100 ms\", steps = 4 }");
    let bad = sweep("{ from = \"10ms\", to = \"1s\", steps = 4 }");
    let folder = folder("usage-grid", &[("own.toml", SCENARIO), ("good.sweep.toml", &good), ("bad.sweep.toml", &bad)]);
    let result = document(&paceline(&folder, &["sweep", "good.sweep.toml", "--json"]), 0);
    let at: Vec<&str> = result["points"].as_array().unwrap().iter().map(|p| p["at"][0].as_str().unwrap()).collect();
    assert_eq!(at, ["10 ms", "40 ms", "70 ms", "100 ms"]);
    rejects(&paceline(&folder, &["sweep", "bad.sweep.toml"]), &["same unit"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_states_what_was_kept() {
    use std::process::{Command, Stdio};
    let long = SCENARIO.replace("duration = \"5s\"", "duration = \"500000 s\"");
    let folder = folder("usage-interrupt", &[("own.toml", &long)]);
    for (more, message) in
        [(&[][..], "nothing was kept"), (&["--out", "kept"], "kept; the same command with --resume continues")]
    {
        let mut run = super::command(&folder, &[&["run", "own.toml"][..], more].concat());
        let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.code().is_none(), "the signal ended it");
        contains_all(&stderr(&output), &["interrupted: ", message]);
    }
}

/// A reader that closes stderr, such as `head`, ends nothing: the exit status stays that of the error.
#[test]
fn a_closed_stderr_is_no_error() {
    let folder = folder("usage-pipe", &[("empty.toml", "")]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_paceline"))
        .args(["run", "empty.toml"])
        .current_dir(&folder)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
