// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders of sweeps: the input replaces the database of a complete sweep. The folder is read, or an error says why not.

use crate::fixtures::{registry, simulator};
use paceline_lab::results::database::DATABASE_FILE;
use paceline_lab::sweep::{Sweep, SweepFolder};
use paceline_scenario::Origin;
use std::fs;
use std::path::Path;

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

/// Makes a folder with a complete sweep and returns the contents of its database.
pub fn create(folder: &Path) -> Vec<u8> {
    let _ = fs::remove_dir_all(folder);
    let sweep = Sweep::load(&Origin::from_text("fuzz.sweep.toml", SWEEP), registry()).unwrap();
    let open = SweepFolder::open(folder, &sweep, "sim", registry(), false).unwrap();
    sweep.run_into(&simulator(), &open, &|| ()).unwrap();
    drop(open);
    SweepFolder::read(folder, registry()).unwrap();
    fs::read(folder.join(DATABASE_FILE)).unwrap()
}

/// Checks one input as the database of a folder.
pub fn check_in(folder: &Path, bytes: &[u8]) {
    fs::write(folder.join(DATABASE_FILE), bytes).unwrap();
    if let Err(error) = SweepFolder::read(folder, registry()) {
        assert!(!error.to_string().is_empty());
    }
}
