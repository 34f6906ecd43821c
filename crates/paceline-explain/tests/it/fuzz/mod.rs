//! The bodies of the fuzz targets, and tests that run them without a fuzzer.

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;

mod explain;

use crate::samples;
use mutations::check_mutations;

#[test]
fn readers_survive() {
    let samples: Vec<Vec<u8>> = vec![
        samples::internals().into_bytes(),
        samples::lines().into_bytes(),
        samples::event_log(),
        samples::capture(),
    ];
    check_mutations(&samples, 300, explain::check);
}
