//! What a run in real time had measured when its process was killed can be read.
#![cfg(target_os = "linux")]

#[path = "../../paceline-live/tests/common/mod.rs"]
mod common;

use paceline_lab::store::{Manifest, RUNS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const RUN: [&str; 8] = ["run", "mmsys16/table1", "--world", "testbed", "--set", "duration=20s", "--out", "killed"];

fn paceline(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.args(arguments).current_dir(folder);
    command
}

fn report(folder: &Path) -> (Output, String) {
    let told = paceline(folder, &["report", "killed"]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    (told, fs::read_to_string(folder.join("killed/report.html")).unwrap())
}

fn runs(folder: &Path) -> Vec<(String, Option<f64>)> {
    let runs = Manifest::read(&folder.join("killed")).unwrap().runs;
    runs.into_iter().map(|run| (run.directory, run.cut_at_s)).collect()
}

/// The first part of a run, once it is there.
fn part(runs: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(runs).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    folders.map(|folder| folder.join("until-000010s")).find(|part| part.is_dir())
}

#[test]
fn a_killed_run_is_drawn_and_made_again() {
    if !common::track() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();

    let mut child = paceline(&folder, &RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let in_runs = folder.join("killed").join(RUNS);
    let part = loop {
        if let Some(part) = part(&in_runs) {
            break part;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended before a part was there");
        thread::sleep(Duration::from_millis(20));
    };
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    for table in ["packets", "flows", "frames", "signals"] {
        let bytes = fs::read(part.join(table).with_extension("parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{table} has both ends of a Parquet file");
    }

    let (told, page) = report(&folder);
    let name = "mmsys16_table1-gcc-2016-testbed-seed1";
    let (cut, talk) = (format!("{name}-cut"), String::from_utf8_lossy(&told.stderr).into_owned());
    assert!(talk.contains(&format!("{cut} was cut at 10 s")), "{talk}");
    assert!(page.contains(&format!("{cut} was cut at 10 s")) && page.contains("gcc-2016 · cut at 10 s"));
    assert_eq!((runs(&folder), part.exists()), (vec![(cut.clone(), Some(10.0))], false));

    let again = paceline(&folder, &RUN).output().unwrap();
    // 1: bounds that are meant for a longer run.
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(runs(&folder), [(name.to_owned(), None)]);
    let left: Vec<_> = fs::read_dir(&in_runs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [name]);
    let (_, page) = report(&folder);
    assert!(!page.contains("was cut at"));
}
