//! The body is a module of `paceline-watch`'s tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-watch/tests/fuzz/watch.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| target::check(bytes));
