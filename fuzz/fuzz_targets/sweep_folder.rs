//! The body is a module of `paceline-lab`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-lab/tests/it/fuzz/sweep_folder.rs"]
mod target;

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The files of a complete sweep, which inputs replace.
const FILES: [(&str, &[u8]); 2] = [
    ("sweep.json", include_bytes!("../sweep_folder/sweep.json")),
    ("parts/000000000000-000000000002.jsonl", include_bytes!("../sweep_folder/jobs.jsonl")),
];

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("paceline-fuzz-{}", std::process::id()));
        fs::create_dir_all(folder.join("parts")).unwrap();
        FILES.iter().for_each(|(name, contents)| fs::write(folder.join(name), contents).unwrap());
        folder
    });
    target::check_in(folder, &FILES.map(|(name, contents)| (name, contents.to_vec())), bytes);
});
