//! Folders of sweeps: `sweep.json` and a table of jobs, the first byte of the input says which of the two the rest replaces. The
//! folder is read, or an error says why not.

use paceline::Registry;
use paceline_lab::sweep::SweepFolder;
use std::fs;
use std::path::Path;

/// Checks one input in a folder that holds a complete sweep, and leaves the folder as it was.
pub fn check_in(folder: &Path, files: &[(&str, Vec<u8>)], bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    let (name, original) = &files[usize::from(*which) % files.len()];
    fs::write(folder.join(name), rest).unwrap();
    if let Err(error) = SweepFolder::read(folder, &Registry::standard()) {
        assert!(!error.to_string().is_empty());
    }
    fs::write(folder.join(name), original).unwrap();
}
