// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dependency directions between crates, checked with `cargo metadata`, and the imports between the files of a crate.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
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

/// Appends the paths of a tree such as `a::{b, c::d}` behind `path`, each as `::a::b`, and returns the text behind the tree.
fn read_tree<'a>(text: &'a str, path: &str, paths: &mut Vec<String>) -> &'a str {
    if let Some(mut list) = text.strip_prefix('{') {
        while !list.is_empty() && !list.starts_with('}') {
            list = read_tree(list.trim_start(), path, paths).trim_start_matches(|c| c != ',' && c != '}');
            list = list.trim_start_matches(',').trim_start();
        }
        return list.get(1..).unwrap_or_default();
    }
    let (name, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len()));
    let path = format!("{path}::{name}");
    if let Some(rest) = rest.strip_prefix("::") {
        return read_tree(rest, &path, paths);
    }
    paths.push(path);
    rest
}

/// Returns the imports between modules, given as `::a::b` with their texts, that are part of a circle or between circles. The tests at
/// the end of a file do not count.
fn circles(modules: &BTreeMap<String, String>) -> BTreeSet<(String, String)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
    let mut imports = BTreeSet::new();
    for (module, text) in modules {
        let code = text.split("mod tests {").next().unwrap_or_default();
        let code: String = code.split_inclusive('\n').filter(|line| !line.trim_start().starts_with("//")).collect();
        let mut paths = Vec::new();
        let roots = code.match_indices("crate::").chain(code.match_indices("super::"));
        for (at, _) in roots.filter(|(at, _)| !code[..*at].ends_with(is_word)) {
            read_tree(&code[at..], "", &mut paths);
        }
        for path in paths {
            let (mut from, mut path) = path.strip_prefix("::crate").map_or((&**module, &*path), |path| ("", path));
            while let Some(rest) = path.strip_prefix("::super") {
                (from, path) = (from.rsplit_once("::").map_or("", |(parent, _)| parent), rest);
            }
            let mut found = format!("{from}{path}");
            while !found.is_empty() && !modules.contains_key(&found) {
                found.truncate(found.rfind("::").unwrap_or(0));
            }
            let [own, other] = [module, &found].map(|module| format!("{module}::"));
            if !own.starts_with(&other) && !other.starts_with(&own) {
                imports.insert((module.clone(), found));
            }
        }
    }
    loop {
        let before = imports.clone();
        imports.retain(|(from, to)| before.iter().any(|(f, _)| f == to) && before.iter().any(|(_, t)| t == from));
        if imports == before {
            return imports;
        }
    }
}

/// Adds the files of a folder as modules below `module`.
fn read_modules(folder: &Path, module: &str, modules: &mut BTreeMap<String, String>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy();
        let own = if ["lib", "main", "mod"].contains(&&*name) { "" } else { &format!("::{name}") };
        let own = format!("{module}{own}");
        if path.is_dir() {
            read_modules(&path, &own, modules);
        } else if path.extension().is_some_and(|of| of == "rs") {
            *modules.entry(own).or_default() += &fs::read_to_string(&path).unwrap();
        }
    }
}

#[test]
fn files_of_a_crate_import_each_other_in_no_circle() {
    for package in metadata()["packages"].as_array().unwrap() {
        let (mut modules, manifest) = (BTreeMap::new(), Path::new(package["manifest_path"].as_str().unwrap()));
        read_modules(&manifest.with_file_name("src"), "", &mut modules);
        let found = circles(&modules);
        assert!(found.is_empty(), "{}: {found:#?}", package["name"]);
    }
    let found = |texts: &[(&str, &str)]| {
        circles(&texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()).len()
    };
    let (a, c) = (("::a", "use crate::{b::{self, X},\n    d};"), ("::c", "fn f() { super::a::g() }"));
    assert_eq!(found(&[a, ("::b", "use crate::c::*;"), c, ("::d", "")]), 3);
    assert_eq!(found(&[a, ("::b", "// crate::c\n#[cfg(test)]\nmod tests {\nuse crate::c::C;"), c, ("::d", "")]), 0);
    assert_eq!(found(&[("::b", "use super::b::c::Y;"), ("::b::c", "use super::X; use crate::Z;"), c, ("::a", "")]), 0);
}
