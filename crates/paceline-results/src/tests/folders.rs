//! The folder, its manifest, and runs in it.

use super::*;

#[test]
fn an_unfinished_run_leaves_no_files() {
    let (scratch, store) = Scratch::with_store();
    let mut run = store.run(&header("a", 1), inputs()).unwrap();
    run.on_event(&sent(1));
    assert_eq!(scratch.runs().len(), 1);
    drop(run);
    assert!(scratch.runs().is_empty());
    assert_eq!(scratch.manifest(), Manifest::default());
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
    assert_eq!(scratch.manifest().runs.len(), 3);
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
    two.finish(&json!({})).unwrap();
    assert_eq!(packet_counts(&scratch), [0]);
    one.finish(&json!({})).unwrap();
    assert_eq!(packet_counts(&scratch), [1, 0]);
    again.finish(&json!({})).unwrap();
    assert_eq!(packet_counts(&scratch), [0, 0], "the last run to finish stays");
}

#[test]
fn the_manifest_is_complete_while_threads_write() {
    let (scratch, store) = Scratch::with_store();
    let path = scratch.dir().join(MANIFEST_FILE);
    let watch = |_| {
        let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let runs = value["runs"].as_array().unwrap();
        for run in runs {
            assert!(scratch.dir().join("runs").join(run["directory"].as_str().unwrap()).is_dir());
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

    let other = scratch.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "").unwrap();
    let error = Store::create(&other).unwrap_err();
    assert!(matches!(&error, StoreError::NotAResult { path } if *path == other));
    assert!(error.to_string().contains(other.to_str().unwrap()), "{error}");
    assert_eq!(files::names(&other).unwrap(), ["thesis.tex"], "untouched");

    for (text, expected) in [
        ("{\"name\": \"an extension\"}", "holds no Paceline result"),
        ("[]", "holds no Paceline result"),
        ("{", "is damaged: EOF"),
        ("{\"format\": \"paceline-results\", \"format_version\": 2}", "has format 2, and this version knows up to 1"),
        ("{\"format\": \"paceline-results\"}", "`format_version` is not a number"),
        ("{\"format\": \"paceline-results\", \"format_version\": 1}", "missing field `runs`"),
    ] {
        fs::write(other.join(MANIFEST_FILE), text).unwrap();
        let error = Store::create(&other).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(other.join(MANIFEST_FILE)).unwrap(), text);
    }
    let error = Store::create(&other.join("thesis.tex")).unwrap_err();
    assert!(matches!(error, StoreError::Io { action: "create the folder", .. }), "{error}");
}

#[test]
fn refuses_paths_in_the_manifest() {
    let scratch = Scratch::new();
    write(&scratch.open(), &header("a", 1), &[], "");
    let path = scratch.dir().join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap().replace("a-gcc-2016-seed1", "../../other");
    fs::write(&path, text).unwrap();
    let error = Store::create(&scratch.dir()).unwrap_err();
    assert!(error.to_string().contains("`../../other` is not the name of a folder"), "{error}");
}

#[test]
fn repairs_what_killed_processes_left() {
    let (scratch, store) = Scratch::with_store();
    let runs = scratch.dir().join("runs");
    for (seed, hash) in [(1, "one"), (2, "two"), (3, "three"), (4, "four")] {
        write(&store, &header("a", seed), &[], hash);
    }
    let place = |seed: u64| runs.join(format!("a-gcc-2016-seed{seed}"));
    let gone = format!("{}-0", u32::MAX);
    // Killed while writing a run, and while writing the manifest.
    fs::create_dir(runs.join(format!("a-gcc-2016-seed9.tmp-{gone}"))).unwrap();
    fs::write(scratch.dir().join(format!("manifest.json.tmp-{gone}")), "{").unwrap();
    // Killed between the two renames of a replacement, and before the old run was removed.
    fs::rename(place(1), runs.join(format!("a-gcc-2016-seed1.old-{gone}"))).unwrap();
    fs::create_dir(runs.join(format!("a-gcc-2016-seed2.old-{gone}"))).unwrap();
    // Killed before the manifest was written.
    let mut manifest = scratch.manifest();
    manifest.runs.remove(2);
    manifest.prepare(&scratch.dir()).unwrap().commit().unwrap();
    // Removed by hand, and put there by hand.
    fs::remove_dir_all(place(4)).unwrap();
    fs::create_dir(runs.join("notes")).unwrap();

    scratch.open();
    assert_eq!(scratch.hashes(), ["one", "two", "three"]);
    assert_eq!(scratch.runs(), ["a-gcc-2016-seed1", "a-gcc-2016-seed2", "a-gcc-2016-seed3", "notes"]);
    assert_eq!(files::names(&scratch.dir()).unwrap(), ["manifest.json", "runs"]);

    // Killed before the first manifest.
    let other = scratch.0.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join(format!("manifest.json.tmp-{gone}")), "").unwrap();
    Store::create(&other).unwrap();
}

#[test]
fn errors_of_the_file_system_name_the_file() {
    let (scratch, store) = Scratch::with_store();
    let run = store.run(&header("a", 1), inputs()).unwrap();
    fs::remove_dir_all(scratch.dir()).unwrap();
    let error = run.finish(&json!({})).unwrap_err();
    assert!(matches!(&error, StoreError::Io { path, .. } if path.ends_with("packets.parquet")), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(matches!(store.run(&header("a", 1), inputs()), Err(StoreError::Io { .. })));
}
