// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder, and runs in it.

use super::*;

#[test]
fn an_unfinished_run_leaves_no_files() {
    let (scratch, store) = Scratch::with_store();
    let mut run = store.run(&header("a", 1), inputs()).unwrap();
    run.on_event(&sent(1));
    assert_eq!(scratch.runs().len(), 1);
    drop(run);
    assert!(scratch.runs().is_empty());
    assert_eq!(scratch.stored(), []);
}

#[test]
fn a_run_replaces_only_the_run_with_the_same_key() {
    let (scratch, store) = Scratch::with_store();
    write(&store, &header("b", 10), &[], "first");
    write(&store, &header("b", 9), &[], "other seed");
    write(&store, &header("a/c", 1), &[], "other scenario");
    let two = RunHeader { controllers: vec![Some("nada".to_owned()), None], ..header("b", 9) };
    write(&store, &two, &[], "other controller");
    // Opened again, as by a second process.
    let store = scratch.open();
    let place = write(&store, &header("b", 10), &[sent(1), sent(2)], "second");
    assert_eq!(scratch.hashes(), ["other scenario", "other seed", "second", "other controller"]);
    let names = ["a_c-gcc-2016-seed1", "b-gcc-2016-seed10", "b-gcc-2016-seed9", "b-nada-seed9"];
    assert_eq!(scratch.runs(), names, "nothing temporary is left");
    assert_eq!(read(&place.join("packets.parquet")).len(), 2);
}

#[test]
fn runs_with_the_same_name_get_distinct_folders() {
    let (scratch, store) = Scratch::with_store();
    let mut places = Vec::new();
    for scenario in ["a/b", "a_b", "A_b", "a/b", "a_b"] {
        let place = write(&store, &header(scenario, 1), &[], scenario);
        places.push(place.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let (first, second, third) = ("a_b-gcc-2016-seed1", "a_b-gcc-2016-seed1-2", "A_b-gcc-2016-seed1-2");
    assert_eq!(places[..2], [first, second]);
    assert!(places[2].starts_with("A_b-gcc-2016-seed1-") && places[2] != third, "{places:?}");
    assert_eq!(places[3..], [first, second], "each replaces its own");
    assert_eq!(scratch.stored().len(), 3);
}

#[test]
fn concurrent_runs_are_all_listed() {
    let (scratch, store) = Scratch::with_store();
    let mut one = store.run(&header("a", 1), inputs()).unwrap();
    let two = store.run(&header("a", 2), inputs()).unwrap();
    let again = store.run(&header("a", 1), inputs()).unwrap();
    one.on_event(&sent(1));
    // Meanwhile another process opens the folder: unfinished runs stay.
    scratch.open();
    two.finish(&json!({}), Vec::new()).unwrap();
    assert_eq!(packet_counts(&scratch), [0]);
    one.finish(&json!({}), Vec::new()).unwrap();
    assert_eq!(packet_counts(&scratch), [1, 0]);
    again.finish(&json!({}), Vec::new()).unwrap();
    assert_eq!(packet_counts(&scratch), [0, 0], "the last run to finish stays");
}

#[test]
fn the_list_is_complete_while_threads_write() {
    let (scratch, store) = Scratch::with_store();
    let watch = |_| {
        let runs = Store::read(&scratch.dir()).unwrap().runs;
        for run in &runs {
            assert!(run.dir.is_dir());
        }
        runs.len()
    };
    let (_, seen) = rayon::join(
        || (0..24).for_each(|seed| drop(write(&store, &header("a", seed), &[], ""))),
        || (0..200).map(watch).collect::<Vec<_>>(),
    );
    assert!(seen.is_sorted());
    assert_eq!(watch(0), 24);
}

#[test]
fn refuses_other_folders() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.dir()).unwrap();
    scratch.open();

    let other = scratch.0.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "").unwrap();
    let error = Store::create(&other).unwrap_err();
    assert!(matches!(&error, StoreError::NotAResult { path } if *path == other));
    assert!(error.to_string().contains(other.to_str().unwrap()), "{error}");
    assert_eq!(files::names(&other).unwrap(), ["thesis.tex"], "untouched");
    let error = Store::create(&other.join("thesis.tex")).unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "create the folder", .. }), "{error}");

    let database = other.join(DATABASE_FILE);
    fs::write(&database, "a text that is long enough to be no empty file of SQLite".repeat(20)).unwrap();
    let error = Store::create(&other).unwrap_err().to_string();
    assert!(error.contains("is damaged: ") && error.contains("not a database"), "{error}");
    // A database of another program, and one of a later version.
    fs::remove_file(&database).unwrap();
    let foreign = rusqlite::Connection::open(&database).unwrap();
    foreign.execute_batch("CREATE TABLE run (id INTEGER); PRAGMA user_version = 1").unwrap();
    assert!(matches!(Store::create(&other), Err(StoreError::NotAResult { .. })));
    drop(foreign);
    let later = rusqlite::Connection::open(scratch.dir().join(DATABASE_FILE)).unwrap();
    later.execute_batch("PRAGMA user_version = 2").unwrap();
    let error = Store::create(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("has format 2, and this version knows up to 1"), "{error}");
}

