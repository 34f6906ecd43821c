//! The k-th operation on a file of the results fails, for k from the first to the last: the disk is full.
//!
//! Whatever fails, the command ends with code 2 and a cause, earlier results stay as they were, and what was measured is on stdout: once
//! it is for one k, it is for all later ones. `PACELINE_FULL=1` makes every k fail, in place of a sample.

use super::tracer::{Ended, run};
use super::{folder, one_line, paceline, stderr};
use paceline_lab::results::{Store, StoredRun, StoredRunData};
use serde_json::Value;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

const SCENARIO: &str = "id = \"test/faults\"\ntitle = \"A call\"\nduration = \"1s\"\nrepeats = 1\n[path]\n[[flow]]\nid = \"call\"\n\
                        controller = \"fixed\"\nencoder = { source = \"ideal\" }\n";

const SWEEP: &str = "id = \"test/rates\"\ntitle = \"Rates\"\nrepeats = 1\n[[axis]]\nkey = \"media.start_rate\"\n\
                     values = [\"300kbps\", \"400kbps\"]\n[[measure]]\nname = \"used\"\nscenario = \"call.toml\"\nmetric = \
                     \"utilization\"\n";

/// Number of operations that fail in a sample.
const SAMPLE: usize = 16;

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

/// Checks a command that writes into `out`, in a folder where the command `earlier` has written before.
fn check(name: &str, earlier: Option<&[&str]>, arguments: &[&str], reads: fn(&Path) -> Vec<String>) {
    let dir = folder(name, &[("call.toml", SCENARIO), ("rates.sweep.toml", SWEEP)]);
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
    assert!(serde_json::from_str::<Value>(&stdout).is_ok() && operations > SAMPLE, "{operations} operations");
    let new = reads(&out);
    assert!(new.len() > old.len(), "{new:?}");
    let step = if std::env::var_os("PACELINE_FULL").is_some() { 1 } else { operations / SAMPLE };
    let (mut was_printed, mut failed) = (false, 0);
    for k in (0..operations).step_by(step) {
        start();
        let Ended { code, stdout, stderr: errors, .. } = run(&dir, arguments, &out, Some(k));
        let kept = reads(&out);
        // Operations that only make something faster or tidier may fail.
        if code == Some(0) {
            assert_eq!(kept, new, "operation {k}: {errors}");
            continue;
        }
        failed += 1;
        assert!(
            code == Some(2)
                && ["No space left on device", "disk I/O error", "disk is full"]
                    .iter()
                    .any(|of| one_line(&errors).contains(of)),
            "operation {k}: {code:?}, {errors}"
        );
        assert!(old.iter().all(|run| kept.contains(run)) && kept.iter().all(|run| new.contains(run)), "{k}: {kept:?}");
        let is_printed = !stdout.is_empty();
        assert!(!is_printed || serde_json::from_str::<Value>(&stdout).is_ok(), "operation {k}: {stdout}");
        assert!(is_printed || !was_printed, "operation {k}: what was measured is not printed: {errors}");
        was_printed = is_printed;
        // Once there is room again, the same command completes what is there.
        let again: Vec<&str> = arguments.iter().copied().chain(["--resume"]).collect();
        let made = paceline(&dir, &again);
        assert_eq!((made.status.code(), reads(&out)), (Some(0), new.clone()), "operation {k}: {}", stderr(&made));
    }
    assert!(was_printed && failed > SAMPLE / 2, "{failed} operations failed");
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

#[test]
fn run_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["run", "call.toml", "--seed", "2", "--json", "--out", "out"];
    check("faults-run", Some(&["run", "call.toml", "--seed", "1", "--out", "out"]), &arguments, contents);
}

#[test]
fn compare_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let arguments = ["compare", "call.toml", "--controllers", "fixed,nada", "--json", "--out", "out"];
    check("faults-compare", Some(&["run", "call.toml", "--seed", "7", "--out", "out"]), &arguments, contents);
}

/// A sweep stores each row at once, so that it needs no earlier results; its rows are those of the tables.
#[test]
fn sweep_prints_and_keeps_what_it_can_whatever_operation_fails() {
    let rows = |out: &Path| {
        let tables = ["rows.parquet", "points.parquet", "result.json"].iter().filter(|name| out.join(name).is_file());
        tables.map(|name| (*name).to_owned()).collect()
    };
    check("faults-sweep", None, &["sweep", "rates.sweep.toml", "--jobs", "1", "--json", "--out", "out"], rows);
}
