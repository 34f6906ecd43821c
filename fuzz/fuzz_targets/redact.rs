// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body is a module of `paceline-explain`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-explain/tests/it/fuzz/redact.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    target::check(bytes);
});
