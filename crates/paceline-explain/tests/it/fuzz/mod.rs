// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bodies of the fuzz targets, and tests that run them without a fuzzer.

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;

mod explain;
mod redact;

use crate::samples;
use mutations::check_mutations;

fn samples() -> [Vec<u8>; 5] {
    // A text in the place of a state, which no copy may have.
    let internals = samples::internals().replace("none", "kanarie-vogel");
    let [internals, lines, rtcstats] = [internals, samples::lines(), samples::rtcstats()].map(String::into_bytes);
    // Its beginning: a fuzzer makes few executions with long inputs.
    let mut capture = samples::capture();
    capture.truncate(30_000);
    [internals, lines, rtcstats, samples::event_log(), capture]
}

#[test]
fn readers_survive() {
    check_mutations("explain", &samples(), 300, explain::check);
}

#[test]
fn redacted_copies_survive() {
    let (mut copies, folder) = (0, tempfile::tempdir().unwrap());
    let check = |bytes: &[u8]| copies += usize::from(redact::check_in(folder.path(), bytes));
    check_mutations("redact", &samples(), 300, check);
    assert!(copies > 100, "{copies} copies");
}
