// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a run in real time whose process was killed.

use super::{common, paceline, stderr};
use paceline_lab::results::{RUNS, Store};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

const RUN: [&str; 8] = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=20s", "--out", "killed"];

/// Draws the report, and returns the messages of the command and the page.
fn report(folder: &Path) -> (String, String) {
    let output = paceline(&["report", "killed"]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (stderr(&output), fs::read_to_string(folder.join("killed/report.html")).unwrap())
}

fn runs(folder: &Path) -> Vec<(String, Option<f64>)> {
    let runs = Store::read(&folder.join("killed")).unwrap().runs;
    runs.into_iter().map(|run| (run.about.run.directory, run.about.run.cut_at_s)).collect()
}

/// Returns the first part of a run, if it exists.
fn part(runs: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(runs).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    folders.map(|folder| folder.join("data/until-000010s")).find(|part| part.is_dir())
}

#[test]
fn a_killed_run_can_be_drawn_and_repeated() {
    if !common::is_testbed_available() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();

    let mut child = paceline(&RUN).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let in_runs = folder.join("killed").join(RUNS);
    let part = loop {
        if let Some(part) = part(&in_runs) {
            break part;
        }
        assert_eq!(child.try_wait().unwrap(), None, "the run ended before it wrote a part");
        thread::sleep(Duration::from_millis(20));
    };
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    for table in ["packets", "flows", "frames", "signals"] {
        let bytes = fs::read(part.join(table).with_extension("parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table} is a complete Parquet file");
    }

    let (messages, page) = report(&folder);
    let name = "mmsys16_table1-gcc-2016-testbed-seed1";
    let cut = format!("{name}-cut");
    assert!(messages.contains(&format!("{cut} was cut at 10 s")), "{messages}");
    assert!(page.contains(&format!("{cut} was cut at 10 s")) && page.contains("gcc-2016 · cut at 10 s"));
    assert_eq!((runs(&folder), part.exists()), (vec![(cut.clone(), Some(10.0))], false));

    let again = paceline(&RUN).current_dir(&folder).output().unwrap();
    // Exit code 1 is possible: the bounds are for a longer run.
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", stderr(&again));
    assert_eq!(runs(&folder), [(name.to_owned(), None)]);
    let left: Vec<_> = fs::read_dir(&in_runs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [name]);
    let (_, page) = report(&folder);
    assert!(!page.contains("was cut at"));
}
