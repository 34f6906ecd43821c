// SPDX-License-Identifier: MIT OR Apache-2.0
//! The body of the fuzz target `c_interface`, and a test that runs it without a fuzzer.

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;

mod calls;

#[test]
fn random_calls_survive() {
    // Random bytes (Knuth's linear congruential generator) under each controller.
    let mut state = 1u64;
    let mut byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    // An interpreter is slow.
    let (length, inputs, least) = if cfg!(miri) { (60, 0, 50) } else { (600, 1_000, 10_000) };
    let samples: Vec<Vec<u8>> =
        (0..24).map(|controller| [controller].into_iter().chain((0..length).map(&mut byte)).collect()).collect();
    let mut succeeded = 0;
    mutations::check_mutations("c_interface", &samples, inputs, |bytes| succeeded += calls::check(bytes));
    assert!(succeeded > least, "{succeeded} calls succeeded");
}
