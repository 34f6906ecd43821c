// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline explain`: causes on stdout, broken inputs with their formats on stderr.

use super::{document, folder, paceline, rejects, stdout};
use std::fs;

/// A muted camera: the sent rate falls at 20 s although the target allows more.
const MUTED: &[&str] = &["run", "real/muted", "--set", "duration=40s"];

#[test]
fn explains_a_run_and_its_capture_alike() {
    let folder = folder("explain_run", &[]);
    let made = [MUTED, &["--seed", "1", "--out", "results", "--pcap", "run.pcapng"]].concat();
    stdout(&paceline(&folder, &made), 0);
    let run = document(&paceline(&folder, &["explain", "results", "--json"]), 0);
    let findings = run["inputs"][0]["flows"][0]["findings"].as_array().unwrap();
    let muted = |finding: &serde_json::Value| {
        let start = finding["start_s"].as_f64().unwrap();
        finding["cause"] == "application" && (28.0..33.0).contains(&start)
    };
    assert!(findings.iter().any(muted), "{findings:?}");
    let capture = document(&paceline(&folder, &["explain", "run.pcapng", "--json"]), 0);
    let findings = capture["inputs"][0]["flows"][0]["findings"].as_array().unwrap();
    assert!(findings.iter().any(muted), "{findings:?}");

    // One screen: no line is longer than 80 columns.
    let output = paceline(&folder, &["explain", "results", "--what-if", "googcc", "--page", "page.html"]);
    let text = stdout(&output, 0);
    let verdict = run["inputs"][0]["verdict"].as_str().unwrap();
    let begins = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(verdict.starts_with("Media of `") && begins.starts_with(verdict), "{verdict}: {text}");
    assert!(text.contains("application") && text.contains("To try:") && text.contains("closed loop"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains(&format!("<p class=\"verdict\">{}", verdict.split('`').next().unwrap())), "{verdict}");
    assert!(page.contains("application limit") && !page.contains("http-equiv=\"refresh\""));

    // A redacted capture has the same explanation, and none of the addresses.
    stdout(&paceline(&folder, &["explain", "run.pcapng", "--redact", "shared.pcapng"]), 0);
    let shared = document(&paceline(&folder, &["explain", "shared.pcapng", "--json"]), 0);
    assert_eq!(shared["inputs"][0]["flows"][0]["findings"], capture["inputs"][0]["flows"][0]["findings"]);
    // Source and destination of each tap are adjacent in the IPv4 header; four bytes alone also occur in sequence numbers.
    let addresses = |file: &str| {
        let bytes = fs::read(folder.join(file)).unwrap();
        let is_header = |w: &&[u8]| {
            (1..=8).any(|tap| **w == [10, tap, 0, 1, 10, tap, 0, 2] || **w == [10, tap, 0, 2, 10, tap, 0, 1])
        };
        bytes.windows(8).filter(is_header).count()
    };
    assert!(addresses("run.pcapng") > 1000);
    assert_eq!(addresses("shared.pcapng"), 0);
}

#[test]
fn rejects_unknown_and_broken_inputs() {
    let folder = folder("explain_broken", &[("text.txt", "hello"), ("cut.json", "{\"PeerConnections\": {\"a\"")]);
    let explain = |file| paceline(&folder, &["explain", file]);
    rejects(&explain("text.txt"), &["unknown format", "hello", "pcapng", "webrtc-internals", "event log"]);
    rejects(&explain("cut.json"), &["webrtc-internals: line 1, column"]);
    rejects(&explain("none.pcapng"), &["none.pcapng", "No such file"]);
    rejects(&paceline(&folder, &["explain", "text.txt", "--what-if", "gogcc"]), &["no controller `gogcc`", "googcc"]);
}
