//! Fuzz targets of files that strangers write (`fuzz/` at the root of the repository), for a short time and on stable Rust.

#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
mod scenario;
mod sweep_folder;
mod trace;

use mutations::check_mutations;
use paceline::Registry;
use paceline_lab::run::Runner;
use paceline_lab::sweep::{Sweep, SweepFolder};
use paceline_scenario::trace::{Direction, Trace};
use paceline_scenario::{Catalogue, Origin};
use std::fs;
use std::path::Path;

#[test]
fn scenarios_survive_changes() {
    let shipped = Catalogue.ids().map(|id| Catalogue.find(id).unwrap().text.into_bytes());
    check_mutations(&shipped.collect::<Vec<_>>(), 3_000, scenario::check);
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
    check_mutations(&samples.map(|text| text.as_bytes().to_vec()), 20_000, trace::check);
}

const SWEEP: &str = r#"
id = "test/fuzz"
title = "Two round-trip times"

[[axis]]
key = "path.rtt"
values = ["20ms", "40ms"]

[[measure]]
name = "used"
scenario = "mmsys16/table1"
set = { duration = "1s" }
metric = "utilization"
"#;

#[test]
fn folders_of_sweeps_survive_changes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-sweep");
    let _ = fs::remove_dir_all(&folder);
    let registry = Registry::standard();
    let sweep = Sweep::load(&Origin::from_text("fuzz.sweep.toml", SWEEP), &registry).unwrap();
    let open = SweepFolder::open(&folder, &sweep, "sim", &registry, false).unwrap();
    sweep.run_into(&Runner::simulator(&registry), &open, &|| ()).unwrap();
    drop(open);
    SweepFolder::read(&folder, &registry).unwrap();
    let parts = fs::read_dir(folder.join("parts")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = parts.map(|name| format!("parts/{}", name.to_str().unwrap())).collect();
    names.push("sweep.json".to_owned());
    let files: Vec<(&str, Vec<u8>)> =
        names.iter().map(|name| (&name[..], fs::read(folder.join(name)).unwrap())).collect();
    let sample = |(index, (_, bytes)): (usize, &(&str, Vec<u8>))| [&[index as u8], &bytes[..]].concat();
    let samples: Vec<Vec<u8>> = files.iter().enumerate().map(sample).collect();
    check_mutations(&samples, 1_000, |bytes| sweep_folder::check_in(&folder, &files, bytes));
}
