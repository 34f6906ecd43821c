// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body is a module of `paceline-lab`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-lab/tests/it/fixtures.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixtures;
#[path = "../../crates/paceline-lab/tests/it/fuzz/results.rs"]
#[allow(dead_code, reason = "the test uses the rest")]
mod target;

use std::cell::OnceCell;

thread_local! {
    static FOLDER: OnceCell<target::Folder> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    FOLDER.with(|folder| {
        let path = || std::env::temp_dir().join(format!("paceline-fuzz-results-{}", std::process::id()));
        folder.get_or_init(|| target::Folder::create(&path())).check(bytes);
    });
});
