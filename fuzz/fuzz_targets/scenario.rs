// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body is a module of `paceline-lab`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-lab/tests/it/fixtures.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixtures;
#[path = "../../crates/paceline-lab/tests/it/fuzz/scenario.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::check(bytes));
