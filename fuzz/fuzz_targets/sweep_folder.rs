// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body is a module of `paceline-lab`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-lab/tests/it/fixtures.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixtures;
#[path = "../../crates/paceline-lab/tests/it/fuzz/sweep_folder.rs"]
mod target;

use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("paceline-fuzz-{}", std::process::id()));
        target::create(&folder);
        folder
    });
    target::check_in(folder, bytes);
});
