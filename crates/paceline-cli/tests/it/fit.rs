// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline fit`: a scenario on stdout that `run` accepts, messages on stderr.

use super::{document, folder, paceline, rejects, stderr, stdout};
use std::fs;

const PATH: &str = r#"id = "path"
title = "A path"
duration = "20 s"
[path]
rtt = "60 ms"
[path.forward]
capacity = "3 Mbps"
loss = "1 %"
[[flow]]
id = "video"
controller = "googcc"
encoder = { max = "5 Mbps" }
"#;

#[test]
fn a_fitted_scenario_runs_and_has_the_path_of_its_run() {
    let folder = folder("fit_run", &[("path.toml", PATH)]);
    stdout(&paceline(&folder, &["run", "path.toml", "--out", "results"]), 0);
    let output = paceline(&folder, &["fit", "results", "--simulate"]);
    let text = stdout(&output, 0);
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let compared = stderr(&output);
    assert!(compared.contains("measured") && compared.contains("simulated"), "{compared}");
    fs::write(folder.join("fitted.toml"), text).unwrap();
    let run = document(&paceline(&folder, &["run", "fitted.toml", "--json"]), 0);
    let run = &run["runs"][0];
    let capacity = run["links"][0]["capacity_bps"].as_f64().unwrap();
    assert!((2.85e6..3.15e6).contains(&capacity), "{capacity}\n{text}");
    assert_eq!((&run["flows"][0]["id"], &run["flows"][0]["controller"]), (&"video".into(), &"googcc".into()));
    let loss = run["flows"][0]["loss_ratio"].as_f64().unwrap();
    assert!((0.004..0.02).contains(&loss), "{loss}\n{text}");
    // Another controller on the same path.
    let other = paceline(&folder, &["fit", "results", "--controller", "scream-v2"]);
    assert!(stdout(&other, 0).contains("controller = \"scream-v2\""));
}

#[test]
fn a_lower_bound_and_bad_inputs_are_named() {
    let folder = folder("fit_bound", &[("path.toml", PATH)]);
    let slow = ["run", "path.toml", "--controllers", "fixed", "--set", "flow.video.start_rate=500 kbps"];
    let slow = [&slow[..], &["--set", "flow.video.encoder.max=500 kbps", "--out", "results"]].concat();
    stdout(&paceline(&folder, &slow), 0);
    let output = paceline(&folder, &["fit", "results"]);
    assert!(stdout(&output, 0).contains("# A lower bound"), "{}", stdout(&output, 0));
    assert!(stderr(&output).contains("lower bound"), "{}", stderr(&output));
    rejects(&paceline(&folder, &["fit", "nothing"]), &["nothing"]);
    rejects(&paceline(&folder, &["fit", "results", "--controller", "gogcc"]), &["gogcc", "googcc"]);
}

/// A capture of one end and statistics have a path, too.
#[test]
fn the_path_of_a_capture_is_a_scenario() {
    let folder = folder("fit_capture", &[("path.toml", PATH)]);
    stdout(&paceline(&folder, &["run", "path.toml", "--pcap", "call.pcapng"]), 0);
    let output = paceline(&folder, &["fit", "call.pcapng", "--controller", "nada"]);
    let text = stdout(&output, 0);
    assert!(text.starts_with("# The path of `"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    fs::write(folder.join("fitted.toml"), text).unwrap();
    let run = document(&paceline(&folder, &["run", "fitted.toml", "--json"]), 0);
    let run = &run["runs"][0];
    assert_eq!(run["flows"][0]["controller"], "nada");
    let capacity = run["links"][0]["capacity_bps"].as_f64().unwrap();
    assert!((1.5e6..3.15e6).contains(&capacity), "{capacity}\n{text}");
    let rtt = run["flows"][0]["rtt_ms"]["p5"].as_f64().unwrap();
    assert!((58.0..80.0).contains(&rtt), "{rtt}\n{text}");
    rejects(&paceline(&folder, &["fit", "call.pcapng", "--simulate"]), &["--simulate", "--what-if"]);
    rejects(&paceline(&folder, &["fit", "path.toml"]), &["path.toml"]);
}