/// Changes a run behind the back of the store.
fn alter(scratch: &Scratch, sql: &str) {
    let connection = rusqlite::Connection::open(scratch.dir().join(DATABASE_FILE)).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0);
}

#[test]
fn altered_rows_are_refused() {
    for sql in [
        "UPDATE run SET directory = '../../other'",
        "UPDATE run SET document = replace(document, 'hash-1', 'hash-2')",
        "UPDATE run SET seed = 2",
        "UPDATE run SET scenario_hash = 'x'",
        "UPDATE run SET cut_at_s = 3",
    ] {
        let scratch = Scratch::new();
        write(&scratch.open(), &header("a", 1), &[], "hash-1");
        assert_eq!(scratch.hashes(), ["hash-1"]);
        alter(&scratch, sql);
        let error = Store::read(&scratch.dir()).unwrap_err().to_string();
        assert!(error.contains("is not as it was written"), "{sql}: {error}");
    }
}

#[test]
fn an_empty_database_is_new_only_without_runs() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.dir()).unwrap();
    fs::write(scratch.dir().join(DATABASE_FILE), "").unwrap();
    write(&scratch.open(), &header("a", 1), &[], "hash-1");
    for log in ["-wal", "-shm"] {
        let _ = fs::remove_file(scratch.dir().join(format!("{DATABASE_FILE}{log}")));
    }
    fs::write(scratch.dir().join(DATABASE_FILE), "").unwrap();
    let error = Store::create(&scratch.dir()).unwrap_err().to_string();
    assert!(error.contains("is damaged: it is empty"), "{error}");
    assert_eq!(scratch.runs().len(), 1, "untouched");
}

