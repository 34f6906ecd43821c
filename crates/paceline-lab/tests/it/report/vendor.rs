// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vendored code is unmodified, and its licence is listed.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

#[test]
fn vendored_files_are_as_published() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("vendor/uplot-1.6.32");
    let vendor: toml::Table = fs::read_to_string(dir.join("VENDOR.toml")).unwrap().parse().unwrap();
    let hashes = vendor["sha256"].as_table().unwrap();
    let mut files: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "VENDOR.toml")
        .collect();
    files.sort();
    let mut listed: Vec<&String> = hashes.keys().collect();
    listed.sort();
    assert_eq!(files.iter().collect::<Vec<_>>(), listed);
    for (file, hash) in hashes {
        let digest = Sha256::digest(fs::read(dir.join(file)).unwrap());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash.as_str(), Some(digest.as_str()), "{file}");
    }
}

#[test]
fn vendored_code_is_listed_with_its_licence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(root.join("THIRD_PARTY.md")).unwrap();
    let licence = include_str!("../../../vendor/uplot-1.6.32/LICENSE");
    for words in ["uPlot 1.6.32", "crates/paceline-lab/vendor/uplot-1.6.32", licence.trim()] {
        assert!(list.contains(words), "THIRD_PARTY.md lacks `{words}`");
    }
}
