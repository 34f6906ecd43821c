// SPDX-License-Identifier: MIT OR Apache-2.0
//! Includes every file under `scenarios/` in the library, by its path, so that a new scenario needs no further entry.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    gather(&root, &root, &mut files);
    files.sort();
    let lines: String = files
        .iter()
        .map(|name| {
            let path = fs::canonicalize(root.join(name)).expect("it was just listed");
            format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string())
        })
        .collect();
    let code = format!("pub(super) const FILES: &[(&str, &str)] = &[\n{lines}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("catalogue.rs"), code).expect("the build folder is writable");
}

fn gather(root: &Path, dir: &Path, files: &mut Vec<String>) {
    println!("cargo::rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir).expect("scenarios/ is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            gather(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("it lies below").to_string_lossy().replace('\\', "/");
            files.push(name);
        }
    }
}
