// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading folders: errors name the damaged file.

use crate::report::results::store;
use paceline_lab::report::{ReportError, Results, page, panels};
use paceline_lab::results::Store;
use paceline_lab::results::database::DATABASE_FILE;
use paceline_scenario::{Catalogue, Changes, Origin};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Returns a folder with a short run of table 1, and the folder of the run.
fn folder() -> (TempDir, PathBuf) {
    folder_of(&Catalogue.find("mmsys16/table1").unwrap())
}

/// Returns a folder with one run of 5 s, and the folder of the run.
fn folder_of(origin: &Origin) -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let changes = Changes { settings: vec!["duration=5s".parse().unwrap()], ..Changes::default() };
    let run = store(scratch.path(), origin, &changes, &[1], false).remove(0);
    (scratch, run)
}

fn error_of(dir: &Path) -> String {
    let error: ReportError = page::write(dir, &dir.join("page.html"), paceline_lab::metrics::catalogue()).unwrap_err();
    assert!(!dir.join("page.html").exists(), "nothing is written");
    format!("{error}: {:?}", error.source().map(ToString::to_string))
}

/// Media flows have their own series even if they come last in the file, and the page states what is not shown.
#[test]
fn media_flows_take_precedence() {
    let crowd = r#"id = "test/crowd"
title = "A call behind nine transfers"
duration = "10s"
[path.forward]
capacity = "5Mbps"
[[flow]]
id = "tcp"
kind = "tcp"
count = 9
[[flow]]
id = "video"
controller = "gcc-2016"
"#;
    let (scratch, _) = folder_of(&Origin::from_text("crowd.toml", crowd));
    let figures = panels::figures(&Results::open(scratch.path()).unwrap()).unwrap();
    let flows: Vec<&str> = figures[0].subjects.iter().map(|subject| subject.flow.as_str()).collect();
    assert_eq!(flows, ["tcp-1", "tcp-2", "tcp-3", "tcp-4", "tcp-5", "tcp-6", "tcp-7", "video", "2 more flows"]);
    let gradient = figures[0].panel("gradient").expect("the call has one");
    assert!(gradient.series.iter().all(|series| series.subject == Some(7)), "{:?}", gradient.series.len());
    page::write(scratch.path(), &scratch.path().join("page.html"), paceline_lab::metrics::catalogue()).unwrap();
    let page = fs::read_to_string(scratch.path().join("page.html")).unwrap();
    assert!(page.contains("8 of a run&#39;s 10 flows have lines") || page.contains("8 of a run's 10 flows have lines"));
}

#[test]
fn errors_name_the_damaged_file() {
    let (scratch, place) = folder();
    let dir = scratch.path();
    page::write(dir, &dir.join("whole.html"), paceline_lab::metrics::catalogue()).unwrap();

    let packets = fs::read(place.join("packets.parquet")).unwrap();
    fs::write(place.join("packets.parquet"), &packets[..packets.len() / 2]).unwrap();
    let error = error_of(dir);
    assert!(error.contains("packets.parquet` is damaged: its contents are not those that were written"), "{error}");
    // Another table in its place.
    fs::copy(place.join("flows.parquet"), place.join("packets.parquet")).unwrap();
    let error = error_of(dir);
    assert!(error.contains("packets.parquet` is damaged: its contents are not those that were written"), "{error}");
    fs::remove_file(place.join("packets.parquet")).unwrap();
    let error = error_of(dir);
    assert!(error.contains("cannot open") && error.contains("packets.parquet"), "{error}");
    fs::write(place.join("packets.parquet"), packets).unwrap();

    fs::write(dir.join(DATABASE_FILE), "{".repeat(10_000)).unwrap();
    let error = error_of(dir);
    assert!(error.contains("results.sqlite` is damaged"), "{error}");
}

#[test]
fn rejects_folders_without_results() {
    let (scratch, _) = folder();
    let empty = scratch.path().join("other");
    Store::create(&empty).unwrap();
    let error = error_of(&empty);
    assert!(error.contains("contains no run") && error.contains("--out"), "{error}");
    let error = error_of(&scratch.path().join("runs"));
    assert!(error.contains("no Paceline result"), "{error}");
}

#[test]
fn interrupted_run_is_drawn_and_labelled() {
    let (scratch, place) = folder();
    // As a killed process leaves a run of another text; a complete run of the same text would replace it.
    let parts = place.with_file_name("cut.parts-1-0");
    let part = parts.join("data/until-000003s");
    fs::create_dir_all(&part).unwrap();
    fs::write(parts.join("lock"), "").unwrap();
    for name in ["packets", "flows", "frames", "signals"].map(|table| format!("{table}.parquet")) {
        fs::copy(place.join(&name), part.join(&name)).unwrap();
    }
    let mut about = Store::read_run(&place).unwrap().about;
    about.inputs.scenario_text = "an earlier text".to_owned();
    fs::write(parts.join("data/about.json"), serde_json::to_string(&about).unwrap()).unwrap();
    Store::create(scratch.path()).unwrap();

    let results = Results::open(scratch.path()).unwrap();
    assert_eq!(results.runs.iter().map(|run| run.duration_s()).collect::<Vec<_>>(), [5.0, 3.0]);
    let figures = panels::figures(&results).unwrap();
    let labels: Vec<&str> = figures[0].subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!(labels, ["video", "video · cut at 3 s"]);
    let page = page::render(&results, paceline_lab::metrics::catalogue()).unwrap();
    assert!(page.contains("cut-cut was cut at 3 s: its process ended there."));
    let (whole, _) = folder();
    assert!(
        !page::render(&Results::open(whole.path()).unwrap(), paceline_lab::metrics::catalogue())
            .unwrap()
            .contains("was cut at")
    );
}
