// SPDX-License-Identifier: MIT OR Apache-2.0
//! The k-th operation on a file of the results fails, for k from the first to the last: the disk is full, or does not work, or a
//! signal interrupts the operation.
//!
//! Whatever fails, the command ends with code 2 and a cause, earlier results stay as they were, and what was measured is on stdout: once
//! it is for one k, it is for all later ones with the same error. `PACELINE_FULL=1` makes every k fail with each error, in place of a sample.

use super::tracer::{Ended, run};
use super::{folder, one_line, paceline, stderr};
use nix::errno::Errno;
use paceline_lab::results::{Store, StoredRun, StoredRunData};
use serde_json::Value;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"id = "test/faults"
title = "A call"
duration = "1s"
repeats = 1
[path.forward]
capacity = "1 Mbps"
[[flow]]
id = "call"
controller = "fixed"
encoder = { source = "ideal" }
[[assert]]
id = "share"
metric = "loss_ratio"
bounds = [0, 1]
why = "a share"
"#;

const SWEEP: &str = r#"id = "test/rates"
title = "Rates"
repeats = 1
[[axis]]
key = "media.start_rate"
values = ["300kbps", "400kbps"]
[[measure]]
name = "used"
scenario = "call.toml"
metric = "utilization"
"#;

const SUITE: &str = r#"id = "own"
title = "Own"
family = "wired"
repeats = 2
scenarios = ["call"]
"#;

