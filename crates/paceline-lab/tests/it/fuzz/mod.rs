// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzz targets of files that strangers write (`fuzz/` at the root of the repository), for a short time and on stable Rust.

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
mod results;
mod scenario;
mod sweep_folder;
mod trace;

use mutations::check_mutations;
use paceline_scenario::Catalogue;
use paceline_scenario::trace::{Direction, Trace};
use std::path::Path;

#[test]
fn scenarios_survive_changes() {
    let shipped = Catalogue.ids().map(|id| Catalogue.find(id).unwrap().text.into_bytes());
    check_mutations("scenario", &shipped.collect::<Vec<_>>(), 3_000, scenario::check);
}

#[test]
fn traces_survive_changes() {
    let samples = [
        "0\n3\n3\n9\n20\n",
        "time_s,rate_bps\n0,1000000\n1.5,2000000\n4,0\n",
        "{\"uplink\": {\"trace_pattern\": [{\"duration\": 1000, \"capacity\": 300}]}, \"downlink\": {}}",
        "1 1000 59.9 10.7 5000 1000\n2 2000 59.9 10.7 9000 1000\n",
    ];
    for text in samples {
        Trace::read(text, Direction::Downlink).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    }
    check_mutations("trace", &samples.map(|text| text.as_bytes().to_vec()), 20_000, trace::check);
}

#[test]
fn folders_of_sweeps_survive_changes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-sweep");
    let sample = sweep_folder::create(&folder);
    check_mutations("sweep_folder", &[sample], 1_000, |bytes| sweep_folder::check_in(&folder, bytes));
}

#[test]
fn folders_of_results_survive_changes() {
    let folder = results::Folder::create(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-results"));
    assert!(folder.samples().iter().all(|sample| folder.check(sample)));
    check_mutations("results", &folder.samples(), 1_000, |bytes| _ = folder.check(bytes));
}
