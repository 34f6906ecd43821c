// SPDX-License-Identifier: MIT OR Apache-2.0
//! The licences of the libraries in a binary, as their authors wrote them.

use crate::steps::{Problem, command, output, packages};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Beginnings of the names of files that a package carries for those who distribute it.
const NAMES: [&str; 5] = ["licence", "license", "copying", "notice", "copyright"];

/// Returns the licence texts of every library that a package uses with these features. Equal texts are printed once.
pub fn notices(package: &str, features: &str) -> Result<String, Problem> {
    let tree = "cargo tree --locked --edges normal --prefix none --format {p}";
    let (tree, _) = output(command(&format!("{tree} --package {package} --features {features}")))?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in packages("--locked")? {
        let [name, version, licence, manifest] =
            ["name", "version", "license", "manifest_path"].map(|key| package[key].as_str().unwrap_or_default());
        let line = format!("{name} v{version}");
        let is_used = tree.lines().any(|used| used == line || used.starts_with(&format!("{line} ")));
        // Without a source it is a package of this workspace.
        if !is_used || package["source"].is_null() {
            continue;
        }
        let of = texts_in(Path::new(manifest).parent().unwrap_or(Path::new(".")));
        if of.is_empty() {
            without.push(format!("{name} {version}: {licence}"));
        }
        of.into_iter().for_each(|text| texts.entry(text).or_default().push(format!("{name} {version} ({licence})")));
    }
    let mut sections: Vec<(String, String)> = texts.into_iter().map(|(text, names)| (names.join("\n"), text)).collect();
    sections.sort();
    let mut printed = "Libraries in this program, and their licences\n".to_owned();
    for (names, text) in sections {
        printed += &format!("\n{}\n{names}\n\n{}\n", "=".repeat(80), text.trim_end());
    }
    if !without.is_empty() {
        printed += &format!("\n{}\nPackages that carry no text\n{}\n", "=".repeat(80), without.join("\n"));
    }
    Ok(printed)
}

/// Returns the texts in the folder of a package.
fn texts_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> = entries
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin))
        })
        .collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}
