//! The house plan holds: who may use whom, read from the workspace as cargo sees it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate and the crates of the workspace that it may use: `cli -> report -> lab -> flow -> {paceline, wire} -> units` and
/// `lab -> link -> units`. `paceline` never sees `wire`, `wire` never an algorithm, `link` neither.
const MAY_USE: &[(&str, &[&str])] = &[
    ("paceline-units", &[]),
    ("paceline", &["paceline-units"]),
    ("paceline-wire", &["paceline-units"]),
    ("paceline-link", &["paceline-units"]),
    ("paceline-flow", &["paceline", "paceline-wire", "paceline-units"]),
    ("paceline-lab", &["paceline-flow", "paceline-link", "paceline-wire", "paceline", "paceline-units"]),
    (
        "paceline-live",
        &["paceline-lab", "paceline-flow", "paceline-link", "paceline-wire", "paceline", "paceline-units"],
    ),
    // It reads what the laboratory stored, and could not run anything if it would.
    ("paceline-report", &["paceline-lab"]),
];

/// Crates above the laboratory: anything goes but being used from below, which the table rules out.
const ABOVE: &[&str] = &["paceline-cli", "paceline-py", "paceline-benches"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

/// Name of each crate of the workspace, and what it uses of the workspace outside its tests.
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
fn uses_go_one_way() {
    let uses = uses();
    for (name, allowed) in MAY_USE {
        let used = uses.get(*name).unwrap_or_else(|| panic!("{name} is not in the workspace"));
        let allowed = allowed.iter().map(|a| (*a).to_owned()).collect();
        let more: Vec<&String> = used.difference(&allowed).collect();
        assert!(more.is_empty(), "{name} uses {more:?}, which ARCHITECTURE does not allow");
    }
    for name in uses.keys().filter(|n| n.starts_with("paceline")) {
        let known = MAY_USE.iter().any(|(n, _)| n == name) || ABOVE.contains(&name.as_str());
        assert!(known, "say in this test where `{name}` stands");
    }
}

#[test]
fn what_nobody_should_compile_is_not_in_the_lock_file() {
    let lock = include_str!("../../../Cargo.lock");
    let names: Vec<&str> = lock.lines().filter_map(|l| l.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(names.contains(&"parquet") && names.len() > 50, "this reads the lock file");
    let arrow: Vec<&&str> = names.iter().filter(|n| **n == "arrow" || n.starts_with("arrow-")).collect();
    assert!(arrow.is_empty(), "{arrow:?}: parquet is used without its `arrow` feature");
}
