// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body is a module of `paceline-explain`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-explain/tests/it/fuzz/redact.rs"]
mod target;

use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("paceline-fuzz-redact-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    folder
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    target::check_in(&FOLDER, bytes);
});
