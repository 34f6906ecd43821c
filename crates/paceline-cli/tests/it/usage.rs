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
        contains_all(&text, &["published", "50.0 %"]);
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
        assert!(!text.contains("50.0 %") && json["expectations"].as_array().unwrap().is_empty(), "{text}");
        assert!(!page.contains("Published and measured") && page.contains("<h2>Assertions"), "{why}");
        assert!(page.contains("verdict fails") && !page.contains("cause not found"), "{why}");
    }
}

#[test]
fn each_difference_from_a_published_value_is_explained() {
    let folder = folder("usage-first", &[]);
    let text = one_line(stdout(&paceline(&folder, &["run", "mmsys16/table1"]), 0));
    contains_all(
        &text,
        &["mean of 10 runs", "--repeats 10", "1 of 6 published values", "published 195.0 ms ± 48.8 ms: the mean"],
    );
    let text = one_line(stdout(&paceline(&folder, &["run", "mmsys16/table1", "--repeats", "10"]), 0));
    assert!(text.contains("published values are within their tolerance; the others:") && !text.contains("mean of 10"));
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
    let files =
        [("own.toml", SCENARIO), ("flow.toml", &one_bracket), ("empty.toml", ""), ("x.sweep.toml", "id = \"x\"\n")];
    let folder = folder("usage-hints", &files);
    let cases: [(&[&str], &[&str]); 11] = [
        (&["run", "flow.toml"], &["expected a list", "[[flow]] in place of [flow]"]),
        (&["run", "own.toml", "--duration", "10s"], &["--duration", "write `--set duration=10s`"]),
        (&["run", "own.toml", "--rtt=10ms"], &["write `--set path.rtt=10ms`"]),
        (&["compare", "own.toml", "--controllers", "nada", "fixed"], &["with commas: `--controllers nada,fixed`"]),
        (&["run", "own.toml", "--set", "path.forward.capacity=2MBps"], &["no rate", "counts bits", "8 bits"]),
        (&["run", "x.sweep.toml"], &["is a sweep", "`paceline sweep x.sweep.toml`"]),
        (&["run", "mmsys16/fig8"], &["is a sweep", "`paceline sweep mmsys16/fig8`"]),
        (&["sweep", "none.sweep.toml"], &["cannot read none.sweep.toml", "list sweeps"]),
        (&["run", "empty.toml"], &["empty.toml is empty"]),
        (&["list", "metrics", "jian"], &["no `jian` among the metrics", "did you mean `jain`?"]),
        (&["list", "queues", "codle"], &["no `codle` among the queues", "codel"]),
    ];
    for (arguments, messages) in cases {
        let output = paceline(&folder, arguments);
        let messages: Vec<&str> = messages.iter().filter(|m| **m != "no rate").copied().collect();
        rejects(&output, &messages);
        // Errors of the command line look like all others.
        contains_all(&stderr(&output), &["  × ", "  help: "]);
    }
}

#[test]
fn former_names_of_options_are_accepted() {
    let folder = folder("usage-names", &[("own.toml", SCENARIO)]);
    let run = |option: &str| {
        document(&paceline(&folder, &["run", "own.toml", option, "nada", "--json"]), 1)["summary"].clone()
    };
    assert_eq!(run("--controllers"), run("--controller"));
    let reproduce =
        |option: &str| document(&paceline(&folder, &["reproduce", "mmsys16/fig5", option, "4", "--json"]), 1);
    assert_eq!(reproduce("--repeats")["experiments"][0]["cells"], reproduce("--seeds")["experiments"][0]["cells"]);
    for option in ["--jobs", "--at-once", "--time-limit", "--within"] {
        let output = paceline(&folder, &["reproduce", "mmsys16/fig5", "--world", "nowhere", option, "2"]);
        assert!(!stderr(&output).contains("unexpected argument"), "{option}");
    }
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let folder = folder("usage-shell", &[]);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        contains_all(
            stdout(&paceline(&folder, &["completions", shell]), 0),
            &["reproduce", "time-limit", "controllers"],
        );
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
    for (more, message) in [(&[][..], "nothing was kept"), (&["--out", "kept"], "`paceline report kept`")] {
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
