// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dependency directions between crates, checked with `cargo metadata`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate and its allowed dependencies within the workspace, without those of its tests. ARCHITECTURE.md has the diagram.
const MAY_USE: &[(&str, &[&str])] = &[
    ("paceline-units", &[]),
    // The RTP formats, with the feature `rtp`.
    ("paceline", &["paceline-wire", "paceline-units"]),
    ("paceline-wire", &["paceline-units"]),
    ("paceline-quinn", &["paceline", "paceline-units"]),
    ("paceline-netsim", &["paceline-wire", "paceline", "paceline-units"]),
    ("paceline-scenario", &["paceline-netsim", "paceline", "paceline-units"]),
    ("paceline-lab", &["paceline-scenario", "paceline-netsim", "paceline-wire", "paceline", "paceline-units"]),
    (
        "paceline-explain",
        &["paceline-lab", "paceline-scenario", "paceline-netsim", "paceline-wire", "paceline", "paceline-units"],
    ),
    // Worlds in real time compile neither a Parquet writer nor the scenario format.
    ("paceline-live", &["paceline-abi", "paceline-netsim", "paceline-wire", "paceline", "paceline-units"]),
    ("paceline-abi", &[]),
    ("paceline-c", &["paceline-abi", "paceline-wire", "paceline", "paceline-units"]),
    ("paceline-browser", &["paceline-live", "paceline-netsim", "paceline-wire", "paceline", "paceline-units"]),
];

/// Crates above the use cases: they may use every other crate, and no other crate may use them. The Python package contains the
/// command, and the harness of other implementations prints as it does.
const ABOVE: &[&str] = &["paceline-cli", "paceline-py", "paceline-wasm", "paceline-benches", "paceline-others"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

/// Each crate of the workspace and its dependencies within the workspace, without those of its tests.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |p: &Value| p["name"].as_str().unwrap().to_owned();
    let all: BTreeSet<String> = packages.iter().map(name).collect();
    let used = |p: &Value| {
        let dependencies = p["dependencies"].as_array().unwrap().iter();
        dependencies.filter(|d| d["kind"] != "dev").map(name).filter(|d| all.contains(d)).collect()
    };
    packages.iter().map(|p| (name(p), used(p))).collect()
}

#[test]
fn dependencies_have_the_allowed_directions() {
    let uses = uses();
    for (name, allowed) in MAY_USE {
        let used = uses.get(*name).unwrap_or_else(|| panic!("{name} is not in the workspace"));
        let allowed = allowed.iter().map(|a| (*a).to_owned()).collect();
        let more: Vec<&String> = used.difference(&allowed).collect();
        assert!(more.is_empty(), "{name} uses {more:?}, which ARCHITECTURE does not allow");
    }
    for name in uses.keys().filter(|n| n.starts_with("paceline")) {
        let known = MAY_USE.iter().any(|(n, _)| n == name) || ABOVE.contains(&name.as_str());
        assert!(known, "add `{name}` to this test");
    }
}

#[test]
fn the_lock_file_has_no_arrow() {
    let lock = include_str!("../../../../Cargo.lock");
    let names: Vec<&str> = lock.lines().filter_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(names.contains(&"parquet") && names.len() > 50, "the lock file was read");
    let arrow: Vec<&&str> = names.iter().filter(|n| **n == "arrow" || n.starts_with("arrow-")).collect();
    assert!(arrow.is_empty(), "{arrow:?}: parquet is used without its `arrow` feature");
}
