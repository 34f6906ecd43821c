//! The body is a module of `paceline-hosts`' tests, where it also runs without a fuzzer.
#![no_main]

#[path = "../../crates/paceline-hosts/tests/it/fuzz/hosts.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    target::check(bytes);
});