#[test]
fn repairs_what_killed_processes_left() {
    let (scratch, store) = Scratch::with_store();
    let runs = scratch.dir().join("runs");
    for (seed, hash) in [(1, "one"), (2, "two"), (3, "three"), (4, "four")] {
        write(&store, &header("a", seed), &[sent(seed as i64)], hash);
    }
    let place = |seed: u64| runs.join(format!("a-gcc-2016-seed{seed}"));
    let left = |name: &str| {
        let holder = runs.join(name);
        fs::create_dir_all(&holder).unwrap();
        fs::write(holder.join("lock"), "").unwrap();
        holder.join("data")
    };
    // Killed while writing a run.
    fs::create_dir(left("a-gcc-2016-seed9.tmp-1-0")).unwrap();
    // Killed between the renames of a replacement, after both and before the commit, and after the commit.
    fs::rename(place(1), left("a-gcc-2016-seed1.old-1-1")).unwrap();
    fs::rename(place(2), left("a-gcc-2016-seed2.old-1-2")).unwrap();
    fs::create_dir(place(2)).unwrap();
    fs::create_dir(left("a-gcc-2016-seed3.old-1-3")).unwrap();
    // Removed by hand, and put there by hand.
    fs::remove_dir_all(place(4)).unwrap();
    fs::create_dir(runs.join("notes")).unwrap();

    scratch.open();
    assert_eq!(scratch.hashes(), ["one", "two", "three"]);
    assert_eq!(scratch.runs(), ["a-gcc-2016-seed1", "a-gcc-2016-seed2", "a-gcc-2016-seed3", "notes"]);
    for seed in 1..=3 {
        assert_eq!(read(&place(seed).join("packets.parquet")).len(), 1);
    }
    let names = files::names(&scratch.dir()).unwrap();
    assert_eq!(names.iter().filter(|name| !name.starts_with(DATABASE_FILE)).collect::<Vec<_>>(), ["runs"]);
}

/// Runs of an earlier text of a scenario are not shown with those of the present text, nor are their summaries.
#[test]
fn nothing_is_joined_across_scenario_texts() {
    let (scratch, store) = Scratch::with_store();
    let run = |hash: &str, controller: &str| {
        let header = RunHeader { controllers: vec![Some(controller.to_owned()), None], ..header("a", 1) };
        let text = RunInputs { scenario_hash: hash.to_owned(), plan_hash: format!("{hash} {controller}"), ..inputs() };
        let folder = store.run(&header, text).unwrap().finish(&json!({"trace_hash": "f00d"}), Vec::new()).unwrap();
        let folder = folder.file_name().unwrap().to_string_lossy().into_owned();
        let group = groups::group_of_run("a", controller, &folder);
        store.group(&group).unwrap();
        group
    };
    let (one, other) = (run("first", "gcc-2016"), run("first", "nada"));
    store.comparison(&groups::comparison("a", &["gcc-2016", "nada"])).unwrap();
    let contents = Store::read(&scratch.dir()).unwrap();
    assert_eq!((contents.groups, contents.comparisons.len(), contents.notes.len()), (vec![one.clone(), other], 1, 0));

    // The text changes, and one of the controllers runs again.
    let again = run("second", "nada");
    let contents = Store::read(&scratch.dir()).unwrap();
    assert_eq!(contents.groups, [again], "the group of the replaced run is removed, the other one is left out");
    assert_eq!(contents.comparisons, []);
    let shown: Vec<_> = contents.runs.iter().map(|run| run.about.run.controllers[0].as_deref().unwrap()).collect();
    assert_eq!(shown, ["nada"]);
    assert!(
        contents.notes[0].starts_with("Runs of `a` that are left out") && contents.notes[0].ends_with(": 1"),
        "{:?}",
        contents.notes
    );
    // The earlier text runs again: its runs are the newest.
    run("first", "nada");
    let contents = Store::read(&scratch.dir()).unwrap();
    assert_eq!((contents.runs.len(), contents.groups.len(), contents.notes.len()), (2, 2, 0));

    // A group of other runs of these names is not shown.
    let mut other = contents.groups[0].clone();
    other.per_run[0].trace_hash = "beef".to_owned();
    store.group(&other).unwrap();
    assert_eq!(Store::read(&scratch.dir()).unwrap().groups, contents.groups[1..]);
}

#[test]
fn errors_of_the_file_system_name_the_file() {
    let (scratch, store) = Scratch::with_store();
    let run = store.run(&header("a", 1), inputs()).unwrap();
    fs::remove_dir_all(scratch.dir()).unwrap();
    let error = run.finish(&json!({}), Vec::new()).unwrap_err();
    assert!(matches!(&error, StoreError::Io { path, .. } if path.ends_with("packets.parquet")), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(matches!(store.run(&header("a", 1), inputs()), Err(StoreError::Io { .. })));
}