/// Number of operations that fail in a sample.
const SAMPLE: usize = 16;
/// The errors, and what the system says of them. An interrupted write is repeated; a new folder is not.
const ERRORS: [(Errno, &str); 3] = [
    (Errno::ENOSPC, "No space left on device"),
    (Errno::EIO, "Input/output error"),
    (Errno::EINTR, "Interrupted system call"),
];
/// What SQLite says of them.
const OF_SQLITE: [&str; 6] = [
    "disk I/O error",
    "disk is full",
    "locking protocol",
    "database is locked",
    "unable to open database file",
    "readonly database",
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// Checks a command that writes into `out`, in a folder where the command `earlier` has written before. Repeated with `again`, it
/// completes what is there.
fn check(
    name: &str,
    earlier: Option<&[&str]>,
    arguments: &[&str],
    again: &[&str],
    reads: impl Fn(&Path) -> Vec<String>,
) {
    let dir = folder(name, &[("call.toml", SCENARIO), ("rates.sweep.toml", SWEEP), ("own.suite.toml", SUITE)]);
    let (before, out) = (dir.join("before"), dir.join("out"));
    fs::create_dir_all(&before).unwrap();
    if let Some(earlier) = earlier {
        let made = paceline(&dir, earlier);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        fs::rename(&out, &before).unwrap();
    }
    let start = || {
        let _ = fs::remove_dir_all(&out);
        copy(&before, &out);
    };
    start();
    let old = reads(&out);
    let Ended { code, operations, stdout, stderr: errors } = run(&dir, arguments, &out, None);
    assert_eq!(code, Some(0), "{errors}");
    assert!(serde_json::from_str::<Value>(&stdout).is_ok() && operations > 4, "{operations} operations");
    let new = reads(&out);
    assert!(new.len() > old.len(), "{new:?}");
    let is_full = std::env::var_os("PACELINE_FULL").is_some();
    let step = if is_full { 1 } else { (operations / SAMPLE).max(1) };
    let (mut printed, mut tries, mut failed) = ([0; ERRORS.len()], 0, 0);
    for (index, k) in (0..operations).step_by(step).enumerate() {
        let which = if is_full { 0..ERRORS.len() } else { index % ERRORS.len()..index % ERRORS.len() + 1 };
        for which in which {
            let (error, cause) = &ERRORS[which];
            start();
            let Ended { code, stdout, stderr: errors, .. } = run(&dir, arguments, &out, Some((k, *error)));
            let (kept, what) = (reads(&out), format!("{error} in operation {k}"));
            tries += 1;
            // Operations that only make something faster or tidier may fail.
            if code == Some(0) {
                assert_eq!(kept, new, "{what}: {errors}");
                continue;
            }
            failed += 1;
            let is_named = OF_SQLITE.iter().chain([cause]).any(|cause| one_line(&errors).contains(cause));
            assert!(code == Some(2) && is_named, "{what}: {code:?}, {errors}");
            assert!(
                old.iter().all(|run| kept.contains(run)) && kept.iter().all(|run| new.contains(run)),
                "{what}: {kept:?}"
            );
            let is_printed = !stdout.is_empty();
            assert!(!is_printed || serde_json::from_str::<Value>(&stdout).is_ok(), "{what}: {stdout}");
            // SQLite goes on for reading if it cannot create a file, which one operation does.
            assert!(is_printed || printed[which] < 2, "{what}: what was measured is not printed: {errors}");
            printed[which] += usize::from(is_printed);
            // Once the disk works again, the same command completes what is there.
            let made = paceline(&dir, &[arguments, again].concat());
            assert_eq!((made.status.code(), reads(&out)), (Some(0), new.clone()), "{what}: {}", stderr(&made));
        }
    }
    println!("{name}: {operations} operations, {tries} faults, {failed} ended the command, none lost a result");
    assert!(
        printed.iter().any(|count| *count > 0) && failed > operations.min(SAMPLE) / 4,
        "{failed} operations failed"
    );
    fs::remove_dir_all(&dir).unwrap();
}

/// Returns what is stored: the runs, each with the contents of its tables, and the comparisons.
fn contents(out: &Path) -> Vec<String> {
    let Ok(contents) = Store::read(out) else { return Vec::new() };
    let run = |run: &StoredRunData| {
        let mut hash = DefaultHasher::new();
        let mut tables: Vec<PathBuf> = fs::read_dir(&run.dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        tables.retain(|file| file.extension().is_some_and(|extension| extension == "parquet"));
        tables.sort();
        tables.iter().for_each(|file| fs::read(file).unwrap().hash(&mut hash));
        let StoredRun { controllers, seed, trace_hash, .. } = &run.about.run;
        format!("{controllers:?}, seed {seed}: {trace_hash:?}, {} tables, {:x}", tables.len(), hash.finish())
    };
    let comparisons = contents.comparisons.iter().map(|table| format!("comparison of {:?}", table.controllers));
    let mut all: Vec<String> = contents.runs.iter().map(run).chain(comparisons).collect();
    all.sort();
    all
}

/// Returns the names and the contents of result files.
fn files(out: &Path, names: &[&str]) -> Vec<String> {
    let read = |name: &&str| Some(format!("{name}: {}", fs::read_to_string(out.join(name)).ok()?));
    names.iter().filter_map(read).collect()
}

#[test]
fn run_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["run", "call.toml", "--seed", "2", "--json", "--out", "out"];
    let earlier: &[&str] = &["run", "call.toml", "--seed", "1", "--out", "out"];
    check("faults-run", Some(earlier), &arguments, &["--resume"], contents);
}

#[test]
fn compare_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["compare", "call.toml", "--controllers", "fixed,nada", "--json", "--out", "out"];
    let earlier: &[&str] = &["run", "call.toml", "--seed", "7", "--out", "out"];
    check("faults-compare", Some(earlier), &arguments, &["--resume"], contents);
}

/// A sweep stores each row at once, so that it needs no earlier results; its rows are those of the tables.
#[test]
fn sweep_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let rows = |out: &Path| {
        let tables = ["rows.parquet", "points.parquet", "result.json"].iter().filter(|name| out.join(name).is_file());
        tables.map(|name| (*name).to_owned()).collect()
    };
    let arguments = ["sweep", "rates.sweep.toml", "--jobs", "1", "--json", "--out", "out"];
    check("faults-sweep", None, &arguments, &["--resume"], rows);
}

#[test]
fn suite_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["suite", "own.suite.toml", "--controllers", "fixed", "--jobs", "1", "--json", "--out", "out"];
    check("faults-suite", None, &arguments, &["--resume"], |out| files(out, &["suites.json"]));
}

#[test]
fn reproduce_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["reproduce", "call.toml", "--jobs", "1", "--json", "--out", "out"];
    check("faults-reproduce", None, &arguments, &["--resume"], |out| files(out, &["scoreboard.json"]));
}

#[test]
fn choose_prints_what_it_can_whatever_operation_fails() {
    let arguments = ["choose", "call.toml", "--controllers", "fixed,nada", "--json", "--page", "out/page.html"];
    check("faults-choose", None, &arguments, &[], |out| files(out, &["page.html"]));
}
